// SPDX-License-Identifier: MIT
//
// See step_log.h.
#include "conformance/stage/step_log.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

// A long run keeps at least this many facts of each kind.
constexpr std::size_t kFactsKept = 20000;

// Drops the older half of the facts, if there are twice as many as are kept.
template <typename Facts>
void drop_half(Facts& facts) {
    if (facts.size() >= 2 * kFactsKept)
        facts.erase(facts.begin(), std::next(facts.begin(), kFactsKept));
}

}  // namespace

std::string amount_text(std::uint64_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

void StepLog::watch(const Rings& rings, FindBuffer find_buffer) {
    rings_ = &rings;
    find_buffer_ = std::move(find_buffer);
}

const History& StepLog::history() const {
    return rings_->history();
}

BufferState StepLog::state_of(BufferIndex index) const {
    const Buffer& buffer = history().buffer(index);
    BufferState state;
    state.buffer = index;
    state.write_pos = buffer.write_pos;
    // Between reserve and commit the tail is ahead of the history.
    state.tail_pos = rings_->emissions().is_reserved(buffer.cpu) && !buffer.retired
                         ? rings_->backend().state(index).tail
                         : buffer.tail_pos;
    state.generation = buffer.generation();
    state.futex_counter = rings_->counters().of(index);
    state.need_wake = rings_->backend().need_wake(index);
    state.retired = buffer.retired;
    return state;
}

void StepLog::add(TimelineStep step) {
    const StepKind kind = step.kind;
    const int thread = step.thread;
    timeline_.add(std::move(step));
    if (kind == StepKind::producer || kind == StepKind::end)
        last_of_all_threads_ = timeline_.last_number();
    else
        last_of_thread_[thread] = timeline_.last_number();
}

void StepLog::add_scheduled(const std::string& text, pid_t thread) {
    TimelineStep step;
    step.kind = StepKind::scheduler;
    step.thread = thread == 0 ? 0 : threads_.of(thread);
    step.text = text;
    add(std::move(step));
}

bool StepLog::is_latest(std::uint64_t step, int thread) const {
    const auto last = last_of_thread_.find(thread);
    return last_of_all_threads_ <= step && (last == last_of_thread_.end() || last->second <= step);
}

void StepLog::add_place(const CodePlace& code, std::shared_ptr<const tracing::StackSnapshot> stack,
                        std::string field) {
    places_.add(timeline_, code, std::move(stack), std::move(field));
}

StepFacts::Operation& StepLog::add_operation(const StepFacts::Operation& operation) {
    drop_half(facts_.operations);
    facts_.operations.push_back(operation);
    return facts_.operations.back();
}

void StepLog::add_wait(const StepFacts::Wait& wait) {
    drop_half(facts_.waits);
    facts_.waits.push_back(wait);
}

void StepLog::add_tail_load(const StepFacts::TailLoad& load) {
    drop_half(facts_.tail_loads);
    facts_.tail_loads.push_back(load);
}

void StepLog::add_event_read(const StepFacts::EventRead& read) {
    if (!facts_.event_reads.empty() && facts_.event_reads.back().step == read.step)
        facts_.event_reads.pop_back();
    drop_half(facts_.event_reads);
    facts_.event_reads.push_back(read);
}

void StepLog::add_metadata_access(const StepFacts::MetadataAccess& access) {
    drop_half(facts_.metadata_accesses);
    facts_.metadata_accesses.push_back(access);
}

void StepLog::note_line(std::uint64_t line) {
    drop_half(facts_.step_of_line);
    facts_.step_of_line[line] = timeline_.last_number();
}

}  // namespace kmes::conformance
