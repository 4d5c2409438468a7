// SPDX-License-Identifier: MIT
// kmesctl record --snapshot: keeps the rings mapped, and writes their content only for a reason.
#ifndef KMES_KMESCTL_SNAPSHOT_H_
#define KMES_KMESCTL_SNAPSHOT_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "kmesctl/event_text.h"

namespace kmes::kmesctl {

struct SnapshotOptions {
    std::string path;
    std::optional<Filter> match;  // an event that matches is a reason
    pid_t process = 0;            // its end is a reason; 0: none
};

// Waits for the first reason and writes the file. SIGUSR2 is always a reason. Returns the exit
// status, or throws a Failure with the reason. SIGTERM, SIGINT and SIGHUP end the wait without a
// file.
int record_snapshot(const SnapshotOptions& options);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SNAPSHOT_H_
