// SPDX-License-Identifier: GPL-2.0-only
//
//   guest_test resize TIMES      resizes TIMES times while all CPUs emit from all contexts and
//                                readers follow. Sequences only grow, no event is torn, each swap
//                                is counted, and the number of pages is the same before and after
//                                (5.1.4, E10, E18).
//   guest_test resize killed     SIGKILL ends a configuration. Nothing has changed, and an event
//                                reports it.
//   guest_test resize no-memory  a resize that needs more memory than is available fails before it
//                                allocates a page.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "kmes/user/libkmes_reader.h"
#include "support.h"

namespace kmes::guest {
namespace {

constexpr char PAGES[] = "/sys/module/kmes/parameters/pages_live";

// Returns the number of page faults of the waker. It must not grow: an allocation can be slow while
// memory is short, and would delay all wakes.
std::uint64_t faults_of_waker() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string path = entry.path().string();
        if (read_file(path + "/comm") != "kmes_waker\n") continue;
        const std::string stat = read_file(path + "/stat");
        std::istringstream fields(stat.substr(stat.rfind(')') + 1));
        std::string before;
        for (int i = 0; i < 7; ++i) fields >> before;  // fields state to flags of proc(5)
        std::uint64_t faults = 0;
        EXPECT(static_cast<bool>(fields >> faults));
        return faults;
    }
    EXPECT(!"there is no thread kmes_waker");
    return 0;
}

struct Seen {
    std::uint64_t events = 0, switches = 0, lost = 0;
};

Seen follow(int cpu, const std::atomic<bool>* is_over) {
    kmes_reader reader = {};
    kmes_reader_config config = {};
    kmes_reader_by_libkmes(&config, static_cast<__u16>(cpu));
    config.stop_on_corrupt = true;
    config.sharing = KMES_EXCLUSIVE;
    EXPECT_EQUAL(kmes_reader_open(&reader, &config), 0);
    std::array<std::uint8_t, 4096> bytes;
    kmes_event_view view;
    std::uint64_t sequence = 0;
    for (bool is_last = false; !is_last;) {
        is_last = *is_over;
        int result;
        while ((result = kmes_reader_next(&reader, bytes.data(), bytes.size(), &view)) ==
               KMES_READ_EVENT) {
            EXPECT(view.sequence > sequence);
            kmes_event_header header;  // of the producer: the view has the CPU of the ring
            kmes_event_header_load(&header, view.type - KMES_EVENT_FIXED_BYTES);
            EXPECT_EQUAL(header.cpu_id, cpu);
            sequence = view.sequence;
        }
        EXPECT_EQUAL(result, KMES_READ_EMPTY);
        if (!is_last) kmes_reader_wait(&reader, 10'000'000);
    }
    const Seen seen = {reader.statistics.delivered, reader.statistics.switches,
                       reader.statistics.lost};
    EXPECT_EQUAL(reader.statistics.corrupt, 0);
    kmes_reader_close(&reader);
    return seen;
}

void emit_until(int cpu, const std::atomic<bool>* is_over) {
    const Device device;
    pin_to_cpu(cpu);
    const std::string payload(200, 'r');
    while (!*is_over) {
        EXPECT_EQUAL(device.emit("resize", payload), 0);
        std::this_thread::yield();
    }
}

// E19: resizes at shorter intervals than those of nudges do not postpone the nudges.
void nudges_come_between_resizes(const Device& device) {
    using Clock = std::chrono::steady_clock;
    constexpr __u64 kNudges = 3;
    const Buffer buffer(device, 0);
    const volatile __u64* generation = &buffer.metadata()->generation;
    EXPECT_EQUAL(device.configure(1 << 17, 0), 0);
    const __u64 retired = *generation;
    const auto begun = Clock::now();
    unsigned resizes = 0;
    while (*generation < retired + kNudges && Clock::now() - begun < std::chrono::seconds(20)) {
        EXPECT_EQUAL(device.configure(resizes % 2 == 0 ? 1 << 16 : 1 << 17, 0), 0);
        ++resizes;
    }
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
    std::printf("%llu nudges in %u resizes and %.0f ms\n", *generation - retired, resizes, ms);
    EXPECT(*generation >= retired + kNudges);
}

// Returns whether the ring of CPU 0 has this text. The ring must not have wrapped.
bool has_event(const Device& device, const std::string& text) {
    const Buffer buffer(device, 0);
    const __u64 end = __atomic_load_n(&buffer.metadata()->write_pos, __ATOMIC_ACQUIRE);
    const auto bytes = static_cast<std::size_t>(std::min<__u64>(end, buffer.capacity()));
    return memmem(buffer.data(), bytes, text.data(), text.size()) != nullptr;
}

template <class Body>
pid_t start(int cpu, const Body& body) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child != 0) return child;
    pin_to_cpu(cpu);
    const Device own;
    body(own);
    _exit(0);
}

void end(pid_t child) {
    EXPECT(kill(child, SIGKILL) == 0);
    EXPECT(waitpid(child, nullptr, 0) == child);
}

void killed_while_it_allocates(const Device& device, std::uint64_t capacity) {
    const std::int64_t pages = read_number(PAGES);
    for (int i = 0;; ++i) {
        EXPECT(i < 20);
        const pid_t child = start(0, [](const Device& own) { own.configure(1 << 27, 0); });
        while (read_number(PAGES) < pages + 500 && device.statistics(0).capacity == capacity) {
        }
        end(child);
        if (device.statistics(0).capacity == capacity) break;
        // The resize was complete before the signal.
        EXPECT_EQUAL(device.configure(capacity, 0), 0);
    }
    EXPECT(wait_until(20, [&] { return read_number(PAGES) == pages; }));
    EXPECT(has_event(device, "BufferCapacity 134217728: ended by a signal"));
}

void killed_while_it_waits(const Device& device) {
    const pid_t other = start(1, [](const Device& own) {
        for (int i = 0;; ++i) EXPECT_EQUAL(own.configure(i % 2 ? 1 << 24 : 1 << 25, 0), 0);
    });
    const std::string text = "BufferCapacity 131072, MaxEventSize 0: ended by a signal";
    for (int i = 0; !has_event(device, text); ++i) {
        EXPECT(i < 200);
        const pid_t child = start(0, [](const Device& own) { own.configure(1 << 17, 0); });
        usleep(20000);
        end(child);
    }
    end(other);
}

void lacks_memory(const Device& device) {
    constexpr std::int64_t kLeft = 200 << 20;
    const std::int64_t pages = read_number(PAGES);
    const std::string info = read_file("/proc/meminfo");
    const std::string name = "MemAvailable:";
    const std::int64_t available = std::stoll(info.substr(info.find(name) + name.size())) << 10;
    EXPECT(available > kLeft);
    const auto bytes = static_cast<std::size_t>(available - kLeft);
    void* ballast = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    EXPECT(ballast != MAP_FAILED);
    std::atomic<bool> is_over = false;
    std::int64_t most = pages;
    std::thread watcher([&] {
        pin_to_cpu(1);
        while (!is_over) most = std::max(most, read_number(PAGES));
    });
    const int error = device.configure(1 << 28, 0);
    is_over = true;
    watcher.join();
    EXPECT(munmap(ballast, bytes) == 0);
    std::printf("errno %d, %" PRId64 " pages at most, %" PRId64 " before\n", error, most, pages);
    EXPECT_EQUAL(error, ENOMEM);
    EXPECT_EQUAL(most, pages);
    EXPECT(has_event(device, "BufferCapacity 268435456: no memory"));
}

}  // namespace

void test_resize(const Arguments& arguments) {
    EXPECT(arguments.size() == 1);
    if (arguments[0] == "killed") {
        const Device device;
        pin_to_cpu(1);
        killed_while_it_allocates(device, device.statistics(0).capacity);
        killed_while_it_waits(device);
        return;
    }
    if (arguments[0] == "no-memory") {
        pin_to_cpu(0);
        lacks_memory(Device());
        return;
    }
    const int times = std::stoi(arguments[0]);
    const std::int64_t pages = read_number(PAGES);
    const Device device;
    const int cpus = cpus_online();
    const std::uint64_t capacity = device.statistics(0).capacity;
    nudges_come_between_resizes(device);
    EXPECT_EQUAL(device.configure(capacity, 0), 0);
    const std::uint64_t swaps = device.statistics(0).swaps;
    const std::uint64_t faults = faults_of_waker();
    std::atomic<bool> is_emission_over = false, is_over = false;
    std::vector<Seen> seen(static_cast<std::size_t>(cpus));
    std::vector<std::thread> readers, emitters;
    for (int cpu = 0; cpu < cpus; ++cpu) {
        readers.emplace_back([&, cpu] { seen[std::size_t(cpu)] = follow(cpu, &is_over); });
        emitters.emplace_back([&, cpu] { emit_until(cpu, &is_emission_over); });
    }
    // kmes_load has more events than it can emit before the last resize. It is removed after that
    // one.
    EXPECT_EQUAL(run("insmod /kmes/modules/kmes_load.ko events=0,1000000,1000000,100000"), 0);
    for (int i = 0; i < times; ++i)
        EXPECT_EQUAL(device.configure(i % 3 == 0 ? 1 << 16 : i % 3 == 1 ? 1 << 18 : 1 << 17, 0), 0);
    EXPECT_EQUAL(run("rmmod kmes_load"), 0);
    EXPECT_EQUAL(device.configure(capacity, 0), 0);
    EXPECT_EQUAL(faults_of_waker(), faults);
    is_emission_over = true;
    for (std::thread& thread : emitters) thread.join();
    is_over = true;
    for (std::thread& thread : readers) thread.join();
    for (int cpu = 0; cpu < cpus; ++cpu) {
        const kmes_ioctl_statistics statistics = device.statistics(cpu);
        const Seen& mine = seen[std::size_t(cpu)];
        std::printf("cpu %d: %" PRIu64 " events delivered, %" PRIu64 " lost, %" PRIu64
                    " buffers, %llu swaps, longest pause %llu ns\n",
                    cpu, mine.events, mine.lost, mine.switches + 1, statistics.swaps,
                    statistics.longest_pause_ns);
        EXPECT_EQUAL(statistics.swaps, swaps + times + 1);
        EXPECT_EQUAL(statistics.corrupt, 0);
        EXPECT_EQUAL(statistics.capacity, capacity);
        EXPECT(mine.events > 0 && mine.switches > 0);
    }
    EXPECT(wait_until(20, [&] { return read_number(PAGES) == pages; }));
}

}  // namespace kmes::guest
