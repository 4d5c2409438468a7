// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test unload: an unload fails at once while there is a reference to the inode of a buffer,
// such as an O_PATH descriptor, a descriptor of map_files, or a watch. It succeeds after the last
// reference. Then the test unloads many times while a thread opens and closes such descriptors.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr int RACES = 12;
constexpr std::size_t HANDLE_BYTES = 128;

int unload() {
    return syscall(SYS_delete_module, "kmes", O_NONBLOCK) == 0 ? 0 : errno;
}

// Tries to unload in another process, so this one can report a hang. Returns the error.
int unload_at_once() {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) _exit(unload());
    int status = 0;
    if (!wait_until(10, [&] { return waitpid(child, &status, WNOHANG) == child; }))
        fail(__FILE__, __LINE__, "an unload hangs");
    EXPECT(WIFEXITED(status));
    return WEXITSTATUS(status);
}

std::string path_of(int fd) {
    return "/proc/self/fd/" + std::to_string(fd);
}

int open_path(const std::string& path) {
    return open(path.c_str(), O_PATH | O_CLOEXEC);
}

// Each of these returns a descriptor that refers to the buffer's inode, but is no open file of the
// module; -1 if this kernel cannot make it.
int by_descriptor(const Buffer& buffer) {
    return open_path(path_of(buffer.fd()));
}

int by_map_files(const Buffer& buffer) {
    char name[64];
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.metadata());
    std::snprintf(name, sizeof name, "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, begin,
                  begin + buffer.bytes());
    return open_path(name);
}

int by_watch(const Buffer& buffer) {
    const int watcher = inotify_init1(IN_CLOEXEC);
    EXPECT(watcher >= 0);
    EXPECT(inotify_add_watch(watcher, path_of(buffer.fd()).c_str(), IN_OPEN | IN_ATTRIB) > 0);
    return watcher;
}

int by_open_tree(const Buffer& buffer) {
#ifdef SYS_open_tree
    constexpr unsigned CLONE = 1;
    return static_cast<int>(syscall(SYS_open_tree, buffer.fd(), "", CLONE | O_CLOEXEC | 0x1000));
#else
    (void)buffer;
    return -1;
#endif
}

int by_bind_mount(const Buffer& buffer) {
    close(open("bound", O_CREAT | O_CLOEXEC, 0600));
    if (mount(path_of(buffer.fd()).c_str(), "bound", nullptr, MS_BIND, nullptr) != 0) return -1;
    const int fd = open_path("bound");
    EXPECT(umount2("bound", MNT_DETACH) == 0);
    return fd;
}

int by_handle(const Buffer& buffer) {
    alignas(file_handle) char room[sizeof(file_handle) + HANDLE_BYTES] = {};
    auto* handle = reinterpret_cast<file_handle*>(room);
    handle->handle_bytes = HANDLE_BYTES;
    int mount_id = 0;
    if (name_to_handle_at(buffer.fd(), "", handle, &mount_id, AT_EMPTY_PATH) != 0) return -1;
    return open_by_handle_at(buffer.fd(), handle, O_PATH);
}

void expect_reference(const char* name, int (*refer)(const Buffer&)) {
    int fd = -1;
    {
        const Device device;
        const Buffer buffer(device, 0);
        fd = refer(buffer);
    }
    std::printf("%s: %s\n", name, fd >= 0 ? "refers to the inode" : "not on this kernel");
    if (fd < 0) return;
    // Wait until the kernel has released the closed files.
    usleep(200000);
    for (int i = 0; i < 3; ++i) {
        const int error = unload_at_once();
        EXPECT(error == EWOULDBLOCK || error == EBUSY);
    }
    struct stat status = {};
    if (fstat(fd, &status) == 0) EXPECT(status.st_ino != 0);
    close(fd);
    EXPECT(wait_until(20, [] { return unload_at_once() == 0; }));
    EXPECT_EQUAL(load_module("buffer_capacity=65536"), 0);
}

// Refers to an inode for a moment. Returns false if the module is not loaded.
bool open_and_close(int turn) {
    const int device = open(KMES_DEVICE, O_RDWR | O_CLOEXEC);
    if (device < 0) return false;
    kmes_ioctl_attach_cpu attach = {0, 0, -1};
    const int error = ioctl_error(device, KMES_IOC_ATTACH_CPU, &attach);
    close(device);
    if (error) return true;
    const int path = open_path(path_of(attach.fd));
    const int watcher = turn % 2 ? inotify_init1(IN_CLOEXEC) : -1;
    if (watcher >= 0) inotify_add_watch(watcher, path_of(attach.fd).c_str(), IN_ATTRIB);
    close(attach.fd);
    close(path);
    if (watcher >= 0) close(watcher);
    return true;
}

void race() {
    std::atomic<bool> is_over = false;
    std::thread other([&] {
        pin_to_cpu(1);
        for (int turn = 0; !is_over; ++turn)
            if (!open_and_close(turn)) usleep(100);
    });
    pin_to_cpu(0);
    int refused = 0;
    for (int i = 0; i < RACES; ++i) {
        EXPECT(wait_until(30, [&] {
            const bool is_gone = unload() == 0;
            refused += !is_gone;
            return is_gone;
        }));
        EXPECT_EQUAL(load_module("buffer_capacity=65536"), 0);
    }
    is_over = true;
    other.join();
    std::printf("%d unloads during opens and closes; %d attempts failed before them\n", RACES,
                refused);
}

}  // namespace

void test_unload(const Arguments&) {
    expect_reference("O_PATH of a descriptor", by_descriptor);
    expect_reference("O_PATH of a mapping", by_map_files);
    expect_reference("inotify", by_watch);
    expect_reference("open_tree", by_open_tree);
    expect_reference("a bind mount", by_bind_mount);
    expect_reference("a file handle", by_handle);
    race();
}

}  // namespace kmes::guest
