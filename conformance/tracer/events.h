// SPDX-License-Identifier: MIT
//
// The events of the tracer: one struct for each kind of testee action that may have to be judged.
// Facts only, no verdicts. The thread of an event stays stopped until the next Tracer::wait. After
// Tracer::hold it stays stopped until Tracer::release.

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

// The place in the program of a system call. Empty, with a null stack, unless
// TracerOptions::keep_stacks.
struct CallSite {
    CodePlace code;
    std::shared_ptr<const tracing::StackSnapshot> stack{};  // for CallReader
};

// A system call by which the testee removed memory from its address space.
struct Removal {
    pid_t tid = 0;
    const char* call = "munmap";  // or "mremap", or "mmap" with MAP_FIXED
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    CallSite site{};  // always with a stack

    // "removed by thread 12 with munmap(0x7f0000000000, 4096) at drain() ring.c:9 (via munmap)"
    std::string describe() const;
};

// An argument of kmes_attach whose memory the kernel cannot write.
struct BadPointer {
    std::string argument;  // its name: "fds"
    uint64_t address = 0;  // the first that cannot be written, or one after it
    bool is_mapped = false;
    std::optional<Removal> removal{};  // of that memory, if known

    std::string describe() const;
};

// A `kmes_attach` call has been served (held at the exit of the call). `error` is the errno that
// the testee gets, 0 for success.
struct Attached {
    pid_t pid = 0;
    pid_t tid = 0;
    AttachRequest request;
    int error = 0;
    std::vector<BufferId> buffers;  // in the order of `fds`; empty unless error == 0
    std::vector<int> fds;
    uint64_t capacity_bytes = 0;  // as written to *capacity
    int32_t count_written = -1;   // the number of CPUs written to the testee; -1 if none
    int32_t result = 0;           // the value that the call returned, if `error` is 0
    std::optional<BadPointer> bad_pointer{};  // the reason, if `error` is EFAULT
    CallSite site{};
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
    bool is_refused = false;  // EINVAL, because of ServedBuffer::takes_only_whole_mapping
    Mapping mapping;          // valid if error == 0
    CallSite site{};
};

enum class TimeLimit { kNone, kRelative, kAbsolute };

// One ring word that a thread waits on.
struct FutexWord {
    BufferPlace place;            // offset_bytes is 128 for the correct word
    uint64_t address = 0;         // in the testee
    uint32_t value_expected = 0;  // the value that the call expects
    uint32_t value_there = 0;     // the value read by the tracer at the entry stop
    bool is_private = false;      // E17: such a wait is never woken by the producer
    uint32_t size_bytes = 4;      // futex_waitv and futex2 could use others
};

// A thread enters a futex wait, and at least one of its words is in a served buffer. Held at the
// entry: the kernel has not loaded the word yet.
struct FutexWait {
    pid_t tid = 0;
    uint64_t wait_id = 0;  // the same in the FutexWaitEnd that follows
    long call_number = 0;  // SYS_futex, SYS_futex_waitv, or 455 (futex_wait of Linux 6.7)
    // FUTEX_WAIT, FUTEX_WAIT_BITSET, ... without flags; FUTEX_WAIT for the other calls.
    int operation = 0;
    std::vector<FutexWord> words;  // the ring words of the call
    size_t words_in_call = 1;      // all words of the call (futex_waitv may mix)
    uint32_t bitset = 0xffffffff;
    TimeLimit limit = TimeLimit::kNone;
    int64_t limit_ns = 0;  // relative: a duration; absolute: a time of limit_clock
    int limit_clock = 1;   // CLOCK_REALTIME or CLOCK_MONOTONIC
    CallSite site{};
};

// A futex wait has ended (held at the exit). A result of 0 or a positive index (futex_waitv) means
// woken. A negative result is -errno: -EAGAIN if the value differed, -ETIMEDOUT, or -EINTR by a
// signal with a handler. A wait that a stop or SA_RESTART interrupts continues under the same
// wait_id and is not reported again. If the thread ends during the wait (pthread_cancel, execve in
// another thread), there is no result, and no thread is held.
struct FutexWaitEnd {
    pid_t tid = 0;
    uint64_t wait_id = 0;
    int64_t result = 0;
    bool thread_ended = false;
};

// Any other futex operation of the testee on a ring word (FUTEX_WAKE and all others), held at the
// entry.
struct FutexOther {
    pid_t tid = 0;
    int operation = 0;
    bool is_private = false;
    BufferPlace place;
    uint32_t value = 0;  // third argument: for FUTEX_WAKE the number of threads to wake
};

// A store to a page of a served buffer that the testee may not write. The store has not happened.
// The thread gets SIGSEGV when it resumes, as from the kernel.
struct WriteFault {
    pid_t tid = 0;
    BufferAccess access;
    uint64_t address = 0;
    CodePlace code;
    std::shared_ptr<const tracing::StackSnapshot> stack{};  // as in GuardHit
};

// The next instruction of the thread would touch a guarded page. It has not run. See
// PageGuards::step.
struct GuardHit {
    pid_t tid = 0;
    uint64_t address = 0;  // the faulting address
    BufferPlace place;     // of that address
    // All memory operands of the instruction in served buffers.
    std::vector<BufferAccess> accesses;
    CodePlace code;
    // For CallReader; null unless TracerOptions::keep_stacks.
    std::shared_ptr<const tracing::StackSnapshot> stack{};

    // Whether one of the accesses touches some of these bytes of a buffer's layout.
    bool touches(uint64_t offset_bytes, uint64_t bytes = 1) const {
        for (const BufferAccess& access : accesses) {
            if (access.touches(offset_bytes, bytes)) return true;
        }
        return false;
    }
};

// The testee made a child process (not a thread). The child is traced and keeps running. It is
// killed at the end.
struct Forked {
    pid_t parent_tid = 0;
    pid_t child_pid = 0;
    bool is_vfork = false;
    // The child shares the parent's memory, until exec or exit if it is a vfork.
    bool shares_memory = false;
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
        its_rights,      // user, root folder or seccomp filter of the testee prevent a call of the
                         // tracer
        memory_removed,  // the testee has removed memory of the tracer
        too_many_processes,
        task_refused,  // a limit of the machine kept the testee from making a thread or a process
        stopped,       // another process, or the terminal, has stopped a process of the run
        not_followed,  // the tracer cannot follow an action of the testee; neither is at fault
        stuck,         // a thread made no progress in a call or a step of the tracer: `what` names
                       // its instruction
    };
    Reason reason = Reason::none_known;
};

// A synchronous fatal signal, just before its delivery.
struct Fault {
    int signal = 0;
    int code = 0;  // si_code
    pid_t tid = 0;
    bool has_address = false;  // SIGSEGV, SIGBUS, SIGILL, SIGFPE from the processor
    uint64_t address = 0;
    // The address is the thread's rseq area, which the kernel cannot access. It needs the area
    // before the thread can execute an instruction.
    bool is_in_rseq_area = false;
    CodePlace code_place;
    // Set if the instruction is in a library and the signal ends the process: the innermost call in
    // the program's own file. Empty if the stack cannot be unwound to there.
    std::optional<CodePlace> called_by;
    std::shared_ptr<const tracing::StackSnapshot> stack{};  // for CallReader; may be null
    // The mapping of a served buffer that contains the address, or the nearest one within 1 GiB. An
    // address in a removed mapping has none. distance_bytes is 0 inside, negative before the first
    // byte, and positive after the last (1: the next byte).
    std::optional<Mapping> nearest_mapping;
    int64_t distance_bytes = 0;
    // Without a nearest mapping: the last removed mapping of a served buffer that had the address.
    std::optional<Mapping> removed_mapping;
    // The call that removed the memory, if the address is in removed memory and the call is known.
    std::optional<Removal> removal;

    std::string describe() const;
};

enum class EndKind {
    kExited,        // exit_status is valid
    kKilled,        // signal is valid, and fault if there was one
    kNotStarted,    // error is valid: ENOENT, EACCES, ENOEXEC, ...; text names the file and the
                    // remedy
    kNotTraceable,  // ptrace is refused (Yama, a container); text says why
};

// The run is over: the testee (or, if none ever attached, every process of the run) has ended.
struct Ended {
    EndKind kind = EndKind::kExited;
    pid_t pid = 0;
    pid_t thread = 0;  // the thread that called exit_group or got the fatal signal; 0: not known
    int exit_status = 0;
    int signal = 0;
    // The signal came from another process, or from the kernel for a limit of the machine. This is
    // also assumed of each SIGKILL, because its sender cannot be known.
    bool is_from_outside = false;
    int error = 0;
    bool attached = false;  // some process called kmes_attach, whatever the answer
    bool mapped = false;    // some served fd was mapped
    // A sanitizer in the testee gave up because it is traced. (Standard error has LeakSanitizer's
    // message.)
    bool sanitizer_needs_ptrace = false;
    // The last fatal synchronous signal, also if a handler turned it into an exit.
    std::optional<Fault> fault;
    std::string text;  // one line for people
};

using TracerEvent =
    std::variant<TimedOut, Attached, ForeignAttach, Mapped, FutexWait, FutexWaitEnd, FutexOther,
                 WriteFault, GuardHit, Forked, Executed, OutputLimit, TracerTrouble, Ended>;

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_EVENTS_H_
