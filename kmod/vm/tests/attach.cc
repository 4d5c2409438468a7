// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test attach: compares KMES_IOC_ATTACH_CPU and KMES_IOC_IDENTIFY with each other, with
// KMES_IOC_ATTACH and with fstat, before and after a resize. A failed call makes no descriptor.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support.h"

namespace kmes::guest {
namespace {

// Returns the lowest free descriptor. It changes if a call leaves a descriptor open.
int lowest_free_fd() {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    close(fd);
    return fd;
}

int attach_error(const Device& device, __u32 cpu) {
    const int free_fd = lowest_free_fd();
    kmes_ioctl_attach_cpu attach = {77, cpu, 78};
    const int error = device.call(KMES_IOC_ATTACH_CPU, &attach);
    EXPECT(error != 0);
    EXPECT(attach.capacity == 77 && attach.fd == 78);
    EXPECT_EQUAL(lowest_free_fd(), free_fd);
    return error;
}

int identify_error(const Device& device, __u32 cpu) {
    kmes_ioctl_identify identify = {};
    identify.cpu = cpu;
    const int error = device.call(KMES_IOC_IDENTIFY, &identify);
    EXPECT(error == 0 || identify.inode == 0);
    return error;
}

void one_cpu(const Device& device, int cpu, int fd_of_all, std::uint64_t capacity_of_all) {
    const int free_fd = lowest_free_fd();
    kmes_ioctl_identify identify = {};
    identify.cpu = static_cast<__u32>(cpu);
    EXPECT_EQUAL(device.call(KMES_IOC_IDENTIFY, &identify), 0);
    EXPECT_EQUAL(lowest_free_fd(), free_fd);
    kmes_ioctl_attach_cpu attach = {0, static_cast<__u32>(cpu), -1};
    EXPECT_EQUAL(device.call(KMES_IOC_ATTACH_CPU, &attach), 0);
    EXPECT_EQUAL(attach.fd, free_fd);
    EXPECT_EQUAL(fcntl(attach.fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQUAL(attach.capacity, capacity_of_all);
    EXPECT_EQUAL(identify.capacity, capacity_of_all);
    EXPECT_EQUAL(identify.cpus, cpus_online());
    struct stat status = {}, status_of_all = {};
    EXPECT(fstat(attach.fd, &status) == 0 && fstat(fd_of_all, &status_of_all) == 0);
    EXPECT_EQUAL(status.st_ino, status_of_all.st_ino);
    EXPECT_EQUAL(identify.inode, status.st_ino);
    EXPECT_EQUAL(identify.device, status.st_dev);
    const std::size_t bytes = KMES_METADATA_BYTES + 2 * attach.capacity;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, attach.fd, 0);
    EXPECT(base != MAP_FAILED);
    EXPECT(std::memcmp(base, "KMESRING", 8) == 0);
    EXPECT_EQUAL(static_cast<std::uint8_t*>(base)[12], cpu);
    munmap(base, bytes);
    close(attach.fd);
}

void every_cpu(const Device& device) {
    std::vector<int> fds;
    std::uint64_t capacity = 0;
    EXPECT_EQUAL(device.attach(&fds, &capacity), 0);
    for (int cpu = 0; cpu < int(fds.size()); ++cpu)
        one_cpu(device, cpu, fds[std::size_t(cpu)], capacity);
    for (int fd : fds) close(fd);
}

void bad_arguments(const Device& device) {
    const auto beyond = static_cast<__u32>(cpus_online());
    for (const __u32 cpu : {beyond, 1023u, 1024u, 0x80000000u, ~0u}) {
        EXPECT_EQUAL(attach_error(device, cpu), EINVAL);
        EXPECT_EQUAL(identify_error(device, cpu), EINVAL);
    }
    EXPECT_EQUAL(device.call(KMES_IOC_ATTACH_CPU, nullptr), EFAULT);
    EXPECT_EQUAL(device.call(KMES_IOC_IDENTIFY, nullptr), EFAULT);
    // The kernel can read the argument but cannot write to it. No descriptor may be left.
    const int free_fd = lowest_free_fd();
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED);
    EXPECT_EQUAL(device.call(KMES_IOC_ATTACH_CPU, page), EFAULT);
    EXPECT_EQUAL(device.call(KMES_IOC_IDENTIFY, page), EFAULT);
    munmap(page, 4096);
    EXPECT_EQUAL(lowest_free_fd(), free_fd);
}

void no_more_descriptors(const Device& device) {
    rlimit before = {};
    EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none = {static_cast<rlim_t>(lowest_free_fd()), before.rlim_max};
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    kmes_ioctl_attach_cpu attach = {0, 0, -1};
    EXPECT_EQUAL(device.call(KMES_IOC_ATTACH_CPU, &attach), EMFILE);
    EXPECT_EQUAL(identify_error(device, 0), 0);
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

}  // namespace

void test_attach(const Arguments&) {
    {
        const Device device;
        every_cpu(device);
        EXPECT_EQUAL(device.configure(1 << 17, 0), 0);
        every_cpu(device);
        bad_arguments(device);
        no_more_descriptors(device);
        as_nobody([&] {
            EXPECT_EQUAL(attach_error(device, 0), EPERM);
            EXPECT_EQUAL(identify_error(device, 0), EPERM);
        });
    }
    EXPECT(wait_until(20, [] { return run("rmmod kmes") == 0; }));
    EXPECT_EQUAL(load_module("boot_phase=1"), 0);
    const Device device;
    EXPECT_EQUAL(attach_error(device, 0), EAGAIN);
    EXPECT_EQUAL(identify_error(device, 0), EAGAIN);
    kmes_ioctl_configure end_of_boot = {};
    EXPECT_EQUAL(device.call(KMES_IOC_REGISTRY_AVAILABLE, &end_of_boot), 0);
    every_cpu(device);
}

}  // namespace kmes::guest
