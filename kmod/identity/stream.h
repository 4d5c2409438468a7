// SPDX-License-Identifier: GPL-2.0-only
//
// Emitters and readers on the module's real CPUs. A payload begins with its own seed of 8 bytes
// (the emitter's number and a count), which determines its length and its other bytes. So a reader
// can check each event.
#ifndef KMES_KMOD_IDENTITY_STREAM_H_
#define KMES_KMOD_IDENTITY_STREAM_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kmes/reader.h"
#include "kmod/identity/module.h"

namespace kmes::identity {

// Uses KMES_IOC_ATTACH and KMES_IOC_STATISTICS on the real instance.
unsigned real_cpus();
kmes_ioctl_statistics real_statistics(unsigned cpu);

// Keeps the calling thread on a CPU.
void stay_on(unsigned cpu);

class Emitter {
  public:
    explicit Emitter(unsigned number) : device_(open_device()), number_(number) {}
    // Emits one event by KMES_IOC_EMIT, or `count` of them by one KMES_IOC_EMIT_BATCH. Throws
    // std::system_error if the module returns an error.
    void emit();
    void emit_batch(unsigned count);
    std::uint64_t emitted() const { return count_; }

  private:
    std::string next_payload();

    Descriptor device_;
    const std::uint64_t number_;
    std::uint64_t count_ = 0;
};

// The reference consumer (kmes/reader.h) of one CPU, with mappings of the device.
class Reader {
  public:
    // Throws std::system_error if attaching fails.
    explicit Reader(unsigned cpu);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Reads and checks all available events. Returns false after a failure: see failure().
    bool drain();
    // Sleeps until there may be a new event, for at most `timeout_ns`.
    void wait(std::uint64_t timeout_ns);
    // Call it after the last drain. Returns whether each sequence number was delivered or counted
    // as lost.
    bool is_complete(std::uint64_t last_sequence);
    const std::optional<std::string>& failure() const { return failure_; }
    const kmes_reader_statistics& statistics() const { return reader_.statistics; }
    // Returns the number of switches to another buffer. Any thread may call it.
    std::uint64_t switches() const { return switches_; }

  private:
    void check(const kmes_event_view& view);
    void fail(const std::string& what);

    const unsigned cpu_;
    kmes_platform platform_{};
    kmes_reader reader_{};
    std::vector<std::uint8_t> room_;
    std::map<std::uint64_t, std::uint64_t> last_count_;  // of each emitter
    std::atomic<std::uint64_t> switches_{0};
    std::optional<std::uint64_t> first_sequence_;
    std::optional<std::string> failure_;
};

// Resizes the real rings `resizes` times, while threads emit on all CPUs and readers check. Before
// each resize it waits until all readers have switched to the current buffers. Returns whether the
// run passed, and prints its failures.
bool resize_real_instance(unsigned resizes);

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_STREAM_H_
