// SPDX-License-Identifier: MIT
//
// What the producer, the testee and the suite do, as steps. See recorder.h.
#include "conformance/stage/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conformance/oracle/layout.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

// Of what a run is remembered by beyond its timeline.
constexpr std::size_t kOperationsKept = 20000;
constexpr std::size_t kTextBytes = 80;

std::string plural(std::uint64_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string events_text(std::uint64_t first, std::uint64_t last) {
    return first == last ? fmt::format("event {}", first)
                         : fmt::format("events {} to {}", first, last);
}

// Of what a system call returns: `EINTR` for -4.
std::string error_text(std::int64_t result) {
    const char* name = result < 0 ? strerrorname_np(static_cast<int>(-result)) : nullptr;
    return name != nullptr ? name : fmt::format("{}", result);
}

// A thread that the suite has stopped in its wait goes back to it by itself, and finds there that
// the counter has moved: the wake did not reach it, and is not missed.
std::string woken_text(std::uint64_t threads) {
    if (threads == 0) return "a wake, with no thread in its wait";
    return fmt::format("{} {} woken", plural(threads, "thread"), threads == 1 ? "is" : "are");
}

// What is in the ring of an event in flight, where that is not all of it.
std::string written_text(Written written, std::string_view event) {
    switch (written) {
        case Written::whole:
            return "";
        case Written::half:
            return fmt::format("; the header and half of the payload of {} are written", event);
        case Written::header:
            return fmt::format("; the header of {} is written and its payload is not", event);
        case Written::nothing:
            return fmt::format("; nothing of {} is written", event);
    }
    return "";
}

}  // namespace

void Recorder::watch(const Rings& rings, FindBuffer find_buffer) {
    rings_ = &rings;
    find_buffer_ = std::move(find_buffer);
}

const History& Recorder::history() const {
    return rings_->history();
}

BufferState Recorder::state_of(BufferIndex index) const {
    const Buffer& buffer = history().buffer(index);
    BufferState state;
    state.buffer = index;
    state.write_pos = buffer.write_pos;
    // Between reserve and commit the tail is ahead of the history.
    state.tail_pos =
        rings_->is_reserved(buffer.cpu) && !buffer.retired ? rings_->tail(index) : buffer.tail_pos;
    state.generation = buffer.generation();
    state.futex_counter = rings_->counter(index);
    state.need_wake = rings_->need_wake(index);
    state.retired = buffer.retired;
    return state;
}

int Recorder::number_of(pid_t thread) {
    return threads_.try_emplace(thread, static_cast<int>(threads_.size()) + 1).first->second;
}

void Recorder::add(TimelineStep step) {
    // Reads of an event are told in one step for as long as nothing comes between that bears on it.
    if (step.kind == StepKind::producer || step.kind == StepKind::end)
        readings_.clear();
    else
        readings_.erase(step.thread);
    timeline_.add(std::move(step));
}

std::string Recorder::buffer_suffix(BufferIndex index) const {
    const Buffer& buffer = history().buffer(index);
    return buffer.retired ? fmt::format(" of buffer {}, which is retired", index) : "";
}

// -- The producer ----------------------------------------------------------------------------

void Recorder::begin(std::uint32_t cpu) {
    if (!on_) return;
    woken_.reset();
    operated_buffer_ = history().present_buffer(cpu);
    tail_index_before_ = history().buffer(operated_buffer_).tail_index;
}

void Recorder::woke(std::uint64_t threads) {
    if (!on_) return;
    woken_ = woken_.value_or(0) + threads;
}

StepFacts::Operation& Recorder::add_operation(std::uint32_t cpu, std::string text,
                                              std::string clause, std::uint64_t sequence) {
    TimelineStep step;
    step.kind = StepKind::producer;
    step.cpu = cpu;
    step.text = std::move(text);
    step.clause = std::move(clause);
    step.sequence = sequence;
    step.state = state_of(history().present_buffer(cpu));
    add(std::move(step));
    if (facts_.operations.size() >= 2 * kOperationsKept)
        facts_.operations.erase(facts_.operations.begin(),
                                facts_.operations.begin() + kOperationsKept);
    StepFacts::Operation operation;
    operation.step = timeline_.last_number();
    operation.cpu = cpu;
    operation.woken = woken_;
    operation.in_move = in_move_;
    facts_.operations.push_back(operation);
    return facts_.operations.back();
}

// Which events 5.1.7 step 6 gave up since begin().
std::string Recorder::tail_text(StepFacts::Operation& operation) const {
    const Buffer& buffer = history().buffer(operated_buffer_);
    if (buffer.tail_index <= tail_index_before_) return "";
    operation.overwritten_first = buffer.placements[tail_index_before_].sequence;
    operation.overwritten_last = buffer.placements[buffer.tail_index - 1].sequence;
    return fmt::format("; tail_pos moves over {}",
                       events_text(operation.overwritten_first, operation.overwritten_last));
}

std::string Recorder::wake_text(std::uint32_t cpu) const {
    if (!woken_) return "; need_wake is 0: no wake";
    return fmt::format("; need_wake is set: futex_counter becomes {}, {}",
                       rings_->counter(history().present_buffer(cpu)), woken_text(*woken_));
}

void Recorder::emitted(std::uint32_t cpu, const Emitted& emitted) {
    if (!on_) return;
    switch (emitted.outcome) {
        case EmitOutcome::refused:
            add_operation(cpu,
                          fmt::format("refuses an event of {} bytes: too large", emitted.bytes),
                          "5.1.7 step 5", 0);
            return;
        case EmitOutcome::dropped:
            add_operation(cpu,
                          fmt::format("drops event {}: larger than half of the capacity; its "
                                      "sequence number is used",
                                      emitted.sequence),
                          "5.1.7 step 5", emitted.sequence);
            return;
        case EmitOutcome::written:
            break;
    }
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7", emitted.sequence);
    operation.published_first = operation.published_last = emitted.sequence;
    timeline_.last().text =
        fmt::format("emits event {}: {} bytes at position {}{}{}", emitted.sequence, emitted.bytes,
                    emitted.position, tail_text(operation), wake_text(cpu));
}

void Recorder::batched(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    if (!on_ || emitted.empty()) return;
    StepFacts::Operation& operation =
        add_operation(cpu, "", "5.1.7 batch", emitted.back().sequence);
    operation.published_first = emitted.front().sequence;
    operation.published_last = emitted.back().sequence;
    const auto written = static_cast<std::uint64_t>(
        std::count_if(emitted.begin(), emitted.end(),
                      [](const Emitted& each) { return each.outcome == EmitOutcome::written; }));
    const std::string dropped =
        written == emitted.size() ? "" : fmt::format(" ({} dropped)", emitted.size() - written);
    timeline_.last().text =
        fmt::format("emits {} as one batch{}{}{}",
                    events_text(operation.published_first, operation.published_last), dropped,
                    tail_text(operation), wake_text(cpu));
}

void Recorder::began_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted,
                           Written written) {
    if (!on_ || emitted.empty()) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 batch", 0);
    timeline_.last().text =
        fmt::format("{} {} as a batch and does not publish it yet{}{}",
                    written == Written::whole ? "writes" : "begins",
                    events_text(emitted.front().sequence, emitted.back().sequence),
                    written_text(written, "one of them"), tail_text(operation));
}

void Recorder::ended_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    if (!on_ || emitted.empty()) return;
    StepFacts::Operation& operation =
        add_operation(cpu, "", "5.1.7 batch", emitted.back().sequence);
    operation.published_first = emitted.front().sequence;
    operation.published_last = emitted.back().sequence;
    timeline_.last().text = fmt::format(
        "publishes {}, written earlier{}",
        events_text(operation.published_first, operation.published_last), wake_text(cpu));
}

void Recorder::reserved(std::uint32_t cpu, std::uint64_t bytes, Written written) {
    if (!on_) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 step 6", 0);
    const Buffer& buffer = history().buffer(operated_buffer_);
    const std::uint64_t tail = rings_->tail(operated_buffer_);
    std::string moved;
    for (std::size_t i = buffer.tail_index; i < buffer.placements.size(); ++i) {
        const Placement& event = buffer.placements[i];
        if (event.position >= tail) break;
        if (operation.overwritten_first == 0) operation.overwritten_first = event.sequence;
        operation.overwritten_last = event.sequence;
    }
    if (operation.overwritten_first != 0)
        moved = fmt::format("; tail_pos moves over {}",
                            events_text(operation.overwritten_first, operation.overwritten_last));
    timeline_.last().text =
        fmt::format("begins an event of {} bytes at position {} and does not publish it yet{}{}",
                    bytes, buffer.write_frontier, written_text(written, "the event"), moved);
}

void Recorder::outran(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events) {
    if (!on_) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.9", 0);
    timeline_.last().text =
        fmt::format("emits {} events, {} bytes in all, while all threads are stopped{}", events,
                    bytes, tail_text(operation));
}

void Recorder::committed(std::uint32_t cpu, const Emitted& emitted) {
    if (!on_) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 step 8", emitted.sequence);
    operation.published_first = operation.published_last = emitted.sequence;
    timeline_.last().text =
        fmt::format("publishes event {}, begun earlier{}", emitted.sequence, wake_text(cpu));
}

void Recorder::not_counted_yet(std::uint32_t cpu) {
    if (!on_) return;
    add_operation(cpu,
                  fmt::format("has published and has not done step 9: futex_counter is still {}",
                              rings_->counter(history().present_buffer(cpu))),
                  "5.1.7 step 8", 0);
}

void Recorder::counted_late(std::uint32_t cpu, std::uint64_t threads) {
    if (!on_) return;
    add_operation(cpu,
                  fmt::format("does step 9: futex_counter is {}; {}",
                              rings_->counter(history().present_buffer(cpu)), woken_text(threads)),
                  "5.1.7 step 9", 0);
}

void Recorder::swapped(std::uint32_t cpu, BufferIndex from, BufferIndex to) {
    if (!on_) return;
    const Buffer& old_buffer = history().buffer(from);
    const Buffer& new_buffer = history().buffer(to);
    const std::size_t copied = new_buffer.placements.size();
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.8.4", 0);
    operation.retired = from;
    timeline_.last().text = fmt::format(
        "replaces buffer {} ({} bytes) by buffer {} ({} bytes), with {} copied; buffer {} is "
        "retired with generation {}{}",
        from, old_buffer.capacity, to, new_buffer.capacity,
        copied == 0 ? std::string("no event")
                    : events_text(new_buffer.placements.front().sequence,
                                  new_buffer.placements.back().sequence),
        from, old_buffer.generation(), woken_ ? "; " + woken_text(*woken_) : "");
}

void Recorder::nudged(BufferIndex index) {
    if (!on_) return;
    const Buffer& buffer = history().buffer(index);
    add_operation(
        buffer.cpu,
        fmt::format("nudges the retired buffer {}: generation {}, futex_counter {}, {}", index,
                    buffer.generation(), rings_->counter(index), woken_text(woken_.value_or(0))),
        "E19", 0);
}

void Recorder::woken_without_event(std::uint32_t cpu, std::uint64_t threads) {
    if (!on_) return;
    add_operation(cpu, fmt::format("wakes {} without an event", plural(threads, "thread")),
                  "5.1.8.2 step 6", 0);
}

void Recorder::planted(BufferIndex buffer, bool is_data, std::uint64_t place,
                       std::span<const std::uint8_t> bytes) {
    if (!on_ || rings_ == nullptr) return;
    std::string text =
        fmt::format("the suite forges {} {} {} of {} buffer {}", plural(bytes.size(), "byte"),
                    is_data ? "at position" : "at byte", place,
                    is_data ? "the data of" : "the metadata of", buffer);
    for (const Field& field : metadata_fields()) {
        if (is_data || field.name == "magic" || field.offset != place ||
            field.bytes != bytes.size() || bytes.size() > 8)
            continue;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
        text = fmt::format("the suite sets {} of buffer {} to {}", field.name, buffer, value);
    }
    const std::uint64_t mask = history().buffer(buffer).capacity - 1;
    if (is_data)
        text += fmt::format(" ({})", name_of_bytes(history(), buffer,
                                                   kMetadataBytes + (place & mask), bytes.size()));
    add_operation(history().buffer(buffer).cpu, std::move(text), "", 0);
}

void Recorder::flag_put(BufferIndex buffer, const std::string& text) {
    if (!on_ || rings_ == nullptr) return;
    scheduled(text);
    timeline_.last().cpu = history().buffer(buffer).cpu;
    timeline_.last().state = state_of(buffer);
}

void Recorder::begin_move(const std::string& text) {
    if (!on_) return;
    scheduled(text);
    facts_.moves.push_back(timeline_.last_number());
    in_move_ = true;
}

// -- The testee ------------------------------------------------------------------------------

void Recorder::attached(const Attached& event) {
    if (!on_) return;
    TimelineStep step;
    step.kind = StepKind::attach;
    step.thread = number_of(event.tid);
    step.clause = "5.1.8.3 step 2";
    if (event.error == 0)
        step.text = fmt::format("kmes_attach: gets {}, capacity {}",
                                plural(event.fds.size(), "buffer"), event.capacity_bytes);
    else if (event.error == ERANGE)
        step.text = fmt::format(
            "kmes_attach with {}: ERANGE, {} are needed",
            plural(static_cast<std::uint64_t>(std::max(event.request.slots_requested, 0)), "slot"),
            event.count_written);
    else
        step.text = fmt::format("kmes_attach: error {}", event.error);
    add(std::move(step));
}

void Recorder::mapped(const Mapped& event) {
    if (!on_) return;
    TimelineStep step;
    step.kind = StepKind::map;
    step.thread = number_of(event.tid);
    step.clause = "5.1.5";
    if (const std::optional<BufferIndex> index = find_buffer_(event.buffer)) {
        step.cpu = history().buffer(*index).cpu;
        thread_of_cpu_[*step.cpu] = step.thread;
        step.text = event.error == 0
                        ? fmt::format("maps buffer {} of CPU {}: {} bytes{}", *index, *step.cpu,
                                      event.request.length_bytes,
                                      event.deviation.any() ? ", against the contract" : "")
                        : fmt::format("mmap of buffer {} fails: error {}", *index, event.error);
        if (history().buffer(*index).retired) step.text += "; it is retired";
        readers_.erase({step.thread, *index});
    }
    add(std::move(step));
}

void Recorder::wait_begins(const FutexWait& event) {
    if (!on_) return;
    const int thread = number_of(event.tid);
    for (const FutexWord& word : event.words) {
        const std::optional<BufferIndex> index = find_buffer_(word.place.buffer);
        if (!index) continue;
        TimelineStep step;
        step.kind = StepKind::wait_begin;
        step.thread = thread;
        step.cpu = history().buffer(*index).cpu;
        step.clause = "5.1.8.2 step 5";
        step.text =
            fmt::format("futex_wait on {}{}: waits while it is {}; it is {}, need_wake is {}",
                        word.place.offset_bytes == kFutexWordOffset
                            ? std::string("futex_counter")
                            : fmt::format("byte {} of the mapping", word.place.offset_bytes),
                        buffer_suffix(*index), word.value_expected, word.value_there,
                        rings_->need_wake(*index));
        if (word.is_private) step.text += "; a private futex, which no other process can wake";
        if (event.limit != TimeLimit::kNone) step.text += "; with a time limit";
        thread_of_cpu_[*step.cpu] = thread;
        const StepFacts::Wait wait{timeline_.last_number() + 1, *step.cpu, *index, thread};
        add(std::move(step));
        facts_.waits.push_back(wait);
        asleep_[event.tid] = wait;
    }
    if (facts_.waits.size() >= 2 * kOperationsKept)
        facts_.waits.erase(facts_.waits.begin(), facts_.waits.begin() + kOperationsKept);
}

void Recorder::wait_ends(const FutexWaitEnd& event, std::int64_t told_instead) {
    if (!on_) return;
    const auto found = asleep_.find(event.tid);
    if (found == asleep_.end()) return;
    TimelineStep step;
    step.kind = StepKind::wait_end;
    step.thread = number_of(event.tid);
    step.cpu = found->second.cpu;
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
    if (told_instead != 0)
        step.text += fmt::format("; the suite returns {} to it", error_text(told_instead));
    for (auto& [key, reader] : readers_) {
        if (key.first == step.thread) reader.woken = true;
    }
    asleep_.erase(found);
    add(std::move(step));
}

std::string Recorder::event_text(std::uint64_t cpu, std::uint64_t sequence) const {
    if (cpu >= history().cpus()) return fmt::format("event {} of CPU {}", sequence, cpu);
    const Event* event = history().find(static_cast<std::uint32_t>(cpu), sequence);
    if (event == nullptr) return fmt::format("event {}, which does not exist", sequence);
    return fmt::format("event {}", sequence);
}

void Recorder::add_record(const Record& record) {
    TimelineStep step;
    step.kind = StepKind::record;
    if (record.cpu < history().cpus()) {
        step.cpu = static_cast<std::uint32_t>(record.cpu);
        const auto thread = thread_of_cpu_.find(*step.cpu);
        step.thread = thread == thread_of_cpu_.end() ? 0 : thread->second;
    }
    // Whoever wrote it, it belongs into a column of the testee.
    if (step.thread == 0) step.thread = 1;
    switch (record.kind) {
        case RecordKind::event:
            step.text = "writes: delivered " + event_text(record.cpu, record.sequence);
            step.clause = "5.1.8.1 step 6";
            step.sequence = record.sequence;
            break;
        case RecordKind::lost:
            step.text = fmt::format("writes: {} lost", plural(record.count, "event"));
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
    add(std::move(step));
    if (facts_.step_of_line.size() >= 2 * kOperationsKept)
        facts_.step_of_line.erase(facts_.step_of_line.begin(),
                                  std::next(facts_.step_of_line.begin(), kOperationsKept));
    facts_.step_of_line[record.line] = timeline_.last_number();
}

// Records, comments and lines that are neither stand in three lists: told in the order of lines.
void Recorder::report_grew(const RecordParser& parser) {
    if (!on_ || rings_ == nullptr) return;
    for (;;) {
        const auto line_of = [](const auto& list, std::size_t told) {
            return told < list.size() ? list[told].line : kNever;
        };
        const std::uint64_t record = line_of(parser.records(), records_told_);
        const std::uint64_t comment = line_of(parser.comments(), comments_told_);
        const std::uint64_t malformed = line_of(parser.malformed(), malformed_told_);
        const std::uint64_t next = std::min({record, comment, malformed});
        if (next == kNever) return;
        if (next == record) {
            add_record(parser.records()[records_told_++]);
        } else if (next == comment) {
            add_record(parser.comments()[comments_told_++]);
        } else {
            TimelineStep step;
            step.kind = StepKind::record;
            step.thread = 1;
            step.text = "writes a malformed line: " + parser.malformed()[malformed_told_].message;
            step.clause = "contract";
            add(std::move(step));
            facts_.step_of_line[next] = timeline_.last_number();
            ++malformed_told_;
        }
    }
}

void Recorder::ended(const Ended& event) {
    if (!on_) return;
    TimelineStep step;
    step.kind = StepKind::end;
    step.clause = "contract-4";
    if (event.fault) {
        step.thread = number_of(event.fault->tid);
    } else if (event.thread != 0) {
        step.thread = number_of(event.thread);
    }
    switch (event.kind) {
        case EndKind::kExited:
            step.text = fmt::format("the testee exits with status {}", event.exit_status);
            break;
        case EndKind::kKilled:
            step.text = fmt::format("the testee is killed by signal {}", event.signal);
            if (event.fault) step.text += ": " + event.fault->describe();
            break;
        case EndKind::kNotStarted:
        case EndKind::kNotTraceable:
            step.text = event.text;
            break;
    }
    add(std::move(step));
    if (event.fault) places_.add(timeline_, event.fault->code_place, event.fault->stack, "");
}

void Recorder::scheduled(const std::string& text, pid_t thread) {
    if (!on_) return;
    TimelineStep step;
    step.kind = StepKind::scheduler;
    step.thread = thread == 0 ? 0 : number_of(thread);
    step.text = text;
    add(std::move(step));
}

}  // namespace kmes::conformance
