// SPDX-License-Identifier: MIT
//
// The implementation of Tracer: the actions at each stop, and the parts that keep the state of a
// run. Each part is a class with files of its own:
//
//   Tracees            threads and processes   StopQueue        received stops, the backlog
//   EventQueue         events for wait()       ProgramStart     the first process
//   RunEnd             how the run has ended   TesteeOutput     report, standard output and error
//   ServedFiles        the served buffers      MappingTable     their mappings and the guards
//   PointerRedirect    pointers into guarded pages in system calls
//   FutexCalls         the arguments of futex calls
//   SteppingMode       guard pages or steps    Watchpoints      the second witness of steps
//   SharedProcessor    testee and runner on one processor       ChildSignal      SIGCHLD
//   CodeTable          instructions            Injection        calls executed in a stopped thread
//
// The functions of the engine by file:
//
//   engine.cc          life of a run: start, wait, kill
//   stops.cc           classifies a stop, and calls its handler
//   attach_service.cc  kmes_attach          map_service.cc   mmap, mprotect of a buffer
//   device_service.cc  both, for buffers of the kernel module
//   futex_watch.cc     futex calls          guards.cc        guard pages
//   operands.cc        the operands of the next instruction
//   stepper.cc         execute that instruction: emulated, redirected or with the guards open
//   single_step.cc     guards without page protections
//   string_step.cc     string operations, in bulk      torn_step.cc     reads in two parts
//   freeze.cc          stop and resume all threads     inspect.cc       the states of threads
//   signals.cc         masks and handlers as if there were no guards
//   lost_stops.cc      find stops that were lost       detach.cc        stop tracing the testee
//   report_watch.cc    writes to the report
//   descriptions.cc    addresses, instructions and faults, for people
//
// For the files of this folder only.

#ifndef CONFORMANCE_TRACER_ENGINE_H_
#define CONFORMANCE_TRACER_ENGINE_H_

#if !defined(__x86_64__)
#error "the tracer's engine is for x86-64; other architectures build unsupported.cc"
#endif

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/tracer/child_signal.h"
#include "conformance/tracer/code.h"
#include "conformance/tracer/decode.h"
#include "conformance/tracer/event_queue.h"
#include "conformance/tracer/futex_calls.h"
#include "conformance/tracer/injection.h"
#include "conformance/tracer/kernel_signals.h"
#include "conformance/tracer/launch.h"
#include "conformance/tracer/mapping_table.h"
#include "conformance/tracer/pending_access.h"
#include "conformance/tracer/pointer_redirect.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/program_start.h"
#include "conformance/tracer/registers.h"
#include "conformance/tracer/run_end.h"
#include "conformance/tracer/served_files.h"
#include "conformance/tracer/shared_processor.h"
#include "conformance/tracer/stepping_mode.h"
#include "conformance/tracer/stop_queue.h"
#include "conformance/tracer/testee_output.h"
#include "conformance/tracer/thread.h"
#include "conformance/tracer/tracees.h"
#include "conformance/tracer/tracer.h"
#include "conformance/tracer/transplant.h"

namespace kmes::conformance::tracing {

// The arguments and the answer of a device (<linux/kmes.h>): for all CPUs, or for one.
struct AttachQuestion {
    std::optional<uint32_t> cpu = std::nullopt;
    uint64_t fds_address = 0;  // of all CPUs
    uint32_t count = 0;        // of all CPUs
    int fd = -1;               // of one CPU
    uint64_t capacity = 0;
};

// The form and the state of kmes_attach.
struct AttachState {
    AttachCall form = AttachCall::kAllCpus;
    int least_fd = 0;
    uint32_t calls = 0;  // so far
};

// Bytes of a file, and their offset in the layout of a buffer.
struct FilePiece {
    uint64_t layout_offset = 0;
    uint64_t length_bytes = 0;
    uint64_t file_offset = 0;
};

// Returns the activity of the thread according to /proc; kEnded if there is no such thread.
Activity activity_of(pid_t tid);
// Whether the process of the thread has an io_uring; false if there is no such thread.
bool process_has_io_uring(pid_t tid);

}  // namespace kmes::conformance::tracing

namespace kmes::conformance {

using namespace tracing;  // this header is for the tracer's own files only

class Tracer::Engine final : private InjectionHost {
  public:
    explicit Engine(TracerOptions options);
    ~Engine();

    // --- the interface (engine.cc and the files named above); see Tracer
    BufferId add_buffer(const ServedBuffer& buffer) { return buffers_.add(buffer); }
    void set_attach_call(AttachCall form, int least_fd);
    TracerHandlers& handlers() { return handlers_; }
    void start(const std::vector<std::string>& arguments);
    TracerEvent wait(TimePoint deadline);
    bool freeze_all(TimePoint deadline);
    void kill_all();
    bool detach(TimePoint deadline);
    bool set_wait_result(pid_t tid, int64_t result);
    void unshare_processor();

    bool guard_pages(MappingId mapping, uint64_t first_page, uint64_t page_count);
    bool release_guards(MappingId mapping);
    bool let_reads_pass(MappingId mapping, bool pass);
    GuardStep step_guarded(pid_t tid, Torn* torn);
    std::optional<NextInstruction> next_instruction(pid_t tid);
    bool step_over(pid_t tid);

    Inspection inspect();
    std::vector<Mapping> mappings();
    std::vector<std::pair<int, BufferId>> open_fds();
    std::string read_report();
    TesteeOutput& output() { return output_; }
    Tracees& tracees() { return tracees_; }
    const ProgramStart& program() const { return program_; }
    SteppingMode& stepping() { return stepping_; }
    const TracerEffects& effects() const { return effects_; }

  private:
    // --- for Injection
    uint64_t syscall_instruction_of(const Thread& thread) override {
        return process_of(thread).syscall_instruction;
    }
    void share_processor() override;
    std::optional<int> wait_for_thread(pid_t tid) override;
    bool take_guard_fault(Thread& thread, const siginfo_t& info) override;
    void undo_redirect(Thread& thread, user_regs_struct& registers) override {
        pointers_.undo(thread, registers);
    }
    bool drop_stops(Thread& thread) override { return stops_.drop_stops(thread); }
    void note_stuck(Thread& thread, const siginfo_t& info) override;

    // --- engine.cc
    Thread& add_thread(pid_t tid, pid_t process);
    Thread& record(const Received& received);  // into the thread's record
    bool handle_backlog();
    void receive_all();
    void resume_ready();
    void resume(Thread& thread);
    bool is_testee(const Thread& thread) const { return tracees_.is_testee(thread); }
    Thread* find(pid_t tid) { return tracees_.find(tid); }
    Process& process_of(const Thread& thread) { return tracees_.process_of(thread); }
    void push(Thread& thread, TracerEvent event) { events_.push(thread, std::move(event)); }
    void push(TracerEvent event) { events_.push(std::move(event)); }
    void unshare_if_idle();
    void refuse_start(EndKind kind, int error, std::string text);
    bool is_interrupted() const { return handlers_.is_interrupted && handlers_.is_interrupted(); }

    // --- stops.cc
    void classify(Thread& thread);
    void handle(pid_t tid, int status);
    void handle_gone(pid_t tid, int status);
    void handle_process_end(pid_t pid, int status);
    Ended describe_end(pid_t pid, int status);
    void handle_entry(Thread& thread);
    void note_removal(Thread& thread, const user_regs_struct& registers, long number,
                      const uint64_t (&arguments)[6]);
    void handle_exit(Thread& thread);
    void handle_signal(Thread& thread);
    void handle_child(Thread& thread);
    bool is_sent_from_outside(const siginfo_t& info) const;
    void note_refused_task(Thread& thread);
    void note_strict_mode(Thread& thread);
    void note_group_stop(Thread& thread);
    void handle_exec(Thread& thread);
    void first_stop(Thread& thread);
    void stop_fork_bomb(Thread& thread);
    bool has_tracees();

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
    bool note_bad_pointer(const Thread& thread, const char* argument, uint64_t address,
                          size_t size_bytes, Attached& event) const;
    void note_failed_open(Thread& thread, const char* what, int64_t error);
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
    void attach_cpu_by_device(Injection& injection, Thread& thread, const AttachDevice& device,
                              uint64_t capacity_at, Attached& event);
    void note_device_fds(Thread& thread, Attached& event, std::string& trouble);
    int64_t map_kernel_buffer(Injection& injection, const ServedFile& file,
                              const MapRequest& request);

    // --- map_service.cc
    bool serve_map(Thread& thread, const user_regs_struct& registers);
    int64_t overlay_file(Injection& injection, Thread& thread, const MapRequest& request,
                         uint64_t address, int runner_fd, const std::vector<FilePiece>& pieces);
    int64_t overlay_data(Injection& injection, Thread& thread, const ServedFile& file,
                         const MapRequest& request, uint64_t address);
    void give_back_hidden(Injection& injection);
    bool serve_protect(Thread& thread, const user_regs_struct& registers);
    int64_t protect_for_testee(Injection& injection, uint64_t address, uint64_t length_bytes,
                               uint64_t protection);
    uint64_t next_change_of_protection(uint64_t address);
    MapDeviation deviation_of(const MapRequest& request, BufferId buffer) const;
    static bool is_refused(const ServedFile& file, const MapRequest& request);
    std::optional<std::vector<MapsEntry>> maps_of_testee();

    // --- futex_watch.cc
    bool watch_futex(Thread& thread, const user_regs_struct& registers);
    void end_futex_wait(Thread& thread, int64_t result);
    // Ends the wait of a thread that no longer exists: records the end, and stops no thread.
    void drop_futex_wait(Thread& thread);

    // --- freeze.cc
    // Stopping takes well under a millisecond for each thread. If it takes longer, a thread hangs
    // in the kernel.
    static constexpr auto kFreezeLimit = std::chrono::seconds(10);
    void note_new_thread(const Thread& parent);
    void find_zombies();
    void resume_frozen();

    // --- guards.cc
    bool with_frozen_testee(const std::function<bool(Thread&)>& action);
    Thread* injectable_thread(pid_t but = 0);
    bool ensure_hidden_mapping(Injection& injection, Thread& thread, LiveMapping& mapping);
    int64_t map_hidden(Injection& injection, Thread& thread, const ServedFile& file,
                       const MapRequest& request);
    bool set_guards(Thread& thread, bool closed);
    bool protect(Injection& injection, const LiveMapping& mapping, uint64_t offset, uint64_t length,
                 bool closed);
    bool is_at_guard(const siginfo_t& info);
    void note_pending_guard_faults();
    bool report_guard_hit(Thread& thread);
    bool ask_about(Thread& thread);
    bool redirect_entries();
    bool close_guard(Thread& thread, LiveMapping& live, uint64_t offset, uint64_t length);
    bool report_write_fault(Thread& thread);
    bool has_the_memory_of_the_testee(pid_t process);
    void open_inherited_guards(Thread& thread);

    // --- signals.cc
    void prepare_for_faults(Thread& thread);
    bool is_in_masked_call(Thread& thread);
    bool takes_signal(const Thread& thread) const;
    bool settle_signals(Thread& thread);
    bool keep_sent_fault(Thread& thread);
    void take_fault_handler(Thread& thread);
    void note_guard_fault(Thread& thread);

    // --- operands.cc
    uint8_t* view_at(const LiveMapping& live, uint64_t address, uint64_t size_bytes);
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
    const RingOperand* guarded_operand(const PendingAccess& pending);
    void arm_watchpoints(Thread& thread);
    bool read_operands_before_step(Thread& thread);
    GuardStep::Outcome step_openly(Thread& thread, const PendingAccess& pending);

    // --- string_step.cc
    void read_string_operands(PendingAccess& pending);
    bool emulate_string(Thread& thread, PendingAccess& pending, Torn* torn);

    // --- lost_stops.cc
    // The time between two searches for lost threads.
    static constexpr auto kLostStopInterval = std::chrono::milliseconds(500);
    static bool is_in_a_stop(pid_t tid);
    void resume_lost_threads();

    // --- inspect.cc
    ThreadState state_of(const Thread& thread, const ThreadStatus& status);
    void describe_blocked(ThreadState& state, const Thread& thread);

    // --- descriptions.cc
    Fault describe_fault(const Thread& thread, const siginfo_t& info);
    void find_rseq_fault(Fault& fault) const;
    void note_no_return(const Thread& thread);
    void note_exceeded_limit();
    CallSite call_site(const Thread& thread, const user_regs_struct& registers);
    CallSite site_with_stack(const Thread& thread, user_regs_struct registers);
    std::optional<CodePlace> call_in_program(const Thread& thread,
                                             const user_regs_struct& registers, int signal_number);

    TracerOptions options_;
    TracerHandlers handlers_;
    TracerEffects effects_;
    SteppingMode stepping_;
    Tracees tracees_;
    TesteeOutput output_;
    ProgramStart program_;
    RunEnd end_;
    StopQueue stops_;
    EventQueue events_;
    ServedFiles buffers_;
    MappingTable mappings_;
    PointerRedirect pointers_;
    FutexCalls futex_calls_;
    AttachState attach_;
    CodeTable code_;  // of the testee
    SharedProcessor processor_;
    TimePoint next_search_for_lost_stops_ = {};
    uint64_t resumes_ = 0;
    ChildSignal child_signal_;  // the last: restored before all others are destroyed
};

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_ENGINE_H_
