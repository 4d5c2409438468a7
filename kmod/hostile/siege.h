// SPDX-License-Identifier: GPL-2.0-only
//
// Hostile consumers on one CPU's buffer while all CPUs emit (E13): in a world, and on the real
// rings.
#ifndef KMES_KMOD_HOSTILE_SIEGE_H_
#define KMES_KMOD_HOSTILE_SIEGE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "kmod/hostile/crowd.h"

namespace kmes::hostile {

struct Options {
    std::uint64_t seed = 1;
    unsigned events = 3000;    // of each CPU, at least
    std::uint64_t times = 30;  // each kind of attack, at least
    int planted_cpu = -1;  // of the world: one byte of its data is changed, which must be noticed
};

// Collects failures from any thread, and prints them at once.
class Failures {
  public:
    void add(const std::string& what);
    bool is_empty() const { return count_ == 0; }

  private:
    std::mutex lock_;
    std::atomic<unsigned> count_{0};
};

// Kills attackers and starts others while any CPU emits.
void besiege(Crowd& crowd, const std::atomic<unsigned>& emitting, Failures& failures);

// Returns false, and prints why, if anything was wrong.
bool play_world(const Options& options);
bool play_real(const Options& options);

}  // namespace kmes::hostile

#endif  // KMES_KMOD_HOSTILE_SIEGE_H_
