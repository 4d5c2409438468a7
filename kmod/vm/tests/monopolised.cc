// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test monopolised: a real-time task never releases CPU 1. Attach, statistics, resize and
// nudges must still work. While the task prevents CPU 1 from going offline, a resize waits, reports
// the wait, and blocks no other operation.
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

// Runs `body` in a child process.
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
    // Returns its kernel stack.
    std::string stack() const { return read_file("/proc/" + std::to_string(pid_) + "/stack"); }
    // Returns whether it ends with status 0 within this time.
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

// Runs on CPU 1 with SCHED_FIFO, until a signal kills it or the kernel moves it because CPU 1 goes
// offline. The parent runs on CPU 0.
void monopolise() {
    pin_to_cpu(1);
    const sched_param priority = {50};
    EXPECT(sched_setscheduler(0, SCHED_FIFO, &priority) == 0);
    while (sched_getcpu() == 1) continue;
}

// Gives the threads of RCU and softirqs a higher priority than the real-time task. Otherwise the
// kernel itself hangs; an administrator of such a machine must do the same.
void raise_kernel_threads() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = read_file(entry.path() / "comm");
        if (!name.starts_with("rcu") && !name.starts_with("ksoftirqd")) continue;
        const sched_param priority = {60};
        sched_setscheduler(std::atoi(entry.path().filename().c_str()), SCHED_FIFO, &priority);
    }
}

// Fails the test if `body` hangs.
void expect_to_end(const char* what, const std::function<void()>& body) {
    Process process(body);
    if (!process.ends(20)) fail(__FILE__, __LINE__, std::string(what) + " does not end");
}

void expect_operations_to_end() {
    expect_to_end("attach", [] {
        const Device device;
        const Buffer buffer(device, 1);
        EXPECT(device.buffers().size() >= 2);
    });
    expect_to_end("the statistics", [] { EXPECT(Device().statistics(1).events > 0); });
    expect_to_end("a resize", [] {
        const Device device;
        const kmes_ioctl_statistics before = device.statistics(1);
        EXPECT_EQUAL(device.configure(1 << 17, 0), 0);
        EXPECT_EQUAL(device.statistics(1).swaps, before.swaps + 1);
        EXPECT_EQUAL(device.statistics(1).capacity, 1 << 17);
    });
    expect_to_end("a nudge", [] {
        const Device device;
        const Buffer buffer(device, 1);
        EXPECT_EQUAL(device.configure(1 << 16, 0), 0);
        const volatile __u64* generation = &buffer.metadata()->generation;
        const __u64 retired = *generation;
        EXPECT(wait_until(15, [&] { return *generation >= retired + 3; }));
    });
}

bool has_reported_wait() {
    std::string log(1 << 20, '\0');
    const int bytes = klogctl(3, log.data(), static_cast<int>(log.size()));
    EXPECT(bytes > 0);
    log.resize(static_cast<std::size_t>(bytes));
    return log.find("a resize waits for a CPU") != std::string::npos;
}

// Starts to take CPU 1 offline, which waits for kernel threads that cannot run there. A resize must
// then wait, and must not block other operations.
void expect_resize_to_wait(Process* monopolist) {
    Process offline([] { EXPECT(write_file("/sys/devices/system/cpu/cpu1/online", "0")); });
    // Resizes repeatedly, because the removal of the CPU begins some time after the write.
    Process resize([] {
        for (unsigned i = 0;; ++i)
            EXPECT_EQUAL(Device().configure(i % 2 ? 1 << 16 : 1 << 17, 0), 0);
    });
    bool has_gone = false;
    const bool is_decided = wait_until(20, [&] {
        has_gone = offline.ends(0);
        return has_gone || has_reported_wait();
    });
    if (has_gone) {
        // Since 6.12 the fair server runs ordinary tasks beside a real-time task.
        std::printf("CPU 1 went offline, so no resize had to wait\n");
        EXPECT(write_file("/sys/devices/system/cpu/cpu1/online", "1"));
        return;
    }
    if (!is_decided)
        fail(__FILE__, __LINE__,
             "the resize does not report that it waits; its stack:\n" + resize.stack() +
                 "the stack of the process that takes CPU 1 offline:\n" + offline.stack());
    expect_to_end("attach during the resize", [] { const Buffer buffer(Device(), 1); });
    expect_to_end("statistics during the resize", [] { Device().statistics(1); });
    // A signal can kill the waiting process, and nothing changes.
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
    expect_operations_to_end();
    expect_resize_to_wait(&monopolist);
    EXPECT(write_file(RUNTIME, "950000"));
    as_nobody([] {
        kmes_ioctl_statistics statistics = {};
        EXPECT_EQUAL(Device().call(KMES_IOC_STATISTICS, &statistics), EPERM);
    });
}

}  // namespace kmes::guest
