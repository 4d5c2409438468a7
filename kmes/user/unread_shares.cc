// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// Shares of the descriptors in unread replies. See unread_shares.h.
#include "kmes/user/unread_shares.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace kmes {

bool is_trusted_user(uid_t user) {
    return user == geteuid() || user == 0;
}

UnreadShares::UnreadShares(size_t limit) : limit_(std::min(limit, kMaxLimit)) {}

UnreadShares UnreadShares::of_this_process() {
    struct rlimit limit = {};

    // Without a known limit each share permits one reply at a time.
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return UnreadShares(0);
    return UnreadShares(std::min<rlim_t>(limit.rlim_cur, kMaxLimit));
}

bool UnreadShares::Count::permits(uid_t user, size_t descriptors) const {
    if (is_trusted_user(user)) return trusted_ == 0 || trusted_ + descriptors <= limit_ / 4;
    if (others_ == 0) return true;
    const auto of_user = of_users_.find(user);

    return others_ + descriptors <= limit_ / 4 &&
           (of_user == of_users_.end() || of_user->second + descriptors <= limit_ / 8);
}

void UnreadShares::Count::add(uid_t user, size_t descriptors) {
    if (descriptors == 0) return;
    if (is_trusted_user(user)) {
        trusted_ += descriptors;
        return;
    }
    others_ += descriptors;
    of_users_[user] += descriptors;
}

}  // namespace kmes
