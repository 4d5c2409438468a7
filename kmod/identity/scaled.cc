// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/scaled.h"

#include <algorithm>

#include "kmes/abi.h"

namespace kmes::identity {
namespace {

using props::Key;
using props::Operation;
using props::Verb;

constexpr std::uint64_t kSmallestCapacity = 4096;
constexpr std::uint64_t kMost = 0xffffffff;

bool has_capacity(const Operation& operation) {
    return props::rule_of(operation.verb, Key::capacity) != nullptr;
}

void scale_key(Operation* operation, Key key, std::uint64_t factor) {
    const props::KeyRule* rule = props::rule_of(operation->verb, key);
    if (!rule) return;
    const std::uint64_t value = (*operation)[key];
    if (value <= rule->maximum / factor) operation->set(key, value * factor);
}

// Multiplies the size of the event by `factor`. The header keeps its size.
void scale_event(Operation* operation, std::uint64_t factor) {
    const std::uint64_t header =
        KMES_EVENT_FIXED_BYTES + props::full_type(*operation).size() + (*operation)[Key::extra];
    const std::uint64_t bytes = header + (*operation)[Key::payload];
    operation->set(Key::payload, std::min(kMost, bytes * factor - header));
}

void scale_operation(Operation* operation, std::uint64_t factor) {
    if (has_capacity(*operation))
        operation->set(Key::capacity, (*operation)[Key::capacity] * factor);
    switch (operation->verb) {
        case Verb::settings:
            return scale_key(operation, Key::position, factor);
        case Verb::handover:
        case Verb::resize:
        case Verb::prepare:
            return scale_key(operation, Key::shift, factor);
        case Verb::emit:
        case Verb::add:
        case Verb::reserve:
            return scale_event(operation, factor);
        case Verb::fill:
            for (const Key key : {Key::offset, Key::bytes})
                operation->set(key, std::min(kMost, (*operation)[key] * factor));
            return;
        default:
            return;
    }
}

}  // namespace

Scaled scale(const props::Script& script) {
    Scaled scaled;
    scaled.script = script;
    std::uint64_t smallest = script.settings()[Key::capacity];
    for (const Operation& operation : script.operations)
        if (has_capacity(operation)) smallest = std::min(smallest, operation[Key::capacity]);
    scaled.factor = std::max<std::uint64_t>(1, kSmallestCapacity / smallest);
    if (scaled.factor > 1) {
        // Default settings have no operation. Insert one, so that it is scaled.
        if (script.operations.empty() || script.operations[0].verb != Verb::settings)
            scaled.script.operations.insert(scaled.script.operations.begin(),
                                            Operation(Verb::settings));
        for (Operation& operation : scaled.script.operations)
            scale_operation(&operation, scaled.factor);
    }
    scaled.largest_capacity = scaled.script.settings()[Key::capacity];
    for (const Operation& operation : scaled.script.operations)
        if (has_capacity(operation))
            scaled.largest_capacity = std::max(scaled.largest_capacity, operation[Key::capacity]);
    return scaled;
}

}  // namespace kmes::identity
