// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The number of descriptors that a producer's socket may have in unread replies. The kernel counts
// such descriptors for the user of the producer, and sends no more than RLIMIT_NOFILE of them
// (ETOOMANYREFS). They stay counted when the producer closes its end: only the client can read
// them, or close. So one client could take all of them, and no other client could attach. A reply
// that exceeds the share of its user waits until an earlier one is read.
//
//   this process's user and root    together a quarter of the limit
//   any other user                  an eighth
//   all other users                 together a quarter
//
// A reply that is larger than its share is sent when nothing else of that share is unread.
#ifndef KMES_USER_UNREAD_SHARES_H
#define KMES_USER_UNREAD_SHARES_H

#include <sys/types.h>

#include <cstddef>
#include <map>

namespace kmes {

// True for the effective user of this process, and for root.
bool is_trusted_user(uid_t user);

class UnreadShares {
  public:
    // The unread descriptors of all clients at one time.
    class Count {
      public:
        // A reply to a client of `user` has this number of unread descriptors.
        void add(uid_t user, size_t descriptors);
        // Whether a reply to a client of `user`, with this number of descriptors, is within the
        // shares.
        bool permits(uid_t user, size_t descriptors) const;

      private:
        friend class UnreadShares;
        explicit Count(size_t limit) : limit_(limit) {}

        const size_t limit_;
        std::map<uid_t, size_t> of_users_;  // other than the trusted ones
        size_t trusted_ = 0;
        size_t others_ = 0;
    };

    // Replies need no more, even if RLIMIT_NOFILE is higher.
    static constexpr size_t kMaxLimit = 8192;

    // `limit`: RLIMIT_NOFILE. Above kMaxLimit it is kMaxLimit.
    explicit UnreadShares(size_t limit);
    // With RLIMIT_NOFILE of this process.
    static UnreadShares of_this_process();

    Count begin_count() const { return Count(limit_); }

  private:
    size_t limit_;
};

}  // namespace kmes

#endif
