// SPDX-License-Identifier: MIT
//
// Runs a mix. See world.h.
#include "props/threads/world.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "kmes/order.h"
#include "kmes/user/futex.h"
#include "kmes/user/producer.h"
#include "kmes/user/test_support.h"
#include "props/threads/emitting.h"
#include "props/threads/reading.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kSmallBytes = 64 << 10;
constexpr std::uint64_t kLosslessBytes = 4 << 20;

std::uint64_t tick_clock_ns(void* context) {
    auto* ticks = static_cast<std::atomic<std::uint64_t>*>(context);

    return timestamp_of(ticks->fetch_add(1, std::memory_order_relaxed));
}

class World {
  public:
    explicit World(const Mix& mix);
    RunResult run();

  private:
    ProducerOptions options();
    void start_readers();
    void hand_over(int expected);
    void run_round(unsigned round);
    void control(Draw* draw, bool is_first_round);
    void be_hostile(std::uint64_t seed);
    void end_round(unsigned round);
    void wait_for(const Reading& reading, unsigned round);
    void wait_until_done(const Reading& reading);
    void fail(Finder finder, const std::string& text);
    bool has_failed() const { return result_.finder != Finder::kNobody; }
    void end();
    void count(const Reading& reading);
    void count_cpu(unsigned cpu);
    Emitting& emitter(unsigned cpu, unsigned number) {
        return *emitters_[cpu * (mix_.emitters + 1) + number];
    }

    const Mix& mix_;
    std::atomic<std::uint64_t> ticks_{1};
    Draw draw_;
    Producer producer_;
    // For each CPU: emitter 0, which ends rounds, 1, ...
    std::vector<std::unique_ptr<Emitting>> emitters_;
    std::vector<std::unique_ptr<Reading>> readings_;
    std::thread hostile_;
    std::atomic<bool> hostile_ends_{false};
    std::atomic<int> control_error_{0};
    RunResult result_;
};

World::World(const Mix& mix) : mix_(mix), draw_(mix_bits(mix.seed + 1)), producer_(options()) {
    for (unsigned cpu = 0; cpu < mix.cpus; cpu++) {
        for (unsigned number = 0; number <= mix.emitters; number++)
            emitters_.push_back(std::make_unique<Emitting>(mix, cpu, number, &producer_));
    }
    for (const ReaderMix& plan : mix.readers)
        readings_.push_back(std::make_unique<Reading>(
            mix, plan, static_cast<unsigned>(readings_.size()), producer_));
}

ProducerOptions World::options() {
    ProducerOptions options;

    options.cpus = mix_.cpus;
    options.boot_capacity_bytes = mix_.is_lossless ? kLosslessBytes : kSmallBytes;
    options.capacity_bytes = mix_.capacity_bytes;
    options.emitters = mix_.is_single ? EmitterMode::kSingle : EmitterMode::kLocked;
    options.clock = {tick_clock_ns, &ticks_};
    options.nudges.in_background = mix_.nudges_in_background;
    options.nudges.first_interval_ms = 1;
    options.positions = mix_.positions;
    options.position_shift_bytes = 12345;
    return options;
}

void World::fail(Finder finder, const std::string& text) {
    if (has_failed()) return;
    result_.finder = finder;
    result_.error = text;
}

// -- The producer's side --------------------------------------------------------------------------

// 5.1.2.
void World::hand_over(int expected) {
    const int result = producer_.registry_available(mix_.capacity_bytes);

    if (result != expected) control_error_.store(result, std::memory_order_relaxed);
}

// Resizes and nudges, in parallel to the emitters or in their thread.
void World::control(Draw* draw, bool is_first_round) {
    int error = 0;

    if (is_first_round && mix_.has_boot_phase) hand_over(0);
    for (std::uint64_t i = mix_.resizes ? draw->below(mix_.resizes + 1) : 0; i > 0 && !error; i--) {
        error = producer_.resize(mix_.is_lossless ? kLosslessBytes << draw->below(2)
                                                  : kSmallBytes << draw->below(3));
        if (draw->one_in(2)) sched_yield();
        if (mix_.nudges) producer_.nudge();
    }
    if (error) control_error_.store(error, std::memory_order_relaxed);
    if (!mix_.is_single) producer_.statistics();
}

void World::run_round(unsigned round) {
    std::vector<std::thread> threads;
    const unsigned events =
        mix_.round_events ? 1 + static_cast<unsigned>(draw_.below(mix_.round_events)) : 0;
    Draw draw(draw_.next());

    if (mix_.is_single) {
        for (unsigned cpu = 0; cpu < mix_.cpus; cpu++) emitter(cpu, 1).emit_some(events / 2);
        control(&draw, round == 1);
        for (unsigned cpu = 0; cpu < mix_.cpus; cpu++) emitter(cpu, 1).emit_some(events / 2);
        return;
    }
    for (unsigned cpu = 0; cpu < mix_.cpus && events; cpu++) {
        for (unsigned number = 1; number <= mix_.emitters; number++)
            threads.emplace_back(
                [this, cpu, number, events] { emitter(cpu, number).emit_some(events); });
    }
    control(&draw, round == 1);
    for (std::thread& thread : threads) thread.join();
}

// E12, E13: writes to the fields that a consumer may write, in every buffer that it can map.
void World::be_hostile(std::uint64_t seed) {
    Draw draw(seed);
    Attachment attachment;

    while (!hostile_ends_.load(std::memory_order_relaxed)) {
        if (attachment.buffers.empty() || draw.one_in(64)) producer_.attach(&attachment);
        for (const BufferHandle& memory : attachment.buffers) {
            __u8 value = static_cast<__u8>(draw.next());

            if (mix_.hostile == Hostile::kAwake) value |= 1;
            if (mix_.hostile == Hostile::kAny && draw.one_in(2)) value = 0;
            __atomic_store_n(memory->buffer()->shared.need_wake, value, __ATOMIC_RELAXED);
        }
        sched_yield();
    }
}

// -- The watch ------------------------------------------------------------------------------------

void World::wait_for(const Reading& reading, unsigned round) {
    const std::uint64_t begin = kmes_clock_monotonic_ns();
    SleepingPlace::Snapshot sleeper;

    while (!reading.has_come_to(round) && !reading.is_done() && !has_failed()) {
        sleeper = reading.snapshot();
        if (sleeper.is_asleep && !sleeper.has_limit && sleeper.value == sleeper.expected &&
            !reading.has_come_to(round))
            fail(Finder::kSleepCheck,
                 reading.name() + ", sleeps on an event: round " + std::to_string(round) +
                     " is over, the counter is still " + std::to_string(sleeper.value));
        else if (kmes_clock_monotonic_ns() - begin > patience_ns())
            fail(Finder::kSleepCheck,
                 reading.name() + ", does not come to the end of round " + std::to_string(round) +
                     (sleeper.is_asleep
                          ? ", asleep, expecting counter " + std::to_string(sleeper.expected) +
                                ", which is " + std::to_string(sleeper.value)
                          : ", and is not asleep"));
        else
            sched_yield();
    }
}

// After its producer has ended, a reading must not sleep without a limit.
void World::wait_until_done(const Reading& reading) {
    const std::uint64_t begin = kmes_clock_monotonic_ns();

    while (!reading.is_done() && !has_failed()) {
        const SleepingPlace::Snapshot sleeper = reading.snapshot();

        if (sleeper.is_asleep && !sleeper.has_limit && sleeper.value == sleeper.expected &&
            !reading.is_done())
            fail(Finder::kSleepCheck, reading.name() + ", sleeps on the end of the producer");
        else if (kmes_clock_monotonic_ns() - begin > patience_ns())
            fail(Finder::kSleepCheck, reading.name() + ", does not end with its producer");
        else
            sched_yield();
    }
}

void World::end_round(unsigned round) {
    for (unsigned cpu = 0; cpu < mix_.cpus; cpu++) emitter(cpu, 0).emit_one();
    for (const auto& reading : readings_) wait_for(*reading, round);
    for (const auto& reading : readings_) {
        if (reading->is_done() && round < mix_.rounds)
            fail(Finder::kPayloadCheck, reading->name() + ", ended early");
    }
    if (const int error = control_error_.load(std::memory_order_relaxed))
        fail(Finder::kPayloadCheck, "a hand-over or resize gave " + std::to_string(error));
}

RunResult World::run() {
#ifdef KMES_USER_ORDER_TSAN_H
    kmes_tsan_noise = mix_.noise;
#endif
    if (!mix_.has_boot_phase) hand_over(0);
    for (const auto& reading : readings_) reading->start();
    if (mix_.hostile != Hostile::kNobody)
        hostile_ = std::thread([this] { be_hostile(mix_.seed + 2); });
    for (unsigned round = 1; round <= mix_.rounds && !has_failed(); round++) {
        run_round(round);
        end_round(round);
    }
    end();
    return result_;
}

// -- The account ----------------------------------------------------------------------------------

void World::end() {
    hostile_ends_.store(true, std::memory_order_relaxed);
    if (hostile_.joinable()) hostile_.join();
    if (mix_.ends_by_retire) producer_.retire();
    if (!has_failed()) {
        for (const auto& reading : readings_) wait_until_done(*reading);
    }
    for (const auto& reading : readings_) {
        while (!reading->is_done()) {
            reading->rescue();
            usleep(100);
        }
        reading->join();
    }
    // Errors of readers come first: other errors follow from an early end.
    for (const auto& reading : readings_) {
        if (reading->error().empty() || result_.finder == Finder::kSleepCheck) continue;
        result_.finder = Finder::kPayloadCheck;
        result_.error = reading->error();
        break;
    }
    if (has_failed()) return;
    for (const auto& reading : readings_) count(*reading);
    for (unsigned cpu = 0; cpu < mix_.cpus; cpu++) count_cpu(cpu);
}

// Between the first and the last event of a reader, every event was delivered or is counted as
// lost, and none was invented.
void World::count(const Reading& reading) {
    const kmes_reader_statistics& statistics = reading.statistics();

    for (const Account& account : reading.accounts()) {
        if (account.delivered &&
            account.delivered + account.lost != account.last - account.first + 1)
            fail(Finder::kPayloadCheck, reading.name() + ": from " + std::to_string(account.first) +
                                            " to " + std::to_string(account.last) + " are not " +
                                            std::to_string(account.delivered) + " delivered and " +
                                            std::to_string(account.lost) + " lost");
        result_.delivered += account.delivered;
        result_.lost += account.lost;
    }
    for (const EventKey& key : reading.delivered()) {
        if (!emitter(reading.plan().cpu, key.emitter).was_accepted(key.number))
            fail(Finder::kPayloadCheck, reading.name() + ": was given what nobody emitted");
    }
    result_.torn += statistics.torn;
    result_.laps += statistics.laps;
    result_.switches += statistics.switches;
    result_.sleeps += statistics.sleeps;
}

// The event that ends the last round is the last of its CPU: its number counts all others.
void World::count_cpu(unsigned cpu) {
    const Statistics statistics = producer_.statistics(cpu);
    std::uint64_t accepted = 0, dropped = 0;

    for (unsigned number = 0; number <= mix_.emitters; number++) {
        accepted += emitter(cpu, number).accepted();
        dropped += emitter(cpu, number).dropped();
        if (!emitter(cpu, number).error().empty())
            fail(Finder::kPayloadCheck, emitter(cpu, number).error());
    }
    if (statistics.events != accepted || statistics.dropped != dropped || statistics.corrupt)
        fail(Finder::kPayloadCheck,
             "CPU " + std::to_string(cpu) + " counts " + std::to_string(statistics.events) +
                 " events and " + std::to_string(statistics.dropped) + " dropped; accepted were " +
                 std::to_string(accepted) + ", dropped " + std::to_string(dropped));
    for (const auto& reading : readings_) {
        if (reading->plan().cpu != cpu) continue;
        const Account& last = reading->accounts().back();

        if (last.last != accepted + dropped)
            fail(Finder::kPayloadCheck, reading->name() + ": its last event is " +
                                            std::to_string(last.last) + " of " +
                                            std::to_string(accepted + dropped));
        // Nothing is ever overwritten: a missing event was dropped, before the first or after it.
        if (mix_.is_lossless && last.first - 1 + last.lost != dropped)
            fail(Finder::kPayloadCheck,
                 reading->name() + ": misses " + std::to_string(last.first - 1 + last.lost) +
                     ", though only " + std::to_string(dropped) + " were dropped");
    }
    result_.events += accepted;
}

}  // namespace

void RunResult::add(const RunResult& other) {
    events += other.events;
    delivered += other.delivered;
    lost += other.lost;
    torn += other.torn;
    laps += other.laps;
    switches += other.switches;
    sleeps += other.sleeps;
}

RunResult run_mix(const Mix& mix) {
    World world(mix);

    return world.run();
}

std::string print_counts(std::uint64_t runs, const RunResult& sum) {
    return std::to_string(runs) + " runs: " + std::to_string(sum.events) + " events, " +
           std::to_string(sum.delivered) + " deliveries, " + std::to_string(sum.lost) + " lost, " +
           std::to_string(sum.laps) + " laps, " + std::to_string(sum.torn) + " torn reads, " +
           std::to_string(sum.switches) + " changes of buffers, " + std::to_string(sum.sleeps) +
           " sleeps";
}

}  // namespace kmes::props
