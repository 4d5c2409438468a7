// SPDX-License-Identifier: MIT
//
// See store_buffer.h.
#include "conformance/play/store_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "conformance/model/step_texts.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/play.h"
#include "conformance/stage/sleep_clock.h"
#include "conformance/stage/spin_watch.h"
#include "conformance/tracer/calls.h"

namespace kmes::conformance {

namespace {

// The maximum number of loads for which the store is held. A spin with more loads cannot be
// covered.
constexpr int kIterationsAtMost = 16;
// From the store to the load a compiled consumer needs about ten instructions, an interpreter
// thousands. After this many the store is released, and nothing is proven.
constexpr int kInstructionsAtMost = 20000;
// The limit of all iterations. Once an interpreter's steps have reached it, another iteration is
// worthwhile only if the previous one held the store until a load of write_pos.
constexpr int kInstructionsInAll = 20000;

// Holds and releases the stores to need_wake, for one testee and one CPU.
class StoreBuffer {
  public:
    StoreBuffer(Stage& stage, std::uint32_t cpu) : stage_(stage), cpu_(cpu), spin_watch_(stage) {}

    // Prepares the next iteration. A consumer that was woken too early, or that behaves differently
    // in each iteration, may have its barrier only in some.
    void hold_for_one_more() { hold_for(has_witness() ? loads_ + 1 : 1); }
    // Holds the next store until write_pos has been loaded `loads` times.
    void hold_for(int loads) {
        loads_ = loads;
        has_held_ = false;
        witness_.clear();
        loaders_.clear();
        only_loader_ = 0;
    }
    // Whether another iteration may show something new.
    bool is_worth_an_iteration() const {
        return has_witness() || (has_held_ && instructions_ < kInstructionsInAll);
    }

    // Before an access to the metadata page.
    void before(const GuardHit& hit) {
        need_wake_before_ = need_wake();
        if (hit.touches(kWritePosOffset, 8)) {
            loaders_.insert(hit.tid);
            only_loader_ = 0;
        }
        const auto next = stage_.testee().tracer().guards().next_instruction(hit.tid);
        is_ordered_ = !next || next->is_full_barrier;
        // A thread itself sees its own store.
        if (is_held_ && (is_ordered_ || hit.touches(kNeedWakeOffset, 1))) let_go();
    }

    // After an access to the metadata page.
    void after(const GuardHit& hit) {
        spin_watch_.note_access(hit);
        if (is_held_ && hit.touches(kWritePosOffset, 8) && --loads_left_ <= 0) {
            store_ = instruction_text(held_code_, held_stack_);
            witness_ = instruction_text(hit.code, hit.stack);
            if (loaders_.size() == 1) only_loader_ = hit.tid;
            emit_some(stage_, cpu_, 1, 70);
            let_go();
            return;
        }
        // One event in each iteration: one at every store would never let it sleep.
        const bool is_request = !has_witness() && !is_ordered_ && need_wake_before_ == 0 &&
                                need_wake() == 1 && hit.touches(kNeedWakeOffset, 1);
        if (is_request) {
            held_code_ = hit.code;
            held_stack_ = hit.stack;
            put(0);
            is_held_ = has_held_ = true;
            loads_left_ = loads_;
        }
        if (is_held_ && !runs_to_the_next_access(hit.tid)) let_go();
    }

    bool has_witness() const { return !witness_.empty(); }
    // The event of the witness is unseen: no thread has loaded write_pos since, and only `tid` has
    // in this iteration.
    bool is_unseen_by(pid_t tid) const { return has_witness() && only_loader_ == tid; }
    std::string describe() const {
        return fmt::format(
            "the store to need_wake, {}, was in the store buffer when {} loaded write_pos, without "
            "a full barrier in between",
            store_, witness_);
    }

  private:
    BufferIndex buffer() const { return stage_.rings().history().current_buffer(cpu_); }
    std::uint8_t need_wake() const { return stage_.rings().backend().need_wake(buffer()); }
    void put(std::uint8_t value) {
        stage_.rings().forged().put_need_wake(
            buffer(), value,
            value == 0 ? "the suite keeps the store to need_wake in the store buffer, as a "
                         "processor may; the producer sees 0"
                       : "the store to need_wake leaves the store buffer; the producer sees 1");
    }

    void let_go() {
        if (is_held_) put(1);
        is_held_ = false;
    }

    // Returns false if a full barrier or a system call comes first, or no access for a long time.
    bool runs_to_the_next_access(pid_t tid) {
        for (int i = 0; i < kInstructionsAtMost; ++i, ++instructions_) {
            const auto next = stage_.testee().tracer().guards().next_instruction(tid);
            if (!next || next->is_full_barrier || next->is_system_call) return false;
            if (!stage_.testee().tracer().guards().step_over(tid)) return true;
        }
        return false;
    }

    Stage& stage_;
    std::uint32_t cpu_;
    SpinWatch spin_watch_;
    std::uint8_t need_wake_before_ = 0;
    bool is_ordered_ = false;
    bool is_held_ = false;
    bool has_held_ = false;
    int loads_ = 1;
    int loads_left_ = 1;
    int instructions_ = 0;  // stepped while a store was held
    std::set<pid_t> loaders_;
    pid_t only_loader_ = 0;
    CodePlace held_code_;  // of the store that is held back
    std::shared_ptr<const tracing::StackSnapshot> held_stack_;
    std::string store_;
    std::string witness_;
};

// The re-check was there, but it was no use before the store was visible.
void expect_a_barrier(std::string& message) {
    constexpr std::string_view kExpected = "; expected ";
    const std::size_t begin = message.find(kExpected);
    const std::size_t end = message.find(kEvidence, begin);
    if (begin == std::string::npos || end == std::string::npos) return;
    const std::size_t first = begin + kExpected.size();
    message.replace(first, end - first,
                    "a full barrier between the store to need_wake and the load of write_pos");
}

// Waits until it sleeps with its stores held back. E1 is the clause of an event lost in this way.
void see_it_asleep(Stage& stage, const StoreBuffer& buffer, const std::function<void()>& wake) {
    try {
        wake();
        stage.wait_asleep();
    } catch (Stop& stop) {
        if (stop.verdict == Verdict::fail && buffer.has_witness()) {
            stop.finding.clause = "E1";
            expect_a_barrier(stop.finding.message);
            stop.finding.message += "; " + buffer.describe();
        }
        throw;
    }
}

void guard_for(Stage& stage, std::uint32_t cpu, StoreBuffer& buffer) {
    stage.guards().guard(
        cpu, 0, 1,
        [&buffer](const GuardHit& hit) {
            buffer.before(hit);
            return AtGuard::step;
        },
        [&buffer](const GuardHit& hit, const GuardStep&) { buffer.after(hit); });
}

// As guard_for, after the disturbance.
void guard_after(Stage& stage, UnusualIteration& iteration, StoreBuffer& buffer) {
    const auto has_begun = std::make_shared<bool>(false);
    stage.guards().guard(
        0, 0, 1,
        [&iteration, &buffer, has_begun](const GuardHit& hit) {
            *has_begun = *has_begun || iteration.check_before(hit);
            if (*has_begun) buffer.before(hit);
            return AtGuard::step;
        },
        [&iteration, &buffer, has_begun](const GuardHit& hit, const GuardStep&) {
            if (*has_begun)
                buffer.after(hit);
            else
                iteration.make_after(hit);
        });
}

// A wait with a timeout does not lose an event for good, but one of more than 100 ms counts as a
// loss.
void watch_limited_waits(Stage& stage, const StoreBuffer& buffer, bool& has_blamed) {
    stage.hooks().set_on_wait([&stage, &buffer, &has_blamed](const FutexWait& wait, std::uint32_t) {
        if (has_blamed || !limit_of(wait) || !is_long(wait)) return;
        if (!buffer.is_unseen_by(wait.tid) || !sleeps_on_undelivered(stage, wait)) return;
        has_blamed = true;
        stage.findings().blame(
            "E1",
            "CPU 0: the consumer sleeps for more than 100 ms with a published event "
            "unread; expected a delivery. Evidence: " +
                buffer.describe());
    });
}

void come_to_a_buffer(Stage& stage, FirstSleep::On on) {
    if (on == FirstSleep::On::first_buffer) return stage.start();
    if (on == FirstSleep::On::meanwhile) replace_at_the_next_attach(stage);
    stage.resize(stage.capacity_bytes());
}

}  // namespace

void hold_stores(Stage& stage, std::uint32_t cpu, int iterations,
                 const std::function<void()>& wake) {
    const ShortenedWaits shortened_waits(stage.waits());
    StoreBuffer buffer(stage, cpu);
    const auto goes_on = [&buffer, iterations](int iteration) {
        return iteration < iterations ||
               (buffer.is_worth_an_iteration() && iteration < kIterationsAtMost);
    };
    for (int iteration = 0; goes_on(iteration); ++iteration) {
        buffer.hold_for_one_more();
        stage.wait_asleep();
        if (stage.testee().has_ended(cpu)) break;
        guard_for(stage, cpu, buffer);
        see_it_asleep(stage, buffer, wake);
        stage.guards().release();
    }
}

void hold_stores_after(Stage& stage, Disturbance disturbance) {
    StoreBuffer buffer(stage, 0);
    bool has_blamed = false;
    watch_limited_waits(stage, buffer, has_blamed);
    for (int i = 0;
         i < 1 || (buffer.is_worth_an_iteration() && i < kIterationsAtMost && !has_blamed); ++i) {
        buffer.hold_for_one_more();
        stage.wait_asleep();
        if (stage.testee().has_ended(0)) break;
        UnusualIteration iteration(stage, disturbance);
        guard_after(stage, iteration, buffer);
        see_it_asleep(stage, buffer, [&iteration] { iteration.begin(); });
        stage.guards().release();
    }
    stage.hooks().set_on_wait(nullptr);
}

void hold_first_stores(Stage& stage, std::initializer_list<FirstSleep> sleeps) {
    StoreBuffer buffer(stage, 0);
    const auto guard_current = [&](const Mapped& mapped) {
        if (is_present(stage, mapped, 0)) guard_for(stage, 0, buffer);
    };
    for (const auto& [on, loads] : sleeps) {
        if (on == FirstSleep::On::survivors) {
            emit_some(stage, 0, 3, 100);
            stage.wait_asleep();
        }
        if (stage.testee().has_ended(0)) break;
        buffer.hold_for(loads);
        stage.hooks().set_on_mapped(guard_current);
        see_it_asleep(stage, buffer, [&stage, on = on] { come_to_a_buffer(stage, on); });
        stage.hooks().set_on_mapped(nullptr);
        stage.guards().release();
    }
}

}  // namespace kmes::conformance
