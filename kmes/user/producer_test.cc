// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// Producer: boot phase, emission and its errors, configuration, statistics. One process, one
// thread.
#include "kmes/user/producer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint32_t kFixed = KMES_EVENT_FIXED_BYTES;
constexpr uint32_t kLeast = KMES_EVENT_MIN_BYTES;

constexpr uint64_t k64KiB = 64 << 10;

uint64_t fixed_clock_ns(void*) {
    return 0x0102030405060708;
}

std::vector<Delivered> drained(const Producer& producer, uint16_t cpu = 0) {
    return InProcessReader(producer, cpu).drain();
}

// -- The bytes of an event, by hand from event-model.md ---------------------------------------

TEST(ProducerTest, EventHasTheBytesOfTheSpecification) {
    ProducerOptions options = test_options(3);

    options.clock.now_ns = fixed_clock_ns;
    Producer producer(options);

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.emit(2, "ab", bytes_of("xyz"), 3));

    Attachment attachment;
    const uint8_t header[] = {
        kFixed + 5, 0, 0, 0,              // event_size
        kFixed + 2, 0, 0, 0,              // header_size
        8,          7, 6, 5, 4, 3, 2, 1,  // timestamp
        1,          0, 0, 0, 0, 0, 0, 0,  // sequence
        2,          0,                    // cpu_id
        3,                                // origin_class LCS
    };
    const uint8_t rest[] = {2, 0, 'a', 'b', 'x', 'y', 'z'};            // from type_len on
    const std::vector<uint8_t> guids(kFixed - sizeof(header) - 2, 0);  // of a form that has them

    ASSERT_EQ(0, producer.attach(&attachment));
    ASSERT_EQ(3u, attachment.buffers.size());
    EXPECT_EQ(k64KiB, attachment.capacity_bytes);
    auto* base = static_cast<uint8_t*>(attachment.buffers[2]->base());

    const uint8_t* event = base + KMES_METADATA_BYTES;

    EXPECT_EQ(0, std::memcmp(event, header, sizeof(header)));
    EXPECT_EQ(guids, std::vector<uint8_t>(event + sizeof(header), event + kFixed - 2));
    EXPECT_EQ(0, std::memcmp(event + kFixed - 2, rest, sizeof(rest)));
    EXPECT_EQ(kFixed + 5, base[64]);  // write_pos
    EXPECT_EQ(0, base[72]);           // tail_pos
    EXPECT_EQ(1, base[32]);           // generation of the first ring
}

// -- 5.1.2 ------------------------------------------------------------------------------------

TEST(ProducerTest, BootPhaseCannotBeAttachedTo) {
    Producer producer(test_options(2));
    Attachment attachment;

    EXPECT_EQ(-EAGAIN, producer.attach(&attachment));
    EXPECT_EQ(-EAGAIN, producer.attach(1, &attachment));
    EXPECT_EQ(-EINVAL, producer.attach(2, &attachment));
    EXPECT_EQ(-EAGAIN, producer.resize(k64KiB));
    EXPECT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(1u, producer.statistics().events);
}

TEST(ProducerTest, HandOverKeepsBootEvents) {
    Producer producer(test_options(2));

    for (int i = 0; i < 10; i++)
        ASSERT_EQ(0, producer.emit(1, "boot", bytes_of(std::to_string(i))));
    ASSERT_EQ(0, producer.registry_available(2 * k64KiB));
    ASSERT_EQ(0, producer.emit(1, "after"));

    std::vector<Delivered> events = drained(producer, 1);

    ASSERT_EQ(11u, events.size());
    for (size_t i = 0; i < 10; i++) {
        EXPECT_EQ(i + 1, events[i].sequence);
        EXPECT_EQ(std::to_string(i), events[i].payload);
    }
    EXPECT_EQ(11u, events[10].sequence);
    EXPECT_TRUE(drained(producer, 0).empty());
    EXPECT_EQ(2u, producer.statistics().swaps);
    EXPECT_EQ(0u, producer.retired_buffers());  // boot buffers are discarded
    EXPECT_EQ(-EALREADY, producer.registry_available(k64KiB));
    EXPECT_EQ(-EALREADY, producer.start_without_registry());
}

TEST(ProducerTest, FullBootBufferKeepsTheNewest) {
    ProducerOptions options = test_options();

    options.boot_capacity_bytes = 4096;
    Producer producer(options);

    for (int i = 0; i < 100; i++)
        ASSERT_EQ(0, producer.emit(0, "t", bytes_of(std::string(100 - kLeast, 'x'))));
    ASSERT_EQ(0, producer.start_without_registry());

    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(40u, events.size());  // 100 bytes each in 4096
    EXPECT_EQ(61u, events.front().sequence);
    EXPECT_EQ(100u, events.back().sequence);
    EXPECT_EQ(60u, producer.statistics().overwritten);
}

TEST(ProducerTest, NonsenseFromTheRegistryLeavesTheDefault) {
    Producer producer(test_options());
    Attachment attachment;

    EXPECT_EQ(-EINVAL, producer.registry_available(100000));
    ASSERT_EQ(0, producer.attach(&attachment));
    EXPECT_EQ(k64KiB, attachment.capacity_bytes);

    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(1u, events.size());
    EXPECT_EQ("kmes.config.refused", events[0].type);
    EXPECT_EQ(KMES_ORIGIN_KMES, events[0].origin);
    EXPECT_NE(std::string::npos, events[0].payload.find("BufferCapacity 100000"));
}

// -- Emission and its errors (event-model.md, kmes_emit) -----------------------------------------

TEST(ProducerTest, BadCallsWriteNothing) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(-EINVAL, producer.emit(0, ""));
    EXPECT_EQ(-EINVAL, producer.emit(1, "t"));
    EXPECT_EQ(-EINVAL, producer.emit(0, "\xff"));
    EXPECT_EQ(-EINVAL, producer.emit(0, "\xc0\x80"));
    EXPECT_EQ(-EINVAL, producer.emit(0, std::string(65536, 't')));
    EXPECT_EQ(-EINVAL, producer.emit_in_kernel(0, ""));
    EXPECT_EQ(0u, producer.statistics().events);
    ASSERT_EQ(0, producer.emit(0, "\xc3\xa4"));
    EXPECT_EQ(1u, drained(producer)[0].sequence);
}

TEST(ProducerTest, EmitCallOverHalfUsesNoNumber) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(0, producer.emit(0, "t", bytes_of(std::string(32768 - kLeast, 'x'))));
    EXPECT_EQ(-ENOSPC, producer.emit(0, "t", bytes_of(std::string(32768 - kFixed, 'x'))));
    EXPECT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(2u, drained(producer).back().sequence);
    EXPECT_EQ(0u, producer.statistics().dropped);
}

TEST(ProducerTest, InKernelOverHalfUsesANumberAndIsCounted) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(-ENOSPC, producer.emit_in_kernel(0, "t", bytes_of(std::string(32768 - kFixed, 'x'))));
    ASSERT_EQ(0, producer.emit(0, "t"));

    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(2u, events.size());
    EXPECT_EQ(3u, events[1].sequence);
    EXPECT_EQ(1u, events[1].lost_before);
    EXPECT_EQ(1u, producer.statistics().dropped);
}

TEST(ProducerTest, MaxEventSizeIsForEmitCallsAlone) {
    ProducerOptions options = test_options();

    options.max_event_bytes = 1024;
    Producer producer(options);

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(0, producer.emit(0, "t", bytes_of(std::string(1024 - kLeast, 'x'))));
    EXPECT_EQ(-ENOSPC, producer.emit(0, "t", bytes_of(std::string(1024 - kFixed, 'x'))));
    EXPECT_EQ(0, producer.emit_in_kernel(0, "t", bytes_of(std::string(1024 - kFixed, 'x'))));
    EXPECT_EQ(0, producer.set_max_event_bytes(2048));
    EXPECT_EQ(0, producer.emit(0, "t", bytes_of(std::string(1024 - kFixed, 'x'))));
}

TEST(ProducerTest, BadMaxEventSizesAreRefusedAndReported) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    for (uint64_t bytes : {uint64_t{0}, uint64_t{1023}, uint64_t{(4 << 20) + 1}, UINT64_MAX})
        EXPECT_EQ(-EINVAL, producer.set_max_event_bytes(bytes));
    for (const Delivered& event : drained(producer)) {
        EXPECT_EQ("kmes.config.refused", event.type);
        EXPECT_NE(std::string::npos, event.payload.find("MaxEventSize")) << event.payload;
        EXPECT_NE(std::string::npos, event.payload.find("65536 stays")) << event.payload;
    }
    EXPECT_EQ(4u, drained(producer).size());
}

// -- Batches ----------------------------------------------------------------------------------

TEST(ProducerTest, CallBatchStopsAtTheFirstBadEntry) {
    Producer producer(test_options());
    std::string large(40000, 'x');
    std::vector<BatchEntry> entries = {
        {"a", {}}, {"b", bytes_of("2")}, {"c", bytes_of(large)}, {"d", {}}};
    size_t emitted = 99;

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(-ENOSPC, producer.emit_batch(0, entries, &emitted));
    EXPECT_EQ(2u, emitted);
    entries[2] = {"", {}};
    EXPECT_EQ(-EINVAL, producer.emit_batch(0, entries, &emitted));
    EXPECT_EQ(2u, emitted);

    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(4u, events.size());
    EXPECT_EQ(4u, events[3].sequence);
    EXPECT_EQ(events[0].timestamp, events[1].timestamp);  // one for each batch
}

TEST(ProducerTest, BatchesHave1To256Entries) {
    Producer producer(test_options());
    std::vector<BatchEntry> entries(257, BatchEntry{"t", {}});
    size_t emitted = 99;

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(-EINVAL, producer.emit_batch(0, {}, &emitted));
    EXPECT_EQ(0u, emitted);
    EXPECT_EQ(-EINVAL, producer.emit_batch(0, entries, &emitted));
    EXPECT_EQ(-EINVAL, producer.emit_batch_in_kernel(0, entries, &emitted));
    entries.pop_back();
    EXPECT_EQ(-EINVAL, producer.emit_batch(1, entries, &emitted));
    EXPECT_EQ(0u, producer.statistics().events);
    EXPECT_EQ(0, producer.emit_batch(0, entries, &emitted));
    EXPECT_EQ(256u, emitted);
}

TEST(ProducerTest, KernelBatchGoesOnAfterADrop) {
    Producer producer(test_options());
    std::string large(40000, 'x');
    std::vector<BatchEntry> entries = {{"a", {}}, {"b", bytes_of(large)}, {"c", {}}};
    size_t emitted = 99;

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(0, producer.emit_batch_in_kernel(0, entries, &emitted));
    EXPECT_EQ(2u, emitted);

    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(2u, events.size());
    EXPECT_EQ(3u, events[1].sequence);
    EXPECT_EQ(1u, producer.statistics().dropped);
}

// -- In place ---------------------------------------------------------------------------------

TEST(ProducerTest, ReservationIsPublishedByCommitAlone) {
    Producer producer(test_options());
    Reservation reservation;

    ASSERT_EQ(0, producer.start_without_registry());
    InProcessReader reader(producer, 0);

    ASSERT_EQ(0, producer.reserve(0, "t", 4, &reservation));
    EXPECT_EQ(4u, reservation.payload().size());
    reservation.fill(0, bytes_of("abcd"));
    reservation.fill(2, bytes_of("XYZ"));  // bytes past the payload are not written
    EXPECT_TRUE(reader.drain().empty());
    reservation.commit();
    EXPECT_FALSE(reservation.is_open());

    std::vector<Delivered> events = reader.drain();

    ASSERT_EQ(1u, events.size());
    EXPECT_EQ("abXY", events[0].payload);
}

TEST(ProducerTest, AbandonedReservationLeavesNoTrace) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.start_without_registry());
    {
        Reservation reservation;

        ASSERT_EQ(0, producer.reserve(0, "t", 100, &reservation));
        EXPECT_EQ(-EBUSY, producer.reserve(0, "t", 1, &reservation));
    }
    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(1u, drained(producer)[0].sequence);
}

// A resize inside a reservation would wait for its own thread. It is rejected before it changes any
// CPU.
TEST(ProducerTest, ResizeInsideAReservationIsRefusedWhole) {
    for (EmitterMode mode : {EmitterMode::kLocked, EmitterMode::kSingle}) {
        ProducerOptions options = test_options(2);

        options.emitters = mode;
        Producer producer(options);
        Reservation reservation;
        Attachment before, after;

        ASSERT_EQ(0, producer.start_without_registry());
        ASSERT_EQ(0, producer.attach(&before));
        ASSERT_EQ(0, producer.reserve(1, "t", 1, &reservation));
        EXPECT_EQ(-EBUSY, producer.resize(k64KiB));
        EXPECT_EQ(-EBUSY, producer.set_max_event_bytes(2048));
        EXPECT_THROW(producer.retire(), std::system_error);
        reservation.commit();
        ASSERT_EQ(0, producer.attach(&after));
        EXPECT_EQ(before.buffers[0], after.buffers[0]);
        EXPECT_EQ(0, producer.resize(k64KiB));
    }
}

// -- Resize -----------------------------------------------------------------------------------

TEST(ProducerTest, InvalidCapacitiesAreRefusedWhole) {
    Producer producer(test_options());
    Attachment before, after;

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&before));
    for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{32768}, uint64_t{65535},
                           uint64_t{65537}, uint64_t{196608}, uint64_t{512} << 20, UINT64_MAX})
        EXPECT_EQ(-EINVAL, producer.resize(bytes)) << bytes;
    ASSERT_EQ(0, producer.attach(&after));
    EXPECT_EQ(before.buffers[0], after.buffers[0]);
    EXPECT_EQ(k64KiB, after.capacity_bytes);
    EXPECT_EQ(1, static_cast<uint8_t*>(after.buffers[0]->base())[32]);  // generation
    EXPECT_EQ(8u, drained(producer).size());
    for (const Delivered& event : drained(producer)) {
        EXPECT_EQ("kmes.config.refused", event.type);
        EXPECT_NE(std::string::npos, event.payload.find("65536 stays")) << event.payload;
    }
}

TEST(ProducerTest, FailedAllocationLeavesEverythingAsItWas) {
    int left = 1000;
    ProducerOptions options = test_options(3);

    options.allocate = [&left](const BufferOptions& memory) {
        if (left-- <= 0) throw std::system_error(ENOMEM, std::generic_category(), "planted");
        return BufferMemory::create(memory);
    };
    Producer producer(options);
    Attachment before, after;

    left = 2;
    EXPECT_EQ(-ENOMEM, producer.start_without_registry());
    EXPECT_EQ(-EAGAIN, producer.attach(&before));  // still the boot phase
    left = 1000;
    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&before));
    size_t descriptors = open_descriptors();

    for (int fails_at = 0; fails_at < 3; fails_at++) {
        left = fails_at;
        EXPECT_EQ(-ENOMEM, producer.resize(2 * k64KiB));
    }
    EXPECT_EQ(descriptors, open_descriptors());
    ASSERT_EQ(0, producer.attach(&after));
    EXPECT_EQ(k64KiB, after.capacity_bytes);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ(before.buffers[i], after.buffers[i]);
        EXPECT_EQ(1, static_cast<uint8_t*>(after.buffers[i]->base())[32]);  // generation
    }
    std::vector<Delivered> events = drained(producer);

    ASSERT_EQ(4u, events.size());
    for (const Delivered& event : events) {
        EXPECT_EQ("kmes.resize.failed", event.type);
        EXPECT_EQ(KMES_ORIGIN_KMES, event.origin);
    }
    EXPECT_NE(std::string::npos, events[3].payload.find("131072")) << events[3].payload;
    left = 1000;
    EXPECT_EQ(0, producer.resize(2 * k64KiB));
}

// E11: the three ways in which the positions of the new buffer may begin.
TEST(ProducerTest, PositionsOfANewBufferFollowTheSetting) {
    const struct {
        enum kmes_swap_positions positions;
        uint64_t shift_bytes;
    } rows[] = {{KMES_SWAP_KEEP, 0}, {KMES_SWAP_ZERO, 0}, {KMES_SWAP_SHIFT, 1ull << 40}};

    for (const auto& row : rows) {
        ProducerOptions options = test_options();

        options.positions = row.positions;
        options.position_shift_bytes = row.shift_bytes;
        Producer producer(options);
        Attachment attachment;
        uint64_t write_pos, tail_pos, shifted = 0;

        ASSERT_EQ(0, producer.emit(0, "t"));
        ASSERT_EQ(0, producer.emit(0, "t"));
        ASSERT_EQ(0, producer.start_without_registry());
        shifted += row.shift_bytes;
        ASSERT_EQ(0, producer.resize(2 * k64KiB));
        shifted += row.shift_bytes;
        ASSERT_EQ(0, producer.attach(&attachment));
        std::memcpy(&write_pos, static_cast<uint8_t*>(attachment.buffers[0]->base()) + 64, 8);
        std::memcpy(&tail_pos, static_cast<uint8_t*>(attachment.buffers[0]->base()) + 72, 8);
        EXPECT_EQ(shifted + 2 * kLeast, write_pos);
        EXPECT_EQ(shifted, tail_pos);
        EXPECT_EQ(2u, drained(producer).size());
    }
}

// E21: a reader that stays over many sizes gets every event once.
TEST(ProducerTest, ReaderFollowsEveryResize) {
    Producer producer(test_options());
    std::vector<Delivered> events;
    uint64_t emitted = 0;

    ASSERT_EQ(0, producer.start_without_registry());
    InProcessReader reader(producer, 0);

    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 50; i++)
            ASSERT_EQ(0, producer.emit(0, "t", bytes_of(std::to_string(++emitted))));
        if (round % 3 != 2) {
            ASSERT_EQ(0, producer.resize(k64KiB << (round % 4)));
        }
        for (Delivered& event : reader.drain()) events.push_back(event);
    }
    ASSERT_EQ(emitted, events.size());
    for (size_t i = 0; i < events.size(); i++) {
        EXPECT_EQ(i + 1, events[i].sequence);
        EXPECT_EQ(std::to_string(i + 1), events[i].payload);
    }
    EXPECT_EQ(9u, producer.statistics().swaps);
}

// -- The calls of other address spaces (their rules: kmes/tests/call_test.cc) ---------------------

// A caller whose addresses are offsets in a text.
struct TextMemory {
    std::string text;

    CallerMemory memory() { return {fetch, this}; }
    static int fetch(void* context, void* to, const void* from, __u64 bytes) {
        const std::string& text = static_cast<TextMemory*>(context)->text;
        const auto offset = reinterpret_cast<uint64_t>(from);

        if (offset > text.size() || bytes > text.size() - offset) return -EFAULT;
        std::memcpy(to, text.data() + offset, bytes);
        return 0;
    }
    static const void* at(uint64_t offset) { return reinterpret_cast<const void*>(offset); }
};

TEST(ProducerTest, ServedCallsReadTheCallersMemoryAndTheCurrentMaxEventSize) {
    ProducerOptions options = test_options(2);

    options.max_event_bytes = 1024;
    Producer producer(options);
    TextMemory caller{"type" + std::string(5000, 'p')};
    const CallerMemory memory = caller.memory();

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(0, producer.serve_emit(1, memory, caller.at(0), 4, caller.at(4), 1024 - kFixed - 4));
    EXPECT_EQ(-ENOSPC,
              producer.serve_emit(1, memory, caller.at(0), 4, caller.at(4), 1024 - kFixed - 3));
    EXPECT_EQ(-EFAULT, producer.serve_emit(1, memory, caller.at(5001), 4, caller.at(4), 1));
    EXPECT_EQ(-EINVAL, producer.serve_emit(1, memory, caller.at(0), 0, caller.at(4), 1));
    EXPECT_EQ(-EINVAL, producer.serve_emit(2, memory, caller.at(0), 4, caller.at(4), 1));
    ASSERT_EQ(0, producer.set_max_event_bytes(4096));
    EXPECT_EQ(0, producer.serve_emit(1, memory, caller.at(0), 4, caller.at(4), 4096 - kFixed - 4));

    std::vector<Delivered> events = drained(producer, 1);

    ASSERT_EQ(2u, events.size());
    EXPECT_EQ("type", events[0].type);
    EXPECT_EQ(std::string(1024 - kFixed - 4, 'p'), events[0].payload);
    EXPECT_EQ(std::string(4096 - kFixed - 4, 'p'), events[1].payload);
    EXPECT_EQ(KMES_ORIGIN_USERSPACE, events[1].origin);
    EXPECT_EQ(2u, events[1].sequence);
    EXPECT_EQ(0u, producer.statistics(0).events);
}

TEST(ProducerTest, ServedBatchesStopAtTheFirstBadEntryAndAtTheEnd) {
    Producer producer(test_options());
    TextMemory caller{"type"};
    struct kmes_emit_entry entries[3] = {{caller.at(0), 4, caller.at(1), 3},
                                         {caller.at(0), 2, nullptr, 0},
                                         {caller.at(0), 1, caller.at(4), 1}};
    uint32_t emitted = 99;

    // The payload of the third one is the first byte of the first one.
    caller.text.append(reinterpret_cast<const char*>(entries), sizeof(entries));
    const auto* at = static_cast<const struct kmes_emit_entry*>(caller.at(4));

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(0, producer.serve_emit_batch(0, caller.memory(), at, 3, &emitted));
    EXPECT_EQ(3u, emitted);
    EXPECT_EQ(-EFAULT, producer.serve_emit_batch(0, caller.memory(), at, 4, &emitted));
    EXPECT_EQ(3u, emitted);
    EXPECT_EQ(-EINVAL, producer.serve_emit_batch(1, caller.memory(), at, 3, &emitted));
    EXPECT_EQ(0u, emitted);
    ASSERT_EQ(6u, drained(producer).size());
    EXPECT_EQ("ype", drained(producer)[0].payload);
    EXPECT_EQ("ty", drained(producer)[4].type);
    producer.retire();
    emitted = 99;
    EXPECT_EQ(-ESHUTDOWN, producer.serve_emit_batch(0, caller.memory(), at, 3, &emitted));
    EXPECT_EQ(0u, emitted);
    EXPECT_EQ(-ESHUTDOWN, producer.serve_emit(0, caller.memory(), caller.at(0), 1, nullptr, 0));
}

// The error of a wrong type comes before that of the producer's end, the error of a wrong size
// after it.
TEST(ProducerTest, BatchesOfARetiredProducerAreRefusedWhateverTheirSizeIs) {
    Producer producer(test_options());
    const std::vector<std::byte> large(KMES_CONFIG_EVENT_DEFAULT_BYTES);
    const BatchEntry small_one[] = {{"type", {}}}, large_one[] = {{"type", large}},
                     nameless[] = {{"", {}}};
    size_t emitted = 99;

    ASSERT_EQ(0, producer.start_without_registry());
    EXPECT_EQ(-ENOSPC, producer.emit_batch(0, large_one, &emitted));
    producer.retire();
    EXPECT_EQ(-ESHUTDOWN, producer.emit_batch(0, small_one, &emitted));
    EXPECT_EQ(-ESHUTDOWN, producer.emit_batch(0, large_one, &emitted));
    EXPECT_EQ(-EINVAL, producer.emit_batch(0, nameless, &emitted));
    EXPECT_EQ(0u, emitted);
}

// -- Statistics and options -----------------------------------------------------------------------

TEST(ProducerTest, StatisticsCountByCpuAndInSum) {
    Producer producer(test_options(2));

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.emit(0, "t"));
    ASSERT_EQ(0, producer.emit(1, "type", bytes_of("x")));
    ASSERT_EQ(0, producer.emit(1, "type", bytes_of("x")));
    EXPECT_EQ(1u, producer.statistics(0).events);
    EXPECT_EQ(kLeast, producer.statistics(0).bytes);
    EXPECT_EQ(2u, producer.statistics(1).events);
    EXPECT_EQ(2 * (kFixed + 5), producer.statistics(1).bytes);
    EXPECT_EQ(3u, producer.statistics().events);
    EXPECT_EQ(kLeast + 2 * (kFixed + 5), producer.statistics().bytes);
    EXPECT_EQ(0u, producer.statistics().wakes);
    EXPECT_EQ(0u, producer.statistics(7).events);
}

TEST(ProducerTest, WakesAreCountedWhereOneWasAskedFor) {
    Producer producer(test_options());
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&attachment));
    auto* page = static_cast<uint8_t*>(attachment.buffers[0]->base());

    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(0, page[128]);
    page[KMES_NEED_WAKE_OFFSET] = 1;
    ASSERT_EQ(0, producer.emit(0, "t"));
    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(2, page[128]);  // futex_counter; the flag is the consumer's to clear (E12)
    EXPECT_EQ(1, page[KMES_NEED_WAKE_OFFSET]);
    page[KMES_NEED_WAKE_OFFSET] = 0;
    ASSERT_EQ(0, producer.emit(0, "t"));
    EXPECT_EQ(2, page[128]);
    EXPECT_EQ(2u, producer.statistics().wakes);
    EXPECT_FALSE(attachment.buffers[0]->is_pinned());
}

TEST(ProducerTest, BadOptionsAreRefusedWithTheReason) {
    auto text_of = [](const ProducerOptions& options) -> std::string {
        try {
            Producer producer(options);
        } catch (const std::system_error& error) {
            return error.what();
        }
        return "";
    };
    ProducerOptions options = test_options();

    options.cpus = 0;
    EXPECT_NE(std::string::npos, text_of(options).find("CPUs"));
    options.cpus = 1025;
    EXPECT_NE(std::string::npos, text_of(options).find("1025"));
    options = test_options();
    options.boot_capacity_bytes = 2048;
    EXPECT_NE(std::string::npos, text_of(options).find("boot capacity"));
    options = test_options();
    options.capacity_bytes = 4096;
    EXPECT_NE(std::string::npos, text_of(options).find("default capacity"));
    options = test_options();
    options.max_event_bytes = 1;
    EXPECT_NE(std::string::npos, text_of(options).find("MaxEventSize"));
    options = test_options();
    options.resume.cpus.resize(2);
    EXPECT_NE(std::string::npos, text_of(options).find("resume"));
    EXPECT_EQ("", text_of(test_options()));
}

// E22, through the allocator that the producer uses.
TEST(ProducerTest, DoesNotStartOnOtherPageSizes) {
    ProducerOptions options = test_options();

    options.allocate = [](BufferOptions memory) {
        memory.page_bytes = 16384;
        return BufferMemory::create(memory);
    };
    try {
        Producer producer(options);
        FAIL() << "started";
    } catch (const std::system_error& error) {
        EXPECT_EQ(ENOTSUP, error.code().value());
        EXPECT_NE(std::string::npos, std::string(error.what()).find("E22"));
    }
}

TEST(ProducerTest, ResizesLeaveNothingBehind) {
    Producer producer(test_options(2));

    ASSERT_EQ(0, producer.start_without_registry());
    for (int i = 0; i < 8; i++) ASSERT_EQ(0, producer.resize(k64KiB << (i & 1)));
    size_t descriptors = open_descriptors();
    size_t mappings = mappings_named("memfd:kmes-");

    // Each buffer has two files. Each CPU has the current buffer and four retired ones.
    EXPECT_EQ(8u, producer.retired_buffers());
    for (int i = 0; i < 200; i++) {
        ASSERT_EQ(0, producer.emit(i & 1, "t"));
        ASSERT_EQ(0, producer.resize(k64KiB << (i & 1)));
    }
    EXPECT_EQ(descriptors, open_descriptors());
    EXPECT_EQ(mappings, mappings_named("memfd:kmes-"));
    EXPECT_EQ(200u, producer.statistics().events);
    EXPECT_EQ(100u, drained(producer, 0).size());
}

}  // namespace
}  // namespace kmes
