// SPDX-License-Identifier: MIT
//
// See producer_steps.h.
#include "conformance/stage/producer_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

std::string events_text(std::uint64_t first, std::uint64_t last) {
    return first == last ? fmt::format("event {}", first)
                         : fmt::format("events {} to {}", first, last);
}

// A wake reaches no thread if the suite has stopped the thread in its wait. The thread later
// returns to the wait by itself and finds the new counter there, so no wake-up is lost.
std::string woken_text(std::uint64_t threads) {
    if (threads == 0) return "a wake, with no thread in its wait";
    return fmt::format("{} {} woken", amount_text(threads, "thread"), threads == 1 ? "is" : "are");
}

// Describes the written part of an event in flight. Empty: all of it is written.
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

void ProducerSteps::begin(std::uint32_t cpu) {
    if (!log_.on()) return;
    woken_.reset();
    operated_buffer_ = log_.history().current_buffer(cpu);
    tail_index_before_ = log_.history().buffer(operated_buffer_).tail_index;
}

void ProducerSteps::woke(std::uint64_t threads) {
    if (!log_.on()) return;
    woken_ = woken_.value_or(0) + threads;
}

StepFacts::Operation& ProducerSteps::add_operation(std::uint32_t cpu, std::string text,
                                                   std::string clause, std::uint64_t sequence) {
    TimelineStep step;
    step.kind = StepKind::producer;
    step.cpu = cpu;
    step.text = std::move(text);
    step.clause = std::move(clause);
    step.sequence = sequence;
    step.state = log_.state_of(log_.history().current_buffer(cpu));
    log_.add(std::move(step));
    StepFacts::Operation operation;
    operation.step = log_.timeline().last_number();
    operation.cpu = cpu;
    operation.woken = woken_;
    operation.in_move = in_move_;
    return log_.add_operation(operation);
}

// Names the events that tail_pos has passed since begin() (5.1.7 step 6), and adds them to
// `operation`.
std::string ProducerSteps::tail_text(StepFacts::Operation& operation) const {
    const Buffer& buffer = log_.history().buffer(operated_buffer_);
    if (buffer.tail_index <= tail_index_before_) return "";
    operation.overwritten_first = buffer.placements[tail_index_before_].sequence;
    operation.overwritten_last = buffer.placements[buffer.tail_index - 1].sequence;
    return fmt::format("; tail_pos moves over {}",
                       events_text(operation.overwritten_first, operation.overwritten_last));
}

std::string ProducerSteps::wake_text(std::uint32_t cpu) const {
    if (!woken_) return "; need_wake is 0: no wake";
    return fmt::format("; need_wake is set: futex_counter becomes {}, {}",
                       log_.rings().counters().of(log_.history().current_buffer(cpu)),
                       woken_text(*woken_));
}

void ProducerSteps::emitted(std::uint32_t cpu, const Emitted& emitted) {
    if (!log_.on()) return;
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
    log_.timeline().last().text =
        fmt::format("emits event {}: {} bytes at position {}{}{}", emitted.sequence, emitted.bytes,
                    emitted.position, tail_text(operation), wake_text(cpu));
}

void ProducerSteps::batched(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    if (!log_.on() || emitted.empty()) return;
    StepFacts::Operation& operation =
        add_operation(cpu, "", "5.1.7 batch", emitted.back().sequence);
    operation.published_first = emitted.front().sequence;
    operation.published_last = emitted.back().sequence;
    const auto written = static_cast<std::uint64_t>(
        std::count_if(emitted.begin(), emitted.end(),
                      [](const Emitted& each) { return each.outcome == EmitOutcome::written; }));
    const std::string dropped =
        written == emitted.size() ? "" : fmt::format(" ({} dropped)", emitted.size() - written);
    log_.timeline().last().text =
        fmt::format("emits {} as one batch{}{}{}",
                    events_text(operation.published_first, operation.published_last), dropped,
                    tail_text(operation), wake_text(cpu));
}

void ProducerSteps::began_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted,
                                Written written) {
    if (!log_.on() || emitted.empty()) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 batch", 0);
    log_.timeline().last().text =
        fmt::format("{} {} as a batch and does not publish it yet{}{}",
                    written == Written::whole ? "writes" : "begins",
                    events_text(emitted.front().sequence, emitted.back().sequence),
                    written_text(written, "one of them"), tail_text(operation));
}

void ProducerSteps::ended_batch(std::uint32_t cpu, const std::vector<Emitted>& emitted) {
    if (!log_.on() || emitted.empty()) return;
    StepFacts::Operation& operation =
        add_operation(cpu, "", "5.1.7 batch", emitted.back().sequence);
    operation.published_first = emitted.front().sequence;
    operation.published_last = emitted.back().sequence;
    log_.timeline().last().text = fmt::format(
        "publishes {}, written earlier{}",
        events_text(operation.published_first, operation.published_last), wake_text(cpu));
}

void ProducerSteps::reserved(std::uint32_t cpu, std::uint64_t bytes, Written written) {
    if (!log_.on()) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 step 6", 0);
    const Buffer& buffer = log_.history().buffer(operated_buffer_);
    log_.timeline().last().text = fmt::format(
        "begins an event of {} bytes at position {} and does not publish it yet{}{}", bytes,
        buffer.write_frontier, written_text(written, "the event"), tail_text(operation));
}

void ProducerSteps::outran(std::uint32_t cpu, std::uint64_t bytes, std::uint64_t events) {
    if (!log_.on()) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.9", 0);
    log_.timeline().last().text =
        fmt::format("emits {} events, {} bytes in all, while all threads are stopped{}", events,
                    bytes, tail_text(operation));
}

void ProducerSteps::committed(std::uint32_t cpu, const Emitted& emitted) {
    if (!log_.on()) return;
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.7 step 8", emitted.sequence);
    operation.published_first = operation.published_last = emitted.sequence;
    log_.timeline().last().text =
        fmt::format("publishes event {}, begun earlier{}", emitted.sequence, wake_text(cpu));
}

void ProducerSteps::not_counted_yet(std::uint32_t cpu) {
    if (!log_.on()) return;
    add_operation(cpu,
                  fmt::format("has published and has not done step 9: futex_counter is still {}",
                              log_.rings().counters().of(log_.history().current_buffer(cpu))),
                  "5.1.7 step 8", 0);
}

void ProducerSteps::counted_late(std::uint32_t cpu, std::uint64_t threads) {
    if (!log_.on()) return;
    add_operation(cpu,
                  fmt::format("does step 9: futex_counter is {}; {}",
                              log_.rings().counters().of(log_.history().current_buffer(cpu)),
                              woken_text(threads)),
                  "5.1.7 step 9", 0);
}

void ProducerSteps::swapped(std::uint32_t cpu, BufferIndex from, BufferIndex to) {
    if (!log_.on()) return;
    const Buffer& old_buffer = log_.history().buffer(from);
    const Buffer& new_buffer = log_.history().buffer(to);
    const std::size_t copied = new_buffer.placements.size();
    StepFacts::Operation& operation = add_operation(cpu, "", "5.1.8.4", 0);
    operation.retired = from;
    log_.timeline().last().text = fmt::format(
        "replaces buffer {} ({} bytes) by buffer {} ({} bytes), with {} copied; buffer {} is "
        "retired with generation {}{}",
        from, old_buffer.capacity, to, new_buffer.capacity,
        copied == 0 ? std::string("no event")
                    : events_text(new_buffer.placements.front().sequence,
                                  new_buffer.placements.back().sequence),
        from, old_buffer.generation(), woken_ ? "; " + woken_text(*woken_) : "");
}

void ProducerSteps::nudged(BufferIndex index) {
    if (!log_.on()) return;
    const Buffer& buffer = log_.history().buffer(index);
    add_operation(buffer.cpu,
                  fmt::format("nudges the retired buffer {}: generation {}, futex_counter {}, {}",
                              index, buffer.generation(), log_.rings().counters().of(index),
                              woken_text(woken_.value_or(0))),
                  "E19", 0);
}

void ProducerSteps::woken_without_event(std::uint32_t cpu, std::uint64_t threads) {
    if (!log_.on()) return;
    add_operation(cpu, fmt::format("wakes {} without an event", amount_text(threads, "thread")),
                  "5.1.8.2 step 6", 0);
}

void ProducerSteps::planted(BufferIndex buffer, bool is_data, std::uint64_t place,
                            std::span<const std::uint8_t> bytes) {
    if (!log_.on() || !log_.has_rings()) return;
    std::string text =
        fmt::format("the suite forges {} {} {} of {} buffer {}", amount_text(bytes.size(), "byte"),
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
    const std::uint64_t mask = log_.history().buffer(buffer).capacity - 1;
    if (is_data)
        text += fmt::format(" ({})", name_of_bytes(log_.history(), buffer,
                                                   kMetadataBytes + (place & mask), bytes.size()));
    add_operation(log_.history().buffer(buffer).cpu, std::move(text), "", 0);
}

void ProducerSteps::flag_put(BufferIndex buffer, const std::string& text) {
    if (!log_.on() || !log_.has_rings()) return;
    log_.add_scheduled(text);
    log_.timeline().last().cpu = log_.history().buffer(buffer).cpu;
    log_.timeline().last().state = log_.state_of(buffer);
}

void ProducerSteps::begin_move(const std::string& text) {
    if (!log_.on()) return;
    log_.add_scheduled(text);
    log_.note_move();
    in_move_ = true;
}

}  // namespace kmes::conformance
