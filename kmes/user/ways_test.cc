// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The way of each libkmes call, by the rule of libkmes.h. --wrap replaces open, ioctl and connect
// at link time, so the device and the default address of a producer are those of this test. This
// kernel has none of the system calls.
#include "kmes/user/ways.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kmes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace {

struct Fake {
    int open_error = ENOENT;
    bool knows_one_cpu = true;  // KMES_IOC_ATTACH_CPU and KMES_IOC_IDENTIFY
    std::vector<unsigned long> requests;
    int buffer_fd = -1;  // of each CPU
    std::string default_socket;
};

Fake fake;

constexpr uint64_t kCapacity = 4096;

int duplicate() {
    return fcntl(fake.buffer_fd, F_DUPFD_CLOEXEC, 0);
}

int answer(unsigned long request, void* argument) {
    struct stat status{};

    fstat(fake.buffer_fd, &status);
    if (request == KMES_IOC_ATTACH) {
        auto* attach = static_cast<kmes_ioctl_attach*>(argument);
        const uint32_t room = attach->count;

        attach->count = 2;
        attach->capacity = kCapacity;
        if (room < 2) return ERANGE;
        for (int i = 0; i < 2; i++) reinterpret_cast<int*>(attach->fds_address)[i] = duplicate();
        return 0;
    }
    if (request == KMES_IOC_ATTACH_CPU && fake.knows_one_cpu) {
        auto* attach = static_cast<kmes_ioctl_attach_cpu*>(argument);

        if (attach->cpu > 1) return EINVAL;
        attach->capacity = kCapacity;
        attach->fd = duplicate();
        return 0;
    }
    if (request == KMES_IOC_IDENTIFY && fake.knows_one_cpu) {
        auto* identify = static_cast<kmes_ioctl_identify*>(argument);

        identify->device = status.st_dev;
        identify->inode = status.st_ino;
        return 0;
    }
    return request == KMES_IOC_EMIT ? ENOSPC : request == KMES_IOC_EMIT_BATCH ? EINVAL : ENOTTY;
}

}  // namespace

extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void* argument);
int __real_connect(int fd, const struct sockaddr* address, socklen_t length);

int __wrap_open(const char* path, int flags, ...) {
    if (std::string(path) != KMES_DEVICE) return __real_open(path, flags, 0600);
    if (fake.open_error == 0) return memfd_create("device", MFD_CLOEXEC);
    errno = fake.open_error;
    return -1;
}

int __wrap_ioctl(int fd, unsigned long request, void* argument) {
    if (_IOC_TYPE(request) != KMES_IOC_MAGIC) return __real_ioctl(fd, request, argument);
    fake.requests.push_back(request);
    errno = answer(request, argument);
    return errno ? -1 : 0;
}

int __wrap_connect(int fd, const struct sockaddr* address, socklen_t length) {
    const auto* name = reinterpret_cast<const struct sockaddr_un*>(address);
    struct sockaddr_un other;

    if (std::string(name->sun_path) != KMES_SOCKET_DEFAULT_ADDRESS)
        return __real_connect(fd, address, length);
    kmes_socket_address(fake.default_socket.c_str(), &other, &length);
    return __real_connect(fd, reinterpret_cast<const struct sockaddr*>(&other), length);
}

}  // extern "C"

namespace kmes {
namespace {

// The result of every call: 0, or its error.
struct Answers {
    int attach = 0, emit = 0, batch = 0, reader = 0, cpus = 0;
    uint64_t session = 0;

    bool operator==(const Answers&) const = default;
};

class WaysTest : public testing::Test {
  protected:
    void SetUp() override {
        fake = Fake();
        fake.default_socket = folder_.path("default");
        fake.buffer_fd = make_buffer();
        unsetenv("KMES_SOCKET");
    }
    void TearDown() override {
        close(fake.buffer_fd);
        unsetenv("KMES_SOCKET");
    }

    // Makes a buffer like a kernel's: one file. (Its data is not mapped twice; it is empty.)
    static int make_buffer() {
        int fd = memfd_create("buffer", MFD_CLOEXEC);
        struct kmes_metadata_v1 page = {};
        const char magic[] = KMES_MAGIC_INITIALIZER;

        memcpy(page.magic, magic, sizeof(magic));
        page.version = 1;
        page.capacity = kCapacity;
        page.data_offset = 4096;
        page.generation = 1;
        EXPECT_EQ(0, ftruncate(fd, 4096 + 2 * kCapacity));
        EXPECT_EQ(static_cast<ssize_t>(sizeof(page)), pwrite(fd, &page, sizeof(page), 0));
        return fd;
    }

    std::unique_ptr<Producer> serve(const std::string& address) {
        auto producer = std::make_unique<Producer>(test_options(2));

        EXPECT_EQ(0, producer->start_without_registry());
        producer->serve(address);
        return producer;
    }

    static int attach_error() {
        int fds[2], count = 2;
        __u64 capacity;

        if (kmes_attach(fds, &count, &capacity) != 0) return errno;
        close(fds[0]);
        close(fds[1]);
        return 0;
    }

    Answers ask(uint16_t cpu = 1) {
        const struct kmes_emit_entry entry = {"t", 1, nullptr, 0};
        struct kmes_reader_config config = {};
        Answers answers;
        __u32 emitted;

        answers.attach = attach_error();
        answers.emit = kmes_emit("t", 1, nullptr, 0) == 0 ? 0 : errno;
        answers.batch = kmes_emit_batch(&entry, 1, &emitted) == 0 ? 0 : errno;
        fake.requests.clear();
        kmes_reader_by_libkmes(&config, cpu);
        answers.reader = -kmes_reader_open(&reader_, &config);
        reader_requests_ = fake.requests;
        if (answers.reader == 0) answers.session = reader_.mapping.session;
        kmes_reader_close(&reader_);
        answers.cpus = kmes_cpus_by_libkmes();
        return answers;
    }

    static Answers all(int error) { return {error, error, error, error, -error, 0}; }

    TemporaryFolder folder_;
    struct kmes_reader reader_ = {};
    std::vector<unsigned long> reader_requests_;
};

TEST_F(WaysTest, NamedSocketWinsOverTheDevice) {
    auto producer = serve(folder_.path("named"));

    fake.open_error = 0;
    setenv("KMES_SOCKET", folder_.path("named").c_str(), 1);
    EXPECT_EQ((Answers{0, 0, 0, 0, 2, producer->session()}), ask());
    EXPECT_EQ(2u, producer->statistics().events);
    EXPECT_TRUE(fake.requests.empty());
    setenv("KMES_SOCKET", folder_.path("elsewhere").c_str(), 1);
    EXPECT_EQ(all(ENOSYS), ask()) << "nobody else is asked";
    EXPECT_TRUE(fake.requests.empty());
    setenv("KMES_SOCKET", "", 1);
    EXPECT_EQ((Answers{0, ENOSPC, EINVAL, 0, 2, 0}), ask()) << "no name, so the device";
}

TEST_F(WaysTest, EveryCallGoesOnAfterEperm) {
    for (int refusal : {EPERM, EACCES}) {
        fake.open_error = refusal;
        EXPECT_EQ(all(EPERM), ask()) << "none of them answers";
        auto producer = serve(fake.default_socket);

        EXPECT_EQ((Answers{0, 0, 0, 0, 2, producer->session()}), ask());
    }
}

TEST_F(WaysTest, EveryCallGoesOnToTheSocketWithoutADevice) {
    EXPECT_EQ(all(ENOSYS), ask());
    auto producer = serve(fake.default_socket);

    EXPECT_EQ((Answers{0, 0, 0, 0, 2, producer->session()}), ask());
    EXPECT_EQ(ENODEV, ask(2).reader);
    fake.open_error = EMFILE;
    EXPECT_EQ(all(EMFILE), ask()) << "an answer";
}

TEST_F(WaysTest, ReaderAttachesToItsCpuAlone) {
    fake.open_error = 0;
    const size_t before = open_descriptors();

    EXPECT_EQ(0, ask(1).reader);
    EXPECT_EQ(
        (std::vector<unsigned long>{KMES_IOC_ATTACH_CPU, KMES_IOC_IDENTIFY, KMES_IOC_STATISTICS}),
        reader_requests_);
    EXPECT_EQ(ENODEV, ask(2).reader);
    fake.knows_one_cpu = false;  // an older module
    EXPECT_EQ(0, ask(1).reader);
    EXPECT_EQ((std::vector<unsigned long>{KMES_IOC_ATTACH_CPU, KMES_IOC_ATTACH, KMES_IOC_IDENTIFY,
                                          KMES_IOC_ATTACH}),
              reader_requests_);
    EXPECT_EQ(ENODEV, ask(2).reader);
    EXPECT_EQ(before, open_descriptors());
}

}  // namespace
}  // namespace kmes
