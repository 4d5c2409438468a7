// SPDX-License-Identifier: MIT
//
// Two consumers on one buffer (E12; --shared). The other consumer follows 5.1.8.2 literally, and
// the scheduler stopped it after its wake. When it continues, it clears need_wake (step 6) and so
// erases the request of the testee, which sleeps by then. The next event wakes neither. Therefore a
// consumer that may share its buffer sleeps with a timeout.
//
// In some cases the suite plays the other consumer on the page. In others it is a second instance
// of the testee's program, held after its wake before each of its accesses in turn.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/cases/play.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/play/row.h"
#include "conformance/stage/second_instance.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Demand;

// The other consumer's store at 5.1.8.2 step 6.
void other_clears(Stage& stage) {
    stage.rings().forged().put_need_wake(stage.rings().history().current_buffer(0), 0,
                                         "another consumer of this buffer clears need_wake");
}

// Runs `play`. Attributes a lost wake-up in it to this erratum, and adds the interleaving.
void explain(const std::function<void()>& play, const std::string& interleaving) {
    try {
        play();
    } catch (Stop& stop) {
        if (stop.verdict == Verdict::fail && stop.finding.code == FindingCode::lost_wake_up) {
            stop.finding.clause = "E12";
            stop.finding.message += "; " + interleaving;
        }
        throw;
    }
}

void cleared_while_it_sleeps(Stage& stage) {
    constexpr int kIterations = 4;
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        // Both are woken; the other consumer gets no further. The testee drains, and sleeps again.
        emit_some(stage, 0, 1, 100);
        stage.wait_asleep(0);
        other_clears(stage);
        explain(
            [&stage] {
                emit_some(stage, 0, 1, 100);
                stage.waits().delivered(0);
                stage.wait_asleep(0);
            },
            "another consumer of the buffer cleared need_wake during the sleep, so the producer "
            "woke nobody");
    }
}

// The other consumer's store comes before each access of the testee to the page, in turn.
void cleared_at_every_step(Stage& stage) {
    explain([&stage] { act_at_every_access(stage, 0, [&stage] { other_clears(stage); }); },
            "another consumer of the buffer cleared need_wake before the sleep, so the producer "
            "woke nobody");
}

// The other consumer had a spurious wake and sets need_wake again. The flag is 1 although the
// testee is awake, and the testee clears it. That is harmless for the testee itself.
void other_sets(Stage& stage) {
    stage.rings().forged().put_need_wake(stage.rings().history().current_buffer(0), 1,
                                         "another consumer of this buffer sets need_wake");
}

// -- The program twice ------------------------------------------------------------------------

// The rest of a spin is left out.
constexpr std::uint64_t kAccessesAtMost = 40;
constexpr unsigned kBursts = 60;
// The number of checks before a sleeper with undelivered events counts as asleep for good.
constexpr unsigned kChecks = 10;

class Pair {
  public:
    // The testee sleeps; the second instance is started, and sleeps as well.
    explicit Pair(Stage& stage) : stage_(stage), second_(stage.settings(), stage.rings()) {
        wait("an attach and a sleep", [this] { return is_idle(); });
    }

    SecondInstance& second() { return second_; }

    bool is_idle() const {
        return second_.has_refused(0) || (second_.has_delivered_all(0) && second_.is_asleep(0));
    }

    // Waits until `condition` holds for the second instance.
    void wait(const std::string& what, const std::function<bool()>& condition) {
        Patience patience(stage_.waits().limit());
        unsigned checks = 0;
        stage_.hooks().set_on_iteration([&](bool) {
            record_accesses();
            if (second_.ended()) stop_failed("ended");
            const bool sleeps_on_an_event = !second_.has_delivered_all(0) && second_.is_asleep(0) &&
                                            second_.is_blocked_for_good();
            checks = sleeps_on_an_event ? checks + 1 : 0;
            if (checks > kChecks)
                stop_failed(
                    "sleeps for ever with a published event unread; expected a sleep with a limit");
            if (patience.is_over(second_.threads()))
                stop_failed("makes no progress; expected " + what);
            return true;
        });
        stage_.waits().until(
            [&] {
                second_.update();
                return condition();
            },
            what + " of the second instance");
        record_accesses();
        stage_.hooks().set_on_iteration(nullptr);
    }

    // Sends the end event to both, and blames faults of the second instance.
    CaseOutcome finish() {
        stage_.ending().emit_ends();
        Patience patience(stage_.waits().limit());
        while (!second_.ended() && !patience.is_over(second_.threads())) {
            stage_.waits().let_run(1);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            second_.update();
        }
        if (!second_.ended()) stop_failed("does not exit; expected an exit after the end event");
        for (Finding& finding : second_.judge()) {
            finding.message = "the second instance of the program: " + finding.message;
            stage_.findings().blame(std::move(finding));
        }
        return stage_.finish();
    }

  private:
    void record_accesses() {
        const BufferIndex buffer = stage_.rings().history().current_buffer(0);
        for (const AccessStop::Access& access : second_.take_accesses())
            stage_.recorder().accesses().accessed_by_second(access.hit, buffer,
                                                            access.step ? &*access.step : nullptr);
    }

    [[noreturn]] void stop_failed(const std::string& what) {
        Finding finding =
            contract_finding("the second instance of the program, on the same buffer, " + what);
        finding.clause = "E12";
        throw Stop{Verdict::fail, finding};
    }

    Stage& stage_;
    SecondInstance second_;
};

// Wakes both. The second instance is stopped at its first access until the testee has drained and
// sleeps again. It continues to its k-th access, and is stopped there while the next event is
// published. Returns false if it slept before a k-th access.
bool hold_second_at(Stage& stage, Pair& pair, std::uint64_t k) {
    SecondInstance& second = pair.second();
    second.stop_before_access(1);
    emit_some(stage, 0, 1, 100);
    stage.wait_asleep(0);
    pair.wait("a wake", [&] { return second.is_stopped() || pair.is_idle(); });
    if (k > 1) second.stop_before_access(k);
    pair.wait("an access or a sleep",
              [&] { return second.is_stopped() || second.has_slept_since(); });
    const bool is_stopped = second.is_stopped();
    explain(
        [&stage] {
            emit_some(stage, 0, 1, 100);
            stage.waits().delivered(0);
            stage.wait_asleep(0);
        },
        fmt::format("the second instance was stopped before its access {} to the page during the "
                    "publication, after a store of its own to need_wake",
                    k));
    second.resume();
    pair.wait("a delivery and a sleep", [&pair] { return pair.is_idle(); });
    return is_stopped;
}

CaseOutcome two_instances(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    Pair pair(stage);
    for (std::uint64_t k = 1; k <= kAccessesAtMost && hold_second_at(stage, pair, k); ++k) {
    }
    return pair.finish();
}

CaseOutcome two_instances_under_load(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    Pair pair(stage);
    for (unsigned burst = 0; burst < kBursts; ++burst) {
        explain(
            [&stage] {
                for (std::uint64_t left = 1 + stage.rings().events().random() % 4; left > 0;
                     --left) {
                    emit_some(stage, 0, 1, 100);
                    if (stage.rings().events().random() % 2 == 0) stage.waits().let_run(1);
                }
                stage.waits().delivered(0);
            },
            "a second instance of the program ran on the same buffer");
        pair.wait("a delivery", [&pair] { return pair.second().has_delivered_all(0); });
    }
    return pair.finish();
}

constexpr std::string_view kLimit =
    "The consumer never sleeps on a published event for ever. With other consumers on its buffer, "
    "it sleeps with a time limit.";
constexpr std::string_view kBoth =
    "The consumer delivers every event in both instances, and neither of them sleeps on one.";

const Row kSharedRows[] = {
    {{"E12/cleared-while-it-sleeps", erratum, "need_wake cleared by another consumer",
      "Let a second consumer of the buffer, stopped after its wake, clear need_wake while the "
      "first one sleeps. Then emit an event.",
      kLimit},
     {Asleep{}, cleared_while_it_sleeps},
     kOneCpu,
     shared},
    {{"E12/cleared-at-every-step", erratum, "need_wake cleared by another consumer at every step",
      "Let a second consumer of the buffer clear need_wake before each access to the metadata page "
      "in turn. Then emit an event.",
      kLimit},
     {Asleep{}, cleared_at_every_step},
     kOneCpu,
     shared},
    {{"E12/set-at-every-step", erratum, "need_wake set by another consumer at every step",
      "Let a second consumer of the buffer set need_wake before each access to the metadata page "
      "in turn.",
      "The consumer tolerates a spurious wake and sleeps again."},
     {Asleep{}, BeforeEachAccess{{other_sets}}},
     kOneCpu,
     shared},
    {{"E12/two-instances", erratum, "two instances of the program, one stalled after its wake",
      "Start the program once more on the same buffer and wake both. Hold the second one before "
      "each of its accesses to the metadata page in turn, until the first has drained and sleeps "
      "again. Then emit an event.",
      kBoth},
     two_instances,
     shared},
    {{"E12/two-instances-under-load", erratum, "two instances of the program under load",
      "Start the program once more on the same buffer. Emit events while both drain and go to "
      "sleep.",
      kBoth},
     two_instances_under_load,
     shared},
};

}  // namespace

const std::vector<Case> kSharedCases = cases_of(kSharedRows);

}  // namespace kmes::conformance
