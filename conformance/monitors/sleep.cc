// SPDX-License-Identifier: MIT
//
// The monitors of sleeps: a shared futex (E17), and need_wake during the sleep (5.1.8.2-1).
#include <fmt/format.h>

#include <utility>

#include "conformance/monitors/monitors.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {
namespace {

class SharedFutexMonitor : public Monitor {
  public:
    explicit SharedFutexMonitor(Stage& stage) : stage_(stage) {}

    void wait_begins(const FutexWait& wait) override {
        for (const FutexWord& word : wait.words) {
            if (!word.is_private || std::exchange(has_blamed_, true)) continue;
            stage_.findings().blame(
                "E17",
                "the consumer waits on futex_counter with FUTEX_PRIVATE_FLAG; expected a shared "
                "futex, which the producer in another process or in the kernel can wake");
        }
    }

  private:
    Stage& stage_;
    bool has_blamed_ = false;
};

class NeedWakeMonitor : public Monitor {
  public:
    explicit NeedWakeMonitor(Stage& stage) : stage_(stage) {}

    void asleep(std::uint32_t cpu) override {
        if (has_blamed_ || !is_deaf(cpu)) return;
        const Inspection inspection = stage_.testee().tracer().inspect();
        if (!inspection.all_blocked_for_good || inspection.other_processes || !is_deaf(cpu)) return;
        has_blamed_ = true;
        Finding finding = contract_finding(
            fmt::format("CPU {}: the consumer sleeps with need_wake 0; expected 1. Evidence: the "
                        "producer skips the wake for the next event",
                        cpu));
        finding.clause = "5.1.8.2-1";
        finding.cpu = cpu;
        stage_.findings().blame(std::move(finding));
    }

  private:
    bool is_deaf(std::uint32_t cpu) const {
        if (stage_.the_case().demand == Demand::shared) return false;
        const Rings& rings = stage_.rings();
        const BufferIndex buffer = rings.history().current_buffer(cpu);
        return stage_.wait_log().sleeps_without_limit(cpu) &&
               !rings.forged().has_put_need_wake(buffer) && rings.backend().need_wake(buffer) == 0;
    }

    Stage& stage_;
    bool has_blamed_ = false;
};

}  // namespace

std::unique_ptr<Monitor> make_shared_futex_monitor(Stage& stage) {
    return std::make_unique<SharedFutexMonitor>(stage);
}

std::unique_ptr<Monitor> make_need_wake_monitor(Stage& stage) {
    return std::make_unique<NeedWakeMonitor>(stage);
}

}  // namespace kmes::conformance
