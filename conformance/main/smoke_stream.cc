// SPDX-License-Identifier: MIT
//
// The stream of a smoke run.
#include "conformance/main/smoke_stream.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/main/smoke_calls.h"
#include "conformance/main/smoke_mappings.h"
#include "conformance/main/smoke_patience.h"
#include "conformance/main/smoke_report.h"
#include "conformance/model/layout.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/attach_form.h"
#include "conformance/stage/end_finding.h"
#include "conformance/stage/metadata_check.h"
#include "conformance/stage/rings_observer.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMain = 0;     // most events, a gap
constexpr std::uint32_t kSecond = 1;   // ends first
constexpr std::uint32_t kRefused = 2;  // its magic is wrong
constexpr milliseconds kPoll{3};
// A testee that is not blocked, but makes no progress, gets this much time; times the scale.
constexpr milliseconds kPatience{4000};
// How long the suite waits for a testee to sleep where no verdict depends on it.
constexpr milliseconds kRest{300};
// The limit of the whole run; times the scale.
constexpr milliseconds kLimit{11000};
constexpr unsigned kProcessesAtMost = 200;
constexpr std::uint64_t kAttachesOfProgress = 100;

struct Interrupted {};

class Session : private RingsObserver {
  public:
    explicit Session(const SmokeSettings& settings) : settings_(settings), cpus_(settings.cpus) {
        run_.rings = std::make_unique<Rings>(RingsSetup{cpus_, settings.capacity_bytes, {}, {}});
        spoil(kRefused);
        emit(kMain, "there.before.the.attach", "first", 0);
        tracer_.set_attach_call(attach_call_of(layout()));
        tracer_.handlers().attach = [this](const AttachRequest&) { return answer(); };
        tracer_.handlers().report_write = [this](const ReportWrite& write) { note_write(write); };
        run_.rings->set_observer(*this);
    }

    SmokeRun play() {
        begin_ = Clock::now();
        tracer_.start(settings_.testee);
        run_.to_the_end = play_events() && (settings_.is_brief || (play_gap() && play_resize()));
        play_end();
        conclude();
        return std::move(run_);
    }

  private:
    History& history() { return run_.rings->history(); }

    void before_operation() override {
        read_report();
        history().set_report_bytes(report_.text().size());
    }

    void complain(const std::string& problem) {
        const auto& reported = run_.problems;
        if (std::find(reported.begin(), reported.end(), problem) != reported.end()) return;
        run_.problems.push_back(problem);
    }

    // Makes one byte of the magic wrong, so that the buffer must be refused (5.1.6.1).
    void spoil(std::uint32_t cpu) {
        if (cpu >= cpus_) return;
        const BufferIndex index = history().current_buffer(cpu);
        const std::array<std::uint8_t, 1> byte{'X'};
        run_.rings->forged().write_metadata(index, 7, byte);
        history().set_fault(index, BufferFault::magic, "bad magic");
    }

    void emit(std::uint32_t cpu, std::string type, std::string payload, std::uint8_t origin,
              std::string extra_header = "") {
        if (cpu >= cpus_) return;
        EventSpec spec;
        spec.type = std::move(type);
        spec.payload = std::move(payload);
        spec.origin = origin;
        spec.extra_header = std::move(extra_header);
        // A timestamp that differs in any unit other than ns.
        spec.timestamp = clock_ns_ += 1'001'001'001;
        run_.rings->emit(cpu, std::move(spec));
        if (cpu != kRefused) ++emitted_.at(cpu);
    }

    // -- The stream ------------------------------------------------------------------------------

    bool play_events() {
        if (!until([this] { return !mappings_.is_one_missing(); }, "map every fd")) return false;
        if (!until_delivered("the event that was there before the attach")) {
            if (settings_.is_brief && stuck_) try_later_events();
            return false;
        }
        if (settings_.is_brief) let_rest();
        emit_first_events();
        return until_delivered("the first events");
    }

    // A consumer that omits the first event may deliver later ones, and then it reads the ring. The
    // first mistake remains that of the run.
    void try_later_events() {
        Stuck stuck = *stuck_;
        const std::uint64_t lines_before = report_.event_lines();
        emit_first_events();
        const std::uint64_t expected = lines_before + emitted_[kMain] + emitted_[kSecond] - 1;
        until([&] { return report_.event_lines() >= expected; }, "the first events");
        if (report_.event_lines() > lines_before) stuck.report_bytes = report_.text().size();
        stuck_ = std::move(stuck);
    }

    void emit_first_events() {
        run_.has_emitted_to_reader = true;
        emit(kMain, "smoke.twelve", "twelve bytes", 1);
        emit(kMain, "smoke.nothing", "", 2);
        // Hex digits with letters in the type, and payload bytes from 0x80 on.
        emit(kMain, "sm\xc3\xb6ke.\xe2\x82\xac", "\x80\xff\xfe\x01\xc3", 3);
        emit(kMain, "smoke.zeros", leading_zero_payload(), 0);
        emit(kMain, "smoke.header", "after a longer header", 0,
             layout().header_may_grow ? "extra" : "");
        emit(kSecond, "s", "second CPU", 0);
    }

    // A payload whose digest begins with a zero digit.
    static std::string leading_zero_payload() {
        std::string payload = "zero?";
        while (fnv1a(payload) >> 60 != 0) payload += '?';
        return payload;
    }

    bool play_gap() {
        run_.rings->drop(kMain);
        run_.rings->drop(kMain);
        emit(kMain, "smoke.after.a.gap", "two are lost before this one", 0);
        return until_delivered("the event after a gap");
    }

    bool play_resize() {
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            run_.rings->swap(cpu, SwapSpec{2 * settings_.capacity_bytes, PositionRule::keep, 0});
        }
        spoil(kRefused);
        emit(kMain, "smoke.after.a.resize", "in the new buffer", 0);
        emit(kSecond, "smoke.after.a.resize", "in the new buffer too", 0);
        return until_delivered("the events after a resize");
    }

    void play_end() {
        if (ended_ || is_given_up_ || mappings_.is_one_missing()) return;
        const std::string end(kEndEventType);
        emit(kSecond, end, "", 0);
        const bool plays_on = run_.to_the_end && !settings_.is_brief;
        if (plays_on && until_delivered("the end of CPU 1")) {
            emit(kSecond, "smoke.after.the.end", "not to be delivered", 0);
            --emitted_.at(kSecond);
            emit(kMain, "smoke.last", "and the other CPU goes on", 0);
            until_delivered("an event of CPU 0, when CPU 1 had ended");
        }
        if (ended_ || is_given_up_) return;
        emit(kMain, end, "", 0);
        waiting_for_exit_ = true;
        until([] { return false; }, "exit");
    }

    // -- Waiting ---------------------------------------------------------------------------------

    bool until_delivered(const std::string& what) {
        const std::uint64_t expected = emitted_[kMain] + emitted_[kSecond];
        return until([&] { return report_.event_lines() >= expected; }, what);
    }

    // Returns false if the condition does not come true (the reason is among the problems), or the
    // testee has ended.
    bool until(const std::function<bool()>& condition, const std::string& what) {
        patience_.note_progress();
        while (!ended_ && !is_given_up_) {
            if (condition()) return true;
            pump();
            if (condition()) return true;
            if (ended_ || is_given_up_) break;
            if (Clock::now() - begin_ >= scaled(kLimit)) {
                end_at_limit(what);
                return false;
            }
            if (const std::string why = patience_.why_hopeless(); !why.empty()) {
                complain_hopeless(what, why);
                return false;
            }
        }
        return condition();
    }

    // Waits for a short time until it sleeps: an event just before a wait is a case of its own.
    void let_rest() {
        const TimePoint end = Clock::now() + scaled(kRest);
        while (!ended_ && Clock::now() < end && !tracer_.inspect().all_blocked) pump();
    }

    void pump() {
        if (settings_.stop->load()) throw Interrupted{};
        handle(tracer_.wait(Clock::now() + kPoll));
        read_report();
    }

    void read_report() {
        const std::string bytes = tracer_.output().read_report();
        if (bytes.empty()) return;
        patience_.note_event();
        if (report_.append(bytes)) patience_.note_progress();
        if (!report_.flood().empty()) give_up_as_flood(report_.flood());
    }

    // -- Ends before the stream does ----------------------------------------------------------

    void give_up_as_flood(const std::string& how) {
        if (is_given_up_) return;
        is_given_up_ = run_.flooded = true;
        complain("the program floods its report: " + how);
    }

    void end_at_limit(const std::string& what) {
        if (!patience_.is_over()) return give_up_for_time(what);
        complain_hopeless(what, patience_.no_progress());
        is_given_up_ = true;
    }

    // The machine or the testee may have been too slow, so the testee is not blamed.
    void give_up_for_time(const std::string& what) {
        is_given_up_ = run_.cut_short = true;
        run_.inconclusive = fmt::format(
            "the stream was not at its end after {} ms, in which the testee may not have had "
            "enough "
            "of the processor; the suite waited for {}. --timeout-scale allows more time",
            scaled(kLimit).count(), waiting_for_exit_ ? "the exit" : "the record of " + what);
    }

    void give_up_as_inconclusive(const std::string& why) {
        is_given_up_ = true;
        if (run_.inconclusive.empty()) run_.inconclusive = why;
    }

    milliseconds scaled(milliseconds time) const {
        return milliseconds(
            static_cast<std::int64_t>(static_cast<double>(time.count()) * settings_.timeout_scale));
    }

    void complain_hopeless(const std::string& what, const std::string& why) {
        if (waiting_for_exit_) {
            // A testee that did not get so far need not exit.
            if (run_.to_the_end) {
                complain(fmt::format(
                    "the program does not exit: {}; expected exit status 0 when every CPU has "
                    "ended (its event kmes.conformance.end delivered, or its buffer refused)",
                    why));
            }
            return;
        }
        if (attaches_ == 0) {
            return complain("the program does not call kmes_attach (system call 1091): " + why);
        }
        if (mappings_.is_one_missing()) return complain(mappings_.missing_text() + ": " + why);
        stuck_ = Stuck{fmt::format("waited for the record of {}: {}{}", what, why, sleep_text()),
                       report_.text().size(), report_.owed(history())};
    }

    // Returns what is wrong with a wait itself, whatever the thread had read before. Empty: nothing
    // is known.
    std::string sleep_text() {
        for (const ThreadState& thread : tracer_.inspect().threads) {
            for (const FutexWord& word : thread.words) {
                const auto found = served_back_.find(word.place.buffer);
                if (found == served_back_.end()) continue;
                const std::uint32_t cpu = history().buffer(found->second).cpu;
                const std::uint64_t owed = report_.first_owed(history(), cpu);
                WaitDescription wait;
                wait.thread = thread.tid;
                wait.on_futex = true;
                wait.cpu = cpu;
                wait.mapping_offset = word.place.offset_bytes;
                wait.expected = word.value_expected;
                wait.current_value = word.value_there;
                wait.is_private = word.is_private;
                wait.asked = run_.rings->backend().need_wake(found->second) != 0;
                const bool may_be_woken =
                    !wait.is_private && wait.asked && wait.mapping_offset == kFutexCounterOffset;
                if (owed == 0 || may_be_woken) continue;
                const Finding finding = lost_wake_up(cpu, owed, wait);
                return fmt::format(". {} [{}]", finding.message, finding.clause);
            }
        }
        return {};
    }

    // -- Events of the tracer --------------------------------------------------------------------

    void handle(const TracerEvent& event) {
        if (std::holds_alternative<TimedOut>(event)) return;
        // Something has happened. Whether it is progress depends on what it is.
        patience_.note_event();
        if (const auto* attached = std::get_if<Attached>(&event)) return on(*attached);
        if (const auto* mapped = std::get_if<Mapped>(&event)) return on(*mapped);
        if (const auto* wait = std::get_if<FutexWait>(&event)) return on(*wait);
        if (const auto* fault = std::get_if<WriteFault>(&event)) {
            return complain("the program writes to a page that it may only read: " +
                            fault->code.describe());
        }
        if (const auto* foreign = std::get_if<ForeignAttach>(&event)) {
            foreign_ = fmt::format(
                "process {} also calls kmes_attach and gets EPERM, because the first process that "
                "called it is the testee. Consume in one process, with threads",
                foreign->pid);
        }
        if (const auto* limit = std::get_if<OutputLimit>(&event)) {
            if (limit->file != OutputLimit::File::kReport) return;
            return give_up_as_flood(fmt::format("{} bytes unread", limit->unread_bytes));
        }
        if (std::holds_alternative<Forked>(event)) {
            if (++processes_ <= kProcessesAtMost) return;
            is_given_up_ = true;
            return complain(
                fmt::format("the program creates processes without end: {} so far", processes_));
        }
        if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
            if (trouble->reason == TracerTrouble::Reason::too_many_processes) {
                is_given_up_ = true;
                return complain("the program creates processes without end: " + trouble->what);
            }
            if (trouble->reason != TracerTrouble::Reason::none_known)
                return give_up_as_inconclusive(trouble->what);
            run_.suite_error = "tracer: " + trouble->what;
        }
        if (const auto* ended = std::get_if<Ended>(&event)) ended_ = *ended;
    }

    void on(const Attached& event) {
        // A testee that attaches again and again makes no progress.
        if (++attaches_ <= kAttachesOfProgress) patience_.note_progress();
        last_attach_ = event;
        if (event.error == 0) {
            has_attached_ = has_attached_ || !event.buffers.empty();
            for (const BufferId id : event.buffers) history().note_attached(served_back_.at(id));
        }
    }

    void on(const Mapped& event) {
        const BufferIndex index = served_back_.at(event.buffer);
        const std::uint32_t cpu = history().buffer(index).cpu;
        const std::vector<std::string> mistakes =
            mapping_mistakes(event, history().buffer(index).capacity);
        // A consumer may try the length of another form first.
        if (event.is_refused) return mappings_.refuse(cpu, mistakes);
        for (const std::string& mistake : mistakes) complain(mistake);
        if (event.error != 0) complain(fmt::format("mmap failed: {}", strerror(event.error)));
        mappings_.add(cpu);
        if (mapped_.insert(index).second) patience_.note_progress();
    }

    void on(const FutexWait& event) {
        for (const FutexWord& word : event.words) {
            if (word.is_private && !has_reported_private_) {
                has_reported_private_ = true;
                complain(
                    "the program waits with FUTEX_PRIVATE_FLAG, and no other process can wake it; "
                    "expected FUTEX_WAIT without that flag (E17)");
            }
        }
    }

    void note_write(const ReportWrite& write) {
        ++writes_;
        if (write.ends_line) return;
        // The current lines say where it ends.
        read_report();
        if (++cut_writes_ > 1) return;
        complain(fmt::format(
            "line {} is written in pieces: a write of {} byte{} that does not end with a newline; "
            "expected whole lines in each write, because lines of threads mix",
            report_.lines() + 1, write.bytes, write.bytes == 1 ? "" : "s"));
    }

    AttachAnswer answer() {
        AttachAnswer answer;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            answer.buffers.push_back(served_.at(history().current_buffer(cpu)));
        }
        answer.capacity_bytes = run_.rings->capacity_bytes();
        return answer;
    }

    void on_buffer(BufferIndex index) override {
        const BufferId id = tracer_.add_buffer(run_.rings->backend().served(index));
        served_[index] = id;
        served_back_[id] = index;
    }

    // -- Conclusions ----------------------------------------------------------------------------

    void conclude() {
        read_report();
        run_.standard_output = tracer_.output().standard_output();
        run_.standard_error = tracer_.output().standard_error();
        run_.has_events = report_.event_lines() > 0;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            if (const auto finding = check_metadata(*run_.rings, history().current_buffer(cpu))) {
                complain(finding->message);
            }
        }
        conclude_end();
        conclude_silence();
        if (!foreign_.empty()) conclude_foreign();
        run_.facts.push_back(
            fmt::format("{} calls of kmes_attach, {} CPUs mapped, {} writes, {} "
                        "lines",
                        attaches_, mappings_.cpus(), writes_, report_.lines()));
        run_.report = report_.take();
    }

    void conclude_end() {
        if (!ended_) return;
        for (const auto& [cpu, mistakes] : mappings_.refused()) {
            for (const std::string& mistake : mistakes)
                complain(mistake + ". The kernel refuses it with EINVAL");
        }
        if (ended_->kind == EndKind::kKilled && ended_->signal == SIGSYS)
            return give_up_as_inconclusive(std::string(kKilledBySeccomp));
        if (last_attach_.error != 0 && mappings_.cpus() == 0) {
            const std::string mistake = attach_mistake(last_attach_, has_attached_);
            if (!mistake.empty()) complain(mistake);
        }
        if (ended_->sanitizer_needs_ptrace) {
            give_up_as_inconclusive("the program " + ended_->text);
            run_.needs_ptrace_itself = true;
        } else if (ended_->kind == EndKind::kNotStarted || ended_->kind == EndKind::kNotTraceable) {
            run_.suite_error = ended_->text;
            run_.is_not_startable = true;
        } else if (ended_->is_from_outside) {
            give_up_as_inconclusive("the program was " + ended_->text + " from outside");
        } else if (ended_->kind == EndKind::kKilled || !ended_->attached) {
            complain((ended_->kind == EndKind::kExited ? "the program " : "the program was ") +
                     ended_->text);
        } else if (ended_->exit_status != 0) {
            complain(fmt::format(
                "the program exited with status {}; expected 0 when every CPU has ended",
                ended_->exit_status));
        } else if (!run_.to_the_end && !stuck_) {
            complain("the program exited with status 0; expected the end of a CPU first");
        }
        if (mappings_.is_one_missing() && mappings_.cpus() > 0 && mappings_.refused().empty())
            complain(mappings_.missing_text());
    }

    // As in a full run: another process is not followed, and the testee is not blamed for it.
    void conclude_foreign() {
        if (run_.problems.empty() && run_.to_the_end) return run_.facts.push_back(foreign_);
        give_up_as_inconclusive(foreign_);
    }

    bool has_refused_a_sound_one() const {
        for (std::uint32_t cpu = 0; cpu < kRefused; ++cpu) {
            if (report_.has_refusal_of(cpu)) return true;
        }
        return false;
    }

    // The report is empty although it should not be: prints the likely reasons.
    void conclude_silence() {
        if (has_refused_a_sound_one()) return;  // the reason, and a mistake of its own
        if (stuck_) {
            if (report_.text().size() > stuck_->report_bytes) run_.in_time = stuck_->report_bytes;
            complain(stuck_->problem + report_.late_text(stuck_->report_bytes, stuck_->owed));
        }
        if (report_.event_lines() > 0) return;
        if (run_.standard_output.find("E ") != std::string::npos) {
            complain(
                "the records are on standard output; expected them on the descriptor that "
                "KMES_REPORT_FD names");
        }
    }

    // The wait that the suite gave up.
    struct Stuck {
        std::string problem;
        std::size_t report_bytes;  // the length of the report then
        std::set<SmokeReport::EventName> owed;
    };

    const SmokeSettings& settings_;
    const std::uint32_t cpus_;
    SmokeRun run_;
    SmokeReport report_;
    SmokeMappings mappings_{cpus_};
    Tracer tracer_;
    std::map<BufferIndex, BufferId> served_;
    std::map<BufferId, BufferIndex> served_back_;
    std::set<BufferIndex> mapped_;
    std::array<std::uint64_t, 2> emitted_{};
    std::uint64_t attaches_ = 0;
    Attached last_attach_;
    bool has_attached_ = false;  // to a buffer
    std::uint64_t writes_ = 0;
    std::uint64_t cut_writes_ = 0;
    std::uint64_t clock_ns_ = 1'700'000'000'123'456'789;
    bool has_reported_private_ = false;
    bool waiting_for_exit_ = false;
    bool is_given_up_ = false;  // the rest of the stream is not played
    unsigned processes_ = 0;
    TimePoint begin_;
    std::string foreign_;  // what another process has tried
    std::optional<Stuck> stuck_;
    SmokePatience patience_{tracer_, scaled(kPatience)};
    std::optional<Ended> ended_;
};

}  // namespace

SmokeRun play_smoke_stream(const SmokeSettings& settings) {
    SmokeRun failed;
    try {
        return Session(settings).play();
    } catch (const Interrupted&) {
        failed.suite_error = "interrupted";
    } catch (const std::exception& error) {
        failed.suite_error = error.what();
    }
    return failed;
}

}  // namespace kmes::conformance
