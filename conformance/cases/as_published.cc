// SPDX-License-Identifier: MIT
//
// The producer of the published documents of forms B to D (docs/layouts.md, What the published
// rules lose). No consumer can prevent the losses in these cases. They are reported, but fail
// nothing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/model/layout.h"
#include "conformance/model/run_record.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// Stops with "unsupported", which fails nothing, and is shown with its reason.
[[noreturn]] void stop_lost(const std::string& loss, std::string_view rule) {
    stop_unsupported(fmt::format("no consumer can prevent this loss ({}): {}", rule, loss));
}

// The case of a row in which the producer follows `rule`. Findings of these codes are losses by the
// rule; any other finding is the consumer's.
Case losing(const Row& row, std::vector<FindingCode> codes, std::string_view rule) {
    Case made = case_of(row);
    made.run = [play = made.run, codes = std::move(codes), rule](Stage& stage) {
        const auto is_lost = [&codes](const Finding& finding) {
            return std::ranges::find(codes, finding.code) != codes.end();
        };
        if (is_default_layout()) stop_not_applicable("its rules are those of section 5.1");
        const CaseOutcome outcome = play(stage);
        if (outcome.verdict == Verdict::fail && outcome.record &&
            std::ranges::all_of(outcome.record->findings, is_lost))
            stop_lost(outcome.message, rule);
        return outcome;
    };
    return made;
}

// A batch overwrites the oldest event while it is copied. tail_pos moves when the consumer has
// loaded it for the second time.
constexpr std::uint64_t kVictimBytes = 4 * kPageBytes;

void overwrite_and_keep_the_tail(Stage& stage) {
    const Buffer& buffer =
        stage.rings().history().buffer(stage.rings().history().current_buffer(0));
    const std::vector<std::uint8_t> newer(2 * kPageBytes, 0xa5);
    stage.rings().forged().write_data(stage.rings().history().current_buffer(0),
                                      buffer.tail_pos + kPageBytes, newer);
}

// The operation loads need_wake before the consumer sets it, and its stores become visible after
// the consumer's last check. No fence orders the two.
Step without_a_fence(void (*operate)(Stage&)) {
    return [operate](Stage& stage) {
        const BufferIndex buffer = stage.rings().history().current_buffer(0);
        const std::uint8_t asked = stage.rings().backend().need_wake(buffer);
        stage.rings().forged().put_need_wake(buffer, 0,
                                             "the producer has loaded need_wake before this store");
        operate(stage);
        stage.rings().forged().put_need_wake(buffer, asked, "the store of the consumer is visible");
    };
}
const Setup kWithoutNudges{.cpus = 1, .before_start = {Emit{3}}, .nudging = false};

void emit_one(Stage& stage) {
    emit_some(stage, 0, 1, 100);
}

// Neither the swap nor the events in the new buffer wake the consumer.
void swap_and_emit(Stage& stage) {
    stage.rings().swap_as_published(0, {stage.capacity_bytes(), PositionRule::keep, 0});
    emit_some(stage, 0, 2, 100);
}

// The buffer is retired after the attach and before the consumer loads its generation, which is
// that of the next buffer already. A retired buffer is never nudged.
void resize_at_the_first_mmap(Stage& stage) {
    stage.hooks().set_on_mapped([&stage, is_done = false](const Mapped&) mutable {
        if (!std::exchange(is_done, true)) stage.resize(stage.capacity_bytes());
    });
}

const Row kTailAfterTheData{
    {"published/tail-after-the-data", must, "a batch that moves tail_pos too late",
     "Overwrite the end of the oldest event while the consumer copies it. Move tail_pos after the "
     "second load.",
     "The consumer delivers a torn event: nothing tells it.", "5.1.8.1-5"},
    {Place{},
     UnderRead{.at = kPageBytes,
               .wake = {AtOnce{{Emit{1, kVictimBytes}, EmitBytes{current() - kVictimBytes}}}},
               .actions = {overwrite_and_keep_the_tail},
               .if_unseen = IfUnseen::ignore},
     Asleep{}, EmitBytes{current()}, Asleep{}},
    kOneCpu,
    Demand::as_published};
const Row kWakeWithoutAFence{
    {"published/wake-without-a-fence", must, "a producer without the full fence of E1",
     "Publish an event for a sleeping consumer. The producer has loaded need_wake before the "
     "consumer set it, and so wakes nobody.",
     "The consumer finds the event when its time limit ends; without one it sleeps on.", "E1"},
    {AsleepHere{}, without_a_fence(emit_one), DeliveredHere{}, AsleepHere{}},
    kWithoutNudges,
    Demand::as_published};
const Row kSwapWithoutANudge{
    {"published/swap-without-a-nudge", must, "a retired buffer that nobody nudges",
     "Replace each buffer after its first mmap, before the consumer can load its generation.",
     "The consumer attaches again to see that its buffer is retired; without that it sleeps on.",
     "E19"},
    {Delivered{}, EmitEverywhere{2}, Asleep{}},
    {.before_start = {resize_at_the_first_mmap, EmitEverywhere{2}}, .nudging = false},
    Demand::as_published};
const Row kSwapWithoutAFence{
    {"published/swap-without-a-fence", must, "a swap that wakes only if need_wake is set",
     "Replace the buffer of a sleeping consumer. The producer has loaded need_wake before the "
     "consumer set it, and so wakes nobody. Emit events in the new buffer.",
     "The consumer checks again when its time limit ends; without one it sleeps on.", "E19"},
    {AsleepHere{}, without_a_fence(swap_and_emit), DeliveredHere{}, AsleepHere{}},
    kWithoutNudges,
    Demand::as_published};

}  // namespace

const std::vector<Case> kAsPublishedCases = {
    losing(kTailAfterTheData, {FindingCode::torn_event, FindingCode::misread_event},
           "tail_pos of a batch is stored after the data"),
    losing(kWakeWithoutAFence, {FindingCode::lost_wake_up},
           "no full fence between write_pos and need_wake"),
    losing(kSwapWithoutANudge, {FindingCode::lost_wake_up},
           "a retired buffer is never nudged, and all descriptors have one inode"),
    losing(kSwapWithoutAFence, {FindingCode::lost_wake_up},
           "a swap wakes only if need_wake is set, without a full fence before that load"),
};

}  // namespace kmes::conformance
