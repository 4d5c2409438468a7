// SPDX-License-Identifier: MIT
//
// The table of commands. See command.h.
#include "kmesctl/command.h"

namespace kmes::kmesctl {

const std::vector<CommandEntry>& commands() {
    static const std::vector<CommandEntry> table = {
        {"serve", "serve a producer in userspace, until SIGTERM or SIGINT", declare_serve},
        {"record", "record the events of all CPUs to a file", declare_record},
        {"convert", "convert a recorded file to CTF, CSV, JSON or Perfetto", declare_convert},
        {"replay", "emit the events of a recorded file again", declare_replay},
        {"emit", "emit events on the current CPU", declare_emit},
        {"print", "print events as they come, all CPUs merged", declare_print},
        {"top", "show rates, losses, fill and wakes", declare_top},
        {"emitters", "show which processes have emitted by a socket, and how much",
         declare_emitters},
        {"resize", "configure the buffers of all CPUs (kernel module)", nullptr},
        {"registry-available", "end the boot phase (kernel module)", nullptr},
        {"statistics", "print the counters of each CPU (kernel module)", nullptr},
        {"list", "print the existing buffers (kernel module)", nullptr},
    };
    return table;
}

}  // namespace kmes::kmesctl
