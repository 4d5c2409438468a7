// SPDX-License-Identifier: MIT
//
// What a case is played on: buffers and their producer (Rings), one traced testee, and the waits
// between them. A case is straight-line code; whatever ends it early (a crash, a lost wake-up, a
// limit) is thrown past it as Stop and becomes its outcome.
//
// A correct consumer is never blamed: a state is called a hang only if every thread of the testee
// is blocked and nothing that is on its way can wake it, or if nothing moved for a long time that
// scales; and a sleep on a retired buffer is nudged first (E19).
#ifndef KMES_CONFORMANCE_STAGE_STAGE_H_
#define KMES_CONFORMANCE_STAGE_STAGE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/model/finding.h"
#include "conformance/model/settings.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"
#include "conformance/stage/metadata_reads.h"
#include "conformance/stage/monitor.h"
#include "conformance/stage/recorder.h"
#include "conformance/stage/repeats.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/stage/sleep_clock.h"
#include "conformance/stage/wait_log.h"
#include "conformance/stage/work_clock.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// Thrown by the waits; caught by run_with_monitors.
struct Stop {
    Verdict verdict = Verdict::fail;
    Finding finding;
};

// Thrown instead by a stage that may be given up (Stage::let_give_up): the testee has ended with a
// non-zero status after a kmes_attach that failed.
struct GivenUp {};

// Throws Stop with a finding of the case's own: the testee has failed.
[[noreturn]] void stop_failed(std::string_view clause, std::string_view message);
// Thrown where the run lacks a means: the outcome is inconclusive or unsupported.
[[noreturn]] void stop_inconclusive(std::string message);
[[noreturn]] void stop_unsupported(std::string message);

class Stage {
  public:
    Stage(const StageSettings& settings, const Case& the_case);
    ~Stage();
    // Once, before anything else.
    void set_monitors(Monitors monitors) { monitors_ = std::move(monitors); }

    const StageSettings& settings() const { return settings_; }
    const Case& the_case() const { return case_; }
    std::uint32_t cpus() const { return rings_ ? rings_->cpus() : settings_.cpus; }
    std::uint64_t capacity_bytes() const {
        return rings_ ? rings_->capacity_bytes() : settings_.capacity_bytes;
    }

    // -- Before the testee starts --
    // Makes the rings. A case that wants something else than --cpus and --capacity says so here;
    // without it the first use of rings() makes them as the command line says.
    void set_up(const RingsSetup& setup);
    RingsSetup default_setup() const;
    Rings& rings();
    const Rings& rings() const { return *rings_; }
    // Answers of the first attach calls: errors, in this order.
    void answer_attach_with(std::vector<int> errors);
    // From now on the testee may end with a non-zero status where its last attach has failed (the
    // contract allows that): a wait then throws GivenUp.
    void let_give_up() { may_give_up_ = true; }
    // What *capacity says instead of the truth.
    void set_reported_capacity(std::uint64_t bytes);
    bool reports_other_capacity() const { return reported_capacity_bytes_.has_value(); }
    // See Tracer::set_least_fd.
    void set_least_fd(int fd);
    // Called at each successful mmap, while the testee stands still behind it.
    void set_on_mapped(std::function<void(const Mapped&)> function);
    // Called at each kmes_attach, a question for the number among them, before it is answered.
    void set_on_attach(std::function<void()> function) { on_attach_ = std::move(function); }
    // Called at each kmes_attach that was served, while the testee stands still behind it.
    void set_on_attached(std::function<void(const Attached&)> function);
    // Asked at each write to the report, while the thread stands before it, in every wait; true: it
    // is held there, to be given to hold_while. Each system call stops then: before start().
    void set_on_report_write(std::function<bool(const ReportWrite&)> function) {
        on_report_write_ = std::move(function);
    }
    // The same for each system call of the testee, by its number.
    void set_on_call(std::function<bool(pid_t, long)> function) { on_call_ = std::move(function); }
    // Throws where the processor's watchpoints contradict the stepper (--stepper watchpoints).
    void check_watchpoints() const;
    void start();

    // -- Waiting. Each throws Stop if the testee ends, or hangs, before --
    // Every buffer is mapped, or refused.
    void wait_mapped();
    // The same, or the testee has given up with a non-zero status (right where an attach fails).
    // False: it has.
    bool wait_mapped_or_exit();
    // Everything that it owes now is in its report.
    void wait_delivered();
    void wait_delivered(std::uint32_t cpu);
    // The same, and it sleeps by futex on every CPU that has not ended; what survives then is owed
    // (a checkpoint).
    void wait_asleep();
    void wait_asleep(std::uint32_t cpu);
    // The same, but nothing is said if it neither sleeps nor delivers for a short while: for a case
    // in which an event is on its way that only the case can publish.
    void wait_asleep_or_stuck(std::uint32_t cpu);
    // Every CPU that is tolerated (level robust) is refused, or its consumer has come to rest with
    // what it was shown: it sleeps, or waits with a limit.
    void wait_tolerated_at_rest();
    // Until `condition`; `what` names it in the message when the limit is passed.
    void wait_until(const std::function<bool()>& condition, const std::string& what);
    // Until `condition`, or everything is delivered and asleep, or the CPU has ended. True: the
    // condition came.
    bool wait_until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu);
    // What a wait may take, before it is a verdict.
    Clock::duration limit() const;
    // Gives the testee time to run, for a stretch that is not a verdict.
    void let_run(std::uint64_t milliseconds);

    // E19: a testee that sleeps on a retired buffer is nudged before it is called hung. A case in
    // which no swap can have come between an attach and the first look at generation, so that
    // nobody needs a nudge, turns that off.
    void set_nudging(bool on) { nudging_ = on; }
    // While an object lives, the stage shortens waits of a thread for several CPUs. If the thread
    // sleeps with a limit (or until a timer signal) on a word of another CPU than the awaited one,
    // the stage wakes it without an event, as the producer may (5.1.8.2 step 6). A walk of hundreds
    // of steps does not take that limit for each. A thread with an unread event of the CPU that it
    // sleeps on keeps its limit.
    class ShortenedWaits;
    // What waits on futex_counter return instead of 0: -EINTR, a wait that was interrupted. 0: the
    // truth.
    void set_wake_result(std::int64_t result) { wake_result_ = result; }
    // Called again and again in every wait: for what a case does when it finds the testee in some
    // state. `is_quiet`: nothing moves any more and something is owed. True: it did something.
    void set_on_round(std::function<bool(bool is_quiet)> function) {
        on_round_ = std::move(function);
    }
    // How many waits were told that.
    std::uint64_t wake_results_told() const { return wake_results_told_; }

    // -- Holding the testee --
    void freeze();
    void thaw();
    // After a full stop, waits once until the threads that slept before sleep again. Every
    // operation of the producer begins with it. A caller that decides by the state of the rings
    // calls it before, since it serves accesses of the testee.
    void let_fall_asleep_again();
    // Rings::outrun, with all threads stopped.
    void outrun(std::uint32_t cpu, std::uint64_t bytes);

    // Guards pages of the present buffer of a CPU, as the testee has it mapped; `function` is
    // called at each access to them before it happens, and returns what is to be done with it.
    enum class AtGuard {
        step,     // do this one access, keep the guards
        release,  // take all guards away and go on
        done,     // the function has done the access itself
    };
    using GuardFunction = std::function<AtGuard(const GuardHit&)>;
    // Called after an access was stepped, while the thread stands behind it.
    using SteppedFunction = std::function<void(const GuardHit&, const GuardStep&)>;
    void guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
               GuardFunction function, SteppedFunction stepped = nullptr);
    // The same for all of a mapping, whichever buffer it shows: to be called when it is made
    // (set_on_mapped). The function is set once, for all of them.
    void set_on_guard(GuardFunction function) { on_guard_ = std::move(function); }
    // Asked first, where the run is fast and not told: true if nothing but the access is to be done
    // at this hit. Before start().
    void set_on_plain_guard(std::function<bool(const GuardHit&)> function) {
        on_plain_guard_ = std::move(function);
    }
    enum class Guarded { metadata, all };
    void guard_mapping(const Mapped& mapped, Guarded what);
    // From now on the data of what is guarded as well.
    void guard_data();
    // From now on only the metadata pages of what is guarded.
    void release_data_guards();
    void release_guards();
    // See Tracer::let_reads_pass.
    bool let_reads_pass(MappingId mapping, bool pass) {
        return tracer_->let_reads_pass(mapping, pass);
    }
    // The read at this hit is done in two: the first `split_bytes` of it before `between`, the rest
    // after it. For AtGuard::done.
    void step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                   const std::function<void()>& between);
    // Keeps a thread that stands at a guard, or is held, still for as long as `condition` holds, or
    // until the others have had a short while: time in which they had no processor does not count.
    // No verdict hangs on it. A thread that is alone is let go at once: there is nobody to wait
    // for.
    void hold_while(pid_t tid, const std::function<bool()>& condition,
                    std::chrono::milliseconds at_most = kStuck);
    // The buffer that a hit of a guard is in; nothing: none of this stage's.
    std::optional<BufferIndex> buffer_at(const BufferPlace& place) const {
        return buffers_.index_of(place.buffer);
    }
    // Called at each entry into a futex wait on a ring word, before the kernel looks at the word.
    void set_on_wait(std::function<void(const FutexWait&, std::uint32_t cpu)> function);
    // Called when such a wait is over.
    void set_on_wait_end(std::function<void(const FutexWaitEnd&)> function) {
        on_wait_end_ = std::move(function);
    }

    // -- What it has done so far --
    // Every event is delivered on every CPU that has not ended.
    bool owes_nothing() const;
    // Some accesses are stopped at: for the case, or for the timeline.
    bool has_guards() const { return !guarded_.empty() || is_recording(); }
    bool is_present(const Mapped& mapped, std::uint32_t cpu) const;
    bool has_mapped_present(std::uint32_t cpu) const {
        return buffers_.has_mapped(rings_->history().present_buffer(cpu));
    }
    // See WaitLog for the next four.
    bool asleep(std::uint32_t cpu) const { return waits_.asleep(cpu); }
    bool is_waiting(pid_t thread) const { return waits_.is_waiting(thread); }
    bool sleeps_without_limit(std::uint32_t cpu) const { return waits_.sleeps_without_limit(cpu); }
    bool sleeps_for(std::uint32_t cpu, Clock::duration limit) const {
        return waits_.sleeps_for(cpu, limit);
    }
    bool has_refused(std::uint32_t cpu) const { return progress_->refused(cpu); }
    bool has_ended(std::uint32_t cpu) const { return progress_->ended(cpu); }
    // The highest sequence number that it has delivered on a CPU; 0: none.
    std::uint64_t last_delivered(std::uint32_t cpu) const { return progress_->last_sequence(cpu); }
    const RecordParser& records() const { return parser_; }
    // So that records() has what is written by now: where a thread stands at a guard.
    void read_report();
    const std::vector<Attached>& attaches() const { return attaches_; }
    const std::vector<Mapped>& maps() const { return maps_; }
    std::uint64_t sleeps(std::uint32_t cpu) const { return waits_.sleeps(cpu); }
    // What its threads have slept on ring words, as far as they asked for it.
    const SleepClock& sleep_clock() const { return waits_.sleep_clock(); }
    // Of all its threads. Nothing: it has none, or this cannot be read here.
    std::optional<Clock::duration> processor_time() const;
    // Waits that it entered, in order.
    const std::vector<FutexWait>& waits() const { return waits_.all(); }
    // It is one thread, and has made no other process.
    bool is_single_thread() const { return !has_forked_ && tracer_->testee_threads().size() == 1; }
    Tracer& tracer() { return *tracer_; }
    // What has happened, for the picture of a failure.
    Recorder& recorder() { return recorder_; }
    // Adds a finding of the case's own.
    void blame(Finding finding) { findings_.push_back(std::move(finding)); }
    void blame(std::string_view clause, const std::string& message);
    void note(std::string line) { notes_.push_back(std::move(line)); }
    // The message of a pass: what of the case was not played, and why.
    void played_in_part(std::string what) { in_part_ = std::move(what); }

    // -- The end --
    // The end event on every CPU that has not ended. Once; finish() does it where nobody has.
    void emit_ends();
    // Emits the end event on every CPU, waits for the exit, judges.
    CaseOutcome finish();
    // The same for a run in which the testee is right to end by itself, or with another status, at
    // any time from now on (an attach that fails: the contract allows both).
    CaseOutcome finish_any_exit();
    // The same where every buffer must be refused: it refuses each and exits with 0, or exits with
    // another status at any time.
    CaseOutcome finish_refused();
    // The same where a CPU is tolerated (level robust): it may also stay asleep there for ever, but
    // neither spin, nor crash, nor leave the other CPUs undrained.
    CaseOutcome finish_tolerant();
    // Judges what there is, with the finding that ended the run.
    CaseOutcome outcome_of(const Stop& stop);

    // Resizes every CPU, as a registry change would (5.1.3): same capacity for all.
    void resize(std::uint64_t capacity_bytes, PositionRule rule = PositionRule::keep,
                std::uint64_t position = 0);

  private:
    // How a testee makes no progress: in waits with a limit, in a spin, in calls of kmes_attach, or
    // blocked for good.
    enum class Stall { none, timed_waits, spinning, attaching, for_good };
    // While it lives, `flag` is set: what goes on may come round to the same again.
    class Raised {
      public:
        explicit Raised(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
        ~Raised() { flag_ = before_; }
        Raised(const Raised&) = delete;
        Raised& operator=(const Raised&) = delete;

      private:
        bool& flag_;
        bool before_;
    };

    bool wake_who_waits_elsewhere();

    // From one look to the next, in a wait.
    static constexpr std::chrono::milliseconds kPoll{3};
    // A short while, after which a case goes on; no verdict hangs on it.
    static constexpr std::chrono::milliseconds kStuck{60};

    void pump(TimePoint deadline);
    bool has_gone_or_stop();
    void handle(const TracerEvent& event);
    void on(const Attached& event);
    void on(const Mapped& event);
    void on(const FutexWait& event);
    void on(const FutexWaitEnd& event);
    void on(const WriteFault& event);
    void on(const GuardHit& event);
    bool is_asked_for(const GuardHit& event) const;
    void stop_recording(const GuardHit& event);
    void note_look(const GuardHit& hit);
    bool is_recording() const;
    void record_accesses_of(const Mapping& mapping);
    void on(const Ended& event);
    void on_other(const TracerEvent& event);

    AttachAnswer answer_attach(const AttachRequest& request);
    BufferId serve(BufferIndex buffer);
    // How long nothing may come before it is called hung in this way.
    std::chrono::milliseconds time_to_hang(Stall stall) const;
    void check_monitors() const;
    void take_checkpoint(std::uint32_t cpu);
    bool idles();
    bool hardly_runs(pid_t tid) const;
    bool all_mapped() const;
    void wait_mapped_unless(const std::function<bool()>& condition);
    bool all_ended() const { return progress_->all_ended(); }
    // `must_be_sure`: before somebody is blamed. Who may be helped from outside the run (a socket,
    // a lock, setitimer) is given the time of one with timers.
    Stall find_stall(bool must_be_sure = false);
    bool is_at_rest();
    bool nudge_retired();
    bool is_stepped() const;
    [[noreturn]] void stop_hung(const std::string& what, Stall stall);
    static std::string text_of_waiting(Stall stall, std::uint64_t given_ms);
    void stop_if_foreign(const std::string& what) const;
    [[noreturn]] void stop_ended();
    void stop_at_malformed() const;
    void stop_at_lost_counter() const;
    void stop_at_unrefused(const std::string& waited) const;
    void name_repeats(Finding& finding) const;
    void name_forged(Finding& finding, const Inspection& inspection) const;
    void stop_at_retired(const Inspection& inspection) const;
    [[noreturn]] static void stop_with(Finding finding);
    void stop_at_child(const Finding& finding) const;
    Finding end_finding(const Ended& ended) const;
    Finding with_reason(Finding finding, const Ended& ended) const;
    std::uint32_t cpu_of(BufferIndex buffer) const;
    bool describe_word(const FutexWord& word, pid_t tid, std::uint32_t cpu,
                       const kmes::conformance::Event* owed, WaitDescription& description) const;
    std::string text_of_timed_waits(const WaitDescription& wait, std::uint32_t cpu,
                                    const kmes::conformance::Event* owed) const;
    LastDelivery last_delivery(std::uint32_t cpu) const;
    WaitDescription describe_wait(const Inspection& inspection, std::uint32_t cpu,
                                  const kmes::conformance::Event* owed) const;
    JudgeOptions judge_options() const;
    CaseOutcome judge_run(const JudgeOptions& options, std::optional<Finding> first);
    CaseOutcome make_outcome(const std::vector<Finding>& findings,
                             const std::vector<Finding>& by_driver, const JudgeOptions& options);
    std::shared_ptr<RunRecord> make_record(const std::vector<Finding>& findings,
                                           const std::vector<Finding>& by_driver,
                                           const JudgeOptions& options);
    void wait_for_exit();
    void let_fall_asleep(std::uint32_t cpu);
    void wait_while(const std::function<bool()>& pending, const std::function<bool()>& owing,
                    const std::string& what);

    // What a case has guarded itself.
    struct GuardedPages {
        MappingId mapping = 0;
        std::uint64_t first_page = 0;
        std::uint64_t pages = 0;
    };

    static GuardedPages pages_of(MappingId mapping, std::uint64_t first_page, std::uint64_t pages);

    const StageSettings& settings_;
    const Case& case_;
    Recorder recorder_;
    std::unique_ptr<Rings> rings_;
    std::unique_ptr<Tracer> tracer_;
    std::unique_ptr<Progress> progress_;
    RecordParser parser_;
    std::string report_;  // as it is, for the file of a failure; bounded
    ServedBuffers buffers_;
    WorkClock clock_;
    WaitLog waits_;
    MetadataReads reads_;
    std::map<BufferIndex, std::uint64_t> nudged_;  // how often
    std::uint64_t nudges_ = 0;                     // of all buffers
    std::deque<int> attach_errors_;
    std::optional<std::uint64_t> reported_capacity_bytes_;
    int least_fd_ = 0;
    std::function<void(const Mapped&)> on_mapped_;
    std::function<void()> on_attach_;
    std::function<void(const Attached&)> on_attached_;
    GuardFunction on_guard_;
    SteppedFunction on_stepped_;
    std::function<bool(const GuardHit&)> on_plain_guard_;
    std::function<bool(const ReportWrite&)> on_report_write_;
    std::function<bool(pid_t, long)> on_call_;
    std::function<bool(bool)> on_round_;
    std::vector<GuardedPages> guarded_;
    std::function<void(const FutexWait&, std::uint32_t cpu)> on_wait_;
    std::function<void(const FutexWaitEnd&)> on_wait_end_;
    Repeats attaches_again_;  // epoch: buffers ever made
    Repeats maps_again_;      // of buffers that it has mapped before; epoch: buffers ever made
    std::vector<Attached> attaches_;
    std::vector<Mapped> maps_;
    Monitors monitors_;
    std::vector<Finding> findings_;
    std::vector<std::string> notes_;
    std::string in_part_;
    std::optional<Ended> ended_;
    pid_t foreign_process_ = 0;          // that has called kmes_attach beside the testee
    std::uint64_t operations_seen_ = 0;  // when the clock was last looked at
    std::uint64_t accesses_seen_ = 0;    // accesses_recorded_ at the last look
    TimePoint last_look_;                // the last look itself
    TimePoint change_at_look_;           // the last change at the last look
    unsigned looks_ = 0;
    unsigned quiet_looks_ = 0;
    TimePoint idle_since_;  // the last work when the next five were set back
    TimePoint idle_from_;   // when that was
    std::size_t attaches_when_idle_ = 0;
    // Of each thread since then, or since it was seen first.
    struct IdleFrom {
        TimePoint at;
        ProcessorTime time;
        unsigned looks = 0;
        unsigned blocked_looks = 0;
    };
    std::map<pid_t, IdleFrom> times_when_idle_;
    TimePoint looked_idle_at_;
    unsigned idle_looks_ = 0;
    unsigned calm_looks_ = 0;
    Clock::duration processor_time_before_{};
    bool has_hung_ = false;
    bool stands_still_ = false;  // stop_hung: it does nothing any more, or nothing of use
    bool has_forked_ = false;
    bool has_twin_ = false;         // a second process in its own memory
    std::uint64_t guard_hits_ = 0;  // that the case has asked for
    std::uint64_t accesses_recorded_ = 0;
    std::int64_t wake_result_ = 0;
    std::uint64_t wake_results_told_ = 0;
    bool nudging_ = true;
    bool shortens_waits_ = false;
    std::uint64_t freezes_slept_through_ =
        0;  // Tracer::freezes() that the sleepers are known behind
    bool is_in_pump_ = false;
    bool frozen_ = false;
    bool ending_ = false;
    bool may_give_up_ = false;
    bool may_stay_ = false;  // after the end: a testee that rests is no worse than one that exits
};

class Stage::ShortenedWaits {
  public:
    explicit ShortenedWaits(Stage& stage) : shortens_waits_(stage.shortens_waits_) {}

  private:
    Raised shortens_waits_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STAGE_H_
