// SPDX-License-Identifier: MIT
//
// One emitter. See emitting.h.
#include "props/threads/emitting.h"

#include <sched.h>

#include <cerrno>
#include <span>

namespace kmes::props {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

}  // namespace

Emitting::Emitting(const Mix& mix, unsigned cpu, unsigned emitter, Producer* producer)
    : mix_(mix),
      cpu_(cpu),
      emitter_(emitter),
      producer_(producer),
      draw_(mix_bits(mix.seed ^ (cpu * 16 + emitter + 1))),
      accepted_(1) {}  // number 0 is never assigned

std::uint32_t Emitting::take_number() {
    accepted_.push_back(false);
    return static_cast<std::uint32_t>(accepted_.size() - 1);
}

// Two CPUs emit the same events; a reader knows its CPU.
EventText Emitting::describe(std::uint32_t number) const {
    return describe_event(mix_.seed, mix_.sizes, {emitter_, number});
}

void Emitting::accept(std::uint32_t number) {
    accepted_[number] = true;
    accepted_count_++;
}

void Emitting::expect(int expected, int result, const char* call) {
    if (result != expected && error_.empty())
        error_ = std::string(call) + " gave " + std::to_string(result) + ", not " +
                 std::to_string(expected);
}

void Emitting::emit_some(unsigned count) {
    const std::uint64_t end = accepted_.size() + count;

    while (accepted_.size() < end) {
        const std::uint64_t call = draw_.below(16);

        if (call < 9)
            single(call < 4);
        else if (call < 12)
            batch(call == 9);
        else
            reserve(call != 15);
        if (mix_.profile == Profile::kAny && draw_.one_in(64)) sched_yield();
    }
}

void Emitting::emit_one() {
    const std::uint32_t number = take_number();
    const EventText text = describe(number);

    expect(0, producer_->emit_in_kernel(cpu_, text.type, bytes_of(text.payload), text.origin),
           "emit_in_kernel");
    accept(number);
}

void Emitting::single(bool in_kernel) {
    const std::uint32_t number = take_number();
    const EventText text = describe(number);
    const int result =
        in_kernel ? producer_->emit_in_kernel(cpu_, text.type, bytes_of(text.payload), text.origin)
                  : producer_->emit(cpu_, text.type, bytes_of(text.payload), text.origin);

    if (result == -ENOSPC && text.payload.size() > kAlwaysFitsBytes) {
        if (in_kernel) dropped_count_++;
        return;
    }
    expect(0, result, in_kernel ? "emit_in_kernel" : "emit");
    accept(number);
}

void Emitting::batch(bool in_kernel) {
    std::vector<std::uint32_t> numbers;
    std::vector<EventText> texts;
    std::vector<BatchEntry> entries;
    std::size_t emitted = 0;

    for (std::uint64_t i = draw_.below(24) + 1; i > 0; i--) {
        const std::uint32_t number = take_number();
        EventText text = describe(number);

        if (text.payload.size() > kAlwaysFitsBytes) continue;
        numbers.push_back(number);
        texts.push_back(std::move(text));
    }
    if (texts.empty()) return;
    for (const EventText& text : texts) entries.push_back({text.type, bytes_of(text.payload)});
    const std::uint8_t origin = texts[0].origin;
    const int result = in_kernel ? producer_->emit_batch_in_kernel(cpu_, entries, &emitted, origin)
                                 : producer_->emit_batch(cpu_, entries, &emitted, origin);

    expect(0, result, "emit_batch");
    expect(static_cast<int>(entries.size()), static_cast<int>(emitted), "emit_batch's count");
    for (const std::uint32_t number : numbers) accept(number);
}

void Emitting::reserve(bool commits) {
    const std::uint32_t number = take_number();
    const EventText text = describe(number);
    const auto bytes = bytes_of(text.payload);
    const std::size_t half = bytes.size() / 2;
    Reservation reservation;
    const int result = producer_->reserve(cpu_, text.type, static_cast<std::uint32_t>(bytes.size()),
                                          &reservation, text.origin);

    if (result == -ENOSPC && bytes.size() > kAlwaysFitsBytes) {
        dropped_count_++;
        return;
    }
    expect(0, result, "reserve");
    reservation.fill(static_cast<std::uint32_t>(half), bytes.subspan(half));
    if (!commits) return;
    reservation.fill(0, bytes.first(half));
    reservation.commit();
    accept(number);
}

}  // namespace kmes::props
