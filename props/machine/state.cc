// SPDX-License-Identifier: MIT
//
// The state as text, for tools/kmes replay (machine.h), and a failure as text.
#include <fmt/format.h>

#include <algorithm>

#include "props/machine/machine.h"

namespace kmes::props {
namespace {

constexpr std::size_t kShownEvents = 6;

const char* name_of(ConsumerState state) {
    switch (state) {
        case ConsumerState::fresh:
            return "not begun";
        case ConsumerState::running:
            return "stands before";
        case ConsumerState::asleep:
            return "asleep";
        case ConsumerState::blocked:
            return "waits to attach";
        case ConsumerState::idle:
            return "idle";
    }
    return "?";
}

}  // namespace

std::string Machine::buffer_text(std::size_t index) const {
    const ModelBuffer& model = model_.buffers[index];
    const kmes_fields& shared = rings_[index]->buffer.shared;
    std::string text = fmt::format(
        "buffer {}{}: capacity {} tail_pos {} write_pos {} generation {} futex_counter {} "
        "need_wake {}",
        index, index == model_.current ? "" : " (retired)", model.capacity, *shared.tail_pos,
        *shared.write_pos, *shared.generation, *shared.futex_counter, *shared.need_wake);
    if (model.frontier != model.published) text += fmt::format(" (written to {})", model.frontier);
    if (index != model_.current) return text + "\n";
    text += "\n  events:";
    if (model.events.empty()) text += " none";
    const std::size_t count = model.events.size();
    for (std::size_t i = 0; i < count; i++) {
        if (count > 2 * kShownEvents && i == kShownEvents) {
            text += fmt::format(" ... {} more ...", count - 2 * kShownEvents);
            i = count - kShownEvents;
        }
        const ModelEvent& event = model.events[i];
        text += fmt::format(" {}@{}+{}{}", event.sequence, event.position, event.bytes,
                            event.end() > model.published ? "*" : "");
    }
    return text + "\n";
}

std::string Machine::consumer_text(const Consumer& consumer) const {
    std::string text = fmt::format("consumer {}: {}", consumer.number, name_of(consumer.state));
    if (consumer.state == ConsumerState::running) text += fmt::format(" {}", consumer.flow.next);
    if (consumer.state == ConsumerState::asleep)
        text +=
            fmt::format(" on buffer {}{}", consumer.sleeps_on, consumer.is_woken ? ", woken" : "");
    if (consumer.state == ConsumerState::idle)
        text += fmt::format(", error {}", consumer.last_error);
    if (consumer.is_opened)
        text +=
            fmt::format("; read_pos {} delivered {} to number {} lost {}", consumer.reader.read_pos,
                        consumer.delivered, consumer.last, consumer.lost);
    if (consumer.is_misled) text += "; misled";
    return text + "\n";
}

std::string Machine::state_text() const {
    std::string text;
    if (was_skipped_) text += "skipped: it does not apply here\n";
    if (returned_) text += fmt::format("returned {}\n", *returned_);
    text += fmt::format("producer: number {} clock {}{}{}{}{}\n", cpu_.sequence, clock_ns_,
                        started_ ? ", in the middle of " + print_operation(started_->operation) +
                                       ", before " + started_flow_.next
                                 : "",
                        model_.has_reservation ? ", a reservation is open" : "",
                        model_.has_batch ? ", a batch is open" : "",
                        model_.has_prepared ? ", a swap is prepared" : "");
    const kmes_statistics& counters = cpu_.statistics;
    text += fmt::format(
        "counters: events {} bytes {} dropped {} dropped_nested {} overwritten {} wakes {} corrupt "
        "{} swaps {} left_behind {}\n",
        counters.events, counters.bytes, counters.dropped, counters.dropped_nested,
        counters.overwritten, counters.wakes, counters.corrupt, counters.swaps,
        counters.left_behind);
    for (std::size_t i = 0; i < rings_.size(); i++) text += buffer_text(i);
    for (const auto& consumer : consumers_) text += consumer_text(*consumer);
    return text;
}

Seen& Seen::operator+=(const Seen& other) {
    sizes = std::max(sizes, other.sizes);
    for (const auto figure : {&Seen::written,     &Seen::dropped,     &Seen::nested,
                              &Seen::overwritten, &Seen::left_behind, &Seen::published_early,
                              &Seen::crossed_end, &Seen::swaps,       &Seen::handovers,
                              &Seen::nudges,      &Seen::corrupt,     &Seen::pokes,
                              &Seen::asked,       &Seen::unasked,     &Seen::woken,
                              &Seen::deliveries,  &Seen::lost,        &Seen::laps,
                              &Seen::torn,        &Seen::switches,    &Seen::sleeps})
        this->*figure += other.*figure;
    return *this;
}

PlayResult play(const Script& script, const PlayOptions& options) {
    Machine machine(script, options);
    return machine.run();
}

std::string describe(const Script& script, const Failure& failure) {
    std::string text =
        fmt::format("{} ({}): {}", failure.property, failure.clause, failure.message);
    if (failure.operation < script.operations.size())
        text += fmt::format("; at operation {}: {}", failure.operation + 1,
                            print_operation(script.operations[failure.operation]));
    return text;
}

}  // namespace kmes::props
