// SPDX-License-Identifier: MIT
//
// Idle honesty (level should): a consumer with nothing to do uses no processor, and one that is
// woken delivers. Both are ratios to something that is measured in the same run on the same
// machine, and several samples count: load makes all of it slower alike, and a correct consumer
// that spins a little, waits with limits, or is interpreted stays far from the bounds.
#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/proc.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kCompareIdle =
    "Compare the processor time of the idle consumer with that of a thread that never rests, and "
    "with its own sleep, several times.";
constexpr std::string_view kSleepsWhenIdle =
    "The consumer sleeps. In two samples, or in all together, it uses far less processor time.";

constexpr int kSamples = 7;
constexpr std::uint64_t kStretchMs = 150;
constexpr std::uint64_t kLongestWaitMs = 100;

double seconds_of(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
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

// The times of one thread, in seconds: processor time, and time in which the thread was ready and
// had no processor. `rests` counts its voluntary context switches.
struct ThreadTime {
    double used = 0;
    double ready = 0;
    std::uint64_t rests = 0;
};

// What happened in one or more stretches of time, in seconds.
struct Idle {
    double used = 0;   // processor time of all threads of the testee
    double burnt = 0;  // of the burner
    double slept = 0;  // on ring words, as far as it asked for it
    double waits_ended = 0;
    double slept_in_ended = 0;
    double all = 0;
    // A thread ran, or was ready to, when the stretch ended: what it waits for a processor is
    // counted by the kernel when it gets one, and may not be in it yet.
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
    // In which its threads had no processor, and wanted one.
    double ready() const {
        double sum = 0;
        for (const auto& [tid, time] : by_thread) sum += time.ready;
        return sum;
    }
    // How many processors its threads would use if each had one whenever it wants: of each the
    // share of the time in which it was not waiting for one. A thread that spins wants a whole one
    // on any machine; several that work a little, one after the other, do not want more of a busy
    // one, however long each has to wait for it.
    double processors_wanted() const {
        double sum = 0;
        for (const auto& [tid, time] : by_thread) {
            const double its_own = std::max(all - time.ready, time.used);
            if (its_own > 0) sum += time.used / its_own;
        }
        return sum;
    }
    // A thread used a share of at least `least` of a processor, and never slept. That shows a
    // spinner on a machine that is so busy that no two threads get the same share: load takes the
    // processor from a thread, but does not keep it from sleeping.
    bool has_restless_thread(double least) const {
        return std::any_of(by_thread.begin(), by_thread.end(), [&](const auto& each) {
            return each.second.rests == 0 && each.second.used > least * all;
        });
    }
    // The share of the consumer's own time. Waits for a processor or for the tracer do not count,
    // so the share is the same on any machine.
    double share_awake() const { return used / (used + slept); }
    double share_of_burner() const { return used / burnt; }
    // One that got no processor in all the time has shown nothing, and did not sleep either.
    bool says_something() const {
        constexpr double kLeast = 0.1;
        return used + slept > kLeast * all;
    }
    // Waits that are refused, or over before they begin, one after the other: most of such a spin
    // is the tracer's time.
    bool waits_without_sleep() const {
        constexpr double kLeastWaits = 20;
        constexpr double kNoSleep = 20e-6;
        return waits_ended >= kLeastWaits && slept_in_ended < kNoSleep * waits_ended;
    }
};

// What the threads of the testee have had of a processor, and waited for one: nothing of that where
// the kernel does not count it.
void look_at_threads(Stage& stage, Idle& idle) {
    for (const pid_t tid : stage.tracer().testee_threads()) {
        const ProcessorTime time = processor_time_of(tid);
        const auto status = tracing::read_status(tid);
        idle.by_thread[tid] = {seconds_of(time.had), seconds_of(time.waited_for),
                               status ? status->rests : 0};
        idle.ends_ready = idle.ends_ready || (status && status->state == 'R');
    }
}

Idle look_at(Stage& stage, const Burner& burner) {
    const SleepClock& clock = stage.sleep_clock();
    const std::optional<Clock::duration> used = stage.processor_time();
    if (!used) stop_unsupported("the processor time of a process cannot be read here");
    Idle idle;
    idle.used = seconds_of(*used);
    look_at_threads(stage, idle);
    idle.burnt = burner.seconds();
    idle.slept = seconds_of(clock.slept());
    idle.waits_ended = static_cast<double>(clock.waits_ended());
    idle.slept_in_ended = seconds_of(clock.slept_in_ended());
    idle.all = seconds_of(Clock::now().time_since_epoch());
    return idle;
}

Idle watch_idle(Stage& stage) {
    const Burner burner;
    const Idle before = look_at(stage, burner);
    stage.let_run(kStretchMs);
    const Idle after = look_at(stage, burner);
    Idle idle;
    idle.used = after.used - before.used;
    idle.burnt = after.burnt - before.burnt;
    // A wait that had begun before and was refused then was no sleep after all.
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

// What the testee has been through when it has nothing to do any more.
enum class Before { events, ends, changes, refusal, late_count };

// Its counter has the highest bit set: some calls take a number with a sign.
void set_up_idle(Stage& stage, std::uint32_t cpus) {
    constexpr std::uint32_t kCounter = 0x8000'0100;
    RingsSetup setup = stage.default_setup();
    setup.cpus = cpus;
    setup.first_futex_counter = kCounter;
    stage.set_up(setup);
}

// The last of three CPUs, when the others have ended and it has had events since: whatever is kept
// by the place in a list has another place.
void leave_the_last_cpu(Stage& stage) {
    for (const std::uint32_t ended : {0u, 1u}) {
        end_cpu(stage, ended);
        emit_some(stage, 2, 2, 100);
        stage.wait_delivered();
        stage.wait_asleep();
    }
}

// Its buffer has been changed twice: nothing that it did for a change goes on for ever.
void change_twice(Stage& stage) {
    for (const std::uint64_t factor : {2u, 1u}) {
        stage.wait_asleep();
        stage.resize(factor * stage.capacity_bytes());
        emit_some(stage, 0, 2, 100);
        stage.wait_delivered();
    }
    stage.wait_asleep();
}

// Its wait is refused, with nothing new: what it is refused for was delivered before it read
// futex_counter for the last time, and the producer had published that, and not yet counted it.
void count_one_late(Stage& stage) {
    constexpr int kWakes = 20;
    stage.wait_asleep();
    stage.freeze();
    const bool is_late = stage.rings().emit_and_count_late(0, stage.rings().make(100));
    stage.thaw();
    // The consumer goes back to sleep with the old value before the kernel has checked the word.
    bool is_counted = !is_late;
    stage.set_on_wait([&](const FutexWait&, std::uint32_t) {
        stage.read_report();
        if (is_counted || !is_delivered(stage, 0)) return;
        is_counted = true;
        stage.rings().count_late(0);
    });
    // After a spurious wake it finds the event.
    for (int i = 0; i < kWakes && !is_counted && stage.rings().spurious_wake(0) == 0; ++i)
        stage.let_run(1);
    give_time(stage, [&is_counted] { return is_counted; });
    stage.set_on_wait(nullptr);
    if (!is_counted) stage.rings().count_late(0);
    stage.wait_delivered();
}

// The first of two CPUs has a bad magic, and events that the consumer must not read.
void start_refused(Stage& stage) {
    break_field(stage, 0, BufferFault::magic, 0, {'X'}, "magic XMESRING");
    stage.start();
    stage.wait_until([&stage] { return stage.has_refused(0); }, "a refusal of CPU 0");
}

// Bounds of a fault: shares of the burner's time, of the consumer's own time, or of a processor.
constexpr double kMost = 0.6;
constexpr double kQuiet = 0.25;
constexpr int kQuietSamples = 2;
// Shares of a processor. On a busy machine the burner gets little, and a correct consumer that
// checks each millisecond gets all that it wants.
constexpr double kLeast = 0.15;
constexpr double kWantsAll = 0.75;
// A share of the burner: a consumer also sleeps in other calls than waits on ring words.
constexpr double kLeastOfBurner = 0.1;
// A share of a processor in all samples. The compiler or collector of an interpreter uses less
// without a pause on a machine that gives it this little.
constexpr double kLeastRestless = 0.05;

// The samples of one consumer, and what they show together.
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
        // A thread that could have used a processor, and had none, has not shown that it sleeps.
        const double wanted = one.used + one.ready();
        const bool is_quiet = !one.ends_ready && wanted <= kQuiet * one.burnt &&
                              one.used <= kQuiet * (one.used + one.slept);
        if (is_quiet) ++quiet;
        all += one;
    }
    // A spinner uses a processor whenever it gets one. A consumer that works now and then during
    // its sleep (a collector, a timer) does not want all of it, however little the burner gets.
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
    // What was observed, or "" for an idle consumer.
    std::string fault() const {
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

// Compares all threads of the consumer with a thread that never rests, and with their own sleep. A
// spinner uses as much as that thread, or far more than it sleeps. A wait of a millisecond in an
// interpreter, traced, uses a tenth of a processor. Two samples that are quiet by both measures are
// enough. All samples together judge a spinner that hardly got a processor in one of them.
CaseOutcome idle_burns_no_cpu(Stage& stage, Before before) {
    constexpr int kTries = 3 * kSamples;
    set_up_idle(stage, before == Before::ends ? 3 : before == Before::refusal ? 2 : 1);
    emit_everywhere(stage, 3, 100);
    if (before == Before::refusal)
        start_refused(stage);
    else
        stage.start();
    stage.wait_delivered();
    if (before == Before::ends) leave_the_last_cpu(stage);
    if (before == Before::changes) change_twice(stage);
    if (before == Before::late_count) count_one_late(stage);
    IdleSamples samples;
    for (int i = 0; i < kTries && !samples.is_over(); ++i) samples.add(watch_idle(stage));
    const std::string fault = samples.fault();
    if (!fault.empty()) stage.blame("5.1.8.2", fault);
    return stage.finish();
}

// The best of several deliveries, and the slowest wait of a consumer that checks every 100 ms
// (contract, waiting), in seconds.
struct Delivery {
    double best = 1e9;
    double wait = 0;

    double ratio() const { return best / wait; }
    bool is_slow(double most) const { return ratio() > most; }
};

Delivery time_deliveries(Stage& stage, std::uint32_t cpu, int tries, double most) {
    Delivery delivery;
    for (int i = 0; i < tries && (i == 0 || delivery.is_slow(most)); ++i) {
        const TimePoint wait_begun = Clock::now();
        stage.let_run(kLongestWaitMs);
        delivery.wait = std::max(delivery.wait, seconds_of(Clock::now() - wait_begun));
        // One thread for all may sleep on the first CPU only.
        stage.wait_asleep_or_stuck(0);
        const TimePoint emitted = Clock::now();
        emit_some(stage, cpu, 1, 100);
        stage.wait_delivered(cpu);
        delivery.best = std::min(delivery.best, seconds_of(Clock::now() - emitted));
    }
    return delivery;
}

// From the event to the record, beside the slowest that is right.
CaseOutcome delivers_when_woken(Stage& stage) {
    constexpr double kMost = 4;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const Delivery delivery = time_deliveries(stage, 0, kSamples, kMost);
    if (delivery.is_slow(kMost)) {
        stage.blame("5.1.8.2-6",
                    fmt::format("CPU 0: the shortest of {} times from an event to its record is "
                                "{:.1f} waits of {} ms; expected at most {} such waits",
                                kSamples, delivery.ratio(), kLongestWaitMs, kMost));
    }
    return stage.finish();
}

// The same for each of several CPUs. One thread that waits on one CPU at a time also checks the
// others in time.
CaseOutcome delivers_on_any_cpu(Stage& stage) {
    constexpr std::uint32_t kCpus = 3;
    constexpr double kMost = 4.0 * kCpus;
    constexpr int kTries = 3;
    set_up_cpus(stage, kCpus);
    stage.start();
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
        const Delivery delivery = time_deliveries(stage, cpu, kTries, kMost);
        if (!delivery.is_slow(kMost)) continue;
        stage.blame(
            "5.1.8.2-6",
            fmt::format("CPU {}: the shortest of {} times from an event to its record is {:.1f} "
                        "waits of {} ms; expected at most {} such waits with {} CPUs",
                        cpu, kTries, delivery.ratio(), kLongestWaitMs, kMost, kCpus));
        break;
    }
    return stage.finish();
}

}  // namespace

void add_idle_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.8.2/idle-burns-no-cpu", Level::should, "5.1.8.2",
                     "processor time while idle", kCompareIdle, kSleepsWhenIdle,
                     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::events); }});
    cases.push_back(
        {"5.1.8.2/idle-beside-an-ended-cpu", Level::should, "5.1.8.2",
         "processor time while idle, with ended CPUs",
         "Emit the end event on the two other CPUs. Then compare the processor time of the idle "
         "consumer with that of a thread that never rests, and with its own sleep, several times.",
         kSleepsWhenIdle, [](Stage& stage) { return idle_burns_no_cpu(stage, Before::ends); }});
    cases.push_back(
        {"5.1.8.2/idle-beside-a-refused-cpu", Level::should, "5.1.8.2",
         "processor time while idle, with a refused CPU",
         "Give the other CPU a bad magic, and events. Then compare the processor time of the idle "
         "consumer with that of a thread that never rests, and with its own sleep, several times.",
         kSleepsWhenIdle, [](Stage& stage) { return idle_burns_no_cpu(stage, Before::refusal); }});
    cases.push_back(
        {"5.1.8.2/idle-after-changes", Level::should, "5.1.8.2",
         "processor time while idle, after changes of the buffer",
         "Replace the buffer twice. Then compare the processor time of the idle consumer with that "
         "of a thread that never rests, and with its own sleep, several times.",
         kSleepsWhenIdle, [](Stage& stage) { return idle_burns_no_cpu(stage, Before::changes); }});
    cases.push_back({"5.1.8.2/idle-after-a-late-count", Level::should, "5.1.8.2",
                     "processor time while idle, after EAGAIN",
                     "Increment futex_counter for an event only after its delivery, so that the "
                     "next wait returns EAGAIN. Then compare the consumer's processor time with "
                     "that of a thread that never rests, and with its own sleep.",
                     "The consumer reads futex_counter again and sleeps. In two samples, or in all "
                     "together, it uses far less processor time.",
                     [](Stage& stage) { return idle_burns_no_cpu(stage, Before::late_count); }});
    cases.push_back(
        {"5.1.8.2/delivers-when-woken", Level::should, "5.1.8.2-6",
         "delay from an event to its record",
         "Compare the time from an event to its record with a wait of 100 ms, several times.",
         "The consumer needs at most four such waits in at least one sample.",
         delivers_when_woken});
    cases.push_back(
        {"5.1.8.2/delivers-on-any-cpu", Level::should, "5.1.8.2-6",
         "delay from an event to its record on any CPU",
         "Compare the time from an event to its record with a wait of 100 ms, on each of three "
         "CPUs. The consumer may check them one after the other.",
         "The consumer needs at most twelve such waits in one of three samples for each CPU.",
         delivers_on_any_cpu});
}

}  // namespace kmes::conformance
