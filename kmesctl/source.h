// SPDX-License-Identifier: MIT
// Reads the events of all CPUs of the current producer, by a reader set of libkmes. Reports the
// start and the end of a producer.
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

// Handles an event. Returns false to end the read.
using Take = std::function<bool(const struct kmes_event_view&)>;

// Throws a Failure for an error of the rings, which is a negative error number.
[[noreturn]] void cannot_read(int error);

// The number of events to read between two checks of the clock and of signals.
inline constexpr unsigned kEventsAtATime = 4096;

// The end of Source::read_backlog().
enum class Backlog {
    read,      // the rings were empty
    exceeded,  // the content at the beginning was read; the producer does not pause
    stopped,
};

// As kmes_reader_set_options; 0: none.
struct Watermark {
    std::uint64_t bytes = 0;
    std::uint64_t ns = 0;
};

class Source {
  public:
    // `on_notice` gets one line when the producer ends, when another one serves, and when one CPU
    // of several cannot be read. `is_read_only`: the producer has no work for this reader. Throws a
    // Failure of kExitFailed if no producer serves, or if the attach is rejected.
    explicit Source(std::function<void(const std::string&)> on_notice, Watermark watermark = {},
                    bool is_read_only = false);
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    unsigned cpus() const { return kmes_reader_set_cpus(set_); }

    // For a merge, which then is the only reader of the set.
    struct kmes_reader_set* set() { return set_; }

    // After the start of another producer with more CPUs: reads those as well, once all other CPUs
    // are read from that producer. Returns true if cpus() has changed. The set is then another one,
    // which continues at `places` (by CPU; default: those of the earlier set). No event is lost or
    // repeated. `before_close` is called while both sets exist. Call it between two reads.
    bool follow_cpus(const std::function<std::vector<kmes_reader_place>()>& places = {},
                     const std::function<void()>& before_close = {});

    // Waits for events, for at most timeout_ns. A temporary error (no producer, a signal) is
    // ignored: the caller continues.
    void wait(std::uint64_t timeout_ns);

    // As kmes_reader_set_consume. Rethrows the exception of `take`; throws a Failure for an error
    // of the rings.
    unsigned consume(unsigned most, const Take& take);

    // Reads at least the current content of the rings, or until `is_over` returns true. Ends even
    // if the producer never pauses. `take` always returns true.
    Backlog read_backlog(const Take& take, const std::function<bool()>& is_over);

    // Returns the negative error number of a CPU that cannot be read now, otherwise 0.
    int error(unsigned cpu) const { return kmes_reader_set_error(set_, cpu); }
    // Reports CPUs that cannot be read although others can, and those that can be read again.
    // wait() calls it.
    void check_cpus();
    // The number of CPUs of the current producer that could never be read.
    unsigned unread_cpus() const;

    // The session of the producer whose events of this CPU are currently read (E25).
    std::uint64_t session(unsigned cpu) const {
        return kmes_reader_set_get_place(set_, cpu).session;
    }
    // The session of the last event of this CPU that was read. It is cheap for each event. A merge
    // reads ahead.
    std::uint64_t session_of_event(unsigned cpu) const {
        return kmes_reader_set_buffer(set_, cpu)->session;
    }
    // The session of the producer that was attached last.
    std::uint64_t session() const { return session_; }
    // The number of places with impossible content on all CPUs, which were skipped.
    std::uint64_t corrupt() const;

    // A descriptor that is readable while there are events to read (kmes_reader_set_fd).
    int ready_fd();

    // Checks whether the producer still serves, without requesting a wake. If not, the readers
    // attach to the next one. For a caller that never calls wait().
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
    struct kmes_reader_set_options set_options();
    bool must_follow_cpus();
    void note_unread_cpus(int error);
    bool is_read_from_latest(const struct kmes_reader_set* set, unsigned cpus) const;

    const std::function<void(const std::string&)> on_notice_;
    const bool is_read_only_;
    std::vector<std::unique_ptr<Hook>> hooks_;
    struct kmes_reader_set* set_ = nullptr;
    const Watermark watermark_;
    std::uint64_t session_ = 0;
    bool has_ended_ = false;
    bool is_cpu_count_due_ = false;      // another producer may have another number of CPUs
    std::uint64_t cpus_asked_ns_ = 0;    // when its CPUs were last counted
    unsigned follow_tries_ = 0;          // failed ones for this producer
    unsigned existing_cpus_ = 0;         // of the producer, at the last count
    std::uint64_t earlier_corrupt_ = 0;  // of the previous sets

    // The state of a CPU for check_cpus().
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
