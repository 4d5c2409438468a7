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

WorldOptions options_of(const std::vector<props::Script>& scripts) {
    const Operation settings = scripts.at(0).settings();
    WorldOptions options;
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
        Lane lane;
        lane.script = &script;
        lane.cpu = static_cast<unsigned>(lanes_.size());
        lane.next = script.first_operation();
        lane.is_boot = options_.is_boot;
        lanes_.push_back(std::move(lane));
    }
    where_ = "the beginning";
    check_attach();
    check_all();
}

Played Player::play() {
    bool is_more = true;
    while (is_more && !played_.difference) {
        is_more = false;
        for (Lane& lane : lanes_) {
            if (played_.difference || lane.next >= lane.script->operations.size()) continue;
            const Operation& operation = lane.script->operations[lane.next];
            where_ = "operation " + std::to_string(lane.next) + " of CPU " +
                     std::to_string(lane.cpu) + ": " + props::print_operation(operation);
            lane.next++;
            perform(lane, operation);
            is_more = true;
        }
    }
    for (Lane& lane : lanes_)
        if (!played_.difference) end(lane);
    for (const Lane& lane : lanes_) played_.buffers += lane.buffers;
    played_.table = userspace_.table();
    return played_;
}

void Player::perform(Lane& lane, const Operation& operation) {
    switch (operation.verb) {
        case Verb::emit:
        case Verb::add:
        case Verb::reserve:
            return perform_event(lane, operation);
        case Verb::batch:
        case Verb::end:
            return perform_batch(lane, operation);
        case Verb::fill:
            return perform_fill(lane, operation);
        case Verb::commit:
        case Verb::abandon:
            return perform_close(lane, operation);
        case Verb::handover:
        case Verb::resize:
        case Verb::prepare:
            return perform_swap(lane, operation);
        case Verb::copy:
        case Verb::change:
            return perform_piece(lane, operation);
        case Verb::nudge:
        case Verb::retire:
            return perform_nudge(lane, operation);
        default:
            return perform_world(lane, operation);
    }
}

// A payload that is too large for all buffers has no memory, so a read of it would fault.
void Player::perform_event(Lane& lane, const Operation& operation) {
    if (lane.is_over || (operation.verb == Verb::add && !lane.has_batch)) return skip();
    const std::string type = props::full_type(operation);
    const std::uint64_t bytes =
        KMES_EVENT_FIXED_BYTES + type.size() + operation[Key::extra] + operation[Key::payload];
    std::string payload;
    if (bytes <= userspace_.state(lane.cpu).capacity / 2)
        payload = props::payload_bytes(operation[Key::seed], operation[Key::payload]);
    kmes_test_operation test = of(operation.verb == Verb::emit  ? KMES_TEST_EMIT
                                  : operation.verb == Verb::add ? KMES_TEST_ADD
                                                                : KMES_TEST_RESERVE);
    // Plays half of the emissions as emit calls, if they can be.
    if (operation.verb == Verb::emit && is_call(operation) && !operation[Key::extra] &&
        lane.next % 2)
        test.verb = KMES_TEST_CALL;
    test.type_address = address_of(type.data());
    test.type_len = static_cast<__u32>(type.size());
    test.payload_address = payload.empty() ? 0 : address_of(payload.data());
    test.payload_len = operation[Key::payload];
    test.header_extra = static_cast<__u32>(operation[Key::extra]);
    test.origin_class = static_cast<__u32>(operation[Key::origin]);
    test.style = operation.verb != Verb::reserve && is_call(operation);
    // Plays half of a batch's events as entries of a list, if they can be.
    if (operation.verb == Verb::add && test.style && !operation[Key::extra] && lane.next % 2)
        test.style = 2;
    if (operation.verb == Verb::reserve) test.payload_address = 0;
    if (operate(lane, test) == 0 && operation.verb == Verb::reserve) {
        lane.has_reservation = true;
        lane.reserved_payload = payload;
    }
}

void Player::perform_batch(Lane& lane, const Operation& operation) {
    const bool is_begin = operation.verb == Verb::batch;
    if (lane.is_over || lane.has_batch == is_begin) return skip();
    operate(lane, of(is_begin ? KMES_TEST_BATCH : KMES_TEST_END));
    lane.has_batch = is_begin;
}

void Player::perform_fill(Lane& lane, const Operation& operation) {
    if (!lane.has_reservation) return skip();
    const std::string& payload = lane.reserved_payload;
    const std::uint64_t offset = operation[Key::offset];
    kmes_test_operation test = of(KMES_TEST_FILL);
    test.payload_address =
        address_of(payload.data() + std::min<std::uint64_t>(offset, payload.size()));
    test.offset = offset;
    // The memory ends with the payload.
    test.bytes = std::min<std::uint64_t>(operation[Key::bytes],
                                         offset < payload.size() ? payload.size() - offset : 0);
    operate(lane, test);
}

void Player::perform_close(Lane& lane, const Operation& operation) {
    if (!lane.has_reservation) return skip();
    lane.has_reservation = false;
    operate(lane, of(operation.verb == Verb::commit ? KMES_TEST_COMMIT : KMES_TEST_ABANDON));
}

void Player::perform_swap(Lane& lane, const Operation& operation) {
    const bool is_whole = operation.verb != Verb::prepare;
    const bool is_possible =
        operation[Key::positions] != 2 ||
        operation[Key::shift] <= kHighestPosition - userspace_.state(lane.cpu).frontier;
    if (lane.is_over || lane.has_prepared || !is_possible) return skip();
    if (lane.is_boot != (operation.verb == Verb::handover)) return skip();
    kmes_test_operation test = of(is_whole ? KMES_TEST_SWAP : KMES_TEST_PREPARE);
    test.capacity = operation[Key::capacity];
    test.positions = static_cast<__u32>(operation[Key::positions]);
    test.shift = operation[Key::shift];
    if (operate(lane, test)) return;
    if (!is_whole) {
        lane.has_prepared = true;
        return;
    }
    lane.is_boot = false;
    take_new_buffer(lane);
}

void Player::perform_piece(Lane& lane, const Operation& operation) {
    if (!lane.has_prepared || lane.is_over) return skip();
    if (operation.verb == Verb::copy) {
        operate(lane, of(KMES_TEST_COPY));
        return;
    }
    if (operate(lane, of(KMES_TEST_CHANGE))) return;
    lane.has_prepared = false;
    take_new_buffer(lane);
}

void Player::perform_nudge(Lane& lane, const Operation& operation) {
    kmes_test_operation test = of(KMES_TEST_RETIRE);
    if (operation.verb == Verb::nudge) {
        if (operation[Key::buffer] >= lane.buffers) return skip();
        test.verb = KMES_TEST_NUDGE;
        test.buffer = static_cast<__u32>(operation[Key::buffer]);
    }
    const std::int64_t result = operate(lane, test);
    if (operation.verb == Verb::retire && result == 0) lane.is_over = true;
}

void Player::perform_world(Lane& lane, const Operation& operation) {
    switch (operation.verb) {
        case Verb::jump: {
            std::uint64_t clock = userspace_.clock_ns() + operation[Key::forward];
            clock -= std::min<std::uint64_t>(clock, operation[Key::back]);
            kmes_test_operation test = of(KMES_TEST_CLOCK);
            test.value = clock;
            test.offset = options_.clock_step_ns;
            operate(lane, test);
            return;
        }
        case Verb::poke: {
            if (operation[Key::buffer] >= lane.buffers) return skip();
            const auto value = static_cast<std::uint8_t>(operation[Key::value]);
            return write(lane, operation[Key::buffer], operation[Key::offset], &value, 1);
        }
        case Verb::corrupt:
            return corrupt(lane, operation);
        case Verb::run:
            return set_need_wake(lane, 1);
        case Verb::expire:
        case Verb::interrupt:
            return set_need_wake(lane, 0);
        default:
            return skip();
    }
}

// Corrupts the size of a surviving event. To find the event, it adds the sizes of the events before
// it, with the original size of an event that is already corrupt.
void Player::corrupt(Lane& lane, const Operation& operation) {
    constexpr std::uint32_t kNeverPossible = 1u << 30;
    const auto value = static_cast<std::uint32_t>(operation[Key::value]);
    if (lane.is_over || lane.has_reservation || lane.has_prepared) return skip();
    if (value >= KMES_EVENT_MIN_BYTES && value < kNeverPossible) return skip();
    const kmes_test_state state = userspace_.state(lane.cpu);
    const std::uint8_t* data =
        userspace_.mapping(lane.cpu, lane.buffers - 1).data() + KMES_METADATA_BYTES;
    std::uint64_t position = state.tail;
    for (std::uint64_t event = 0; position < state.frontier; event++) {
        const std::uint64_t at = position & (state.capacity - 1);
        std::uint32_t bytes;
        std::memcpy(&bytes, data + at, sizeof(bytes));
        const auto known = lane.true_sizes.find(position);
        if (bytes < KMES_EVENT_MIN_BYTES || bytes >= kNeverPossible)
            bytes = static_cast<std::uint32_t>(known == lane.true_sizes.end() ? 0 : known->second);
        if (bytes == 0) return skip();  // corrupt in the buffer before a swap
        if (event == operation[Key::event]) {
            lane.true_sizes[position] = bytes;
            return write(lane, lane.buffers - 1, KMES_METADATA_BYTES + at, &value, sizeof(value));
        }
        position += bytes;
    }
    skip();
}

void Player::set_need_wake(Lane& lane, std::uint8_t need_wake) {
    write(lane, lane.buffers - 1, offsetof(kmes_metadata_v1, need_wake), &need_wake, 1);
}

// Abandons an open reservation, and ends an open batch (docs/script-format.md, The end).
void Player::end(Lane& lane) {
    where_ = "the end of CPU " + std::to_string(lane.cpu);
    if (lane.has_reservation) perform_close(lane, Operation(Verb::abandon));
    if (lane.has_batch) perform_batch(lane, Operation(Verb::end));
    check_attach();
    check_all();
}

}  // namespace kmes::identity
