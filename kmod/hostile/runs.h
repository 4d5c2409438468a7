// SPDX-License-Identifier: GPL-2.0-only
//
// Hostile consumers on one CPU's buffer while all CPUs emit (E13): in an instance, and on the real
// rings.
#ifndef KMES_KMOD_HOSTILE_RUNS_H_
#define KMES_KMOD_HOSTILE_RUNS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "kmod/hostile/attackers.h"

namespace kmes::hostile {

struct Options {
    std::uint64_t seed = 1;
    unsigned events = 3000;    // minimum of each CPU
    std::uint64_t times = 30;  // minimum of each kind of attack
    int planted_cpu = -1;      // a CPU of the instance, one of whose data bytes is changed
};

// Prints and counts failures, from any thread.
class Failures {
  public:
    void add(const std::string& what);
    bool is_empty() const { return count_ == 0; }

  private:
    std::mutex lock_;
    std::atomic<unsigned> count_{0};
};

// Kills and restarts attackers in turn, until `emitting` is 0.
void kill_and_restart(Attackers& attackers, const std::atomic<unsigned>& emitting,
                      Failures& failures);

// Each returns whether the run passed, and prints its failures.
bool play_instance(const Options& options);
bool play_real(const Options& options);

}  // namespace kmes::hostile

#endif  // KMES_KMOD_HOSTILE_RUNS_H_
