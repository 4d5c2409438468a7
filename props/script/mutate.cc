// SPDX-License-Identifier: MIT
//
// Mutations of scripts (mutate.h): lines are added, removed, moved and repeated; values go to their
// edges; phrases are drawn for their place (drawing.h).
#include "props/script/mutate.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kmes::props {
namespace {

bool is_setting(const Operation& operation) {
    return rule_of(operation.verb).actor == Actor::setting;
}

// Several readers of one buffer must agree on how they share it. Otherwise they may lose a wake-up
// (E12), and a fuzzer would find that again and again.
void make_readers_agree(std::vector<Operation>& operations) {
    std::size_t readers = 0;
    for (const Operation& operation : operations) readers += operation.verb == Verb::reader;
    for (Operation& operation : operations) {
        if (operation.verb == Verb::reader && readers > 1) operation.set(Key::sharing, 1);
    }
}

// Removes operations at the end until the text is short enough.
void cut_to(Script& script, std::size_t most_bytes) {
    std::size_t bytes = kScriptHeader.size() + 1;
    std::size_t kept = 0;
    while (kept < script.operations.size() && kept < kMaxOperations) {
        bytes += print_operation(script.operations[kept]).size() + 1;
        if (bytes > most_bytes) break;
        kept++;
    }
    script.operations.resize(kept);
}

class Mutator {
  public:
    Mutator(const Script& script, std::uint64_t seed, Profile profile)
        : random_(seed), profile_(profile), script_(script), first_(script.first_operation()) {}

    void once();
    const Script& script() const { return script_; }
    Script result(std::size_t most_bytes) {
        make_readers_agree(operations());
        cut_to(script_, most_bytes);
        return std::move(script_);
    }

  private:
    std::vector<Operation>& operations() { return script_.operations; }
    std::size_t size() const { return script_.operations.size() - first_; }
    auto at(std::size_t index) {
        return operations().begin() + static_cast<std::ptrdiff_t>(first_ + index);
    }
    std::size_t any_place() { return random_.below(size() + 1); }
    std::pair<std::size_t, std::size_t> any_range() {
        const std::size_t from = random_.below(size());
        const std::size_t most = random_.chance(60) ? 4 : size();
        return {from, random_.between(1, std::min(most, size() - from))};
    }
    void insert(std::size_t place, const std::vector<Operation>& lines) {
        operations().insert(at(place), lines.begin(), lines.end());
    }

    void add_phrase();
    void remove_range();
    void copy_range();
    void move_range();
    void swap_lines();
    void repeat_line();
    void change_value(Operation& operation);
    void change_line();
    void aim_event();
    void other_verb();
    void start_or_not();
    void split_count();
    void change_settings();
    void change_readers();

    Random random_;
    const Profile profile_;
    Script script_;
    std::size_t first_;
};

// The phrase fits the ring's content after the operations before it.
void Mutator::add_phrase() {
    const std::size_t place = any_place();
    Script before;
    before.operations.assign(operations().begin(), at(place));
    Drawing drawing(random_, profile_, before);
    drawing.phrase();
    insert(place, drawing.lines());
}

void Mutator::remove_range() {
    const auto [from, count] = any_range();
    operations().erase(at(from), at(from + count));
}

void Mutator::copy_range() {
    const auto [from, count] = any_range();
    const std::vector<Operation> lines(at(from), at(from + count));
    insert(any_place(), lines);
}

void Mutator::move_range() {
    const auto [from, count] = any_range();
    const std::vector<Operation> lines(at(from), at(from + count));
    operations().erase(at(from), at(from + count));
    insert(any_place(), lines);
}

void Mutator::swap_lines() {
    const std::size_t one = random_.below(size());
    const std::size_t other = random_.below(size());
    std::swap(*at(one), *at(other));
}

void Mutator::repeat_line() {
    const std::size_t which = random_.below(size());
    const Operation line = *at(which);
    insert(which, std::vector<Operation>(random_.between(1, 20), line));
}

void Mutator::change_value(Operation& operation) {
    const std::vector<KeyRule>& keys = rule_of(operation.verb).keys;
    if (keys.empty()) return;
    const KeyRule& rule = keys[random_.below(keys.size())];
    std::uint64_t value = operation[rule.key];
    if (rule.key == Key::capacity || random_.chance(60)) {
        value = draw_value(random_, rule);
    } else {
        // A little more, a little less, half, twice.
        const std::array<std::uint64_t, 5> near = {value - 1, value + 1, value / 2, value * 2,
                                                   value + random_.between(0, 60) - 30};
        value = near[random_.below(near.size())];
    }
    // Schedules of many thousands of accesses show nothing that shorter ones do not.
    const std::uint64_t most = rule.key == Key::count ? 1000 : rule.maximum;
    operation.set(rule.key, std::clamp(value, rule.minimum, most));
}

void Mutator::change_line() {
    change_value(*at(random_.below(size())));
}

void Mutator::aim_event() {
    const std::size_t from = random_.below(size());
    for (std::size_t i = from; i < size(); i++) {
        if (rule_of(at(i)->verb, Key::payload) == nullptr) continue;
        Script before;
        before.operations.assign(operations().begin(), at(i));
        Drawing(random_, profile_, before).aim(*at(i));
        return;
    }
}

// Replaces a verb by another of its kind, and keeps the values that both have.
void Mutator::other_verb() {
    static const std::vector<std::vector<Verb>> kinds = {
        {Verb::emit, Verb::add, Verb::reserve},
        {Verb::resize, Verb::prepare, Verb::handover},
        {Verb::step, Verb::run, Verb::restart, Verb::expire, Verb::interrupt},
        {Verb::commit, Verb::abandon, Verb::end, Verb::change, Verb::copy},
    };
    Operation& line = *at(random_.below(size()));
    for (const std::vector<Verb>& kind : kinds) {
        if (std::find(kind.begin(), kind.end(), line.verb) == kind.end()) continue;
        Operation other(random_.pick(kind));
        for (const KeyRule& rule : rule_of(other.verb).keys) {
            if (rule_of(line.verb, rule.key) != nullptr) other.set(rule.key, line[rule.key]);
        }
        if (rule_of(other.verb).has_type) other.type = line.type;
        other.is_started = line.is_started && rule_of(other.verb).actor == Actor::producer;
        line = std::move(other);
        return;
    }
}

void Mutator::start_or_not() {
    const std::size_t which = random_.below(size());
    Operation& line = *at(which);
    if (rule_of(line.verb).actor != Actor::producer) return;
    line.is_started = !line.is_started;
    if (!line.is_started) return;
    Script before;
    before.operations.assign(operations().begin(), at(which + 1));
    Drawing drawing(random_, profile_, before);
    std::vector<Operation> lines = {
        Operation(Verb::advance).set(Key::count, random_.between(1, 12))};
    lines.push_back(drawing.of_consumer(random_.chance(70) ? Verb::step : Verb::run));
    if (random_.chance(50)) lines.push_back(drawing.event(Verb::emit));
    insert(which + 1, lines);
}

// Another line can later come between the two halves.
void Mutator::split_count() {
    const std::size_t from = random_.below(size());
    for (std::size_t i = from; i < size(); i++) {
        const Operation line = *at(i);
        if (rule_of(line.verb, Key::count) == nullptr || line[Key::count] < 2) continue;
        const std::uint64_t part = random_.between(1, line[Key::count] - 1);
        at(i)->set(Key::count, line[Key::count] - part);
        insert(i, {Operation(line).set(Key::count, part)});
        return;
    }
}

void Mutator::change_settings() {
    if (operations().empty() || operations()[0].verb != Verb::settings) {
        operations().insert(operations().begin(), Operation(Verb::settings));
        first_++;
    }
    if (random_.chance(20)) {
        operations()[0] = draw_settings(random_, profile_);
    } else {
        change_value(operations()[0]);
    }
}

void Mutator::change_readers() {
    const bool has_settings = !operations().empty() && operations()[0].verb == Verb::settings;
    const std::size_t readers_at = has_settings ? 1 : 0;
    const auto begin = operations().begin() + static_cast<std::ptrdiff_t>(readers_at);
    if (first_ > readers_at && random_.chance(60)) {
        Operation& reader = operations()[random_.between(readers_at, first_ - 1)];
        const std::uint64_t number = reader[Key::consumer];
        change_value(reader);
        reader.set(Key::consumer, number);
        return;
    }
    const std::vector<Operation> readers =
        draw_readers(random_, profile_, script_.settings()[Key::capacity]);
    operations().insert(operations().erase(begin, at(0)), readers.begin(), readers.end());
    first_ = readers_at + readers.size();
}

void Mutator::once() {
    using Way = void (Mutator::*)();
    static constexpr std::array<Way, 14> ways = {
        &Mutator::change_settings, &Mutator::change_readers, &Mutator::add_phrase,
        &Mutator::remove_range,    &Mutator::copy_range,     &Mutator::move_range,
        &Mutator::swap_lines,      &Mutator::repeat_line,    &Mutator::change_line,
        &Mutator::aim_event,       &Mutator::other_verb,     &Mutator::start_or_not,
        &Mutator::split_count,     &Mutator::change_line,
    };
    static constexpr std::array<unsigned, 14> weights = {4, 3,  20, 8, 5, 5, 4,
                                                         3, 10, 12, 4, 8, 5, 5};
    std::size_t way = random_.weighted(weights);
    // All changes after the third need a line.
    if (way > 2 && size() == 0) way = 2;
    (this->*ways[way])();
}

}  // namespace

Script mutate(const Script& script, std::uint64_t seed, Profile profile, std::size_t most_bytes) {
    Mutator mutator(script, seed, profile);
    Random random(~seed);
    for (std::uint64_t times = random.between(1, 4); times > 0; times--) mutator.once();
    // Some changes have no effect at their place: try a few more.
    for (int i = 0; i < 8 && mutator.script() == script; i++) mutator.once();
    return mutator.result(most_bytes);
}

Script cross(const Script& one, const Script& other, std::uint64_t seed, std::size_t most_bytes) {
    Random random(seed);
    const auto place_in = [&random](const Script& script) {
        return static_cast<std::ptrdiff_t>(
            random.between(script.first_operation(), script.operations.size()));
    };
    const std::vector<Operation>& from = other.operations;
    const std::ptrdiff_t cut = place_in(one);
    std::ptrdiff_t begin = place_in(other);
    std::ptrdiff_t end = random.chance(50) ? std::ssize(from) : place_in(other);
    if (begin > end) std::swap(begin, end);
    Script result;
    result.operations.assign(one.operations.begin(), one.operations.begin() + cut);
    result.operations.insert(result.operations.end(), from.begin() + begin, from.begin() + end);
    if (random.chance(50)) {
        result.operations.insert(result.operations.end(), one.operations.begin() + cut,
                                 one.operations.end());
    }
    make_readers_agree(result.operations);
    cut_to(result, most_bytes);
    return result;
}

std::uint64_t ring_bytes(const Script& script) {
    std::uint64_t bytes = script.settings()[Key::capacity];
    for (const Operation& operation : script.operations) {
        if (!is_setting(operation) && rule_of(operation.verb, Key::capacity) != nullptr) {
            bytes += operation[Key::capacity];
        }
    }
    return bytes;
}

}  // namespace kmes::props
