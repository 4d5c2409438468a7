// SPDX-License-Identifier: MIT
//
// The runner's limit of open files, for a row that makes many buffers. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_MANY_FILES_H_
#define KMES_CONFORMANCE_PLAY_MANY_FILES_H_

#include <sys/resource.h>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Raises the runner's limit of files beyond the default, for the buffers that it keeps. The testee
// has started before, and keeps its own limit. The constructor throws Stop (unsupported) if the
// limit cannot be raised.
class ManyFiles {
  public:
    explicit ManyFiles(rlim_t needed);
    ~ManyFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
    ManyFiles(const ManyFiles&) = delete;
    ManyFiles& operator=(const ManyFiles&) = delete;

  private:
    rlimit before_{};
};

// Plays the steps while the limit is raised.
Step with_many_files(rlim_t needed, const Steps& steps);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_MANY_FILES_H_
