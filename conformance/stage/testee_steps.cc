// SPDX-License-Identifier: MIT
//
// See testee_steps.h.
#include "conformance/stage/testee_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "conformance/model/step_texts.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

constexpr std::size_t kTextBytes = 80;

// Names the result of a system call: "EINTR" for -4.
std::string error_text(std::int64_t result) {
    const char* name = result < 0 ? strerrorname_np(static_cast<int>(-result)) : nullptr;
    return name != nullptr ? name : fmt::format("{}", result);
}

}  // namespace

// Names a removal with the number of its thread in the trace.
std::string TesteeSteps::with_number_of(const std::optional<Removal>& removal,
                                        std::string_view text) {
    if (removal) log_.threads().of(removal->tid);
    return log_.threads().put_into(text);
}

void TesteeSteps::attached(const Attached& event) {
    if (!log_.on()) return;
    TimelineStep step;
    step.kind = StepKind::attach;
    step.thread = log_.threads().of(event.tid);
    step.clause = "5.1.8.3 step 2";
    if (event.error == 0)
        step.text = fmt::format("{}{}, capacity {}", kAttachGets,
                                amount_text(event.fds.size(), "buffer"), event.capacity_bytes);
    else if (event.error == ERANGE)
        step.text = fmt::format(
            "kmes_attach with {}: ERANGE, it needs {}",
            amount_text(static_cast<std::uint64_t>(std::max(event.request.slots_requested, 0)),
                        "slot"),
            event.count_written);
    else
        step.text = fmt::format("kmes_attach: {}", error_text(-event.error));
    if (event.bad_pointer)
        step.text +=
            ", " + with_number_of(event.bad_pointer->removal, event.bad_pointer->describe());
    log_.add(std::move(step));
    log_.add_call(event.site);
}

void TesteeSteps::mapped(const Mapped& event) {
    if (!log_.on()) return;
    TimelineStep step;
    step.kind = StepKind::map;
    step.thread = log_.threads().of(event.tid);
    step.clause = "5.1.5";
    if (const std::optional<BufferIndex> index = log_.find_buffer(event.buffer)) {
        step.cpu = log_.history().buffer(*index).cpu;
        log_.threads().note_user(*step.cpu, step.thread);
        step.text = event.error == 0
                        ? fmt::format("maps buffer {} of CPU {}: {} bytes{}", *index, *step.cpu,
                                      event.request.length_bytes,
                                      event.deviation.any() ? ", against the contract" : "")
                        : fmt::format("mmap of buffer {} fails: error {}", *index, event.error);
        if (log_.history().buffer(*index).retired) step.text += "; it is retired";
        accesses_.note_mapped(step.thread, *index);
    }
    log_.add(std::move(step));
    log_.add_call(event.site);
}

void TesteeSteps::wait_begins(const FutexWait& event) {
    if (!log_.on()) return;
    const int thread = log_.threads().of(event.tid);
    for (const FutexWord& word : event.words) {
        const std::optional<BufferIndex> index = log_.find_buffer(word.place.buffer);
        if (!index) continue;
        TimelineStep step;
        step.kind = StepKind::wait_begin;
        step.thread = thread;
        step.cpu = log_.history().buffer(*index).cpu;
        step.clause = "5.1.8.2 step 5";
        step.text =
            fmt::format("futex_wait on {}{}: waits while it is {}; it is {}, need_wake is {}",
                        word.place.offset_bytes == kFutexWordOffset
                            ? std::string("futex_counter")
                            : fmt::format("byte {} of the mapping", word.place.offset_bytes),
                        retired_suffix(log_.history(), *index), word.value_expected,
                        word.value_there, log_.rings().backend().need_wake(*index));
        if (word.is_private) step.text += "; a private futex, which no other process can wake";
        if (event.limit != TimeLimit::kNone) step.text += "; with a time limit";
        log_.threads().note_user(*step.cpu, thread);
        const StepFacts::Wait wait{log_.timeline().last_number() + 1, *step.cpu, *index, thread};
        log_.add(std::move(step));
        log_.add_call(event.site);
        log_.add_wait(wait);
        asleep_[event.tid] = {wait, event.site};
    }
}

void TesteeSteps::wait_ends(const FutexWaitEnd& event, std::int64_t result_instead) {
    if (!log_.on()) return;
    const auto found = asleep_.find(event.tid);
    if (found == asleep_.end()) return;
    TimelineStep step;
    step.kind = StepKind::wait_end;
    step.thread = log_.threads().of(event.tid);
    step.cpu = found->second.wait.cpu;
    step.clause = "5.1.8.2 step 6";
    if (event.thread_ended)
        step.text = "the thread ends in the wait";
    else if (event.result >= 0)
        step.text = "is woken";
    else if (event.result == -EAGAIN)
        step.text = "futex_wait returns at once: futex_counter has another value";
    else if (event.result == -ETIMEDOUT)
        step.text = "the time limit of the wait expires";
    else if (event.result == -EINTR)
        step.text = "the wait is interrupted";
    else
        step.text = fmt::format("futex_wait returns {}", error_text(event.result));
    if (result_instead != 0)
        step.text += fmt::format("; the suite returns {} to it", error_text(result_instead));
    accesses_.note_woken(step.thread);
    log_.add(std::move(step));
    log_.add_call(found->second.site);
    asleep_.erase(found);
}

std::string TesteeSteps::event_text(std::uint64_t cpu, std::uint64_t sequence) const {
    if (cpu >= log_.history().cpus()) return fmt::format("event {} of CPU {}", sequence, cpu);
    const Event* event = log_.history().find(static_cast<std::uint32_t>(cpu), sequence);
    if (event == nullptr) return fmt::format("event {}, which does not exist", sequence);
    return fmt::format("event {}", sequence);
}

TimelineStep TesteeSteps::record_step(std::optional<std::uint64_t> cpu) const {
    TimelineStep step;
    step.kind = StepKind::record;
    if (cpu && *cpu < log_.history().cpus()) {
        step.cpu = static_cast<std::uint32_t>(*cpu);
        step.thread = log_.threads().last_user_of(*step.cpu);
    }
    // A record whose thread is unknown belongs to the first thread of the testee.
    if (step.thread == 0) step.thread = 1;
    return step;
}

void TesteeSteps::add_record(const Record& record) {
    TimelineStep step = record_step(record.cpu);
    switch (record.kind) {
        case RecordKind::event:
            step.text = "writes: delivered " + event_text(record.cpu, record.sequence);
            step.clause = "5.1.8.1 step 6";
            step.sequence = record.sequence;
            break;
        case RecordKind::lost:
            step.text = fmt::format("writes: {} lost", amount_text(record.count, "event"));
            step.clause = "5.1.9";
            break;
        case RecordKind::generation:
            step.text =
                fmt::format("writes: reads another buffer, generation {}", record.generation);
            step.clause = "5.1.8.3";
            break;
        case RecordKind::refusal:
            step.text = "writes: refuses the buffer, " + quote_bytes(record.text, kTextBytes);
            step.clause = "contract";
            break;
        case RecordKind::comment:
            step.text = "writes: comment " + quote_bytes(record.text, kTextBytes);
            break;
    }
    log_.add(std::move(step));
    log_.note_line(record.line);
}

void TesteeSteps::add_malformed(const MalformedLine& line) {
    TimelineStep step = record_step(line.cpu);
    step.text = "writes a malformed line: " + line.message;
    step.clause = "contract-records";
    log_.add(std::move(step));
}

// The parser has three lists: records, comments and malformed lines. Their steps come in the order
// of the lines.
void TesteeSteps::report_grew(const RecordParser& parser) {
    if (!log_.on() || !log_.has_rings()) return;
    for (;;) {
        const auto line_of = [](const auto& list, std::size_t added) {
            return added < list.size() ? list[added].line : kNever;
        };
        const std::uint64_t record = line_of(parser.records(), records_added_);
        const std::uint64_t comment = line_of(parser.comments(), comments_added_);
        const std::uint64_t malformed = line_of(parser.malformed(), malformed_added_);
        const std::uint64_t next = std::min({record, comment, malformed});
        if (next == kNever) return;
        if (next == record) {
            add_record(parser.records()[records_added_++]);
        } else if (next == comment) {
            add_record(parser.comments()[comments_added_++]);
        } else {
            add_malformed(parser.malformed()[malformed_added_++]);
            log_.note_line(next);
        }
    }
}

void TesteeSteps::ended(const Ended& event) {
    if (!log_.on()) return;
    TimelineStep step;
    step.kind = StepKind::end;
    step.clause = "contract-4";
    if (event.fault) {
        step.thread = log_.threads().of(event.fault->tid);
    } else if (event.thread != 0) {
        step.thread = log_.threads().of(event.thread);
    }
    switch (event.kind) {
        case EndKind::kExited:
            step.text = fmt::format("the testee exits with status {}", event.exit_status);
            break;
        case EndKind::kKilled:
            step.text = fmt::format("the testee is killed by signal {}", event.signal);
            if (event.fault)
                step.text += ": " + with_number_of(event.fault->removal, event.fault->describe());
            break;
        case EndKind::kNotStarted:
        case EndKind::kNotTraceable:
            step.text = event.text;
            break;
    }
    log_.add(std::move(step));
    if (event.fault) log_.add_place(event.fault->code_place, event.fault->stack, "");
}

}  // namespace kmes::conformance
