// SPDX-License-Identifier: MIT
//
// See turns.h.
#include "conformance/explorer/turns.h"

#include <algorithm>
#include <iterator>

namespace kmes::conformance {

namespace {

// How many steps a play has is not known beforehand, and differs from testee to testee: each seed
// takes it to be one of these powers of two.
constexpr std::uint64_t kLeastStepsLog2 = 4;
constexpr std::uint64_t kStepsLog2Kinds = 8;
constexpr std::uint64_t kMostChanges = 5;
constexpr std::uint64_t kMostSources = 3;
constexpr std::uint64_t kMostDeeds = 12;

// One that stands here twice comes twice as often.
constexpr Action kDeeds[] = {
    Action::emit,  Action::emit,     Action::emit, Action::emit,   Action::lap_part,
    Action::batch, Action::burst,    Action::drop, Action::wake,   Action::reserve,
    Action::swap,  Action::overtake, Action::lap,  Action::shrink, Action::grow,
};

}  // namespace

Turns::Turns(std::uint64_t seed, std::uint32_t cpus) : random_(seed) {
    const std::uint64_t steps = std::uint64_t{1} << (kLeastStepsLog2 + random_() % kStepsLog2Kinds);
    for (std::uint64_t i = random_() % (kMostChanges + 1); i > 0; --i)
        changes_.push_back(1 + random_() % steps);
    sources_.resize(1 + random_() % kMostSources);
    for (Source& source : sources_) {
        source.priority = initial_priority();
        for (std::uint64_t i = 1 + random_() % kMostDeeds; i > 0; --i)
            source.deeds.push_back(random_deed(cpus));
    }
}

Turns::Deed Turns::random_deed(std::uint32_t cpus) {
    constexpr std::uint64_t kMostAccesses = 12;
    Deed deed;
    deed.action = kDeeds[random_() % std::size(kDeeds)];
    if (deed.action == Action::reserve) deed.parameter = random_() % kMostAccesses;
    if (deed.action == Action::overtake) deed.parameter = random_() % 2;
    deed.cpu = static_cast<std::uint32_t>(random_() % cpus);
    return deed;
}

void Turns::add(pid_t thread) {
    if (!threads_.contains(thread)) threads_.emplace(thread, initial_priority());
}

bool Turns::goes_before(pid_t thread, pid_t other) const {
    return threads_.at(thread) > threads_.at(other);
}

Turns::Source* Turns::highest_source() {
    Source* highest = nullptr;
    for (Source& source : sources_) {
        if (source.deeds.empty()) continue;
        if (highest == nullptr || source.priority > highest->priority) highest = &source;
    }
    return highest;
}

std::optional<Turns::Deed> Turns::next_before(pid_t thread) {
    Source* source = highest_source();
    if (source == nullptr || source->priority < threads_.at(thread)) return std::nullopt;
    return take_from(*source);
}

std::optional<Turns::Deed> Turns::next() {
    Source* source = highest_source();
    if (source == nullptr) return std::nullopt;
    return take_from(*source);
}

Turns::Deed Turns::take_from(Source& source) {
    const Deed deed = source.deeds.back();
    source.deeds.pop_back();
    if (is_change()) source.priority = lowest_ -= 1;
    return deed;
}

bool Turns::step(pid_t thread) {
    if (!is_change()) return false;
    threads_.at(thread) = lowest_ -= 1;
    return true;
}

bool Turns::is_change() {
    ++steps_;
    return std::find(changes_.begin(), changes_.end(), steps_) != changes_.end();
}

}  // namespace kmes::conformance
