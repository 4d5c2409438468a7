// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/player.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kmes/abi.h"

namespace kmes::identity {
namespace {

using props::Key;
using props::Operation;
using props::Verb;

// The highest position after a shift (E11: positions never cross 2^64).
constexpr std::uint64_t kHighestPosition = ~0ull - (1ull << 41);

InstanceOptions options_of(const std::vector<props::Script>& scripts) {
    const Operation settings = scripts.at(0).settings();
    InstanceOptions options;
    options.capacity = settings[Key::capacity];
    options.position = settings[Key::position];
    options.sequence = settings[Key::sequence];
    options.clock_ns = settings[Key::clock];
    options.cpus = static_cast<unsigned>(scripts.size());
    // An id has 16 bits.
    options.first_cpu_id =
        static_cast<unsigned>(std::min<std::uint64_t>(settings[Key::cpu], 65536 - scripts.size()));
    options.is_boot = settings[Key::phase] == 1;
    options.max_event_size = 65536;
    return options;
}

kmes_test_operation of(std::uint32_t verb) {
    kmes_test_operation operation{};
    operation.verb = verb;
    return operation;
}

bool is_call(const Operation& operation) {
    return operation[Key::style] == 1;
}

}  // namespace

Player::Player(const std::vector<props::Script>& scripts, std::optional<Plant> plant)
    : options_(options_of(scripts)), userspace_(options_), module_(options_), plant_(plant) {
    for (const props::Script& script : scripts) {
        CpuState cpu_state;
        cpu_state.script = &script;
        cpu_state.cpu = static_cast<unsigned>(cpu_states_.size());
        cpu_state.next = script.first_operation();
        cpu_state.is_boot = options_.is_boot;
        cpu_states_.push_back(std::move(cpu_state));
    }
    where_ = "the beginning";
    check_attach();
    check_all();
}

Played Player::play() {
    bool is_more = true;
    while (is_more && !played_.difference) {
        is_more = false;
        for (CpuState& cpu_state : cpu_states_) {
            if (played_.difference || cpu_state.next >= cpu_state.script->operations.size())
                continue;
            const Operation& operation = cpu_state.script->operations[cpu_state.next];
            where_ = "operation " + std::to_string(cpu_state.next) + " of CPU " +
                     std::to_string(cpu_state.cpu) + ": " + props::print_operation(operation);
            cpu_state.next++;
            perform(cpu_state, operation);
            is_more = true;
        }
    }
    for (CpuState& cpu_state : cpu_states_)
        if (!played_.difference) end(cpu_state);
    for (const CpuState& cpu_state : cpu_states_) played_.buffers += cpu_state.buffers;
    played_.table = userspace_.table();
    return played_;
}

void Player::perform(CpuState& cpu_state, const Operation& operation) {
    switch (operation.verb) {
        case Verb::emit:
        case Verb::add:
        case Verb::reserve:
            return perform_event(cpu_state, operation);
        case Verb::batch:
        case Verb::end:
            return perform_batch(cpu_state, operation);
        case Verb::fill:
            return perform_fill(cpu_state, operation);
        case Verb::commit:
        case Verb::abandon:
            return perform_close(cpu_state, operation);
        case Verb::handover:
        case Verb::resize:
        case Verb::prepare:
            return perform_swap(cpu_state, operation);
        case Verb::copy:
        case Verb::change:
            return perform_piece(cpu_state, operation);
        case Verb::nudge:
        case Verb::retire:
            return perform_nudge(cpu_state, operation);
        default:
            return perform_world(cpu_state, operation);
    }
}

// A payload that is too large for all buffers has no memory, so a read of it would fault.
void Player::perform_event(CpuState& cpu_state, const Operation& operation) {
    if (cpu_state.is_over || (operation.verb == Verb::add && !cpu_state.has_batch)) return skip();
    const std::string type = props::full_type(operation);
    const std::uint64_t bytes =
        KMES_EVENT_FIXED_BYTES + type.size() + operation[Key::extra] + operation[Key::payload];
    std::string payload;
    if (bytes <= userspace_.state(cpu_state.cpu).capacity / 2)
        payload = props::payload_bytes(operation[Key::seed], operation[Key::payload]);
    kmes_test_operation test = of(operation.verb == Verb::emit  ? KMES_TEST_EMIT
                                  : operation.verb == Verb::add ? KMES_TEST_ADD
                                                                : KMES_TEST_RESERVE);
    // Plays half of the emissions as emit calls, if they can be.
    if (operation.verb == Verb::emit && is_call(operation) && !operation[Key::extra] &&
        cpu_state.next % 2)
        test.verb = KMES_TEST_CALL;
    test.type_address = address_of(type.data());
    test.type_len = static_cast<__u32>(type.size());
    test.payload_address = payload.empty() ? 0 : address_of(payload.data());
    test.payload_len = operation[Key::payload];
    test.header_extra = static_cast<__u32>(operation[Key::extra]);
    test.origin_class = static_cast<__u32>(operation[Key::origin]);
    test.style = operation.verb != Verb::reserve && is_call(operation);
    // Plays half of a batch's events as entries of a list, if they can be.
    if (operation.verb == Verb::add && test.style && !operation[Key::extra] && cpu_state.next % 2)
        test.style = 2;
    if (operation.verb == Verb::reserve) test.payload_address = 0;
    if (operate(cpu_state, test) == 0 && operation.verb == Verb::reserve) {
        cpu_state.has_reservation = true;
        cpu_state.reserved_payload = payload;
    }
}

void Player::perform_batch(CpuState& cpu_state, const Operation& operation) {
    const bool is_begin = operation.verb == Verb::batch;
    if (cpu_state.is_over || cpu_state.has_batch == is_begin) return skip();
    operate(cpu_state, of(is_begin ? KMES_TEST_BATCH : KMES_TEST_END));
    cpu_state.has_batch = is_begin;
}

void Player::perform_fill(CpuState& cpu_state, const Operation& operation) {
    if (!cpu_state.has_reservation) return skip();
    const std::string& payload = cpu_state.reserved_payload;
    const std::uint64_t offset = operation[Key::offset];
    kmes_test_operation test = of(KMES_TEST_FILL);
    test.payload_address =
        address_of(payload.data() + std::min<std::uint64_t>(offset, payload.size()));
    test.offset = offset;
    // The memory ends with the payload.
    test.bytes = std::min<std::uint64_t>(operation[Key::bytes],
                                         offset < payload.size() ? payload.size() - offset : 0);
    operate(cpu_state, test);
}

void Player::perform_close(CpuState& cpu_state, const Operation& operation) {
    if (!cpu_state.has_reservation) return skip();
    cpu_state.has_reservation = false;
    operate(cpu_state, of(operation.verb == Verb::commit ? KMES_TEST_COMMIT : KMES_TEST_ABANDON));
}

void Player::perform_swap(CpuState& cpu_state, const Operation& operation) {
    const bool is_whole = operation.verb != Verb::prepare;
    const bool is_possible =
        operation[Key::positions] != 2 ||
        operation[Key::shift] <= kHighestPosition - userspace_.state(cpu_state.cpu).frontier;
    if (cpu_state.is_over || cpu_state.has_prepared || !is_possible) return skip();
    if (cpu_state.is_boot != (operation.verb == Verb::handover)) return skip();
    kmes_test_operation test = of(is_whole ? KMES_TEST_SWAP : KMES_TEST_PREPARE);
    test.capacity = operation[Key::capacity];
    test.positions = static_cast<__u32>(operation[Key::positions]);
    test.shift = operation[Key::shift];
    if (operate(cpu_state, test)) return;
    if (!is_whole) {
        cpu_state.has_prepared = true;
        return;
    }
    cpu_state.is_boot = false;
    take_new_buffer(cpu_state);
}

void Player::perform_piece(CpuState& cpu_state, const Operation& operation) {
    if (!cpu_state.has_prepared || cpu_state.is_over) return skip();
    if (operation.verb == Verb::copy) {
        operate(cpu_state, of(KMES_TEST_COPY));
        return;
    }
    if (operate(cpu_state, of(KMES_TEST_CHANGE))) return;
    cpu_state.has_prepared = false;
    take_new_buffer(cpu_state);
}

void Player::perform_nudge(CpuState& cpu_state, const Operation& operation) {
    kmes_test_operation test = of(KMES_TEST_RETIRE);
    if (operation.verb == Verb::nudge) {
        if (operation[Key::buffer] >= cpu_state.buffers) return skip();
        test.verb = KMES_TEST_NUDGE;
        test.buffer = static_cast<__u32>(operation[Key::buffer]);
    }
    const std::int64_t result = operate(cpu_state, test);
    if (operation.verb == Verb::retire && result == 0) cpu_state.is_over = true;
}

void Player::perform_world(CpuState& cpu_state, const Operation& operation) {
    switch (operation.verb) {
        case Verb::jump: {
            std::uint64_t clock = userspace_.clock_ns() + operation[Key::forward];
            clock -= std::min<std::uint64_t>(clock, operation[Key::back]);
            kmes_test_operation test = of(KMES_TEST_CLOCK);
            test.value = clock;
            test.offset = options_.clock_step_ns;
            operate(cpu_state, test);
            return;
        }
        case Verb::poke: {
            if (operation[Key::buffer] >= cpu_state.buffers) return skip();
            const auto value = static_cast<std::uint8_t>(operation[Key::value]);
            return write(cpu_state, operation[Key::buffer], operation[Key::offset], &value, 1);
        }
        case Verb::corrupt:
            return corrupt(cpu_state, operation);
        case Verb::run:
            return set_need_wake(cpu_state, 1);
        case Verb::expire:
        case Verb::interrupt:
            return set_need_wake(cpu_state, 0);
        default:
            return skip();
    }
}

// Corrupts the size of a surviving event. To find the event, it adds the sizes of the events before
// it, with the original size of an event that is already corrupt.
void Player::corrupt(CpuState& cpu_state, const Operation& operation) {
    constexpr std::uint32_t kNeverPossible = 1u << 30;
    const auto value = static_cast<std::uint32_t>(operation[Key::value]);
    if (cpu_state.is_over || cpu_state.has_reservation || cpu_state.has_prepared) return skip();
    if (value >= KMES_EVENT_MIN_BYTES && value < kNeverPossible) return skip();
    const kmes_test_state state = userspace_.state(cpu_state.cpu);
    const std::uint8_t* data =
        userspace_.mapping(cpu_state.cpu, cpu_state.buffers - 1).data() + KMES_METADATA_BYTES;
    std::uint64_t position = state.tail;
    for (std::uint64_t event = 0; position < state.frontier; event++) {
        const std::uint64_t at = position & (state.capacity - 1);
        std::uint32_t bytes;
        std::memcpy(&bytes, data + at, sizeof(bytes));
        const auto known = cpu_state.true_sizes.find(position);
        if (bytes < KMES_EVENT_MIN_BYTES || bytes >= kNeverPossible)
            bytes =
                static_cast<std::uint32_t>(known == cpu_state.true_sizes.end() ? 0 : known->second);
        if (bytes == 0) return skip();  // corrupt in the buffer before a swap
        if (event == operation[Key::event]) {
            cpu_state.true_sizes[position] = bytes;
            return write(cpu_state, cpu_state.buffers - 1, KMES_METADATA_BYTES + at, &value,
                         sizeof(value));
        }
        position += bytes;
    }
    skip();
}

void Player::set_need_wake(CpuState& cpu_state, std::uint8_t need_wake) {
    write(cpu_state, cpu_state.buffers - 1, offsetof(kmes_metadata_v1, need_wake), &need_wake, 1);
}

// Abandons an open reservation, and ends an open batch (docs/script-format.md, The end).
void Player::end(CpuState& cpu_state) {
    where_ = "the end of CPU " + std::to_string(cpu_state.cpu);
    if (cpu_state.has_reservation) perform_close(cpu_state, Operation(Verb::abandon));
    if (cpu_state.has_batch) perform_batch(cpu_state, Operation(Verb::end));
    check_attach();
    check_all();
}

}  // namespace kmes::identity
