// SPDX-License-Identifier: MIT
//
// See emissions.h.
#include "conformance/stage/emissions.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "conformance/stage/producer_steps.h"

namespace kmes::conformance {

namespace {

// `event` is an EventSpec, or an Event of the history that still has its payload.
kmes_event_input input_of(const auto& event) {
    kmes_event_input input{};
    input.type = event.type.data();
    input.type_len = static_cast<__u16>(event.type.size());
    input.payload = event.payload.data();
    input.payload_len = static_cast<__u32>(event.payload.size());
    input.origin_class = event.origin;
    input.header_extra_len = static_cast<__u32>(event.extra_header.size());
    return input;
}

}  // namespace

Emissions::Emissions(History& history, RingBackend& backend, EventMaker& events,
                     FutexCounters& counters, ProducerSteps& steps)
    : history_(history),
      backend_(backend),
      events_(events),
      counters_(counters),
      steps_(steps),
      unwritten_(history.cpus()) {}

void Emissions::begin_operation(std::uint32_t cpu) {
    const bool was_reserved = is_reserved(cpu);
    if (observer_ != nullptr) observer_->before_operation();
    if (!was_reserved && is_reserved(cpu)) commit(cpu);
    steps_.begin(cpu);
}

void Emissions::stamp(EventSpec& spec) {
    events_.stamp(spec);
    backend_.set_clock(spec.timestamp);
}

// Checks that the result and the positions of the core are those of the history.
void Emissions::compare(const Emitted& expected, int result, std::uint32_t cpu) const {
    const int right = expected.outcome == EmitOutcome::written ? 0 : -ENOSPC;
    if (result != right)
        throw SuiteError(
            fmt::format("CPU {}: the producer returned {}; expected {} by the specification", cpu,
                        result, right));
    const BufferIndex index = history_.current_buffer(cpu);
    const ProducerState state = backend_.state(index);
    const Buffer& buffer = history_.buffer(index);
    if (state.tail != buffer.tail_pos || state.published != buffer.write_pos)
        throw SuiteError(
            fmt::format("CPU {}: tail_pos and write_pos of the producer are {} and {}; expected {} "
                        "and {} by the specification",
                        cpu, state.tail, state.published, buffer.tail_pos, buffer.write_pos));
}

Emitted Emissions::emit(std::uint32_t cpu, EventSpec spec, EmitStyle style) {
    begin_operation(cpu);
    stamp(spec);
    // The history first: once the core has published, the testee may report the event.
    const Emitted expected = history_.emit_taking(cpu, spec, style);
    // The history has the bytes of a written event now: one may have 128 MiB.
    const kmes_event_input input = expected.outcome == EmitOutcome::written
                                       ? input_of(history_.events_of(cpu).back())
                                       : input_of(spec);
    write_rest(cpu);
    compare(expected, backend_.emit(cpu, input, style), cpu);
    counters_.note_emission(cpu, expected.sequence);
    steps_.emitted(cpu, expected);
    return expected;
}

void Emissions::batch(std::uint32_t cpu, std::span<const EventSpec> specs) {
    begin_operation(cpu);
    const std::vector<Emitted> emitted = add_batch(cpu, specs, {});
    publish_batch(cpu, emitted);
    steps_.batched(cpu, emitted);
}

void Emissions::begin_batch(std::uint32_t cpu, std::span<const EventSpec> specs,
                            BatchWritten written) {
    begin_operation(cpu);
    pending_[cpu] = add_batch(cpu, specs, written);
    steps_.began_batch(cpu, pending_[cpu], written.written);
}

void Emissions::end_batch(std::uint32_t cpu) {
    begin_operation(cpu);
    const auto found = pending_.find(cpu);
    if (found == pending_.end()) return;
    const std::vector<Emitted> emitted = std::move(found->second);
    pending_.erase(found);
    publish_batch(cpu, emitted);
    steps_.ended_batch(cpu, emitted);
}

// Saves the bytes that the next event of this CPU overwrites.
void Emissions::save_old(std::uint32_t cpu, const EventSpec& spec) {
    const BufferIndex index = history_.current_buffer(cpu);
    const Buffer& buffer = history_.buffer(index);
    unwritten_.at(cpu).save_old(backend_, index, buffer.capacity, buffer.write_frontier, spec);
}

void Emissions::remove_unwritten(std::uint32_t cpu, BatchWritten written) {
    const Buffer& buffer = history_.buffer(history_.current_buffer(cpu));
    unwritten_.at(cpu).remove(backend_, buffer.write_pos, written);
}

std::vector<Emitted> Emissions::add_batch(std::uint32_t cpu, std::span<const EventSpec> specs,
                                          BatchWritten written) {
    // All events of a batch have the same timestamp.
    const std::uint64_t timestamp = events_.next_timestamp();
    backend_.set_clock(timestamp);
    std::vector<Emitted> emitted;
    history_.batch_begin(cpu, written);
    backend_.batch_begin(cpu);
    for (EventSpec spec : specs) {
        spec.timestamp = timestamp;
        if (written.written != Written::whole) save_old(cpu, spec);
        const Emitted expected = history_.batch_add(cpu, spec);
        compare(expected, backend_.batch_add(cpu, input_of(spec)), cpu);
        emitted.push_back(expected);
    }
    remove_unwritten(cpu, written);
    return emitted;
}

void Emissions::publish_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    history_.batch_end(cpu);
    write_rest(cpu);
    backend_.batch_end(cpu);
    if (!emitted.empty()) counters_.note_emission(cpu, emitted.back().sequence);
}

void Emissions::reserve(std::uint32_t cpu, EventSpec spec, Written written) {
    begin_operation(cpu);
    stamp(spec);
    const EventSpec& reserved = reserved_[cpu] = std::move(spec);
    // The history first: the testee may load the new tail at once.
    history_.reserve(cpu, encoded_bytes(reserved), written);
    if (written != Written::whole) save_old(cpu, reserved);
    if (backend_.reserve(cpu, input_of(reserved)) != 0)
        throw SuiteError("the reservation was refused");
    remove_unwritten(cpu, {written});
    steps_.reserved(cpu, encoded_bytes(reserved), written);
}

void Emissions::commit(std::uint32_t cpu) {
    begin_operation(cpu);
    const auto found = reserved_.find(cpu);
    if (found == reserved_.end()) return;
    const EventSpec reserved = std::move(found->second);
    reserved_.erase(found);
    const Emitted expected = history_.emit(cpu, reserved);
    write_rest(cpu);
    backend_.commit(cpu);
    compare(expected, 0, cpu);
    counters_.note_emission(cpu, expected.sequence);
    steps_.committed(cpu, expected);
}

bool Emissions::emit_and_count_late(std::uint32_t cpu, EventSpec spec) {
    const BufferIndex buffer = history_.current_buffer(cpu);
    const std::uint32_t before = counters_.of(buffer);
    emit(cpu, std::move(spec), EmitStyle::kernel);
    if (counters_.of(buffer) == before) return false;
    counters_.rewind(buffer, before);
    steps_.not_counted_yet(cpu);
    return true;
}

void Emissions::count_late(std::uint32_t cpu) {
    begin_operation(cpu);
    const BufferIndex buffer = history_.current_buffer(cpu);
    if (!counters_.catch_up(buffer)) return;
    steps_.counted_late(cpu, backend_.wake(buffer));
}

}  // namespace kmes::conformance
