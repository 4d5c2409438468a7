// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Compares kmes_batch_emit_entries with the same events one by one (kmes_batch_emit_call after the
 * checks of the emit call). Bytes, positions, numbers, statistics and result must be equal, for all
 * sizes, and wherever a bad entry is.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kmes/tests/one_by_one.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

constexpr kmes_batch_rules kRules{.max_event_bytes = 200_b, .origin_class = KMES_ORIGIN_KMES};

// The caller keeps the memory.
kmes_batch_entry entry_of(std::string_view type, std::string_view payload) {
    return {type.data(), payload.data(), type.size(), payload.size()};
}

void expect_same(World& one, World& other) {
    settle_mirror();
    EXPECT_EQ(one.first().page(), other.first().page());
    EXPECT_EQ(one.first().survivors(), other.first().survivors());
    EXPECT_EQ(one.cpu.sequence, other.cpu.sequence);
    EXPECT_EQ(one.cpu.wake_owed, other.cpu.wake_owed);
    EXPECT_EQ(one.cpu.inside, 0u);
    EXPECT_EQ(memcmp(&one.cpu.statistics, &other.cpu.statistics, sizeof(one.cpu.statistics)), 0);
    EXPECT_EQ(one.first().buffer.tail_ordinal, other.first().buffer.tail_ordinal);
    EXPECT_EQ(one.first().buffer.frontier_ordinal, other.first().buffer.frontier_ordinal);
    for (std::size_t i = 0; i < one.first().index.size(); i++) {
        EXPECT_EQ(one.first().index[i].pos, other.first().index[i].pos);
        EXPECT_EQ(one.first().index[i].ordinal, other.first().index[i].ordinal);
    }
}

// Capacities with which batches lap themselves (E8) and with which they do not. Types and payloads
// are around each size at which the way of copying changes.
TEST(BatchEntries, AreTheSameAsOneByOne) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; round++) {
        const std::uint64_t capacity = 256_b << (round % 5);
        World all({.capacity_bytes = capacity}), single({.capacity_bytes = capacity});
        std::vector<std::string> strings;
        std::vector<kmes_batch_entry> entries;
        strings.reserve(80);
        for (unsigned i = 0, count = 1 + random() % 40; i < count; i++) {
            const bool is_bad = random() % 64 == 0;
            strings.emplace_back(is_bad ? random() % 2 : 1 + random() % 40, 'a' + random() % 26);
            if (is_bad && !strings.back().empty()) strings.back().back() = '\xFF';
            strings.emplace_back(random() % (random() % 16 ? 90 : 190), '0' + random() % 10);
            entries.push_back(entry_of(strings[strings.size() - 2], strings.back()));
        }
        std::uint32_t all_emitted = 77, single_emitted = 0;
        kmes_batch all_batch, single_batch;
        kmes_batch_begin(&all.cpu, &all_batch);
        kmes_batch_begin(&single.cpu, &single_batch);
        const int all_error =
            kmes_batch_emit_entries(&all.cpu, &all_batch, &kRules, entries.data(),
                                    static_cast<std::uint32_t>(entries.size()), &all_emitted);
        const int single_error =
            emit_one_by_one(&single.cpu, single_batch, kRules, entries, &single_emitted);
        EXPECT_EQ(all_error, single_error);
        EXPECT_EQ(all_emitted, single_emitted);
        expect_same(all, single);
        kmes_batch_end(&all.cpu, &all_batch);
        kmes_batch_end(&single.cpu, &single_batch);
        expect_same(all, single);
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
}

struct Refused {
    const char* what;
    kmes_batch_entry entry;
    int error;
};

// Lengths of any value are checked before they are truncated to their field.
TEST(BatchEntries, LengthsOfAnyValueAreRefused) {
    const std::string type(1 << 17, 't'), payload(300_b, 'p');
    const Refused all[] = {
        {"no type", {type.data(), nullptr, 0, 0}, -EINVAL},
        {"a type of 65536 bytes", {type.data(), nullptr, 65536, 0}, -EINVAL},
        {"a type of 65537 bytes", {type.data(), nullptr, 65537, 0}, -EINVAL},
        {"over MaxEventSize",
         {type.data(), payload.data(), 1, 201_b - KMES_EVENT_MIN_BYTES},
         -ENOSPC},
        {"a payload of 4 GiB and 1", {type.data(), payload.data(), 1, (1ull << 32) + 1}, -ENOSPC},
        {"a payload of 2^64 - 1", {type.data(), payload.data(), 1, ~0ull}, -ENOSPC},
        {"over half of the capacity",
         {type.data(), payload.data(), 1, 129_b - KMES_EVENT_MIN_BYTES},
         -ENOSPC},
    };
    for (const Refused& refused : all) {
        World world({});
        kmes_batch batch;
        const kmes_batch_entry good = entry_of("good", "one");
        const kmes_batch_entry entries[] = {good, refused.entry, good};
        std::uint32_t emitted = 0;
        kmes_batch_begin(&world.cpu, &batch);
        EXPECT_EQ(kmes_batch_emit_entries(&world.cpu, &batch, &kRules, entries, 3, &emitted),
                  refused.error)
            << refused.what;
        kmes_batch_end(&world.cpu, &batch);
        EXPECT_EQ(emitted, 1u) << refused.what;
        EXPECT_EQ(world.cpu.sequence, 1u) << refused.what;
        EXPECT_EQ(world.cpu.statistics.dropped, 0u) << refused.what;
        EXPECT_EQ(world.first().shared_write_pos(), KMES_EVENT_FIXED_BYTES + 4 + 3) << refused.what;
    }
}

// Other emitters can emit after KMES_BATCH_PIECE_BYTES.
TEST(BatchEntries, LeaveTheCriticalSectionAfterAPiece) {
    World world({.capacity_bytes = 1_b << 20});
    static int entered;
    world.platform.enter = [](void*) {
        entered++;
        return true;
    };
    const std::string payload((32 << 10) - KMES_EVENT_MIN_BYTES, 'p');  // two are one piece
    const std::vector<kmes_batch_entry> entries(8, entry_of("t", payload));
    const kmes_batch_rules rules{.max_event_bytes = 1 << 20, .origin_class = 0};
    kmes_batch batch;
    std::uint32_t emitted = 0;
    entered = 0;
    kmes_batch_begin(&world.cpu, &batch);
    EXPECT_EQ(kmes_batch_emit_entries(&world.cpu, &batch, &rules, entries.data(), 8, &emitted), 0);
    EXPECT_EQ(emitted, 8u);
    EXPECT_EQ(entered, 4);
}

// A handler that emits between two events of the batch is rejected, and its number is used before
// the next event (E16).
TEST(BatchEntries, NestedEmissionLeavesItsGap) {
    World world({.capacity_bytes = 4096_b});
    const std::vector<kmes_batch_entry> entries(3, entry_of("type", "payload"));
    kmes_batch batch;
    std::uint32_t emitted = 0;
    bool is_done = false;
    kmes_batch_begin(&world.cpu, &batch);
    const ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label != KMES_ORDER_DATA || is_done || world.cpu.inside == 0) return;
        is_done = true;
        EXPECT_EQ(world.emit("nested", ""), -EBUSY);
        EXPECT_EQ(kmes_batch_emit_entries(&world.cpu, &batch, &kRules, entries.data(), 1, &emitted),
                  -EBUSY);
    });
    EXPECT_EQ(kmes_batch_emit_entries(&world.cpu, &batch, &kRules, entries.data(), 3, &emitted), 0);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(emitted, 3u);
    EXPECT_EQ(world.cpu.sequence, 4u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
}

TEST(BatchEntries, TakeTheLongestTypeAndNoLongerOne) {
    const std::string type(KMES_EVENT_TYPE_MAX_BYTES + 1, 't');
    const kmes_batch_rules rules{.max_event_bytes = 1 << 20, .origin_class = 0};
    const kmes_batch_entry entries[] = {entry_of({type.data(), type.size() - 1}, "payload"),
                                        entry_of(type, "payload")};
    World world({.capacity_bytes = 1_b << 20});
    kmes_batch batch;
    std::uint32_t emitted = 0;
    kmes_batch_begin(&world.cpu, &batch);
    EXPECT_EQ(kmes_batch_emit_entries(&world.cpu, &batch, &rules, entries, 2, &emitted), -EINVAL);
    EXPECT_EQ(emitted, 1u);
    kmes_batch_end(&world.cpu, &batch);
}

// A byte before or after a type may belong to other data, and ASan notices a read of it. The types
// are around the size of a word, ASCII and not, each in a separate allocation.
TEST(BatchEntries, ReadsATypeFromItsOwnBytesAlone) {
    for (std::size_t bytes = 1; bytes <= 33; bytes++) {
        for (const bool is_ascii : {true, false}) {
            World world({.capacity_bytes = 1024_b});
            std::vector<char> type(bytes, 'a');
            if (!is_ascii) type[bytes - 1] = '\x80';
            const kmes_batch_entry entry = entry_of({type.data(), type.size()}, "");
            kmes_batch batch;
            kmes_batch_begin(&world.cpu, &batch);
            std::uint32_t emitted = 77;
            const int error =
                kmes_batch_emit_entries(&world.cpu, &batch, &kRules, &entry, 1, &emitted);
            EXPECT_EQ(error, is_ascii ? 0 : -EINVAL) << bytes;
            EXPECT_EQ(emitted, is_ascii ? 1u : 0u) << bytes;
            kmes_batch_end(&world.cpu, &batch);
        }
    }
}

}  // namespace
}  // namespace kmes::tests
