// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Shows that ThreadSanitizer sees the guarantees of the protocol (order_tsan.h). A producer and a
// reader in two threads pass in their shipped form, and TSan reports each planted race. The race is
// planted in a separate process (this program again), whose exit status and report are checked.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "kmes/order.h"
#include "kmes/user/futex.h"
#include "kmes/user/producer.h"
#include "kmes/user/test_support.h"
#include "kmes/user/under_tsan.h"

#if !KMES_UNDER_TSAN
#error "this test says nothing without ThreadSanitizer: bazel test --config=tsan"
#endif

namespace kmes {
namespace {

constexpr int kReportedStatus = 66;  // the exit status that TSan sets
constexpr uint64_t k64KiB = 64 << 10;

enum class Work {
    kEvents,   // emitted and read one by one; never lapped
    kLaps,     // in a small ring, so that the tail moves
    kBatches,  // batches, read in bulk; never lapped
    kResizes,  // with a resize from time to time
};

// How often the reader has read all that was available. Relaxed, because the wait for it must not
// order what ThreadSanitizer is to see unordered.
struct Meeting {
    std::atomic<uint64_t> passes{0};
    std::atomic<bool> ends{false};
};

// Reads available events, one by one or in bulk, until the end is requested.
void read_until_end(InProcessReader* reader, bool in_bulk, Meeting* meeting) {
    std::vector<uint8_t> copy(k64KiB);
    struct kmes_event_view view;
    struct kmes_bulk bulk;

    while (!meeting->ends.load(std::memory_order_relaxed)) {
        if (!in_bulk) {
            while (kmes_reader_next(&reader->core(), copy.data(), copy.size(), &view) ==
                   KMES_READ_EVENT)
                continue;
        } else if (kmes_reader_bulk(&reader->core(), copy.data(), copy.size(), &bulk, nullptr) ==
                   KMES_READ_EVENT) {
            while (kmes_bulk_next(&reader->core(), &bulk, &view)) continue;
        }
        meeting->passes.fetch_add(1, std::memory_order_relaxed);
    }
}

// Waits until the reader has begun and ended a pass. The two may have one processor, where a reader
// that is not waited for comes after the last event.
void meet(const Meeting& meeting) {
    const uint64_t before = meeting.passes.load(std::memory_order_relaxed);

    while (meeting.passes.load(std::memory_order_relaxed) < before + 2) std::this_thread::yield();
}

void emit_some(Producer* producer, Work work, const Meeting& meeting) {
    const std::vector<BatchEntry> entries(16, BatchEntry{"t", bytes_of("payload")});
    size_t emitted;

    for (int i = 0; i < 4000; i++) {
        if (i % 500 == 0) meet(meeting);
        if (work == Work::kBatches)
            producer->emit_batch(0, entries, &emitted);
        else
            producer->emit(0, "t", bytes_of("payload"));
        if (work == Work::kResizes && i % 400 == 0) producer->resize(k64KiB << (i % 3));
    }
    meet(meeting);
}

// One producer and one reader, at the same time.
void run_once(Work work) {
    ProducerOptions options = test_options();
    Meeting meeting;

    options.capacity_bytes = work == Work::kLaps ? k64KiB : 4 << 20;
    Producer producer(options);

    producer.start_without_registry();
    InProcessReader reader(producer, 0);
    std::thread reading(read_until_end, &reader, work == Work::kBatches, &meeting);

    emit_some(&producer, work, meeting);
    meeting.ends.store(true, std::memory_order_relaxed);
    reading.join();
}

// Repeats the run, because TSan remembers a few accesses of a place only; it ends the process.
int race(Work work) {
    const uint64_t begin = kmes_clock_monotonic_ns();

    dup2(STDOUT_FILENO, STDERR_FILENO);  // the parent reads the report
    while (kmes_clock_monotonic_ns() - begin < patience_ns()) run_once(work);
    return 0;
}

struct Planted {
    const char* name;
    Work work;
    int* label;  // kmes_tsan_plain_label or kmes_tsan_relaxed_label
    enum kmes_order_label value;
    const char* reported;  // a function of the report
};

const Planted kPlanted[] = {
    {"tail", Work::kLaps, &kmes_tsan_plain_label, KMES_ORDER_TAIL, "move_tail"},
    {"generation", Work::kResizes, &kmes_tsan_plain_label, KMES_ORDER_GENERATION, "retire"},
    {"data", Work::kEvents, &kmes_tsan_relaxed_label, KMES_ORDER_PUBLISH, "kmes_reader_next"},
    {"batch", Work::kBatches, &kmes_tsan_relaxed_label, KMES_ORDER_PUBLISH, "kmes_reader_bulk"},
};

TEST(TsanRaceTest, ProducerAndReaderPassAsTheyShip) {
    for (Work work : {Work::kEvents, Work::kLaps, Work::kBatches, Work::kResizes}) {
        for (int i = 0; i < 3; i++) run_once(work);
    }
}

class PlantedRaceTest : public testing::TestWithParam<Planted> {};

TEST_P(PlantedRaceTest, IsReported) {
    Child child({"--race", GetParam().name}, "");
    std::string report = child.rest();

    EXPECT_EQ(kReportedStatus, child.finish());
    EXPECT_NE(std::string::npos, report.find("ThreadSanitizer: data race")) << report;
    EXPECT_NE(std::string::npos, report.find(GetParam().reported)) << report;
}

INSTANTIATE_TEST_SUITE_P(Labels, PlantedRaceTest, testing::ValuesIn(kPlanted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "--race") {
        for (const kmes::Planted& planted : kmes::kPlanted) {
            if (std::string(argv[2]) != planted.name) continue;
            *planted.label = planted.value;
            return kmes::race(planted.work);
        }
        return 2;
    }
    // The first report ends a child, with its own status, whatever the options of this run are.
    const char* options = getenv("TSAN_OPTIONS");

    setenv("TSAN_OPTIONS",
           (std::string(options ? options : "") + ":halt_on_error=1:exitcode=66:history_size=7")
               .c_str(),
           1);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
