// SPDX-License-Identifier: MIT
// The events of all CPUs from the current producer, by a reader set of libkmes, with reports of a
// new or ended producer.
#ifndef KMES_KMESCTL_SOURCE_H_
#define KMES_KMESCTL_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/reader_set.h"

namespace kmes::kmesctl {

// Handles an event. False: no more events now.
using Take = std::function<bool(const struct kmes_event_view&)>;

// Throws a Failure for an error of the rings, which is a negative error number.
[[noreturn]] void cannot_read(int error);

// The number of events to read between two checks of the clock and of signals.
inline constexpr unsigned kEventsAtATime = 4096;

// How Source::read_backlog() has ended.
enum class Backlog {
    read,      // the rings were empty
    exceeded,  // everything that they held at the beginning was read; the producer does not pause
    stopped,
};

// As kmes_reader_set_options; 0: none.
struct Watermark {
    std::uint64_t bytes = 0;
    std::uint64_t ns = 0;
};

class Source {
  public:
    // `on_news` gets one line when the producer ends, when another one serves, and when one CPU of
    // several cannot be read. `is_read_only`: the producer has no work for this reader. Throws a
    // Failure of kExitFailed if no producer serves, or if the attach is rejected.
    explicit Source(std::function<void(const std::string&)> on_news, Watermark watermark = {},
                    bool is_read_only = false);
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    unsigned cpus() const { return kmes_reader_set_cpus(set_); }

    // For a merge, which then is the only one that reads and waits.
    struct kmes_reader_set* set() { return set_; }

    // Waits for events, for at most timeout_ns. A temporary error (no producer, a signal) is
    // ignored: the caller continues.
    void wait(std::uint64_t timeout_ns);

    // As kmes_reader_set_consume. Rethrows the exception of `take`; throws a Failure for an error
    // of the rings.
    unsigned consume(unsigned most, const Take& take);

    // Reads at least what the rings hold now, or until `is_over` returns true. The end is certain,
    // even if the producer never pauses. `take` always returns true.
    Backlog read_backlog(const Take& take, const std::function<bool()>& is_over);

    // The negative error number of a CPU that cannot be read now, otherwise 0.
    int error(unsigned cpu) const { return kmes_reader_set_error(set_, cpu); }
    // Reports CPUs that cannot be read although others can, and their return. wait() does it too.
    void check_cpus();
    // The number of CPUs that could never be read.
    unsigned unread_cpus() const;

    // The session of the producer whose events of this CPU are currently read (E25).
    std::uint64_t session(unsigned cpu) const {
        return kmes_reader_set_get_place(set_, cpu).session;
    }
    // The number of places with impossible content on all CPUs, which were skipped.
    std::uint64_t corrupt() const;

    // A descriptor that is readable while there are events to read (kmes_reader_set_fd).
    int ready_fd();

    // Checks without any wake whether the producer still serves. If not, the readers look for the
    // next one. For a caller that never calls wait().
    void check_producer();

    // The current metadata of a CPU's buffer.
    struct Ring {
        bool is_attached = false;
        std::uint64_t capacity_bytes = 0;
        std::uint64_t write_pos = 0;
        std::uint64_t tail_pos = 0;
        std::uint32_t futex_counter = 0;  // one for each wake, modulo 2^32
    };
    Ring ring(unsigned cpu) const;
    // The number of times that another buffer or producer has replaced the current one.
    std::uint64_t attaches(unsigned cpu) const;

  private:
    struct Hook;
    static void configure(void* context, struct kmes_reader_config* config, __u16 cpu);
    static int attach(void* context, __u16 cpu, struct kmes_mapping* mapping);
    static int identify(void* context, __u16 cpu, struct kmes_mapping* mapping);
    static void detach(void* context, struct kmes_mapping* mapping);
    static int is_current(void* context, __u16 cpu, struct kmes_mapping* mapping);
    void note(int error);
    void note_session(std::uint64_t session);

    const std::function<void(const std::string&)> on_news_;
    const bool is_read_only_;
    std::vector<std::unique_ptr<Hook>> hooks_;
    struct kmes_reader_set* set_ = nullptr;
    std::uint64_t session_ = 0;
    bool has_ended_ = false;

    // What check_cpus() knows of a CPU.
    struct Cpu {
        std::uint64_t failing_since_ns = 0;  // 0: it can be read
        bool is_reported = false;
        bool was_read = false;
    };
    std::vector<Cpu> cpus_;
};

// Explains a negative error number of attach, and its remedy.
std::string explain_attach(int error);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SOURCE_H_
