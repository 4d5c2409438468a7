// SPDX-License-Identifier: MIT
//
// Tracer: starts an unmodified program under ptrace (and seccomp, where no outer filter outranks
// it), serves it system call 1091, places true double mappings of the runner's buffers in it, and
// reports what it does with them. It knows nothing of events, cases or the oracle, and never
// judges.
//
// The sequence of a run:
//
//   Tracer tracer(options);
//   tracer.set_attach_handler(...);        // is asked at each kmes_attach; may call add_buffer
//   tracer.start({"./consumer", "arg"});
//   for (;;) {
//       TracerEvent event = tracer.wait(deadline);   // the thread of the event stands still ...
//       ...                                    // ... while the runner looks, emits, swaps
//   }                                          // ... and goes on at the next wait(), unless
//   hold(tid)
//
// Rules:
// - One thread makes and uses a Tracer (ptrace belongs to a thread), one Tracer at a time in that
// thread, and that thread
//   has no other child processes. Other threads of the runner may exist. SIGCHLD is blocked in
//   the thread and its action is the default for the life of the object; both are put back. The
//   signal SIGRTMAX - 3 ends the waits: its handler stays in the process.
// - Every process of the run is traced, through fork, vfork, clone and exec. The first one that
// calls 1091 is the testee. All are killed when the
//   Tracer goes, also when the runner dies.
// - Nothing is inherited by the testee but standard input (/dev/null), standard output and error
// (captured), and the
//   report file (descriptor 3, named in KMES_REPORT_FD). It leads a session of its own.
//
// How it is done. 1091 is turned into openat("/proc/<runner>/fd/N") at its entry, for each fd; an
// mmap of such an fd (known by device and inode, so a dup of it counts as well) gets the data pages
// laid over it twice by further calls injected at its exit, through a descriptor that is open for
// reading only, so that mprotect cannot make them writable. Calls are injected by setting registers
// at a stop, with the thread's signals blocked; addresses stay where the kernel puts them.
//
// What it cannot see: io_uring's futex operations; system calls that reach guarded pages through
// deeper structures, or by io_uring (they get EFAULT; plain pointers, iovec, the msghdr of sendmsg
// and futex_waitv vectors are redirected); processes made by clone3 with CLONE_UNTRACED; 32-bit
// programs. A guard that is hit while the thread blocks or ignores SIGSEGV resets that thread's
// SIGSEGV action to the default (the kernel does). Guards want report_futex on: a timed wait that
// they interrupt could not be begun again otherwise. A testee with a seccomp filter of its own must
// let through the calls that are injected (openat, mmap, munmap, mprotect, close, getpid). x86-64
// only: elsewhere every run gives one Ended{kNotTraceable}.

#ifndef CONFORMANCE_TRACER_TRACER_H_
#define CONFORMANCE_TRACER_TRACER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

// How system calls of interest are seen.
enum class Interception {
    kAutomatic,  // kSeccomp unless an outer filter outranks it (probed once in a process)
    kSeccomp,    // SECCOMP_RET_TRACE: only the calls of interest stop
    kEveryCall,  // PTRACE_SYSCALL: every call stops twice; works below any outer filter
};

// How guarded accesses are seen before they happen.
enum class Stepping {
    kAutomatic,    // guard pages; single steps where they are refused (a seccomp filter, say)
    kGuardPages,   // page protections: only accesses to guarded pages stop
    kSingleStep,   // every instruction of the testee is looked at while anything is guarded
    kWatchpoints,  // kSingleStep, each step checked against the processor's watchpoints
};

// What the processor's watchpoints said of the steps (Stepping::kWatchpoints). They lie on
// generation, write_pos, tail_pos and the notification fields of one guarded metadata page.
struct WatchCheck {
    uint64_t confirmed = 0;    // accesses that both saw
    uint64_t unconfirmed = 0;  // that the stepper saw, and the processor did not tell (it forgets)
    std::string unseen;        // the first that only the processor saw, for people
    std::string unavailable;   // why there are no watchpoints here
};

struct TracerOptions {
    Interception interception = Interception::kAutomatic;
    // Installs an outer filter in the testee that answers unknown numbers with ENOSYS, as
    // containers do. For tests.
    bool simulate_outer_filter = false;
    // Stop and report futex operations of the testee on ring words.
    bool report_futex = true;
    // Added to or replacing variables of the runner's environment: "NAME=value".
    std::vector<std::string> extra_environment;
    // Unread bytes of a captured file at which OutputLimit is sent (and standard output and error
    // are thinned out).
    uint64_t output_limit_bytes = 64u << 20;
    // How much of standard output and of standard error is kept to be shown: the first and the last
    // half of this.
    size_t shown_output_bytes = 64u << 10;
    // The testee and the thread of the Tracer on one processor, until the Tracer goes: a stop
    // then involves one processor only, and takes a fraction of the time.
    bool pin_to_one_processor = false;
    // The processor on which testee and Tracer take turns; -1: the current one of the Tracer.
    int processor = -1;
    Stepping stepping = Stepping::kAutomatic;
    // kWatchpoints: what the stepper has seen counts as not seen. For tests.
    bool simulate_blind_stepper = false;
    // Drop the N-th resume of a thread (0: none). For tests.
    uint64_t simulate_lost_resume = 0;
    // Only the first thread of a process is counted: while it stands, nothing ends that process.
    bool lose_resume_of_leader = false;
    // Each GuardHit has the top of the thread's stack, from which CallReader finds the callers.
    bool keep_stacks = false;
    // The testee's memory is at the same addresses in every run.
    bool fixed_addresses = false;
};

// What a thread is doing now.
enum class Activity {
    kRunning,  // on a processor or ready to be
    kBlocked,  // asleep in a system call
    kHeld,     // stopped by the tracer, or a stop of it has not been reported yet
    kEnded,    // gone, or going
};

struct ThreadState {
    pid_t tid = 0;
    Activity activity = Activity::kRunning;
    long call_number = -1;  // kBlocked: the system call, -1 for a page fault and the like
    uint64_t arguments[6] = {};
    // kBlocked: does the kernel wake it by itself after a time? (A futex wait without a limit does
    // not; a sleep does.)
    TimeLimit limit = TimeLimit::kNone;
    int64_t limit_ns = 0;  // as given in the call; 0 if not known (a restarted call)
    int limit_clock = 1;   // for kAbsolute
    std::vector<FutexWord>
        words;  // kBlocked in a futex wait: its ring words, with the values that stand there now
    bool is_restarted = false;  // in restart_syscall: a timed call that was interrupted by a stop
    // kBlocked: on a file that the kernel makes ready by itself (a timerfd, an io_uring, a device).
    bool is_up_to_kernel = false;
    // The call waits for what somebody outside the run may do: at a socket, for a lock of files.
    bool is_up_to_others = false;
};

// It uses no processor: asleep, or no more (a first thread stays for as long as others live).
inline bool is_out_of_the_way(const ThreadState& thread) {
    return thread.activity == Activity::kBlocked || thread.activity == Activity::kEnded;
}

struct Inspection {
    std::vector<ThreadState> threads;  // of the testee's process
    // Two looks in a row saw every thread asleep, and none had run between: at one moment all were
    // blocked.
    bool all_blocked = false;
    // all_blocked and none of them ever wakes without somebody else's doing.
    bool all_blocked_for_good = false;
    // But somebody outside the run may end a call (is_up_to_others), or setitimer, whose timers
    // nobody tells: a handler of SIGALRM is there.
    bool others_may_end_it = false;
    // Another process of the run (a wrapper, a forked child) is alive: it could wake the testee
    // through a pipe, say.
    bool other_processes = false;
};

// What an inline handler says to a guarded access.
enum class GuardAnswer {
    kStep,   // do it and go on, without an event (nothing is left to do if the handler has stepped)
    kEvent,  // give it as an event of wait()
};
using GuardHandler = std::function<GuardAnswer(const GuardHit&)>;

// The result of one guarded access that was let happen.
struct GuardStep {
    enum class Outcome {
        kDone,        // the instruction has run (of a rep string operation: as many elements as
                      // the accesses say)
        kWriteFault,  // it was a store to a page that may not be written: a WriteFault event
                      // follows
        kOtherFault,  // it raised another signal, which will be delivered
        kThreadGone,
    } outcome = Outcome::kDone;
    // How it was done. (The faster first; all are the same to the testee.)
    enum class Way {
        kNone,
        kEmulated,    // executed by the runner on its own mapping, atomically where it is atomic
        kRedirected,  // one step with the address led to a mapping that is not guarded
        kProtected,   // one step with the guards open and all other threads stopped
        kStepped,     // one step (Stepping::kSingleStep)
    } way = Way::kNone;
    std::vector<BufferAccess> accesses;  // as in the GuardHit, or less of a rep string operation
                                         // that ended early
    // Of the first access, if it is at most 8 bytes: what stood there before and after.
    uint64_t value_before = 0;
    uint64_t value_after = 0;
    // Of step_guarded_torn: so many bytes were read before `between` was called.
    uint32_t split_bytes = 0;
};

// What a thread that stands still will execute next.
struct NextInstruction {
    CodePlace code;
    bool is_full_barrier = false;  // orders an earlier store before a later load (E1)
    bool is_system_call = false;
};

class Tracer {
  public:
    explicit Tracer(TracerOptions options = {});
    ~Tracer();
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    // Registers a buffer that attach answers may name, at any time (a resize adds more). Throws
    // std::invalid_argument for a capacity that is no multiple of 4096 or files that are too short,
    // std::system_error if a descriptor cannot be had.
    BufferId add_buffer(const ServedBuffer& buffer);
    void set_attach_handler(AttachHandler handler);
    // The fds that kmes_attach gives are this one and higher ones, where the testee's limit allows
    // it: so they are in a process that has many files open. Not those of a device.
    void set_least_fd(int fd);
    // Which kmes_attach is served; kAllCpus where this is not called.
    void set_attach_call(AttachCall call);
    // Is told of each write to the report file, before start() or never: every system call of the
    // testee then stops (kEveryCall).
    void set_report_write_handler(ReportWriteHandler handler);
    // The same for each system call, by its number.
    void set_call_handler(CallHandler handler);

    // Starts the program; a name without a slash is looked for in PATH. Once for each Tracer. What
    // goes wrong with the program arrives as Ended from wait(); std::system_error is thrown where
    // the runner itself lacks a means (memory, descriptors).
    void start(const std::vector<std::string>& arguments);

    // Lets every thread go on that is not held, and gives the next event, or TimedOut. After Ended
    // it gives Ended again.
    TracerEvent wait(TimePoint deadline);

    // Keeps the thread of the last event still over further wait() calls, until release().
    // release() of a thread that is not held does nothing. The thread really goes on at the next
    // wait().
    void hold(pid_t tid);
    void release(pid_t tid);

    // Stops every thread of the testee, wherever it is, and keeps all of them still (wait() then
    // gives only what had happened before) until thaw_all(). False if some thread could not be
    // stopped in time (uninterruptible in the kernel), with none frozen. Blocked calls of the
    // testee are restarted by the kernel afterwards, a few (epoll_wait) get EINTR.
    bool freeze_all(TimePoint deadline);
    void thaw_all();

    // How often all threads were stopped so far, also for guards that were closed or opened: behind
    // each of them the kernel begins the waits again that it came into.
    uint64_t freezes() const;

    // What each thread of the testee does now. Stops nothing.
    Inspection inspect();
    // The same of one thread, without what it is blocked in; kEnded for one that is not there.
    Activity activity(pid_t tid);

    // After a FutexWaitEnd: what the call returns to the testee instead, as -EINTR for a wait that
    // a signal is said to have interrupted. False if the thread does not stand at that exit.
    bool set_wait_result(pid_t tid, int64_t result);

    // Where served buffers are mapped in the testee now (checked against /proc, so munmap is seen).
    std::vector<Mapping> mappings();
    // Open descriptors of the testee that refer to served buffers.
    std::vector<std::pair<int, BufferId>> open_fds();

    // Makes `page_count` pages of a mapping inaccessible, from page `first_page` of the buffer's
    // layout (0: metadata), so that the first access to each is a GuardHit before it happens. All
    // threads are stopped for it. Returns false if the testee has no thread that can do it, or the
    // pages are not mapped. Guards of a mapping add up.
    bool guard_pages(MappingId mapping, uint64_t first_page, uint64_t page_count);
    // Takes all guards of the mapping away. The thread of a GuardHit then simply does its access
    // when it goes on.
    bool release_guards(MappingId mapping);
    // Whether a guarded metadata page stops writes alone: for a thread that looks at it again and
    // again. All threads are stopped for it. False: it stops reads as before (other ways of
    // stepping than guard pages, a mapping that is gone).
    bool let_reads_pass(MappingId mapping, bool pass);
    // The testee shares a processor with the caller's thread while pages are guarded, and for a
    // moment when it has mapped something (until it waits, or does nothing of the kind for 2 ms).
    // This ends such a moment: what follows shall run beside the caller.
    void go_apart();
    // Asked at each guarded access before it happens, inside wait(), instead of an event. It may
    // use the tracer (step_guarded, inspect, guards), but not wait() or kill_all(). What it throws
    // comes out of wait(); the thread then still stands before the access, and the handler is asked
    // about it again if the run goes on. Empty: each access is an event.
    void set_guard_handler(GuardHandler handler);
    // After a GuardHit: does that one instruction, of a string operation all that it does in
    // guarded pages. The thread stays held as before, behind the instruction.
    GuardStep step_guarded(pid_t tid);
    // The same for an instruction that reads: its first `split_bytes` bytes are what stands in the
    // buffer before `between` is called, the rest what stands there afterwards. So a reader can be
    // overtaken in the middle of one instruction, as the processor may do it: only where a word of
    // 8 bytes ends, or an element of a string operation or a gather (split_bytes is rounded down to
    // that, and GuardStep tells it). Bytes count in the order of reading: of a string operation
    // that goes down, from the highest. An instruction that also writes to a buffer is not torn,
    // nor one that can only be done with the guards open: `between` is called before it.
    GuardStep step_guarded_torn(pid_t tid, uint32_t split_bytes,
                                const std::function<void()>& between);

    // For a look at what orders the accesses of a thread that stands still after step_guarded: its
    // next instruction; nothing where that cannot be read.
    std::optional<NextInstruction> next_instruction(pid_t tid);
    // Executes that instruction with the guards closed; not for a system call. False: it was not
    // executed, or raised a signal: what that means arrives as an event of the next wait().
    bool step_over(pid_t tid);

    // New bytes of the report file since the last call; whole lines are the testee's business.
    std::string read_report();
    // What stands on standard output and error so far; the middle is left out (and that said) where
    // it is long.
    std::string standard_output();
    std::string standard_error();

    // Kills all processes of the run and waits for them; the next wait() gives Ended. The
    // destructor does it as well.
    void kill_all();

    // Lets go of the testee, which is stopped by SIGSTOP then, so that another program can trace
    // it: no event but Ended comes any more, kmes_attach gives ENOSYS, and nobody kills it but the
    // caller. Only with kEveryCall (a filter stays). False: it is traced as before.
    bool detach(TimePoint deadline);

    // The testee's process, 0 before the first attach; all live thread ids of it.
    pid_t testee_pid() const;
    std::vector<pid_t> testee_threads() const;
    // The way that is in use (never kAutomatic after start).
    Interception interception() const;
    // The way of guarding that is in use, and why, in one line.
    Stepping stepping() const;
    std::string stepping_reason() const;
    WatchCheck watch_check() const;
    // How many threads stood still although nobody held them, and were let go again.
    uint64_t lost_stops() const;
    // System calls that had pointers into guarded pages: the kernel accessed them, unseen.
    uint64_t redirected_calls() const;
    // The last call with deeper structures (which are not looked into: sendmmsg, io_submit,
    // io_uring_enter) during which pages were guarded, if any: the kernel may have refused it for
    // that. nullptr: none.
    const char* call_refused_by_guards() const;
    // Whether the testee's process has an io_uring: what it does by that is not seen.
    bool has_io_uring() const;

    class Engine;  // for the files of this folder

  private:
    std::unique_ptr<Engine> engine_;
};

// Can programs be traced here at all? Empty if so, else one line that says what stands in the way
// (Yama, seccomp, the architecture) and what would help. Probed once in a process.
std::string why_not_traceable();

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_TRACER_H_
