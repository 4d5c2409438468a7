// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For tests of the emit calls: a caller with its memory, the CPU that it calls, and the platform's
 * critical section. The bytes are those of form A (docs/layouts.md).
 */
#ifndef KMES_TESTS_CALL_FIXTURE_H_
#define KMES_TESTS_CALL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kmes/call.h"
#include "kmes/tests/bytes.h"
#include "kmes/tests/caller_memory.h"
#include "kmes/tests/world.h"

namespace kmes::tests {

using Fetches = std::vector<CallerMemory::Fetch>;

inline constexpr std::uint64_t kType = 0x1000;      // where the caller has its type,
inline constexpr std::uint64_t kPayload = 0x20000;  // its payload,
inline constexpr std::uint64_t kEntries = 0x50000;  // and its entries
inline constexpr std::uint64_t kNowhere = 0xDEAD0000;

inline const void* at(std::uint64_t address) {
    return reinterpret_cast<const void*>(address);
}

/* One caller and the CPU that it calls. */
class CallTest : public testing::Test {
  protected:
    void start(const WorldSetup& setup, std::uint64_t max_event_bytes = 1024) {
        world_ = std::make_unique<World>(setup);
        staging_.assign(max_event_bytes < 4096 ? max_event_bytes : 4096, 'S');
        call_.cpu = &world_->cpu;
        call_.staging = staging_.data();
        call_.max_event_bytes = max_event_bytes;
        call_.fetch = CallerMemory::fetch;
        call_.context = &memory_;
        call_.origin_class = KMES_ORIGIN_USERSPACE;
    }

    void SetUp() override { start({}); }

    int emit(std::uint64_t type, std::uint16_t type_len, std::uint64_t payload,
             std::uint32_t payload_len) {
        return kmes_call_emit(&call_, at(type), type_len, at(payload), payload_len);
    }

    /* Emits with a type of one byte, and a payload that makes the event this many bytes long. */
    int emit_of(std::uint64_t event_bytes) {
        memory_.put(kType, "t");
        memory_.put(kPayload, std::string(event_bytes - 30, 'p'));
        return emit(kType, 1, kPayload, static_cast<std::uint32_t>(event_bytes - 30));
    }

    int batch(std::uint32_t count, std::uint64_t entries = kEntries) {
        emitted_ = 0xABCDEF;
        return kmes_call_emit_batch(&call_, static_cast<const kmes_emit_entry*>(at(entries)), count,
                                    &emitted_);
    }

    /* Puts entry i with the type "t" and a payload of `payload_len` digits i. */
    void put_sound_entry(std::uint32_t i, std::uint32_t payload_len = 2) {
        memory_.put(kType + 16 * i, "t");
        memory_.put(kPayload + 256 * i, std::string(payload_len, digit(i)));
        memory_.put_entry(entry(i), kType + 16 * i, 1, kPayload + 256 * i, payload_len);
    }

    static std::uint64_t entry(std::uint32_t i) { return kEntries + 32 * i; }
    static char digit(std::uint32_t i) { return static_cast<char>('0' + i % 10); }

    /* The bytes of the event of put_sound_entry with 2 bytes of payload, on CPU 0. */
    static Bytes event_bytes(std::uint32_t i, std::uint8_t sequence, std::uint8_t now) {
        const auto value = static_cast<std::uint8_t>(digit(i));

        return {32,       0, 0, 0, 30, 0, 0, 0, now, 0, 0, 0, 0, 0,   0,     0,
                sequence, 0, 0, 0, 0,  0, 0, 0, 0,   0, 0, 1, 0, 't', value, value};
    }

    Bytes sound_events(std::uint32_t count, std::uint8_t now) {
        Bytes all;

        for (std::uint32_t i = 0; i < count; i++)
            all = joined({all, event_bytes(i, static_cast<std::uint8_t>(i + 1), now)});
        return all;
    }

    /* Expects no event, no number, no counter, no wake, and a free critical section. */
    void expect_nothing_happened() {
        const kmes_statistics nothing{};

        EXPECT_EQ(world_->cpu.sequence, 0u);
        EXPECT_EQ(std::memcmp(&world_->cpu.statistics, &nothing, sizeof(nothing)), 0);
        EXPECT_EQ(world_->cpu.nested_missed, 0u);
        EXPECT_EQ(world_->current().shared_write_pos(), 0u);
        EXPECT_EQ(world_->current().buffer.frontier, 0u);
        EXPECT_EQ(world_->current().memory.data_bytes(0, 256), filled(256, 0));
        EXPECT_EQ(world_->cpu.inside, 0u);
    }

    CallerMemory memory_;
    std::unique_ptr<World> world_;
    std::vector<__u8> staging_;
    kmes_call call_{};
    __u32 emitted_ = 0;
};

/* The platform's critical section, observed from outside. */
struct Section {
    World* world = nullptr;
    int depth = 0;
    int entered = 0;
    bool is_closed = false;
    bool is_calling = false;
    std::function<void()>
        on_enter;                  /* before the section is entered: another thread may be inside */
    std::function<void()> on_exit; /* after the section is left */

    void watch(World* of) {
        world = of;
        of->platform.context = this;
        of->platform.enter = [](void* context) {
            auto* self = static_cast<Section*>(context);

            self->called(self->on_enter);
            if (self->is_closed) return false;
            self->depth++;
            self->entered++;
            return true;
        };
        of->platform.exit = [](void* context) {
            auto* self = static_cast<Section*>(context);

            self->depth--;
            self->called(self->on_exit);
        };
        of->platform.clock_ns = [](void* context) -> __u64 {
            return static_cast<Section*>(context)->world->now_ns;
        };
        of->platform.queue_wake = [](void* context, kmes_buffer* buffer) {
            static_cast<Section*>(context)->world->wakes.push_back(buffer);
        };
    }

    /* Calls the function once, and does not report what it causes itself. */
    void called(std::function<void()>& function) {
        if (is_calling || !function) return;
        is_calling = true;
        std::exchange(function, nullptr)();
        is_calling = false;
    }
};

}  // namespace kmes::tests

#endif  // KMES_TESTS_CALL_FIXTURE_H_
