// SPDX-License-Identifier: MIT
//
// See open_files.h.
#include "conformance/tracer/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace kmes::conformance {
namespace {

// 0: the limit was not raised.
std::atomic<rlim_t> soft_limit_before{0};

}  // namespace

uint64_t raise_open_files(uint64_t wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = std::max<rlim_t>(before, std::min<rlim_t>(wanted, limit.rlim_max));
    if (limit.rlim_cur == before || setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
    rlim_t none = 0;
    soft_limit_before.compare_exchange_strong(none, before);  // a later call keeps the first
    return limit.rlim_cur;
}

namespace tracing {

void restore_open_files(pid_t testee) {
    const rlim_t before = soft_limit_before;
    rlimit limit{};
    if (before == 0 || prlimit(testee, RLIMIT_NOFILE, nullptr, &limit) != 0) return;
    limit.rlim_cur = before;
    prlimit(testee, RLIMIT_NOFILE, &limit, nullptr);
}

}  // namespace tracing
}  // namespace kmes::conformance
