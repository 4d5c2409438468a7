// SPDX-License-Identifier: MIT
//
// See large_events.h.
#include "conformance/play/large_events.h"

#include <fmt/format.h>

#include <chrono>

#include "conformance/model/layout.h"
#include "conformance/monitors/resources.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kLargestEventBytes = 128 * kMebibyte;  // half of the largest capacity
constexpr std::uint64_t kSmallRing = 64 * kKibibyte;
constexpr std::uint64_t kSmallPayload = 1000;

std::uint64_t available_memory() {
    return read_kib("/proc/meminfo", "MemAvailable:");
}

// The largest event for which there is memory: for rings, the suite's copies and the testee's
// copies.
std::uint64_t largest_affordable() {
    constexpr std::uint64_t kTimes = 24;
    const std::uint64_t available = available_memory();
    std::uint64_t largest = kLargestEventBytes;
    while (largest > 2 * kMebibyte && available < kTimes * largest) largest /= 2;
    return largest;
}

// The number of bytes that an event of this size has in its header, after the type, if its payload
// is small.
std::uint64_t bytes_in_header(std::uint64_t bytes) {
    return bytes - kLeastEventBytes - kSmallPayload;
}

// The header takes most of the event, so a digest of the payload takes no time.
void emit_with_header(Stage& stage, std::uint64_t bytes) {
    stage.rings().emit(0, stage.rings().events().make(bytes, "t", bytes_in_header(bytes)));
}

// Makes a ring of this capacity whose next event begins at this offset. The small ring in between
// can hold nothing of the last one, so nothing is copied.
void change_to_ring(Stage& stage, std::uint64_t capacity_bytes, std::uint64_t offset) {
    stage.resize(kSmallRing);
    SwapAndMove{capacity_bytes, 3 * capacity_bytes + offset}(stage, 0);
    stage.wait_asleep();
}

void leave_large_ring(Stage& stage) {
    stage.resize(kSmallRing);
    stage.wait_asleep();
}

// Emits large events, and measures the testee's time for a byte of payload.
class LargeEvents {
  public:
    explicit LargeEvents(Stage& stage) : stage_(stage) {}

    // An event that would take many seconds gets a header of that size and a small payload. If
    // headers cannot grow, it is left out.
    void emit_and_wait(std::uint64_t bytes) {
        constexpr std::chrono::duration<double> kMost{5};
        const bool is_affordable = seconds_per_byte_ * static_cast<double>(bytes) <
                                   kMost.count() * stage_.settings().timeout_scale;
        if (!is_affordable && least_left_out_ == 0) least_left_out_ = bytes;
        if (!is_affordable && !layout().header_may_grow) return;
        Rings& rings = stage_.rings();
        const Emitted emitted = rings.emit(
            0, rings.events().make(bytes, "t", is_affordable ? 0 : bytes_in_header(bytes)));
        const auto begin = std::chrono::steady_clock::now();
        // The suite computes its digest while the testee computes the other one.
        rings.history().find(0, emitted.sequence)->digest();
        stage_.wait_asleep();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (is_affordable) seconds_per_byte_ = took.count() / static_cast<double>(bytes);
    }
    // The smallest size whose payload was left out; 0: none was.
    std::uint64_t least_left_out() const { return least_left_out_; }

  private:
    Stage& stage_;
    double seconds_per_byte_ = 0;
    std::uint64_t least_left_out_ = 0;
};

void note_lack_of_memory(Stage& stage, std::uint64_t largest) {
    if (largest < kLargestEventBytes)
        stage.findings().played_in_part(
            fmt::format("not enough memory for events of more than {} MiB", largest / kMebibyte));
}

}  // namespace

void RequireMemory::operator()(Stage&) const {
    const std::uint64_t available = available_memory();
    if (available < bytes)
        stop_unsupported(fmt::format("{} MiB of memory are free; buffers of {} MiB need {}",
                                     available / kMebibyte, buffers_mebibytes, bytes / kMebibyte));
}

void SwapAndMove::operator()(Stage& stage, std::uint32_t cpu) const {
    const std::uint64_t position = write_pos(stage, cpu) - back;
    stage.rings().swap(cpu, SwapSpec{capacity_bytes, PositionRule::shift, to - position});
}

void EmitLargeEvents::operator()(Stage& stage) const {
    const std::uint64_t largest = largest_affordable();
    LargeEvents events(stage);
    for (std::uint64_t size = 2 * kMebibyte; size <= largest; size *= 2) {
        const std::uint64_t capacity_bytes = 2 * size;
        change_to_ring(stage, capacity_bytes, capacity_bytes - size / 2);
        events.emit_and_wait(size);  // across the end
        // Sizes just below and above, if they are cheap. TearLargestEvent has the largest event
        // within the region.
        if (size <= 8 * kMebibyte) {
            events.emit_and_wait(size - 1);
            events.emit_and_wait(size - 1);      // across the end
            events.emit_and_wait(size / 2 + 1);  // within
        } else if (size < kLargestEventBytes && layout().header_may_grow) {
            emit_with_header(stage, size);  // within
            stage.wait_asleep();
        } else if (size < kLargestEventBytes) {
            events.emit_and_wait(size);
        }
    }
    leave_large_ring(stage);
    note_lack_of_memory(stage, largest);
    const std::uint64_t least = events.least_left_out();
    if (largest == kLargestEventBytes && least != 0)
        stage.findings().played_in_part(fmt::format(
            "events of {} MiB and more {}, because the consumer takes long for each "
            "byte of a payload",
            least / kMebibyte,
            layout().header_may_grow ? "had large headers and small payloads" : "were left out"));
}

void TearLargestEvent::operator()(Stage& stage) const {
    const std::uint64_t largest = largest_affordable();
    change_to_ring(stage, 2 * largest, 0);
    if (stage.testee().has_ended(0)) return;  // refused: the judge decides whether that was correct
    overwrite_under_read(
        stage, largest / 2 / kPageBytes, largest / 2 / kPageBytes,
        [&] { emit_with_header(stage, largest); },
        [&] {
            emit_with_header(stage, largest);
            emit_with_header(stage, largest);
        });
    leave_large_ring(stage);
    note_lack_of_memory(stage, largest);
}

}  // namespace kmes::conformance
