// SPDX-License-Identifier: MIT
//
// Events that no producer writes (level robust, E7): sizes and sequence numbers that cannot be,
// each on a CPU of its own, on the first, a middle and the last event, before the attach and while
// the testee runs.
#include <fmt/format.h>

#include <iterator>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Of an event of 100 bytes whose type has one byte: its true lengths are 100, 30, 1.
constexpr ForgedHeader kForged[] = {
    {0, 30, 1},
    {1, 30, 1},
    {29, 30, 1},
    {0xffffffff, 30, 1},
    {60000, 30, 1},  // beyond write_pos
    {100, 101, 1},
    {100, 0xffffffff, 1},
    {100, 29, 1},
    {100, 0, 1},
    {100, 30, 2},  // header_size < 29 + type_len
    {100, 30, 60},
    {100, 100, 72},     // a type beyond the header
    {100, 30, 0xffff},  // and beyond the event
    {100, 30, 0},
    {0, 0, 0},
    {0xffffffff, 0xffffffff, 0xffff},
    {30, 30, 1},
    {130, 30, 1},  // possible, but the next event is not where they end
};

constexpr int kEvents = 5;

// Five events, of which number `which` is forged.
CaseOutcome forged_sizes(Stage& stage, int which, Moment moment) {
    return play_forged(stage, std::size(kForged), moment, [&stage, which](std::uint32_t cpu) {
        const ForgedHeader& forged = kForged[cpu];
        tolerate(stage, cpu,
                 fmt::format("event_size {}, header_size {}, type_len {}", forged.event_size,
                             forged.header_size, forged.type_len));
        for (int i = 0; i < kEvents; ++i) {
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
            if (i == which) forge_header(stage, cpu, emitted.position, forged);
        }
    });
}

// What the third of five events has for a sequence number, one after another.
constexpr std::uint64_t kSequences[] = {0,         1, 4, 5, 0xffffffffffffffff, 0x8000000000000000,
                                        1ull << 32};

CaseOutcome forged_sequences(Stage& stage, Moment moment) {
    return play_forged(stage, std::size(kSequences), moment, [&stage](std::uint32_t cpu) {
        tolerate(stage, cpu, fmt::format("sequence {} out of order", kSequences[cpu]));
        for (int i = 0; i < kEvents; ++i) {
            const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
            if (i == 2) forge_sequence(stage, cpu, emitted.position, kSequences[cpu]);
        }
    });
}

// The first event says another CPU than the buffer it is in, and so does the metadata page.
CaseOutcome wrong_cpu_id(Stage& stage) {
    constexpr std::uint64_t kCpuIdInEvent = 24;
    constexpr std::uint64_t kCpuIdInPage = 12;
    static constexpr std::uint16_t kIds[] = {1, 77, 0xffff};
    return play_forged(stage, std::size(kIds), Moment::before_the_attach, [&](std::uint32_t cpu) {
        tolerate(stage, cpu, fmt::format("cpu_id {}", kIds[cpu]));
        const Emitted emitted = stage.rings().emit(cpu, stage.rings().make(100));
        stage.rings().write_data(stage.rings().history().present_buffer(cpu),
                                 emitted.position + kCpuIdInEvent, bytes_of(kIds[cpu]));
        forge_field(stage, cpu, kCpuIdInPage, bytes_of(kIds[cpu]));
    });
}

}  // namespace

void add_robust_event_cases(std::vector<Case>& cases) {
    const auto add = [&cases](std::string_view id, std::string_view clause, std::string_view title,
                              std::string_view description, CaseFunction run) {
        cases.push_back({id, Level::robust, clause, title, description,
                         "It refuses the buffer, or goes on with what is whole, or rests; it "
                         "neither crashes nor runs on for ever, and the sound CPUs are drained.",
                         std::move(run)});
    };
    constexpr std::string_view kSizes =
        "Lengths of an event are forged, in eighteen ways on as many CPUs; two CPUs are sound.";
    add("E7/first-event-forged", "E7", "the first event's lengths are forged", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 0, Moment::before_the_attach); });
    add("E7/middle-event-forged", "E7", "a middle event's lengths are forged", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 2, Moment::before_the_attach); });
    add("E7/last-event-forged", "E7", "the last event's lengths are forged", kSizes,
        [](Stage& stage) { return forged_sizes(stage, kEvents - 1, Moment::before_the_attach); });
    add("E7/first-event-forged-while-it-runs", "E7",
        "the first event's lengths are forged while it sleeps", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 0, Moment::while_it_runs); });
    add("E7/middle-event-forged-while-it-runs", "E7",
        "a middle event's lengths are forged while it sleeps", kSizes,
        [](Stage& stage) { return forged_sizes(stage, 2, Moment::while_it_runs); });
    add("E7/last-event-forged-while-it-runs", "E7",
        "the last event's lengths are forged while it sleeps", kSizes,
        [](Stage& stage) { return forged_sizes(stage, kEvents - 1, Moment::while_it_runs); });
    constexpr std::string_view kOrder =
        "The third of five events has a sequence number that goes back, repeats, is 0, or is far "
        "ahead of those behind it.";
    add("E7/sequence-goes-back", "E7", "sequence numbers that go back or repeat", kOrder,
        [](Stage& stage) { return forged_sequences(stage, Moment::before_the_attach); });
    add("E7/sequence-goes-back-while-it-runs", "E7",
        "sequence numbers that go back or repeat while it sleeps", kOrder,
        [](Stage& stage) { return forged_sequences(stage, Moment::while_it_runs); });
    add("E7/cpu-id-of-another", "E7", "a cpu_id that is another CPU's, or nobody's",
        "cpu_id in the metadata page and in an event is not the index of the fd.", wrong_cpu_id);
}

}  // namespace kmes::conformance
