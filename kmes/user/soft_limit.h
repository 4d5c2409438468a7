// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// For tests: a lower limit of this process.
#ifndef KMES_USER_SOFT_LIMIT_H_
#define KMES_USER_SOFT_LIMIT_H_

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace kmes {

// A lower soft limit, until the end of the scope.
class SoftLimit {
  public:
    SoftLimit(__rlimit_resource_t resource, rlim_t value) : resource_(resource) {
        EXPECT_EQ(0, getrlimit(resource, &before_));
        struct rlimit lower = {value, before_.rlim_max};

        EXPECT_EQ(0, setrlimit(resource, &lower));
    }
    ~SoftLimit() { EXPECT_EQ(0, setrlimit(resource_, &before_)); }
    SoftLimit(const SoftLimit&) = delete;
    SoftLimit& operator=(const SoftLimit&) = delete;

  private:
    const __rlimit_resource_t resource_;
    struct rlimit before_ = {};
};

}  // namespace kmes

#endif
