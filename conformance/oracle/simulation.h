// SPDX-License-Identifier: MIT
//
// Simulates a producer and consumers step by step from one tape of choices, for the oracle's
// property test. It keeps the memory of every buffer as bytes. A consumer reads them by the
// protocol (5.1.8 and the errata); it can be lapped, torn and moved to other buffers, and can have
// a fault. For tests.
#ifndef KMES_CONFORMANCE_ORACLE_SIMULATION_H_
#define KMES_CONFORMANCE_ORACLE_SIMULATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/oracle/judge.h"

namespace kmes::conformance::simulation {

// The fault of a consumer, committed once.
enum class Fault {
    none,
    skip_one,
    double_one,
    swap_two,
    flip_digest,
    wrong_type,
    wrong_loss,
    wrong_position,
    early_from_batch,
    no_generation,  // never writes a G record
};

// The choices of one run. After its end every choice is 0, so shorter tapes make simpler runs.
class Tape {
  public:
    explicit Tape(std::vector<std::uint32_t> choices) : choices_(std::move(choices)) {}
    bool empty() const { return next_ >= choices_.size(); }
    // Returns 0 to count - 1.
    std::uint32_t choose(std::uint32_t count) { return empty() ? 0 : choices_[next_++] % count; }
    bool one_in(std::uint32_t count) { return choose(count) == count - 1 && count > 1; }

  private:
    std::vector<std::uint32_t> choices_;
    std::size_t next_ = 0;
};

class World;

// One consumer thread, for one CPU.
class Consumer {
  public:
    Consumer(World& world, std::uint32_t cpu) : world_(world), cpu_(cpu) {}

    void step();
    void flush();
    bool ended() const { return ended_; }
    bool is_asleep() const { return is_asleep_; }
    void wake() { is_asleep_ = false; }
    std::size_t buffers_slept_on() const { return slept_on_.size(); }

  private:
    void attach();
    void switch_buffer();
    void drain_one();
    void find_nothing();
    void release_held_back();
    void deliver(const std::string& event);
    void write_loss(std::uint64_t sequence);
    void write_event(std::uint64_t sequence, const std::string& event);
    std::string event_line(const std::string& event) const;
    void break_position();
    void break_batch();

    World& world_;
    std::uint32_t cpu_;
    bool attached_ = false;
    bool has_loaded_ = false;
    bool is_asleep_ = false;
    bool ended_ = false;
    BufferIndex buffer_ = 0;
    std::uint64_t remembered_generation_ = 0;
    std::uint64_t read_pos_ = 0;
    std::uint64_t last_sequence_ = 0;
    std::string unwritten_;  // records that are not in the report yet
    std::string held_back_;  // Fault::swap_two
    std::vector<BufferIndex> slept_on_;
};

class World {
  public:
    World(std::vector<std::uint32_t> choices, Fault fault);

    // Plays the tape to its end, then lets every consumer finish.
    void run();

    std::vector<Finding> findings() const;
    // Whether the fault was committed in a way that a judge must detect.
    bool broken() const;
    const std::string& report() const { return report_; }
    const History& history() const { return history_; }

  private:
    friend class Consumer;

    static HistorySettings choose_settings(Tape& tape);
    void produce(std::uint32_t cpu);
    void emit(std::uint32_t cpu);
    EventSpec choose_event(std::uint64_t capacity);
    void swap(std::uint32_t cpu);
    void toggle_batch(std::uint32_t cpu);
    void sync_report();
    // Updates the bytes of the buffers; called after every operation.
    void sync_memory();
    // Chooses whether the consumer commits its fault now.
    bool commit(Fault fault);
    void run_to_sleep(std::uint32_t cpu);
    std::uint8_t byte_at(BufferIndex buffer, std::uint64_t position) const;

    Tape tape_;
    Fault fault_;
    bool committed_ = false;
    bool writes_losses_ = false;
    History history_;
    std::vector<Consumer> consumers_;
    std::vector<std::vector<std::uint8_t>> memory_;
    std::vector<std::size_t> placements_written_;
    std::string report_;
    bool finishing_ = false;
};

}  // namespace kmes::conformance::simulation

#endif  // KMES_CONFORMANCE_ORACLE_SIMULATION_H_
