// SPDX-License-Identifier: MIT
//
// See rings.h.
#include "conformance/stage/rings.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "conformance/stage/recorder.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kNeedWakeOffset = 132;
constexpr std::uint64_t kNeedWakeWordEnd = 136;  // a 32-bit store is right too (contract)
constexpr std::uint64_t kClockStepNs = 1000;

HistorySettings history_settings(const RingsSetup& setup) {
    HistorySettings settings;
    settings.cpus = setup.cpus;
    settings.capacity_bytes = setup.capacity_bytes;
    settings.start_positions = setup.start_positions;
    settings.boot_capacity_bytes = setup.boot_capacity_bytes;
    settings.first_sequence = setup.first_sequence;
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

// One CPU of the core, with the platform that the stage gives it: its clock, and wakes at once.
struct Rings::Producer {
    explicit Producer(Rings& owner) : rings(owner) {
        platform.context = this;
        platform.clock_ns = [](void* context) -> __u64 {
            return static_cast<Producer*>(context)->rings.stamp_ns_;
        };
        platform.queue_wake = [](void* context, kmes_buffer* buffer) {
            Rings& rings = static_cast<Producer*>(context)->rings;
            ++rings.wakes_;
            const long woken = syscall(SYS_futex, buffer->shared.futex_counter, FUTEX_WAKE, INT_MAX,
                                       nullptr, nullptr, 0);
            rings.recorder_->woke(woken > 0 ? static_cast<std::uint64_t>(woken) : 0);
        };
    }

    Rings& rings;
    kmes_platform platform{};
    kmes_cpu cpu{};
};

Rings::Rings(const RingsSetup& setup)
    : capacity_bytes_(setup.capacity_bytes),
      first_futex_counter_(setup.first_futex_counter),
      history_(history_settings(setup)),
      silent_(std::make_unique<Recorder>(false)),
      recorder_(silent_.get()) {
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) {
        const BufferIndex index = history_.present_buffer(cpu);
        const Buffer& buffer = history_.buffer(index);
        const BufferIndex made =
            add_memory(buffer.capacity, cpu, buffer.start_position, buffer.generation());
        if (made != index) throw SuiteError("the history numbers its buffers in another order");
        // Before anybody can see it: a buffer that has woken often.
        memories_[index]->buffer()->futex_counter = setup.first_futex_counter;
        *memories_[index]->futex_word() = setup.first_futex_counter;
        producers_.push_back(std::make_unique<Producer>(*this));
        kmes_cpu_init(&producers_[cpu]->cpu, static_cast<__u16>(cpu), memories_[index]->buffer(),
                      &producers_[cpu]->platform, setup.first_sequence - 1);
    }
}

Rings::~Rings() = default;

void Rings::set_before_operation(std::function<void()> function) {
    before_operation_ = std::move(function);
}

void Rings::set_on_buffer(std::function<void(BufferIndex)> function) {
    on_buffer_ = std::move(function);
    for (BufferIndex index = 0; index < memories_.size(); ++index) on_buffer_(index);
}

BufferIndex Rings::add_memory(std::uint64_t capacity_bytes, std::uint32_t cpu,
                              std::uint64_t start_pos, std::uint64_t generation) {
    BufferOptions options;
    options.capacity_bytes = capacity_bytes;
    options.cpu_id = static_cast<std::uint16_t>(cpu);
    options.start_position = start_pos;
    options.generation = generation;
    options.metadata_file_bytes = kMetadataBytes + 2 * capacity_bytes;
    options.allocate_pages = false;
    memories_.push_back(BufferMemory::create(options));
    planted_.emplace_back();
    if (on_buffer_) on_buffer_(memories_.size() - 1);
    return memories_.size() - 1;
}

void Rings::before_operation(std::uint32_t cpu) {
    if (before_operation_) before_operation_();
    recorder_->begin(cpu);
}

void Rings::stamp(EventSpec& spec) {
    if (spec.timestamp == 0 && !timestamps_as_given_) {
        spec.timestamp = clock_ns_;
        clock_ns_ += kClockStepNs;
    }
    stamp_ns_ = spec.timestamp;
}

int Rings::emit_core(std::uint32_t cpu, const EventSpec& spec, EmitStyle style) {
    const kmes_event_input input = input_of(spec);
    kmes_cpu* producer = &producers_.at(cpu)->cpu;
    return style == EmitStyle::kernel ? kmes_cpu_emit(producer, &input)
                                      : kmes_cpu_emit_call(producer, &input);
}

// The core said the same as the history, and stands where the history says.
void Rings::compare(const Emitted& expected, int result, std::uint32_t cpu) const {
    const int right = expected.outcome == EmitOutcome::written ? 0 : -ENOSPC;
    if (result != right)
        throw SuiteError(
            fmt::format("CPU {}: the producer answered {} where the specification "
                        "says {}",
                        cpu, result, right));
    const kmes_cpu& producer = producers_.at(cpu)->cpu;
    const Buffer& buffer = history_.buffer(history_.present_buffer(cpu));
    if (producer.buffer->tail != buffer.tail_pos || producer.buffer->published != buffer.write_pos)
        throw SuiteError(
            fmt::format("CPU {}: the producer stands at tail {} and write {}, the "
                        "specification at {} and {}",
                        cpu, producer.buffer->tail, producer.buffer->published, buffer.tail_pos,
                        buffer.write_pos));
}

Emitted Rings::emit(std::uint32_t cpu, EventSpec spec, EmitStyle style) {
    before_operation(cpu);
    stamp(spec);
    // The history first: once the core has published, the testee may report the event.
    const Emitted expected = history_.emit(cpu, spec, style);
    compare(expected, emit_core(cpu, spec, style), cpu);
    note_counter(cpu, expected.sequence);
    recorder_->emitted(cpu, expected);
    return expected;
}

void Rings::emit_many(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) emit(cpu, make(event_bytes));
}

void Rings::emit_bytes(std::uint32_t cpu, std::uint64_t bytes) {
    constexpr std::uint64_t kLeastEventBytes = kHeaderBytesBeforeType + 1;
    const std::uint64_t largest = history_.buffer(history_.present_buffer(cpu)).capacity / 4;
    while (bytes >= kLeastEventBytes) {
        std::uint64_t next = std::min(bytes, largest);
        // What is left over has to be an event, too.
        if (next < bytes && bytes - next < kLeastEventBytes) next -= kLeastEventBytes;
        emit(cpu, make(next));
        bytes -= next;
    }
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
    const std::uint64_t capacity = history_.buffer(history_.present_buffer(cpu)).capacity;
    if (emit(cpu, make(capacity / 2 + 1)).outcome != EmitOutcome::dropped)
        throw SuiteError("an event over half of the capacity was not dropped");
}

void Rings::batch(std::uint32_t cpu, std::span<const EventSpec> specs) {
    before_operation(cpu);
    const std::uint64_t timestamp = clock_ns_;  // a batch shares one
    clock_ns_ += kClockStepNs;
    stamp_ns_ = timestamp;
    kmes_cpu* producer = &producers_.at(cpu)->cpu;
    kmes_batch batch;
    std::vector<Emitted> emitted;
    history_.batch_begin(cpu);
    kmes_batch_begin(producer, &batch);
    for (EventSpec spec : specs) {
        spec.timestamp = timestamp;
        const Emitted expected = history_.batch_add(cpu, spec);
        const kmes_event_input input = input_of(spec);
        compare(expected, kmes_batch_emit(producer, &batch, &input), cpu);
        emitted.push_back(expected);
    }
    history_.batch_end(cpu);
    kmes_batch_end(producer, &batch);
    if (!emitted.empty()) note_counter(cpu, emitted.back().sequence);
    recorder_->batched(cpu, emitted);
}

void Rings::reserve(std::uint32_t cpu, EventSpec spec) {
    before_operation(cpu);
    stamp(spec);
    Reserved& reserved = reserved_[cpu];
    reserved.spec = std::move(spec);
    const kmes_event_input input = input_of(reserved.spec);
    // The history first, as always: the testee may see the tail move at once.
    history_.reserve(cpu, encoded_bytes(reserved.spec));
    if (kmes_reserve(&producers_.at(cpu)->cpu, &input, &reserved.reservation) != 0)
        throw SuiteError("the reservation was refused");
    recorder_->reserved(cpu, encoded_bytes(reserved.spec));
}

void Rings::commit(std::uint32_t cpu) {
    before_operation(cpu);
    const Reserved reserved = std::move(reserved_.at(cpu));
    reserved_.erase(cpu);
    kmes_cpu* producer = &producers_.at(cpu)->cpu;
    kmes_reservation_fill(producer, &reserved.reservation, 0, reserved.spec.payload.data(),
                          static_cast<__u32>(reserved.spec.payload.size()));
    const Emitted expected = history_.emit(cpu, reserved.spec);
    kmes_commit(producer, &reserved.reservation);
    compare(expected, 0, cpu);
    note_counter(cpu, expected.sequence);
    recorder_->committed(cpu, expected);
}

void Rings::swap(std::uint32_t cpu, const SwapSpec& spec) {
    before_operation(cpu);
    const BufferIndex old_buffer = history_.present_buffer(cpu);
    const BufferIndex expected = history_.swap(cpu, spec);
    const BufferIndex made = add_memory(spec.capacity_bytes, cpu, 0, 0);
    if (made != expected) throw SuiteError("the history numbers its buffers in another order");
    if (spec.rule == PositionRule::tail_at && spec.position != 0)
        throw SuiteError("the core can begin a new buffer at 0 only");
    if (kmes_swap_run(&producers_.at(cpu)->cpu, memories_[made]->buffer(), positions_of(spec.rule),
                      spec.rule == PositionRule::shift ? spec.position : 0) != 0)
        throw SuiteError("the swap was refused");
    capacity_bytes_ = spec.capacity_bytes;
    recorder_->swapped(cpu, old_buffer, made);
}

void Rings::hand_over(std::uint32_t cpu, const SwapSpec& spec) {
    before_operation(cpu);
    const BufferIndex boot_buffer = history_.present_buffer(cpu);
    const BufferIndex expected = history_.hand_over(cpu, spec);
    const BufferIndex made = add_memory(spec.capacity_bytes, cpu, 0, 0);
    if (made != expected) throw SuiteError("the history numbers its buffers in another order");
    if (kmes_swap_run(&producers_.at(cpu)->cpu, memories_[made]->buffer(), positions_of(spec.rule),
                      spec.position) != 0)
        throw SuiteError("the hand-over was refused");
    recorder_->swapped(cpu, boot_buffer, made);
}

void Rings::nudge(BufferIndex buffer) {
    const std::uint32_t cpu = history_.buffer(buffer).cpu;
    before_operation(cpu);
    history_.nudge(buffer);
    if (kmes_buffer_nudge(&producers_.at(cpu)->cpu, memories_.at(buffer)->buffer()) != 0)
        throw SuiteError("the nudge was refused");
    recorder_->nudged(buffer);
}

std::uint64_t Rings::spurious_wake(std::uint32_t cpu) {
    before_operation(cpu);
    const long woken = syscall(SYS_futex, memories_.at(history_.present_buffer(cpu))->futex_word(),
                               FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    const std::uint64_t threads = woken > 0 ? static_cast<std::uint64_t>(woken) : 0;
    recorder_->woken_without_event(cpu, threads);
    return threads;
}

void Rings::write_metadata(BufferIndex buffer, std::uint64_t offset,
                           std::span<const std::uint8_t> bytes) {
    if (offset + bytes.size() > kMetadataBytes) throw SuiteError("beyond the metadata page");
    auto* page = static_cast<std::uint8_t*>(memories_.at(buffer)->base());
    std::memcpy(page + offset, bytes.data(), bytes.size());
    planted_[buffer].emplace_back(offset, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    recorder_->planted(buffer, false, offset, bytes.size());
}

void Rings::write_data(BufferIndex buffer, std::uint64_t position,
                       std::span<const std::uint8_t> bytes) {
    BufferMemory& memory = *memories_.at(buffer);
    if (bytes.size() > memory.capacity_bytes()) throw SuiteError("beyond the data region");
    auto* data = static_cast<std::uint8_t*>(memory.base()) + kMetadataBytes;
    std::memcpy(data + (position & (memory.capacity_bytes() - 1)), bytes.data(), bytes.size());
    data_is_planted_ = true;
    recorder_->planted(buffer, true, position, bytes.size());
}

std::uint64_t Rings::random() {
    return next_random(random_);
}

EventSpec Rings::make(std::uint64_t event_bytes, std::string type,
                      std::uint64_t extra_header_bytes) {
    const std::uint64_t header = kHeaderBytesBeforeType + type.size() + extra_header_bytes;
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

std::uint32_t Rings::counter(BufferIndex buffer) const {
    return memories_.at(buffer)->buffer()->futex_counter;
}

std::uint64_t Rings::tail(BufferIndex buffer) const {
    return memories_.at(buffer)->buffer()->tail;
}

std::uint8_t Rings::need_wake(BufferIndex buffer) const {
    return __atomic_load_n(memories_.at(buffer)->buffer()->shared.need_wake, __ATOMIC_RELAXED);
}

void Rings::put_need_wake(BufferIndex buffer, std::uint8_t value) {
    __atomic_store_n(memories_.at(buffer)->buffer()->shared.need_wake, value, __ATOMIC_SEQ_CST);
}

std::optional<Finding> Rings::check_metadata(BufferIndex index) const {
    const BufferMemory& memory = *memories_.at(index);
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
    const std::uint64_t reserved_tail = memories_.at(index)->buffer()->tail;
    if (is_reserved(buffer.cpu)) put(72, &reserved_tail, 8);
    put(128, &futex_counter, 4);
    for (const auto& [offset, bytes] : planted_[index]) put(offset, bytes.data(), bytes.size());
    const auto* page = static_cast<const std::uint8_t*>(memory.base());
    for (std::uint64_t offset = 0; offset < kMetadataBytes; ++offset) {
        if (offset >= kNeedWakeOffset && offset < kNeedWakeWordEnd) continue;
        // Forged positions stand until the producer publishes again.
        if (history_.tolerated(buffer.cpu) && offset >= 64 && offset < 80) continue;
        if (__atomic_load_n(page + offset, __ATOMIC_RELAXED) != right[offset])
            return write_outside(buffer.cpu, offset, 1, "");
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
        const BufferMemory& memory = *memories_.at(index);
        const std::string difference = history_.compare_data(
            index, {static_cast<const std::uint8_t*>(memory.base()) + kMetadataBytes,
                    memory.capacity_bytes()});
        if (!difference.empty()) throw SuiteError(fmt::format("CPU {}: {}", cpu, difference));
    }
}

}  // namespace kmes::conformance
