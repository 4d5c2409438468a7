// SPDX-License-Identifier: GPL-2.0-only
//
// Tests libkmes with the module, in a virtual machine (kmod/vm): kmes_attach, kmes_map, kmes_emit,
// kmes_emit_batch, and the reference reader with a resize and sleeps. Prints a line for each
// failure, and then exits with 1.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kmes.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"

namespace {

constexpr std::size_t kLargestEventBytes = std::size_t{4} << 20;

int failures = 0;

void expect(bool is_right, const std::string& what) {
    if (is_right) return;
    fmt::print("failed: {} (errno: {})\n", what, strerror(errno));
    ++failures;
}

int emit(const std::string& type, const std::string& payload) {
    return kmes_emit(type.data(), static_cast<__u16>(type.size()), payload.data(),
                     static_cast<__u32>(payload.size()));
}

// Pins this thread to CPU 0.
void stay_on_cpu_0() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    expect(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity to CPU 0");
}

void attach_and_map() {
    int count = 0;
    __u64 capacity = 0;
    expect(kmes_attach(nullptr, &count, &capacity) == -1 && errno == ERANGE,
           "kmes_attach without slots returns ERANGE");
    expect(count > 0, "kmes_attach without slots returns the number of CPUs");
    std::vector<int> fds(static_cast<std::size_t>(count), -1);
    if (kmes_attach(fds.data(), &count, &capacity) != 0) return expect(false, "kmes_attach");
    struct stat first{};
    for (int cpu = 0; cpu < count; ++cpu) {
        const int fd = fds[static_cast<std::size_t>(cpu)];
        struct stat status{};
        expect(fcntl(fd, F_GETFD) == FD_CLOEXEC, "descriptors are close-on-exec");
        expect(fstat(fd, &status) == 0, "fstat");
        if (cpu == 0)
            first = status;
        else
            expect(status.st_ino != first.st_ino, "each buffer has an inode of its own (E19)");
        void* base = nullptr;
        expect(kmes_map(fd, 2 * capacity, &base) == -1 && errno == EINVAL,
               "kmes_map rejects another capacity");
        if (kmes_map(fd, capacity, &base) != 0) {
            expect(false, "kmes_map");
            continue;
        }
        const auto* page = static_cast<const unsigned char*>(base);
        expect(memcmp(page, "KMESRING", 8) == 0, "the page begins with its magic");
        expect(page[12] == cpu, "cpu_id is the index of the descriptor");
        close(fd);
        expect(memcmp(page + 4096, page + 4096 + capacity, capacity) == 0,
               "the data is mapped twice");
        expect(kmes_unmap(base, capacity) == 0, "kmes_unmap");
    }
    expect(kmes_cpus_by_libkmes() == count, "the reader's number of CPUs");
}

void emit_valid_and_invalid() {
    expect(emit("device.one", "first") == 0, "kmes_emit");
    expect(emit("", "x") == -1 && errno == EINVAL, "kmes_emit rejects an empty type");
    expect(emit("\xff", "x") == -1 && errno == EINVAL,
           "kmes_emit rejects a type that is not UTF-8");
    expect(emit("t", std::string(kLargestEventBytes, 'x')) == -1 && errno == ENOSPC,
           "kmes_emit rejects an event over MaxEventSize");
    expect(kmes_emit("t", 1, nullptr, 5) == -1 && errno == EFAULT,
           "kmes_emit rejects a missing payload");
    const kmes_emit_entry entries[3] = {
        {"device.two", 10, "a", 1}, {"device.three", 12, "bc", 2}, {"", 0, "d", 1}};
    __u32 emitted = 99;
    expect(kmes_emit_batch(entries, 3, &emitted) == -1 && errno == EINVAL && emitted == 2,
           "a batch stops at its invalid entry, and reports it");
    expect(kmes_emit_batch(entries, 2, &emitted) == 0 && emitted == 2, "kmes_emit_batch");
    expect(kmes_emit_batch(entries, 0, &emitted) == -1 && errno == EINVAL,
           "kmes_emit_batch rejects an empty batch");
    expect(kmes_emit_batch(entries, 257, &emitted) == -1 && errno == EINVAL,
           "kmes_emit_batch rejects 257 entries");
}

// Returns the reader's next event as "type payload"; "" if there is none.
std::string next(kmes_reader* reader) {
    static std::vector<char> copy(kLargestEventBytes);
    kmes_event_view view;
    const int found = kmes_reader_next(reader, copy.data(), copy.size(), &view);
    if (found != KMES_READ_EVENT) return "";
    return std::string(reinterpret_cast<const char*>(view.type), view.type_len) + " " +
           std::string(reinterpret_cast<const char*>(view.payload), view.payload_len);
}

void expect_events(kmes_reader* reader, const std::vector<std::string>& events) {
    for (const std::string& event : events) {
        const std::string got = next(reader);
        expect(got == event, fmt::format("the reader returned '{}'; expected '{}'", got, event));
    }
    expect(next(reader).empty(), "no further event");
}

void resize(__u64 capacity) {
    const int fd = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
    kmes_ioctl_configure values{};
    values.buffer_capacity = capacity;
    expect(ioctl(fd, KMES_IOC_CONFIGURE, &values) == 0, "KMES_IOC_CONFIGURE");
    close(fd);
}

// Sleeps without a timeout until `act` emits an event or retires the buffer. After a lost wake the
// time limit of the guest test ends this program.
void sleep_and_be_woken(kmes_reader* reader, const std::function<void()>& act) {
    std::thread emitter([&act] {
        stay_on_cpu_0();
        usleep(20000);
        act();
    });
    while (next(reader).empty()) kmes_reader_wait(reader, KMES_NO_TIMEOUT);
    emitter.join();
}

void read() {
    kmes_reader_config config = {};
    kmes_reader reader;
    kmes_reader_by_libkmes(&config, 0);
    if (kmes_reader_open(&reader, &config) != 0) return expect(false, "kmes_reader_open");
    while (!next(&reader).empty()) continue;
    emit_valid_and_invalid();
    expect_events(&reader, {"device.one first", "device.two a", "device.three bc", "device.two a",
                            "device.three bc"});
    emit("before.resize", "1");
    resize(262144);
    emit("after.resize", "2");
    expect_events(&reader, {"before.resize 1", "after.resize 2"});
    for (int i = 0; i < 20; ++i) sleep_and_be_woken(&reader, [] { emit("wake", "up"); });
    sleep_and_be_woken(&reader, [] {
        resize(131072);
        emit("wake", "elsewhere");
    });
    kmes_reader_close(&reader);
}

}  // namespace

int main() {
    stay_on_cpu_0();
    attach_and_map();
    read();
    fmt::print("{}\n",
               failures == 0 ? "libkmes on the device: passed" : "libkmes on the device: FAILED");
    return failures == 0 ? 0 : 1;
}
