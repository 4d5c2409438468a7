// SPDX-License-Identifier: MIT
//
// The stage: set-up, and what happens at each event of the tracer. The waits are in waits.cc,
// judging is in outcome.cc. See stage.h.
#include "conformance/stage/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "conformance/model/layout.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/attach_form.h"
#include "conformance/stage/debugger.h"
#include "conformance/stage/stepping.h"
#include "conformance/tracer/calls.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// A wait of the runner that is late by this much: the runner was descheduled, or the machine
// stopped.
constexpr milliseconds kLate{500};
// The file of a failure keeps the beginning of a flood.
constexpr std::size_t kReportBytesKept = std::size_t{16} << 20;
// After so many the recorder looks at no more accesses: they take some time each.
constexpr std::uint64_t kAccessesRecorded = 40000;

}  // namespace

void stop_failed(std::string_view clause, std::string_view message) {
    Finding finding = contract_finding(message);
    finding.clause = clause;
    throw Stop{Verdict::fail, std::move(finding)};
}

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
      waits_(buffers_, clock_, settings.timeout_scale),
      reads_(buffers_) {}

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
    recorder_.watch(*rings_, [this](BufferId id) { return buffers_.index_of(id); });
    progress_ = std::make_unique<Progress>(rings_->history());
    waits_.watch(*rings_);
    reads_.watch(*rings_);
    rings_->set_before_operation([this] {
        let_fall_asleep_again();
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

void Stage::set_least_fd(int fd) {
    if (!settings_.device.empty()) stop_unsupported("the module takes the lowest fd that is free");
    least_fd_ = fd;
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
    options.stepping = stepping_of(settings_.stepper);
    options.keep_stacks = recorder_.on();
    options.processor = settings_.processor;
    tracer_ = std::make_unique<Tracer>(options);
    tracer_->set_attach_handler(
        [this](const AttachRequest& request) { return answer_attach(request); });
    tracer_->set_attach_call(attach_call_of(layout()));
    tracer_->set_least_fd(least_fd_);
    rings_->set_on_buffer([this](BufferIndex index) { serve(index); });
    if (on_plain_guard_) {
        tracer_->set_guard_handler([this](const GuardHit& hit) {
            note_look(hit);
            if (!on_plain_guard_(hit)) return GuardAnswer::kEvent;
            clock_.note_work();
            ++guard_hits_;
            return GuardAnswer::kStep;
        });
    }
    if (on_call_) {
        tracer_->set_call_handler([this](pid_t tid, long number) {
            if (on_call_ && on_call_(tid, number)) tracer_->hold(tid);
        });
    }
    if (on_report_write_) {
        tracer_->set_report_write_handler([this](const ReportWrite& write) {
            for (const auto& monitor : monitors_) monitor->writes_report(write);
            if (on_report_write_ && on_report_write_(write)) tracer_->hold(write.tid);
        });
    }
    clock_.note_work();
    tracer_->start(settings_.testee);
}

BufferId Stage::serve(BufferIndex index) {
    ServedBuffer served = rings_->backend().served(index);
    if (reported_capacity_bytes_)
        served.expected_mapping_bytes = kMetadataBytes + 2 * *reported_capacity_bytes_;
    const BufferId id = tracer_->add_buffer(served);
    buffers_.serve(index, id);
    return id;
}

AttachAnswer Stage::answer_attach(const AttachRequest&) {
    if (on_attach_) on_attach_();
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
        if (history.buffer(index).boot) return AttachAnswer{layout().error_before_rings, {}, 0};
        answer.buffers.push_back(buffers_.id_of(index));
    }
    answer.capacity_bytes = reported_capacity_bytes_.value_or(rings_->capacity_bytes());
    return answer;
}

// -- Events ----------------------------------------------------------------------------------

void Stage::read_report() {
    if (!tracer_) return;
    const std::string bytes = tracer_->read_report();
    if (bytes.empty()) return;
    const std::uint64_t lines_before = parser_.records().size() + parser_.malformed_count();
    parser_.feed(bytes);
    report_.append(bytes, 0, kReportBytesKept - std::min(kReportBytesKept, report_.size()));
    progress_->update(parser_);
    recorder_.report_grew(parser_);
    // A comment is no progress: some thread may give a sign of life for as long as it lives.
    if (parser_.records().size() + parser_.malformed_count() != lines_before) clock_.note_work();
    if (parser_.flooded())
        stop_with(contract_finding("the consumer floods its report: " +
                                   (parser_.malformed().empty()
                                        ? std::string("more than any run can need")
                                        : parser_.malformed().back().message)));
}

void Stage::pump(TimePoint deadline) {
    if (settings_.stop->load()) throw SuiteError("interrupted");
    const Raised in_pump(is_in_pump_);
    waits_.begin_event();
    const TracerEvent event = tracer_->wait(deadline);
    // Time that the runner did not get is none in which the testee did nothing.
    const Clock::duration late = Clock::now() - deadline;
    if (late > kLate) clock_.exclude(late);
    // What was written before the event comes before it in the timeline, too.
    if (recorder_.on()) read_report();
    handle(event);
    read_report();
}

void Stage::handle(const TracerEvent& event) {
    if (std::holds_alternative<TimedOut>(event)) return;
    if (settings_.debugger != nullptr) {
        settings_.debugger->at(*this, event);
        clock_.note_work();  // a person has taken their time
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
    clock_.note_change();
    attaches_.push_back(event);
    recorder_.attached(event);
    if (event.error != 0) return;
    // The history counts it among its operations, but the producer has done nothing.
    const bool was_seen = operations_seen_ == rings_->history().operations();
    for (const BufferId id : event.buffers)
        rings_->history().note_attached(buffers_.index_of(id).value());
    if (was_seen) operations_seen_ = rings_->history().operations();
    attaches_again_.note(rings_->history().buffer_count());
    if (on_attached_) on_attached_(event);
}

void Stage::on(const Mapped& event) {
    clock_.note_change();
    maps_.push_back(event);
    recorder_.mapped(event);
    const BufferIndex buffer = buffers_.index_of(event.buffer).value();
    if (event.error == 0) {
        if (buffers_.note_mapped(buffer, event.mapping.id, event.tid))
            clock_.note_work();
        else
            maps_again_.note(rings_->history().buffer_count());
        waits_.begin_round(cpu_of(buffer));
        record_accesses_of(event.mapping);
        if (on_mapped_) on_mapped_(event);
    }
    for (const auto& monitor : monitors_) monitor->mapped(event);
}

std::uint32_t Stage::cpu_of(BufferIndex buffer) const {
    return rings_->history().buffer(buffer).cpu;
}

void Stage::on(const FutexWait& event) {
    const bool is_nap = waits_.enter(event);
    recorder_.wait_begins(event);
    for (const auto& monitor : monitors_) monitor->wait_begins(event);
    if (!is_nap) clock_.note_change();
    for (const FutexWord& word : event.words) {
        const std::optional<std::uint32_t> cpu = waits_.sleep_on(event, word);
        if (cpu && on_wait_) on_wait_(event, *cpu);
    }
}

void Stage::on(const FutexWaitEnd& event) {
    const std::optional<WaitLog::End> end = waits_.leave(event);
    if (!end) return;
    if (!end->had_limit && !end->is_interrupted) clock_.note_change();
    if (on_wait_end_) on_wait_end_(event);
    waits_.forget(event);
    const bool is_told = wake_result_ != 0 && event.result == 0 && !event.thread_ended;
    recorder_.wait_ends(event, is_told ? wake_result_ : 0);
    if (!is_told) return;
    // Only a wait with a limit can reach it.
    if (wake_result_ == -ETIMEDOUT && !end->had_limit) return;
    tracer_->set_wait_result(event.tid, wake_result_);
    ++wake_results_told_;
}

void Stage::on(const WriteFault& event) {
    clock_.note_work();
    recorder_.access_refused(event);
    for (const auto& monitor : monitors_) monitor->store_refused(event);
}

void Stage::on(const GuardHit& event) {
    note_look(event);
    const bool recording = is_recording();
    const bool asked = is_asked_for(event);
    // One that looks again and again, and is only written down, comes no further by that.
    if (asked) {
        clock_.note_work();
        ++guard_hits_;
    } else {
        ++accesses_recorded_;
    }
    if (!asked && !recording) return stop_recording(event);
    const AtGuard answer = asked ? on_guard_(event) : AtGuard::step;
    reads_.note_counters(event);
    if (answer == AtGuard::release) release_guards();
    if (answer == AtGuard::done || (answer == AtGuard::release && !recording))
        return recorder_.accessed(event, nullptr);
    const GuardStep step = tracer_->step_guarded(event.tid);
    if (step.outcome == GuardStep::Outcome::kDone) recorder_.accessed(event, &step);
    if (asked && on_stepped_) on_stepped_(event, step);
}

void Stage::note_look(const GuardHit& hit) {
    for (const auto& monitor : monitors_) monitor->accesses(hit);
    reads_.note(hit);
}

// A guard that nobody wants any more: those of the case stay.
void Stage::stop_recording(const GuardHit& event) {
    reads_.forget();
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
    return settings_.record_accesses && accesses_recorded_ < kAccessesRecorded;
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
    waits_.forget_all();
}

void Stage::on_other(const TracerEvent& event) {
    if (const auto* other = std::get_if<FutexOther>(&event)) {
        note(fmt::format("thread {} called futex with operation {} on a ring word", other->tid,
                         other->operation));
    } else if (const auto* forked = std::get_if<Forked>(&event)) {
        clock_.note_change();
        // A child of vfork executes another program, or ends: it reads no ring.
        has_forked_ |= !forked->is_vfork;
        has_twin_ |= forked->shares_memory && !forked->is_vfork;
        note(fmt::format("the consumer made a child process, {}", forked->child_pid));
    } else if (const auto* executed = std::get_if<Executed>(&event)) {
        if (!maps_.empty())
            stop_inconclusive(fmt::format(
                "process {} replaced its program (execve) after it had mapped buffers, which the "
                "suite does not follow. Map them in the program that reads them in the judged run",
                executed->pid));
        // As before the first attach: the program that maps is the one that is looked at.
        waits_.forget_all();
        note(fmt::format("process {} replaced its program before it mapped a buffer",
                         executed->pid));
    } else if (const auto* limit = std::get_if<OutputLimit>(&event)) {
        if (limit->file == OutputLimit::File::kReport)
            stop_with(contract_finding(fmt::format(
                "the consumer floods its report: {} bytes unread", limit->unread_bytes)));
        note("the consumer floods its standard output or error; the middle is left out");
    } else if (const auto* foreign = std::get_if<ForeignAttach>(&event)) {
        foreign_process_ = foreign->pid;
        note(fmt::format("process {}, which is not the consumer, called kmes_attach and got EPERM",
                         foreign->pid));
    } else if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
        if (trouble->reason == TracerTrouble::Reason::not_followed)
            stop_inconclusive(trouble->what);
        // Before its end is looked at: refused, it exits.
        if (trouble->reason == TracerTrouble::Reason::its_rights)
            stop_inconclusive(trouble->what +
                              "; the suite serves kmes_attach and each mmap by openat in the "
                              "consumer: change user, root folder, filter or process namespace "
                              "only after the last of these calls");
        // One that is ending refuses all that is done in it.
        if (has_gone_or_stop()) return;
        throw SuiteError("tracer: " + trouble->what);
    }
}

bool Stage::is_present(const Mapped& mapped, std::uint32_t cpu) const {
    const std::optional<BufferIndex> index = buffers_.index_of(mapped.buffer);
    return index && *index == rings_->history().present_buffer(cpu);
}

void Stage::resize(std::uint64_t capacity_bytes, PositionRule rule, std::uint64_t position) {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu)
        rings().swap(cpu, SwapSpec{capacity_bytes, rule, position});
}

}  // namespace kmes::conformance
