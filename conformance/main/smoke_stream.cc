// SPDX-License-Identifier: MIT
//
// The stream of a smoke run.
#include "conformance/main/smoke_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/main/smoke_calls.h"
#include "conformance/model/layout.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/oracle/record.h"
#include "conformance/stage/attach_form.h"
#include "conformance/stage/metadata_check.h"
#include "conformance/stage/rings_observer.h"
#include "conformance/stage/state_text.h"
#include "conformance/tracer/patience.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMain = 0;     // most events, a gap
constexpr std::uint32_t kSecond = 1;   // ends first
constexpr std::uint32_t kRefused = 2;  // its magic is wrong
constexpr milliseconds kPoll{3};
// A testee that is blocked for good at this many checks in a row has nothing more to say.
constexpr milliseconds kLookEvery{20};
constexpr unsigned kQuietLooks = 5;
// A testee that is not blocked, but makes no progress, gets this much time; times the scale.
constexpr milliseconds kPatience{4000};
// How long the suite waits for a testee to sleep where no verdict depends on it.
constexpr milliseconds kRest{300};
// The limit of the whole run; times the scale.
constexpr milliseconds kLimit{11000};
// The report of these few events is a hundred times shorter, comments included.
constexpr std::size_t kReportBytesAtMost = std::size_t{1} << 20;
// If a machine is too slow for that many bytes, the number of lines shows a flood: the stream has a
// few dozen events.
constexpr std::uint64_t kEventLinesAtMost = 1024;
constexpr unsigned kProcessesAtMost = 200;
constexpr std::uint64_t kAttachesOfProgress = 100;

struct Interrupted {};

using EventName = std::pair<std::uint64_t, std::uint64_t>;  // CPU, sequence number

// Returns the events that have a record in this part of a report.
std::vector<EventName> delivered_in(std::string_view report) {
    RecordParser parser;
    parser.feed(report);
    parser.finish();
    std::vector<EventName> names;
    for (const Record& record : parser.records()) {
        if (record.kind == RecordKind::event) names.emplace_back(record.cpu, record.sequence);
    }
    return names;
}

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
        history().set_report_bytes(run_.report.size());
    }

    void complain(const std::string& problem) {
        const auto& told = run_.problems;
        if (std::find(told.begin(), told.end(), problem) != told.end()) return;
        run_.problems.push_back(problem);
    }

    // Makes one byte of the magic wrong, so that the buffer must be refused (5.1.6.1).
    void spoil(std::uint32_t cpu) {
        if (cpu >= cpus_) return;
        const BufferIndex index = history().present_buffer(cpu);
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
        if (!until([this] { return !is_one_unmapped(); }, "map every fd")) return false;
        if (!until_delivered("the event that was there before the attach")) {
            if (settings_.is_brief && !stuck_.empty()) try_later_events();
            return false;
        }
        if (settings_.is_brief) let_rest();
        emit_first_events();
        return until_delivered("the first events");
    }

    // A consumer that omits the first event may deliver later ones, and then it reads the ring. The
    // first mistake remains that of the run.
    void try_later_events() {
        const std::string stuck = stuck_;
        const std::set<EventName> owed = owed_;
        const std::size_t stuck_at = stuck_at_;
        const std::uint64_t lines_before = event_lines();
        emit_first_events();
        const std::uint64_t expected = lines_before + emitted_[kMain] + emitted_[kSecond] - 1;
        until([&] { return event_lines() >= expected; }, "the first events");
        stuck_ = stuck;
        owed_ = owed;
        stuck_at_ = event_lines() > lines_before ? run_.report.size() : stuck_at;
    }

    void emit_first_events() {
        run_.has_emitted_to_reader = true;
        emit(kMain, "smoke.twelve", "twelve bytes", 1);
        emit(kMain, "smoke.nothing", "", 2);
        // Hex digits with letters in the type, and payload bytes from 0x80 on.
        emit(kMain, "sm\xc3\xb6ke.\xe2\x82\xac", "\x80\xff\xfe\x01\xc3", 3);
        emit(kMain, "smoke.zeros", leading_zero_payload(), 0);
        emit(kMain, "smoke.header", "behind a longer header", 0,
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
        if (ended_ || is_given_up_ || is_one_unmapped()) return;
        const std::string end(kEndEventType);
        emit(kSecond, end, "", 0);
        const bool plays_on = run_.to_the_end && !settings_.is_brief;
        if (plays_on && until_delivered("the end of CPU 1")) {
            emit(kSecond, "smoke.behind.the.end", "not to be delivered", 0);
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

    // Lines that could be records of events of this CPU, whatever is wrong with them.
    std::uint64_t event_lines() const { return event_lines_; }

    bool until_delivered(const std::string& what) {
        const std::uint64_t expected = emitted_[kMain] + emitted_[kSecond];
        return until([&] { return event_lines() >= expected; }, what);
    }

    // Returns false if the condition does not come true (the reason is among the problems), or the
    // testee has ended.
    bool until(const std::function<bool()>& condition, const std::string& what) {
        changed();
        while (!ended_ && !is_given_up_) {
            if (condition()) return true;
            pump();
            if (condition()) return true;
            if (ended_ || is_given_up_) break;
            if (Clock::now() - begin_ >= scaled(kLimit)) {
                end_at_limit(what);
                return false;
            }
            if (const std::string why = why_hopeless(); !why.empty()) {
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
        quiet_looks_ = 0;
        for (const char byte : bytes) {
            if (run_.report.size() == kReportBytesAtMost) {
                return give_up_as_flood(
                    fmt::format("more than {} bytes for a few events", kReportBytesAtMost));
            }
            const char before = run_.report.empty() ? '\n' : run_.report.back();
            run_.report.push_back(byte);
            // A comment is no progress, and neither is the rest of a line.
            if (before == '\n' && byte != '#') changed();
            if (before == '\n' && (byte == 'E' || byte == 'e')) ++event_lines_;
        }
        if (event_lines_ > kEventLinesAtMost) {
            give_up_as_flood(
                fmt::format("more than {} event lines for a few events", kEventLinesAtMost));
        }
    }

    void changed() {
        patience_.restart();
        is_patience_over_ = false;
        quiet_looks_ = 0;
        looks_ = resting_looks_ = 0;
    }

    // -- Ends before the stream does ----------------------------------------------------------

    void give_up_as_flood(const std::string& how) {
        if (is_given_up_) return;
        is_given_up_ = run_.flooded = true;
        complain("the program floods its report: " + how);
    }

    std::string no_progress() const {
        return fmt::format("no progress in {} ms", patience_ms().count());
    }

    // A program that sleeps waits for something. A program that works may be slow, such as an
    // interpreter that loads its modules on a busy machine. It gets time up to the limit.
    bool has_rested() const { return resting_looks_ * 10 >= looks_ * 8; }

    void end_at_limit(const std::string& what) {
        if (!is_patience_over_) return give_up_for_time(what);
        complain_hopeless(what, no_progress());
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

    milliseconds patience_ms() const { return scaled(kPatience); }

    // Returns why nothing more will come; empty: something may.
    std::string why_hopeless() {
        const TimePoint now = Clock::now();
        is_patience_over_ = patience_.is_over(tracer_.testee_threads());
        if (is_patience_over_ && has_rested()) return no_progress();
        if (now - last_look_ < kLookEvery) return {};
        last_look_ = now;
        const Inspection inspection = tracer_.inspect();
        ++looks_;
        if (std::ranges::all_of(inspection.threads, is_out_of_the_way)) ++resting_looks_;
        const bool for_good = tracer_.testee_pid() != 0 && inspection.all_blocked_for_good &&
                              !inspection.other_processes;
        quiet_looks_ = for_good ? quiet_looks_ + 1 : 0;
        return quiet_looks_ >= kQuietLooks ? "all threads are blocked for good" : std::string();
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
        if (is_one_unmapped()) return complain(unmapped_text() + ": " + why);
        stuck_at_ = run_.report.size();
        owed_ = owed_events();
        stuck_ = fmt::format("waited for the record of {}: {}{}", what, why, sleep_text());
    }

    bool is_one_unmapped() const { return maps_of_cpu_.size() < cpus_; }

    // Names the CPUs without a mapping, and those that were mapped more than once instead.
    std::string unmapped_text() const {
        std::vector<std::uint32_t> unmapped;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            if (!maps_of_cpu_.contains(cpu)) unmapped.push_back(cpu);
        }
        const bool is_one = unmapped.size() == 1;
        std::string text =
            fmt::format("the program did not map the {} {}",
                        is_one ? "buffer of CPU" : "buffers of CPUs", ranges_text(unmapped));
        std::string_view link = "; it mapped ";
        for (const auto& [cpu, maps] : maps_of_cpu_) {
            if (maps < 2) continue;
            text += fmt::format("{}that of CPU {} {} times", std::exchange(link, ", "), cpu, maps);
        }
        return text;
    }

    // Returns what is wrong with a wait itself, whatever the thread had read before. Empty: nothing
    // is known.
    std::string sleep_text() {
        for (const ThreadState& thread : tracer_.inspect().threads) {
            for (const FutexWord& word : thread.words) {
                const auto found = served_back_.find(word.place.buffer);
                if (found == served_back_.end()) continue;
                const std::uint32_t cpu = history().buffer(found->second).cpu;
                const std::uint64_t owed = first_owed(cpu);
                WaitDescription wait;
                wait.thread = thread.tid;
                wait.on_futex = true;
                wait.cpu = cpu;
                wait.mapping_offset = word.place.offset_bytes;
                wait.expected = word.value_expected;
                wait.present = word.value_there;
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

    // Returns the events without a record.
    std::set<EventName> owed_events() {
        std::set<EventName> owed;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            for (const Event& event : history().events_of(cpu)) {
                if (!event.dropped) owed.emplace(cpu, event.sequence);
            }
        }
        for (const EventName& name : delivered_in(run_.report)) owed.erase(name);
        return owed;
    }

    // Returns the first sequence number of this CPU that no line of the report can belong to; 0:
    // none.
    std::uint64_t first_owed(std::uint32_t cpu) {
        const std::string lines = "\n" + run_.report;
        const std::string begin = fmt::format("\nE {} ", cpu);
        std::size_t count = 0;
        for (std::size_t at = lines.find(begin); at != std::string::npos;
             at = lines.find(begin, at + 1))
            ++count;
        const auto& events = history().events_of(cpu);
        return count < events.size() ? events[count].sequence : 0;
    }

    // -- Events of the tracer --------------------------------------------------------------------

    void handle(const TracerEvent& event) {
        if (std::holds_alternative<TimedOut>(event)) return;
        // Something has happened. Whether it is progress depends on what it is.
        quiet_looks_ = 0;
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
        if (++attaches_ <= kAttachesOfProgress) changed();
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
        if (event.is_refused) {
            refused_maps_.try_emplace(cpu, mistakes);
            return;
        }
        refused_maps_.erase(cpu);
        for (const std::string& mistake : mistakes) complain(mistake);
        if (event.error != 0) complain(fmt::format("mmap failed: {}", strerror(event.error)));
        ++maps_of_cpu_[cpu];
        if (mapped_.insert(index).second) changed();
    }

    void on(const FutexWait& event) {
        for (const FutexWord& word : event.words) {
            if (word.is_private && !told_private_) {
                told_private_ = true;
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
        const auto line =
            static_cast<std::uint64_t>(std::count(run_.report.begin(), run_.report.end(), '\n'));
        if (++cut_writes_ > 1) return;
        complain(fmt::format(
            "line {} is written in pieces: a write of {} byte{} that does not end with a newline; "
            "expected whole lines in each write, because lines of threads mix",
            line + 1, write.bytes, write.bytes == 1 ? "" : "s"));
    }

    AttachAnswer answer() {
        AttachAnswer answer;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            answer.buffers.push_back(served_.at(history().present_buffer(cpu)));
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
        run_.has_events = event_lines_ > 0;
        for (std::uint32_t cpu = 0; cpu < cpus_; ++cpu) {
            if (const auto finding = check_metadata(*run_.rings, history().present_buffer(cpu))) {
                complain(finding->message);
            }
        }
        conclude_end();
        conclude_silence();
        if (!foreign_.empty()) conclude_foreign();
        run_.facts.push_back(
            fmt::format("{} calls of kmes_attach, {} CPUs mapped, {} writes, {} "
                        "lines",
                        attaches_, maps_of_cpu_.size(), writes_,
                        std::count(run_.report.begin(), run_.report.end(), '\n')));
    }

    void conclude_end() {
        if (!ended_) return;
        for (const auto& [cpu, mistakes] : refused_maps_) {
            for (const std::string& mistake : mistakes)
                complain(mistake + ". The kernel refuses it with EINVAL");
        }
        if (last_attach_.error != 0 && maps_of_cpu_.empty()) {
            const std::string mistake = attach_mistake(last_attach_, has_attached_);
            if (!mistake.empty()) complain(mistake);
        }
        if (ended_->sanitizer_needs_ptrace) {
            give_up_as_inconclusive("the program " + ended_->text);
            run_.needs_ptrace_itself = true;
        } else if (ended_->kind == EndKind::kNotStarted || ended_->kind == EndKind::kNotTraceable) {
            run_.suite_error = ended_->text;
            run_.is_not_startable = true;
        } else if (ended_->kind == EndKind::kKilled || !ended_->attached) {
            complain((ended_->kind == EndKind::kExited ? "the program " : "the program was ") +
                     ended_->text);
        } else if (ended_->exit_status != 0) {
            complain(fmt::format(
                "the program exited with status {}; expected 0 when every CPU has ended",
                ended_->exit_status));
        } else if (!run_.to_the_end && stuck_.empty()) {
            complain("the program exited with status 0; expected the end of a CPU first");
        }
        if (is_one_unmapped() && !maps_of_cpu_.empty() && refused_maps_.empty())
            complain(unmapped_text());
    }

    // As in a full run: another process is not followed, and the testee is not blamed for it.
    void conclude_foreign() {
        if (run_.problems.empty() && run_.to_the_end) return run_.facts.push_back(foreign_);
        give_up_as_inconclusive(foreign_);
    }

    bool has_refused_a_sound_one() const {
        const std::string lines = "\n" + run_.report;
        for (std::uint32_t cpu = 0; cpu < kRefused; ++cpu) {
            if (lines.find(fmt::format("\nR {} ", cpu)) != std::string::npos) return true;
        }
        return false;
    }

    // The report is empty although it should not be: prints the likely reasons.
    void conclude_silence() {
        if (has_refused_a_sound_one()) return;  // the reason, and a mistake of its own
        if (!stuck_.empty()) {
            if (run_.report.size() > stuck_at_) run_.in_time = stuck_at_;
            complain(stuck_ + late_text());
        }
        if (event_lines_ > 0) return;
        if (run_.standard_output.find("E ") != std::string::npos) {
            complain(
                "the records are on standard output; expected them on the descriptor that "
                "KMES_REPORT_FD names");
        }
    }

    // Describes what came after the suite had given up. Empty: nothing about the CPUs of `owed_`.
    std::string late_text() const {
        // A line that was incomplete then counts as late.
        const std::size_t lines_in_time = run_.report.substr(0, stuck_at_).rfind('\n') + 1;
        std::string passed_over;
        for (const auto& [cpu, sequence] : delivered_in(run_.report.substr(lines_in_time))) {
            if (owed_.contains({cpu, sequence})) {
                return "; the record came when the testee ended, but has to be written before a "
                       "sleep (is the output buffered?)";
            }
            const auto first = owed_.lower_bound({cpu, 0});
            if (!passed_over.empty() || first == owed_.end() || first->first != cpu) continue;
            passed_over = fmt::format(
                "; later the program delivered event {} of CPU {}, but not "
                "event {}",
                sequence, cpu, first->second);
        }
        return passed_over;
    }

    const SmokeSettings& settings_;
    const std::uint32_t cpus_;
    SmokeRun run_;
    Tracer tracer_;
    std::map<BufferIndex, BufferId> served_;
    std::map<BufferId, BufferIndex> served_back_;
    std::map<std::uint32_t, std::uint64_t> maps_of_cpu_;  // how many times each CPU was mapped
    std::map<std::uint32_t, std::vector<std::string>> refused_maps_;  // of CPUs not mapped since
    std::set<BufferIndex> mapped_;
    std::array<std::uint64_t, 2> emitted_{};
    std::uint64_t event_lines_ = 0;
    std::uint64_t attaches_ = 0;
    Attached last_attach_;
    bool has_attached_ = false;  // to a buffer
    std::uint64_t writes_ = 0;
    std::uint64_t cut_writes_ = 0;
    std::uint64_t clock_ns_ = 1'700'000'000'123'456'789;
    unsigned quiet_looks_ = 0;
    std::uint64_t looks_ = 0;  // since the last progress
    std::uint64_t resting_looks_ = 0;
    bool is_patience_over_ = false;
    bool told_private_ = false;
    bool waiting_for_exit_ = false;
    bool is_given_up_ = false;  // the rest of the stream is not played
    unsigned processes_ = 0;
    TimePoint begin_;
    std::string foreign_;  // what another process has tried
    std::string stuck_;
    std::size_t stuck_at_ = 0;
    std::set<EventName> owed_;  // when the suite gave up
    Patience patience_{patience_ms()};
    TimePoint last_look_;
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
