// SPDX-License-Identifier: MIT
//
// State that a consumer carries over from one buffer to the next (E15, E19). Also the events that
// it must deliver from a buffer whose successor it refuses (E10; contract, record R).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// -- Generations that differ between two buffers ---------------------------------------------

enum class NudgedWhen { before_its_load, as_it_attaches };

// A consumer that verifies its next buffer (E19) maps it, loads its generation, and attaches once
// more, in one thread. From then on it knows the buffer's number and needs no nudge. `act` is
// called before the k-th access of that thread to the page after the second attach.
class OnceSure {
  public:
    OnceSure(Stage& stage, std::uint64_t k, std::function<void()> act)
        : stage_(stage), left_(k), act_(std::move(act)) {
        stage.hooks().set_on_mapped([this](const Mapped& mapped) {
            if (reader_ != 0 || !is_present(stage_, mapped, 0)) return;
            reader_ = mapped.tid;
            stage_.guards().guard(0, 0, 1, [this](const GuardHit& hit) { return at(hit); });
        });
        stage.hooks().set_on_attached([this](const Attached& attached) {
            if (attached.error == 0 && attached.tid == reader_ && has_read_) is_sure_ = true;
        });
    }
    ~OnceSure() {
        stage_.hooks().set_on_mapped(nullptr);
        stage_.hooks().set_on_attached(nullptr);
    }
    OnceSure(const OnceSure&) = delete;
    OnceSure& operator=(const OnceSure&) = delete;

    bool has_acted() const { return left_ == 0; }

  private:
    static constexpr std::uint64_t kAccessesAtMost = 40;
    static constexpr std::uint64_t kGenerationOffset = 32;

    AtGuard at(const GuardHit& hit) {
        if (hit.tid != reader_) return AtGuard::step;
        if (++accesses_ > kAccessesAtMost) return AtGuard::release;
        for (const BufferAccess& access : hit.accesses)
            has_read_ |= access.is_read && access.touches(kGenerationOffset);
        if (!is_sure_ || --left_ > 0) return AtGuard::step;
        act_();
        return AtGuard::release;
    }

    Stage& stage_;
    std::uint64_t left_;
    std::function<void()> act_;
    std::uint64_t accesses_ = 0;
    pid_t reader_ = 0;
    bool has_read_ = false;
    bool is_sure_ = false;
};

void swap_and_nudge(Stage& stage, int nudges) {
    const BufferIndex retired = stage.rings().history().current_buffer(0);
    stage.resize(stage.capacity_bytes());
    for (int i = 0; i < nudges; ++i) stage.rings().nudge(retired);
    emit_some(stage, 0, 1, 100);
}

// Nudges take the retired buffer's generation past that of its successor. The successor is replaced
// at its k-th access, and nudged one time less. Its generation is then the number that the consumer
// may have loaded from the old buffer. Returns false if there was no such access.
bool replace_twice(Stage& stage, NudgedWhen when, int nudges, std::uint64_t k) {
    stage.wait_asleep();
    const BufferIndex old = stage.rings().history().current_buffer(0);
    OnceSure once_sure(stage, k, [&stage, nudges] { swap_and_nudge(stage, nudges - 1); });
    stage.holding().freeze();
    swap_and_nudge(stage, when == NudgedWhen::before_its_load ? nudges : 0);
    stage.holding().thaw();
    bool is_nudged = when == NudgedWhen::before_its_load;
    stage.hooks().set_on_attach([&](const AttachRequest&) {
        if (std::exchange(is_nudged, true)) return;
        for (int i = 0; i < nudges; ++i) stage.rings().nudge(old);
    });
    stage.wait_asleep();
    stage.hooks().set_on_attach(nullptr);
    stage.guards().release();
    return once_sure.has_acted();
}

CaseOutcome generation_of_the_old(Stage& stage, NudgedWhen when) {
    constexpr int kMostNudges = 3;
    constexpr std::uint64_t kAccesses = 5;  // up to the consumer's sleep
    set_up_one_cpu(stage);
    stage.start();
    stage.waits().set_nudging(false);
    WalkLimit limit(stage);
    for (std::uint64_t k = 1; k <= kAccesses && !limit.is_over(); ++k) {
        bool was_there = true;
        for (int nudges = 1; nudges <= kMostNudges && was_there; ++nudges)
            was_there = replace_twice(stage, when, nudges, k);
        if (!was_there) break;
    }
    stage.wait_asleep();
    return stage.finish();
}

// -- A next buffer that is refused -----------------------------------------------------------

struct MalformedPage {
    BufferFault fault;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;
    std::string detail;
};

std::vector<MalformedPage> malformed_kinds(std::uint64_t capacity_bytes) {
    return {
        {BufferFault::magic, 7, {'H'}, "magic KMESRINH"},
        {BufferFault::version, 8, bytes_of<std::uint32_t>(2), "version 2"},
        {BufferFault::capacity, 16, bytes_of(2 * capacity_bytes), "twice the capacity"},
        {BufferFault::capacity, 16, bytes_of(capacity_bytes / 2), "half of the capacity"},
    };
}

void replace_by(Stage& stage, std::uint32_t cpu, std::uint64_t capacity_bytes,
                const MalformedPage& malformed) {
    stage.rings().swap(cpu, SwapSpec{capacity_bytes, PositionRule::keep, 0});
    break_field(stage, cpu, {malformed.fault, malformed.offset, malformed.bytes, malformed.detail});
}

void wait_refused(Stage& stage, std::uint32_t cpu) {
    stage.waits().until([&stage, cpu] { return stage.testee().has_refused(cpu); },
                        "a refusal of the CPU with the malformed next buffer");
}

// Four CPUs, each with another fault, and a valid one. The old buffers of all have `events` unread
// events; a quarter of them fits into the next buffers. CPU k has had k of `changes` valid changes
// before.
constexpr std::uint32_t kSound = 4;
const Setup kFourFaults{.cpus = kSound + 1, .capacity = usual(4)};

void replace_by_malformed(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    const std::vector<MalformedPage> kinds = malformed_kinds(small);
    for (std::uint32_t cpu = 0; cpu < kSound; ++cpu) replace_by(stage, cpu, small, kinds[cpu]);
}

void wait_four_refused(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < kSound; ++cpu) wait_refused(stage, cpu);
}

Steps unread_before_a_refusal(std::uint64_t events, std::uint64_t changes) {
    const auto change = [](std::uint64_t first) {
        Steps all;
        for (auto cpu = static_cast<std::uint32_t>(first); cpu <= kSound; ++cpu)
            all.push_back(OnCpu{cpu, {Swap{}, Emit{}}});
        all.push_back(Asleep{});
        return all;
    };
    // After the next event the consumer is proven to read these buffers, and not only to have them.
    return {Asleep{},
            each_below(changes, change),
            EmitEverywhere{},
            Asleep{},
            AtOnce{{EmitEverywhere{events, usual(1, 8)}, replace_by_malformed,
                    OnCpu{kSound, {Swap{usual()}}}}},
            wait_four_refused,
            OnCpu{kSound, {DeliveredHere{}, Emit{2}, DeliveredHere{}}}};
}

// One CPU for each access: before the k-th access come three events, and a malformed next buffer.
CaseOutcome refusal_at_every_step(Stage& stage) {
    constexpr std::uint32_t kSteps = 20;
    set_up_cpus(stage, kSteps);
    const std::uint64_t bytes = stage.capacity_bytes();
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 1, 100);
    WalkLimit limit(stage);
    for (std::uint32_t cpu = 0; cpu < kSteps && !limit.is_over(); ++cpu) {
        const bool was_there = act_at_access(stage, cpu, cpu + 1, [&stage, cpu, bytes] {
            emit_some(stage, cpu, 3, 1000);
            replace_by(stage, cpu, bytes, malformed_kinds(bytes)[cpu % 4]);
        });
        if (!was_there) break;
        wait_refused(stage, cpu);
    }
    return stage.finish();
}

constexpr std::string_view kOwnNumbers =
    "The consumer compares a buffer's generation only with its value in that buffer, and moves "
    "on each time.";
constexpr std::string_view kOwedFirst =
    "The consumer delivers everything in the old buffer up to its frozen write_pos. Then it "
    "refuses the next one with an R record. It drains the sound CPUs.";

const Row kSwitchRows[] = {
    {{"E15/generation-of-the-old-buffer", Level::erratum,
      "a generation equal to that of the old buffer",
      "Replace the buffer, and nudge the old one up to three times, while the consumer sleeps. "
      "Before each access to the next one, after the check of E19, replace it as well. Nudge it "
      "to a value that the old one had.",
      kOwnNumbers},
     [](Stage& stage) { return generation_of_the_old(stage, NudgedWhen::before_its_load); }},
    {{"E15/nudged-between-two-loads", Level::erratum, "nudges between two checks of the old buffer",
      "Play E15/generation-of-the-old-buffer, with the nudges after the consumer has seen the "
      "change, as it attaches.",
      kOwnNumbers},
     [](Stage& stage) { return generation_of_the_old(stage, NudgedWhen::as_it_attaches); }},
    {{"5.1.6.1/unread-before-a-refused-buffer", Level::must,
      "unread events before a malformed next buffer",
      "Emit 24 events on four CPUs. While they are unread, replace the buffers by some with a "
      "wrong magic, version 2, twice the capacity, and half of it.",
      kOwedFirst},
     unread_before_a_refusal(24, 0),
     kFourFaults},
    {{"5.1.6.1/one-unread-before-a-refused-buffer", Level::must,
      "one unread event before a malformed next buffer",
      "Play 5.1.6.1/unread-before-a-refused-buffer with one unread event in each old buffer, "
      "which the next one holds, too.",
      kOwedFirst},
     unread_before_a_refusal(1, 0),
     kFourFaults},
    {{"5.1.6.1/unread-before-a-later-refused-buffer", Level::must,
      "unread events before a malformed buffer after several changes",
      "Play 5.1.6.1/unread-before-a-refused-buffer after one to four changes to sound buffers.",
      kOwedFirst},
     unread_before_a_refusal(24, 4),
     kFourFaults},
    {{"E24/refused-at-every-step", Level::erratum,
      "events and a malformed next buffer at every step",
      "Before the k-th access of CPU k's consumer to its metadata page, emit three events and "
      "replace the buffer by a malformed one.",
      kOwedFirst},
     refusal_at_every_step},
};

}  // namespace

const std::vector<Case> kSwitchCases = cases_of(kSwitchRows);

}  // namespace kmes::conformance
