// SPDX-License-Identifier: MIT
//
// The model of the producer's side, straight from 5.1.7, 5.1.8.3, 5.1.8.4 and the errata. Knows no
// core and no memory.
#include "conformance/oracle/history.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kSmallestCapacity = 64;
constexpr std::size_t kMaximumTypeBytes = 65535;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("history: ") + what);
}

void require_capacity(std::uint64_t capacity) {
    require(std::has_single_bit(capacity) && capacity >= kSmallestCapacity,
            "a capacity is a power of two from 64 bytes on");
}

void require_event(const EventSpec& spec) {
    require(!spec.type.empty() && spec.type.size() <= kMaximumTypeBytes,
            "a type has 1 to 65535 bytes");
    require(encoded_bytes(spec) <= std::numeric_limits<std::uint32_t>::max(),
            "an event has less than 4 GiB");
}

// The number of survivors, counted from the newest, that fit into `capacity` (E10).
std::size_t count_fitting(const Buffer& buffer, std::uint64_t capacity) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = buffer.placements.size(); i > buffer.tail_index; --i) {
        bytes += buffer.placements[i - 1].bytes;
        if (bytes > capacity) break;
        ++count;
    }
    return count;
}

// More than any run overtakes; the positions after several of them still fit in 64 bits.
constexpr std::uint64_t kMaximumBytesOutrun = std::uint64_t{1} << 62;

}  // namespace

std::uint64_t Event::digest() const {
    if (!digest_) digest_ = fnv1a(payload);
    return *digest_;
}

void Event::release_payload() {
    digest();
    payload = std::string();
    payload_kept = false;
}

EventSpec spec_of(const Event& event) {
    return {event.type, event.payload, event.timestamp, event.origin, event.extra_header, {}};
}

bool must_refuse(BufferFault fault) {
    switch (fault) {
        case BufferFault::magic:
        case BufferFault::version:
        case BufferFault::capacity:
        case BufferFault::data_offset:
            return true;
        case BufferFault::none:
        case BufferFault::corrupt_content:
        case BufferFault::reserved_not_zero:
            return false;
    }
    return false;
}

bool may_refuse(BufferFault fault) {
    return must_refuse(fault) || fault == BufferFault::corrupt_content;
}

History::History(const HistorySettings& settings) {
    log_.settings = settings;
    require(settings.cpus > 0, "a run has at least one CPU");
    require(settings.first_sequence > 0, "sequence 0 is never assigned");
    require_capacity(settings.capacity_bytes);
    if (settings.boot_capacity_bytes) require_capacity(*settings.boot_capacity_bytes);
    cpu_states_.resize(settings.cpus);
    for (std::uint32_t cpu = 0; cpu < settings.cpus; ++cpu) {
        const bool boot = settings.boot_capacity_bytes.has_value();
        const std::uint64_t capacity =
            boot ? *settings.boot_capacity_bytes : settings.capacity_bytes;
        Buffer& buffer = add_buffer(cpu, capacity, boot ? 0 : settings.first_generation);
        buffer.boot = boot;
        buffer.futex_counter_lowest = settings.first_futex_counter;
        buffer.futex_counter_highest = settings.first_futex_counter;
        if (cpu < settings.start_positions.size()) {
            const std::uint64_t start = settings.start_positions[cpu];
            buffer.start_position = buffer.write_pos = buffer.write_frontier = buffer.tail_pos =
                start;
        }
    }
}

void History::set_report_bytes(std::uint64_t report_bytes) {
    log_.report_bytes = std::max(log_.report_bytes, report_bytes);
}

Emitted History::emit(std::uint32_t cpu, const EventSpec& spec, EmitStyle style) {
    EventSpec copy = spec;
    return emit_taking(cpu, copy, style);
}

Emitted History::emit_taking(std::uint32_t cpu, EventSpec& spec, EmitStyle style) {
    log_event({.kind = OperationKind::emit, .style = style, .cpu = cpu}, spec);
    Emitted emitted = append_taking(cpu, spec, style);
    // A single event is published at once, also in an interrupt inside a batch (E16).
    if (emitted.outcome == EmitOutcome::written) {
        publish_in_flight(cpu_state(cpu), mutable_buffer(current_buffer(cpu)));
        emitted.published = true;
    }
    return emitted;
}

std::uint64_t History::drop(std::uint32_t cpu) {
    ++operations_;
    CpuState& cpu_state = this->cpu_state(cpu);
    Event event;
    event.sequence = next_sequence(cpu_state);
    event.dropped = true;
    cpu_state.events.push_back(std::move(event));
    log_.add({.kind = OperationKind::drop, .cpu = cpu});
    return cpu_state.events.back().sequence;
}

void History::reserve(std::uint32_t cpu, std::uint64_t bytes, Written written) {
    ++operations_;
    CpuState& cpu_state = this->cpu_state(cpu);
    Buffer& buffer = mutable_buffer(current_buffer(cpu));
    require(!cpu_state.batch_pending, "a batch is pending on this CPU");
    require(bytes <= buffer.capacity / 2, "more than half of the capacity is never reserved");
    make_room(cpu_state, buffer, bytes);
    cpu_state.in_flight = written;
    cpu_state.in_flight_at = cpu_state.events.size();
    log_.add({.kind = OperationKind::reserve, .cpu = cpu, .room_bytes = bytes, .written = written});
}

void History::outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) {
    ++operations_;
    CpuState& cpu_state = this->cpu_state(cpu);
    Buffer& buffer = mutable_buffer(current_buffer(cpu));
    require(!cpu_state.batch_pending, "a batch is pending on this CPU");
    require(laps <= kMaximumBytesOutrun / buffer.capacity, "no producer writes so many laps");
    require(events <= laps * (buffer.capacity / kLeastEventBytes), "no such events are so small");
    Event event;
    event.type = "t";
    event.bytes = buffer.capacity / 2;
    event.length = event.bytes - encoded_bytes(spec_of(event));
    event.payload_kept = false;
    event.published = true;
    event.published_after = log_.report_bytes;
    event.published_operation = operations_;
    const std::uint64_t listed = events == 0 ? 2 * laps : 0;
    for (std::uint64_t i = 0; i < listed; ++i) {
        event.sequence = next_sequence(cpu_state);
        cpu_state.events.push_back(event);
        buffer.placements.push_back({event.sequence, buffer.write_frontier, event.bytes, kNever});
        buffer.write_frontier += event.bytes;
    }
    if (events != 0) {
        cpu_state.numbers_alone.push_back({cpu_state.events.size(), events});
        buffer.write_frontier += laps * buffer.capacity;
    }
    for (std::size_t i = buffer.tail_index; i < buffer.placements.size(); ++i)
        buffer.placements[i].overwritten_after = log_.report_bytes;
    buffer.tail_index = buffer.published_count = buffer.placements.size();
    buffer.tail_pos = buffer.write_pos = buffer.write_frontier;
    buffer.futex_counter_highest += static_cast<std::uint32_t>(listed + events);
    log_.add({.kind = OperationKind::outrun, .cpu = cpu, .laps = laps, .events = events});
}

void History::batch_begin(std::uint32_t cpu, BatchWritten written) {
    CpuState& cpu_state = this->cpu_state(cpu);
    require(!cpu_state.batch_pending, "a batch is pending on this CPU already");
    cpu_state.batch_pending = true;
    cpu_state.in_flight = written.written;
    cpu_state.in_flight_at = cpu_state.events.size() + written.event;
    log_.add({.kind = OperationKind::batch_begin,
              .cpu = cpu,
              .written = written.written,
              .written_event = written.event});
}

Emitted History::batch_add(std::uint32_t cpu, const EventSpec& spec, EmitStyle style) {
    require(cpu_state(cpu).batch_pending, "no batch is pending on this CPU");
    log_event({.kind = OperationKind::batch_add, .style = style, .cpu = cpu}, spec);
    EventSpec copy = spec;
    return append_taking(cpu, copy, style);
}

void History::batch_end(std::uint32_t cpu) {
    require(cpu_state(cpu).batch_pending, "no batch is pending on this CPU");
    ++operations_;
    cpu_state(cpu).batch_pending = false;
    publish_in_flight(cpu_state(cpu), mutable_buffer(current_buffer(cpu)));
    log_.add({.kind = OperationKind::batch_end, .cpu = cpu});
}

BufferIndex History::swap(std::uint32_t cpu, const SwapSpec& spec) {
    const Buffer& old = buffer(current_buffer(cpu));
    require(!old.boot, "a boot buffer is handed over, not swapped");
    const BufferIndex made = replace(cpu, spec, old.generation() + 1);
    log_.add({.kind = OperationKind::swap, .cpu = cpu, .swap = spec});
    return made;
}

BufferIndex History::hand_over(std::uint32_t cpu, const SwapSpec& spec) {
    require(buffer(current_buffer(cpu)).boot, "only a boot buffer is handed over");
    const BufferIndex made = replace(cpu, spec, log_.settings.first_generation);
    log_.add({.kind = OperationKind::hand_over, .cpu = cpu, .swap = spec});
    return made;
}

void History::nudge(BufferIndex index) {
    ++operations_;
    Buffer& buffer = mutable_buffer(index);
    buffer.generations.push_back({buffer.generation() + 1, operations_, log_.report_bytes});
    ++buffer.futex_counter_lowest;
    ++buffer.futex_counter_highest;
    log_.add({.kind = OperationKind::nudge, .buffer = index});
}

void History::spurious_wake(BufferIndex index) {
    ++operations_;
    ++mutable_buffer(index).futex_counter_highest;
    log_.add({.kind = OperationKind::spurious_wake, .buffer = index});
}

void History::set_fault(BufferIndex index, BufferFault fault, std::string_view detail) {
    ++operations_;
    Buffer& buffer = mutable_buffer(index);
    buffer.fault = fault;
    buffer.fault_detail = detail;
    const LoggedBytes kept = log_.keep(detail);
    log_.add({.kind = OperationKind::set_fault, .fault = fault, .buffer = index, .detail = kept});
}

void History::tolerate(std::uint32_t cpu) {
    cpu_state(cpu).tolerated = true;
    log_.add({.kind = OperationKind::tolerate, .cpu = cpu});
}

void History::note_attached(BufferIndex index) {
    ++operations_;
    Buffer& buffer = mutable_buffer(index);
    require(!buffer.boot, "a boot buffer is not visible to consumers (5.1.2)");
    if (!buffer.attached()) {
        buffer.attached_operation = operations_;
        buffer.attached_after = log_.report_bytes;
    }
    log_.add({.kind = OperationKind::note_attached, .buffer = index});
}

void History::note_attached_all() {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) note_attached(current_buffer(cpu));
}

void History::note_draining(BufferIndex index) {
    mark_draining(index);
    log_.add({.kind = OperationKind::note_draining, .buffer = index});
}

void History::mark_draining(BufferIndex index) {
    ++operations_;
    Buffer& buffer = mutable_buffer(index);
    require(buffer.attached(), "a buffer that nobody got is not drained");
    if (buffer.draining_operation == kNever) buffer.draining_operation = operations_;
}

void History::checkpoint_idle(std::uint32_t cpu, BufferIndex index, std::uint64_t report_bytes) {
    require(buffer(index).cpu == cpu, "the buffer is of another CPU");
    const std::vector<Checkpoint>& before = cpu_state(cpu).checkpoints;
    require(before.empty() || before.back().report_bytes <= report_bytes,
            "the report does not become shorter");
    mark_draining(index);
    CpuState& cpu_state = this->cpu_state(cpu);
    cpu_state.checkpoints.push_back({index, report_bytes});
    Buffer& buffer = mutable_buffer(index);
    for (std::size_t i = std::max(buffer.owed_count, buffer.tail_index); i < buffer.published_count;
         ++i) {
        Event& event = event_at(cpu_state, buffer.placements[i].sequence);
        if (event.owed_by <= report_bytes) continue;
        event.owed_by = report_bytes;
        event.owed_buffer = index;
    }
    buffer.owed_count = buffer.published_count;
    log_.add({.kind = OperationKind::checkpoint_idle,
              .cpu = cpu,
              .buffer = index,
              .checkpoint_bytes = report_bytes});
}

BufferIndex History::current_buffer(std::uint32_t cpu) const {
    return cpu_state(cpu).buffers.back();
}

const std::vector<BufferIndex>& History::buffers_of(std::uint32_t cpu) const {
    return cpu_state(cpu).buffers;
}

const Buffer& History::buffer(BufferIndex index) const {
    require(index < buffers_.size(), "there is no such buffer");
    return buffers_[index];
}

const Event* History::find(std::uint32_t cpu, std::uint64_t sequence) const {
    const CpuState& cpu_state = this->cpu_state(cpu);
    const auto index = index_in(cpu_state, sequence);
    return index ? &cpu_state.events[*index] : nullptr;
}

std::optional<std::size_t> History::index_of(std::uint32_t cpu, std::uint64_t sequence) const {
    return index_in(cpu_state(cpu), sequence);
}

const std::deque<Event>& History::events_of(std::uint32_t cpu) const {
    return cpu_state(cpu).events;
}

const Placement* History::find_placement(BufferIndex index, std::uint64_t sequence) const {
    const std::vector<Placement>& placements = buffer(index).placements;
    const auto found = std::lower_bound(placements.begin(), placements.end(), sequence,
                                        [](const Placement& placement, std::uint64_t wanted) {
                                            return placement.sequence < wanted;
                                        });
    return found != placements.end() && found->sequence == sequence ? &*found : nullptr;
}

const std::vector<Checkpoint>& History::checkpoints_of(std::uint32_t cpu) const {
    return cpu_state(cpu).checkpoints;
}

bool History::tolerated(std::uint32_t cpu) const {
    return cpu_state(cpu).tolerated;
}

bool History::batch_pending(std::uint32_t cpu) const {
    return cpu_state(cpu).batch_pending;
}

ExpectedMetadata History::expected_metadata(BufferIndex index) const {
    const Buffer& buffer = this->buffer(index);
    ExpectedMetadata expected;
    expected.cpu_id = static_cast<std::uint16_t>(buffer.cpu);
    expected.capacity = buffer.capacity;
    expected.generation = buffer.generation();
    expected.write_pos = buffer.write_pos;
    expected.tail_pos = buffer.tail_pos;
    expected.futex_counter_lowest = buffer.futex_counter_lowest;
    expected.futex_counter_highest = buffer.futex_counter_highest;
    return expected;
}

std::string History::expected_bytes(BufferIndex index, const Placement& placement) const {
    const std::uint32_t cpu = buffer(index).cpu;
    const Event* event = find(cpu, placement.sequence);
    require(event != nullptr && event->payload_kept, "the payload is no longer kept");
    return encode_event(spec_of(*event), event->sequence, static_cast<std::uint16_t>(cpu));
}

std::string History::compare_data(BufferIndex index, std::span<const std::uint8_t> data) const {
    const Buffer& buffer = this->buffer(index);
    require(data.size() >= buffer.capacity, "the data region is shorter than the capacity");
    for (std::size_t i = buffer.tail_index; i < buffer.placements.size(); ++i) {
        const Placement& placement = buffer.placements[i];
        if (!find(buffer.cpu, placement.sequence)->payload_kept) continue;
        const std::string expected = expected_bytes(index, placement);
        for (std::size_t byte = 0; byte < expected.size(); ++byte) {
            const std::uint64_t offset = (placement.position + byte) & (buffer.capacity - 1);
            const unsigned right = static_cast<std::uint8_t>(expected[byte]);
            if (data[offset] == right) continue;
            return "CPU " + std::to_string(buffer.cpu) + ": event " +
                   std::to_string(placement.sequence) + " at position " +
                   std::to_string(placement.position) + ": its byte " + std::to_string(byte) +
                   " (data offset " + std::to_string(offset) + ") is " +
                   std::to_string(data[offset]) + ", not " + std::to_string(right);
        }
    }
    return {};
}

History::CpuState& History::cpu_state(std::uint32_t cpu) {
    require(cpu < cpu_states_.size(), "there is no such CPU");
    return cpu_states_[cpu];
}

const History::CpuState& History::cpu_state(std::uint32_t cpu) const {
    require(cpu < cpu_states_.size(), "there is no such CPU");
    return cpu_states_[cpu];
}

Buffer& History::mutable_buffer(BufferIndex index) {
    require(index < buffers_.size(), "there is no such buffer");
    return buffers_[index];
}

std::uint64_t History::next_sequence(const CpuState& cpu_state) const {
    std::uint64_t next = log_.settings.first_sequence + cpu_state.events.size();
    for (const NumbersAlone& each : cpu_state.numbers_alone) next += each.count;
    return next;
}

std::optional<std::size_t> History::index_in(const CpuState& cpu_state,
                                             std::uint64_t sequence) const {
    if (sequence < log_.settings.first_sequence) return std::nullopt;
    std::uint64_t index = sequence - log_.settings.first_sequence;
    for (const NumbersAlone& each : cpu_state.numbers_alone) {
        if (index < each.index) break;
        index -= each.index;
        if (index < each.count) return std::nullopt;
        index = index - each.count + each.index;
    }
    if (index >= cpu_state.events.size()) return std::nullopt;
    return index;
}

Event& History::event_at(CpuState& cpu_state, std::uint64_t sequence) {
    const auto index = index_in(cpu_state, sequence);
    require(index.has_value(), "there is no such event");
    return cpu_state.events[*index];
}

Buffer& History::add_buffer(std::uint32_t cpu, std::uint64_t capacity, std::uint64_t generation) {
    cpu_state(cpu).buffers.push_back(buffers_.size());
    Buffer& buffer = buffers_.emplace_back();
    buffer.cpu = cpu;
    buffer.capacity = capacity;
    buffer.generations.push_back({generation, operations_, log_.report_bytes});
    return buffer;
}

// Before append_taking(), which takes the bytes.
void History::log_event(const LoggedOperation& operation, const EventSpec& spec) {
    require_event(spec);
    cpu_state(operation.cpu);  // throws if there is no such CPU
    log_.add_event(operation, spec);
}

// The caller has checked `spec`, whose bytes are taken only if the event is written.
Emitted History::append_taking(std::uint32_t cpu, EventSpec& spec, EmitStyle style) {
    ++operations_;
    CpuState& cpu_state = this->cpu_state(cpu);
    Buffer& buffer = mutable_buffer(cpu_state.buffers.back());
    Emitted emitted;
    emitted.bytes = encoded_bytes(spec);
    const bool too_large = emitted.bytes > buffer.capacity / 2;  // 5.1.7 step 5: exactly 50 % fits
    if (style == EmitStyle::call &&
        (too_large || emitted.bytes > log_.settings.maximum_call_event_bytes)) {
        emitted.outcome = EmitOutcome::refused;
        return emitted;
    }
    Event event;
    event.sequence = next_sequence(cpu_state);  // 5.1.7 step 2
    event.timestamp = spec.timestamp;
    event.origin = spec.origin;
    event.length = spec.payload.size();
    event.bytes = emitted.bytes;
    event.dropped = too_large;
    emitted.sequence = event.sequence;
    if (too_large) {
        emitted.outcome = EmitOutcome::dropped;
        event.type = spec.type;
        event.payload = spec.payload;
        event.release_payload();
        cpu_state.events.push_back(std::move(event));
        return emitted;
    }
    event.type = std::move(spec.type);
    event.extra_header = std::move(spec.extra_header);
    event.payload = std::move(spec.payload);
    kept_payload_bytes_ += event.length;
    cpu_state.events.push_back(std::move(event));

    emitted.overwritten = make_room(cpu_state, buffer, emitted.bytes);
    emitted.position = buffer.write_frontier;
    buffer.placements.push_back(
        {emitted.sequence, buffer.write_frontier, emitted.bytes, kNever});  // 5.1.7 step 7
    buffer.write_frontier += emitted.bytes;
    release_payloads(cpu_state);
    return emitted;
}

// 5.1.7 step 6 with E8. Returns how many events were given up.
std::uint64_t History::make_room(CpuState& cpu_state, Buffer& buffer, std::uint64_t bytes) {
    std::uint64_t tail_pos = buffer.tail_pos;
    std::size_t tail_index = buffer.tail_index;
    while (buffer.write_frontier + bytes - tail_pos > buffer.capacity) {
        tail_pos += buffer.placements.at(tail_index).bytes;
        ++tail_index;
    }
    const std::uint64_t overwritten = tail_index - buffer.tail_index;
    // E8: the tail never reaches the published write_pos while a batch is pending.
    if (overwritten > 0 && tail_index >= buffer.published_count) publish(cpu_state, buffer);
    for (std::size_t i = buffer.tail_index; i < tail_index; ++i) {
        buffer.placements[i].overwritten_after = log_.report_bytes;
    }
    buffer.tail_pos = tail_pos;
    buffer.tail_index = tail_index;
    return overwritten;
}

// 5.1.7 steps 8 and 9: everything written becomes visible.
void History::publish(CpuState& cpu_state, Buffer& buffer) {
    if (buffer.published_count == buffer.placements.size()) return;
    for (std::size_t i = buffer.published_count; i < buffer.placements.size(); ++i) {
        Event& event = event_at(cpu_state, buffer.placements[i].sequence);
        event.published = true;
        event.published_after = log_.report_bytes;
        event.published_operation = operations_;
    }
    buffer.published_count = buffer.placements.size();
    buffer.write_pos = buffer.write_frontier;
    ++buffer.futex_counter_highest;
}

// As publish(), at the end of the CPU's reservation or batch. Of the events in flight, only the
// first one can be written in part; nothing of the later ones is.
void History::publish_in_flight(CpuState& cpu_state, Buffer& buffer) {
    if (cpu_state.in_flight != Written::whole) {
        for (std::size_t i = cpu_state.in_flight_at; i < cpu_state.events.size(); ++i) {
            Event& event = cpu_state.events[i];
            if (!event.published) event.in_flight = cpu_state.in_flight;
            cpu_state.in_flight = Written::nothing;
        }
    }
    cpu_state.in_flight = Written::whole;
    publish(cpu_state, buffer);
}

BufferIndex History::replace(std::uint32_t cpu, const SwapSpec& spec,
                             std::uint64_t new_generation) {
    require_capacity(spec.capacity_bytes);
    ++operations_;
    const BufferIndex old_index = current_buffer(cpu);
    publish_in_flight(cpu_state(cpu), mutable_buffer(old_index));
    add_buffer(cpu, spec.capacity_bytes, new_generation);
    Buffer& old = buffers_[old_index];
    copy_survivors(old, buffers_.back(), spec);
    old.retired = true;
    old.retired_after = log_.report_bytes;
    old.retired_operation = operations_;
    // 5.1.8.4 step 4, and E3: increment the counter and wake, whatever need_wake is.
    old.generations.push_back({old.generation() + 1, operations_, log_.report_bytes});
    ++old.futex_counter_lowest;
    ++old.futex_counter_highest;
    return buffers_.size() - 1;
}

// E10: the longest suffix of whole events that fits. E11: positions by the rule.
void History::copy_survivors(const Buffer& from, Buffer& to, const SwapSpec& spec) {
    const std::size_t count = count_fitting(from, to.capacity);
    const std::size_t first = from.placements.size() - count;
    const std::uint64_t old_tail = count > 0 ? from.placements[first].position : from.write_pos;
    std::uint64_t position = old_tail;
    if (spec.rule == PositionRule::tail_at) position = spec.position;
    if (spec.rule == PositionRule::shift) position = old_tail + spec.position;
    to.start_position = position;
    to.tail_pos = position;
    for (std::size_t i = first; i < from.placements.size(); ++i) {
        const Placement& placement = from.placements[i];
        to.placements.push_back({placement.sequence, position, placement.bytes, kNever});
        position += placement.bytes;
    }
    to.published_count = to.placements.size();
    to.write_pos = position;
    to.write_frontier = position;
}

// Bounds the memory: frees payloads of the oldest events that no current buffer contains.
void History::release_payloads(CpuState& cpu_state) {
    if (kept_payload_bytes_ <= log_.kept_payload_bytes) return;
    const Buffer& current = buffers_[cpu_state.buffers.back()];
    std::uint64_t oldest = next_sequence(cpu_state);
    if (current.tail_index < current.placements.size()) {
        oldest = current.placements[current.tail_index].sequence;
    }
    while (cpu_state.released_count < cpu_state.events.size() &&
           cpu_state.events[cpu_state.released_count].sequence < oldest &&
           kept_payload_bytes_ > log_.kept_payload_bytes) {
        Event& event = cpu_state.events[cpu_state.released_count];
        kept_payload_bytes_ -= event.payload.size();
        event.release_payload();
        ++cpu_state.released_count;
    }
}

}  // namespace kmes::conformance
