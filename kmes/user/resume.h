// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// What a producer that ends leaves for the one that comes after it, so that sequence numbers and
// generations go on (E25); and the small file in which it may lie meanwhile.
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
        uint64_t last_sequence = 0;  // the number given last; 0: none yet
        uint64_t generation = 0;     // that of the next ring is the same; 0: no ring yet
    };

    // Producers of one session have one row of sequence numbers on each CPU. 0: a new session.
    uint64_t session = 0;
    std::vector<Cpu> cpus;

    // Writes the file whole or not at all: a new one is put in the place of the old. A symbolic
    // link is followed. A device or a FIFO is written to and stays; ENXIO: nobody reads the FIFO.
    // std::system_error: which step failed, on which path. EFBIG: the file is larger than
    // RLIMIT_FSIZE allows; no SIGXFSZ is delivered.
    void save(const std::string& path) const;

    // Takes the file: reads it and removes it, so that a state is resumed from at most once. (A
    // producer that crashes leaves none: the next one begins a new session, and no consumer takes
    // its numbers for old ones.) No file: the empty state. std::system_error: EINVAL for what is no
    // state, or no regular file, which is then left where it was; or the error of the system call.
    static ResumeState take(const std::string& path);

    std::string to_text() const;
    // std::system_error EINVAL, naming the line and what was wanted. `name` is for that text.
    static ResumeState from_text(const std::string& text, const std::string& name);
};

}  // namespace kmes

#endif
