// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The emitters of a producer's sockets, and the amount that each has emitted. A client is the
// process that connected, by SO_PEERCRED. Knows no socket and no ring.
//
// The number of entries is bounded, whatever clients do: each fork can be a new client. A count
// that is not kept for one client is part of a sum, so the totals are exact.
#ifndef KMES_USER_EMITTER_COUNTS_H
#define KMES_USER_EMITTER_COUNTS_H

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace kmes {

struct EmitterCount {
    pid_t process = 0;  // 0: of another PID namespace
    uid_t user = 0;
    uint64_t emitters = 1;  // the number of emitters in this sum
    uint64_t events = 0;
    uint64_t bytes = 0;    // of the whole events, as in Statistics
    uint64_t refused = 0;  // calls with an error
};

class EmitterCounts {
  public:
    static constexpr size_t kMost = 256;

    // A process with the number and the user of an earlier one continues its count, unless that one
    // was found to have ended meanwhile. Without memory the count is part of the sum.
    void add(const EmitterCount& more) noexcept;

    // Returns first the sum of those that have ended, and of those that were silent for longest
    // when there were more than kMost. The others follow, the latest first.
    std::vector<EmitterCount> snapshot();

  private:
    using Key = std::pair<pid_t, uid_t>;
    using Latest = std::list<EmitterCount>;

    static void add_to(EmitterCount* sum, const EmitterCount& more);
    Latest::iterator find_or_make(const EmitterCount& more);
    void fold(Latest::iterator emitter);

    std::mutex mutex_;
    Latest latest_;  // the latest emitter comes first
    std::map<Key, Latest::iterator> places_;
    EmitterCount earlier_ = {0, 0, 0, 0, 0, 0};
};

}  // namespace kmes

#endif
