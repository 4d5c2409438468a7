// SPDX-License-Identifier: MIT
//
// What the tracer reports: one struct for each kind of thing that a testee does and that somebody
// may have to judge. Facts only, no verdicts. In every event of a thread that thread stands still
// until the next Tracer::wait, or until Tracer::release where Tracer::hold was called for it.

#ifndef CONFORMANCE_TRACER_EVENTS_H_
#define CONFORMANCE_TRACER_EVENTS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// Nothing happened before the deadline.
struct TimedOut {};

// A `kmes_attach` call has been served (held at the exit of the call). `error` is the errno that it
// got, 0 for success.
struct Attached {
    pid_t pid = 0;
    pid_t tid = 0;
    AttachRequest request;
    int error = 0;
    std::vector<BufferId> buffers;  // in the order of `fds`; empty unless error == 0
    std::vector<int> fds;
    uint64_t capacity_bytes = 0;  // as written to *capacity
    int32_t count_written = -1;   // the number of CPUs that was written; -1 if none was
    int32_t result = 0;           // what the call returned, where `error` is 0
};

// A process other than the testee called `kmes_attach`; it got EPERM.
struct ForeignAttach {
    pid_t pid = 0;
};

// An mmap of a served fd, at its exit (held there). `error` is its errno; on success the mapping is
// in place.
struct Mapped {
    pid_t tid = 0;
    BufferId buffer = 0;
    MapRequest request;
    MapDeviation deviation;
    int error = 0;
    Mapping mapping;  // valid if error == 0
};

enum class TimeLimit { kNone, kRelative, kAbsolute };

// One ring word that a thread waits on.
struct FutexWord {
    BufferPlace place;            // offset_bytes is 128 for the right word
    uint64_t address = 0;         // in the testee
    uint32_t value_expected = 0;  // the value it sleeps on
    uint32_t value_there = 0;     // the value read by the tracer at the entry stop
    bool is_private = false;      // E17: such a wait is never woken by the producer
    uint32_t size_bytes = 4;      // futex_waitv and futex2 could ask for others
};

// A thread enters a futex wait in which at least one word lies in a served buffer. Held at the
// entry: the kernel has not looked at the word yet.
struct FutexWait {
    pid_t tid = 0;
    uint64_t wait_id = 0;  // the same in the FutexWaitEnd that follows
    long call_number = 0;  // SYS_futex, SYS_futex_waitv, or 455 (futex_wait of Linux 6.7)
    int operation =
        0;  // FUTEX_WAIT, FUTEX_WAIT_BITSET, ... without flags; FUTEX_WAIT for the other calls
    std::vector<FutexWord> words;  // the ring words among those waited for
    size_t words_in_call = 1;      // all words of the call (futex_waitv may mix)
    uint32_t bitset = 0xffffffff;
    TimeLimit limit = TimeLimit::kNone;
    int64_t limit_ns = 0;  // relative: a duration; absolute: a time of limit_clock
    int limit_clock = 1;   // CLOCK_REALTIME or CLOCK_MONOTONIC
};

// The wait is over (held at the exit). 0 or a positive index (futex_waitv): woken; negative: -errno
// (-EAGAIN: the value differed; -ETIMEDOUT; -EINTR: by a signal with a handler). A wait that a stop
// or SA_RESTART interrupts goes on under the same wait_id and is not reported again.
// One whose thread ends in it (pthread_cancel, execve in another thread) has no result, and nobody
// is held.
struct FutexWaitEnd {
    pid_t tid = 0;
    uint64_t wait_id = 0;
    int64_t result = 0;
    bool thread_ended = false;
};

// Any other futex operation of the testee on a ring word (FUTEX_WAKE and all the rest), held at the
// entry.
struct FutexOther {
    pid_t tid = 0;
    int operation = 0;
    bool is_private = false;
    BufferPlace place;
    uint32_t value = 0;  // third argument: for FUTEX_WAKE how many to wake
};

// A store to a page of a served buffer that the testee may not write. The store has not happened;
// when the thread goes on it gets SIGSEGV as it would from the kernel.
struct WriteFault {
    pid_t tid = 0;
    BufferAccess access;
    uint64_t address = 0;
    CodePlace code;
    std::shared_ptr<const tracing::StackSnapshot> stack{};  // as in GuardHit
};

// The next instruction of the thread would touch a guarded page. It has not happened. See
// Tracer::step_guarded.
struct GuardHit {
    pid_t tid = 0;
    uint64_t address = 0;  // the faulting address
    BufferPlace place;     // of that address
    std::vector<BufferAccess>
        accesses;  // all memory operands of the instruction that lie in served buffers
    CodePlace code;
    // For CallReader; null unless TracerOptions::keep_stacks.
    std::shared_ptr<const tracing::StackSnapshot> stack{};

    // One of them touches some of these bytes of a buffer's layout.
    bool touches(uint64_t offset_bytes, uint64_t bytes = 1) const {
        for (const BufferAccess& access : accesses) {
            if (access.touches(offset_bytes, bytes)) return true;
        }
        return false;
    }
};

// The testee made a child process (not a thread). The child is traced, runs on, and is killed at
// the end.
struct Forked {
    pid_t parent_tid = 0;
    pid_t child_pid = 0;
    bool is_vfork = false;
    bool shares_memory = false;  // the parent's, for good if it is no vfork
};

// The testee replaced its program after it had attached. All mappings are gone.
struct Executed {
    pid_t pid = 0;
};

// One of the captured files grew past TracerOptions::output_limit_bytes since it was last read.
// Sent once for each file.
struct OutputLimit {
    enum class File { kReport, kStandardOutput, kStandardError } file = File::kReport;
    uint64_t unread_bytes = 0;
};

// The tracer could not do its own work (not the testee's fault): a suite error.
struct TracerTrouble {
    pid_t tid = 0;
    std::string what;
    enum class Reason : std::uint8_t {
        none_known,
        its_rights,    // user, root folder, seccomp filter stand before what is done in the testee
        not_followed,  // it does what the tracer does not follow: no fault of either
    };
    Reason reason = Reason::none_known;
};

// A synchronous fatal signal as it was about to be delivered.
struct Fault {
    int signal = 0;
    int code = 0;  // si_code
    pid_t tid = 0;
    bool has_address = false;  // SIGSEGV, SIGBUS, SIGILL, SIGFPE from the processor
    uint64_t address = 0;
    CodePlace code_place;
    // Where that is in a library and the signal ends the process: the innermost call in the file
    // that the program was started from, if the stack can be unwound to there.
    std::optional<CodePlace> called_by;
    std::shared_ptr<const tracing::StackSnapshot> stack{};  // for CallReader; may be null
    // If the address lies in a mapping of a served buffer, or (in none that was removed, and)
    // within 1 GiB before or behind one and nearer to it than to any other: which, and how far.
    // distance_bytes is 0 inside, negative before the first byte, positive (1 = the next byte)
    // behind the last.
    std::optional<Mapping> nearest_mapping;
    int64_t distance_bytes = 0;
    // Otherwise, if a mapping of a served buffer was there that has been removed: the last one.
    std::optional<Mapping> removed_mapping;

    std::string describe() const;
};

enum class EndKind {
    kExited,      // exit_status holds
    kKilled,      // signal holds, fault where there was one
    kNotStarted,  // error holds: ENOENT, EACCES, ENOEXEC, ...; text says which file and what would
                  // be right
    kNotTraceable,  // ptrace is refused (Yama, a container); text says why
};

// The run is over: the testee (or, if none ever attached, every process of the run) has ended.
struct Ended {
    EndKind kind = EndKind::kExited;
    pid_t pid = 0;
    pid_t thread = 0;  // that called exit_group, or got the fatal signal; 0: none is known
    int exit_status = 0;
    int signal = 0;
    int error = 0;
    bool attached = false;  // some process called kmes_attach, with whatever answer
    bool mapped = false;    // some served fd was mapped
    // A sanitizer in the testee gave up because it is traced (LeakSanitizer's message stands on
    // standard error).
    bool sanitizer_needs_ptrace = false;
    std::optional<Fault>
        fault;  // the last fatal synchronous signal, also if a handler turned it into an exit
    std::string text;  // one line for people
};

using TracerEvent =
    std::variant<TimedOut, Attached, ForeignAttach, Mapped, FutexWait, FutexWaitEnd, FutexOther,
                 WriteFault, GuardHit, Forked, Executed, OutputLimit, TracerTrouble, Ended>;

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_EVENTS_H_
