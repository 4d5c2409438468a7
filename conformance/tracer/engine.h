// SPDX-License-Identifier: MIT
//
// The inside of Tracer: the threads with their stops, and the state that its parts share. Each part
// is a file of its own:
//
//   engine.cc          life of a run: start, wait, kill
//   stops.cc           a stop arrives: what it is, who handles it
//   injection.cc       system calls executed in a stopped thread
//   attach_service.cc  kmes_attach          map_service.cc   mmap of a served fd
//   device_service.cc  both, where the buffers are the kernel module's
//   futex_watch.cc     futex calls          guards.cc        guard pages
//   look.cc            what the next instruction touches
//   stepper.cc         execute that instruction: emulated, redirected or with the guards open
//   single_step.cc     guards without page protections   watchpoints.cc   a second witness for them
//   string_step.cc     string operations, in bulk      torn_step.cc     reads in two parts
//   redirect.cc        pointers into guarded pages in system calls
//   freeze.cc          stop and resume all threads           inspect.cc  what threads do
//   signals.cc         masks and handlers as if there were no guards
//   together.cc        testee and runner on one processor while they take turns
//   patience.cc        limits that count only time that a thread could use
//   report_watch.cc    writes to the report  detach.cc       stop tracing the testee
//   places.cc          addresses, instructions and faults, described for people
//   backtrace.cc       the callers of an instruction
//
// For the files of this folder only.

#ifndef CONFORMANCE_TRACER_ENGINE_H_
#define CONFORMANCE_TRACER_ENGINE_H_

#if !defined(__x86_64__)
#error "the tracer's engine is for x86-64; other architectures build unsupported.cc"
#endif

#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/tracer/capture.h"
#include "conformance/tracer/code.h"
#include "conformance/tracer/deadline.h"
#include "conformance/tracer/decode.h"
#include "conformance/tracer/kernel_signals.h"
#include "conformance/tracer/launch.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/tracer.h"
#include "conformance/tracer/transplant.h"

namespace kmes::conformance::tracing {

// What kind of ptrace stop a thread is in.
enum class StopKind {
    kNone,         // it runs
    kEntry,        // before a system call: the number and arguments can still be changed
    kExit,         // after a system call
    kSignal,       // a signal is about to be delivered
    kKernelEvent,  // inside clone, fork, vfork or execve
    kInterrupt,    // by PTRACE_INTERRUPT, or the first stop of a new thread
    kGroup,        // stopped by SIGSTOP and the like; continues as "listening"
};

// A futex wait that has been reported and has not ended.
struct ActiveWait {
    FutexWait report;
    long number = 0;
    uint64_t arguments[6] = {};
    uint64_t resume_address = 0;  // where the program continues when the call returns
    bool interrupted = false;     // by a stop or a signal: the kernel may restart it
};

// Arguments of a system call that point to the hidden mapping until the call ends.
struct Redirect {
    uint64_t original_arguments[6] = {};
    int scratch_slot = -1;
    uint64_t scratch_bytes = 0;  // the used part of the slot
};

// A memory operand of an instruction in a mapping of a buffer. At least its last byte is there.
struct RingOperand {
    size_t form = 0;  // index in Instruction::memory
    uint64_t address = 0;
    uint32_t size_bytes = 0;  // of a string operation in bulk: the bytes of all elements
    MappingId mapping = 0;
    bool is_inside = false;  // the whole operand is in that mapping
};

// A guarded access that has not happened: the thread is stopped before it.
struct PendingAccess {
    GuardHit hit;
    user_regs_struct registers = {};
    std::shared_ptr<const Code> code;
    std::vector<RingOperand> operands;
    bool has_lanes_elsewhere = false;  // a gather with some elements outside of all buffers
    // How many elements of a string operation can be done at once; 0: none.
    uint64_t string_elements = 0;
};

// A read in two parts, with an action in between.
class Torn {
  public:
    Torn(uint64_t split_bytes, const std::function<void()>& between)
        : split_bytes_(split_bytes), between_(between) {}
    uint64_t split_bytes() const { return split_bytes_; }
    // Reads `size_bytes` from `from` to `to`: first the bytes at the low end (`is_down`: at the
    // high end). Then calls `between`, and reads the others. The parts meet at a multiple of
    // `granule` from `origin`.
    void compose(const uint8_t* from, uint8_t* to, uint64_t size_bytes, bool is_down,
                 uint64_t origin, uint64_t granule);
    // Calls `between`, once. For a read that cannot be split.
    void give_up();
    // Ends the first part after `bytes`, which the caller has read.
    void act_behind(uint64_t bytes);

  private:
    uint64_t split_bytes_;
    const std::function<void()>& between_;
    bool is_over_ = false;
};

struct Thread {
    pid_t tid = 0;
    pid_t process = 0;

    // The stop as it was received (what to handle), and the kind of stop that the thread is in now.
    // An injection changes the latter to kExit.
    bool stopped = false;
    int status = 0;
    StopKind received = StopKind::kNone;
    StopKind now = StopKind::kNone;
    siginfo_t signal_info = {};  // received == kSignal
    int64_t call_result = 0;     // received == kExit
    bool is_stepping = false;    // it was resumed for one instruction
    bool was_stepped = false;    // at least once
    bool steps_pushf = false;    // that instruction is a pushf
    // It has stepped a popf, so the flag of later steps remains visible.
    bool shows_trap_flag = false;
    bool is_in_group_stop = false;   // resumed to wait for SIGCONT
    bool leaves_for_kernel = false;  // its next instruction is a system call, or it is in one
    bool late_guard_fault = false;  // its SIGSEGV of a guard was pending when the guard was removed
    bool is_guard_fault = false;  // received == kSignal: a guard was in place when it was received
    bool in_backlog = false;      // received, not handled yet
    // A leader that has ended before the other threads: it never stops again.
    bool is_zombie = false;

    int queued_events = 0;  // events of this stop that wait() has not returned yet
    bool held = false;
    int deliver_signal = 0;  // the signal to deliver when it resumes

    uint64_t blocked = 0;  // signals, as the testee sees its mask; known while pages are guarded
    bool fault_is_unblocked = false;  // the kernel's mask lacks SIGSEGV, which `blocked` has
    // A SIGSEGV that was sent while the thread blocks SIGSEGV.
    std::optional<siginfo_t> kept_signal;
    bool is_new = true;           // its first stop has not been handled
    bool trap_is_lifted = false;  // SIGTRAP is not blocked for a step

    bool entry_handled = false;  // the seccomp stop that follows reports nothing new
    bool reissued = false;       // the next entry repeats a call that has been reported
    bool signal_is_new = false;  // arrived during an injection: to be handled when it comes back
    // The signal that comes back after an injection, with its first information.
    std::optional<siginfo_t> replay;
    std::optional<ActiveWait> wait;
    std::optional<Redirect> redirect;
    std::optional<PendingAccess> pending;

    uint64_t watched_page = 0;  // address of the page that its watchpoints cover; 0: none
    std::vector<RingOperand> step_operands;  // of the instruction that it was resumed for
    CodePlace step_place;
};

struct Process {
    pid_t pid = 0;
    // An address of a syscall instruction in this program; 0: none seen.
    uint64_t syscall_instruction = 0;
    uint64_t scratch = 0;  // the tracer's own pages in this memory; 0: none yet
    bool is_new_fork_of_testee = false;
    bool has_executed = false;
    // The process was started without KMES_REPORT_FD: by the contract it reports to descriptor 1.
    bool reports_to_output = false;
};

struct ServedFile {
    int metadata_fd = -1;
    int data_fd = -1;  // -1: a buffer of the kernel, all of which metadata_fd maps
    uint64_t metadata_bytes = kPageBytes;
    uint64_t capacity_bytes = 0;
    uint64_t expected_mapping_bytes = 0;
    bool takes_only_whole_mapping = false;
    uint64_t told_capacity_bytes = 0;  // by the last attach
    FileIdentity identity;
    uint32_t attach_call = 0;  // the last call that returned it
    // The runner's own mapping: metadata page, data, data again (read-only). Null: not mapped yet.
    uint8_t* view = nullptr;

    uint64_t layout_bytes() const { return metadata_bytes + 2 * capacity_bytes; }
    // The testee may write the last page before the data.
    bool is_writable(uint64_t layout_offset) const {
        return layout_offset < metadata_bytes && layout_offset >= metadata_bytes - kPageBytes;
    }
};

// The arguments and the answer of a device (<linux/kmes.h>).
struct AttachQuestion {
    uint64_t fds_address = 0;
    uint32_t count = 0;
    uint64_t capacity = 0;
};

// Bytes of a file, and their offset in the layout of a buffer.
struct FilePiece {
    uint64_t layout_offset = 0;
    uint64_t length_bytes = 0;
    uint64_t file_offset = 0;
};

struct LiveMapping {
    Mapping mapping;            // the part that is still mapped
    uint64_t mapped_bytes = 0;  // the length at the mmap
    bool live = true;
    uint32_t attach_call = 0;
    // Address of the second mapping of the same buffer, which is never guarded; 0: none.
    uint64_t hidden = 0;
    uint64_t hidden_bytes = 0;
    bool reads_pass = false;  // a guarded metadata page stops only writes
    // Offset in the mapping, length; whole pages.
    std::vector<std::pair<uint64_t, uint64_t>> guards;
};

class Injection;

}  // namespace kmes::conformance::tracing

namespace kmes::conformance {

using namespace tracing;  // this header is for the tracer's own files only

class Tracer::Engine {
  public:
    explicit Engine(TracerOptions options);
    ~Engine();

    // --- the interface (engine.cc and the files named above)
    BufferId add_buffer(const ServedBuffer& buffer);
    void start(const std::vector<std::string>& arguments);
    TracerEvent wait(TimePoint deadline);
    void hold(pid_t tid);
    void release(pid_t tid);
    bool freeze_all(TimePoint deadline);
    bool set_wait_result(pid_t tid, int64_t result);
    void thaw_all() { frozen_ = false; }
    Inspection inspect();
    Activity activity(pid_t tid);
    std::vector<Mapping> mappings();
    std::vector<std::pair<int, BufferId>> open_fds();
    void go_apart();
    bool guard_pages(MappingId mapping, uint64_t first_page, uint64_t page_count);
    bool release_guards(MappingId mapping);
    bool let_reads_pass(MappingId mapping, bool pass);
    GuardStep step_guarded(pid_t tid, Torn* torn);
    GuardHandler guard_handler_;
    std::optional<NextInstruction> next_instruction(pid_t tid);
    bool step_over(pid_t tid);
    void clear_pushed_trap_flag(const Thread& thread);
    void clear_trap_flag(Thread& thread);
    void kill_all();
    bool detach(TimePoint deadline);
    void pump_output();
    std::string read_report();

    TracerOptions options_;
    AttachHandler attach_handler_;
    AttachCall attach_call_ = AttachCall::kAllCpus;
    int least_fd_ = 0;
    ReportWriteHandler report_write_handler_;
    CallHandler call_handler_;
    Interception interception_ = Interception::kAutomatic;
    Stepping stepping_ = Stepping::kGuardPages;
    std::string stepping_reason_;
    bool checks_by_watchpoints_ = false;
    WatchCheck watch_check_;
    uint64_t lost_stops_ = 0;
    uint64_t freezes_ = 0;
    uint64_t redirected_calls_ = 0;
    const char* call_refused_by_guards_ = nullptr;
    bool has_io_uring() const;
    pid_t testee_ = 0;
    std::unique_ptr<CaptureFile> output_files_[2];
    BoundedText output_texts_[2];
    std::vector<pid_t> testee_threads() const;

  private:
    friend class tracing::Injection;

    // --- engine.cc
    struct Received {
        pid_t tid = 0;
        int status = 0;
    };
    std::optional<Received> receive(TimePoint deadline);  // from the kernel
    Thread& add_thread(pid_t tid, pid_t process);
    Thread& record(const Received& received);       // into the thread's record
    std::optional<int> wait_for_thread(pid_t tid);  // other threads' stops go to the backlog
    void put_off(Thread& thread, int status);       // its stop or end is handled later
    bool handle_backlog();
    void receive_all();
    bool drop_from_backlog(pid_t tid);  // true if something was there
    void resume_ready();
    bool may_run(const Thread& thread) const;
    void resume(Thread& thread);
    bool is_testee(const Thread& thread) const { return testee_ != 0 && thread.process == testee_; }
    Thread* find(pid_t tid);
    Process& process_of(const Thread& thread);
    void push(Thread& thread, TracerEvent event);
    void push(TracerEvent event) { events_.emplace_back(0, std::move(event)); }
    void choose_report(const Process& process);
    void check_output_limits();
    std::vector<pid_t> all_threads() const;
    void refuse_start(EndKind kind, int error, std::string text);

    // --- stops.cc
    void classify(Thread& thread);
    void handle(pid_t tid, int status);
    void handle_gone(pid_t tid, int status);
    void handle_process_end(pid_t pid, int status);
    Ended describe_end(pid_t pid, int status);
    void handle_entry(Thread& thread);
    void handle_exit(Thread& thread);
    void handle_signal(Thread& thread);
    void handle_child(Thread& thread);
    void handle_exec(Thread& thread);
    void first_stop(Thread& thread);

    // --- report_watch.cc
    void watch_report_write(Thread& thread, long number, const uint64_t (&arguments)[6]);

    // --- attach_service.cc
    void serve_attach(Thread& thread, const user_regs_struct& registers);
    void note_unreadable(Thread& thread);
    void note_attached(BufferId id, const AttachAnswer& answer);
    AttachAnswer ask_handler(const AttachRequest& request) const;
    void serve_all_cpus(Injection& injection, Thread& thread, const user_regs_struct& registers,
                        Attached event);
    void serve_one_cpu(Injection& injection, Thread& thread, const user_regs_struct& registers,
                       Attached event);
    void finish_attach(Injection& injection, Thread& thread, Attached event);
    int64_t move_fd_up(Injection& injection, int64_t fd);
    int give_fds(Injection& injection, Thread& thread, const AttachAnswer& answer,
                 std::vector<int>& fds);
    bool ensure_scratch(Injection& injection, Thread& thread);
    int64_t open_runner_fd(Injection& injection, Thread& thread, int runner_fd, int flags);
    int64_t open_path(Injection& injection, Thread& thread, const std::string& path, int flags,
                      bool is_ours);

    // --- device_service.cc
    int64_t ask_device(Injection& injection, Thread& thread, const AttachDevice& device,
                       AttachQuestion& question, std::string& trouble);
    void attach_by_device(Injection& injection, Thread& thread, const AttachDevice& device,
                          const user_regs_struct& registers, bool can_tell_capacity,
                          Attached& event);
    int64_t map_kernel_buffer(Injection& injection, const ServedFile& file,
                              const MapRequest& request);

    // --- map_service.cc
    bool serve_map(Thread& thread, const user_regs_struct& registers);
    int64_t overlay_file(Injection& injection, Thread& thread, const MapRequest& request,
                         uint64_t address, int runner_fd, const std::vector<FilePiece>& pieces);
    int64_t overlay_data(Injection& injection, Thread& thread, const ServedFile& file,
                         const MapRequest& request, uint64_t address);
    void give_back_hidden(Injection& injection);
    void note_unmap(uint64_t address, uint64_t length_bytes);
    bool touches_mapping(uint64_t address, uint64_t length_bytes) const;
    static void cut_off_at(LiveMapping& live, uint64_t address);
    MapDeviation deviation_of(const MapRequest& request, BufferId buffer) const;
    static bool is_refused(const ServedFile& file, const MapRequest& request);
    std::optional<BufferId> buffer_of(const FileIdentity& identity) const;
    LiveMapping* mapping_at(uint64_t address);
    std::optional<BufferPlace> place_of(uint64_t address);
    pid_t any_testee_thread() const;
    std::optional<std::vector<MapsEntry>> maps_of_testee();

    // --- futex_watch.cc
    bool watch_futex(Thread& thread, const user_regs_struct& registers);
    void end_futex_wait(Thread& thread, int64_t result);
    // Ends the wait of a thread that no longer exists: records the end, and stops no thread.
    void drop_futex_wait(Thread& thread);
    std::optional<FutexWord> futex_word(uint64_t address, uint32_t expected, bool is_private);
    std::optional<FutexWait> parse_wait(pid_t tid, long number, const uint64_t (&arguments)[6]);
    std::optional<FutexOther> parse_other(pid_t tid, long number, const uint64_t (&arguments)[6]);

    // --- freeze.cc
    // Stopping all threads takes well under a millisecond each; more means that one hangs in the
    // kernel.
    static constexpr auto kFreezeLimit = std::chrono::seconds(10);
    void note_new_thread(const Thread& parent);
    void find_zombies();
    void resume_frozen();

    // --- guards.cc
    bool with_frozen_testee(const std::function<bool(Thread&)>& action);
    Thread* injectable_thread(pid_t but = 0);
    bool ensure_hidden_mapping(Injection& injection, Thread& thread, LiveMapping& mapping);
    bool set_guards(Thread& thread, bool closed);
    bool protect(Injection& injection, const LiveMapping& mapping, uint64_t offset, uint64_t length,
                 bool closed);
    bool any_guards() const;
    LiveMapping* guarded_at(uint64_t address);
    bool is_at_guard(const siginfo_t& info);
    void note_pending_guard_faults();
    bool report_guard_hit(Thread& thread);
    bool ask_about(Thread& thread);
    bool close_guard(Thread& thread, LiveMapping& live, uint64_t offset, uint64_t length);
    bool report_write_fault(Thread& thread);
    bool has_the_memory_of_the_testee(pid_t process) const;
    void open_inherited_guards(Thread& thread);

    // --- signals.cc
    static bool blocks(const Thread& thread, int signal_number);
    static void note_mask(Thread& thread);
    static void unblock_fault(Thread& thread, bool unblock);
    void prepare_for_faults(Thread& thread);
    bool is_in_masked_call(Thread& thread);
    bool takes_signal(const Thread& thread) const;
    bool settle_signals(Thread& thread);
    bool keep_sent_fault(Thread& thread);
    void take_fault_handler(Thread& thread);
    void note_guard_fault(Thread& thread);
    static void lift_trap(Thread& thread);
    static void lower_trap(Thread& thread);

    // --- together.cc
    void bring_together();
    void let_apart();
    void let_newborn_apart(pid_t tid);
    void note_own_processors(pid_t tid);
    void part_if_idle();

    // --- look.cc
    uint8_t* view_of(BufferId buffer);
    uint8_t* view_at(const LiveMapping& live, uint64_t address, uint64_t size_bytes);
    uint64_t buffer_value(const BufferAccess& access);
    BufferPlace place_in(const LiveMapping& live, uint64_t address) const;
    std::shared_ptr<const Code> code_at(const Thread& thread, uint64_t address);
    std::optional<PendingAccess> load_next_instruction(const Thread& thread);
    void add_operand(PendingAccess& pending, size_t form, uint64_t address, uint32_t size_bytes);
    bool may(const LiveMapping& live, uint64_t address, uint64_t size_bytes, bool is_write) const;

    // --- stepper.cc
    GuardStep::Outcome step_once(Thread& thread);
    bool emulate(Thread& thread, PendingAccess& pending, Torn* torn);
    std::optional<GuardStep::Outcome> redirect(Thread& thread, const PendingAccess& pending,
                                               Torn* torn);
    std::optional<GuardStep::Outcome> redirect_to(Thread& thread, const PendingAccess& pending,
                                                  const std::vector<uint64_t>& distances);

    // --- torn_step.cc
    std::optional<GuardStep::Outcome> redirect_to_copy(Thread& thread, const PendingAccess& pending,
                                                       Torn& torn);
    std::optional<GuardStep::Outcome> gather_in_parts(Thread& thread, const PendingAccess& pending,
                                                      const std::vector<uint64_t>& distances,
                                                      Torn& torn);
    GuardStep::Outcome open_and_step(Thread& thread);
    bool finish_emulated(Thread& thread, const user_regs_struct& registers);

    // --- single_step.cc
    bool is_single_stepped(const Thread& thread) const;
    void fall_back_to_single_steps(std::string reason);
    const RingOperand* guarded_operand(const PendingAccess& pending);
    bool look_before_step(Thread& thread);
    GuardStep::Outcome step_openly(Thread& thread, const PendingAccess& pending);

    // --- watchpoints.cc
    uint64_t watched_page() const;
    void arm_watchpoints(Thread& thread);
    void check_step(Thread& thread, const std::vector<RingOperand>& expected,
                    const CodePlace& place);

    // --- string_step.cc
    void look_at_string(PendingAccess& pending);
    uint64_t guarded_bytes(const LiveMapping& live, uint64_t address, bool is_backward);
    bool emulate_string(Thread& thread, PendingAccess& pending, Torn* torn);

    // --- redirect.cc
    bool redirect_entries();
    void restart_wait_afresh(Thread& thread, user_regs_struct& registers);

    bool redirect_arguments(Thread& thread, user_regs_struct& registers);
    void undo_redirect(Thread& thread, user_regs_struct& registers);
    uint64_t unguarded_address(uint64_t address);
    uint64_t put_into_scratch(Thread& thread, Redirect& redirect, const void* bytes,
                              size_t size_bytes);
    bool rewrite_iovec(Thread& thread, Redirect& redirect, uint64_t& pointer, uint64_t count);
    void rewrite_message(Thread& thread, Redirect& redirect, uint64_t& pointer);
    bool rewrite_vector(Thread& thread, Redirect& redirect, uint64_t& pointer, size_t count,
                        size_t stride, size_t address_offset);

    // --- revive.cc
    // The time between two searches for lost threads.
    static constexpr auto kRevivalInterval = std::chrono::milliseconds(500);
    static bool stands_in_a_stop(pid_t tid);
    void revive_lost_threads();

    // --- inspect.cc
    ThreadState state_of(const Thread& thread, const ThreadStatus& status);
    void describe_blocked(ThreadState& state, const Thread& thread);

    // --- places.cc
    Fault describe_fault(Thread& thread);
    std::optional<CodePlace> call_in_program(const Thread& thread,
                                             const user_regs_struct& registers);

    bool started_ = false;
    bool executed_ = false;  // the first execve has happened
    bool frozen_ = false;
    bool guards_are_open_ = false;  // for one step: a fault now comes from the instruction itself
    bool nothing_to_wait_for_ = false;  // the last waitpid said that there are no children
    pid_t first_process_ = 0;
    int first_process_status_ = 0;
    LaunchPlan plan_;
    std::unique_ptr<Launch> launch_;
    std::optional<Ended> ended_;
    std::unique_ptr<CaptureFile> report_;
    std::map<pid_t, Thread> threads_;
    std::map<pid_t, Process> processes_;
    std::deque<Received> backlog_;
    std::deque<std::pair<pid_t, TracerEvent>> events_;
    std::vector<ServedFile> files_;
    std::vector<LiveMapping> mappings_;
    std::vector<bool> scratch_slots_;
    uint32_t attach_calls_ = 0;
    uint64_t next_wait_id_ = 1;
    bool attached_ = false;
    std::optional<Fault> last_fault_;
    pid_t exiting_thread_ = 0;  // the first thread of the testee that called exit_group
    CodeTable code_;            // of the testee
    DeadlineTimer timer_;
    bool are_together_ = false;  // testee and Tracer, on one processor
    cpu_set_t together_ = {};    // the current or last processor that they shared; empty: none yet
    cpu_set_t all_processors_ = {};
    struct Unmoved {
        std::vector<pid_t> now;    // while the others are together
        std::set<pid_t> for_good;  // they have chosen their processors
    };
    Unmoved unmoved_;
    TimePoint together_until_ = {};  // longer while pages are guarded
    pid_t last_event_thread_ = 0;
    bool limit_sent_[3] = {};
    TimePoint next_output_check_ = {};
    TimePoint next_revival_ = {};
    uint64_t resumes_ = 0;
    sigset_t old_mask_ = {};
    struct sigaction old_action_ = {};
};

}  // namespace kmes::conformance

namespace kmes::conformance::tracing {

// ptrace's own structure has no constructor and is read in many places.
std::optional<user_regs_struct> read_registers(pid_t tid);
bool write_registers(pid_t tid, const user_regs_struct& registers);
// As the kernel reads it: the low half of the register.
long call_number_of(const user_regs_struct& registers);
void arguments_of(const user_regs_struct& registers, uint64_t (&arguments)[6]);
void set_arguments(user_regs_struct& registers, const uint64_t (&arguments)[6]);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_ENGINE_H_
