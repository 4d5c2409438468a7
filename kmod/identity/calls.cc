// SPDX-License-Identifier: GPL-2.0-only
//
// Plays random emit calls on both sides. kmes/call.h lists the errors of an event, and the order of
// their checks. Each error occurs here.
#include <algorithm>
#include <deque>

#include "kmes/abi.h"
#include "kmod/identity/player.h"

namespace kmes::identity {
namespace {

using props::Random;

constexpr std::uint64_t kBadAddress = 8;  // the first page of a process is unmapped

const void* bad_pointer() {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(kBadAddress));
}

// One event: its entry, and the memory of type and payload.
struct Drawn {
    std::string type;
    std::string payload;
    kmes_emit_entry entry{};
};

std::string draw_type(Random& random) {
    static const std::string kNotUtf8[] = {"\xff", "a\xc0\x80", "\xed\xa0\x80",
                                           "ok\xf4\x90\x80\x80", "\xe2\x82"};
    if (random.chance(10)) return kNotUtf8[random.below(std::size(kNotUtf8))];
    static const std::string kText[] = {"t", "kmes.test", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x94\x94"};
    std::string type = kText[random.below(std::size(kText))];
    if (random.chance(10)) type.assign(random.between(1, 3000), 'x');
    return type;
}

void draw(Random& random, std::uint64_t capacity, Drawn* drawn) {
    drawn->type = draw_type(random);
    const std::uint64_t header = KMES_EVENT_FIXED_BYTES + drawn->type.size();
    const std::uint64_t half = capacity / 2;
    std::uint64_t payload = random.below(300);
    if (random.chance(15)) payload = half > header ? half - header + random.below(3) - 1 : 0;
    if (random.chance(5)) payload = random.between(half, 70000);
    payload = std::min<std::uint64_t>(payload, 70000);
    drawn->payload = props::payload_bytes(random.next(), payload);
    drawn->entry.type = drawn->type.data();
    drawn->entry.type_len = static_cast<__u16>(drawn->type.size());
    drawn->entry.payload = drawn->payload.data();
    drawn->entry.payload_len = static_cast<__u32>(payload);
    if (random.chance(4)) drawn->entry.type_len = 0;
    if (random.chance(3)) drawn->entry.type = bad_pointer();
    if (random.chance(3)) drawn->entry.payload = bad_pointer();
}

}  // namespace

void Player::call_one(CpuState& cpu_state, Random& random) {
    Drawn drawn;
    draw(random, userspace_.state(cpu_state.cpu).capacity, &drawn);
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_CALL;
    operation.type_address = address_of(drawn.entry.type);
    operation.type_len = drawn.entry.type_len;
    operation.payload_address = address_of(drawn.entry.payload);
    operation.payload_len = drawn.entry.payload_len;
    operation.origin_class = static_cast<__u32>(random.below(3));
    operate(cpu_state, operation);
}

void Player::call_batch(CpuState& cpu_state, Random& random) {
    static constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 7, 20, 64, 256, 257};
    const std::uint64_t count = kCounts[random.below(std::size(kCounts))];
    std::deque<Drawn> drawn(count);
    std::vector<kmes_emit_entry> entries;
    for (Drawn& one : drawn) {
        draw(random, userspace_.state(cpu_state.cpu).capacity, &one);
        // A batch ends at its first bad entry. A copy of the first entry makes longer batches
        // likely.
        if (entries.size() > 2 && random.chance(80)) one.entry = entries[0];
        entries.push_back(one.entry);
    }
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_CALL_BATCH;
    operation.payload_address = random.chance(4) ? kBadAddress : address_of(entries.data());
    operation.payload_len = count;
    operation.origin_class = static_cast<__u32>(random.below(3));
    operate(cpu_state, operation);
}

Played Player::play_calls(std::uint64_t seed, unsigned operations) {
    Random random(seed);
    for (unsigned i = 0; i < operations && !played_.difference; i++) {
        CpuState& cpu_state = cpu_states_[random.below(cpu_states_.size())];
        where_ = "emit call " + std::to_string(i) + " of seed " + std::to_string(seed);
        const std::uint64_t kind = random.below(20);
        if (kind < 12) {
            call_one(cpu_state, random);
        } else if (kind < 17) {
            call_batch(cpu_state, random);
        } else if (kind == 17) {
            // Nested in a reservation: -EBUSY.
            perform_event(cpu_state, props::Operation(props::Verb::reserve));
            call_one(cpu_state, random);
            call_batch(cpu_state, random);
            perform_close(cpu_state, props::Operation(props::Verb::commit));
        } else if (kind == 18) {
            set_need_wake(cpu_state, static_cast<std::uint8_t>(random.below(3)));
        } else if (cpu_state.buffers < 12) {
            props::Operation resize(props::Verb::resize);
            resize.set(props::Key::capacity, 4096ull << random.below(4));
            perform_swap(cpu_state, resize);
        }
    }
    for (CpuState& cpu_state : cpu_states_) end(cpu_state);
    played_.buffers = cpu_states_.size();
    played_.table = userspace_.table();
    return played_;
}

}  // namespace kmes::identity
