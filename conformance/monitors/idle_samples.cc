// SPDX-License-Identifier: MIT
//
// See idle_samples.h. All measures are ratios to something measured in the same run on the same
// machine, so load affects both sides, and several samples count. A correct consumer that spins a
// little, waits with timeouts, or is interpreted stays far from the bounds.
#include "conformance/monitors/idle_samples.h"

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "conformance/monitors/monitors.h"
#include "conformance/stage/stage.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/proc.h"

namespace kmes::conformance {
namespace {

constexpr int kSamples = 7;
constexpr std::uint64_t kStretchMs = 150;

double seconds_of(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

// A thread of the runner that only uses the processor while it exists: its processor time is the
// maximum on this machine under this load.
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
        timespec time{};
        if (failed_ || clock_gettime(clock_, &time) != 0)
            stop_unsupported("the processor time of a thread cannot be read here");
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    }

  private:
    std::atomic<bool> stop_ = false;
    clockid_t clock_{};
    bool failed_ = false;
    std::thread thread_;
};

// The times of one thread in seconds: processor time, and time in which it was ready without a
// processor. `rests` counts its voluntary context switches.
struct ThreadTime {
    double used = 0;
    double ready = 0;
    std::uint64_t rests = 0;
};

// The sums over one or more periods, in seconds.
struct Idle {
    double used = 0;   // processor time of all threads of the testee
    double burnt = 0;  // of the burner
    double slept = 0;  // on ring words, up to the requested time
    double waits_ended = 0;
    double slept_in_ended = 0;
    double all = 0;
    // A thread was running or ready at the end of the period. The kernel adds its wait for a
    // processor only when it gets one, so the figures may lack it.
    bool ends_ready = false;
    std::map<pid_t, ThreadTime> by_thread;

    Idle& operator+=(const Idle& other) {
        used += other.used;
        burnt += other.burnt;
        slept += other.slept;
        waits_ended += other.waits_ended;
        slept_in_ended += other.slept_in_ended;
        all += other.all;
        for (const auto& [tid, time] : other.by_thread) {
            by_thread[tid].used += time.used;
            by_thread[tid].ready += time.ready;
            by_thread[tid].rests += time.rests;
        }
        return *this;
    }
    // The time in which threads wanted a processor and had none.
    double ready() const {
        double sum = 0;
        for (const auto& [tid, time] : by_thread) sum += time.ready;
        return sum;
    }
    // The number of processors that the threads would use if each had one whenever it wants. A
    // thread counts with its share of the time in which it was not waiting for a processor. A
    // thread that spins wants a whole processor on any machine. Several threads that work a little
    // in turn do not want more on a busy machine, however long each waits.
    double processors_wanted() const {
        double sum = 0;
        for (const auto& [tid, time] : by_thread) {
            const double its_own = std::max(all - time.ready, time.used);
            if (its_own > 0) sum += time.used / its_own;
        }
        return sum;
    }
    // Whether a thread used at least the share `least` of a processor, and never slept. That proves
    // a spinner on a machine so busy that no two threads get the same share. Load takes the
    // processor from a thread, but does not keep it from sleeping.
    bool has_restless_thread(double least) const {
        return std::any_of(by_thread.begin(), by_thread.end(), [&](const auto& each) {
            return each.second.rests == 0 && each.second.used > least * all;
        });
    }
    // The awake share of the consumer's own time. Waits for a processor or for the tracer do not
    // count, so the share is the same on any machine.
    double share_awake() const { return used / (used + slept); }
    double share_of_burner() const { return used / burnt; }
    // A consumer that neither used a processor nor slept has shown nothing.
    bool says_something() const {
        constexpr double kLeast = 0.1;
        return used + slept > kLeast * all;
    }
    // Waits that are refused, or end before they begin, one after the other. Most of such a spin is
    // the tracer's time.
    bool waits_without_sleep() const {
        constexpr double kLeastWaits = 20;
        constexpr double kNoSleep = 20e-6;
        return waits_ended >= kLeastWaits && slept_in_ended < kNoSleep * waits_ended;
    }
};

// Adds the processor time of the testee's threads, and their waits for a processor. Adds nothing if
// the kernel does not count these.
void count_threads(Stage& stage, Idle& idle) {
    for (const pid_t tid : stage.testee().tracer().testee_threads()) {
        const ProcessorTime time = processor_time_of(tid);
        const auto status = tracing::read_status(tid);
        idle.by_thread[tid] = {seconds_of(time.had), seconds_of(time.waited_for),
                               status ? status->rests : 0};
        idle.ends_ready = idle.ends_ready || (status && status->state == 'R');
    }
}

// Returns nothing if the testee has ended. The stage judges that end. Does not set `burnt`.
std::optional<Idle> count_now(Stage& stage) {
    const SleepClock& clock = stage.wait_log().sleep_clock();
    const std::optional<Clock::duration> used = stage.testee().processor_time();
    if (!used) {
        stage.waits().let_run(kStretchMs);  // until its end is reported
        if (stage.testee().end()) return std::nullopt;
        stop_unsupported("the processor time of a process cannot be read here");
    }
    Idle idle;
    idle.used = seconds_of(*used);
    count_threads(stage, idle);
    idle.slept = seconds_of(clock.slept());
    idle.waits_ended = static_cast<double>(clock.waits_ended());
    idle.slept_in_ended = seconds_of(clock.slept_in_ended());
    idle.all = seconds_of(Clock::now().time_since_epoch());
    return idle;
}

Idle difference_of(const Idle& before, const Idle& after) {
    Idle idle;
    idle.used = after.used - before.used;
    // A wait that had begun before, and was refused then, was no sleep after all.
    idle.slept = std::max(after.slept - before.slept, 0.0);
    idle.waits_ended = after.waits_ended - before.waits_ended;
    idle.slept_in_ended = after.slept_in_ended - before.slept_in_ended;
    idle.all = after.all - before.all;
    idle.ends_ready = after.ends_ready;
    for (const auto& [tid, time] : after.by_thread) {
        const auto found = before.by_thread.find(tid);
        const ThreadTime then = found == before.by_thread.end() ? ThreadTime{} : found->second;
        idle.by_thread[tid] = {time.used - then.used, std::max(time.ready - then.ready, 0.0),
                               time.rests - then.rests};
    }
    return idle;
}

// Watches the threads for one period, beside nothing of the runner.
std::optional<Idle> watch_threads(Stage& stage) {
    const std::optional<Idle> before = count_now(stage);
    if (!before) return std::nullopt;
    stage.waits().let_run(kStretchMs);
    const std::optional<Idle> after = count_now(stage);
    if (!after) return std::nullopt;
    return difference_of(*before, *after);
}

// Watches the threads for one period, beside the burner.
std::optional<Idle> watch_beside_burner(Stage& stage) {
    const Burner burner;
    const double before = burner.seconds();
    std::optional<Idle> idle = watch_threads(stage);
    if (idle) idle->burnt = burner.seconds() - before;
    return idle;
}

// ". Evidence: most of it is in thread 1234 (its name)", or "" if no thread has used most of it.
std::string text_of_busiest(const Idle& idle) {
    const auto busiest = std::max_element(
        idle.by_thread.begin(), idle.by_thread.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    if (busiest == idle.by_thread.end() || busiest->second.used * 2 < idle.used) return "";
    std::string name =
        tracing::read_small_file(fmt::format("/proc/{}/comm", busiest->first)).value_or("ended");
    if (name.ends_with('\n')) name.pop_back();
    return fmt::format(". Evidence: most of it is in thread {} ({})", busiest->first, name);
}

// Bounds of a fault: shares of the burner's time, of the consumer's own time, or of a processor.
constexpr double kMost = 0.6;
constexpr double kQuiet = 0.25;
constexpr int kQuietSamples = 2;
// Shares of a processor. On a busy machine the burner gets little, and a correct consumer that
// checks every millisecond gets all that it wants.
constexpr double kLeast = 0.15;
constexpr double kWantsAll = 0.75;
// A share of the burner's time: a consumer also sleeps in other calls than waits on ring words.
constexpr double kLeastOfBurner = 0.1;
// A share of a processor in all samples. A compiler or collector of an interpreter that runs
// without a pause uses less than that on such a busy machine.
constexpr double kLeastRestless = 0.05;

// The samples of one consumer, and their common result.
struct IdleSamples {
    Idle all;
    int quiet = 0;
    int count = 0;

    void add(const Idle& one) {
        if (!one.says_something()) {
            all.waits_ended += one.waits_ended;
            all.slept_in_ended += one.slept_in_ended;
            return;
        }
        ++count;
        // A thread that could have used a processor, but had none, has not shown that it sleeps.
        const double wanted = one.used + one.ready();
        const bool is_quiet = !one.ends_ready && wanted <= kQuiet * one.burnt &&
                              one.used <= kQuiet * (one.used + one.slept);
        if (is_quiet) ++quiet;
        all += one;
    }
    // A spinner uses a processor whenever it gets one. A consumer that sometimes works during its
    // sleep (a collector, a timer) does not want all of it, however little the burner gets.
    bool burns() const {
        return all.used > kMost * all.burnt && all.used > kLeast * all.all &&
               all.processors_wanted() > kWantsAll;
    }
    bool hardly_sleeps() const {
        return all.used > kMost * (all.used + all.slept) && all.used > kLeastOfBurner * all.burnt;
    }
    bool is_quiet() const { return quiet >= kQuietSamples; }
    // If the samples show nothing by then, the machine is busy, and the case takes longer.
    bool is_over() const {
        return is_quiet() || (count >= kSamples && (burns() || hardly_sleeps()));
    }
    // Returns the observation, or "" for an idle consumer.
    std::string fault() const {
        if (all.waits_without_sleep() && count == 0)
            return fmt::format(
                "the idle consumer waits {} times without a sleep; expected a sleep on "
                "futex_counter",
                all.waits_ended);
        if (all.waits_without_sleep() || (!is_quiet() && (burns() || hardly_sleeps())))
            return fmt::format(
                "the idle consumer uses {:.2f} times the processor time of a thread that never "
                "rests, and runs for {:.0f} of 100 ms in {} waits; expected at most {} times, or "
                "{:.0f} ms{}",
                all.share_of_burner(), 100 * all.share_awake(), all.waits_ended, kMost, 100 * kMost,
                text_of_busiest(all));
        if (!is_quiet() && count >= kSamples && all.has_restless_thread(kLeastRestless))
            return fmt::format(
                "the idle consumer runs without any sleep in {} samples of {} ms; expected a sleep "
                "on futex_counter{}",
                count, kStretchMs, text_of_busiest(all));
        return "";
    }
};

// Whether every CPU that has not ended has a thread that sleeps or waits on its ring.
bool has_sleeper_everywhere(Stage& stage) {
    const WaitLog& log = stage.wait_log();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        const bool sleeps = log.asleep(cpu) || log.is_waiting(log.last_sleeper(cpu));
        if (!sleeps && !stage.testee().has_ended(cpu)) return false;
    }
    return true;
}

// Whether the processor time is that of threads that never slept on a ring word, beside readers
// that sleep. A compiler of a language, for example, works on after the readers have fallen asleep.
bool works_beside_sleepers(Stage& stage, const Idle& all) {
    if (all.waits_without_sleep() || !has_sleeper_everywhere(stage)) return false;
    std::set<pid_t> sleepers;
    for (const FutexWait& wait : stage.wait_log().all()) sleepers.insert(wait.tid);
    double used_by_sleepers = 0;
    for (const auto& [tid, time] : all.by_thread)
        if (sleepers.contains(tid)) used_by_sleepers += time.used;
    return used_by_sleepers <= kQuiet * all.used;
}

// Waits for the end of work beside sleeping readers. Returns whether it has ended: several periods
// follow each other in which no thread uses or wants a processor. Work that hardly got a processor
// for a long time proves nothing, and counts as ended.
bool rests_in_the_end(Stage& stage) {
    constexpr int kRests = 3;
    constexpr double kMostWork = 4;  // seconds of processor time
    const auto most_time = std::chrono::duration<double>(60 * stage.settings().timeout_scale);
    const TimePoint begin = Clock::now();
    double used = 0;
    for (int rests = 0; rests < kRests && Clock::now() - begin < most_time;) {
        if (used > kMostWork) return false;
        const std::optional<Idle> one = watch_threads(stage);
        if (!one) return true;
        used += one->used;
        const bool is_quiet = !one->ends_ready && one->used + one->ready() <= kQuiet * one->all;
        rests = is_quiet ? rests + 1 : 0;
    }
    return has_sleeper_everywhere(stage);
}

// Whether a thread runs and has not rested since the first check: 20 checks, a millisecond apart.
bool has_busy_thread(Stage& stage) {
    constexpr int kChecks = 20;
    std::map<pid_t, std::uint64_t> busy;  // threads, and the number of rests of each
    for (const pid_t tid : stage.testee().tracer().testee_threads()) {
        const auto status = tracing::read_status(tid);
        if (status && status->state == 'R') busy[tid] = status->rests;
    }
    for (int check = 0; check < kChecks && !busy.empty(); ++check) {
        stage.waits().let_run(1);
        std::erase_if(busy, [](const auto& each) {
            const auto status = tracing::read_status(each.first);
            return !status || status->state != 'R' || status->rests != each.second;
        });
    }
    return !busy.empty();
}

class IdleMonitor : public Monitor {
  public:
    explicit IdleMonitor(Stage& stage)
        : stage_(stage), is_on_(!stage.settings().debug && stage.the_case().clause() != kClause) {}

    void finishing() override {
        if (!is_on_ || stage_.guards().stop_any() || !stage_.testee().owes_nothing() ||
            !stage_.testee().processor_time())
            return;
        if (!has_busy_thread(stage_) || !stage_.testee().owes_nothing()) return;
        const std::string fault = find_idle_fault(stage_);
        if (!fault.empty()) stage_.findings().blame(kClause, fault);
    }

  private:
    static constexpr std::string_view kClause = "5.1.8.2";

    Stage& stage_;
    bool is_on_;
};

}  // namespace

std::string find_idle_fault(Stage& stage) {
    constexpr int kTries = 3 * kSamples;
    IdleSamples samples;
    for (int i = 0; i < kTries && !samples.is_over(); ++i) {
        const std::optional<Idle> sample = watch_beside_burner(stage);
        if (!sample) return "";
        samples.add(*sample);
    }
    const std::string fault = samples.fault();
    if (fault.empty() || !works_beside_sleepers(stage, samples.all)) return fault;
    return rests_in_the_end(stage) ? "" : fault;
}

std::unique_ptr<Monitor> make_idle_monitor(Stage& stage) {
    return std::make_unique<IdleMonitor>(stage);
}

}  // namespace kmes::conformance
