// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test failures: fails each allocation of an operation in turn (the kernel's fail-nth). A
// failed operation leaves the buffers, the number of fds and the number of pages unchanged. It
// returns ENOMEM, ENFILE, EMFILE or EFAULT. Run it with small rings.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <tuple>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char NTH[] = "/proc/thread-self/fail-nth";
constexpr char PAGES[] = "/sys/module/kmes/parameters/pages_live";
constexpr int MOST_ALLOCATIONS = 5000;

long open_fds() {
    using std::filesystem::directory_iterator;
    return std::distance(directory_iterator("/proc/self/fd"), directory_iterator());
}

// Returns the state that a failed operation must not change. Positions are not part of it, since
// the failure itself emits an event.
auto state_of(const Device& device) {
    std::vector<std::tuple<__u64, __u64, __u64, __u32, __u32>> state;
    for (const kmes_buffer_info& info : device.buffers())
        state.emplace_back(info.inode, info.capacity, info.generation, info.cpu, info.is_retired);
    std::sort(state.begin(), state.end());
    const kmes_ioctl_statistics statistics = device.statistics(0);
    return std::tuple(state, read_number(PAGES), open_fds(), statistics.max_event_size,
                      statistics.swaps);
}

void print_state(const Device& device, const decltype(state_of(device))& before) {
    const auto now = state_of(device);
    for (const auto& state : {before, now})
        std::printf("    %zu buffers, %" PRId64 " pages, %ld fds, %llu swaps\n",
                    std::get<0>(state).size(), std::get<1>(state), std::get<2>(state),
                    std::get<4>(state));
}

// `operation` returns 0 or errno; `undo` reverts a success.
void fail_each(const Device& device, const char* name, const std::function<int()>& operation,
               const std::function<void()>& undo) {
    int failed = 0, survived = 0, nth = 1;
    for (;; ++nth) {
        EXPECT(nth < MOST_ALLOCATIONS);
        // If this state still has resources of the last operation, the comparison below waits.
        const auto before = state_of(device);
        const int fd = open(NTH, O_RDWR | O_CLOEXEC);
        EXPECT(fd >= 0);
        const std::string text = std::to_string(nth);
        EXPECT(write(fd, text.data(), text.size()) == ssize_t(text.size()));
        const int error = operation();
        char left[16] = {};
        EXPECT(pread(fd, left, sizeof left - 1, 0) > 0);
        EXPECT(pwrite(fd, "0", 1, 0) == 1);
        close(fd);
        if (error == 0) {
            undo();
            // The operation has fewer than `nth` allocations.
            if (std::atoi(left) > 0) break;
            ++survived;
            continue;
        }
        ++failed;
        if (error != ENOMEM && error != ENFILE && error != EMFILE && error != EFAULT) {
            errno = error;
            EXPECT(!"an error that a failed allocation does not explain");
        }
        const bool is_same = wait_until(20, [&] { return state_of(device) == before; });
        if (!is_same) {
            std::printf("%s, allocation %d, errno %d: the state has changed\n", name, nth, error);
            print_state(device, before);
        }
        EXPECT(is_same);
    }
    std::printf("%s: %d allocations; %d failed the operation, %d did not\n", name, nth - 1, failed,
                survived);
    EXPECT(failed > 0);
}

void fail_attach(const Device& device) {
    std::vector<int> fds(1024);
    kmes_ioctl_attach attach;
    fail_each(
        device, "attach",
        [&] {
            attach = {reinterpret_cast<std::uintptr_t>(fds.data()), 0, 1024, 0};
            return device.call(KMES_IOC_ATTACH, &attach);
        },
        [&] {
            for (unsigned i = 0; i < attach.count; ++i) close(fds[i]);
        });
}

void fail_attach_cpu(const Device& device) {
    kmes_ioctl_attach_cpu attach;
    fail_each(
        device, "attach of one CPU",
        [&] {
            attach = {0, 1, -1};
            return device.call(KMES_IOC_ATTACH_CPU, &attach);
        },
        [&] { close(attach.fd); });
}

void fail_resize(const Device& device) {
    const std::size_t buffers = device.buffers().size();
    std::uint64_t capacity = 1 << 17;
    fail_each(
        device, "resize", [&] { return device.configure(capacity, 0); },
        [&] {
            const std::uint64_t bytes = buffers * (KMES_METADATA_BYTES + capacity);
            capacity = capacity == 1 << 16 ? 1 << 17 : 1 << 16;
            // The release of the old buffers takes a moment: they leave the list first, and then
            // free their pages.
            EXPECT(wait_until(20, [&] {
                return device.buffers().size() == buffers &&
                       read_number(PAGES) == std::int64_t(bytes / KMES_PAGE_BYTES);
            }));
        });
}

void fail_map(const Device& device) {
    const Buffer buffer(device, 0);
    void* base = MAP_FAILED;
    fail_each(
        device, "mmap",
        [&] {
            base =
                mmap(nullptr, buffer.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd(), 0);
            return base == MAP_FAILED ? errno : 0;
        },
        [&] { EXPECT(munmap(base, buffer.bytes()) == 0); });
}

void fail_open(const Device& device) {
    int fd = -1;
    fail_each(
        device, "open",
        [&] {
            fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
            return fd < 0 ? errno : 0;
        },
        [&] { close(fd); });
}

// The first emission of an open file allocates its staging memory.
void fail_emit(const Device& device) {
    const std::string payload(30000, 'f');
    fail_each(
        device, "open and emit",
        [&] {
            const int fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
            if (fd < 0) return errno;
            kmes_ioctl_emit emit = {reinterpret_cast<std::uintptr_t>("failures"),
                                    reinterpret_cast<std::uintptr_t>(payload.data()),
                                    static_cast<__u32>(payload.size()), 8, 0};
            const int error = ioctl_error(fd, KMES_IOC_EMIT, &emit);
            close(fd);
            return error;
        },
        [] {});
}

// A batch reports that none of its events was emitted.
void fail_batch(const Device& device) {
    const char type[] = "failures";
    kmes_emit_entry entry = {};
    entry.type = type;
    entry.type_len = sizeof type - 1;
    fail_each(
        device, "open and emit a batch",
        [&] {
            const int fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
            if (fd < 0) return errno;
            kmes_ioctl_emit_batch batch = {reinterpret_cast<std::uintptr_t>(&entry), 1, 77};
            const int error = ioctl_error(fd, KMES_IOC_EMIT_BATCH, &batch);
            close(fd);
            // With EFAULT the module may have failed to copy the argument itself.
            if (error != EFAULT) EXPECT_EQUAL(batch.emitted, error ? 0 : 1);
            return error;
        },
        [] {});
}

}  // namespace

void test_failures(const Arguments&) {
    prepare_failures();
    const Device device;
    fail_open(device);
    fail_emit(device);
    fail_batch(device);
    fail_attach(device);
    fail_attach_cpu(device);
    fail_map(device);
    fail_resize(device);
    EXPECT_EQUAL(device.emit("failures", "after"), 0);
}

}  // namespace kmes::guest
