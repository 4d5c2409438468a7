// SPDX-License-Identifier: MIT
//
// E1 on this machine. Without a full fence on both sides, a store waits in the processor's store
// buffer while the next load executes. A consumer then sleeps on a published event. One emission
// and one kmes_reader_wait meet again and again, in the core's own code, whose fences can be left
// out one by one (droppable_fence.h).
//
// The same with the asymmetric barrier: no fence in the emission, and membarrier in the wait, which
// can be left out.
//
//   wake_race_test              with all fences; and without each, until one wake-up is lost
//   wake_race_test --races=N    N races of each, for the rates (wake_race_long_test)
//
// A race is lost if the consumer sleeps, and the counter still has the expected value after the
// emission: no wake will come. No time is measured.
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "kmes/order.h"
#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/tests/ring_memory.h"
#include "kmes/user/membarrier.h"
#include "props/threads/droppable_fence.h"

extern "C" {
unsigned long long kmes_dropped_fences;
}

namespace kmes::props {
namespace {

constexpr std::uint64_t kCapacityBytes = 4096;
constexpr std::uint64_t kWakeFence = 1ull << KMES_ORDER_WAKE_FENCE;
constexpr std::uint64_t kSleepFence = 1ull << KMES_ORDER_SLEEP_FENCE;

// The replacement of the two full fences.
enum class Fences {
    kBoth,
    kMembarrier,         // nothing in the emission, membarrier in the wait
    kMembarrierLeftOut,  // membarrier is left out, too
};

std::uint64_t long_races;  // 0: the short test

// Two threads that continue together. A thread that waits long sleeps. On a busy machine it then
// runs first when the other arrives. Only then do both really run at the same time.
class Meeting {
  public:
    void meet() {
        const std::uint64_t before = arrived_.fetch_add(1);

        if (before % 2) {
            arrived_.notify_all();
            return;
        }
        for (unsigned turns = 0; turns < 20000; turns++) {
            if (arrived_.load() != before + 1) return;
        }
        arrived_.wait(before + 1);
    }

  private:
    std::atomic<std::uint64_t> arrived_{0};
};

// Binds the calling thread to the first or the second of the processors that it may use.
void run_on(int which) {
    cpu_set_t allowed, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || which-- > 0) continue;
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

// Lets another process run on the processor to which the calling thread is bound. Linux decides by
// a copy of the registration in the run queue whether membarrier reaches a processor. The end of a
// thread clears that copy, and a thread of the same process does not set it again. A process with
// other memory in between does (docs/decisions/0014-asymmetric-barrier.md).
bool run_another_process_here() {
    int status = -1;
    const pid_t child = fork();

    if (child == 0) _exit(0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void spin(std::uint64_t turns) {
    for (volatile std::uint64_t left = turns; left > 0;) left = left - 1;
}

// The limit for all searches of this program together, times KMES_TIMEOUT_SCALE; not for counting
// rates. It ends before Bazel's limit (medium: 300 s), so that a test can report a failed search.
bool is_too_late() {
    static const auto begin = std::chrono::steady_clock::now();
    const char* scale = getenv("KMES_TIMEOUT_SCALE");
    const double factor = scale && *scale ? strtod(scale, nullptr) : 1;

    return !long_races && std::chrono::steady_clock::now() - begin >
                              std::chrono::duration<double>(200 * (factor > 0 ? factor : 1));
}

class WakeRace {
  public:
    explicit WakeRace(Fences fences);
    ~WakeRace() { kmes_reader_close(&reader_); }

    // Runs until `races` are over, `enough` are lost, or the time limit is reached. Returns how
    // many were lost.
    std::uint64_t run(std::uint64_t races, std::uint64_t enough);
    std::uint64_t races() const { return races_; }

  private:
    static int attach(void* context, __u16, kmes_mapping* mapping);
    static int sleep(void* context, __u32* word, __u32 expected, __u64);
    void emit();
    void drain();

    tests::RingMemory memory_{kCapacityBytes};
    std::vector<kmes_boundary> index_{kmes_index_entries(kCapacityBytes)};
    kmes_buffer buffer_ = {};
    kmes_platform producer_platform_ = {};
    kmes_cpu cpu_ = {};
    kmes_platform reader_platform_ = {};
    kmes_reader reader_ = {};
    Meeting meeting_;
    std::uint64_t races_ = 0;
    std::uint64_t lost_ = 0;
    bool has_slept_ = false;
};

WakeRace::WakeRace(Fences fences) {
    kmes_buffer_setup setup = {};
    kmes_reader_config config = {};

    setup.mapping = memory_.base();
    setup.index = index_.data();
    setup.capacity_bytes = kCapacityBytes;
    setup.generation = 1;
    setup.version = KMES_VERSION_1;
    EXPECT_EQ(0, kmes_buffer_init(&buffer_, &setup));
    producer_platform_.clock_ns = [](void*) -> __u64 { return 1; };
    producer_platform_.queue_wake = [](void*, kmes_buffer*) {};  // no thread really sleeps
    kmes_cpu_init(&cpu_, 0, &buffer_, &producer_platform_, 0);
    reader_platform_.context = this;
    reader_platform_.sleep = sleep;
    reader_platform_.barrier = [](void*) { return kmes_membarrier(); };
    if (fences == Fences::kMembarrierLeftOut) reader_platform_.barrier = [](void*) { return 0; };
    config.attach_functions = {attach, attach, [](void*, kmes_mapping*) {}, this};
    config.platform = &reader_platform_;
    EXPECT_EQ(0, kmes_reader_open(&reader_, &config));
    if (fences == Fences::kBoth) return;
    EXPECT_EQ(0, kmes_membarrier_register());
    cpu_.has_light_fence = true;
    reader_.mapping.needs_barrier = true;
}

int WakeRace::attach(void* context, __u16, kmes_mapping* mapping) {
    const auto& memory = static_cast<WakeRace*>(context)->memory_;

    *mapping = {};
    mapping->base = memory.base();
    mapping->mapped_bytes = memory.mapped_bytes();
    return 0;
}

// Sleeps until the emission is over, when its last store is visible.
int WakeRace::sleep(void* context, __u32* word, __u32 expected, __u64) {
    auto* self = static_cast<WakeRace*>(context);

    self->meeting_.meet();
    self->has_slept_ = true;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == expected) self->lost_++;
    return 0;
}

void WakeRace::emit() {
    kmes_event_input input = {};

    input.type = "t";
    input.type_len = 1;
    kmes_cpu_emit(&cpu_, &input);
}

void WakeRace::drain() {
    std::uint8_t room[64];
    kmes_event_view view;

    while (kmes_reader_next(&reader_, room, sizeof(room), &view) == KMES_READ_EVENT) continue;
}

// The thread that begins first, and its lead, change from race to race.
std::uint64_t WakeRace::run(std::uint64_t races, std::uint64_t enough) {
    std::atomic<bool> ends{false};
    std::thread emitting([&] {
        run_on(1);
        if (reader_.mapping.needs_barrier) {
            EXPECT_TRUE(run_another_process_here());
        }
        for (std::uint64_t race = 0;; race++) {
            meeting_.meet();
            if (ends.load()) return;
            spin(race % 13);
            emit();
            meeting_.meet();
        }
    });

    cpu_set_t before;

    sched_getaffinity(0, sizeof(before), &before);
    run_on(0);
    for (races_ = 0; races_ < races && lost_ < enough && !is_too_late(); races_++) {
        has_slept_ = false;
        meeting_.meet();
        spin(races_ % 37);
        kmes_reader_wait(&reader_, KMES_NO_TIMEOUT);
        if (!has_slept_) meeting_.meet();
        drain();
    }
    ends.store(true);
    meeting_.meet();
    emitting.join();
    sched_setaffinity(0, sizeof(before), &before);
    return lost_;
}

struct Lost {
    std::uint64_t races;
    std::uint64_t lost;
};

Lost race_without(std::uint64_t fences, std::uint64_t races, std::uint64_t enough) {
    WakeRace race(Fences::kBoth);

    kmes_dropped_fences = fences;
    const std::uint64_t lost = race.run(races, enough);

    kmes_dropped_fences = 0;
    printf("left out: %-26s %9llu races, %6llu wake-ups lost\n",
           fences == 0             ? "nothing"
           : fences == kWakeFence  ? "WAKE_FENCE"
           : fences == kSleepFence ? "SLEEP_FENCE"
                                   : "WAKE_FENCE and SLEEP_FENCE",
           static_cast<unsigned long long>(race.races()), static_cast<unsigned long long>(lost));
    fflush(stdout);
    return {race.races(), lost};
}

Lost race_with(Fences fences, std::uint64_t races, std::uint64_t enough) {
    WakeRace race(fences);
    const std::uint64_t lost = race.run(races, enough);

    printf("%-36s %9llu races, %6llu wake-ups lost\n",
           fences == Fences::kMembarrier ? "membarrier" : "left out: WAKE_FENCE and membarrier",
           static_cast<unsigned long long>(race.races()), static_cast<unsigned long long>(lost));
    fflush(stdout);
    return {race.races(), lost};
}

constexpr char kNotAtOnce[] =
    " races; it also fails if the two threads never run at the same time, as with a quota of one "
    "CPU";

// A store buffer is visible only from another processor.
bool has_one_processor() {
    return std::thread::hardware_concurrency() < 2;
}

TEST(WakeRaceTest, WithBothFencesNoWakeUpIsLost) {
    EXPECT_EQ(0u, race_without(0, long_races ? long_races : 50000, UINT64_MAX).lost);
}

// The rates change from run to run with the timing: on a busy machine, between one race in 4 and
// one in 400 of each kind. The short test continues until one is lost.
void expect_lost_without(std::uint64_t fences) {
    if (has_one_processor()) GTEST_SKIP() << "one processor";
    const Lost result = long_races ? race_without(fences, long_races, UINT64_MAX)
                                   : race_without(fences, UINT64_MAX, 1);

    EXPECT_GT(result.lost, 0u) << "in " << result.races << kNotAtOnce;
}

TEST(WakeRaceTest, WithoutTheProducersFenceAWakeUpIsLost) {
    expect_lost_without(kWakeFence);
}

TEST(WakeRaceTest, WithoutTheConsumersFenceAWakeUpIsLost) {
    expect_lost_without(kSleepFence);
}

TEST(WakeRaceTest, WithoutAnyFenceAWakeUpIsLost) {
    expect_lost_without(kWakeFence | kSleepFence);
}

TEST(WakeRaceTest, WithMembarrierInTheWaitNoWakeUpIsLost) {
    if (kmes_membarrier() != 0) GTEST_SKIP() << "no membarrier";
    EXPECT_EQ(0u, race_with(Fences::kMembarrier, long_races ? long_races : 50000, UINT64_MAX).lost);
}

TEST(WakeRaceTest, WithoutMembarrierInTheWaitAWakeUpIsLost) {
    if (has_one_processor()) GTEST_SKIP() << "one processor";
    if (kmes_membarrier() != 0) GTEST_SKIP() << "no membarrier";
    const Lost result = long_races ? race_with(Fences::kMembarrierLeftOut, long_races, UINT64_MAX)
                                   : race_with(Fences::kMembarrierLeftOut, UINT64_MAX, 1);

    EXPECT_GT(result.lost, 0u) << "in " << result.races << kNotAtOnce;
}

}  // namespace
}  // namespace kmes::props

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc == 2 && std::string(argv[1]).starts_with("--races="))
        kmes::props::long_races = strtoull(argv[1] + 8, nullptr, 10);
    return RUN_ALL_TESTS();
}
