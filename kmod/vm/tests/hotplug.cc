// SPDX-License-Identifier: GPL-2.0-only
//
//   guest_test hotplug        CPU 1 goes offline and online again while it emits, and while the
//                             rings are resized. Its sequence continues.
//   guest_test hotplug late   CPU 1 comes online after the module was loaded. Its emissions are
//                             counted as dropped, and have no other effect.
//   guest_test hotplug wake   An event of a CPU that goes offline or comes online wakes a consumer.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char ONLINE[] = "/sys/devices/system/cpu/cpu1/online";

void set_online(bool is_online) {
    EXPECT(write_file(ONLINE, is_online ? "1" : "0"));
}

void goes_and_comes() {
    const Device device;
    std::atomic<bool> is_over = false;
    // While CPU 1 is offline, its thread runs on another CPU. The thread is nearly always inside a
    // call, which must not keep CPU 1 online.
    const std::string payload(30000, 'x');
    std::thread emitter([&] {
        const Device own;
        pin_to_cpu(1);
        while (!is_over) EXPECT_EQUAL(own.emit("hotplug", payload), 0);
    });
    std::uint64_t sequence = 0;
    for (int i = 0; i < 6; ++i) {
        set_online(false);
        EXPECT_EQUAL(device.configure(i % 2 ? 1 << 16 : 1 << 17, 0), 0);
        std::vector<int> fds;
        std::uint64_t capacity = 0;
        EXPECT_EQUAL(device.attach(&fds, &capacity), 0);
        EXPECT_EQUAL(fds.size(), 2);
        for (int fd : fds) close(fd);
        EXPECT(device.statistics(1).last_sequence >= sequence);
        set_online(true);
        pin_to_cpu(1);
        EXPECT_EQUAL(device.emit("hotplug", "here"), 0);
        EXPECT(device.statistics(1).last_sequence > sequence);
        sequence = device.statistics(1).last_sequence;
        pin_to_cpu(0);
    }
    is_over = true;
    emitter.join();
    for (int cpu = 0; cpu < 2; ++cpu) {
        const kmes_ioctl_statistics statistics = device.statistics(cpu);
        EXPECT_EQUAL(statistics.swaps, 6);
        EXPECT_EQUAL(statistics.corrupt, 0);
        EXPECT_EQUAL(statistics.dropped_no_cpu, 0);
        EXPECT_EQUAL(statistics.last_sequence, statistics.events + statistics.dropped_nested);
    }
}

void comes_late() {
    set_online(false);
    EXPECT_EQUAL(run("rmmod kmes; kmes_load"), 0);
    const Device device;
    std::vector<int> fds;
    std::uint64_t capacity = 0;
    EXPECT_EQUAL(device.attach(&fds, &capacity), 0);
    EXPECT_EQUAL(fds.size(), 1);
    close(fds[0]);
    set_online(true);
    pin_to_cpu(1);
    const int error = device.emit("hotplug", "late");
    std::printf("emit on a CPU that came online after the load: errno %d\n", error);
    EXPECT(error != 0);
    EXPECT(device.statistics(0).dropped_no_cpu >= 1);
    // The same in every context.
    EXPECT_EQUAL(run("insmod /kmes/modules/kmes_load.ko events=100,100,100,100"), 0);
    EXPECT(wait_until(20,
                      [] { return read_number("/sys/module/kmes_load/parameters/running") == 0; }));
    EXPECT_EQUAL(run("rmmod kmes_load"), 0);
    EXPECT(device.statistics(0).dropped_no_cpu >= 401);
    pin_to_cpu(0);
    EXPECT_EQUAL(device.emit("hotplug", "here"), 0);
}

// Emits one event on CPU 1 in the kernel function `symbol`, while CPU 1 goes offline or comes
// online. The function runs when CPU 1 is not online, and no irq_work runs on it.
void expect_wake_from(const Device& device, const std::string& symbol, bool is_online_after) {
    pin_to_cpu(0);
    EXPECT_EQUAL(run("insmod /kmes/modules/kmes_sample.ko period_ms=1000000 symbol=" + symbol), 0);
    const Buffer buffer(device, 1);
    Sleeper sleeper;
    std::thread thread([&] { sleep_on(buffer, &sleeper); });
    EXPECT(wait_until(20, [&] { return is_in_futex(sleeper); }));
    const std::uint64_t events = device.statistics(1).events;
    EXPECT(!sleeper.is_woken);
    set_online(is_online_after);
    EXPECT_EQUAL(device.statistics(1).events, events + 1);
    if (!wait_until(20, [&] { return sleeper.is_woken.load(); }))
        fail(__FILE__, __LINE__, "an event in " + symbol + " did not wake the consumer");
    thread.join();
    EXPECT_EQUAL(run("rmmod kmes_sample"), 0);
    std::printf("%s: the consumer is woken\n", symbol.c_str());
}

void wakes() {
    const Device device;
    for (int i = 0; i < 3; ++i) {
        expect_wake_from(device, "sched_cpu_dying", false);
        expect_wake_from(device, "sched_cpu_starting", true);
    }
    // Later events of the CPU also wake.
    const Buffer buffer(device, 1);
    Sleeper sleeper;
    std::thread thread([&] { sleep_on(buffer, &sleeper); });
    EXPECT(wait_until(20, [&] { return is_in_futex(sleeper); }));
    pin_to_cpu(1);
    EXPECT_EQUAL(device.emit("hotplug", "up"), 0);
    pin_to_cpu(0);
    EXPECT(wait_until(20, [&] { return sleeper.is_woken.load(); }));
    thread.join();
}

}  // namespace

void test_hotplug(const Arguments& arguments) {
    EXPECT_EQUAL(cpus_online(), 2);
    if (!arguments.empty() && arguments[0] == "late")
        comes_late();
    else if (!arguments.empty() && arguments[0] == "wake")
        wakes();
    else
        goes_and_comes();
}

}  // namespace kmes::guest
