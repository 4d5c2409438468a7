// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core as shipped, with real threads, double mappings and futexes: a producer that emits,
 * batches and resizes, and readers in every form. Deliveries must be whole, in order and completely
 * counted, and no reader may sleep on an event.
 */
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/tests/ring_memory.h"

namespace kmes::tests {
namespace {

constexpr std::uint64_t kEvents = 20000;

int sleep_on_word(void*, __u32* word, __u32 expected, __u64 timeout_ns) {
    timespec limit{static_cast<time_t>(timeout_ns / 1000000000),
                   static_cast<long>(timeout_ns % 1000000000)};
    const bool forever = timeout_ns == KMES_NO_TIMEOUT;
    if (syscall(SYS_futex, word, FUTEX_WAIT, expected, forever ? nullptr : &limit, nullptr, 0) == 0)
        return 0;
    return errno == EAGAIN ? 0 : -errno;
}

void wake_all(void*, kmes_buffer* buffer) {
    syscall(SYS_futex, buffer->shared.futex_counter, FUTEX_WAKE, 0x7FFFFFFF, nullptr, nullptr, 0);
}

__u64 count_clock(void* context) {
    return ++*static_cast<std::uint64_t*>(context);
}

/* The buffers of one CPU, and when a reader may attach (E14). */
class Cpu {
  public:
    explicit Cpu(std::uint64_t capacity_bytes) {
        platform_.context = &clock_;
        platform_.clock_ns = count_clock;
        platform_.queue_wake = wake_all;
        kmes_cpu_init(&cpu, 0, make(capacity_bytes, 1), &platform_, 0);
    }

    void swap(std::uint64_t capacity_bytes, enum kmes_swap_positions positions) {
        const std::lock_guard lock(attach_);
        ASSERT_EQ(kmes_swap_run(&cpu, make(capacity_bytes, 0), positions, 77), 0);
        for (std::size_t i = 0; i + 1 < buffers_.size(); i++)  // E19: at every later swap
            ASSERT_EQ(kmes_buffer_nudge(&cpu, &buffers_[i]->buffer), 0);
    }

    static int attach(void* context, __u16, kmes_mapping* mapping) {
        auto* self = static_cast<Cpu*>(context);
        const std::lock_guard lock(self->attach_);
        const Buffer& now = *self->buffers_.back();
        *mapping = {};
        mapping->base = now.memory.base();
        mapping->mapped_bytes = now.memory.mapped_bytes();
        mapping->inode = self->buffers_.size();
        return 0;
    }

    kmes_cpu cpu{};

  private:
    struct Buffer {
        explicit Buffer(std::uint64_t capacity_bytes)
            : memory(capacity_bytes), index(kmes_index_entries(capacity_bytes)) {}
        RingMemory memory;
        std::vector<kmes_boundary> index;
        kmes_buffer buffer{};
    };

    kmes_buffer* make(std::uint64_t capacity_bytes, std::uint64_t generation) {
        buffers_.push_back(std::make_unique<Buffer>(capacity_bytes));
        Buffer& buffer = *buffers_.back();
        kmes_buffer_setup setup{};
        setup.mapping = buffer.memory.base();
        setup.index = buffer.index.data();
        setup.capacity_bytes = capacity_bytes;
        setup.generation = generation;
        setup.version = KMES_VERSION_1;
        EXPECT_EQ(kmes_buffer_init(&buffer.buffer, &setup), 0);
        return &buffer.buffer;
    }

    std::uint64_t clock_ = 0;
    kmes_platform platform_{};
    std::mutex attach_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
};

kmes_event_input event_of(std::uint64_t number, const std::uint8_t* payload) {
    kmes_event_input input{};
    input.type = "t";
    input.type_len = 1;
    input.payload = payload;
    input.payload_len = static_cast<__u32>(number * 37 % 200);
    return input;
}

void emit_all(Cpu& cpu, bool with_swaps) {
    std::uint8_t payload[200];
    kmes_batch batch;
    for (std::uint64_t number = 1; number <= kEvents; number++) {
        memset(payload, static_cast<int>(number & 0xFF), sizeof(payload));
        const kmes_event_input input = event_of(number, payload);
        const bool in_batch = number % 64 >= 40 && number != kEvents;
        if (number % 64 == 40) kmes_batch_begin(&cpu.cpu, &batch);
        if (in_batch)
            ASSERT_EQ(kmes_batch_emit(&cpu.cpu, &batch, &input), 0);
        else
            ASSERT_EQ(kmes_cpu_emit(&cpu.cpu, &input), 0);
        if (number % 64 == 63) kmes_batch_end(&cpu.cpu, &batch);
        if (with_swaps && number % 2500 == 0)
            cpu.swap(number % 5000 ? 4096 : 65536,
                     number % 5000 ? KMES_SWAP_ZERO : KMES_SWAP_SHIFT);
        if (number % 300 == 0) usleep(200);  // readers get to sleep
    }
}

enum class Form { kNext, kPeek, kBulk };

/* Checks one event. Returns false after the last. */
struct Checker {
    std::uint64_t last = 0, delivered = 0, lost = 0;

    void check(const kmes_event_view& view) {
        ASSERT_GT(view.sequence, last) << "doubled or reordered";
        ASSERT_EQ(view.payload_len, view.sequence * 37 % 200) << "torn";
        for (__u32 i = 0; i < view.payload_len; i++)
            ASSERT_EQ(view.payload[i], static_cast<__u8>(view.sequence)) << "torn";
        lost += view.lost_before;
        last = view.sequence;
        delivered++;
    }
};

void read_some(kmes_reader& reader, Form form, Checker& checker) {
    std::uint8_t room[4096];
    kmes_event_view view;
    kmes_bulk bulk;
    if (form == Form::kNext) {
        while (kmes_reader_next(&reader, room, sizeof(room), &view) > 0) checker.check(view);
    } else if (form == Form::kBulk) {
        while (kmes_reader_bulk(&reader, room, sizeof(room), &bulk, nullptr) > 0)
            while (kmes_bulk_next(&reader, &bulk, &view)) checker.check(view);
    } else {
        while (kmes_reader_peek(&reader, &view) > 0) {
            /* Bytes that are used before the release may be torn. They are trusted only afterwards.
             */
            const kmes_event_view seen = view;
            if (!kmes_reader_release(&reader)) continue;
            ASSERT_EQ(seen.payload_len, seen.sequence * 37 % 200);
            checker.lost += seen.lost_before;
            checker.last = seen.sequence;
            checker.delivered++;
        }
    }
}

void read_all(Cpu& cpu, Form form, enum kmes_sharing sharing, std::atomic<int>* opened) {
    kmes_platform platform{};
    platform.sleep = sleep_on_word;
    kmes_reader_config config{};
    config.attach_functions = {Cpu::attach, Cpu::attach, [](void*, kmes_mapping*) {}, &cpu};
    config.platform = &platform;
    config.sharing = sharing;
    kmes_reader reader{};
    Checker checker;
    ASSERT_EQ(kmes_reader_open(&reader, &config), 0);
    opened->fetch_add(1);
    while (checker.last != kEvents && !testing::Test::HasFatalFailure()) {
        read_some(reader, form, checker);
        if (checker.last != kEvents) kmes_reader_wait(&reader, KMES_NO_TIMEOUT);
    }
    EXPECT_EQ(reader.statistics.corrupt, 0u);
    EXPECT_EQ(reader.statistics.delivered, checker.delivered);
    EXPECT_EQ(reader.statistics.lost, checker.lost);
    EXPECT_EQ(checker.delivered + checker.lost, kEvents) << "the ring was empty at the attach";
    kmes_reader_close(&reader);
}

void run(bool with_swaps, const std::vector<Form>& forms) {
    Cpu cpu(16384);
    std::atomic<int> opened{0};
    std::vector<std::thread> readers;
    const auto sharing = forms.size() == 1 ? KMES_EXCLUSIVE : KMES_SHARED;
    for (const Form form : forms)
        readers.emplace_back([&, form] { read_all(cpu, form, sharing, &opened); });
    while (opened != static_cast<int>(forms.size())) usleep(100);
    emit_all(cpu, with_swaps);
    for (std::thread& reader : readers) reader.join();
}

// A lost wake-up leaves a reader asleep forever: then this test does not end.
TEST(Threads, OneReaderOfEachFormSleepsAndIsWokenToTheLastEvent) {
    for (const Form form : {Form::kNext, Form::kPeek, Form::kBulk}) run(false, {form});
}

TEST(Threads, OneReaderOfEachFormSurvivesResizes) {
    for (const Form form : {Form::kNext, Form::kPeek, Form::kBulk}) run(true, {form});
}

TEST(Threads, SeveralReadersShareABuffer) {
    run(true, {Form::kNext, Form::kPeek, Form::kBulk});
}

}  // namespace
}  // namespace kmes::tests
