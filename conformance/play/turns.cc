// SPDX-License-Identifier: MIT
//
// See turns.h.
#include "conformance/play/turns.h"

#include <algorithm>
#include <iterator>

#include "conformance/oracle/event.h"
#include "conformance/play/moves.h"

namespace kmes::conformance {

namespace {

// The number of steps of a play is not known beforehand, and differs from testee to testee. Each
// seed assumes one of these powers of two.
constexpr std::uint64_t kLeastStepsLog2 = 4;
constexpr std::uint64_t kStepsLog2Kinds = 8;
constexpr std::uint64_t kMostChanges = 5;
constexpr std::uint64_t kMostSources = 3;
constexpr std::uint64_t kMostActions = 12;
constexpr std::uint64_t kMostActionsAtRandom = 30;

// An action that is listed twice is drawn twice as often.
constexpr Action kActions[] = {
    Action::emit,   Action::emit,       Action::emit,       Action::emit,  Action::emit,
    Action::emit,   Action::lap_part,   Action::batch,      Action::burst, Action::drop,
    Action::wake,   Action::reserve,    Action::swap,       Action::lap,   Action::overtake,
    Action::shrink, Action::swap_twice, Action::write_over, Action::nudge, Action::grow,
};

// From 0 to 1.
double part_of(std::mt19937_64& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
}

double initial_priority(std::mt19937_64& random) {
    return 1 + part_of(random);
}

}  // namespace

Turns::Turns(std::uint64_t seed, std::uint32_t cpus, Turning turning)
    : random_(seed), seed_(seed), cpus_(cpus), turning_(turning) {
    const bool at_random = turning == Turning::at_random;
    const std::uint64_t steps = std::uint64_t{1} << (kLeastStepsLog2 + random_() % kStepsLog2Kinds);
    for (std::uint64_t i = random_() % (kMostChanges + 1); i > 0; --i)
        changes_.push_back(1 + random_() % steps);
    one_in_ = 8 + random_() % 60;
    sources_.resize(1 + random_() % kMostSources);
    for (Source& source : sources_) {
        source.priority = initial_priority(random_);
        draw_actions(source, at_random ? kMostActionsAtRandom : kMostActions);
    }
}

void Turns::draw_actions(Source& source, std::uint64_t most) {
    for (std::uint64_t i = 1 + random_() % most; i > 0; --i)
        source.actions.push_back(random_action());
}

Turns::ProducerAction Turns::random_action() {
    constexpr std::uint64_t kMostAccesses = 12;
    constexpr std::uint64_t kPositionsKinds = 6;  // half of them keep the positions
    ProducerAction chosen;
    chosen.action = kActions[random_() % std::size(kActions)];
    chosen.cpu = static_cast<std::uint32_t>(random_() % cpus_);
    const std::uint64_t drawn = random_();
    if (chosen.action == Action::emit) chosen.parameter = random_size();
    if (chosen.action == Action::reserve || chosen.action == Action::write_over) {
        chosen.parameter = drawn % kMostAccesses;
        chosen.written = static_cast<Written>(drawn / kMostAccesses % std::size(kWrittenNames));
    }
    if (chosen.action == Action::overtake) chosen.parameter = drawn % 2;
    if (swaps_buffers(chosen.action)) {
        const std::uint64_t positions = drawn % kPositionsKinds;
        chosen.parameter = positions > kPositionsFromZero ? 0 : positions;
    }
    return chosen;
}

std::uint64_t Turns::random_size() {
    switch (random_() % 12) {
        case 0:
            return kLeastEventBytes;
        case 1:
            return kLargestEvent;
        case 2:
            return kLeastEventBytes + random_() % 32768;
        case 3:
            return 4096;
        default:
            return kLeastEventBytes + random_() % 700;
    }
}

void Turns::add(pid_t thread, std::uint32_t cpu) {
    if (index_of(thread) < threads_.size()) return;
    const auto of_cpu = [&](const Thread& each) { return each.cpu == cpu; };
    const auto before =
        static_cast<std::uint64_t>(std::count_if(threads_.begin(), threads_.end(), of_cpu));
    std::mt19937_64 own(seed_ + 1 + cpu + (before << 32));
    const auto of_later_cpu = [&](const Thread& each) { return each.cpu > cpu; };
    threads_.insert(std::find_if(threads_.begin(), threads_.end(), of_later_cpu),
                    {thread, cpu, initial_priority(own)});
}

std::size_t Turns::index_of(pid_t thread) const {
    const auto found = std::find_if(threads_.begin(), threads_.end(),
                                    [&](const Thread& each) { return each.tid == thread; });
    return static_cast<std::size_t>(found - threads_.begin());
}

bool Turns::goes_before(pid_t thread, pid_t other) const {
    return threads_[index_of(thread)].priority > threads_[index_of(other)].priority;
}

Turns::Source* Turns::highest_source() {
    Source* highest = nullptr;
    for (Source& source : sources_) {
        if (source.actions.empty()) continue;
        if (highest == nullptr || source.priority > highest->priority) highest = &source;
    }
    return highest;
}

std::optional<Turns::ProducerAction> Turns::next_before(pid_t thread) {
    Source* source = highest_source();
    if (source == nullptr || source->priority < threads_[index_of(thread)].priority)
        return std::nullopt;
    return take_from(*source);
}

std::optional<Turns::ProducerAction> Turns::next() {
    Source* source = highest_source();
    if (source == nullptr) return std::nullopt;
    return take_from(*source);
}

Turns::ProducerAction Turns::take_from(Source& source) {
    const ProducerAction chosen = source.actions.back();
    source.actions.pop_back();
    const bool loses_priority = turning_ == Turning::at_random ? random_() % 2 == 0 : is_change();
    if (loses_priority) source.priority = lowest_ -= 1;
    return chosen;
}

bool Turns::step(pid_t thread) {
    if (turning_ == Turning::at_random) {
        if (random_() % one_in_ != 0) return false;
        move_somebody();
        return true;
    }
    if (!is_change()) return false;
    threads_[index_of(thread)].priority = lowest_ -= 1;
    return true;
}

bool Turns::is_change() {
    ++steps_;
    return std::find(changes_.begin(), changes_.end(), steps_) != changes_.end();
}

// Gives a source or a thread the highest priority, or a thread the lowest.
void Turns::move_somebody() {
    const std::uint64_t which = random_() % (sources_.size() + threads_.size());
    if (which < sources_.size()) {
        sources_[which].priority = highest_ += 1;
        return;
    }
    Thread& thread = threads_[which - sources_.size()];
    if (random_() % 2 == 0)
        thread.priority = highest_ += 1;
    else
        thread.priority = lowest_ -= 1;
}

}  // namespace kmes::conformance
