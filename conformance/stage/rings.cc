// SPDX-License-Identifier: MIT
//
// See rings.h.
#include "conformance/stage/rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/stage/recorder.h"

namespace kmes::conformance {

namespace {

HistorySettings history_settings(const RingsSetup& setup) {
    HistorySettings settings;
    settings.cpus = setup.cpus;
    settings.capacity_bytes = setup.capacity_bytes;
    settings.start_positions = setup.start_positions;
    settings.boot_capacity_bytes = setup.boot_capacity_bytes;
    settings.first_sequence = setup.first_sequence;
    settings.first_generation = setup.first_generation;
    settings.first_futex_counter = setup.first_futex_counter;
    return settings;
}

kmes_swap_positions positions_of(PositionRule rule) {
    switch (rule) {
        case PositionRule::keep:
            return KMES_SWAP_KEEP;
        case PositionRule::tail_at:
            return KMES_SWAP_ZERO;
        case PositionRule::shift:
            return KMES_SWAP_SHIFT;
    }
    throw SuiteError("no such rule for positions");
}

}  // namespace

Rings::Rings(const RingsSetup& setup, std::unique_ptr<RingBackend> backend, ProducerSteps* steps)
    : capacity_bytes_(setup.capacity_bytes),
      silent_(steps != nullptr ? nullptr : std::make_unique<Recorder>(false)),
      steps_(steps != nullptr ? *steps : silent_->producer()),
      history_(history_settings(setup)),
      backend_(backend ? std::move(backend) : make_core_backend()),
      forged_(history_, *backend_, steps_),
      counters_(history_, *backend_, setup.first_futex_counter),
      emissions_(history_, *backend_, events_, counters_, steps_) {
    BackendSetup first;
    first.cpus = setup.cpus;
    first.is_boot = setup.boot_capacity_bytes.has_value();
    first.capacity_bytes = setup.boot_capacity_bytes.value_or(setup.capacity_bytes);
    first.last_sequence = setup.first_sequence - 1;
    first.first_generation = first.is_boot ? 0 : setup.first_generation;
    first.first_futex_counter = setup.first_futex_counter;
    first.least_file_bytes = setup.least_file_bytes;
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) {
        const BufferIndex index = history_.current_buffer(cpu);
        if (index != cpu) throw SuiteError("the history numbers its buffers in another order");
        first.start_positions.push_back(history_.buffer(index).start_position);
    }
    backend_->create(first, [&steps = steps_](std::uint64_t threads) { steps.woke(threads); });
}

Rings::~Rings() = default;

void Rings::set_observer(RingsObserver& observer) {
    if (observer_ != nullptr) throw SuiteError("the rings have an observer already");
    observer_ = &observer;
    emissions_.set_observer(observer);
    for (BufferIndex index = 0; index < backend_->buffers(); ++index) observer.on_buffer(index);
}

// Reports the new buffer of the backend before a consumer attaches to it.
void Rings::add_buffer(BufferIndex expected) {
    if (backend_->buffers() != expected + 1)
        throw SuiteError("the history numbers its buffers in another order");
    if (observer_ != nullptr) observer_->on_buffer(expected);
}

Emitted Rings::emit(std::uint32_t cpu, EventSpec spec, EmitStyle style) {
    return emissions_.emit(cpu, std::move(spec), style);
}

void Rings::batch(std::uint32_t cpu, std::span<const EventSpec> specs) {
    emissions_.batch(cpu, specs);
}

void Rings::emit_many(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) emit(cpu, events_.make(event_bytes));
}

void Rings::emit_bytes(std::uint32_t cpu, std::uint64_t bytes) {
    const std::uint64_t largest = history_.buffer(history_.current_buffer(cpu)).capacity / 4;
    while (bytes >= kLeastEventBytes) {
        std::uint64_t next = std::min(bytes, largest);
        // The remainder must be an event too.
        if (next < bytes && bytes - next < kLeastEventBytes) next -= kLeastEventBytes;
        emit(cpu, events_.make(next));
        bytes -= next;
    }
}

void Rings::outrun(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events) {
    constexpr std::uint64_t kEvents = 16;  // in the last lap
    emissions_.begin_operation(cpu);
    const std::uint64_t capacity = history_.buffer(history_.current_buffer(cpu)).capacity;
    const std::uint64_t laps = bytes / capacity - 1;
    history_.outrun(cpu, laps, events);
    const std::uint64_t all = events == 0 ? 2 * laps : events;
    backend_->outrun(cpu, laps, all);
    steps_.outran(cpu, laps * capacity, all);
    emit_many(cpu, kEvents, capacity / kEvents);
}

void Rings::drop(std::uint32_t cpu) {
    emissions_.begin_operation(cpu);  // the observer may change the capacity
    const std::uint64_t capacity = history_.buffer(history_.current_buffer(cpu)).capacity;
    if (emit(cpu, events_.make(capacity / 2 + 1)).outcome != EmitOutcome::dropped)
        throw SuiteError("an event over half of the capacity was not dropped");
}

void Rings::move(std::uint32_t cpu, const SwapSpec& spec, BufferIndex expected) {
    if (spec.rule == PositionRule::tail_at && spec.position != 0)
        throw SuiteError("the core can begin a new buffer at 0 only");
    const std::uint64_t shift_bytes = spec.rule == PositionRule::shift ? spec.position : 0;
    if (backend_->swap(cpu, spec.capacity_bytes, positions_of(spec.rule), shift_bytes) != 0)
        throw SuiteError("the swap was refused");
    add_buffer(expected);
}

void Rings::swap(std::uint32_t cpu, const SwapSpec& spec) {
    emissions_.begin_operation(cpu);
    const BufferIndex old_buffer = history_.current_buffer(cpu);
    const BufferIndex expected = history_.swap(cpu, spec);
    emissions_.write_rest(cpu);
    move(cpu, spec, expected);
    capacity_bytes_ = spec.capacity_bytes;
    steps_.swapped(cpu, old_buffer, expected);
}

void Rings::swap_as_published(std::uint32_t cpu, const SwapSpec& spec) {
    const BufferIndex old_buffer = history_.current_buffer(cpu);
    if (backend_->need_wake(old_buffer) != 0) {
        swap(cpu, spec);
        return;
    }
    const std::uint32_t before = counters_.of(old_buffer);
    backend_->set_waking(false);
    swap(cpu, spec);
    backend_->set_waking(true);
    counters_.rewind(old_buffer, before);
}

void Rings::hand_over(std::uint32_t cpu, const SwapSpec& spec) {
    emissions_.begin_operation(cpu);
    const BufferIndex boot_buffer = history_.current_buffer(cpu);
    const BufferIndex expected = history_.hand_over(cpu, spec);
    emissions_.write_rest(cpu);
    move(cpu, spec, expected);
    steps_.swapped(cpu, boot_buffer, expected);
}

void Rings::nudge(BufferIndex buffer) {
    const std::uint32_t cpu = history_.buffer(buffer).cpu;
    emissions_.begin_operation(cpu);
    history_.nudge(buffer);
    if (backend_->nudge(cpu, buffer) != 0) throw SuiteError("the nudge was refused");
    steps_.nudged(buffer);
}

std::uint64_t Rings::spurious_wake(std::uint32_t cpu) {
    emissions_.begin_operation(cpu);
    const std::uint64_t threads = backend_->wake(history_.current_buffer(cpu));
    steps_.woken_without_event(cpu, threads);
    return threads;
}

void Rings::verify() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const BufferIndex index = history_.current_buffer(cpu);
        if (history_.tolerated(cpu) || forged_.has_written_data() ||
            forged_.has_written_metadata(index))
            continue;
        // The history contains all of a pending batch.
        if (emissions_.has_unwritten_bytes(cpu)) continue;
        const std::string difference = history_.compare_data(
            index, {backend_->base(index) + kMetadataBytes, history_.buffer(index).capacity});
        if (!difference.empty()) throw SuiteError(fmt::format("CPU {}: {}", cpu, difference));
    }
}

}  // namespace kmes::conformance
