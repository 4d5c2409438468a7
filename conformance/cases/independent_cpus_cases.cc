// SPDX-License-Identifier: MIT
//
// The CPUs are independent of each other (5.1.8.4, contract 2): one CPU is busy, is refused or
// ends. A consumer of several CPUs owes each of them as much as a consumer of one.
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kWhileBusy =
    "The consumer delivers CPU 1's event while CPU 0 is busy, not when CPU 0 rests.";

// -- Next to a busy CPU -----------------------------------------------------------------------

constexpr std::uint32_t kBusy = 0;
constexpr std::uint32_t kCalm = 1;

// The events of CPU 0, and whether its consumer has read its page since the last one.
struct Traffic {
    std::uint64_t events = 0;
    bool has_loaded = false;
    std::function<void()> on_event;
};

void send_one(Stage& stage, Traffic& traffic) {
    traffic.has_loaded = false;
    emit_some(stage, kBusy, 1, 40);
    ++traffic.events;
    traffic.on_event();
}

// Emits at each wait on CPU 0's counter, so that no such wait times out.
void send_at_waits(Stage& stage, const std::shared_ptr<Traffic>& traffic) {
    stage.hooks().set_on_wait([&stage, traffic](const FutexWait&, std::uint32_t cpu) {
        if (cpu == kBusy) send_one(stage, *traffic);
    });
}

// Emits one more event at each visit to CPU 1's page, so that no iteration over both CPUs finds
// nothing. Emits no event during the drain of CPU 0, so that a drain of everything ends.
void send_at_visits(Stage& stage, const std::shared_ptr<Traffic>& traffic) {
    for (const std::uint32_t cpu : {kBusy, kCalm}) {
        stage.guards().guard(cpu, 0, 1, [&stage, traffic](const GuardHit& hit) {
            const auto buffer = stage.buffers().buffer_at(hit.place);
            if (!buffer) return AtGuard::step;
            if (stage.rings().history().buffer(*buffer).cpu == kBusy)
                traffic->has_loaded = true;
            else if (traffic->has_loaded)
                send_one(stage, *traffic);
            return AtGuard::step;
        });
    }
}

// CPU 1's event waits as long as that continues: for many more events than any budget, and longer
// than many periods of 100 ms. A consumer that has not reached CPU 1 by then reaches it only when
// CPU 0 is idle.
bool is_starved_of(Stage& stage, const std::shared_ptr<Traffic>& traffic) {
    constexpr std::uint64_t kEvents = 300;
    constexpr std::chrono::seconds kTime{3};
    Patience patience(
        std::chrono::duration_cast<Clock::duration>(kTime * stage.settings().timeout_scale));
    const std::uint64_t before = traffic->events;
    bool is_over = false;
    const auto has_come = [&stage] {
        return is_delivered(stage, kCalm) || stage.testee().has_ended(kCalm);
    };
    stage.waits().until(
        [&] {
            is_over = patience.is_over(stage.testee().tracer().testee_threads()) &&
                      traffic->events - before > kEvents;
            return is_over || has_come();
        },
        "a drain of CPU 1 while CPU 0 is busy");
    return is_over && !has_come();
}

enum class BufferChange { none, swap };

CaseOutcome beside_a_busy_cpu(Stage& stage, BufferChange change) {
    constexpr std::uint64_t kBefore = 5;
    const bool swaps = change == BufferChange::swap;
    set_up_cpus(stage, 2);
    stage.start();
    stage.wait_asleep();
    const auto traffic = std::make_shared<Traffic>();
    const auto act = [&stage, swaps] {
        if (swaps) stage.rings().swap(kCalm, SwapSpec{stage.capacity_bytes()});
        emit_some(stage, kCalm, 1, 100);
    };
    // Acts with an event of CPU 0 unread, so the consumer is not about to wait.
    traffic->on_event = [act, events = &traffic->events] {
        if (*events == kBefore) act();
    };
    send_at_waits(stage, traffic);
    if (swaps) send_at_visits(stage, traffic);
    emit_some(stage, kBusy, 1, 40);
    // A consumer that never waits on CPU 0's counter is not busy: it polls by the clock.
    const bool is_busy =
        stage.waits().until_or_asleep([&traffic] { return traffic->events >= kBefore; }, kBusy);
    const bool is_starved = is_busy && is_starved_of(stage, traffic);
    stage.hooks().set_on_wait(nullptr);
    stage.guards().release();
    if (!is_busy) act();
    if (is_starved) {
        stage.findings().blame(
            swaps ? "5.1.8.3" : "contract-2",
            fmt::format("CPU 1: an event {}stays unread while the consumer delivers {} events of "
                        "CPU 0, one by one; expected its delivery before CPU 0 rests",
                        swaps ? "in its new buffer " : "", traffic->events));
    }
    return stage.finish();
}

// -- Idle for long ---------------------------------------------------------------------------

// A live CPU that this wait does not include.
std::optional<std::uint32_t> cpu_left_out(const Stage& stage, const FutexWait& wait) {
    std::set<std::uint32_t> waited_for;
    for (const FutexWord& word : wait.words) {
        const std::optional<BufferIndex> buffer = stage.buffers().buffer_at(word.place);
        if (buffer) waited_for.insert(stage.rings().history().buffer(*buffer).cpu);
    }
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        if (!stage.testee().has_ended(cpu) && !waited_for.contains(cpu)) return cpu;
    }
    return std::nullopt;
}

// For a consumer whose one thread checks the other CPUs after its wait: their events must not wait
// longer, however long nothing happened. A wait that a timer's signal ends is short, whatever its
// timeout.
class LongWaits {
  public:
    explicit LongWaits(Stage& stage) : stage_(stage) {
        stage.hooks().set_on_wait(
            [this](const FutexWait& wait, std::uint32_t cpu) { begins(wait, cpu); });
        stage.hooks().set_on_wait_end([this](const FutexWaitEnd& end) { ends(end); });
    }
    ~LongWaits() {
        stage_.hooks().set_on_wait(nullptr);
        stage_.hooks().set_on_wait_end(nullptr);
    }
    LongWaits(const LongWaits&) = delete;
    LongWaits& operator=(const LongWaits&) = delete;

  private:
    void begins(const FutexWait& wait, std::uint32_t cpu) {
        wait_id_.reset();
        if (!stage_.testee().is_single_thread() || !is_long(wait)) return;
        const std::optional<std::uint32_t> other = cpu_left_out(stage_, wait);
        // A call that also has other words may cover all CPUs.
        if (!other || wait.words_in_call != wait.words.size()) return;
        wait_id_ = wait.wait_id;
        message_ = fmt::format(
            "CPU {0}: the consumer's only thread waits for CPU {1} alone, and its limit of more "
            "than 100 ms expires; expected a check of CPU {0} after 100 ms at most",
            *other, cpu);
    }
    void ends(const FutexWaitEnd& end) {
        if (end.wait_id != wait_id_ || end.result != -ETIMEDOUT || has_blamed_) return;
        has_blamed_ = true;
        stage_.findings().blame("contract-2", message_);
    }

    Stage& stage_;
    std::optional<std::uint64_t> wait_id_;
    std::string message_;
    bool has_blamed_ = false;
};

void watch_while_idle(Stage& stage) {
    constexpr std::uint64_t kIdleMs = 2000;
    const LongWaits watch(stage);
    if (stage.testee().is_single_thread()) stage.waits().let_run(kIdleMs);
}

// -- Next to a CPU that has ended ---------------------------------------------------------------

constexpr std::uint32_t kOver = 1;       // with CPUs before and after it in each iteration
constexpr std::uint64_t kUnread = 3000;  // more than one delivery batch, less than the ring

// Replaces all buffers at once, between `before` and `afterwards` on CPU 1, and waits for its end.
// The other two CPUs sleep on their new buffers, and are woken there. A consumer that sleeps on an
// old one gets no nudge, because all threads slept on their own buffers at the change.
Steps replaced_together(const Steps& before, const Steps& afterwards, const Step& end) {
    const Steps woken{AsleepHere{}, Emit{}, DeliveredHere{}};
    return {Asleep{},
            EmitEverywhere{},
            Asleep{},
            AtOnce{{OnCpu{kOver, before}, Resize{}, OnCpu{kOver, afterwards}}},
            OnCpu{kOver, {end}},
            OnCpu{0, woken},
            OnCpu{2, woken}};
}
const Setup kThreeWideCpus{.cpus = 3, .capacity = 1 << 18, .nudging = false};

void emit_end(Stage& stage) {
    stage.rings().emit(kOver, stage.rings().events().make_end());
}

void break_the_next(Stage& stage) {
    give_version_2(stage, kOver);
}

void wait_for_refusal(Stage& stage) {
    stage.waits().until([&stage] { return stage.testee().has_refused(kOver); },
                        "a refusal of CPU 1");
}

const Row kIndependentCpuRows[] = {
    {{"contract-2/event-beside-a-busy-cpu", Level::should, "an event while another CPU is busy",
      "Emit an event on CPU 0 whenever its consumer is about to wait for one. Then emit one on "
      "CPU 1.",
      kWhileBusy},
     [](Stage& stage) { return beside_a_busy_cpu(stage, BufferChange::none); }},
    {{"5.1.8.3/swap-beside-a-busy-cpu", Level::should, "a new buffer while another CPU is busy",
      "Emit an event on CPU 0 whenever its consumer is about to wait for one, and one for each "
      "check of CPU 1. Then replace CPU 1's buffer and emit an event in the new one.",
      kWhileBusy},
     [](Stage& stage) { return beside_a_busy_cpu(stage, BufferChange::swap); }},
    {{"contract-2/waits-when-idle-for-long", Level::must,
      "waits for one CPU when nothing happens for long",
      "Emit nothing on three CPUs for two seconds. For a consumer with one thread, check every "
      "wait that omits a CPU.",
      "The consumer's waits that omit a CPU take at most 100 ms."},
     {Times{2, {Asleep{}, EmitEverywhere{}}}, Asleep{}, watch_while_idle, EmitEverywhere{},
      Asleep{}},
     {.cpus = 3}},
    {{"E3/all-swapped-and-one-refused", Level::erratum,
      "new buffers everywhere, one of them malformed",
      "Replace the buffers of three sleeping CPUs together, CPU 1's by one of version 2. Then "
      "emit an event in each of the other new buffers.",
      "The consumer refuses CPU 1 and sleeps on the new buffers of the others."},
     replaced_together({}, {break_the_next}, wait_for_refusal),
     kThreeWideCpus},
    {{"E3/all-swapped-and-one-ends", Level::erratum,
      "new buffers everywhere, one CPU with an unread end event",
      "Emit 3000 events and the end event on CPU 1. While they are unread, replace the buffers "
      "of three sleeping CPUs together, and emit an event in the other new buffers.",
      "The consumer sleeps on the new buffers of the others."},
     replaced_together({Emit{kUnread, 70}, emit_end}, {}, DeliveredHere{}),
     kThreeWideCpus},
};

}  // namespace

const std::vector<Case> kIndependentCpuCases = cases_of(kIndependentCpuRows);

}  // namespace kmes::conformance
