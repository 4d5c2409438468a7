// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The state that a producer leaves at its end for the next producer, so that sequence numbers and
// generations continue (E25). Also the small file that can keep it meanwhile.
//
//   kmes-resume 1
//   session 81985529216486895
//   cpu 0 sequence 1042 generation 3
//   end
#ifndef KMES_USER_RESUME_H
#define KMES_USER_RESUME_H

#include <cstdint>
#include <string>
#include <vector>

namespace kmes {

struct ResumeState {
    struct Cpu {
        uint64_t last_sequence = 0;  // the last assigned number; 0: none yet
        uint64_t generation = 0;     // the next ring has the same generation; 0: no ring yet
    };

    // The producers of one session share one series of sequence numbers on each CPU. 0: a new
    // session.
    uint64_t session = 0;
    std::vector<Cpu> cpus;

    // Writes the file atomically: a new file replaces the old one. A symbolic link is followed. A
    // device or a FIFO is written to and not replaced; ENXIO: the FIFO has no reader. Throws
    // std::system_error with the failed step and the path. EFBIG: the file is larger than
    // RLIMIT_FSIZE allows; no SIGXFSZ is delivered.
    void save(const std::string& path) const;

    // Takes the file: reads it and removes it, so that a state is used at most once. A producer
    // that crashes leaves no file. The next one then begins a new session, and no consumer mistakes
    // its numbers for old ones. Without a file it returns the empty state. Throws
    // std::system_error: EINVAL for an invalid state or a file that is not regular, which is not
    // removed; or the error of the system call.
    static ResumeState take(const std::string& path);

    std::string to_text() const;
    // Throws std::system_error EINVAL, which names the line and the expected words. `name` is for
    // that text.
    static ResumeState from_text(const std::string& text, const std::string& name);
};

}  // namespace kmes

#endif
