// SPDX-License-Identifier: MIT
//
// Probabilistic concurrency testing (PCT): whose turn it is, by priority. The actors are sources,
// each a list of what the producer does one after the other, and the threads of the testee. All get
// a priority at random, and the highest that can go on goes on; at a few steps that are drawn
// beforehand the one that has just gone falls behind all others. A mistake that needs n such
// changes is met with a probability that falls with the number of steps to the power of n, and not
// with the number of interleavings. Everything follows from the seed. Knows no stage and no ring.
#ifndef KMES_CONFORMANCE_EXPLORER_TURNS_H_
#define KMES_CONFORMANCE_EXPLORER_TURNS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "conformance/failure/schedule.h"

namespace kmes::conformance {

class Turns {
  public:
    // What a source does next.
    struct Deed {
        Action action = Action::nothing;
        std::uint64_t parameter = 0;
        std::uint32_t cpu = 0;
    };

    Turns(std::uint64_t seed, std::uint32_t cpus);

    // A thread of the testee; one that is known keeps its priority.
    void add(pid_t thread);
    bool goes_before(pid_t thread, pid_t other) const;
    const std::map<pid_t, double>& threads() const { return threads_; }
    // The next deed of a source that goes before this thread; nothing: there is none. It is a step.
    std::optional<Deed> next_before(pid_t thread);
    // The same where no thread can go on; nothing: all sources are empty.
    std::optional<Deed> next();
    // The thread makes a step. True: it has fallen behind all others with it.
    bool step(pid_t thread);

  private:
    struct Source {
        double priority = 0;
        std::vector<Deed> deeds;  // the next one last
    };

    Deed random_deed(std::uint32_t cpus);
    // The highest one that is not empty; nullptr: all are.
    Source* highest_source();
    Deed take_from(Source& source);
    double initial_priority() { return 1 + part(); }
    // From 0 to 1.
    double part() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
    // Whether this step, which is counted, is one at which somebody falls behind.
    bool is_change();

    std::mt19937_64 random_;
    std::vector<Source> sources_;
    std::map<pid_t, double> threads_;     // their priorities
    std::vector<std::uint64_t> changes_;  // steps
    std::uint64_t steps_ = 0;
    double lowest_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_TURNS_H_
