// SPDX-License-Identifier: MIT
//
// Chooses the next actor: a thread of the testee, or a source, which is a list of producer actions.
// Each of them has a priority, and the highest that can act does. Everything follows from the seed
// and from the order of the steps. There are two ways:
// - By priority (probabilistic concurrency testing): at a few random steps, drawn beforehand, the
//   last actor gets the lowest priority. If a fault needs n such changes, the chance to find it
//   falls with the n-th power of the number of steps. It does not fall with the number of
//   interleavings.
// - At random: at any step an actor may get the highest or the lowest priority.
//
// Knows no stage and no ring.
#ifndef KMES_CONFORMANCE_PLAY_TURNS_H_
#define KMES_CONFORMANCE_PLAY_TURNS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "conformance/model/schedule.h"

namespace kmes::conformance {

enum class Turning { none, by_priority, at_random };

class Turns {
  public:
    // The next action of a source.
    struct ProducerAction {
        Action action = Action::nothing;
        std::uint64_t parameter = 0;
        std::uint32_t cpu = 0;
        Written written = Written::whole;
    };
    struct Thread {
        pid_t tid = 0;
        std::uint32_t cpu = 0;  // of the buffer of its first access
        double priority = 0;
    };

    Turns(std::uint64_t seed, std::uint32_t cpus, Turning turning);

    // Adds a thread of the testee that accesses this CPU's buffer. A known thread keeps its
    // priority. The priority does not depend on the order in which threads appear.
    void add(pid_t thread, std::uint32_t cpu);
    bool goes_before(pid_t thread, pid_t other) const;
    const std::vector<Thread>& threads() const { return threads_; }
    // Returns the next action of a source with a higher priority than this thread, as one step.
    // Nothing: no such source has one.
    std::optional<ProducerAction> next_before(pid_t thread);
    // Returns the next action if no thread can continue. Nothing: all sources are empty.
    std::optional<ProducerAction> next();
    // The thread makes a step. Returns true if another actor may come first now.
    bool step(pid_t thread);

  private:
    struct Source {
        double priority = 0;
        std::vector<ProducerAction> actions;  // the next action is the last element
    };

    void draw_actions(Source& source, std::uint64_t most);
    ProducerAction random_action();
    std::uint64_t random_size();
    // The index of a known thread; else the number of threads.
    std::size_t index_of(pid_t thread) const;
    // The source with the highest priority that is not empty; nullptr: all are empty.
    Source* highest_source();
    ProducerAction take_from(Source& source);
    // Counts a step, and returns whether it is one of those drawn beforehand.
    bool is_change();
    void move_somebody();

    std::mt19937_64 random_;
    std::uint64_t seed_;
    std::uint32_t cpus_;
    Turning turning_;
    std::vector<Source> sources_;
    std::vector<Thread> threads_;         // by CPU
    std::vector<std::uint64_t> changes_;  // steps
    std::uint64_t one_in_ = 1;            // at random: one step in this many
    std::uint64_t steps_ = 0;
    double lowest_ = 0;
    double highest_ = 2;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_TURNS_H_
