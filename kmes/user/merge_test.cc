// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The merge of all CPUs by time, on rings that the test itself writes: any timestamp at any moment.
#include "kmes/user/merge.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

constexpr uint64_t kCapacity = 1 << 20;
constexpr uint64_t kMappedBytes = 4096 + 2 * kCapacity;
constexpr uint64_t kHourNs = 3600'000'000'000;

// A ring that never wraps.
class Ring {
  public:
    explicit Ring(uint16_t cpu) : cpu_(cpu) {
        static const uint8_t magic[KMES_MAGIC_BYTES] = KMES_MAGIC_INITIALIZER;

        base_ = static_cast<uint8_t*>(mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        kmes_bind_fields(&fields_, base_, KMES_VERSION_1);
        memcpy(fields_.magic, magic, sizeof(magic));
        *fields_.version = KMES_VERSION_1;
        *fields_.capacity = kCapacity;
        *fields_.data_offset = kmes_data_offset_bytes(KMES_VERSION_1);
    }
    ~Ring() { munmap(base_, kMappedBytes); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    void emit(uint64_t timestamp_ns, uint32_t payload_len = 0) {
        kmes_event_input input = {};
        kmes_event_header header;
        uint8_t* to = fields_.data + written_;

        input.type = "t";
        input.type_len = 1;
        input.payload_len = payload_len;  // zeros
        kmes_event_header_build(&header, &input, timestamp_ns, ++sequence_, cpu_);
        memcpy(to, &header, KMES_EVENT_FIXED_BYTES);
        to[KMES_EVENT_FIXED_BYTES] = 't';
        written_ += header.event_size;
        ASSERT_LE(written_, kCapacity);
        __atomic_store_n(fields_.write_pos, written_, __ATOMIC_SEQ_CST);
    }
    void* base() const { return base_; }
    // Makes `next` the buffer that follows this one, with the next sequence number.
    void retire(Ring* next) {
        next->sequence_ = sequence_;
        *next->fields_.generation = ++*fields_.generation;
    }
    // The CPU in the header of later events.
    void name_cpu(uint16_t cpu) { cpu_ = cpu; }

  private:
    uint8_t* base_;
    kmes_fields fields_ = {};
    uint64_t written_ = 0;
    uint64_t sequence_ = 0;
    uint16_t cpu_;
};

struct Merged {
    uint64_t timestamp;
    unsigned cpu;
    uint64_t sequence;
    bool is_out_of_order;
};

class MergeTest : public testing::Test {
  protected:
    void TearDown() override { close(); }

    void close() {
        kmes_merge_close(merge_);
        kmes_reader_set_close(set_);
        merge_ = nullptr;
        set_ = nullptr;
        rings_.clear();
        next_rings_.clear();
        merged_.clear();
    }
    void open(unsigned cpus, const kmes_merge_options& options) {
        kmes_reader_set_options set_options = {};

        close();
        for (unsigned cpu = 0; cpu < cpus; cpu++)
            rings_.push_back(std::make_unique<Ring>(static_cast<uint16_t>(cpu)));
        set_options.configure = configure;
        set_options.cpus = [](void* context) {
            return static_cast<int>(static_cast<MergeTest*>(context)->rings_.size());
        };
        set_options.context = this;
        ASSERT_EQ(0, kmes_reader_set_open(&set_, &set_options));
        ASSERT_EQ(0, kmes_merge_open(&merge_, set_, &options));
    }
    static void configure(void* context, kmes_reader_config* config, __u16 cpu) {
        EXPECT_EQ(cpu, config->cpu_id);
        config->platform = kmes_user_platform();
        config->attach_functions.context = context;
        config->attach_functions.attach = attach;
        config->attach_functions.identify = attach;
        config->attach_functions.detach = [](void*, kmes_mapping*) {};
    }
    static int attach(void* context, __u16 cpu, kmes_mapping* mapping) {
        *mapping = {};
        const auto* self = static_cast<MergeTest*>(context);
        const Ring* ring = self->rings_[cpu].get();

        if (cpu == 0 && !self->next_rings_.empty()) ring = self->next_rings_.back().get();
        mapping->base = ring->base();
        mapping->mapped_bytes = kMappedBytes;
        mapping->inode = reinterpret_cast<uintptr_t>(ring);
        return 0;
    }

    // False: no event is due.
    bool next() {
        kmes_event_view view;
        bool is_out_of_order = false;
        const int found = kmes_merge_next(merge_, &view, &is_out_of_order);

        EXPECT_LE(0, found);
        if (found != KMES_READ_EVENT) return false;
        EXPECT_EQ('t', *view.type);
        merged_.push_back({view.timestamp, view.cpu_id, view.sequence, is_out_of_order});
        EXPECT_EQ(view.sequence, kmes_merge_get_place(merge_, view.cpu_id).last_sequence);
        return true;
    }
    void drain() {
        while (next()) {
        }
    }
    std::string stamps() {
        std::string text;

        for (const Merged& event : merged_)
            text += (text.empty() ? "" : " ") + std::to_string(event.timestamp) +
                    (event.is_out_of_order ? "!" : "");
        merged_.clear();
        return text;
    }

    // CPU 0 gets a new buffer, which is returned.
    Ring* replace() {
        Ring* before = next_rings_.empty() ? rings_[0].get() : next_rings_.back().get();

        next_rings_.push_back(std::make_unique<Ring>(uint16_t{0}));
        before->retire(next_rings_.back().get());
        return next_rings_.back().get();
    }

    std::vector<std::unique_ptr<Ring>> rings_;
    std::vector<std::unique_ptr<Ring>> next_rings_;  // later buffers of CPU 0
    kmes_reader_set* set_ = nullptr;
    kmes_merge* merge_ = nullptr;
    std::vector<Merged> merged_;
};

kmes_merge_options holding(uint64_t hold_ns, uint64_t most_bytes = 0) {
    return {hold_ns, most_bytes};
}

// Longer than the time since the Unix epoch, so that the age of a timestamp makes no event due.
constexpr uint64_t kForEver = UINT64_MAX / 2;

TEST_F(MergeTest, EventComesAtOnceWhereEveryCpuHasALaterOne) {
    open(2, holding(kForEver));
    rings_[0]->emit(10);
    rings_[0]->emit(30);
    drain();
    EXPECT_EQ("", stamps());
    rings_[1]->emit(20);
    drain();
    EXPECT_EQ("10 20", stamps());
    EXPECT_EQ(0, kmes_merge_wait(merge_, 0) == 1) << "30 is held";
    kmes_merge_flush(merge_);
    drain();
    EXPECT_EQ("30", stamps());
    EXPECT_EQ(0u, kmes_merge_get_statistics(merge_).out_of_order);
}

// A hostile producer names another CPU, or none of them.
TEST_F(MergeTest, TheCpuOfAnEventIsThatOfItsRing) {
    open(2, holding(kForEver));
    rings_[0]->name_cpu(1);
    rings_[1]->name_cpu(77);
    rings_[0]->emit(10);
    rings_[1]->emit(20);
    kmes_merge_flush(merge_);
    drain();
    ASSERT_EQ(2u, merged_.size());
    EXPECT_EQ(0u, merged_[0].cpu);
    EXPECT_EQ(1u, merged_[1].cpu);
}

// As the merge. `configure` does not have to set the CPU.
TEST_F(MergeTest, TheSetReportsTheCpuOfTheRing) {
    kmes_event_view view;

    open(2, holding(kForEver));
    rings_[1]->name_cpu(0);
    rings_[1]->emit(10);
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_next(set_, &view));
    EXPECT_EQ(1u, view.cpu_id);
    rings_[1]->emit(20);
    ASSERT_EQ(KMES_READ_EVENT, kmes_reader_set_peek(set_, &view));
    EXPECT_EQ(1u, view.cpu_id);
}

// The set is ahead of the merge: it has read the next buffer while the merge holds events.
TEST_F(MergeTest, TheBufferIsThatOfTheDeliveredEvent) {
    open(2, holding(kForEver));
    const kmes_reader_buffer* buffer = kmes_merge_buffer(merge_, 0);

    ASSERT_NE(nullptr, buffer);
    EXPECT_EQ(nullptr, kmes_merge_buffer(merge_, 2));
    rings_[0]->emit(10);
    rings_[0]->emit(30);
    drain();
    replace()->emit(40);
    drain();
    replace()->emit(50);
    drain();
    EXPECT_EQ(2u, kmes_reader_set_statistics(set_, 0).switches);
    EXPECT_EQ("", stamps());
    EXPECT_EQ(0u, buffer->generation) << "no event was delivered";
    kmes_merge_flush(merge_);
    for (const unsigned switches : {0u, 0u, 1u, 2u}) {
        ASSERT_TRUE(next());
        EXPECT_EQ(switches, buffer->switches);
        EXPECT_EQ(switches, buffer->generation);
    }
    EXPECT_EQ("10 30 40 50", stamps());
    EXPECT_EQ(0u, kmes_merge_buffer(merge_, 1)->switches);
}

TEST_F(MergeTest, EqualTimestampsComeInTheOrderOfTheirCpus) {
    open(3, holding(kForEver));
    for (const unsigned cpu : {2, 0, 1}) {
        rings_[cpu]->emit(5);
        rings_[cpu]->emit(5);
    }
    kmes_merge_flush(merge_);
    drain();
    ASSERT_EQ(6u, merged_.size());
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_EQ(i / 2, merged_[i].cpu);
        EXPECT_FALSE(merged_[i].is_out_of_order);
    }
}

TEST_F(MergeTest, IdleCpuStallsNobody) {
    open(3, holding(1'000'000));
    rings_[1]->emit(kmes_clock_realtime_ns());
    const int count = kmes_merge_poll(
        merge_, KMES_NO_TIMEOUT, [](void*, const kmes_event_view*, bool) { return 0; }, nullptr);

    EXPECT_EQ(1, count);
    rings_[1]->emit(kmes_clock_realtime_ns() + kHourNs);  // its clock is incorrect
    EXPECT_TRUE(comes_true([this] { return next(); }));
    EXPECT_EQ(KMES_NO_TIMEOUT, kmes_merge_due_ns(merge_));
}

TEST_F(MergeTest, LateEventComesAtOnceAndIsOutOfOrder) {
    open(2, holding(kForEver));
    rings_[0]->emit(100);
    kmes_merge_flush(merge_);
    drain();
    rings_[1]->emit(50);
    rings_[1]->emit(100);
    rings_[1]->emit(101);
    drain();
    EXPECT_EQ("100 50!", stamps()) << "CPU 0 may have a second event of 100";
    EXPECT_EQ(1u, kmes_merge_get_statistics(merge_).out_of_order);
}

TEST_F(MergeTest, SmallStepBackKeepsItsPlace) {
    open(2, holding(1000));
    rings_[0]->emit(5000);
    rings_[0]->emit(4500);
    rings_[0]->emit(5100);
    rings_[1]->emit(4800);
    rings_[1]->emit(5050);
    rings_[1]->emit(6000);
    drain();
    EXPECT_EQ("4800 5000 4500! 5050 5100 6000", stamps());
}

TEST_F(MergeTest, OrderBeginsAnewAfterALargeStepBack) {
    open(2, holding(1000));
    for (auto& ring : rings_) {
        ring->emit(9000);
        ring->emit(100);
        ring->emit(300);
    }
    drain();
    EXPECT_EQ("9000 9000 100! 100 300 300", stamps());
}

// A CPU that is busy after the step must not hold back the event that an idle CPU stamped before
// it. Nor may that event make every later one late.
TEST_F(MergeTest, EventFromBeforeTheStepPrecedesTheNewOrder) {
    open(2, holding(1000));
    rings_[0]->emit(9000);
    rings_[0]->emit(100);
    rings_[1]->emit(9100);
    drain();
    EXPECT_EQ("9000 9100 100!", stamps());
    rings_[0]->emit(200);
    drain();
    EXPECT_EQ("200", stamps());
}

// The clock of one CPU went back, those of the others did not.
TEST_F(MergeTest, CpuWhoseClockStaysDelaysNobodyForEver) {
    unsigned of_cpu_0 = 0;

    open(2, holding(1'000'000));
    rings_[0]->emit(kHourNs);
    rings_[0]->emit(100);
    rings_[0]->emit(200);
    for (uint64_t step = 0; of_cpu_0 < 3; step++) {
        rings_[1]->emit(kHourNs + step);
        ASSERT_TRUE(comes_true([this] { return next(); }));
        of_cpu_0 += merged_.back().cpu == 0;
    }
}

TEST_F(MergeTest, MemoryIsBounded) {
    open(2, holding(kForEver, 64 << 10));
    for (unsigned i = 0; i < 20000; i++) rings_[0]->emit(i);
    drain();
    EXPECT_LT(10000u, merged_.size());
    EXPECT_GT(20000u, merged_.size());
    EXPECT_EQ(merged_.size(), kmes_merge_get_statistics(merge_).forced);
    EXPECT_LE(kmes_merge_get_statistics(merge_).held_bytes, 64u << 10);
    kmes_merge_flush(merge_);
    drain();
    EXPECT_EQ(20000u, merged_.size());
    EXPECT_EQ(0u, kmes_merge_get_statistics(merge_).out_of_order);
}

// A copy has views for its own events only.
TEST_F(MergeTest, LargeEventTakesItsOwnMemory) {
    constexpr uint32_t kPayloadBytes = 60'000;
    constexpr uint32_t kEvents = 10;
    open(2, holding(kForEver));
    for (uint32_t i = 0; i < kEvents; i++) rings_[0]->emit(1, kPayloadBytes);
    EXPECT_FALSE(next());
    EXPECT_LT(0u, kmes_merge_get_statistics(merge_).held_bytes);
    EXPECT_GT(kEvents * (kPayloadBytes + 1000), kmes_merge_get_statistics(merge_).held_bytes);
    kmes_merge_flush(merge_);
    drain();
    EXPECT_EQ(kEvents, merged_.size());
    EXPECT_EQ(0u, kmes_merge_get_statistics(merge_).held_bytes);
}

TEST_F(MergeTest, FunctionThatStopsLosesNothing) {
    open(1, {});
    for (unsigned i = 0; i < 5; i++) rings_[0]->emit(i);
    const auto stop = [](void*, const kmes_event_view*, bool) { return -ECANCELED; };
    const auto go_on = [](void*, const kmes_event_view*, bool) { return 0; };

    EXPECT_EQ(-ECANCELED, kmes_merge_poll(merge_, 0, stop, nullptr));
    EXPECT_EQ(4, kmes_merge_poll(merge_, 0, go_on, nullptr));
    EXPECT_EQ(0, kmes_merge_poll(merge_, 0, go_on, nullptr));
}

// Random streams, read at random moments.
struct Stream {
    unsigned cpus;
    bool is_held_for_ever;
    uint64_t most_bytes;
    unsigned steps_back_of_256;  // of a CPU's clock
};

class MergeRandomTest : public MergeTest {
  protected:
    void check_order(const Stream& run, unsigned emitted) {
        std::vector<uint64_t> last(run.cpus, 0);
        bool is_sorted = true;

        ASSERT_EQ(emitted, merged_.size());
        for (size_t i = 0; i < merged_.size(); i++) {
            ASSERT_EQ(last[merged_[i].cpu] + 1, merged_[i].sequence);
            last[merged_[i].cpu]++;
            if (i > 0 && std::tie(merged_[i - 1].timestamp, merged_[i - 1].cpu) >
                             std::tie(merged_[i].timestamp, merged_[i].cpu))
                is_sorted = false;
        }
        if (run.is_held_for_ever && run.most_bytes == 0 && run.steps_back_of_256 == 0) {
            EXPECT_TRUE(is_sorted);
        }
        if (kmes_merge_get_statistics(merge_).out_of_order == 0) {
            EXPECT_TRUE(std::is_sorted(
                merged_.begin(), merged_.end(),
                [](const Merged& a, const Merged& b) { return a.timestamp < b.timestamp; }));
        }
    }
};

TEST_F(MergeRandomTest, NothingIsLostOrRepeatedAndTheOrderHolds) {
    std::mt19937 engine(1);
    const auto random = [&engine] { return static_cast<unsigned>(engine()); };

    for (unsigned i = 0; i < 300; i++) {
        const Stream run = {1u + random() % 6, random() % 2 == 0, random() % 3 ? 0 : 20000u,
                            random() % 2 ? 0u : random() % 30};
        std::vector<uint64_t> clocks(run.cpus, 1'000'000);
        unsigned emitted = 0;

        SCOPED_TRACE(i);
        open(run.cpus,
             holding(run.is_held_for_ever ? kForEver : 1 + random() % 100, run.most_bytes));
        for (unsigned step = 0; step < 400; step++) {
            const unsigned cpu = random() % run.cpus;

            clocks[cpu] += random() % 4;
            if (random() % 256 < run.steps_back_of_256) clocks[cpu] -= random() % 300;
            if (random() % 3) {
                rings_[cpu]->emit(clocks[cpu]);
                emitted++;
            } else {
                for (unsigned left = random() % 5; left > 0 && next();) left--;
            }
        }
        kmes_merge_flush(merge_);
        drain();
        check_order(run, emitted);
    }
}

}  // namespace
}  // namespace kmes
