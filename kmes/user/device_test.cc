// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The requests of libkmes to /dev/kmes, and its use of the answers. --wrap replaces open and ioctl
// when this test is linked. The tests of kmod/vm test the device itself in a virtual machine.
#include "kmes/user/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kmes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "kmes/user/libkmes.h"

namespace {

// The device of this test. `open_error` 0: it exists.
struct FakeDevice {
    int open_error = 0;
    std::function<int(unsigned long request, void* argument)> answer;  // 0, or an error number
    int opened = 0;
    int open_fd = -1;
    int open_flags = 0;
    std::string path;
};

FakeDevice* fake = nullptr;

template <typename T>
T* pointer_to(__u64 address) {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

}  // namespace

extern "C" {

int __wrap_open(const char* path, int flags, ...) {
    fake->path = path;
    fake->open_flags = flags;
    if (fake->open_error != 0) {
        errno = fake->open_error;
        return -1;
    }
    ++fake->opened;
    fake->open_fd = memfd_create("device", MFD_CLOEXEC);
    return fake->open_fd;
}

int __wrap_ioctl(int fd, unsigned long request, void* argument) {
    EXPECT_EQ(fd, fake->open_fd);
    const int error = fake->answer(request, argument);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

}  // extern "C"

namespace kmes {
namespace {

class DeviceTest : public testing::Test {
  protected:
    void SetUp() override { fake = &device_; }
    void TearDown() override {
        // Every opened file is closed again.
        struct stat status{};
        if (device_.opened > 0) {
            EXPECT_EQ(fstat(device_.open_fd, &status), -1);
        }
        fake = nullptr;
    }

    FakeDevice device_;
};

TEST_F(DeviceTest, AttachGivesWhatTheDeviceGives) {
    device_.answer = [](unsigned long request, void* argument) {
        EXPECT_EQ(request, KMES_IOC_ATTACH);
        auto* attach = static_cast<kmes_ioctl_attach*>(argument);
        EXPECT_EQ(attach->count, 3u);
        EXPECT_EQ(attach->reserved, 0u);
        pointer_to<int>(attach->fds_address)[0] = 70;
        pointer_to<int>(attach->fds_address)[1] = 71;
        attach->count = 2;
        attach->capacity = 131072;
        return 0;
    };
    int fds[3] = {-1, -1, -1};
    int count = 3;
    __u64 capacity = 0;
    // Today's Linux has no call 1091, so the device is tried next.
    ASSERT_EQ(kmes_attach(fds, &count, &capacity), 0) << strerror(errno);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(capacity, 131072u);
    EXPECT_EQ(fds[0], 70);
    EXPECT_EQ(fds[1], 71);
    EXPECT_EQ(fds[2], -1);
    EXPECT_EQ(device_.path, "/dev/kmes");
    EXPECT_EQ(device_.open_flags, O_RDWR | O_CLOEXEC);
}

TEST_F(DeviceTest, TooFewSlotsTellHowMany) {
    device_.answer = [](unsigned long, void* argument) {
        auto* attach = static_cast<kmes_ioctl_attach*>(argument);
        EXPECT_EQ(attach->count, 0u);
        EXPECT_EQ(attach->fds_address, 0u);
        attach->count = 64;
        attach->capacity = 1;
        return ERANGE;
    };
    __u64 capacity = 7;
    for (int count : {0, -5}) {
        EXPECT_EQ(kmes_device_attach(nullptr, &count, &capacity), -ERANGE);
        EXPECT_EQ(count, 64);
    }
    EXPECT_EQ(capacity, 7u);
}

TEST_F(DeviceTest, AnErrorOfTheDeviceChangesNothing) {
    device_.answer = [](unsigned long, void* argument) {
        static_cast<kmes_ioctl_attach*>(argument)->count = 9;
        return EAGAIN;
    };
    int fd = -1;
    int count = 1;
    __u64 capacity = 7;
    EXPECT_EQ(kmes_device_attach(&fd, &count, &capacity), -EAGAIN);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(capacity, 7u);
    EXPECT_EQ(kmes_device_attach(&fd, nullptr, &capacity), -EFAULT);
    EXPECT_EQ(kmes_device_attach(&fd, &count, nullptr), -EFAULT);
    EXPECT_EQ(device_.opened, 1);
}

TEST_F(DeviceTest, AttachOfOneCpuGivesOneDescriptor) {
    device_.answer = [](unsigned long request, void* argument) {
        EXPECT_EQ(request, KMES_IOC_ATTACH_CPU);
        auto* attach = static_cast<kmes_ioctl_attach_cpu*>(argument);
        EXPECT_EQ(attach->cpu, 5u);
        attach->fd = 71;
        attach->capacity = 65536;
        return 0;
    };
    int fd = -1;
    __u64 capacity = 0;
    EXPECT_EQ(kmes_device_attach_cpu(5, &fd, &capacity), 0);
    EXPECT_EQ(fd, 71);
    EXPECT_EQ(capacity, 65536u);
    EXPECT_EQ(kmes_device_attach_cpu(5, nullptr, &capacity), -EFAULT);
    EXPECT_EQ(kmes_device_attach_cpu(5, &fd, nullptr), -EFAULT);
    EXPECT_EQ(device_.opened, 1);
}

TEST_F(DeviceTest, IdentifyMakesNoDescriptor) {
    int statistics_error = 0;
    device_.answer = [&](unsigned long request, void* argument) {
        if (request == KMES_IOC_STATISTICS) {
            auto* statistics = static_cast<kmes_ioctl_statistics*>(argument);
            EXPECT_EQ(statistics->cpu, 1u);
            statistics->last_sequence = 41;
            return statistics_error;
        }
        EXPECT_EQ(request, KMES_IOC_IDENTIFY);
        auto* identify = static_cast<kmes_ioctl_identify*>(argument);
        EXPECT_EQ(identify->cpu, 1u);
        identify->device = 0x17;
        identify->inode = 1ull << 40;
        identify->capacity = 131072;
        identify->cpus = 2;
        return 0;
    };
    kmes_device_identity identity{};
    EXPECT_EQ(kmes_device_identify(1, &identity), 0);
    EXPECT_EQ(identity.device, 0x17u);
    EXPECT_EQ(identity.inode, 1ull << 40);
    EXPECT_EQ(identity.capacity, 131072u);
    EXPECT_EQ(identity.cpus, 2u);
    EXPECT_EQ(identity.next_sequence, 42u);
    EXPECT_EQ(kmes_device_identify(1, nullptr), -EFAULT);
    EXPECT_EQ(device_.opened, 2);
    statistics_error = ENOTTY;
    EXPECT_EQ(kmes_device_identify(1, &identity), 0);
    EXPECT_EQ(identity.next_sequence, 0u) << "unknown";
}

// ENOTTY: an older module; the caller then attaches to all CPUs.
TEST_F(DeviceTest, AnErrorOfOneCpuChangesNothing) {
    int error = 0;
    device_.answer = [&error](unsigned long request, void* argument) {
        if (request == KMES_IOC_ATTACH_CPU) {
            static_cast<kmes_ioctl_attach_cpu*>(argument)->fd = 3;
            static_cast<kmes_ioctl_attach_cpu*>(argument)->capacity = 1;
        } else {
            static_cast<kmes_ioctl_identify*>(argument)->cpus = 1;
        }
        return error;
    };
    int fd = -1;
    __u64 capacity = 7;
    kmes_device_identity identity{};
    for (const int each : {EINVAL, EAGAIN, EPERM, EMFILE, ENOTTY}) {
        error = each;
        EXPECT_EQ(kmes_device_attach_cpu(9, &fd, &capacity), -each);
        EXPECT_EQ(kmes_device_identify(9, &identity), -each);
    }
    device_.open_error = ENOENT;
    EXPECT_EQ(kmes_device_attach_cpu(9, &fd, &capacity), -ENODEV);
    EXPECT_EQ(kmes_device_identify(9, &identity), -ENODEV);
    EXPECT_EQ(fd, -1);
    EXPECT_EQ(capacity, 7u);
    EXPECT_EQ(identity.cpus, 0u);
}

TEST_F(DeviceTest, EmitPassesOnePointerEach) {
    device_.answer = [](unsigned long request, void* argument) {
        EXPECT_EQ(request, KMES_IOC_EMIT);
        const auto* emit = static_cast<const kmes_ioctl_emit*>(argument);
        EXPECT_EQ(std::string(pointer_to<char>(emit->type_address), emit->type_len), "a.type");
        EXPECT_EQ(std::string(pointer_to<char>(emit->payload_address), emit->payload_len), "load");
        EXPECT_EQ(emit->reserved, 0u);
        return ENOSPC;
    };
    EXPECT_EQ(kmes_emit("a.type", 6, "load", 4), -1);
    EXPECT_EQ(errno, ENOSPC);
}

TEST_F(DeviceTest, BatchTellsHowManyEvenWhereOneIsBad) {
    const kmes_emit_entry entries[3] = {};
    device_.answer = [&entries](unsigned long request, void* argument) {
        EXPECT_EQ(request, KMES_IOC_EMIT_BATCH);
        auto* batch = static_cast<kmes_ioctl_emit_batch*>(argument);
        EXPECT_EQ(pointer_to<kmes_emit_entry>(batch->entries_address), entries);
        EXPECT_EQ(batch->count, 3u);
        batch->emitted = 2;
        return EINVAL;
    };
    __u32 emitted = 99;
    EXPECT_EQ(kmes_emit_batch(entries, 3, &emitted), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(emitted, 2u);
    EXPECT_EQ(kmes_device_emit_batch(entries, 3, nullptr), -EFAULT);
    EXPECT_EQ(device_.opened, 1);
}

TEST_F(DeviceTest, OnlyAMissingDeviceLetsOthersBeAsked) {
    __u32 emitted = 99;
    for (const auto& [open_error, expected] :
         {std::pair(ENOENT, -ENODEV), std::pair(ENXIO, -ENODEV), std::pair(EACCES, -EPERM),
          std::pair(EPERM, -EPERM), std::pair(EMFILE, -EMFILE), std::pair(ENOMEM, -ENOMEM)}) {
        device_.open_error = open_error;
        EXPECT_EQ(kmes_device_emit("t", 1, nullptr, 0), expected) << strerror(open_error);
        EXPECT_EQ(kmes_device_emit_batch(nullptr, 1, &emitted), expected);
    }
    EXPECT_EQ(emitted, 0u);
}

TEST_F(DeviceTest, AnotherDeviceUnderTheNameIsNone) {
    device_.answer = [](unsigned long, void*) { return ENOTTY; };
    __u32 emitted = 99;
    EXPECT_EQ(kmes_device_emit_batch(nullptr, 1, &emitted), -ENODEV);
    EXPECT_EQ(emitted, 99u);
}

}  // namespace
}  // namespace kmes
