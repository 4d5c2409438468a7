// SPDX-License-Identifier: MIT
//
// The plain model (model.h).
#include "props/machine/model.h"

#include <algorithm>

#include "props/script/script.h"

namespace kmes::props {
namespace {

constexpr std::size_t kGenerationOffset = 32;
constexpr std::size_t kWritePosOffset = 64;
constexpr std::size_t kTailPosOffset = 72;
constexpr std::size_t kCounterOffset = 128;

void put(std::string& bytes, std::size_t offset, std::uint64_t value, int length) {
    for (int i = 0; i < length; i++) bytes[offset + i] = static_cast<char>(value >> (8 * i));
}

std::string number_bytes(std::uint64_t value, int length) {
    std::string bytes(length, '\0');
    put(bytes, 0, value, length);
    return bytes;
}

}  // namespace

const char* text_of(Visible step) {
    switch (step) {
        case Visible::tail:
            return "the store of tail_pos";
        case Visible::tail_fence:
            return "the fence after tail_pos";
        case Visible::data:
            return "the bytes of the event";
        case Visible::publish:
            return "the store of write_pos";
        case Visible::wake_fence:
            return "the full fence before need_wake";
        case Visible::load_need_wake:
            return "the load of need_wake";
        case Visible::counter:
            return "the store of futex_counter";
        case Visible::wake:
            return "the wake";
        case Visible::successor:
            return "the new buffer";
        case Visible::generation:
            return "the store of generation";
        case Visible::retire_counter:
            return "the store of futex_counter of the retired buffer";
    }
    return "?";
}

const char* property_of(Visible kind) {
    switch (kind) {
        case Visible::load_need_wake:
        case Visible::counter:
        case Visible::wake:
        case Visible::wake_fence:
            return "wake";
        case Visible::generation:
        case Visible::retire_counter:
        case Visible::successor:
            return "generation";
        case Visible::publish:
        case Visible::data:
            return "publication";
        default:
            return "tail";
    }
}

const char* clause_of(Visible kind) {
    switch (kind) {
        case Visible::load_need_wake:
        case Visible::counter:
        case Visible::wake:
            return "5.1.7 step 9, E16";
        case Visible::wake_fence:
            return "5.1.7 step 9, E1";
        case Visible::generation:
            return "5.1.8.4 step 4, E24";
        case Visible::retire_counter:
            return "E3, E19";
        case Visible::successor:
            return "5.1.8.4, E19";
        case Visible::publish:
            return "5.1.7 step 8, E8";
        case Visible::data:
            return "5.1.7 step 7";
        case Visible::tail_fence:
            return "5.1.7 step 6, E5";
        case Visible::tail:
            return "5.1.7 step 6";
    }
    return "5.1.7";
}

std::string ModelBuffer::content(std::uint64_t position, std::uint64_t bytes) const {
    std::string content(bytes, '\0');
    for (std::uint64_t i = 0; i < bytes; i++) content[i] = data[(position + i) % capacity];
    return content;
}

void ModelBuffer::write(std::uint64_t position, std::string_view bytes) {
    for (std::uint64_t i = 0; i < bytes.size(); i++) data[(position + i) % capacity] = bytes[i];
}

// 5.1.6, row by row.
ModelBuffer Model::fresh_buffer(std::uint64_t capacity, std::uint64_t position,
                                std::uint64_t generation) const {
    ModelBuffer buffer;
    buffer.capacity = capacity;
    buffer.tail = buffer.published = buffer.frontier = position;
    buffer.generation = generation;
    buffer.data.assign(capacity, '\0');
    buffer.page.assign(kMetadataBytes, '\0');
    buffer.page.replace(0, 8, "KMESRING");
    put(buffer.page, 8, 1, 4);
    put(buffer.page, 12, cpu_, 2);
    put(buffer.page, 16, capacity, 8);
    put(buffer.page, 24, kMetadataBytes, 8);
    put(buffer.page, kGenerationOffset, generation, 8);
    put(buffer.page, kWritePosOffset, position, 8);
    put(buffer.page, kTailPosOffset, position, 8);
    return buffer;
}

Model::Model(const ModelSettings& settings)
    : first_sequence(settings.sequence + 1),
      sequence(settings.sequence),
      clock_ns(settings.clock_ns),
      cpu_(settings.cpu) {
    buffers.push_back(fresh_buffer(settings.capacity, settings.position, settings.is_boot ? 0 : 1));
    buffers.back().is_boot = settings.is_boot;
}

const ModelRecord* Model::record(std::uint64_t number) const {
    if (number < first_sequence || number - first_sequence >= records_.size()) return nullptr;
    return &records_[number - first_sequence];
}

void Model::remember(std::uint64_t number, std::shared_ptr<const std::string> bytes) {
    records_.resize(number - first_sequence + 1);
    records_.back().bytes = std::move(bytes);
}

// 5.1.7 step 1. Every read of the clock advances it by a nanosecond (docs/script-format.md).
std::uint64_t Model::take_time() {
    return clock_ns++;
}

// E16: the numbers of nested emissions that were turned away are used before the next one is
// assigned.
void Model::settle() {
    sequence += missed;
    counters.dropped_nested += missed;
    missed = 0;
}

// 5.1.7 steps 2 and 5; an emit call gets an error instead (event model, Calls).
int Model::admit(const ModelInput& input, ModelStyle style) {
    settle();
    if (input.bytes() <= now().capacity / 2) return 0;
    if (style == ModelStyle::kernel) {
        sequence++;
        counters.dropped++;
    }
    return kErrorNoSpace;
}

// 5.1.7 step 6. E8: pending events are published before the tail would reach them.
void Model::move_tail(std::uint64_t position, Plan& plan) {
    ModelBuffer& buffer = now();
    if (buffer.frontier != buffer.published && position >= buffer.published) {
        publish(plan);
        wake_is_owed = true;
    }
    while (!buffer.events.empty() && buffer.events.front().position < position) {
        buffer.events.pop_front();
        counters.overwritten++;
    }
    buffer.tail = position;
    if (has_prepared) successor_is_exact = false;
    plan.push_back({Visible::tail, current, 0, position});
    plan.push_back({Visible::tail_fence, current});
}

// E13: pending events are published, and then all are given up.
void Model::empty(Plan& plan) {
    counters.corrupt++;
    move_tail(now().frontier, plan);
}

void Model::make_room(std::uint64_t bytes, Plan& plan) {
    ModelBuffer& buffer = now();
    if (meets_corrupt) return empty(plan);
    std::uint64_t tail = buffer.tail;
    for (const ModelEvent& event : buffer.events) {
        if (buffer.frontier + bytes - tail <= buffer.capacity) break;
        tail = event.end();
    }
    if (tail != buffer.tail) move_tail(tail, plan);
}

// Event model, "Event header": the fixed part, the type, and the fields that a later version may
// add.
std::string Model::header(const ModelInput& input, std::uint64_t timestamp,
                          std::uint64_t number) const {
    return number_bytes(input.bytes(), 4) + number_bytes(input.header_bytes(), 4) +
           number_bytes(timestamp, 8) + number_bytes(number, 8) + number_bytes(cpu_, 2) +
           number_bytes(input.origin, 1) + std::string(kGuidsBytes, '\0') +
           number_bytes(input.type.size(), 2) + input.type + std::string(input.extra_bytes, '\0');
}

void Model::append(std::uint64_t number, std::uint64_t bytes) {
    ModelBuffer& buffer = now();
    sequence = number;
    remember(number, std::make_shared<std::string>(buffer.content(buffer.frontier, bytes)));
    buffer.events.push_back({number, buffer.frontier, bytes});
    buffer.frontier += bytes;
    counters.events++;
    counters.bytes += bytes;
    if (has_prepared) successor_is_exact = false;
}

// 5.1.7 steps 3 to 7.
void Model::write_event(const ModelInput& input, std::uint64_t timestamp, Plan& plan) {
    make_room(input.bytes(), plan);
    ModelBuffer& buffer = now();
    const std::uint64_t number = sequence + 1;
    plan.push_back({Visible::data, current, buffer.frontier, input.bytes()});
    buffer.write(buffer.frontier,
                 header(input, timestamp, number) + payload_bytes(input.seed, input.payload_bytes));
    append(number, input.bytes());
}

void Model::publish(Plan& plan) {
    now().published = now().frontier;
    plan.push_back({Visible::publish, current, now().events.back().sequence, now().published});
}

void Model::publish_pending(Plan& plan) {
    if (now().frontier != now().published) publish(plan);
}

// 5.1.7 step 9 and E1. The result is known when need_wake has been loaded (apply).
void Model::load_need_wake(Plan& plan) {
    wake_is_owed = false;
    plan.push_back({Visible::wake_fence, current});
    plan.push_back({Visible::load_need_wake, current});
}

int Model::emit(const ModelInput& input, ModelStyle style, bool is_inside, Plan& plan) {
    if (input.type.empty()) return kErrorInvalid;
    if (is_inside) {
        if (style == ModelStyle::kernel) missed++;
        return kErrorBusy;
    }
    const std::uint64_t timestamp = take_time();
    if (const int error = admit(input, style)) return error;
    write_event(input, timestamp, plan);
    publish(plan);
    load_need_wake(plan);
    return 0;
}

void Model::batch() {
    batch_time_ = take_time();
    has_batch = true;
}

int Model::add(const ModelInput& input, ModelStyle style, bool is_inside, Plan& plan) {
    if (input.type.empty()) return kErrorInvalid;
    if (is_inside) {
        if (style == ModelStyle::kernel) missed++;
        return kErrorBusy;
    }
    if (const int error = admit(input, style)) return error;
    write_event(input, batch_time_, plan);
    return 0;
}

// 5.1.7, the batch rule: steps 8 and 9 once. Does nothing inside another critical section.
void Model::end(bool is_inside, Plan& plan) {
    has_batch = false;
    if (is_inside) return;
    if (now().frontier != now().published) {
        publish(plan);
        wake_is_owed = true;
    }
    if (wake_is_owed) load_need_wake(plan);
}

int Model::reserve(const ModelInput& input, bool is_inside, Plan& plan) {
    if (input.type.empty()) return kErrorInvalid;
    if (is_inside) {
        missed++;
        return kErrorBusy;
    }
    const std::uint64_t timestamp = take_time();
    if (const int error = admit(input, ModelStyle::kernel)) return error;
    make_room(input.bytes(), plan);
    ModelBuffer& buffer = now();
    plan.push_back({Visible::data, current, buffer.frontier, input.header_bytes()});
    buffer.write(buffer.frontier, header(input, timestamp, sequence + 1));
    reservation_ = Reservation{input, sequence + 1};
    has_reservation = true;
    return 0;
}

void Model::fill(std::uint64_t offset, std::uint64_t bytes, Plan& plan) {
    const ModelInput& input = reservation_->input;
    if (offset >= input.payload_bytes) return;
    bytes = std::min(bytes, input.payload_bytes - offset);
    ModelBuffer& buffer = now();
    const std::uint64_t position = buffer.frontier + input.header_bytes() + offset;
    if (bytes) plan.push_back({Visible::data, current, position, bytes});
    buffer.write(position,
                 std::string_view(payload_bytes(input.seed, offset + bytes)).substr(offset));
}

void Model::commit(Plan& plan) {
    append(reservation_->sequence, reservation_->input.bytes());
    publish(plan);
    load_need_wake(plan);
    reservation_.reset();
    has_reservation = false;
}

// Uses no number. Events that were overwritten to make room stay overwritten.
void Model::abandon(Plan& plan) {
    if (wake_is_owed) load_need_wake(plan);
    reservation_.reset();
    has_reservation = false;
}

// E10: the longest suffix of whole events that fits.
std::size_t Model::first_survivor(std::uint64_t capacity) const {
    const ModelBuffer& buffer = now();
    std::size_t first = 0;
    while (first < buffer.events.size() &&
           buffer.frontier - buffer.events[first].position > capacity)
        first++;
    return first;
}

int Model::prepare(std::uint64_t capacity, ModelPositions positions, std::uint64_t shift,
                   bool is_inside, Plan& plan) {
    if (is_inside) return kErrorBusy;
    if (meets_corrupt) empty(plan);
    const std::size_t first = first_survivor(capacity);
    const std::uint64_t position =
        first < now().events.size() ? now().events[first].position : now().frontier;
    const std::uint64_t delta = positions == ModelPositions::zero    ? 0 - position
                                : positions == ModelPositions::shift ? shift
                                                                     : 0;
    prepared_ = Prepared{capacity, delta};
    has_prepared = true;
    successor_is_exact = true;
    return 0;
}

// E3, E19, E24: stores generation, then the counter, then wakes, whatever need_wake is.
void Model::give_up(std::size_t buffer, Plan& plan) {
    ModelBuffer& retired = buffers[buffer];
    retired.generation++;
    retired.counter++;
    plan.push_back({Visible::generation, buffer, 0, retired.generation});
    plan.push_back({Visible::retire_counter, buffer, 0, retired.counter});
    plan.push_back({Visible::wake, buffer});
}

int Model::copy(bool is_inside, Plan& plan) {
    if (is_inside) return kErrorBusy;
    if (meets_corrupt) empty(plan);
    return 0;
}

int Model::change(bool is_inside, Plan& plan) {
    if (is_inside) return kErrorBusy;
    publish_pending(plan);
    if (meets_corrupt) empty(plan);
    wake_is_owed = false;
    const std::size_t first = first_survivor(prepared_->capacity);
    const std::uint64_t delta = prepared_->delta;
    ModelBuffer& old_buffer = now();
    const std::uint64_t tail =
        first < old_buffer.events.size() ? old_buffer.events[first].position : old_buffer.frontier;
    ModelBuffer fresh =
        fresh_buffer(prepared_->capacity, old_buffer.frontier + delta, old_buffer.generation + 1);
    fresh.tail = tail + delta;
    put(fresh.page, kTailPosOffset, fresh.tail, 8);
    fresh.write(fresh.tail, old_buffer.content(tail, old_buffer.frontier - tail));
    for (std::size_t i = first; i < old_buffer.events.size(); i++) {
        fresh.events.push_back(old_buffer.events[i]);
        fresh.events.back().position += delta;
    }
    counters.swaps++;
    counters.left_behind += first;
    old_buffer.is_retired = true;
    const std::size_t old_index = current;
    current = buffers.size();
    buffers.push_back(std::move(fresh));
    plan.push_back({Visible::successor, current});
    give_up(old_index, plan);
    prepared_.reset();
    has_prepared = false;
    return 0;
}

int Model::nudge(std::size_t buffer, bool is_inside, Plan& plan) {
    if (is_inside) return kErrorBusy;
    if (buffer == current) return kErrorInvalid;
    give_up(buffer, plan);
    return 0;
}

int Model::retire(bool is_inside, Plan& plan) {
    if (is_inside) return kErrorBusy;
    publish_pending(plan);
    wake_is_owed = false;
    settle();
    now().is_retired = true;
    is_over = true;
    give_up(current, plan);
    return 0;
}

void Model::jump(std::uint64_t forward_ns, std::uint64_t back_ns) {
    clock_ns += forward_ns;
    clock_ns -= std::min(clock_ns, back_ns);
}

// No size in the core can be as large as this, so it stays impossible while events arrive.
bool Model::corrupt(std::size_t event, std::uint32_t event_bytes) {
    constexpr std::uint32_t kNeverPossible = 1u << 30;
    if (event >= now().events.size()) return false;
    if (event_bytes >= kSmallestEvent && event_bytes < kNeverPossible) return false;
    ModelEvent& victim = now().events[event];
    victim.is_corrupt = true;
    now().write(victim.position, number_bytes(event_bytes, 4));
    return true;
}

void Model::take_over(const Model& other) {
    missed = std::max(missed, other.missed);
    clock_ns = other.clock_ns;
    has_batch = other.has_batch;
    batch_time_ = other.batch_time_;
}

void Model::apply(const Step& step, std::uint8_t need_wake, Plan& plan) {
    ModelBuffer& buffer = buffers[step.buffer];
    switch (step.kind) {
        case Visible::tail:
            put(buffer.page, kTailPosOffset, step.value, 8);
            break;
        case Visible::publish:
            put(buffer.page, kWritePosOffset, step.value, 8);
            for (std::uint64_t number = step.position;
                 number >= first_sequence && !records_[number - first_sequence].is_published;
                 number--)
                records_[number - first_sequence].is_published = true;
            break;
        case Visible::counter:
        case Visible::retire_counter:
            put(buffer.page, kCounterOffset, step.value, 4);
            break;
        case Visible::generation:
            put(buffer.page, kGenerationOffset, step.value, 8);
            break;
        case Visible::load_need_wake:
            if (!need_wake) break;
            buffer.counter++;
            counters.wakes++;
            plan.push_front({Visible::wake, step.buffer});
            plan.push_front({Visible::counter, step.buffer, 0, buffer.counter});
            break;
        default:
            break;
    }
}

}  // namespace kmes::props
