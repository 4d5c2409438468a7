// SPDX-License-Identifier: GPL-2.0-only
//
// Processes that attack one buffer, attaching again and again, until they are told to stop; some
// are killed where they stand and replaced.
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

// A descriptor of the buffer that is to be attacked, and its capacity; called in the processes.
using Attach = std::function<std::pair<identity::Descriptor, std::uint64_t>()>;

class Crowd {
  public:
    Crowd(unsigned processes, std::uint64_t seed, Attach attach);
    ~Crowd();
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    // Kills one in the middle of whatever it does, and starts another. False where one has ended by
    // itself: no attack may do that.
    bool replace_one();
    // Each kind of attack was tried so often, by all together.
    bool has_tried_all(std::uint64_t times) const;
    // Ends them. False, with lines that say why, where a store to the data passed, or one ended by
    // itself.
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
