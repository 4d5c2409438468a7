// SPDX-License-Identifier: GPL-2.0-only
//
// Processes that attack one buffer, and attach to it repeatedly. SIGKILL ends some of them at any
// point, and others start.
#ifndef KMES_KMOD_HOSTILE_ATTACKERS_H_
#define KMES_KMOD_HOSTILE_ATTACKERS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kmod/hostile/attacks.h"
#include "kmod/identity/module.h"

namespace kmes::hostile {

// Returns a descriptor of the attacked buffer, and its capacity. The child processes call it.
using Attach = std::function<std::pair<identity::Descriptor, std::uint64_t>()>;

class Attackers {
  public:
    Attackers(unsigned processes, std::uint64_t seed, Attach attach);
    ~Attackers();
    Attackers(const Attackers&) = delete;
    Attackers& operator=(const Attackers&) = delete;

    // Kills one process, and starts another. Returns false if the process had already ended, which
    // no attack may cause.
    bool replace_one();
    // Returns whether all processes together have tried each kind of attack `times` times.
    bool has_tried_all(std::uint64_t times) const;
    // Ends the processes. Prints FAILED and returns false if a store to the data succeeded or a
    // process failed. Also returns false if no store faulted, or a kind of attack was never tried.
    bool stop_and_judge();

  private:
    // In memory that the processes share.
    struct Shared {
        std::atomic<bool> is_over;
        std::atomic<std::uint64_t> tried[Attacker::kKinds];
        std::atomic<std::uint64_t> passed, faulted, failed;
    };

    pid_t start();
    void run(std::uint64_t seed);

    const Attach attach_;
    std::uint64_t next_seed_;
    Shared* shared_;
    std::vector<pid_t> processes_;
    std::uint64_t killed_ = 0;
};

}  // namespace kmes::hostile

#endif  // KMES_KMOD_HOSTILE_ATTACKERS_H_
