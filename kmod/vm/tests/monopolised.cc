// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test monopolised: a real-time task never leaves CPU 1. Attach, statistics, resize and
// nudges must work all the same. While that CPU cannot go offline because of the task, a resize
// waits, reports that, and blocks no other operation.
#include <fcntl.h>
#include <sched.h>
#include <sys/klog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char RUNTIME[] = "/proc/sys/kernel/sched_rt_runtime_us";

// Runs `body` in a process of its own.
class Process {
  public:
    explicit Process(const std::function<void()>& body) : pid_(fork()) {
        EXPECT(pid_ >= 0);
        if (pid_ > 0) return;
        body();
        _exit(0);
    }
    ~Process() {
        if (!is_over_) end();
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    void end() {
        kill(pid_, SIGKILL);
        EXPECT(waitpid(pid_, nullptr, 0) == pid_);
        is_over_ = true;
    }
    // Its kernel stack.
    std::string stack() const { return read_file("/proc/" + std::to_string(pid_) + "/stack"); }
    // Whether it ended with status 0 within this time.
    bool ends(double seconds) {
        int status = 0;
        if (!wait_until(seconds, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }))
            return false;
        is_over_ = true;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

  private:
    pid_t pid_;
    bool is_over_ = false;
};

// Runs SCHED_FIFO on CPU 1 until it is killed, or moved because that CPU goes offline. The parent
// runs on CPU 0.
void monopolise() {
    pin_to_cpu(1);
    const sched_param priority = {50};
    EXPECT(sched_setscheduler(0, SCHED_FIFO, &priority) == 0);
    while (sched_getcpu() == 1) continue;
}

// Lets RCU and softirqs run on a monopolised CPU, as an administrator of such a machine must.
// Otherwise the whole kernel stops sooner or later.
void raise_kernel_threads() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = read_file(entry.path() / "comm");
        if (!name.starts_with("rcu") && !name.starts_with("ksoftirqd")) continue;
        const sched_param priority = {60};
        sched_setscheduler(std::atoi(entry.path().filename().c_str()), SCHED_FIFO, &priority);
    }
}

// `body` must end in time; a hang becomes an error line and does not block the machine.
void works(const char* what, const std::function<void()>& body) {
    Process process(body);
    if (!process.ends(20)) fail(__FILE__, __LINE__, std::string(what) + " does not end");
}

void everything_works() {
    works("attach", [] {
        const Device device;
        const Buffer buffer(device, 1);
        EXPECT(device.buffers().size() >= 2);
    });
    works("the statistics", [] { EXPECT(Device().statistics(1).events > 0); });
    works("a resize", [] {
        const Device device;
        const kmes_ioctl_statistics before = device.statistics(1);
        EXPECT_EQUAL(device.configure(1 << 17, 0), 0);
        EXPECT_EQUAL(device.statistics(1).swaps, before.swaps + 1);
        EXPECT_EQUAL(device.statistics(1).capacity, 1 << 17);
    });
    works("a nudge", [] {
        const Device device;
        const Buffer buffer(device, 1);
        EXPECT_EQUAL(device.configure(1 << 16, 0), 0);
        const volatile __u64* generation = &buffer.metadata()->generation;
        const __u64 retired = *generation;
        EXPECT(wait_until(15, [&] { return *generation >= retired + 3; }));
    });
}

bool is_said() {
    std::string log(1 << 20, '\0');
    const int bytes = klogctl(3, log.data(), static_cast<int>(log.size()));
    EXPECT(bytes > 0);
    log.resize(static_cast<std::size_t>(bytes));
    return log.find("a resize waits for a CPU") != std::string::npos;
}

// Takes CPU 1 offline, which waits for kernel threads that cannot run there.
void waits_for_hotplug(Process* monopolist) {
    Process offline([] { EXPECT(write_file("/sys/devices/system/cpu/cpu1/online", "0")); });
    // Resizes until one must wait: it takes a while until the CPU really goes offline.
    Process resize([] {
        for (unsigned i = 0;; ++i)
            EXPECT_EQUAL(Device().configure(i % 2 ? 1 << 16 : 1 << 17, 0), 0);
    });
    bool has_gone = false;
    const bool is_decided = wait_until(20, [&] {
        has_gone = offline.ends(0);
        return has_gone || is_said();
    });
    if (has_gone) {
        // A kernel with a server for ordinary tasks (6.12) runs them in spite of a real-time one.
        std::printf("CPU 1 could go offline all the same: no resize had to wait\n");
        EXPECT(write_file("/sys/devices/system/cpu/cpu1/online", "1"));
        return;
    }
    if (!is_decided)
        fail(__FILE__, __LINE__,
             "the resize says nothing; it is in\n" + resize.stack() + "and the other one in\n" +
                 offline.stack());
    works("attach beside the resize", [] { const Buffer buffer(Device(), 1); });
    works("the statistics beside the resize", [] { Device().statistics(1); });
    // The waiting process can be killed, and nothing has changed.
    const kmes_ioctl_statistics before = Device().statistics(1);
    resize.end();
    EXPECT_EQUAL(Device().statistics(1).capacity, before.capacity);
    EXPECT_EQUAL(Device().statistics(1).swaps, before.swaps);
    monopolist->end();
    EXPECT(offline.ends(30));
    EXPECT(write_file("/sys/devices/system/cpu/cpu1/online", "1"));
    EXPECT_EQUAL(Device().configure(1 << 17, 0), 0);
}

}  // namespace

void test_monopolised(const Arguments&) {
    EXPECT_EQUAL(cpus_online(), 2);
    pin_to_cpu(1);
    EXPECT_EQUAL(Device().emit("monopolised", "before"), 0);
    pin_to_cpu(0);
    EXPECT(write_file(RUNTIME, "-1"));
    raise_kernel_threads();
    Process monopolist(monopolise);
    usleep(300000);
    everything_works();
    waits_for_hotplug(&monopolist);
    EXPECT(write_file(RUNTIME, "950000"));
    as_nobody([] {
        kmes_ioctl_statistics statistics = {};
        EXPECT_EQUAL(Device().call(KMES_IOC_STATISTICS, &statistics), EPERM);
    });
}

}  // namespace kmes::guest
