// SPDX-License-Identifier: MIT
//
// See end_finding.h.
#include "conformance/stage/end_finding.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/stage/stage_parts.h"
#include "conformance/stage/state_text.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

namespace {

// Returns the error of the futex wait after which a thread only ended the consumer: "EINTR". Empty:
// there is no such wait, or nothing was recorded. If the thread that ended the consumer is unknown,
// the last step of any thread counts.
std::string_view error_of_last_wait(const Timeline& timeline) {
    constexpr std::pair<std::string_view, std::string_view> kErrors[] = {
        {"EINTR", "returns EINTR"},
        {"EINTR", "is interrupted"},
        {"ETIMEDOUT", "returns ETIMEDOUT"},
        {"ETIMEDOUT", "time limit of the wait expires"},
        {"EAGAIN", "futex_counter has another value"}};
    const std::vector<TimelineStep>& steps = timeline.steps();
    int ended_by = 0;
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        if (step->kind == StepKind::end) ended_by = step->thread;
        if (ended_by != 0 && step->thread != ended_by) continue;
        const bool is_clear =
            step->kind == StepKind::access && step->text.starts_with("sets need_");
        const bool is_other = step->kind == StepKind::producer || step->kind == StepKind::scheduler;
        if (step->kind == StepKind::end || is_clear || is_other) continue;
        if (step->kind != StepKind::wait_end) return "";
        for (const auto& [name, text] : kErrors) {
            if (step->text.find(text) != std::string::npos) return name;
        }
        return "";
    }
    return "";
}

// In every case, a consumer that treats an interrupted wait as an error breaks 5.1.8.2.
bool blame_last_wait(const Timeline& timeline, Finding& finding) {
    const std::string_view error = error_of_last_wait(timeline);
    if (error.empty()) return false;
    finding.clause = "5.1.8.2-5";
    finding.message +=
        fmt::format(". Evidence: its last action was a futex wait that returned {}", error);
    return true;
}

// Adds the reason of an early end, if it is visible.
Finding with_reason(const StageParts& parts, Finding finding, const Ended& ended) {
    const int error = parts.testee.attaches().empty() ? 0 : parts.testee.attaches().back().error;
    if (error != 0) {
        const Attached& last = parts.testee.attaches().back();
        finding.clause = "contract-1";
        finding.message +=
            fmt::format(". Evidence: the last kmes_attach, with {} slots, returned {}",
                        last.request.slots_requested, strerrorname_np(error));
        if (last.bad_pointer) finding.message += ": " + last.bad_pointer->describe();
    } else if (ended.exit_status != 0 && !blame_last_wait(parts.recorder.timeline(), finding)) {
        finding.clause = parts.the_case.clause();
    }
    return finding;
}

Finding end_finding(const StageParts& parts, const Ended& ended) {
    switch (ended.kind) {
        case EndKind::kKilled: {
            Finding finding =
                crash(ended.signal, strsignal(ended.signal) ? strsignal(ended.signal) : "",
                      ended.fault ? ended.fault->describe() : std::string());
            const bool gave_up = ended.signal == SIGABRT;
            if (!gave_up || !blame_last_wait(parts.recorder.timeline(), finding))
                finding.clause = parts.the_case.clause();
            return finding;
        }
        case EndKind::kExited: {
            std::vector<std::uint32_t> missing;
            for (std::uint32_t cpu = 0; cpu < parts.cpus(); ++cpu) {
                if (!parts.testee.progress().ended(cpu)) missing.push_back(cpu);
            }
            if (!ended.attached)
                return contract_finding(
                    fmt::format("the consumer exited with status {}; expected a call of "
                                "kmes_attach (system call 1091) first",
                                ended.exit_status));
            Finding finding = ended_too_early(
                ended.exit_status, (missing.size() == 1 ? "CPU " : "CPUs ") + ranges_text(missing));
            if (ended.exit_status == 0 && missing.size() == 1)
                finding.message += "; " + last_delivery_text(last_delivery(parts, missing.front()));
            return with_reason(parts, std::move(finding), ended);
        }
        case EndKind::kNotStarted:
        case EndKind::kNotTraceable:
            break;
    }
    return contract_finding(ended.text);
}

}  // namespace

LastDelivery last_delivery(const StageParts& parts, std::uint32_t cpu) {
    const std::uint64_t sequence = parts.testee.progress().last_sequence(cpu);
    const kmes::conformance::Event* event = parts.rings->history().find(cpu, sequence);
    return {sequence, event == nullptr ? std::string() : event->type};
}

void stop_if_killed_from_outside(const Ended& end) {
    if (!end.is_from_outside) return;
    stop_inconclusive(fmt::format(
        "signal {} ({}) killed the consumer, and not by a fault of its own: the kernel sends it "
        "where memory or processor time is used up, or another process has sent it",
        end.signal, strsignal(end.signal)));
}

void stop_at_malformed(const RecordParser& records) {
    if (records.malformed().empty()) return;
    Finding finding = contract_finding(records.malformed().front().message);
    finding.code = FindingCode::malformed_record;
    stop_with(std::move(finding));
}

void stop_ended(StageParts& parts) {
    parts.testee.read_report();
    const std::optional<Ended>& end = parts.testee.end();
    if (end->kind == EndKind::kNotStarted || end->kind == EndKind::kNotTraceable)
        throw SuiteError(end->text);
    if (end->kind == EndKind::kKilled && end->signal == SIGSYS)
        stop_inconclusive(std::string(kKilledBySeccomp));
    stop_if_killed_from_outside(*end);
    if (end->sanitizer_needs_ptrace)
        stop_inconclusive(
            "the consumer was built with a sanitizer that needs ptrace for itself; run it with "
            "ASAN_OPTIONS=detect_leaks=0, or build it without");
    const bool has_failed_to_attach =
        !parts.testee.attaches().empty() && parts.testee.attaches().back().error != 0;
    if (parts.findings.may_exit_early() && has_failed_to_attach && parts.findings.all().empty() &&
        end->kind == EndKind::kExited && end->exit_status != 0)
        throw EarlyExit{};
    if (const std::optional<Finding> first = parts.findings.take_first()) stop_with(*first);
    if (end->kind != EndKind::kExited || end->exit_status != 0) {
        if (const char* call = parts.testee.tracer().effects().call_refused_by_guards;
            call != nullptr)
            stop_inconclusive(fmt::format(
                "the consumer exited after {} failed with EFAULT on a guarded page. In the judged "
                "run, copy by loads, or by write, writev, sendmsg, vmsplice or process_vm_readv",
                call));
    }
    stop_if_foreign(parts, fmt::format("the consumer ended ({})", end->text));
    if (parts.testee.has_forked() && !parts.buffers.has_mapped_any() && end->attached)
        stop_inconclusive(
            fmt::format("the consumer ended ({}) before it mapped a buffer, and has child "
                        "processes. The suite follows the first process that calls kmes_attach: "
                        "let that one read all CPUs, in the foreground",
                        end->text));
    if (parts.testee.has_twin())
        stop_inconclusive(fmt::format(
            "the consumer ended ({}), and had a second process in its memory (clone with "
            "CLONE_VM), which the suite does not follow. Use threads in the judged run",
            end->text));
    stop_with(end_finding(parts, *end));
}

void stop_if_foreign(const StageParts& parts, const std::string& what) {
    if (parts.testee.foreign_process() == 0) return;
    stop_inconclusive(
        fmt::format("{} after process {} got EPERM from kmes_attach. The suite serves only the "
                    "first process that calls it: let one process read all CPUs in the judged run",
                    what, parts.testee.foreign_process()));
}

}  // namespace kmes::conformance
