// SPDX-License-Identifier: MIT
//
// See instance_pair.h.
#include "conformance/play/instance_pair.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "conformance/oracle/driver_findings.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

// The number of checks before a sleeper with undelivered events counts as asleep for good.
constexpr unsigned kChecksOfASleeper = 10;

// Runs `play`. Attributes a lost wake-up in it to E12, and adds the interleaving.
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

[[noreturn]] void stop_failed(const std::string& what) {
    Finding finding =
        contract_finding("the second instance of the program, on the same buffer, " + what);
    finding.clause = "E12";
    throw Stop{Verdict::fail, finding};
}

Step other_puts(std::uint8_t need_wake, std::string_view what) {
    return [need_wake, what = std::string(what)](Stage& stage) {
        stage.rings().forged().put_need_wake(stage.rings().history().current_buffer(0), need_wake,
                                             what);
    };
}

}  // namespace

Step other_clears_need_wake() {
    return other_puts(0, "another consumer of this buffer clears need_wake");
}

Step other_sets_need_wake() {
    return other_puts(1, "another consumer of this buffer sets need_wake");
}

Step with_another_consumer(std::string_view interleaving, const Steps& steps) {
    const auto play_explained = [text = std::string(interleaving)](
                                    Stage&, const std::function<void()>& play) {
        explain(play, text);
    };
    return Around{play_explained, steps};
}

InstancePair::InstancePair(Stage& stage) : stage_(stage), second_(stage.settings(), stage.rings()) {
    wait("an attach and a sleep", [this] { return is_idle(); });
}

bool InstancePair::is_idle() const {
    return second_.has_refused(0) || (second_.has_delivered_all(0) && second_.is_asleep(0));
}

void InstancePair::wait(const std::string& what, const std::function<bool()>& condition) {
    Patience patience(stage_.waits().limit());
    unsigned checks = 0;
    stage_.hooks().set_on_iteration([&](bool) {
        record_accesses();
        if (second_.ended()) stop_failed("ended");
        const bool sleeps_on_an_event =
            !second_.has_delivered_all(0) && second_.is_asleep(0) && second_.is_blocked_for_good();
        checks = sleeps_on_an_event ? checks + 1 : 0;
        if (checks > kChecksOfASleeper)
            stop_failed(
                "sleeps for ever with a published event unread; expected a sleep with a limit");
        if (patience.is_over(second_.threads())) stop_failed("makes no progress; expected " + what);
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

bool InstancePair::hold_second_at(std::uint64_t k) {
    second_.stop_before_access(1);
    emit_some(stage_, 0, 1, 100);
    stage_.wait_asleep(0);
    wait("a wake", [&] { return second_.is_stopped() || is_idle(); });
    if (k > 1) second_.stop_before_access(k);
    wait("an access or a sleep", [&] { return second_.is_stopped() || second_.has_slept_since(); });
    const bool is_stopped = second_.is_stopped();
    explain(
        [this] {
            emit_some(stage_, 0, 1, 100);
            stage_.waits().delivered(0);
            stage_.wait_asleep(0);
        },
        fmt::format("the second instance was stopped before its access {} to the page during the "
                    "publication, after a store of its own to need_wake",
                    k));
    second_.resume();
    wait("a delivery and a sleep", [this] { return is_idle(); });
    return is_stopped;
}

void InstancePair::emit_burst() {
    explain(
        [this] {
            EventMaker& maker = stage_.rings().events();
            for (std::uint64_t left = 1 + maker.random() % 4; left > 0; --left) {
                emit_some(stage_, 0, 1, 100);
                if (maker.random() % 2 == 0) stage_.waits().let_run(1);
            }
            stage_.waits().delivered(0);
        },
        "a second instance of the program ran on the same buffer");
    wait("a delivery", [this] { return second_.has_delivered_all(0); });
}

CaseOutcome InstancePair::finish() {
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

void InstancePair::record_accesses() {
    const BufferIndex buffer = stage_.rings().history().current_buffer(0);
    for (const AccessStop::Access& access : second_.take_accesses())
        stage_.recorder().accesses().accessed_by_second(access.hit, buffer,
                                                        access.step ? &*access.step : nullptr);
}

}  // namespace kmes::conformance
