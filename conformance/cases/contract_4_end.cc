// SPDX-License-Identifier: MIT
//
// The end event (contract 4). Only its type ends a CPU, for good, and no other CPU. With fewer CPUs
// left, a consumer sleeps by the same rules.
#include <algorithm>
#include <string>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"
#include "conformance/play/value_stream.h"

namespace kmes::conformance {

namespace {

using enum Level;

const std::string kEnd(kEndEventType);

// The CPU ends, and the last one continues.
const Step kEndAndEmitToLast =
    OnEachCpu{{EndCpu{}, OnCpu{kLastCpu, {Emit{4, 80}, DeliveredHere{}}}}, {kLastCpu}};

std::vector<std::string> almost_the_end() {
    std::vector<std::string> types = {kEnd + "s", kEnd.substr(0, kEnd.size() - 1), "x" + kEnd,
                                      kEnd + std::string(1, '\0'), "KMES.CONFORMANCE.END"};
    for (std::size_t i = 0; i < kEnd.size(); ++i) {
        types.push_back(kEnd);
        types.back()[i] ^= 1;
    }
    return types;
}
// Its type is cut off, and continues in the payload.
const EmitEvent kEndInTwoParts{.type = kEnd.substr(0, 16),
                               .payload = kEnd.substr(16) + std::string(40, 'x')};

Steps three_changes() {
    const auto change = [](std::uint64_t factor) {
        return Steps{Resize{current(factor)}, EmitEverywhere{2}, Asleep{}};
    };
    return {each({2, 1, 1}, change)};
}

const Row kFirstEndRows[] = {
    {{"contract-4/cpu-by-cpu", must, "end of one CPU after another",
      "Emit the end event on one CPU, then events on the last CPU. Repeat with the next CPU.",
      "The consumer ends only the CPU of the end event, and exits when all CPUs have ended."},
     {AllMapped{}, kEndAndEmitToLast},
     {.rings = [](RingsSetup& rings) { rings.cpus = std::max(rings.cpus, 2u); }}},
    {{"contract-4/nothing-after-the-end", must, "events after the end event",
      "Emit the end event and five more events on CPU 0 while the consumer is stopped.",
      "The consumer delivers nothing after the end event."},
     {AllMapped{}, AtOnce{{EmitEnd{}, Emit{5, 80}}}}},
    {{"contract-4/almost-the-end", must, "types similar to the end event's",
      "Emit events whose type differs from kmes.conformance.end by one byte more, one byte less, "
      "one other byte, or by its case, and one whose type continues in the payload.",
      "The consumer delivers these events as ordinary ones."},
     {AllMapped{}, EmitTypes{almost_the_end}, kEndInTwoParts, Emit{2, 80}, Delivered{}}},
};

const Row kOtherEndRows[] = {
    {{"contract-4/other-ends", must, "end events of other shapes",
      "Emit end events with a payload, with a longer header, and with other origins.",
      "The consumer ends the CPU of each of them."},
     {Asleep{}, OnCpu{0, {EmitEvent{.type = kEnd, .payload_bytes = 50, .origin = 1}}},
      OnCpu{1,
            {EmitEvent{.type = kEnd, .payload_bytes = 0, .extra_header_bytes = 16, .origin = 2}}},
      OnCpu{2, {EmitEvent{.type = kEnd, .payload_bytes = 50, .origin = 3}}}, Delivered{}},
     {.cpus = 3}},
};

const Row kEndedCpuRows[] = {
    {{"contract-4/ended-through-changes", must, "an ended CPU during changes of buffers",
      "Emit the end event on two of three CPUs, one after the other. After each, replace all "
      "buffers three times and emit events on every CPU.",
      "The consumer reads nothing more of a CPU that has ended, and exits when all have."},
     with_fewer_and_fewer(three_changes()),
     {.cpus = 3}},
    {{"E2/event-at-every-step-beside-ended-cpus", erratum,
      "an event at every step before a sleep, with ended CPUs",
      "Play E2/event-at-every-step with two CPUs left of three, and with one.",
      "The consumer never sleeps on an unread event, however many CPUs are left."},
     with_fewer_and_fewer({BeforeEachAccess{{Emit{1, 70}}}}),
     {.cpus = 3}},
    {{"E3/swap-at-every-step-beside-ended-cpus", erratum,
      "a resize at every step before a sleep, with ended CPUs",
      "Play E3/swap-at-every-step with two CPUs left of three, and with one.",
      "The consumer never sleeps on the old buffer, however many CPUs are left."},
     with_fewer_and_fewer({BeforeEachAccess{{Swap{}, Emit{1, 70}}}}),
     {.cpus = 3, .nudging = false}},
};

}  // namespace

const std::vector<Case> kFirstEndCases = cases_of(kFirstEndRows);
const std::vector<Case> kOtherEndCases = cases_of(kOtherEndRows);
const std::vector<Case> kEndedCpuCases = cases_of(kEndedCpuRows);

}  // namespace kmes::conformance
