// SPDX-License-Identifier: MIT
//
// See rings.h.
#include "conformance/stage/rings.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "conformance/model/layout.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/recorder.h"

namespace kmes::conformance {

namespace {

const std::uint64_t kNeedWakeWordEnd = kNeedWakeOffset + 4;  // a 32-bit store is right too
constexpr std::uint64_t kHeaderBytesOfFormA = 29;
constexpr std::uint64_t kRingClockStepNs = 1000;

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

kmes_event_input input_of(const EventSpec& spec) {
    kmes_event_input input{};
    input.type = spec.type.data();
    input.type_len = static_cast<__u16>(spec.type.size());
    input.payload = spec.payload.data();
    input.payload_len = static_cast<__u32>(spec.payload.size());
    input.origin_class = spec.origin;
    input.header_extra_len = static_cast<__u32>(spec.extra_header.size());
    return input;
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

Rings::Rings(const RingsSetup& setup, std::unique_ptr<RingBackend> backend)
    : capacity_bytes_(setup.capacity_bytes),
      first_futex_counter_(setup.first_futex_counter),
      history_(history_settings(setup)),
      backend_(backend ? std::move(backend) : make_core_backend()),
      silent_(std::make_unique<Recorder>(false)),
      recorder_(silent_.get()) {
    BackendSetup first;
    first.cpus = setup.cpus;
    first.is_boot = setup.boot_capacity_bytes.has_value();
    first.capacity_bytes = setup.boot_capacity_bytes.value_or(setup.capacity_bytes);
    first.last_sequence = setup.first_sequence - 1;
    first.first_generation = first.is_boot ? 0 : setup.first_generation;
    first.first_futex_counter = setup.first_futex_counter;
    first.least_file_bytes = setup.least_file_bytes;
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) {
        const BufferIndex index = history_.present_buffer(cpu);
        if (index != cpu) throw SuiteError("the history numbers its buffers in another order");
        first.start_positions.push_back(history_.buffer(index).start_position);
    }
    backend_->create(first, [this](std::uint64_t threads) { recorder_->woke(threads); });
    planted_.resize(setup.cpus);
    held_back_.resize(setup.cpus);
}

Rings::~Rings() = default;

void Rings::set_before_operation(std::function<void()> function) {
    before_operation_ = std::move(function);
}

void Rings::set_on_buffer(std::function<void(BufferIndex)> function) {
    on_buffer_ = std::move(function);
    for (BufferIndex index = 0; index < backend_->buffers(); ++index) on_buffer_(index);
}

// The backend has made another buffer, and nobody has attached to it yet.
void Rings::add_buffer(BufferIndex expected) {
    if (backend_->buffers() != expected + 1)
        throw SuiteError("the history numbers its buffers in another order");
    planted_.emplace_back();
    if (on_buffer_) on_buffer_(expected);
}

void Rings::before_operation(std::uint32_t cpu) {
    const bool was_reserved = is_reserved(cpu);
    if (before_operation_) before_operation_();
    if (!was_reserved && is_reserved(cpu)) commit(cpu);
    recorder_->begin(cpu);
}

void Rings::stamp(EventSpec& spec) {
    if (spec.timestamp == 0 && !timestamps_as_given_) {
        spec.timestamp = clock_ns_;
        clock_ns_ += kRingClockStepNs;
    }
    backend_->set_clock(spec.timestamp);
}

// The core said the same as the history, and stands where the history says.
void Rings::compare(const Emitted& expected, int result, std::uint32_t cpu) const {
    const int right = expected.outcome == EmitOutcome::written ? 0 : -ENOSPC;
    if (result != right)
        throw SuiteError(
            fmt::format("CPU {}: the producer answered {} where the specification "
                        "says {}",
                        cpu, result, right));
    const BufferIndex index = history_.present_buffer(cpu);
    const ProducerState state = backend_->state(index);
    const Buffer& buffer = history_.buffer(index);
    if (state.tail != buffer.tail_pos || state.published != buffer.write_pos)
        throw SuiteError(
            fmt::format("CPU {}: the producer stands at tail {} and write {}, the "
                        "specification at {} and {}",
                        cpu, state.tail, state.published, buffer.tail_pos, buffer.write_pos));
}

Emitted Rings::emit(std::uint32_t cpu, EventSpec spec, EmitStyle style) {
    before_operation(cpu);
    stamp(spec);
    // The history first: once the core has published, the testee may report the event.
    const Emitted expected = history_.emit(cpu, spec, style);
    held_back_.at(cpu).give(*backend_);
    compare(expected, backend_->emit(cpu, input_of(spec), style), cpu);
    note_counter(cpu, expected.sequence);
    recorder_->emitted(cpu, expected);
    return expected;
}

void Rings::emit_many(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) emit(cpu, make(event_bytes));
}

void Rings::emit_bytes(std::uint32_t cpu, std::uint64_t bytes) {
    const std::uint64_t largest = history_.buffer(history_.present_buffer(cpu)).capacity / 4;
    while (bytes >= kLeastEventBytes) {
        std::uint64_t next = std::min(bytes, largest);
        // What is left over has to be an event, too.
        if (next < bytes && bytes - next < kLeastEventBytes) next -= kLeastEventBytes;
        emit(cpu, make(next));
        bytes -= next;
    }
}

void Rings::outrun(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events) {
    constexpr std::uint64_t kEvents = 16;  // in the last lap
    before_operation(cpu);
    const std::uint64_t capacity = history_.buffer(history_.present_buffer(cpu)).capacity;
    const std::uint64_t laps = bytes / capacity - 1;
    history_.outrun(cpu, laps, events);
    const std::uint64_t all = events == 0 ? 2 * laps : events;
    backend_->outrun(cpu, laps, all);
    recorder_->outran(cpu, laps * capacity, all);
    emit_many(cpu, kEvents, capacity / kEvents);
}

void Rings::note_counter(std::uint32_t cpu, std::uint64_t sequence) {
    const BufferIndex buffer = history_.present_buffer(cpu);
    const std::uint32_t now = counter(buffer);
    if (counted_.size() <= cpu) counted_.resize(cpu + 1);
    Counted& last = counted_[cpu];
    // A new buffer begins at 0, but for the first ones.
    if (last.buffer != buffer) last = {buffer, buffer < cpus() ? first_futex_counter_ : 0, 0};
    if (last.counter != now) last = {buffer, now, sequence};
}

bool Rings::is_counted_before(std::uint32_t cpu, std::uint64_t sequence,
                              std::uint32_t expected) const {
    if (cpu >= counted_.size()) return false;
    const Counted& last = counted_[cpu];
    return last.buffer == history_.present_buffer(cpu) && last.sequence >= sequence &&
           last.counter == expected;
}

void Rings::drop(std::uint32_t cpu) {
    before_operation(cpu);  // the capacity may change in it
    const std::uint64_t capacity = history_.buffer(history_.present_buffer(cpu)).capacity;
    if (emit(cpu, make(capacity / 2 + 1)).outcome != EmitOutcome::dropped)
        throw SuiteError("an event over half of the capacity was not dropped");
}

void Rings::batch(std::uint32_t cpu, std::span<const EventSpec> specs) {
    before_operation(cpu);
    const std::vector<Emitted> emitted = add_batch(cpu, specs, {});
    publish_batch(cpu, emitted);
    recorder_->batched(cpu, emitted);
}

void Rings::begin_batch(std::uint32_t cpu, std::span<const EventSpec> specs, BatchWritten written) {
    before_operation(cpu);
    pending_[cpu] = add_batch(cpu, specs, written);
    recorder_->began_batch(cpu, pending_[cpu], written.written);
}

void Rings::end_batch(std::uint32_t cpu) {
    before_operation(cpu);
    const auto found = pending_.find(cpu);
    if (found == pending_.end()) return;
    const std::vector<Emitted> emitted = std::move(found->second);
    pending_.erase(found);
    publish_batch(cpu, emitted);
    recorder_->ended_batch(cpu, emitted);
}

// What the next event of this CPU is written over.
void Rings::keep(std::uint32_t cpu, const EventSpec& spec) {
    const BufferIndex index = history_.present_buffer(cpu);
    const Buffer& buffer = history_.buffer(index);
    held_back_.at(cpu).keep(*backend_, index, buffer.capacity, buffer.write_frontier, spec);
}

void Rings::hold(std::uint32_t cpu, BatchWritten written) {
    const Buffer& buffer = history_.buffer(history_.present_buffer(cpu));
    held_back_.at(cpu).hold(*backend_, buffer.write_pos, written);
}

std::vector<Emitted> Rings::add_batch(std::uint32_t cpu, std::span<const EventSpec> specs,
                                      BatchWritten written) {
    const std::uint64_t timestamp = clock_ns_;  // a batch shares one
    clock_ns_ += kRingClockStepNs;
    backend_->set_clock(timestamp);
    std::vector<Emitted> emitted;
    history_.batch_begin(cpu, written);
    backend_->batch_begin(cpu);
    for (EventSpec spec : specs) {
        spec.timestamp = timestamp;
        if (written.written != Written::whole) keep(cpu, spec);
        const Emitted expected = history_.batch_add(cpu, spec);
        compare(expected, backend_->batch_add(cpu, input_of(spec)), cpu);
        emitted.push_back(expected);
    }
    hold(cpu, written);
    return emitted;
}

void Rings::publish_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    history_.batch_end(cpu);
    held_back_.at(cpu).give(*backend_);
    backend_->batch_end(cpu);
    if (!emitted.empty()) note_counter(cpu, emitted.back().sequence);
}

void Rings::reserve(std::uint32_t cpu, EventSpec spec, Written written) {
    before_operation(cpu);
    stamp(spec);
    const EventSpec& reserved = reserved_[cpu] = std::move(spec);
    // The history first, as always: the testee may see the tail move at once.
    history_.reserve(cpu, encoded_bytes(reserved), written);
    if (written != Written::whole) keep(cpu, reserved);
    if (backend_->reserve(cpu, input_of(reserved)) != 0)
        throw SuiteError("the reservation was refused");
    hold(cpu, {written});
    recorder_->reserved(cpu, encoded_bytes(reserved), written);
}

void Rings::commit(std::uint32_t cpu) {
    before_operation(cpu);
    const auto found = reserved_.find(cpu);
    if (found == reserved_.end()) return;
    const EventSpec reserved = std::move(found->second);
    reserved_.erase(found);
    const Emitted expected = history_.emit(cpu, reserved);
    held_back_.at(cpu).give(*backend_);
    backend_->commit(cpu);
    compare(expected, 0, cpu);
    note_counter(cpu, expected.sequence);
    recorder_->committed(cpu, expected);
}

void Rings::put_counter(BufferIndex buffer, std::uint32_t counter) {
    std::uint8_t bytes[sizeof counter];
    std::memcpy(bytes, &counter, sizeof counter);
    backend_->write(buffer, kFutexCounterOffset, bytes);
}

bool Rings::emit_and_count_late(std::uint32_t cpu, EventSpec spec) {
    const BufferIndex buffer = history_.present_buffer(cpu);
    const std::uint32_t before = counter(buffer);
    emit(cpu, std::move(spec));
    if (counter(buffer) == before) return false;
    put_counter(buffer, before);
    late_[buffer] = before;
    recorder_->not_counted_yet(cpu);
    return true;
}

void Rings::count_late(std::uint32_t cpu) {
    before_operation(cpu);
    const BufferIndex buffer = history_.present_buffer(cpu);
    if (late_.erase(buffer) == 0) return;
    put_counter(buffer, counter(buffer));
    recorder_->counted_late(cpu, backend_->wake(buffer));
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
    before_operation(cpu);
    const BufferIndex old_buffer = history_.present_buffer(cpu);
    const BufferIndex expected = history_.swap(cpu, spec);
    held_back_.at(cpu).give(*backend_);
    move(cpu, spec, expected);
    capacity_bytes_ = spec.capacity_bytes;
    recorder_->swapped(cpu, old_buffer, expected);
}

void Rings::hand_over(std::uint32_t cpu, const SwapSpec& spec) {
    before_operation(cpu);
    const BufferIndex boot_buffer = history_.present_buffer(cpu);
    const BufferIndex expected = history_.hand_over(cpu, spec);
    held_back_.at(cpu).give(*backend_);
    move(cpu, spec, expected);
    recorder_->swapped(cpu, boot_buffer, expected);
}

void Rings::nudge(BufferIndex buffer) {
    const std::uint32_t cpu = history_.buffer(buffer).cpu;
    before_operation(cpu);
    history_.nudge(buffer);
    if (backend_->nudge(cpu, buffer) != 0) throw SuiteError("the nudge was refused");
    recorder_->nudged(buffer);
}

std::uint64_t Rings::spurious_wake(std::uint32_t cpu) {
    before_operation(cpu);
    const std::uint64_t threads = backend_->wake(history_.present_buffer(cpu));
    recorder_->woken_without_event(cpu, threads);
    return threads;
}

void Rings::write_metadata(BufferIndex buffer, std::uint64_t offset,
                           std::span<const std::uint8_t> bytes) {
    if (offset + bytes.size() > kMetadataBytes) throw SuiteError("beyond the metadata");
    backend_->write(buffer, offset, bytes);
    planted_[buffer].emplace_back(offset, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    recorder_->planted(buffer, false, offset, bytes);
}

void Rings::write_data(BufferIndex buffer, std::uint64_t position,
                       std::span<const std::uint8_t> bytes) {
    const std::uint64_t capacity = history_.buffer(buffer).capacity;
    if (bytes.size() > capacity) throw SuiteError("beyond the data region");
    backend_->write(buffer, kMetadataBytes + (position & (capacity - 1)), bytes);
    data_is_planted_ = true;
    recorder_->planted(buffer, true, position, bytes);
}

std::uint64_t Rings::random() {
    return next_random(random_);
}

EventSpec Rings::make(std::uint64_t event_bytes, std::string type,
                      std::uint64_t extra_header_bytes) {
    // Where no header is longer than its type requires, the payload gets these bytes.
    if (!layout().header_may_grow) extra_header_bytes = 0;
    const std::uint64_t header = kHeaderBytesBeforeType + type.size() + extra_header_bytes;
    // Sizes of cases are those of form A: where another header is too long, it comes on top.
    if (event_bytes < header) event_bytes += kHeaderBytesBeforeType - kHeaderBytesOfFormA;
    if (type.empty() || event_bytes < header)
        throw SuiteError(
            fmt::format("no event of {} bytes with a header of {}", event_bytes, header));
    EventSpec spec;
    spec.type = std::move(type);
    spec.extra_header.assign(extra_header_bytes, '\0');
    spec.payload_seed = random_;
    spec.payload = generate_payload(random_, event_bytes - header);
    return spec;
}

EventSpec Rings::make_end() {
    return make(kHeaderBytesBeforeType + kEndEventType.size(), std::string(kEndEventType));
}

std::uint8_t Rings::need_wake(BufferIndex buffer) const {
    return __atomic_load_n(backend_->base(buffer) + kNeedWakeOffset, __ATOMIC_RELAXED);
}

void Rings::put_need_wake(BufferIndex buffer, std::uint8_t value, const std::string& told) {
    __atomic_store_n(backend_->base(buffer) + kNeedWakeOffset, value, __ATOMIC_SEQ_CST);
    flags_put_.insert(buffer);
    recorder_->flag_put(buffer, told);
}

std::optional<Finding> Rings::check_metadata(BufferIndex index) const {
    const Buffer& buffer = history_.buffer(index);
    std::vector<std::uint8_t> right(kMetadataBytes, 0);
    const auto put = [&right](std::uint64_t offset, const void* bytes, std::size_t count) {
        std::memcpy(right.data() + offset, bytes, count);
    };
    const ExpectedMetadata expected = history_.expected_metadata(index);
    const std::uint32_t version = 1;
    const std::uint64_t data_offset = kMetadataBytes;
    const std::uint32_t futex_counter = counter(index);
    put(0, "KMESRING", 8);
    put(8, &version, 4);
    put(12, &expected.cpu_id, 2);
    put(16, &expected.capacity, 8);
    put(24, &data_offset, 8);
    put(32, &expected.generation, 8);
    put(64, &expected.write_pos, 8);
    put(72, &expected.tail_pos, 8);
    // Between reserve and commit the tail is ahead of the history.
    const std::uint64_t reserved_tail = tail(index);
    if (is_reserved(buffer.cpu)) put(72, &reserved_tail, 8);
    put(128, &futex_counter, 4);
    for (const auto& [offset, bytes] : planted_[index]) put(offset, bytes.data(), bytes.size());
    const std::uint8_t* page = backend_->base(index);
    // Most pages are as they should be, and there may be hundreds.
    const bool is_right = std::memcmp(page, right.data(), kNeedWakeOffset) == 0 &&
                          std::memcmp(page + kNeedWakeWordEnd, right.data() + kNeedWakeWordEnd,
                                      kMetadataBytes - kNeedWakeWordEnd) == 0;
    for (std::uint64_t offset = 0; !is_right && offset < kMetadataBytes; ++offset) {
        if (offset >= kNeedWakeOffset && offset < kNeedWakeWordEnd) continue;
        // Forged positions stand until the producer publishes again.
        if (history_.tolerated(buffer.cpu) && offset >= 64 && offset < 80) continue;
        if (__atomic_load_n(page + offset, __ATOMIC_RELAXED) != right[offset])
            return write_outside(buffer.cpu, offset, 0, "");
    }
    std::uint8_t need_wake_bytes[4];
    for (std::uint64_t i = 0; i < 4; ++i)
        need_wake_bytes[i] = __atomic_load_n(page + kNeedWakeOffset + i, __ATOMIC_RELAXED);
    return judge_need_wake_bytes(buffer.cpu, need_wake_bytes);
}

void Rings::verify() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        const BufferIndex index = history_.present_buffer(cpu);
        if (history_.tolerated(cpu) || data_is_planted_ || !planted_[index].empty()) continue;
        if (held_back_[cpu].is_holding()) continue;  // the history has a pending batch whole
        const std::string difference = history_.compare_data(
            index, {backend_->base(index) + kMetadataBytes, history_.buffer(index).capacity});
        if (!difference.empty()) throw SuiteError(fmt::format("CPU {}: {}", cpu, difference));
    }
}

}  // namespace kmes::conformance
