// SPDX-License-Identifier: MIT
//
// Whose turn it is. The actors are sources, each a list of what the producer does one after the
// other, and the threads of the testee. Each has a priority, and the highest that can go on goes
// on. By priority: at a few steps that are drawn beforehand the one that has just gone falls behind
// all others (probabilistic concurrency testing: a mistake that needs n such changes is met with a
// probability that falls with the number of steps to the power of n, and not with the number of
// interleavings). At random: somebody comes first, or falls behind, at any time. Everything
// follows from the seed, and from the order of the steps. Knows no stage and no ring.
#ifndef KMES_CONFORMANCE_EXPLORER_TURNS_H_
#define KMES_CONFORMANCE_EXPLORER_TURNS_H_

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
    // What a source does next.
    struct ProducerAction {
        Action action = Action::nothing;
        std::uint64_t parameter = 0;
        std::uint32_t cpu = 0;
        Written written = Written::whole;
    };
    struct Thread {
        pid_t tid = 0;
        std::uint32_t cpu = 0;  // of its first access
        double priority = 0;
    };

    Turns(std::uint64_t seed, std::uint32_t cpus, Turning turning);

    // A thread of the testee, at an access to this CPU's buffer; one that is known keeps its
    // priority. It does not hang on which thread was seen first.
    void add(pid_t thread, std::uint32_t cpu);
    bool goes_before(pid_t thread, pid_t other) const;
    const std::vector<Thread>& threads() const { return threads_; }
    // The next action of a source with a higher priority than this thread, as one step; nothing: no
    // such source has one.
    std::optional<ProducerAction> next_before(pid_t thread);
    // The same where no thread can go on; nothing: all sources are empty.
    std::optional<ProducerAction> next();
    // The thread makes a step. True: somebody else's turn may have come with it.
    bool step(pid_t thread);

  private:
    struct Source {
        double priority = 0;
        std::vector<ProducerAction> actions;  // the next one last
    };

    void draw_actions(Source& source, std::uint64_t most);
    ProducerAction random_action();
    std::uint64_t random_size();
    // Of one that is known; else as many as there are.
    std::size_t index_of(pid_t thread) const;
    // The highest one that is not empty; nullptr: all are.
    Source* highest_source();
    ProducerAction take_from(Source& source);
    // Whether this step, which is counted, is one of those that were drawn beforehand.
    bool is_change();
    void move_somebody();

    std::mt19937_64 random_;
    std::uint64_t seed_;
    std::uint32_t cpus_;
    Turning turning_;
    std::vector<Source> sources_;
    std::vector<Thread> threads_;         // by CPU
    std::vector<std::uint64_t> changes_;  // steps
    std::uint64_t one_in_ = 1;            // at random: of the steps
    std::uint64_t steps_ = 0;
    double lowest_ = 0;
    double highest_ = 2;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_TURNS_H_
