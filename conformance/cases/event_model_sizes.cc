// SPDX-License-Identifier: MIT
//
// Events with lengths just below, at and above each power of two, up to the largest possible one
// (event-model, 5.1.4, 5.1.7 step 5). The length is that of the payload, the header or the type,
// inside the data region or across its end. A consumer with a fixed buffer, or with a length in too
// few bits, fails at one of them.
#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/model/layout.h"
#include "conformance/monitors/resources.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// 2^k - 1, 2^k and 2^k + 1 from `least` to `most`.
std::vector<std::uint64_t> around_powers_of_two(std::uint64_t least, std::uint64_t most) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t power = 1; power <= most; power *= 2) {
        for (const std::uint64_t size : {power - 1, power, power + 1}) {
            const bool is_new = sizes.empty() || size > sizes.back();
            if (size >= least && size <= most && is_new) sizes.push_back(size);
        }
    }
    return sizes;
}

// One CPU for each length from `least` to `most` around every power of two. The first event of each
// CPU crosses the end of the data region `before_end` bytes after its beginning; the second does
// not.
struct LengthOnEachCpu {
    std::uint64_t least;
    std::uint64_t most;
    std::uint64_t capacity_bytes;
    EventSpec (*make)(Rings& rings, std::uint64_t length);
    std::uint64_t (*before_end)(std::uint64_t length);

    CaseOutcome operator()(Stage& stage) const {
        const std::vector<std::uint64_t> lengths = around_powers_of_two(least, most);
        RingsSetup setup = stage.default_setup();
        setup.cpus = static_cast<std::uint32_t>(lengths.size());
        setup.capacity_bytes = capacity_bytes;
        for (const std::uint64_t length : lengths)
            setup.start_positions.push_back(5 * capacity_bytes - before_end(length));
        stage.set_up(setup);
        stage.start();
        stage.wait_asleep();
        for (int i = 0; i < 2; ++i) {
            for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
                stage.rings().emit(cpu, make(stage.rings(), lengths[cpu]));
            stage.waits().delivered();
        }
        return stage.finish();
    }
};

constexpr std::uint64_t kSmallPayload = 20;

EventSpec of_size(Rings& rings, std::uint64_t size) {
    return rings.events().make(size);
}
EventSpec of_payload(Rings& rings, std::uint64_t length) {
    return rings.events().make(kLeastEventBytes + length);
}
EventSpec of_header(Rings& rings, std::uint64_t size) {
    return rings.events().make(size + kSmallPayload, "t", size - kLeastEventBytes);
}
EventSpec of_type(Rings& rings, std::uint64_t length) {
    return rings.events().make(kHeaderBytesBeforeType + length + kSmallPayload,
                               std::string(length, 'y'));
}

std::uint64_t half(std::uint64_t size) {
    return size / 2;
}
std::uint64_t half_of_payload(std::uint64_t length) {
    return kLeastEventBytes + length / 2;
}
std::uint64_t half_of_type(std::uint64_t length) {
    return kHeaderBytesBeforeType + (length + 1) / 2;
}

// -- From 2 MiB to the largest: a ring for each size -----------------------------------------

constexpr std::uint64_t kLargestEvent = 128 * kMebibyte;  // half of the largest capacity

// The largest event for which there is memory: for rings, the suite's copies and the testee's
// copies.
std::uint64_t largest_affordable() {
    constexpr std::uint64_t kTimes = 24;
    const std::uint64_t available = read_kib("/proc/meminfo", "MemAvailable:");
    std::uint64_t largest = kLargestEvent;
    while (largest > 2 * kMebibyte && available < kTimes * largest) largest /= 2;
    return largest;
}

// Emits large events, and measures the testee's time for a byte of payload. An event that would
// take many seconds (100 ns for a byte, as in Python) gets a header of that size and a small
// payload. If headers cannot grow, it is left out.
class LargeEvents {
  public:
    explicit LargeEvents(Stage& stage) : stage_(stage) {}

    void emit_and_wait(std::uint64_t bytes) {
        constexpr std::uint64_t kSmallPayload = 1000;
        constexpr std::chrono::duration<double> kMost{5};
        const bool is_affordable = seconds_per_byte_ * static_cast<double>(bytes) <
                                   kMost.count() * stage_.settings().timeout_scale;
        const std::uint64_t in_header =
            is_affordable ? 0 : bytes - kLeastEventBytes - kSmallPayload;
        if (!is_affordable && least_left_out_ == 0) least_left_out_ = bytes;
        if (!is_affordable && !layout().header_may_grow) return;
        Rings& rings = stage_.rings();
        const Emitted emitted = rings.emit(0, rings.events().make(bytes, "t", in_header));
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

// A change to a buffer of this capacity that moves every position of the CPU so that `position`
// becomes `to`.
SwapSpec moved(std::uint64_t capacity_bytes, std::uint64_t position, std::uint64_t to) {
    return SwapSpec{capacity_bytes, PositionRule::shift, to - position};
}

// Makes a ring of this capacity whose next event begins at this offset. The small ring in between
// can hold nothing of the last one, so nothing is copied.
void change_to_ring(Stage& stage, std::uint64_t capacity_bytes, std::uint64_t offset) {
    constexpr std::uint64_t kSmall = 64 << 10;
    stage.resize(kSmall);
    stage.rings().swap(0, moved(capacity_bytes, write_pos(stage, 0), 3 * capacity_bytes + offset));
    stage.wait_asleep();
}

// The header takes most of the event, so a digest of the payload takes no time.
void emit_with_header(Stage& stage, std::uint64_t bytes) {
    constexpr std::uint64_t kSmallPayload = 1000;
    stage.rings().emit(
        0, stage.rings().events().make(bytes, "t", bytes - kLeastEventBytes - kSmallPayload));
}

CaseOutcome large_sizes(Stage& stage) {
    const std::uint64_t largest = largest_affordable();
    set_up_one_cpu(stage, 4 * kMebibyte);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, 1, kMebibyte);
    stage.wait_asleep();
    LargeEvents events(stage);
    for (std::uint64_t size = 2 * kMebibyte; size <= largest; size *= 2) {
        const std::uint64_t capacity_bytes = 2 * size;
        change_to_ring(stage, capacity_bytes, capacity_bytes - size / 2);
        events.emit_and_wait(size);  // across the end
        // Sizes just below and above, if they are cheap. 5.1.8.1-5/largest-event-torn has the
        // largest event within the region.
        if (size <= 8 * kMebibyte) {
            events.emit_and_wait(size - 1);
            events.emit_and_wait(size - 1);      // across the end
            events.emit_and_wait(size / 2 + 1);  // within
        } else if (size < kLargestEvent && layout().header_may_grow) {
            emit_with_header(stage, size);  // within
            stage.wait_asleep();
        } else if (size < kLargestEvent) {
            events.emit_and_wait(size);
        }
    }
    stage.resize(64 << 10);
    stage.wait_asleep();
    if (largest < kLargestEvent)
        stage.findings().played_in_part(
            fmt::format("not enough memory for events of more than {} MiB", largest / kMebibyte));
    else if (const std::uint64_t least = events.least_left_out(); least != 0)
        stage.findings().played_in_part(fmt::format(
            "events of {} MiB and more {}, because the consumer takes long for each "
            "byte of a payload",
            least / kMebibyte,
            layout().header_may_grow ? "had large headers and small payloads" : "were left out"));
    return stage.finish();
}

// Overwrites each at the consumer's first access to its second half, by an event of the same size.
CaseOutcome large_sizes_torn(Stage& stage) {
    const std::uint64_t largest = largest_affordable();
    set_up_one_cpu(stage, 4 * kMebibyte);
    stage.start();
    stage.wait_asleep();
    change_to_ring(stage, 2 * largest, 0);
    if (stage.testee().has_ended(0))
        return stage.finish();  // refused: the judge decides whether that was correct
    overwrite_under_read(
        stage, largest / 2 / kPageBytes, largest / 2 / kPageBytes,
        [&] { emit_with_header(stage, largest); },
        [&] {
            emit_with_header(stage, largest);
            emit_with_header(stage, largest);
        });
    stage.resize(64 << 10);
    stage.wait_asleep();
    if (largest < kLargestEvent)
        stage.findings().played_in_part(fmt::format(
            "for events of more than {} MiB there is too little memory", largest / kMebibyte));
    return stage.finish();
}

// -- After a shrink: larger than half of the ring --------------------------------------------

// The event of every CPU survives a shrink to its half and is alone in the new buffer, across its
// end. The testee attaches after the first shrink, and sleeps before the second one.
CaseOutcome survivors_larger_than_half(Stage& stage) {
    constexpr std::uint64_t kCapacity = 2 * kMebibyte;
    const std::vector<std::uint64_t> sizes = {kCapacity / 2 + 1, kCapacity - (64 << 10),
                                              kCapacity - kLeastEventBytes, kCapacity - 1,
                                              kCapacity};
    set_up_cpus(stage, static_cast<std::uint32_t>(sizes.size()), 2 * kCapacity);
    const auto emit_and_shrink = [&] {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            stage.rings().emit(cpu, stage.rings().events().make(sizes[cpu]));
            stage.rings().swap(cpu, moved(kCapacity, write_pos(stage, cpu) - sizes[cpu],
                                          7 * kCapacity - sizes[cpu] / 2 - 1));
        }
    };
    emit_and_shrink();
    stage.start();
    stage.wait_asleep();
    stage.resize(2 * kCapacity);
    stage.wait_asleep();
    stage.holding().freeze();
    emit_and_shrink();
    stage.holding().thaw();
    stage.wait_asleep();
    emit_everywhere(stage, 2, 100);
    stage.waits().delivered();
    return stage.finish();
}

// Headers whose size exceeds 12, 15 and 16 bits: because of the type, or because of fields of a
// later version.
void emit_large_headers(Stage& stage) {
    require_longer_headers();
    struct Header {
        std::uint64_t type_bytes;
        std::uint64_t extra_bytes;
    };
    for (const Header& header :
         {Header{4100, 0}, Header{1, 5000}, Header{32768, 0}, Header{40000, 9}, Header{1, 66000},
          Header{65535, 0}, Header{65507, 3}, Header{65535, 40000}, Header{1, 1'200'000}}) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            const std::uint64_t bytes =
                kHeaderBytesBeforeType + header.type_bytes + header.extra_bytes + 100;
            stage.rings().emit(
                cpu, stage.rings().events().make(bytes, std::string(header.type_bytes, 'x'),
                                                 header.extra_bytes));
        }
        stage.waits().delivered();
    }
}

// The kernel may emit events that no call accepts (MaxEventSize limits only the calls).
Steps one_event_of(std::uint64_t mebibytes) {
    return {Asleep{}, Emit{1, mebibytes * kMebibyte}, Asleep{}};
}

void emit_wide_header(Stage& stage) {
    stage.rings().emit(0, stage.rings().events().make(300'000, "wide-header", 200'000));
}

}  // namespace

const std::vector<Case> kSizeCases = {
    {"event-model/sizes-around-powers-of-two", must, "event sizes around every power of two",
     in_layout("Emit events of 2^k - 1, 2^k and 2^k + 1 bytes, from {} bytes to 1 MiB, one CPU for "
               "each size. Emit them across the end of the data region and within it.",
               kLeastEventBytes),
     kDeliversWhole, LengthOnEachCpu{kLeastEventBytes, kMebibyte, 2 * kMebibyte, of_size, half}},
    {"event-model/payloads-around-powers-of-two", must, "payload lengths around every power of two",
     "Emit events as in event-model/sizes-around-powers-of-two, with payloads of 0 bytes to 512 "
     "KiB.",
     kDeliversWhole, LengthOnEachCpu{0, kMebibyte / 2, 2 * kMebibyte, of_payload, half_of_payload}},
    {"event-model/headers-around-powers-of-two", must, "header sizes around every power of two",
     in_layout(
         "Emit events as in event-model/sizes-around-powers-of-two, with headers of {} bytes to "
         "512 KiB and payloads of 20 bytes.",
         kLeastEventBytes),
     kDeliversWhole,
     LengthOnEachCpu{kLeastEventBytes, kMebibyte / 2, 2 * kMebibyte, of_header, half}},
    {"event-model/types-around-powers-of-two", must, "type lengths around every power of two",
     "Emit events as in event-model/sizes-around-powers-of-two, with types of 1 to 65,535 bytes. "
     "The end of the data region is inside the type.",
     kDeliversWhole, LengthOnEachCpu{1, 0xffff, 256 << 10, of_type, half_of_type}},
    {"event-model/sizes-up-to-128-mebibytes", must, "event sizes up to half of the largest ring",
     "Emit an event of each power of two from 2 MiB to 128 MiB across the end of a ring of twice "
     "its size. Emit those below 128 MiB within the region too.",
     kDeliversWhole, large_sizes},
    {"5.1.8.1-5/largest-event-torn", must, "an event of 128 MiB overwritten during the copy",
     "Emit an event of 128 MiB in a ring of twice its size. At the first access to the second half "
     "of the event, overwrite it by an event of the same size.",
     "The consumer loads tail_pos after the copy, however large the event is, and discards it.",
     large_sizes_torn},
    {"E7/survivors-larger-than-half", erratum, "survivors of a shrink larger than half of the ring",
     "Shrink the rings of five CPUs to half. In each, one event of between half of the new ring "
     "and all of it survives across the end. Shrink before the attach, and again while the "
     "consumer is stopped.",
     kDeliversWhole, survivors_larger_than_half},
};

namespace {

const Row kLargeHeaderRows[] = {
    {{"event-model/large-headers", must, "headers of up to 1.2 MB",
      "Emit types of 4 to 64 KiB, and headers that are longer than their type by up to 1,200,000 "
      "bytes.",
      "The consumer reads type_len as 16 bits and header_size as 32, with no limit other than the "
      "event's size."},
     {emit_large_headers},
     {.capacity = 4 * kMebibyte}},
};

const Row kMebibyteRows[] = {
    {{"event-model/five-mebibytes", must, "an event of 5 MiB, a header of 200,000 bytes",
      "Emit an event of 5 MiB, and one with a header of more than 2^17 bytes, into a ring of 16 "
      "MiB.",
      kDeliversWhole},
     {Asleep{}, Emit{1, 5 * kMebibyte}, Asleep{}, emit_wide_header, Asleep{}},
     {.cpus = 1, .capacity = 16 * kMebibyte}},
    {{"event-model/nine-mebibytes", must, "an event of 9 MiB",
      "Emit an event of 9 MiB, which is larger than most thread stacks, into a ring of 32 MiB.",
      kDeliversWhole},
     one_event_of(9),
     {.cpus = 1, .capacity = 32 * kMebibyte}},
    {{"event-model/eighteen-mebibytes", must, "an event of 18 MiB",
      "Emit an event of 18 MiB, which is more than 2^24 bytes, into a ring of 64 MiB.",
      kDeliversWhole},
     one_event_of(18),
     {.cpus = 1, .capacity = 64 * kMebibyte}},
};

}  // namespace

const std::vector<Case> kLargeHeaderCases = cases_of(kLargeHeaderRows);
const std::vector<Case> kMebibyteCases = cases_of(kMebibyteRows);

}  // namespace kmes::conformance
