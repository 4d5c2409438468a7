// SPDX-License-Identifier: MIT
//
// See busy_cpu.h.
#include "conformance/play/busy_cpu.h"

#include <fmt/format.h>

#include <chrono>

#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

constexpr std::uint32_t kBusy = 0;
constexpr std::uint32_t kCalm = 1;

// Emits the events of CPU 0 from its creation to its end.
class Traffic {
  public:
    // `on_event` is called after each event with its number, from 1.
    Traffic(Stage& stage, SentAtVisits at_visits, std::function<void(std::uint64_t)> on_event)
        : stage_(stage), on_event_(std::move(on_event)) {
        // No such wait times out.
        stage.hooks().set_on_wait([this](const FutexWait&, std::uint32_t cpu) {
            if (cpu == kBusy) send_one();
        });
        if (at_visits == SentAtVisits::yes) guard_pages();
    }
    ~Traffic() {
        stage_.hooks().set_on_wait(nullptr);
        stage_.guards().release();
    }
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;

    std::uint64_t events() const { return events_; }

  private:
    void send_one() {
        has_loaded_ = false;
        emit_some(stage_, kBusy, 1, 40);
        on_event_(++events_);
    }
    // Emits no event during the drain of CPU 0, so that a drain of everything ends.
    void guard_pages() {
        for (const std::uint32_t cpu : {kBusy, kCalm}) {
            stage_.guards().guard(cpu, 0, 1, [this](const GuardHit& hit) {
                const auto buffer = stage_.buffers().buffer_at(hit.place);
                if (!buffer) return AtGuard::step;
                if (stage_.rings().history().buffer(*buffer).cpu == kBusy)
                    has_loaded_ = true;
                else if (has_loaded_)
                    send_one();
                return AtGuard::step;
            });
        }
    }

    Stage& stage_;
    std::function<void(std::uint64_t)> on_event_;
    std::uint64_t events_ = 0;
    bool has_loaded_ = false;  // CPU 0's consumer has read its page since the last event
};

// CPU 1's event waits as long as that continues: for many more events than any budget, and longer
// than many periods of 100 ms. A consumer that has not reached CPU 1 by then reaches it only when
// CPU 0 is idle.
bool is_starved_of(Stage& stage, const Traffic& traffic) {
    constexpr std::uint64_t kEvents = 300;
    constexpr std::chrono::seconds kTime{3};
    Patience patience(
        std::chrono::duration_cast<Clock::duration>(kTime * stage.settings().timeout_scale));
    const std::uint64_t before = traffic.events();
    bool is_over = false;
    const auto has_come = [&stage] {
        return is_delivered(stage, kCalm) || stage.testee().has_ended(kCalm);
    };
    stage.waits().until(
        [&] {
            is_over = patience.is_over(stage.testee().tracer().testee_threads()) &&
                      traffic.events() - before > kEvents;
            return is_over || has_come();
        },
        "a drain of CPU 1 while CPU 0 is busy");
    return is_over && !has_come();
}

}  // namespace

PlayAt beside_a_busy_cpu(SentAtVisits at_visits, std::string_view clause, std::string_view event) {
    return [=](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
               const std::function<void(pid_t)>& act) {
        bool is_busy = false;
        {
            Traffic traffic(stage, at_visits, [&](std::uint64_t events) {
                if (events == number) act(0);
            });
            wake();
            // A consumer that never waits on CPU 0's counter is not busy: it polls by the clock.
            is_busy =
                stage.waits().until_or_asleep([&] { return traffic.events() >= number; }, kBusy);
            if (is_busy && is_starved_of(stage, traffic))
                stage.findings().blame(
                    clause,
                    fmt::format("CPU 1: {} stays unread while the consumer delivers {} events of "
                                "CPU 0, one by one; expected its delivery before CPU 0 rests",
                                event, traffic.events()));
        }
        if (!is_busy) act(0);
        return is_busy;
    };
}

}  // namespace kmes::conformance
