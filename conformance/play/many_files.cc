// SPDX-License-Identifier: MIT
//
// See many_files.h.
#include "conformance/play/many_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace kmes::conformance {

ManyFiles::ManyFiles(rlim_t needed) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit wider = before_;
    wider.rlim_cur = std::max(before_.rlim_cur, needed);
    if (wider.rlim_cur > before_.rlim_max || setrlimit(RLIMIT_NOFILE, &wider) != 0)
        stop_unsupported(fmt::format("the suite needs {} open files; the limit is {}", needed,
                                     before_.rlim_max));
}

Step with_many_files(rlim_t needed, const Steps& steps) {
    const auto play_with_files = [needed](Stage&, const std::function<void()>& play) {
        const ManyFiles files(needed);
        play();
    };
    return Around{play_with_files, steps};
}

}  // namespace kmes::conformance
