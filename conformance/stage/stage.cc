// SPDX-License-Identifier: MIT
//
// The stage: set-up, what happens at each event of the tracer, and the waits. Judging is in
// outcome.cc. See stage.h.
#include "conformance/stage/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/stage/debugger.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// How long one wait may take before it is called a failure, and how long nothing may move before a
// testee with timers is called hung; both times --timeout-scale. No correct consumer comes near.
constexpr milliseconds kLimit{30000};
constexpr std::chrono::hours kDebugLimit{1000};
constexpr milliseconds kSettle{4000};
// The same for one that uses the processor: so much of that.
constexpr milliseconds kSpin{20000};
// Of a wait of the runner's own: then somebody else had the processor, or the machine stood still.
constexpr milliseconds kLate{500};
// Before a look at the threads: no verdict, only a saving of looks.
constexpr milliseconds kLookEvery{15};
constexpr unsigned kLooks = 100;
// E19: a retired buffer is nudged at growing intervals, from this one on, while something is owed.
constexpr milliseconds kFirstNudge{200};
// Longer than the longest limit of a wait that the contract allows.
constexpr milliseconds kDoze{400};
constexpr unsigned kNudgesOfOneBuffer = 8;
// Of a flood, the file of the failure has the beginning.
constexpr std::size_t kReportBytesKept = std::size_t{16} << 20;
// After so many the recorder looks at no more accesses: they take some time each.
constexpr std::uint64_t kAccessesRecorded = 40000;

milliseconds scaled(milliseconds time, double scale) {
    return milliseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) * scale));
}

}  // namespace

void stop_inconclusive(std::string message) {
    throw Stop{Verdict::inconclusive, contract_finding(message)};
}

void stop_unsupported(std::string message) {
    throw Stop{Verdict::unsupported, contract_finding(message)};
}

Stage::Stage(const StageSettings& settings, const Case& the_case)
    : settings_(settings),
      case_(the_case),
      recorder_(settings.record_timeline),
      last_change_(Clock::now()) {}

Stage::~Stage() = default;

RingsSetup Stage::default_setup() const {
    RingsSetup setup;
    setup.cpus = settings_.cpus;
    setup.capacity_bytes = settings_.capacity_bytes;
    return setup;
}

void Stage::set_up(const RingsSetup& setup) {
    if (rings_) throw SuiteError("the rings of this case are made already");
    rings_ = std::make_unique<Rings>(
        setup, settings_.device.empty() ? nullptr : make_device_backend(settings_.device));
    rings_->set_seed(settings_.seed);
    rings_->set_recorder(&recorder_);
    recorder_.watch(*rings_, [this](BufferId id) { return index_of(id); });
    progress_ = std::make_unique<Progress>(rings_->history());
    sleeps_.assign(setup.cpus, 0);
    rings_->set_before_operation([this] {
        read_report();
        rings_->history().set_report_bytes(parser_.bytes_fed());
    });
}

Rings& Stage::rings() {
    if (!rings_) set_up(default_setup());
    return *rings_;
}

void Stage::answer_attach_with(std::vector<int> errors) {
    attach_errors_.assign(errors.begin(), errors.end());
}

void Stage::set_reported_capacity(std::uint64_t bytes) {
    if (!settings_.device.empty())
        stop_unsupported("the module says the capacity that its buffers have, and maps no other");
    reported_capacity_bytes_ = bytes;
}

void Stage::set_on_mapped(std::function<void(const Mapped&)> function) {
    on_mapped_ = std::move(function);
}

void Stage::set_on_attached(std::function<void(const Attached&)> function) {
    on_attached_ = std::move(function);
}

void Stage::set_on_wait(std::function<void(const FutexWait&, std::uint32_t cpu)> function) {
    on_wait_ = std::move(function);
}

// --stepper watchpoints: what the processor saw and the stepper did not is a mistake of the suite.
void Stage::check_watchpoints() const {
    if (!tracer_) return;
    const WatchCheck check = tracer_->watch_check();
    if (!check.unavailable.empty()) throw SuiteError(check.unavailable);
    if (!check.unseen.empty()) throw SuiteError(check.unseen);
}

void Stage::start() {
    rings();
    TracerOptions options;
    // Without a filter it can be let go of (Tracer::detach).
    if (settings_.debug) options.interception = Interception::kEveryCall;
    if (settings_.stepper == Stepper::guards) options.stepping = Stepping::kGuardPages;
    if (settings_.stepper == Stepper::single_step) options.stepping = Stepping::kSingleStep;
    if (settings_.stepper == Stepper::watchpoints) options.stepping = Stepping::kWatchpoints;
    tracer_ = std::make_unique<Tracer>(options);
    tracer_->set_attach_handler(
        [this](const AttachRequest& request) { return answer_attach(request); });
    rings_->set_on_buffer([this](BufferIndex index) { serve(index); });
    if (on_plain_guard_) {
        tracer_->set_guard_handler([this](const GuardHit& hit) {
            note_look(hit);
            if (!on_plain_guard_(hit)) return GuardAnswer::kEvent;
            last_change_ = Clock::now();
            ++guard_hits_;
            return GuardAnswer::kStep;
        });
    }
    if (on_report_write_) {
        tracer_->set_report_write_handler([this](const ReportWrite& write) {
            if (on_report_write_ && on_report_write_(write)) tracer_->hold(write.tid);
        });
    }
    last_change_ = Clock::now();
    tracer_->start(settings_.testee);
}

BufferId Stage::serve(BufferIndex index) {
    ServedBuffer served = rings_->backend().served(index);
    if (reported_capacity_bytes_)
        served.expected_mapping_bytes = kMetadataBytes + 2 * *reported_capacity_bytes_;
    const BufferId id = tracer_->add_buffer(served);
    served_[index] = id;
    served_back_[id] = index;
    return id;
}

AttachAnswer Stage::answer_attach(const AttachRequest&) {
    AttachAnswer answer;
    if (!attach_errors_.empty()) {
        answer.error = attach_errors_.front();
        attach_errors_.pop_front();
        return answer;
    }
    answer.device = rings_->backend().attach_device();
    if (answer.device) return answer;
    const History& history = rings_->history();
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const BufferIndex index = history.present_buffer(cpu);
        if (history.buffer(index).boot) return AttachAnswer{EAGAIN, {}, 0};
        answer.buffers.push_back(served_.at(index));
    }
    answer.capacity_bytes = reported_capacity_bytes_.value_or(rings_->capacity_bytes());
    return answer;
}

// -- Events ----------------------------------------------------------------------------------

void Stage::read_report() {
    if (!tracer_) return;
    const std::string bytes = tracer_->read_report();
    if (bytes.empty()) return;
    parser_.feed(bytes);
    report_.append(bytes, 0, kReportBytesKept - std::min(kReportBytesKept, report_.size()));
    progress_->update(parser_);
    recorder_.report_grew(parser_);
    last_change_ = Clock::now();
    if (parser_.flooded())
        stop_with(contract_finding("it floods its report: " +
                                   (parser_.malformed().empty()
                                        ? std::string("more than any run can need")
                                        : parser_.malformed().back().message)));
}

void Stage::pump(TimePoint deadline) {
    if (settings_.stop->load()) throw SuiteError("interrupted");
    const TracerEvent event = tracer_->wait(deadline);
    // Time that the runner did not get is none in which the testee did nothing.
    const Clock::duration late = Clock::now() - deadline;
    if (late > kLate) last_change_ += late;
    // What was written before the event comes before it in the timeline, too.
    if (recorder_.on()) read_report();
    handle(event);
    read_report();
}

void Stage::handle(const TracerEvent& event) {
    if (std::holds_alternative<TimedOut>(event)) return;
    if (settings_.debugger != nullptr) {
        settings_.debugger->at(*this, event);
        last_change_ = Clock::now();  // a person has taken their time
    }
    if (const auto* attached = std::get_if<Attached>(&event)) return on(*attached);
    if (const auto* mapped = std::get_if<Mapped>(&event)) return on(*mapped);
    if (const auto* wait = std::get_if<FutexWait>(&event)) return on(*wait);
    if (const auto* end = std::get_if<FutexWaitEnd>(&event)) return on(*end);
    if (const auto* fault = std::get_if<WriteFault>(&event)) return on(*fault);
    if (const auto* hit = std::get_if<GuardHit>(&event)) return on(*hit);
    if (const auto* ended = std::get_if<Ended>(&event)) return on(*ended);
    on_other(event);
}

void Stage::on(const Attached& event) {
    last_change_ = Clock::now();
    attaches_.push_back(event);
    recorder_.attached(event);
    if (event.error != 0) return;
    for (const BufferId id : event.buffers) rings_->history().note_attached(served_back_.at(id));
    if (on_attached_) on_attached_(event);
}

void Stage::on(const Mapped& event) {
    last_change_ = Clock::now();
    maps_.push_back(event);
    recorder_.mapped(event);
    const MapDeviation& deviation = event.deviation;
    if (event.error == 0) {
        mapped_[served_back_.at(event.buffer)] = event.mapping.id;
        mapped_by_[served_back_.at(event.buffer)] = event.tid;
        record_accesses_of(event.mapping);
        if (on_mapped_) on_mapped_(event);
    }
    if (reported_capacity_bytes_) return;  // a case with a wrong capacity judges by itself
    const auto blame_mapping = [&](const char* what, std::uint64_t value) {
        findings_.push_back(wrong_mapping(fmt::format("{} {:#x}", what, value)));
    };
    if (deviation.length) blame_mapping("length", event.request.length_bytes);
    if (deviation.shared) blame_mapping("flags", event.request.flags);
    if (deviation.protection) blame_mapping("protection", event.request.protection);
    if (deviation.offset) blame_mapping("offset", event.request.offset_bytes);
}

std::optional<BufferIndex> Stage::index_of(BufferId id) const {
    const auto found = served_back_.find(id);
    if (found == served_back_.end()) return std::nullopt;
    return found->second;
}

std::uint32_t Stage::cpu_of(BufferIndex buffer) const {
    return rings_->history().buffer(buffer).cpu;
}

void Stage::on(const FutexWait& event) {
    wait_log_.push_back(event);
    sleep_clock_.enter(event);
    recorder_.wait_begins(event);
    // A wait with a limit comes round for ever, and says nothing of progress.
    if (event.limit == TimeLimit::kNone) last_change_ = Clock::now();
    for (const FutexWord& word : event.words) {
        const std::optional<BufferIndex> buffer = index_of(word.place.buffer);
        if (!buffer) continue;
        ++sleeps_.at(cpu_of(*buffer));
        waiting_[event.tid] = Wait{event, cpu_of(*buffer), *buffer, rings_->history().operations()};
        if (on_wait_) on_wait_(event, cpu_of(*buffer));
    }
}

void Stage::on(const FutexWaitEnd& event) {
    sleep_clock_.leave(event);
    const auto found = waiting_.find(event.tid);
    if (found == waiting_.end()) return;
    const bool has_limit = found->second.wait.limit != TimeLimit::kNone;
    if (!has_limit) last_change_ = Clock::now();
    waiting_.erase(found);
    recorder_.wait_ends(event, event.result == 0 ? wake_result_ : 0);
    if (wake_result_ == 0 || event.result != 0) return;
    // Only a wait with a limit can reach it.
    if (wake_result_ == -ETIMEDOUT && !has_limit) return;
    tracer_->set_wait_result(event.tid, wake_result_);
    ++wake_results_told_;
}

void Stage::on(const WriteFault& event) {
    last_change_ = Clock::now();
    recorder_.access_refused(event);
    const std::optional<BufferIndex> buffer = index_of(event.access.place.buffer);
    findings_.push_back(write_outside(buffer ? cpu_of(*buffer) : 0, event.access.place.offset_bytes,
                                      event.access.size_bytes, event.code.describe()));
}

void Stage::on(const GuardHit& event) {
    last_change_ = Clock::now();
    ++guard_hits_;
    note_look(event);
    const bool recording = is_recording();
    const bool asked = is_asked_for(event);
    if (!asked && !recording) return stop_recording(event);
    const AtGuard answer = asked ? on_guard_(event) : AtGuard::step;
    if (answer == AtGuard::release) release_guards();
    if (answer == AtGuard::done || (answer == AtGuard::release && !recording))
        return recorder_.accessed(event, nullptr);
    const GuardStep step = tracer_->step_guarded(event.tid);
    if (step.outcome == GuardStep::Outcome::kDone) recorder_.accessed(event, &step);
    if (asked && on_stepped_) on_stepped_(event, step);
}

// Where all accesses to the page are seen: whether the counter was read behind the last look at
// write_pos (E2).
void Stage::note_look(const GuardHit& hit) {
    for (const BufferAccess& access : hit.accesses) {
        // Most accesses of a play are to events; they are not looked up.
        if (!access.is_read || access.place.offset_bytes > kFutexWordOffset) continue;
        const std::optional<BufferIndex> buffer = index_of(access.place.buffer);
        if (!buffer) continue;
        const bool is_of_position = access.touches(kWritePosOffset);
        if (is_of_position) counter_read_last_.erase(*buffer);
        if (access.touches(kFutexWordOffset) && !is_of_position) counter_read_last_.insert(*buffer);
    }
}

// A guard that nobody wants any more: those of the case stay.
void Stage::stop_recording(const GuardHit& event) {
    counter_read_last_.clear();
    recorder_.accessed(event, nullptr);
    tracer_->release_guards(event.place.mapping);
    if (!on_guard_) return;
    for (const GuardedPages& each : guarded_) {
        if (each.mapping == event.place.mapping)
            tracer_->guard_pages(each.mapping, each.first_page, each.pages);
    }
}

// Whether the case has guarded this page, or only the recorder.
bool Stage::is_asked_for(const GuardHit& event) const {
    const std::uint64_t page = event.place.offset_bytes / kPageBytes;
    if (!settings_.record_accesses) return on_guard_ != nullptr;
    return on_guard_ &&
           std::any_of(guarded_.begin(), guarded_.end(), [&](const GuardedPages& each) {
               return each.mapping == event.place.mapping && page - each.first_page < each.pages;
           });
}

bool Stage::is_recording() const {
    return settings_.record_accesses && guard_hits_ < kAccessesRecorded;
}

// For the picture of a failure: every access is told, whatever the case guards itself.
void Stage::record_accesses_of(const Mapping& mapping) {
    if (!is_recording()) return;
    tracer_->guard_pages(mapping.id, mapping.offset_bytes / kPageBytes,
                         mapping.length_bytes / kPageBytes);
}

void Stage::on(const Ended& event) {
    if (!ended_) recorder_.ended(event);
    ended_ = event;
    waiting_.clear();
}

void Stage::on_other(const TracerEvent& event) {
    if (const auto* other = std::get_if<FutexOther>(&event)) {
        note(fmt::format("thread {} did futex operation {} on a ring word", other->tid,
                         other->operation));
    } else if (const auto* forked = std::get_if<Forked>(&event)) {
        last_change_ = Clock::now();
        note(fmt::format("the testee made a child process, {}", forked->child_pid));
    } else if (const auto* executed = std::get_if<Executed>(&event)) {
        stop_with(contract_finding(
            fmt::format("process {} replaced its program after it had attached", executed->pid)));
    } else if (const auto* limit = std::get_if<OutputLimit>(&event)) {
        if (limit->file == OutputLimit::File::kReport)
            stop_with(contract_finding(
                fmt::format("it floods its report: {} bytes unread", limit->unread_bytes)));
        note("it floods its standard output or error; the middle is left out");
    } else if (const auto* foreign = std::get_if<ForeignAttach>(&event)) {
        note(fmt::format("process {}, which is not the testee, called kmes_attach; it got EPERM",
                         foreign->pid));
    } else if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
        stop_if_it_has_ended();
        throw SuiteError("tracer: " + trouble->what);
    }
}

// -- Sleep -----------------------------------------------------------------------------------

const Stage::Wait* Stage::wait_on(std::uint32_t cpu, BufferIndex buffer) const {
    for (const auto& [tid, wait] : waiting_) {
        for (const FutexWord& word : wait.wait.words) {
            const std::optional<BufferIndex> index = index_of(word.place.buffer);
            if (index && *index == buffer && cpu_of(*index) == cpu &&
                word.place.offset_bytes == kFutexWordOffset)
                return &wait;
        }
    }
    return nullptr;
}

namespace {

// The value that `wait` sleeps on in this buffer.
std::optional<FutexWord> word_in(const FutexWait& wait, BufferId buffer) {
    for (const FutexWord& word : wait.words) {
        if (word.place.buffer == buffer) return word;
    }
    return std::nullopt;
}

}  // namespace

bool Stage::asleep(std::uint32_t cpu) {
    const BufferIndex buffer = rings_->history().present_buffer(cpu);
    if (const Wait* wait = wait_on(cpu, buffer)) {
        const std::optional<FutexWord> word = word_in(wait->wait, served_.at(buffer));
        return word && word->value_expected == rings_->counter(buffer);
    }
    // Not so where this CPU's own word has ever been waited on.
    return sleeps_.at(cpu) == 0 && mapped_.contains(buffer) && dozes(buffer);
}

// One thread for several CPUs, with a limit (contract): it sleeps on one of the words, and looks at
// all buffers when that is over. If it is not the thread that mapped this buffer, nobody can say
// whose wait it is; then it takes some time in which nothing happens.
bool Stage::dozes(BufferIndex buffer) const {
    const bool long_enough = Clock::now() - last_change_ > scaled(kDoze, settings_.timeout_scale);
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
        const Wait& wait = entry.second;
        return wait.wait.limit != TimeLimit::kNone &&
               wait.begun_operation >= rings_->history().operations() &&
               (long_enough || mapped_by_.at(buffer) == entry.first);
    });
}

// What a sleeper without a limit cannot owe any more is owed in the report (see
// History::checkpoint_idle for the conditions). A wait with a limit proves nothing: its owner may
// rely on the limit.
void Stage::take_checkpoint(std::uint32_t cpu) {
    const BufferIndex buffer = rings_->history().present_buffer(cpu);
    const Wait* wait = wait_on(cpu, buffer);
    if (!wait || wait->wait.limit != TimeLimit::kNone) return;
    const std::optional<FutexWord> word = word_in(wait->wait, served_.at(buffer));
    if (!word || word->value_expected != rings_->counter(buffer)) return;
    if (wait->begun_operation < rings_->history().operations()) return;
    read_report();
    rings_->history().checkpoint_idle(cpu, buffer, parser_.bytes_fed());
}

void Stage::check_pages() {
    for (const auto& [index, id] : served_) {
        if (std::optional<Finding> finding = rings_->check_metadata(index)) stop_with(*finding);
    }
}

// -- Waits -----------------------------------------------------------------------------------

milliseconds Stage::time_to_hang(Quiet quiet) const {
    const milliseconds time = quiet == Quiet::settling   ? kSettle
                              : quiet == Quiet::spinning ? kSpin
                                                         : kLimit;
    return scaled(time, settings_.timeout_scale * settings_.patience);
}

// Of all threads of the testee.
Clock::duration Stage::processor_time() const {
    clockid_t clock{};
    timespec time{};
    const pid_t pid = tracer_->testee_pid();
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return {};
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Clock::duration Stage::limit() const {
    if (settings_.debug) return kDebugLimit;
    return scaled(kLimit, settings_.timeout_scale);
}

bool Stage::owes_nothing() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (!progress_->ended(cpu) && progress_->first_undelivered(cpu)) return false;
    }
    return true;
}

Stage::Quiet Stage::look_for_quiet() {
    if (Clock::now() - last_change_ < kLookEvery) return Quiet::no;
    const Inspection inspection = tracer_->inspect();
    // What it wrote before it blocked is progress too.
    read_report();
    const bool nothing_runs =
        !inspection.threads.empty() &&  // none: it has ended, which wait() is about to say
        std::all_of(inspection.threads.begin(), inspection.threads.end(),
                    [](const auto& thread) { return thread.activity == Activity::kBlocked; });
    const TimePoint now = Clock::now();
    if (looked_at_ != last_change_) {
        looks_ = quiet_looks_ = 0;
        processor_time_before_ = processor_time();
    }
    looked_at_ = last_change_;
    if (now - last_change_ < kLookEvery) return Quiet::no;
    if (inspection.all_blocked_for_good && !inspection.other_processes) return Quiet::for_good;
    // Timers, or processes that could wake it: then it is a matter of time, and of looks, of which
    // most found it blocked. (Time alone may have passed for the runner as well.)
    ++looks_;
    quiet_looks_ += nothing_runs ? 1 : 0;
    if (looks_ > kLooks && quiet_looks_ * 10 > looks_ * 8 && nothing_runs &&
        now - last_change_ > time_to_hang(Quiet::settling))
        return Quiet::settling;
    if (!settings_.debug &&
        processor_time() - processor_time_before_ > time_to_hang(Quiet::spinning))
        return Quiet::spinning;
    return Quiet::no;
}

bool Stage::is_at_rest() {
    const Quiet quiet = look_for_quiet();
    return quiet == Quiet::settling || quiet == Quiet::for_good;
}

// E19: retired buffers are nudged for as long as they are mapped. True: one was.
bool Stage::nudge_retired() {
    bool nudged = false;
    if (!nudging_) return false;
    for (const Mapping& mapping : tracer_->mappings()) {
        const std::optional<BufferIndex> index = index_of(mapping.buffer);
        if (!index || !rings_->history().buffer(*index).retired) continue;
        // In the middle of an emission (E16) its producer does nothing else.
        if (rings_->is_reserved(cpu_of(*index))) continue;
        if (nudged_[*index]++ >= kNudgesOfOneBuffer) continue;
        rings_->nudge(*index);
        nudged = true;
    }
    if (nudged) last_change_ = Clock::now();
    return nudged;
}

void Stage::wait_while(const std::function<bool()>& pending, const std::function<bool()>& owing,
                       const std::string& what) {
    Patience patience(settings_.debug ? limit() : time_to_hang(Quiet::no));
    std::uint64_t hits = guard_hits_;
    milliseconds interval = kFirstNudge;
    TimePoint next_nudge = Clock::now() + interval;
    while (pending()) {
        if (ended_) stop_ended();
        pump(Clock::now() + kPoll);
        if (!pending()) break;
        if (owing()) stop_at_malformed();
        // It is stopped at every access: the time counts from the last one on. (Who guards pages
        // lets go of one that spins.)
        if (std::exchange(hits, guard_hits_) != guard_hits_) patience.restart();
        if (on_round_ && on_round_(false)) continue;
        const Quiet quiet = look_for_quiet();
        if (quiet != Quiet::no && pending() && !ended_ && owing()) {
            if (on_round_ && on_round_(true)) continue;
            if (quiet != Quiet::spinning && nudge_retired()) continue;
            stop_hung(what, quiet);
        }
        if (Clock::now() >= next_nudge && !ended_ && owing()) {
            nudge_retired();
            interval *= 2;
            next_nudge = Clock::now() + interval;
        }
        if (patience.is_over(tracer_->testee_threads())) stop_hung(what, Quiet::no);
    }
    check_pages();
}

void Stage::wait_until(const std::function<bool()>& condition, const std::string& what) {
    wait_while([&] { return !condition(); }, [] { return true; }, what);
}

bool Stage::wait_until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu) {
    bool came = false;
    wait_while(
        [&] {
            came = came || condition();
            return !came && !progress_->ended(cpu) &&
                   !(asleep(cpu) && !progress_->first_undelivered(cpu));
        },
        [&] { return progress_->first_undelivered(cpu) != nullptr; },
        "the testee to act or to sleep");
    return came;
}

bool Stage::all_mapped() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (progress_->ended(cpu)) continue;
        const std::vector<BufferIndex>& buffers = rings_->history().buffers_of(cpu);
        if (std::none_of(buffers.begin(), buffers.end(),
                         [this](BufferIndex index) { return mapped_.contains(index); }))
            return false;
    }
    return true;
}

void Stage::wait_mapped() {
    wait_while([this] { return !all_mapped(); }, [] { return true; },
               "every buffer to be mapped or refused");
}

bool Stage::wait_mapped_or_exit() {
    const auto gave_up = [this] {
        return ended_ && ended_->kind == EndKind::kExited && ended_->exit_status != 0;
    };
    wait_while([&] { return !all_mapped() && !gave_up(); }, [] { return true; },
               "every buffer to be mapped or refused");
    return !gave_up();
}

void Stage::wait_delivered(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !progress_->ended(cpu) && progress_->first_undelivered(cpu) != nullptr;
    };
    wait_while(pending, pending, fmt::format("CPU {} to be drained", cpu));
}

void Stage::wait_delivered() {
    const auto pending = [this] { return !all_mapped() || !owes_nothing(); };
    wait_while(pending, pending, "every CPU to be drained");
}

void Stage::wait_asleep(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !progress_->ended(cpu) &&
               (progress_->first_undelivered(cpu) != nullptr || !asleep(cpu));
    };
    wait_while(pending, pending,
               fmt::format("CPU {} to be drained, and its consumer to sleep by futex on "
                           "futex_counter",
                           cpu));
    if (!progress_->ended(cpu)) take_checkpoint(cpu);
}

void Stage::wait_asleep_or_stuck(std::uint32_t cpu) {
    const TimePoint end = Clock::now() + kStuck;
    while (!ended_ && !asleep(cpu) && Clock::now() < end) pump(std::min(end, Clock::now() + kPoll));
    if (ended_) stop_ended();
}

void Stage::wait_tolerated_at_rest() {
    const auto all_refused = [this] {
        for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
            if (rings_->history().tolerated(cpu) && !progress_->ended(cpu)) return false;
        }
        return true;
    };
    // A look is of use only after a while in which nothing moved: look_for_quiet sees to that.
    wait_while([&] { return !ended_ && !all_refused() && !is_at_rest(); }, [] { return false; },
               "the testee to refuse what it was shown, or to sleep");
}

bool Stage::is_present(const Mapped& mapped, std::uint32_t cpu) const {
    const std::optional<BufferIndex> index = index_of(mapped.buffer);
    return index && *index == rings_->history().present_buffer(cpu);
}

void Stage::wait_asleep() {
    wait_mapped();
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) wait_asleep(cpu);
}

void Stage::let_run(std::uint64_t milliseconds_to_run) {
    const TimePoint end = Clock::now() + milliseconds(milliseconds_to_run);
    while (!ended_ && Clock::now() < end) pump(std::min(end, Clock::now() + kPoll));
}

void Stage::resize(std::uint64_t capacity_bytes, PositionRule rule, std::uint64_t position) {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu)
        rings().swap(cpu, SwapSpec{capacity_bytes, rule, position});
}

}  // namespace kmes::conformance
