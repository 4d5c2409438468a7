// SPDX-License-Identifier: GPL-2.0-only
//
// Processes that attack one buffer, and attach again and again, until they are told to stop. Some
// are killed at any point and replaced.
#ifndef KMES_KMOD_HOSTILE_CROWD_H_
#define KMES_KMOD_HOSTILE_CROWD_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kmod/hostile/attacks.h"
#include "kmod/identity/module.h"

namespace kmes::hostile {

// Returns a descriptor of the attacked buffer, and its capacity. Called in the processes.
using Attach = std::function<std::pair<identity::Descriptor, std::uint64_t>()>;

class Crowd {
  public:
    Crowd(unsigned processes, std::uint64_t seed, Attach attach);
    ~Crowd();
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    // Kills one process at any point, and starts another. Returns false if one has ended by itself,
    // which no attack may cause.
    bool replace_one();
    // Whether all processes together have tried each kind of attack `times` times.
    bool has_tried_all(std::uint64_t times) const;
    // Ends the processes. Returns false and prints why if a store to the data succeeded, or if one
    // had ended by itself.
    bool stop_and_judge();

  private:
    // Shared with the processes.
    struct Shared {
        std::atomic<bool> is_over;
        std::atomic<std::uint64_t> tried[Attacker::kKinds];
        std::atomic<std::uint64_t> passed, faulted, failed;
    };

    pid_t start();
    void live(std::uint64_t seed);

    const Attach attach_;
    std::uint64_t next_seed_;
    Shared* shared_;
    std::vector<pid_t> processes_;
    std::uint64_t killed_ = 0;
};

}  // namespace kmes::hostile

#endif  // KMES_KMOD_HOSTILE_CROWD_H_
