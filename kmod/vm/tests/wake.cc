// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test wake: two consumers sleep on one buffer, a thread of this process and another process
// with its own mapping. One event wakes both, from each context that may emit (5.1.7 step 7, E12,
// E17).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <thread>

#include "support.h"

namespace kmes::guest {
namespace {

void one_wake(const Device& device, const std::string& context, Sleeper* sleepers) {
    for (int i = 0; i < 2; ++i) new (&sleepers[i]) Sleeper;
    const kmes_ioctl_statistics before = device.statistics(0);
    const Buffer buffer(device, 0);
    std::thread thread([&] { sleep_on(buffer, &sleepers[0]); });
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        const Device own;
        const Buffer own_buffer(own, 0);
        sleep_on(own_buffer, &sleepers[1]);
        _exit(0);
    }
    EXPECT(wait_until(20, [&] { return is_in_futex(sleepers[0]) && is_in_futex(sleepers[1]); }));
    EXPECT(!sleepers[0].is_woken && !sleepers[1].is_woken);
    // need_wake is still set, because nothing was emitted.
    EXPECT_EQUAL(buffer.metadata()->need_wake, 1);
    if (context == "ioctl") {
        EXPECT_EQUAL(device.emit("wake", "up"), 0);
    } else {
        EXPECT_EQUAL(run("insmod /kmes/modules/kmes_load.ko events=" + context), 0);
    }
    EXPECT(wait_until(20, [&] { return sleepers[0].is_woken && sleepers[1].is_woken; }));
    thread.join();
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    if (context != "ioctl") EXPECT_EQUAL(run("rmmod kmes_load"), 0);
    const kmes_ioctl_statistics after = device.statistics(0);
    EXPECT(after.wakes > before.wakes);
    std::printf("%s: both consumers woken, by %llu wakes\n", context.c_str(),
                static_cast<unsigned long long>(after.wakes - before.wakes));
}

}  // namespace

void test_wake(const Arguments&) {
    const Device device;
    void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED);
    pin_to_cpu(0);
    // The number of events that kmes_load emits from a thread, a softirq, a hard interrupt and an
    // NMI.
    for (const char* context : {"ioctl", "1,0,0,0", "0,1,0,0", "0,0,1,0", "0,0,0,1"})
        for (int i = 0; i < 5; ++i) one_wake(device, context, static_cast<Sleeper*>(shared));
}

}  // namespace kmes::guest
