// SPDX-License-Identifier: MIT
//
// The order in which scripts shrink: the number of lines; then `start`; then the consumers'
// numbers. Then come types ("t", the empty one, longer ones) and values (the default, the minimum,
// larger ones). Every edit here makes a script smaller in this order, so no chain of edits is a
// cycle.
#include "props/script/shrink.h"

#include <algorithm>

namespace kmes::props {
namespace {

class Edits {
  public:
    explicit Edits(const Script& script)
        : operations_(script.operations), first_(script.first_operation()) {}

    std::vector<Edit> all() {
        pieces();
        settings();
        brackets();
        merged_counts();
        starts();
        renumberings();
        for (std::size_t i = 0; i < operations_.size(); i++) types(i);
        for (std::size_t i = 0; i < operations_.size(); i++) values(i);
        return std::move(edits_);
    }

  private:
    void remove(std::size_t first, std::size_t count) {
        edits_.push_back({first, count, {}, {}, {}});
    }

    void replace(std::size_t first, std::size_t count, Operation operation) {
        edits_.push_back({first, count, {}, std::move(operation), {}});
    }

    // Removes all operations, halves, quarters, ..., single ones; the last first, because nothing
    // after a failure is needed.
    void pieces() {
        const std::size_t end = operations_.size();
        for (std::size_t size = end - first_; size > 0; size /= 2) {
            for (std::size_t at = end; at > first_;) {
                const std::size_t from = at - first_ > size ? at - size : first_;
                remove(from, at - from);
                at = from;
            }
        }
    }

    void settings() {
        if (first_ > 1) remove(0, first_);
        for (std::size_t i = first_; i-- > 0;) remove(i, 1);
    }

    static bool closes(Verb opening, Verb other) {
        switch (opening) {
            case Verb::batch:
                return other == Verb::end;
            case Verb::reserve:
                return other == Verb::commit || other == Verb::abandon;
            case Verb::prepare:
                return other == Verb::change;
            default:
                return other == Verb::finish;
        }
    }

    // Removes an opening together with its end. The operations between them stay.
    void brackets() {
        for (std::size_t i = first_; i < operations_.size(); i++) {
            const Operation& opening = operations_[i];
            const bool opens = opening.is_started || opening.verb == Verb::batch ||
                               opening.verb == Verb::reserve || opening.verb == Verb::prepare;
            if (!opens) continue;
            for (std::size_t j = i + 1; j < operations_.size(); j++) {
                if (!closes(opening.verb, operations_[j].verb)) continue;
                edits_.push_back({i, 1, j, {}, {}});
                break;
            }
        }
    }

    // Merges two lines that differ only in their count into one with the sum.
    void merged_counts() {
        for (std::size_t i = first_; i + 1 < operations_.size(); i++) {
            const KeyRule* rule = rule_of(operations_[i].verb, Key::count);
            if (rule == nullptr) continue;
            const std::uint64_t sum = operations_[i][Key::count] + operations_[i + 1][Key::count];
            Operation both = operations_[i];
            both.set(Key::count, operations_[i + 1][Key::count]);
            if (both == operations_[i + 1] && sum <= rule->maximum) {
                replace(i, 2, both.set(Key::count, sum));
            }
        }
    }

    void starts() {
        for (std::size_t i = first_; i < operations_.size(); i++) {
            if (!operations_[i].is_started) continue;
            Operation plain = operations_[i];
            plain.is_started = false;
            replace(i, 1, std::move(plain));
        }
    }

    void renumberings() {
        std::array<bool, kMaxConsumers> used{};
        for (const Operation& operation : operations_) {
            if (rule_of(operation.verb, Key::consumer) != nullptr) {
                used[operation[Key::consumer]] = true;
            }
        }
        for (std::uint64_t from = kMaxConsumers; from-- > 1;) {
            for (std::uint64_t to = 0; used[from] && to < from; to++) {
                if (!used[to]) edits_.push_back({0, 0, {}, {}, Edit::Renumbering{from, to}});
            }
        }
    }

    void types(std::size_t i) {
        const Operation& operation = operations_[i];
        if (!rule_of(operation.verb).has_type || operation.type == kStandardType) return;
        const std::size_t size = operation.type.size();
        const auto cut_to = [this, i, &operation](std::string type) {
            Operation shorter = operation;
            shorter.type = std::move(type);
            replace(i, 1, std::move(shorter));
        };
        cut_to(std::string(kStandardType));
        if (size > 0) cut_to("");
        if (size > 3) cut_to(operation.type.substr(0, size / 2));
        if (size > 3) cut_to(operation.type.substr(size / 2));
        for (std::size_t at = size; size > 1 && at-- > 0;) {
            cut_to(std::string(operation.type).erase(at, 1));
        }
    }

    // The default, the minimum, and then halves of the distance: a bound is found by bisection.
    static std::vector<std::uint64_t> smaller(const KeyRule& rule, std::uint64_t value) {
        if (value == rule.standard) return {};
        std::vector<std::uint64_t> found = {rule.standard};
        if (value == rule.minimum) return found;
        if (rule.minimum != rule.standard) found.push_back(rule.minimum);
        if (rule.key == Key::capacity) {
            if (value / 2 > rule.minimum) found.push_back(value / 2);
            return found;
        }
        for (std::uint64_t less = (value - rule.minimum) / 2; less > 0; less /= 2) {
            if (value - less != rule.standard) found.push_back(value - less);
        }
        return found;
    }

    void values(std::size_t i) {
        for (const KeyRule& rule : rule_of(operations_[i].verb).keys) {
            // Consumers are renamed in all lines together.
            if (rule.key == Key::consumer) continue;
            for (std::uint64_t value : smaller(rule, operations_[i][rule.key])) {
                Operation operation = operations_[i];
                replace(i, 1, operation.set(rule.key, value));
            }
        }
    }

    const std::vector<Operation>& operations_;
    const std::size_t first_;
    std::vector<Edit> edits_;
};

}  // namespace

std::vector<Edit> shrink_edits(const Script& script) {
    return Edits(script).all();
}

Script apply(const Script& script, const Edit& edit) {
    Script result;
    const std::vector<Operation>& from = script.operations;
    result.operations.reserve(from.size());
    for (std::size_t i = 0; i < from.size(); i++) {
        const bool is_gone = (i >= edit.first && i < edit.first + edit.count) || i == edit.partner;
        if (i == edit.first && edit.replacement) result.operations.push_back(*edit.replacement);
        if (!is_gone) result.operations.push_back(from[i]);
    }
    if (edit.renumbering) {
        for (Operation& operation : result.operations) {
            if (rule_of(operation.verb, Key::consumer) != nullptr &&
                operation[Key::consumer] == edit.renumbering->from) {
                operation.set(Key::consumer, edit.renumbering->to);
            }
        }
    }
    return result;
}

std::vector<Script> shrink_candidates(const Script& script) {
    std::vector<Script> candidates;
    for (const Edit& edit : shrink_edits(script)) candidates.push_back(apply(script, edit));
    return candidates;
}

// `smaller` has at most this many for one value.
constexpr std::size_t kStepsOfAValue = 66;

Script minimise(Script script, const std::function<bool(const Script&)>& still_fails,
                std::size_t budget) {
    for (bool changed = true; changed;) {
        changed = false;
        std::vector<Edit> edits = shrink_edits(script);
        for (std::size_t i = 0; i < edits.size() && budget > 0; budget--) {
            Script candidate = apply(script, edits[i]);
            if (!still_fails(candidate)) {
                i++;
                continue;
            }
            // Continue at the same place: what failed for a larger script usually fails for this
            // one too, and the next iteration tries it again.
            changed = true;
            script = std::move(candidate);
            edits = shrink_edits(script);
            // After a small reduction, try large steps for this value again, or it would shrink
            // slowly.
            i -= std::min(i, kStepsOfAValue);
        }
        if (budget == 0) break;
    }
    return script;
}

}  // namespace kmes::props
