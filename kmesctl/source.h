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

// As kmes_reader_set_consume. Rethrows the exception of `take`; throws a Failure for an error of
// the rings.
unsigned consume_set(struct kmes_reader_set* set, unsigned most, const Take& take);

// Calls `read`, which returns the number of events that it has read, until it returns 0. It stops
// after a second, because a producer that never pauses has no last event. False: the time has ended
// it.
bool read_to_end(const std::function<unsigned()>& read);

// As kmes_reader_set_options; 0: none.
struct Watermark {
    std::uint64_t bytes = 0;
    std::uint64_t ns = 0;
};

class Source {
  public:
    // `on_news` gets one line when the producer ends, and when another one serves. Throws a Failure
    // of kExitFailed if no producer serves, or if the attach is rejected.
    explicit Source(std::function<void(const std::string&)> on_news, Watermark watermark = {});
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    unsigned cpus() const { return kmes_reader_set_cpus(set_); }

    // For a merge, which then is the only one that reads and waits.
    struct kmes_reader_set* set() { return set_; }

    // Waits for events, for at most timeout_ns. A temporary error (no producer, a signal) is
    // ignored: the caller continues.
    void wait(std::uint64_t timeout_ns);

    // As consume_set().
    unsigned consume(unsigned most, const Take& take) { return consume_set(set_, most, take); }

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
    std::vector<std::unique_ptr<Hook>> hooks_;
    struct kmes_reader_set* set_ = nullptr;
    std::uint64_t session_ = 0;
    bool has_ended_ = false;
};

// Explains a negative error number of attach, and its remedy.
std::string explain_attach(int error);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SOURCE_H_
