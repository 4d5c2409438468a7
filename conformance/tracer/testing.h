// SPDX-License-Identifier: MIT
//
// For the tracer's tests: buffers made of memfds, a run with a handler that serves them, and the
// usual waits.

#ifndef CONFORMANCE_TRACER_TESTING_H_
#define CONFORMANCE_TRACER_TESTING_H_

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance::tracer_testing {

// A generous limit for a wait that hangs, never a measure of speed.
inline TimePoint limit() {
    const char* scale = getenv("KMES_TIMEOUT_SCALE");
    // Bazel may pass on an empty value.
    const double factor = scale != nullptr && atof(scale) > 0 ? atof(scale) : 1.0;
    const double seconds = 60 * factor;
    return Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// A program of the tests: from the runfiles, or from the folder named in the environment.
inline std::string testdata(const std::string& name) {
    const char* folder = getenv("KMES_TRACER_TESTDATA");
    return std::string(folder != nullptr ? folder : "conformance/tracer/testdata") + "/" + name;
}

// A served buffer and the runner's own mapping of it. Byte 5 of the data is 42.
class TestBuffer {
  public:
    explicit TestBuffer(uint64_t capacity_bytes = 65536, uint64_t metadata_bytes = kPageBytes)
        : capacity_bytes_(capacity_bytes), metadata_bytes_(metadata_bytes) {
        metadata_fd_ = memfd_create("metadata", MFD_CLOEXEC);
        data_fd_ = memfd_create("data", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(metadata_fd_, static_cast<off_t>(metadata_bytes + 2 * capacity_bytes)),
                  0);
        EXPECT_EQ(ftruncate(data_fd_, static_cast<off_t>(capacity_bytes)), 0);
        metadata_ = map(metadata_fd_, metadata_bytes);
        data_ = map(data_fd_, capacity_bytes);
        data_[5] = 42;
    }
    ~TestBuffer() {
        munmap(metadata_, metadata_bytes_);
        munmap(data_, capacity_bytes_);
        close(metadata_fd_);
        close(data_fd_);
    }
    TestBuffer(const TestBuffer&) = delete;
    TestBuffer& operator=(const TestBuffer&) = delete;

    ServedBuffer served() const {
        return {metadata_fd_, data_fd_, false, capacity_bytes_, 0, metadata_bytes_};
    }
    uint8_t* metadata() const { return metadata_; }
    uint8_t* data() const { return data_; }
    uint32_t* word() const { return reinterpret_cast<uint32_t*>(metadata_ + kFutexWordOffset); }
    // Adds one to the futex word and wakes. Returns the number of woken threads.
    int wake() const {
        __atomic_fetch_add(word(), 1, __ATOMIC_RELEASE);
        return static_cast<int>(
            syscall(SYS_futex, word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0));
    }

  private:
    static uint8_t* map(int fd, size_t size_bytes) {
        void* at = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        EXPECT_NE(at, MAP_FAILED);
        return static_cast<uint8_t*>(at);
    }

    uint64_t capacity_bytes_;
    uint64_t metadata_bytes_;
    int metadata_fd_ = -1;
    int data_fd_ = -1;
    uint8_t* metadata_ = nullptr;
    uint8_t* data_ = nullptr;
};

// The exit status of the testee for a mode that this machine does not permit.
inline constexpr int kNotPossibleHere = 77;

// For tests that hold in both ways of interception.
inline TracerOptions options_for(Interception interception) {
    TracerOptions options;
    options.interception = interception;
    return options;
}
inline std::string name_of(const testing::TestParamInfo<Interception>& info) {
    return info.param == Interception::kSeccomp ? "Seccomp" : "EveryCall";
}
inline const auto kBothWays = testing::Values(Interception::kSeccomp, Interception::kEveryCall);

// A tracer with some buffers, which every attach returns.
class TestRun {
  public:
    explicit TestRun(TracerOptions options = {}, size_t buffer_count = 2,
                     uint64_t metadata_bytes = kPageBytes)
        : tracer(std::move(options)) {
        for (size_t i = 0; i < buffer_count; ++i) {
            buffers.push_back(std::make_unique<TestBuffer>(65536, metadata_bytes));
            ServedBuffer served = buffers.back()->served();
            served.takes_only_whole_mapping = metadata_bytes > kPageBytes;
            ids.push_back(tracer.add_buffer(served));
        }
        tracer.handlers().attach = [this](const AttachRequest&) {
            return AttachAnswer{0, ids, 65536};
        };
    }

    void start(const std::string& mode, const std::string& program = "testee") {
        tracer.start({testdata(program), mode});
    }

    // Returns the next event of type T and drops others. Returns nothing, with a failure, if the
    // run ends.
    template <typename T>
    std::optional<T> next() {
        const TimePoint deadline = limit();
        for (;;) {
            TracerEvent event = tracer.wait(deadline);
            if (auto* wanted = std::get_if<T>(&event)) return *wanted;
            if (auto* trouble = std::get_if<TracerTrouble>(&event)) ADD_FAILURE() << trouble->what;
            if (auto* ended = std::get_if<Ended>(&event)) {
                ADD_FAILURE() << "ended: " << ended->text << "\n"
                              << tracer.output().standard_error();
                return std::nullopt;
            }
            if (std::holds_alternative<TimedOut>(event)) {
                ADD_FAILURE() << "nothing happened";
                return std::nullopt;
            }
        }
    }

    // Starts the testee, and guards these pages of the first mapping as soon as it exists. Returns
    // nothing if that failed.
    std::optional<Mapped> start_guarded(const std::string& mode, uint64_t first_page,
                                        uint64_t page_count,
                                        const std::string& program = "testee") {
        start(mode, program);
        std::optional<Mapped> mapped = next<Mapped>();
        if (mapped && !tracer.guards().add(mapped->mapping.id, first_page, page_count))
            return std::nullopt;
        return mapped;
    }

    // Runs the testee to its end. Calls `see` with every event before it.
    Ended finish(const std::function<void(const TracerEvent&)>& see = nullptr) {
        const TimePoint deadline = limit();
        for (;;) {
            TracerEvent event = tracer.wait(deadline);
            if (auto* ended = std::get_if<Ended>(&event)) return *ended;
            if (auto* trouble = std::get_if<TracerTrouble>(&event)) ADD_FAILURE() << trouble->what;
            if (std::holds_alternative<TimedOut>(event)) {
                ADD_FAILURE() << "it does not end";
                tracer.kill_all();
                continue;
            }
            if (see) see(event);
        }
    }

    // Waits until the testee as a whole sleeps for good.
    Inspection until_asleep() {
        const TimePoint deadline = limit();
        for (;;) {
            Inspection inspection = tracer.inspect();
            if (inspection.all_blocked_for_good || Clock::now() > deadline) return inspection;
            const TracerEvent event = tracer.wait(Clock::now() + std::chrono::milliseconds(2));
            if (std::holds_alternative<Ended>(event)) return inspection;
        }
    }

    Tracer tracer;
    std::vector<std::unique_ptr<TestBuffer>> buffers;
    std::vector<BufferId> ids;
};

// For an act in the middle of a wait that has failed. Returns the end of the wait, which came
// before it. Without that end the act had no reason to fail.
inline std::optional<FutexWaitEnd> end_before_failed(const std::string& act, TestRun& run) {
    for (;;) {
        const TracerEvent event = run.tracer.wait(Clock::now());
        if (const auto* end = std::get_if<FutexWaitEnd>(&event)) return *end;
        if (!std::holds_alternative<TimedOut>(event) && !std::holds_alternative<Ended>(event))
            continue;
        ADD_FAILURE() << act << " failed in the middle of the wait";
        return std::nullopt;
    }
}

// Calls `act` with the run and the mapping while the testee is in a wait with a timeout. The wait
// must end by its timeout all the same. If it ended before `act` was done, `act` returns that end.
// The wait was too short for a busy machine then, and a longer one follows.
template <typename Act>
void act_in_timed_wait(const TracerOptions& options, const Act& act) {
    for (const int timeout_ms : {300, 3'000, 30'000}) {
        TestRun run(options);
        run.tracer.start({testdata("testee"), "timed-sleep", std::to_string(timeout_ms)});
        const auto mapped = run.next<Mapped>();
        ASSERT_TRUE(mapped);
        const auto wait = run.next<FutexWait>();
        ASSERT_TRUE(wait);
        const std::optional<FutexWaitEnd> early = act(run, mapped->mapping.id);
        const auto end = early ? early : run.next<FutexWaitEnd>();
        ASSERT_TRUE(end);
        EXPECT_EQ(end->wait_id, wait->wait_id);
        EXPECT_EQ(end->result, -ETIMEDOUT);
        EXPECT_EQ(run.finish().exit_status, 0);
        if (!early) return;
    }
    ADD_FAILURE() << "every wait ended too early";
}

}  // namespace kmes::conformance::tracer_testing

#endif  // CONFORMANCE_TRACER_TESTING_H_
