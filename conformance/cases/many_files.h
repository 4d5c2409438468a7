// SPDX-License-Identifier: MIT
//
// Room for the files of a case with hundreds of buffers.
#ifndef KMES_CONFORMANCE_CASES_MANY_FILES_H_
#define KMES_CONFORMANCE_CASES_MANY_FILES_H_

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "conformance/cases/play.h"

namespace kmes::conformance {

// More files than the default limit allows, for the buffers that the runner keeps. The testee has
// been started before, and keeps its own limit.
class ManyFiles {
  public:
    explicit ManyFiles(rlim_t needed) {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit wider = before_;
        wider.rlim_cur = std::max(before_.rlim_cur, needed);
        if (wider.rlim_cur > before_.rlim_max || setrlimit(RLIMIT_NOFILE, &wider) != 0)
            stop_unsupported(fmt::format("the suite needs {} open files; the limit is {}", needed,
                                         before_.rlim_max));
    }
    ~ManyFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
    ManyFiles(const ManyFiles&) = delete;
    ManyFiles& operator=(const ManyFiles&) = delete;

  private:
    rlimit before_{};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_MANY_FILES_H_
