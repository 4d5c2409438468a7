// SPDX-License-Identifier: MIT
//
// Idle honesty (level should): a consumer with nothing to do uses no processor, and one that is
// woken delivers. Both are ratios to something that is measured in the same run on the same
// machine, and the best of several samples counts: load makes all of it slower alike, and a correct
// consumer that spins a little, waits with limits, or is interpreted stays far from the bounds.
#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

constexpr int kSamples = 7;
constexpr std::uint64_t kStretchMs = 150;

double seconds_of(clockid_t clock) {
    timespec time{};
    if (clock_gettime(clock, &time) != 0)
        stop_unsupported("the processor time of a process cannot be read here");
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A thread of the runner that does nothing but use the processor, for as long as it lives: what
// that gives on this machine, under this load.
class Burner {
  public:
    Burner()
        : thread_([this] {
              while (!stop_.load(std::memory_order_relaxed)) continue;
          }) {
        if (pthread_getcpuclockid(thread_.native_handle(), &clock_) != 0) failed_ = true;
    }
    ~Burner() {
        stop_.store(true);
        thread_.join();
    }
    Burner(const Burner&) = delete;
    Burner& operator=(const Burner&) = delete;

    double seconds() const {
        if (failed_) stop_unsupported("the processor time of a thread cannot be read here");
        return seconds_of(clock_);
    }

  private:
    std::atomic<bool> stop_ = false;
    clockid_t clock_{};
    bool failed_ = false;
    std::thread thread_;
};

// All threads of the testee, beside one that never rests. A spinner uses as much; a wait of a
// millisecond in an interpreter, traced, uses a tenth of a processor. Two quiet samples are enough;
// a spinner that had bad luck with the processor in one is judged by all of them.
CaseOutcome idle_burns_no_cpu(Stage& stage) {
    constexpr double kMost = 0.6;
    constexpr double kQuiet = 0.25;
    constexpr int kQuietSamples = 2;
    // Of a whole processor: where many want it, the burner gets little, and a right consumer that
    // looks each millisecond gets all that it wants.
    constexpr double kLeast = 0.15;
    set_up_one_cpu(stage);
    emit_some(stage, 0, 3, 100);
    stage.start();
    stage.wait_delivered();
    clockid_t testee{};
    if (clock_getcpuclockid(stage.tracer().testee_pid(), &testee) != 0)
        stop_unsupported("the processor time of a process cannot be read here");
    double used = 0;
    double burnt = 0;
    const TimePoint begin = Clock::now();
    int quiet = 0;
    for (int i = 0; i < kSamples && quiet < kQuietSamples; ++i) {
        const Burner burner;
        const double burner_before = burner.seconds();
        const double testee_before = seconds_of(testee);
        stage.let_run(kStretchMs);
        const double more_used = seconds_of(testee) - testee_before;
        const double more_burnt = burner.seconds() - burner_before;
        if (more_used <= kQuiet * more_burnt) ++quiet;
        used += more_used;
        burnt += more_burnt;
    }
    const double all = std::chrono::duration<double>(Clock::now() - begin).count();
    if (quiet < kQuietSamples && used > kMost * burnt && used > kLeast * all) {
        Finding finding = contract_finding(
            fmt::format("with nothing to do it uses {:.2f} times the processor of a thread that "
                        "never rests (in {} samples; {} is the most)",
                        used / burnt, kSamples, kMost));
        finding.clause = "5.1.8.2";
        stage.blame(finding);
    }
    return stage.finish();
}

// From the event to the record, beside the slowest that is right: a consumer that looks every
// 100 ms (contract, waiting).
CaseOutcome delivers_when_woken(Stage& stage) {
    constexpr double kMost = 4;
    constexpr std::uint64_t kLongestWaitMs = 100;
    const auto seconds_since = [](TimePoint from) {
        return std::chrono::duration<double>(Clock::now() - from).count();
    };
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    double best = 1e9;
    double slowest = 0;
    for (int i = 0; i < kSamples && (i == 0 || best > kMost * slowest); ++i) {
        const TimePoint wait_begun = Clock::now();
        stage.let_run(kLongestWaitMs);
        slowest = std::max(slowest, seconds_since(wait_begun));
        const TimePoint emitted = Clock::now();
        emit_some(stage, 0, 1, 100);
        stage.wait_delivered(0);
        best = std::min(best, seconds_since(emitted));
    }
    if (best > kMost * slowest) {
        Finding finding = contract_finding(
            fmt::format("from a wake to the record it took {:.1f} times as long as a consumer that "
                        "looks every {} ms (the least of {} samples; {} is the most)",
                        best / slowest, kLongestWaitMs, kSamples, kMost));
        finding.clause = "5.1.8.2-6";
        stage.blame(finding);
    }
    return stage.finish();
}

}  // namespace

void add_idle_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.8.2/idle-burns-no-cpu", Level::should, "5.1.8.2",
                     "uses no processor while idle",
                     "The processor time of the idle testee beside that of a thread that never "
                     "rests, several times.",
                     "It sleeps: in some sample it uses far less.", idle_burns_no_cpu});
    cases.push_back(
        {"5.1.8.2/delivers-when-woken", Level::should, "5.1.8.2-6", "delivers soon after the wake",
         "The time from an event to its record, beside a wait of 100 ms, several times.",
         "In some sample it takes no more than four such waits.", delivers_when_woken});
}

}  // namespace kmes::conformance
