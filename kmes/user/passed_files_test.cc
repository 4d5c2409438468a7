// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The trust of libkmes in its server. It rejects files whose pages could be removed under a
// mapping, before it maps them. It also rejects an abstract name of another user. --wrap replaces
// getsockopt when this test is linked, because only root could act as another user.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "kmes/user/libkmes.h"
#include "kmes/user/libkmes_reader.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace {

constexpr uint64_t kCapacity = 65536;
constexpr int kDataSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

std::atomic<uid_t> server_uid{static_cast<uid_t>(-1)};  // -1: the real one

}  // namespace

extern "C" {

int __real_getsockopt(int fd, int level, int name, void* value, socklen_t* length);

int __wrap_getsockopt(int fd, int level, int name, void* value, socklen_t* length) {
    int result = __real_getsockopt(fd, level, name, value, length);

    if (result == 0 && name == SO_PEERCRED && server_uid != static_cast<uid_t>(-1))
        static_cast<struct ucred*>(value)->uid = server_uid;
    return result;
}

}  // extern "C"

namespace kmes {
namespace {

// A memory file with all its pages.
int make_file(uint64_t bytes, int seals, unsigned flags = 0) {
    int fd = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    if (fd < 0) return fd;
    EXPECT_EQ(0, ftruncate(fd, static_cast<off_t>(bytes)));
    if (!(flags & MFD_HUGETLB) && bytes) {
        EXPECT_EQ(0, fallocate(fd, 0, 0, static_cast<off_t>(bytes)));
    }
    EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
    return fd;
}

int make_metadata(int seals) {
    int fd = make_file(4096, 0);
    struct kmes_metadata_v1 page = {};
    const char magic[] = KMES_MAGIC_INITIALIZER;

    memcpy(page.magic, magic, sizeof(magic));
    page.version = 1;
    page.capacity = kCapacity;
    page.data_offset = 4096;
    page.generation = 1;
    EXPECT_EQ(static_cast<ssize_t>(sizeof(page)), pwrite(fd, &page, sizeof(page), 0));
    EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
    return fd;
}

// A server with one CPU that passes the given files, or replies to every request with an error.
class Server {
  public:
    Server(const std::string& address, int metadata_fd, int data_fd, int32_t error = 0)
        : files_{metadata_fd, data_fd}, error_(error) {
        struct sockaddr_un name;
        socklen_t length;

        EXPECT_EQ(0, kmes_socket_address(address.c_str(), &name, &length));
        listening_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(0, bind(listening_, reinterpret_cast<struct sockaddr*>(&name), length));
        EXPECT_EQ(0, listen(listening_, 8));
        thread_ = std::thread([this] { run(); });
    }
    ~Server() {
        shutdown(listening_, SHUT_RDWR);
        thread_.join();
        close(listening_);
        for (int fd : files_) close(fd);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

  private:
    void run() {
        for (;;) {
            struct kmes_socket_request request;
            int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);

            if (fd < 0) return;
            if (recv(fd, &request, sizeof(request), 0) == sizeof(request))
                reply(fd, request.operation);
            close(fd);
        }
    }

    void reply(int fd, uint32_t operation) {
        struct kmes_socket_reply reply = {};
        struct iovec piece = {&reply, sizeof(reply)};
        struct msghdr message = {};
        alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(files_))] = {};
        struct stat status = {};

        fstat(files_[0], &status);
        reply.magic = KMES_SOCKET_MAGIC;
        reply.cpus = 1;
        reply.capacity = kCapacity;
        reply.session = 1;
        reply.device = status.st_dev;
        reply.inode = status.st_ino;
        reply.error = error_;
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        if (operation == KMES_SOCKET_IDENTIFY || error_) {
            sendmsg(fd, &message, MSG_NOSIGNAL);
            return;
        }
        reply.count = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        struct cmsghdr* part = CMSG_FIRSTHDR(&message);

        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(files_));
        std::memcpy(CMSG_DATA(part), files_, sizeof(files_));
        sendmsg(fd, &message, MSG_NOSIGNAL);
    }

    int files_[2];
    const int32_t error_;
    int listening_ = -1;
    std::thread thread_;
};

class PassedFilesTest : public testing::Test {
  protected:
    void SetUp() override { setenv("KMES_SOCKET", address_.c_str(), 1); }
    void TearDown() override {
        server_uid = static_cast<uid_t>(-1);
        unsetenv("KMES_SOCKET");
    }

    // Expects this error of kmes_attach and of a reader. No descriptor or mapping remains.
    void expect_answer(int error) {
        struct kmes_reader_config config = {};
        struct kmes_reader reader;
        int fd, count = 1;
        __u64 capacity;
        const size_t before = open_descriptors();

        EXPECT_EQ(error ? -1 : 0, kmes_attach(&fd, &count, &capacity));
        if (error)
            EXPECT_EQ(error, errno);
        else
            close(fd);
        kmes_reader_by_libkmes(&config, 0);
        EXPECT_EQ(-error, kmes_reader_open(&reader, &config));
        kmes_reader_close(&reader);
        EXPECT_EQ(-1, kmes_unmap(nullptr, 0));  // forgets the closed entries
        EXPECT_TRUE(comes_true([before] { return open_descriptors() <= before; }));
        EXPECT_EQ(0u, mappings_named("memfd:file"));
    }

    void expect_refused(int metadata_fd, int data_fd) {
        Server server(address_, metadata_fd, data_fd);

        expect_answer(EPROTO);
        unlink(address_.c_str());
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
};

TEST_F(PassedFilesTest, SealedFilesAreMapped) {
    Server server(address_, make_metadata(F_SEAL_SHRINK), make_file(kCapacity, kDataSeals));

    expect_answer(0);
}

TEST_F(PassedFilesTest, FilesThatCouldBeCutOffAreRefused) {
    for (int seals : {0, F_SEAL_GROW, F_SEAL_SEAL}) {
        SCOPED_TRACE(seals);
        expect_refused(make_metadata(seals), make_file(kCapacity, kDataSeals));
        expect_refused(make_metadata(F_SEAL_SHRINK), make_file(kCapacity, seals));
    }
    expect_refused(make_metadata(F_SEAL_SHRINK),
                   make_file(kCapacity, F_SEAL_SHRINK | F_SEAL_GROW));  // by holes
}

TEST_F(PassedFilesTest, FilesThatAreTooShortAreRefused) {
    expect_refused(make_file(4095, F_SEAL_SHRINK), make_file(kCapacity, kDataSeals));
    expect_refused(make_metadata(F_SEAL_SHRINK), make_file(kCapacity - 1, kDataSeals));
    expect_refused(make_metadata(F_SEAL_SHRINK), make_file(0, kDataSeals));
}

TEST_F(PassedFilesTest, FilesWithHolesAreRefused) {
    int data_fd = make_file(kCapacity, 0);
    int metadata_fd = make_metadata(F_SEAL_SHRINK);

    ASSERT_EQ(0, fallocate(data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096));
    ASSERT_EQ(0, fcntl(data_fd, F_ADD_SEALS, kDataSeals));
    ASSERT_EQ(0, fallocate(metadata_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    expect_refused(make_metadata(F_SEAL_SHRINK), data_fd);
    expect_refused(metadata_fd, make_file(kCapacity, kDataSeals));
}

TEST_F(PassedFilesTest, WhatIsNoMemoryFileOfPlainPagesIsRefused) {
    int ends[2];
    int huge = make_file(2 << 20, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, MFD_HUGETLB);
    int file = open(folder_.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int memory = make_file(kCapacity, kDataSeals);
    int by_path = open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_PATH | O_CLOEXEC);

    close(memory);
    ASSERT_EQ(0, ftruncate(file, kCapacity));
    ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
    close(ends[1]);
    for (int fd : {huge, file, by_path, ends[0]}) {
        if (fd >= 0) expect_refused(make_metadata(F_SEAL_SHRINK), fd);
    }
}

// Each consumer writes need_wake.
TEST_F(PassedFilesTest, MetadataThatCannotBeWrittenIsRefused) {
    for (int seal : {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE})
        expect_refused(make_metadata(F_SEAL_SHRINK | seal), make_file(kCapacity, kDataSeals));
}

// From -1 to -4095, like a system call.
TEST_F(PassedFilesTest, ErrorThatIsNoErrorNumberIsRefused) {
    for (int32_t error : {INT32_MIN, -4096, 1, INT32_MAX}) {
        SCOPED_TRACE(error);
        Server server(address_, make_metadata(F_SEAL_SHRINK), make_file(kCapacity, kDataSeals),
                      error);
        __u32 emitted = 99;
        const struct kmes_emit_entry entry = {"t", 1, nullptr, 0};

        expect_answer(EPROTO);
        EXPECT_EQ(-EPROTO, kmes_cpus_by_libkmes());
        EXPECT_EQ(-1, kmes_emit("t", 1, nullptr, 0));
        EXPECT_EQ(EPROTO, errno);
        EXPECT_EQ(-1, kmes_emit_batch(&entry, 1, &emitted));
        EXPECT_EQ(EPROTO, errno);
        EXPECT_EQ(0u, emitted);
        unlink(address_.c_str());
    }
}

TEST_F(PassedFilesTest, AbstractNameOfAnotherUserIsRefused) {
    address_ = "@kmes-test-" + std::to_string(std::random_device()());
    setenv("KMES_SOCKET", address_.c_str(), 1);
    Server server(address_, make_metadata(F_SEAL_SHRINK), make_file(kCapacity, kDataSeals));
    const struct kmes_emit_entry entry = {"t", 1, nullptr, 0};
    __u32 emitted = 99;

    expect_answer(0);
    server_uid = 0;
    expect_answer(0);
    server_uid = geteuid() + 1;
    expect_answer(EPERM);
    EXPECT_EQ(-1, kmes_emit("t", 1, nullptr, 0));
    EXPECT_EQ(EPERM, errno);
    EXPECT_EQ(-1, kmes_emit_batch(&entry, 1, &emitted));
    EXPECT_EQ(EPERM, errno);
    EXPECT_EQ(0u, emitted);
}

}  // namespace
}  // namespace kmes
