// SPDX-License-Identifier: MIT
//
// What the tests of this tree need from the place they run in (Bazel's sandbox, a container, an
// ordinary user): tracing a child, a seccomp filter, sealed memory files, the double mapping, a
// file descriptor of another process through /proc. Where one is missing, the tests that build on
// it fail in ways that are hard to read; here each has a name. Knows nothing of KMES.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace {

constexpr size_t kPageBytes = 4096;

std::string why() {
    return std::string(": ") + std::strerror(errno);
}

// A child that stops itself, so that the parent can take it from there.
pid_t fork_stopped_child() {
    const pid_t child = fork();
    if (child != 0) return child;
    raise(SIGSTOP);
    _exit(7);
}

TEST(Sandbox, AChildCanBeTracedWithSeize) {
    const pid_t child = fork_stopped_child();
    ASSERT_GT(child, 0) << why();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child) << why();
    const long seized =
        ptrace(PTRACE_SEIZE, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    EXPECT_EQ(seized, 0) << "PTRACE_SEIZE" << why();
    ASSERT_EQ(kill(child, SIGCONT), 0);
    // A traced child reports stops before its end; let it pass each of them.
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        ASSERT_EQ(ptrace(PTRACE_CONT, child, nullptr, nullptr), 0) << why();
    }
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Sandbox, ASeccompFilterCanBeInstalledWithoutPrivilege) {
    const pid_t child = fork();
    ASSERT_GE(child, 0) << why();
    if (child == 0) {
        // getppid answers EPROTO, everything else is allowed.
        sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTO),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const sock_fprog program = {4, code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(1);
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(2);
        _exit(syscall(SYS_getppid) == -1 && errno == EPROTO ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child) << why();
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: no_new_privs, 2: seccomp, 3: the filter had no effect";
}

TEST(Sandbox, AMemoryFileCanBeSealedAgainstLaterWriters) {
    const int fd = memfd_create("sandbox_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_GE(fd, 0) << why();
    ASSERT_EQ(ftruncate(fd, kPageBytes), 0) << why();
    void* own = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(own, MAP_FAILED) << why();
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0)
        << why();
    EXPECT_EQ(mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    void* other = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(other, MAP_FAILED) << why();
    *static_cast<volatile uint8_t*>(own) = 42;
    EXPECT_EQ(*static_cast<volatile uint8_t*>(other), 42);
    munmap(own, kPageBytes);
    munmap(other, kPageBytes);
    close(fd);
}

TEST(Sandbox, TheSamePagesCanBeMappedTwiceInARow) {
    const int fd = memfd_create("sandbox_test", MFD_CLOEXEC);
    ASSERT_GE(fd, 0) << why();
    ASSERT_EQ(ftruncate(fd, kPageBytes), 0) << why();
    void* range = mmap(nullptr, 2 * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(range, MAP_FAILED) << why();
    auto* base = static_cast<uint8_t*>(range);
    for (int half = 0; half < 2; ++half) {
        ASSERT_NE(mmap(base + half * kPageBytes, kPageBytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, fd, 0),
                  MAP_FAILED)
            << why();
    }
    volatile uint8_t* bytes = base;
    bytes[kPageBytes + 5] = 9;
    EXPECT_EQ(bytes[5], 9);
    munmap(range, 2 * kPageBytes);
    close(fd);
}

TEST(Sandbox, AChildCanOpenAFileOfItsParentThroughProc) {
    const int fd = memfd_create("sandbox_test", MFD_CLOEXEC);
    ASSERT_GE(fd, 0) << why();
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
    const pid_t child = fork();
    ASSERT_GE(child, 0) << why();
    if (child == 0) _exit(open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0 ? 0 : errno);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child) << why();
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << std::strerror(WEXITSTATUS(status));
    close(fd);
}

}  // namespace
