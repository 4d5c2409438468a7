// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every access of the core is as the index of kmes/order.h says: its strength, its field, and the
 * width of that field. The bytes that are declared valid are those that are delivered. On this
 * machine a wrong order does not fail, and tools rely on the labels.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "kmes/tests/test_reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

struct Rule {
    std::string label;
    kmes_order_kind kind;
    std::string field;
};

const Rule& rule_of(kmes_order_label label) {
#define KMES_RULE(label, access, field) {#label, KMES_ORDER_KIND_##access, #field},
    static const Rule kRules[] = {KMES_ORDER_LABELS(KMES_RULE)};
#undef KMES_RULE
    return kRules[label];
}

struct Field {
    std::size_t offset;
    std::size_t bytes;
};

const std::map<std::string, Field>& fields() {
#define KMES_FIELD(name)                                                     \
    {                                                                        \
        #name, {                                                             \
            offsetof(kmes_metadata_v1, name), sizeof(kmes_metadata_v1::name) \
        }                                                                    \
    }
    static const std::map<std::string, Field> kFields = {
        KMES_FIELD(version),     KMES_FIELD(cpu_id),        KMES_FIELD(capacity),
        KMES_FIELD(data_offset), KMES_FIELD(generation),    KMES_FIELD(write_pos),
        KMES_FIELD(tail_pos),    KMES_FIELD(futex_counter), KMES_FIELD(need_wake)};
#undef KMES_FIELD
    return kFields;
}

bool is_static(const std::string& field) {
    return field == "magic" || field == "version" || field == "capacity" || field == "data_offset";
}

/* The field at an address of a buffer, for a word of this many bytes; "?" if there is none. */
std::string field_at(const RingMemory& memory, const kmes_order_access& access) {
    const auto* at = static_cast<const std::uint8_t*>(access.address);
    if (at >= memory.data())
        return at + access.bytes <= memory.base() + memory.mapped_bytes() ? "data" : "?";
    const auto offset = static_cast<std::size_t>(at - memory.base());
    if (offset < KMES_MAGIC_BYTES && access.bytes == 1) return "magic";
    for (const auto& [name, field] : fields())
        if (field.offset == offset && field.bytes == access.bytes) return name;
    return "?";
}

class Labels : public testing::Test {
  protected:
    /* A buffer that is being made is not in the world yet: only FRESH may access it. */
    const TestBuffer* buffer_at(const void* address) {
        for (const auto& buffer : world.buffers)
            if (buffer->memory.contains(address)) return buffer.get();
        return nullptr;
    }

    void see(const kmes_order_access& access) {
        ASSERT_LT(access.label, KMES_ORDER_LABEL_COUNT);
        const Rule& rule = rule_of(access.label);
        seen.insert(rule.label);
        EXPECT_EQ(access.kind, rule.kind) << rule.label;
        const TestBuffer* buffer = access.address ? buffer_at(access.address) : nullptr;
        if (rule.field == "none") {
            EXPECT_EQ(access.address, nullptr) << rule.label;
        } else if (access.label == KMES_ORDER_FRESH) {
            EXPECT_TRUE(!buffer || field_at(buffer->memory, access) != "?");
        } else {
            ASSERT_NE(buffer, nullptr) << rule.label << ": in none of the buffers";
            const std::string field = field_at(buffer->memory, access);
            if (rule.field == "static_fields")
                EXPECT_TRUE(is_static(field)) << rule.label << " at " << field;
            else
                EXPECT_EQ(field, rule.field) << rule.label;
        }
        if (access.label == KMES_ORDER_VALID_DATA) valid_bytes += access.bytes;
        if (access.label != KMES_ORDER_READ_DATA || words_before_emission == 0) return;
        const bool is_now = --words_before_emission == 0;
        EXPECT_EQ(is_now ? world.emit_sized(128_b) : 0, 0);
    }

    /* Expects that `call` declares this many bytes valid. */
    template <typename Call>
    void expect_valid(std::uint64_t bytes, Call call) {
        valid_bytes = 0;
        call();
        EXPECT_EQ(valid_bytes, bytes);
    }

    World world{{.capacity_bytes = 512_b}};
    std::set<std::string> seen;
    std::uint64_t valid_bytes = 0;
    int words_before_emission = 0; /* of READ_DATA; 0: there is none */
    ScopedHook hook{[this](const kmes_order_access& access) { see(access); }};
};

void all_of_the_producer(World& world) {
    for (int i = 0; i < 40; i++) ASSERT_EQ(world.emit_sized(40_b), 0);
    kmes_event_input input{};
    input.type = "type";
    input.type_len = 4;
    input.payload_len = 7;
    input.header_extra_len = 3;
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    kmes_reservation_fill(&world.cpu, &reservation, 2, "abcde", 5);
    kmes_commit(&world.cpu, &reservation);
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 50_b), 0);
    kmes_batch_end(&world.cpu, &batch);
}

TEST_F(Labels, StandAtTheirFieldAndAreAsStrongAsTheIndexSays) {
    all_of_the_producer(world);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    while (reader.next() == KMES_READ_EVENT) continue;
    reader.reader.config.spin_looks = 1;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 5), -EINTR);
    reader.reader.mapping.needs_barrier = true;
    EXPECT_EQ(kmes_reader_wait(&reader.reader, 5), -EINTR);
    world.cpu.has_light_fence = true;
    *world.current().buffer.shared.need_wake = 1;
    ASSERT_EQ(world.emit_sized(40_b), 0);
    world.cpu.has_light_fence = false;
    TestBuffer& old_buffer = world.current();
    for (const std::uint64_t capacity : {256_b, 512_b}) ASSERT_EQ(world.swap(capacity), 0);
    ASSERT_EQ(kmes_buffer_nudge(&world.cpu, &old_buffer.buffer), 0);
    all_of_the_producer(world);
    while (reader.next() == KMES_READ_EVENT) continue;
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    for (int label = 0; label < KMES_ORDER_LABEL_COUNT; label++) {
        const std::string& name = rule_of(static_cast<kmes_order_label>(label)).label;
        EXPECT_TRUE(seen.count(name)) << name << " was not met here";
    }
}

TEST_F(Labels, ValidIsTheEventThatIsDelivered) {
    for (const std::uint64_t bytes : {30_b, 41_b, 52_b, 63_b, 74_b})
        ASSERT_EQ(world.emit_sized(bytes), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    expect_valid(30_b, [&] { EXPECT_EQ(reader.next(), KMES_READ_EVENT); });
    expect_valid(0, [&] { EXPECT_EQ(kmes_reader_peek(&reader.reader, &reader.view), 1); });
    expect_valid(0, [&] { EXPECT_TRUE(kmes_reader_peek_is_whole(&reader.reader)); });
    expect_valid(41_b, [&] { EXPECT_TRUE(kmes_reader_release(&reader.reader)); });
    kmes_bulk bulk{};
    // A bulk declares its whole copy valid, with the partial event at its end.
    expect_valid(52_b + 52_b, [&] {
        std::uint8_t room[52_b + 63_b];
        EXPECT_EQ(kmes_reader_bulk(&reader.reader, room, sizeof(room), &bulk, nullptr), 1);
        EXPECT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
        EXPECT_EQ(reader.view.event_size, 52_b);
        EXPECT_FALSE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
    });
    expect_valid(63_b, [&] { EXPECT_EQ(reader.next(), KMES_READ_EVENT); });
    expect_valid(0, [&] {
        std::uint8_t room[74_b - 1];
        EXPECT_EQ(kmes_reader_next(&reader.reader, room, sizeof(room), &reader.view), -EMSGSIZE);
    });
    expect_valid(74_b, [&] { EXPECT_EQ(reader.next(), KMES_READ_EVENT); });
}

TEST_F(Labels, ValidIsWhatABulkKeepsOfItsCopy) {
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(128_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_bulk bulk{};
    expect_valid(384_b, [&] {
        words_before_emission = 20;
        EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 512_b, &bulk, nullptr), 1);
    });
}

TEST_F(Labels, NothingIsValidOfAnEventThatWasOverwritten) {
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(128_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &reader.view), KMES_READ_EVENT);
    ASSERT_EQ(world.emit_sized(128_b), 0);
    expect_valid(0, [&] { EXPECT_FALSE(kmes_reader_release(&reader.reader)); });
}

}  // namespace
}  // namespace kmes::tests
