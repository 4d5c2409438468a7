// SPDX-License-Identifier: MIT
//
// Tracer: runs an unmodified program under ptrace and reports what it does with the runner's
// buffers. It also uses seccomp unless an outer filter takes precedence. The tracer answers system
// call 1091 (kmes_attach), and places true double mappings of the buffers in the program. It knows
// nothing of events, cases or the oracle, and never judges.
//
// The sequence of a run:
//
//   Tracer tracer(options);
//   tracer.handlers().attach = ...;      // called at each kmes_attach
//   tracer.start({"./consumer", "arg"});
//   for (;;) {
//       // The thread of the event stays stopped until the next wait(), or after hold(tid)
//       // until release(tid). Meanwhile the runner checks, emits or swaps.
//       TracerEvent event = tracer.wait(deadline);
//   }
//
// Rules:
// - The thread that makes a Tracer is the only one that uses it, because ptrace belongs to a
//   thread. A thread has one Tracer at a time, and no other child processes. Other threads of the
//   runner may exist.
// - While a Tracer exists, SIGCHLD is blocked in its thread and has the default action. The
//   destructor restores both. The signal SIGRTMAX - 3 ends the waits; its handler stays in the
//   process.
// - Every process of the run is traced, through fork, vfork, clone and exec. The first process that
//   calls 1091 is the testee. All processes are killed when the Tracer is destroyed or the runner
//   dies. CLONE_UNTRACED is removed from the flags of clone and clone3.
// - The destructor also reaps the processes that no parent has waited for. Therefore the runner
//   becomes a subreaper with the first Tracer, and remains one.
// - The testee inherits standard input (/dev/null), standard output and error (captured), and the
//   report file (descriptor 3, named in KMES_REPORT_FD). It inherits no other descriptor, and leads
//   a session of its own.
//
// How it works. At the entry of 1091 the tracer injects an openat("/proc/<runner>/fd/N") for each
// fd. At the exit of an mmap of such an fd it injects calls that map the data pages over it twice.
// It knows the fd by device and inode, so a dup of it counts as well. The data pages come from a
// read-only descriptor, so mprotect cannot make them writable. To inject a call, the tracer sets
// registers at a stop, with the thread's signals blocked. The kernel chooses all addresses.
//
// Limits:
// - The tracer does not see futex operations of io_uring, and system calls of 32-bit code. It does
//   not trace or kill a process that such code makes with CLONE_UNTRACED.
// - An mprotect of the testee opens no guard. A pkey_mprotect does, and an mprotect of a child that
//   shares the testee's memory.
// - A system call that reaches guarded pages through deeper structures or by io_uring gets EFAULT.
//   Plain pointers, iovec, the msghdr of sendmsg and futex_waitv vectors are redirected.
// - If the testee ignores SIGSEGV, the first access to a guard resets this action to the default:
//   the kernel does so for every such fault. For threads that block SIGSEGV see signals.cc.
// - Guards need report_futex: without it, a timed wait that they interrupt could not be restarted.
// - A seccomp filter of the testee must allow the injected calls (openat, mmap, munmap, mprotect,
//   close, getpid).
// - On other machines than x86-64 every run gives one Ended{kNotTraceable}.

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

// The method by which the tracer sees the system calls that it serves or reports.
enum class Interception {
    kAutomatic,  // kSeccomp unless an outer filter takes precedence (probed once in a process)
    kSeccomp,    // SECCOMP_RET_TRACE: only the calls that matter stop
    kEveryCall,  // PTRACE_SYSCALL: every call stops twice; works below any outer filter
};

// The method by which the tracer sees guarded accesses before they happen.
enum class Stepping {
    kAutomatic,    // guard pages; single steps if they are refused (by a seccomp filter, say)
    kGuardPages,   // page protections: only accesses to guarded pages stop
    kSingleStep,   // the tracer examines every instruction of the testee while anything is guarded
    kWatchpoints,  // kSingleStep, each step checked against the processor's watchpoints
};

// The reports of the processor's watchpoints during the steps (Stepping::kWatchpoints). They cover
// generation, write_pos, tail_pos and the notification fields of one guarded metadata page.
struct WatchCheck {
    uint64_t confirmed = 0;    // accesses that stepper and processor saw
    uint64_t unconfirmed = 0;  // accesses that only the stepper saw: the processor drops some
    std::string unseen;        // the first access that only the processor saw, as text for people
    std::string unavailable;   // why this machine has no watchpoints
};

struct TracerOptions {
    Interception interception = Interception::kAutomatic;
    // Installs an outer filter in the testee that answers unknown numbers with ENOSYS, as
    // containers do. For tests.
    bool simulate_outer_filter = false;
    // Stop and report futex operations of the testee on ring words.
    bool report_futex = true;
    // "NAME=value": variables that the testee gets in addition to, or instead of, the runner's.
    std::vector<std::string> extra_environment;
    // If a captured file has more unread bytes than this, the tracer sends OutputLimit, and drops a
    // part of standard output and error.
    uint64_t output_limit_bytes = 64u << 20;
    // The bytes of standard output and of standard error that the tracer keeps: half of it from the
    // beginning, half from the end.
    size_t shown_output_bytes = 64u << 10;
    // Keep the testee and the thread of the Tracer on one processor while the Tracer exists. A stop
    // then involves one processor only, and takes a fraction of the time.
    bool pin_to_one_processor = false;
    // The processor on which testee and Tracer take turns; -1: the current processor of the Tracer.
    int processor = -1;
    Stepping stepping = Stepping::kAutomatic;
    // With kWatchpoints, ignore what the stepper has seen. For tests.
    bool simulate_blind_stepper = false;
    // Drop the N-th resume of a thread (0: none). For tests.
    uint64_t simulate_lost_resume = 0;
    // Count only resumes of the first thread of a process: while it is stopped, that process cannot
    // end.
    bool lose_resume_of_leader = false;
    // Save the top of the thread's stack in each GuardHit and CallSite. CallReader finds the
    // callers in it.
    bool keep_stacks = false;
    // Use the same addresses for the testee's memory in every run.
    bool fixed_addresses = false;
};

// The current activity of a thread.
enum class Activity {
    kRunning,  // on a processor or ready to be
    kBlocked,  // asleep in a system call
    kHeld,     // stopped by the tracer, or a stop of it has not been reported yet
    kEnded,    // it has ended, or is ending
};

struct ThreadState {
    pid_t tid = 0;
    Activity activity = Activity::kRunning;
    long call_number = -1;  // kBlocked: the system call, -1 for a page fault and the like
    uint64_t arguments[6] = {};
    // If kBlocked: whether the kernel wakes the thread by itself after a time. It does so for a
    // sleep, but not for a futex wait without a timeout.
    TimeLimit limit = TimeLimit::kNone;
    int64_t limit_ns = 0;  // as given in the call; 0 if not known (a restarted call)
    int limit_clock = 1;   // for kAbsolute
    // If kBlocked in a futex wait: its ring words, with their current values.
    std::vector<FutexWord> words;
    bool is_restarted = false;  // in restart_syscall: a timed call that a stop has interrupted
    // If kBlocked: the kernel makes the file ready by itself (a timerfd, an io_uring, a device).
    bool is_up_to_kernel = false;
    // The call may wait for a process outside of the run: on a socket, or for a file lock.
    bool is_up_to_others = false;
};

// Whether the thread uses no processor: it is asleep or has ended. (An ended first thread remains
// visible while other threads live.)
inline bool is_out_of_the_way(const ThreadState& thread) {
    return thread.activity == Activity::kBlocked || thread.activity == Activity::kEnded;
}

struct Inspection {
    std::vector<ThreadState> threads;  // of the testee's process
    // At one moment all threads were blocked: two checks in a row saw every thread asleep, and none
    // had run in between.
    bool all_blocked = false;
    // all_blocked, and no thread wakes unless another process acts.
    bool all_blocked_for_good = false;
    // Nevertheless a process outside of the run may end a call (is_up_to_others), or a timer of
    // setitimer may. The kernel lists no such timers, so a handler of SIGALRM counts as one.
    bool others_may_end_it = false;
    // Another process of the run (a wrapper, a forked child) is alive: it could wake the testee
    // through a pipe, say.
    bool other_processes = false;
};

// The answer of a guard handler to a guarded access.
enum class GuardAnswer {
    kStep,   // step unless the handler has done so, and continue without an event
    kEvent,  // return the access as an event of wait()
};
using GuardHandler = std::function<GuardAnswer(const GuardHit&)>;

// The runner's answers and decisions while the tracer waits. Each may be empty. All are called
// inside of Tracer::wait or another call of the tracer.
struct TracerHandlers {
    // Returns the answer of kmes_attach; it may call add_buffer. Without it, the answer is EAGAIN.
    AttachHandler attach;
    // Called at each guarded access before it happens. It may use the tracer (inspect, guards), but
    // not wait() or kill_all(). An exception of the handler leaves wait(). The thread is then still
    // stopped before the access, and the handler is called again if the run continues. Without it
    // each access is an event.
    GuardHandler guarded_access;
    // Called before each write to the report file. It must be set before start(), and forces
    // kEveryCall: every system call of the testee stops.
    ReportWriteHandler report_write;
    // Called before each system call, with its number. The rules of report_write hold.
    CallHandler call;
    // Whether the run shall end now. The tracer asks while it waits for a stop that it caused, and
    // then gives that wait up. Without it, each such wait ends at its own limit.
    std::function<bool()> is_interrupted;
};

// The effects of the tracer's own work on the run so far.
struct TracerEffects {
    // The number of stops of all threads, including those for changes of guards. After each stop
    // the kernel restarts the waits that it interrupted.
    uint64_t freezes = 0;
    // The number of threads that were stopped although they were not held, and were resumed again.
    uint64_t lost_stops = 0;
    // System calls with pointers into guarded pages: the kernel accessed them, unseen. Futex calls
    // do not count, because they access one word only.
    uint64_t redirected_calls = 0;
    // The last call with deeper structures (sendmmsg, io_submit, io_uring_enter) while pages were
    // guarded. The tracer does not redirect such structures, so the kernel may have refused the
    // call for that reason. nullptr: none.
    const char* call_refused_by_guards = nullptr;
    // There were too many processes at once. Those that make more are no longer resumed.
    bool has_fork_bomb = false;
};

// The result of one guarded access that PageGuards::step executed.
struct GuardStep {
    enum class Outcome {
        kDone,        // the instruction has run (for rep: the elements in `accesses`)
        kWriteFault,  // it was a store to a page that may not be written: a WriteFault event
                      // follows
        kOtherFault,  // it raised another signal, which will be delivered
        kThreadGone,
    } outcome = Outcome::kDone;
    // The way in which the access was executed, fastest first. The testee cannot tell the
    // difference.
    enum class Way {
        kNone,
        kEmulated,    // by the runner on its own mapping, atomically if the instruction is atomic
        kRedirected,  // one step, with the address changed to a mapping that is not guarded
        kProtected,   // one step with the guards open and all other threads stopped
        kStepped,     // one step (Stepping::kSingleStep)
    } way = Way::kNone;
    // As in the GuardHit, or fewer if a rep string operation ended early.
    std::vector<BufferAccess> accesses;
    // The bytes of the first access before and after it, if it has at most 8 bytes.
    uint64_t value_before = 0;
    uint64_t value_after = 0;
    // After PageGuards::step_torn: the number of bytes read before the call of `between`.
    uint32_t split_bytes = 0;
};

// The next instruction of a stopped thread.
struct NextInstruction {
    CodePlace code;
    bool is_full_barrier = false;  // orders an earlier store before a later load (E1)
    bool is_system_call = false;
};

class PageGuards;
class CapturedOutput;

class Tracer {
  public:
    explicit Tracer(TracerOptions options = {});
    ~Tracer();
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;

    // Registers a buffer that attach answers may name. May be called at any time: a resize adds
    // buffers. Throws std::invalid_argument if the capacity is not a multiple of 4096 or a file is
    // too short, and std::system_error if no descriptor is free.
    BufferId add_buffer(const ServedBuffer& buffer);
    // Sets the form of kmes_attach that is served; the default is kAllCpus. The returned fds are at
    // least `least_fd` if the testee's limit permits, as in a process with many open files.
    // `least_fd` has no effect on a device.
    void set_attach_call(AttachCall call, int least_fd = 0);
    TracerHandlers& handlers();

    // Starts the program, once for each Tracer. A name without a slash is searched in PATH. If the
    // program cannot be started, wait() returns Ended. Throws std::system_error if the runner lacks
    // memory or descriptors.
    void start(const std::vector<std::string>& arguments);

    // Resumes every thread that is not held, and returns the next event, or TimedOut at the
    // deadline. After Ended it returns Ended again.
    TracerEvent wait(TimePoint deadline);

    // hold() keeps the thread of the last event stopped during later calls of wait(), until
    // release(). A released thread resumes at the next wait(). release() of a thread that is not
    // held does nothing.
    void hold(pid_t tid);
    void release(pid_t tid);

    // Stops every thread of the testee, wherever it is, until thaw_all(). In between, wait()
    // returns only what had happened before. Returns false if a thread could not be stopped before
    // the deadline (uninterruptible in the kernel); then no thread is frozen. Afterwards the kernel
    // restarts blocked calls of the testee; a few (epoll_wait) return EINTR.
    bool freeze_all(TimePoint deadline);
    void thaw_all();

    // Returns what each thread of the testee is doing. Stops no thread.
    Inspection inspect();
    // Returns what one thread is doing, but not the call that blocks it; kEnded if there is no such
    // thread.
    Activity activity(pid_t tid);

    // After a FutexWaitEnd: replaces the result that the call returns to the testee. -EINTR, for
    // example, simulates a signal. Returns false if the thread is not stopped at that exit.
    bool set_wait_result(pid_t tid, int64_t result);

    // The current mappings of served buffers in the testee (checked against /proc, so munmap is
    // seen).
    std::vector<Mapping> mappings();
    // Open descriptors of the testee that refer to served buffers.
    std::vector<std::pair<int, BufferId>> open_fds();

    // Ends the time in which testee and caller share one processor, for work that must run in
    // parallel. They share it while pages are guarded. They also share it for a moment after the
    // testee has mapped something, until it waits, or for 2 ms.
    void unshare_processor();

    // Kills all processes of the run and waits for them. The next wait() returns Ended. The
    // destructor does the same.
    void kill_all();

    // Stops tracing the testee, and leaves it stopped by SIGSTOP so that another program can trace
    // it. From then on wait() returns no event but Ended, kmes_attach returns ENOSYS, and only the
    // caller kills the testee. Works only with kEveryCall, because a filter remains. Returns false
    // if the testee is traced as before.
    bool detach(TimePoint deadline);

    // The testee's process (0 before the first attach), and its live threads.
    pid_t testee_pid() const;
    std::vector<pid_t> testee_threads() const;
    // The interception in use (never kAutomatic after start).
    Interception interception() const;
    const TracerEffects& effects() const;
    // Whether the testee's process has an io_uring: the tracer does not see the operations of that.
    bool has_io_uring() const;

    // The parts of the interface. They last as long as this object.
    PageGuards guards();
    CapturedOutput output();

    class Engine;  // for the files of this folder

  private:
    std::unique_ptr<Engine> engine_;
};

// The guarded pages of the testee, and the accesses to them one by one.
class PageGuards {
  public:
    explicit PageGuards(Tracer::Engine& engine) : engine_(engine) {}

    // Makes `page_count` pages of a mapping inaccessible, from page `first_page` of the buffer's
    // layout (0: metadata). Each access to them is a GuardHit before it happens. Stops all threads
    // meanwhile. Guards of a mapping add up. Returns false if no thread of the testee can do it, or
    // the pages are not mapped.
    bool add(MappingId mapping, uint64_t first_page, uint64_t page_count);
    // Removes all guards of the mapping. The thread of a GuardHit then executes its access when it
    // resumes.
    bool remove_all(MappingId mapping);
    // `pass`: a guarded metadata page stops only writes from now on. For a thread that polls the
    // page. Stops all threads meanwhile. Returns false if reads stop as before: with another way of
    // stepping than guard pages, or if the mapping is gone.
    bool let_reads_pass(MappingId mapping, bool pass);

    // After a GuardHit: executes that one instruction; of a string operation, all elements up to
    // the next page where a guard begins or ends. Afterwards the thread is held after the
    // instruction.
    GuardStep step(pid_t tid);
    // As step, for a read during which the producer acts. Its first `split_bytes` bytes are read
    // before the call of `between`, the others after it. A processor may split a read only at the
    // end of an 8-byte word, or of an element of a string operation or a gather. split_bytes is
    // rounded down to such a place, and GuardStep has the result. Bytes count in the order of
    // reading: from the highest in a string operation that goes down. The
    // function does not split an instruction that also writes to a buffer or needs open guards. It
    // then calls `between` before the instruction.
    GuardStep step_torn(pid_t tid, uint32_t split_bytes, const std::function<void()>& between);

    // The next instruction of a thread that is stopped after step. It shows what orders the
    // thread's accesses. Nothing if it cannot be read.
    std::optional<NextInstruction> next_instruction(pid_t tid);
    // Executes that instruction with the guards closed; not for a system call. Returns false if the
    // instruction was not executed or raised a signal. The next wait() then returns the event.
    bool step_over(pid_t tid);

    // The stepping in use, and the reason for it in one line.
    Stepping stepping() const;
    std::string stepping_reason() const;
    WatchCheck watch_check() const;

  private:
    [[maybe_unused]] Tracer::Engine& engine_;  // unused where programs cannot be traced
};

// The output of the processes of the run.
class CapturedOutput {
  public:
    explicit CapturedOutput(Tracer::Engine& engine) : engine_(engine) {}

    // The new bytes of the report file since the last call. They need not end with a line.
    std::string read_report();
    // Standard output and error so far. If they are long, a note replaces the middle.
    std::string standard_output();
    std::string standard_error();

  private:
    [[maybe_unused]] Tracer::Engine& engine_;  // unused where programs cannot be traced
};

// Returns an empty string if programs can be traced here. Otherwise one line says what prevents it
// (Yama, seccomp, the architecture) and what would help. Probed once in a process.
std::string why_not_traceable();

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_TRACER_H_
