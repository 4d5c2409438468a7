// SPDX-License-Identifier: MIT
//
// kmesctl record --snapshot, the flight recorder: keeps the rings mapped and writes nothing, until
// there is a reason to write what they hold.
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
    pid_t process = 0;            // its death is a reason; 0: none
};

// Waits for the first reason, which SIGUSR2 always is, and writes the file. The exit status; a
// Failure with the reason. SIGTERM, SIGINT and SIGHUP end the wait without a file.
int record_snapshot(const SnapshotOptions& options);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_SNAPSHOT_H_
