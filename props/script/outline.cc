// SPDX-License-Identifier: MIT
//
// 5.1.7 steps 5 to 8 and 5.1.8.4, with sizes only (outline.h).
#include "props/script/outline.h"

#include "props/script/form.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kAccesses = 10;  // of an operation, roughly

}  // namespace

std::uint64_t event_bytes(const Operation& operation) {
    std::uint64_t type = operation.type.size();
    if (type > 0 && operation[Key::type_len] > 0) type = operation[Key::type_len];
    return kFixedBytes + type + operation[Key::extra] + operation[Key::payload];
}

Outline::Outline(const Script& script)
    : capacity_(script.settings()[Key::capacity]),
      write_(script.settings()[Key::position]),
      is_boot_(script.settings()[Key::phase] == 1) {}

void Outline::make_room(std::uint64_t bytes) {
    while (used_ + bytes > capacity_) {
        used_ -= events_.front();
        events_.pop_front();
    }
}

void Outline::append(std::uint64_t bytes) {
    events_.push_back(bytes);
    used_ += bytes;
    write_ += bytes;
}

void Outline::swap(const Operation& to) {
    while (used_ > to[Key::capacity]) {
        used_ -= events_.front();
        events_.pop_front();
    }
    capacity_ = to[Key::capacity];
    if (to[Key::positions] == 1) write_ = used_;
    if (to[Key::positions] == 2) write_ += to[Key::shift];
    buffers_++;
    prepared_.reset();
}

void Outline::follow_event(const Operation& operation) {
    const std::uint64_t bytes = event_bytes(operation);
    if (reserved_ || operation.type.empty() || bytes > half()) return;
    make_room(bytes);
    if (operation.verb == Verb::reserve) {
        reserved_ = bytes;
    } else {
        append(bytes);
    }
}

void Outline::follow(const Operation& operation) {
    if (rule_of(operation.verb).actor == Actor::producer) {
        // An interrupt is turned away (E16).
        if (is_over_ || (is_started_ && !operation.is_started)) return;
        is_started_ = operation.is_started;
        accesses_ = 0;
    }
    switch (operation.verb) {
        case Verb::emit:
        case Verb::reserve:
            return follow_event(operation);
        case Verb::add:
            return has_batch_ ? follow_event(operation) : void();
        case Verb::batch:
            has_batch_ = true;
            return;
        case Verb::end:
            has_batch_ = false;
            return;
        case Verb::commit:
            if (reserved_) append(*reserved_);
            reserved_.reset();
            return;
        case Verb::abandon:
            reserved_.reset();
            return;
        case Verb::handover:
            if (!is_boot_) return;
            if (!prepared_ && !reserved_) {
                is_boot_ = false;
                swap(operation);
            }
            return;
        case Verb::resize:
            if (!prepared_ && !reserved_ && !is_boot_) swap(operation);
            return;
        case Verb::prepare:
            if (!prepared_ && !reserved_ && !is_boot_) prepared_ = operation;
            return;
        case Verb::change:
            if (prepared_ && !reserved_) swap(*prepared_);
            return;
        case Verb::retire:
            is_over_ = true;
            return;
        case Verb::advance:
            accesses_ += operation[Key::count];
            if (accesses_ > kAccesses) is_started_ = false;
            return;
        case Verb::finish:
            is_started_ = false;
            return;
        default:
            return;
    }
}

}  // namespace kmes::props
