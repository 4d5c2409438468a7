// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test faults: the page of a payload, or of the entries of a batch, is missing until the test
// provides it (userfaultfd). The call waits for the page, but blocks no CPU. CPU 1 goes offline
// meanwhile, and the call emits the event on the CPU to which the thread has moved.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr std::size_t PAGE_BYTES = 4096;
constexpr char ONLINE[] = "/sys/devices/system/cpu/cpu1/online";

// A page that is missing until provide().
class LatePage {
  public:
    LatePage() : fd_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))) {
        if (fd_ < 0) return;
        uffdio_api api = {UFFD_API, 0, 0};
        EXPECT(ioctl(fd_, UFFDIO_API, &api) == 0);
        void* page =
            mmap(nullptr, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(page != MAP_FAILED);
        address_ = reinterpret_cast<std::uintptr_t>(page);
        uffdio_register range = {{address_, PAGE_BYTES}, UFFDIO_REGISTER_MODE_MISSING, 0};
        EXPECT(ioctl(fd_, UFFDIO_REGISTER, &range) == 0);
    }
    ~LatePage() {
        if (fd_ >= 0) close(fd_);
        if (address_) munmap(reinterpret_cast<void*>(address_), PAGE_BYTES);
    }
    LatePage(const LatePage&) = delete;
    LatePage& operator=(const LatePage&) = delete;

    bool is_available() const { return fd_ >= 0; }
    std::uintptr_t address() const { return address_; }
    // Returns whether a thread waits for the page.
    bool is_wanted() const {
        pollfd event = {fd_, POLLIN, 0};
        return poll(&event, 1, 0) == 1;
    }
    void provide(const void* bytes) const {
        uffdio_copy copy = {address_, reinterpret_cast<std::uintptr_t>(bytes), PAGE_BYTES, 0, 0};
        EXPECT(ioctl(fd_, UFFDIO_COPY, &copy) == 0);
    }

  private:
    int fd_;
    std::uintptr_t address_ = 0;
};

// Writes in another process, so this one can report a hang.
void set_online(bool is_online) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) _exit(write_file(ONLINE, is_online ? "1" : "0") ? 0 : 1);
    int status = 0;
    if (!wait_until(20, [&] { return waitpid(child, &status, WNOHANG) == child; }))
        fail(__FILE__, __LINE__, "CPU 1 does not go offline while a call waits for a page");
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Makes `call` on CPU 1, takes CPU 1 offline while the call waits for the page, and then provides
// the page with `bytes`.
void goes_offline_meanwhile(const LatePage& page, const void* bytes,
                            const std::function<int()>& call) {
    const Device device;
    const auto events = [&] { return device.statistics(0).events + device.statistics(1).events; };
    const std::uint64_t before = events();
    std::atomic<int> error = -1;
    std::thread caller([&] {
        pin_to_cpu(1);
        error = call();
    });
    EXPECT(wait_until(20, [&] { return page.is_wanted(); }));
    set_online(false);
    EXPECT_EQUAL(error, -1);
    page.provide(bytes);
    caller.join();
    EXPECT_EQUAL(error, 0);
    EXPECT_EQUAL(events(), before + 1);
    set_online(true);
}

void late_payload() {
    const LatePage page;
    const Device device;
    const std::string payload(PAGE_BYTES, 'p');
    const kmes_ioctl_emit emit = {reinterpret_cast<std::uintptr_t>("late"), page.address(),
                                  PAGE_BYTES, 4, 0};
    goes_offline_meanwhile(page, payload.data(), [&] {
        kmes_ioctl_emit copy = emit;
        return device.call(KMES_IOC_EMIT, &copy);
    });
}

void late_entries() {
    const LatePage page;
    const Device device;
    alignas(8) char bytes[PAGE_BYTES] = {};
    const kmes_emit_entry entry = {"late", 4, "x", 1};
    std::memcpy(bytes, &entry, sizeof entry);
    goes_offline_meanwhile(page, bytes, [&] {
        kmes_ioctl_emit_batch batch = {page.address(), 1, 0};
        const int error = device.call(KMES_IOC_EMIT_BATCH, &batch);
        EXPECT_EQUAL(batch.emitted, 1);
        return error;
    });
}

}  // namespace

void test_faults(const Arguments&) {
    EXPECT_EQUAL(cpus_online(), 2);
    if (!LatePage().is_available()) {
        std::printf("skipped: this kernel has no userfaultfd (errno %d)\n", errno);
        return;
    }
    pin_to_cpu(0);
    late_payload();
    late_entries();
}

}  // namespace kmes::guest
