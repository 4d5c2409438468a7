// SPDX-License-Identifier: MIT
//
// A Launch whose child is not seized by an engine: its end, and its report of a failure.

#include "conformance/tracer/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "conformance/tracer/launch_child.h"
#include "conformance/tracer/open_files.h"

namespace kmes::conformance::tracing {
namespace {

// /dev/null with a number that the testee does not get.
int high_null() {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int high = ::fcntl(null, F_DUPFD_CLOEXEC, 10);
    ::close(null);
    return high;
}

class LaunchTest : public testing::Test {
  protected:
    LaunchTest() : null_(high_null()) {
        plan_.arguments = {"testee"};
        plan_.standard_input = plan_.standard_output = plan_.standard_error = plan_.report = null_;
    }
    ~LaunchTest() override { ::close(null_); }

    static int exit_status(pid_t pid) {
        int status = 0;
        EXPECT_EQ(::waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFEXITED(status));
        return WEXITSTATUS(status);
    }

    int null_;
    LaunchPlan plan_;
};

// The runner raises its limit for the buffers that it serves. The testee must get the old limit.
TEST_F(LaunchTest, AChildHasTheLimitOnOpenFilesFromBefore) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit low = before;
    low.rlim_cur = 200;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(raise_open_files(250), 250u);
    EXPECT_EQ(raise_open_files(100), 250u) << "it never falls";
    plan_.candidates = {"/bin/true"};
    Launch launch(plan_);
    restore_open_files(launch.pid());
    rlimit of_child{};
    EXPECT_EQ(::prlimit(launch.pid(), RLIMIT_NOFILE, nullptr, &of_child), 0);
    EXPECT_EQ(of_child.rlim_cur, 200u);
    EXPECT_EQ(of_child.rlim_max, before.rlim_max);
    rlimit own{};
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &own), 0);
    EXPECT_EQ(own.rlim_cur, 250u);
    launch.let_go();
    EXPECT_EQ(exit_status(launch.pid()), 0);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// The child has a copy of the runner's end of the socket, which it must close.
TEST_F(LaunchTest, AChildThatIsNotLetGoEndsWithItsLaunch) {
    plan_.candidates = {"/bin/true"};
    auto launch = std::make_unique<Launch>(plan_);
    const pid_t pid = launch->pid();
    launch.reset();
    EXPECT_EQ(exit_status(pid), KMES_LAUNCH_FAILED);
}

TEST_F(LaunchTest, AChildThatIsLetGoExecutesTheFirstCandidateThatExists) {
    plan_.candidates = {"/nonexistent/true", "/bin/true"};
    Launch launch(plan_);
    launch.let_go();
    EXPECT_EQ(exit_status(launch.pid()), 0);
    EXPECT_EQ(launch.failure().error, 0);
}

TEST_F(LaunchTest, AFileThatCannotBeExecutedOutranksAMissingOne) {
    plan_.candidates = {"/nonexistent/true", "/", "/nonexistent/false"};
    Launch launch(plan_);
    launch.let_go();
    EXPECT_EQ(exit_status(launch.pid()), KMES_LAUNCH_FAILED);
    const Launch::Failure failure = launch.failure();
    EXPECT_EQ(failure.error, EACCES);
    EXPECT_TRUE(failure.at_exec);
    EXPECT_EQ(failure.candidate, 1U);
}

TEST_F(LaunchTest, ADescriptorThatDoesNotExistFailsTheSetUp) {
    plan_.candidates = {"/bin/true"};
    plan_.report = 9999;
    Launch launch(plan_);
    launch.let_go();
    EXPECT_EQ(exit_status(launch.pid()), KMES_LAUNCH_FAILED);
    const Launch::Failure failure = launch.failure();
    EXPECT_EQ(failure.error, EBADF);
    EXPECT_FALSE(failure.at_exec);
}

uint64_t bit(int signal_number) {
    return uint64_t{1} << (signal_number - 1);
}

// The signal dispositions of the child at execve, while it is still in this process's memory.
class LaunchSignalTest : public LaunchTest {
  protected:
    LaunchSignalTest() {
        plan_.candidates = {"/bin/true"};
        plan_.filter = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
    }
    void SetUp() override {
        if (!probe_abilities(false).seccomp_trace) GTEST_SKIP() << "seccomp cannot stop a child";
    }
    ~LaunchSignalTest() override { ::sigaction(SIGXFSZ, &before_, nullptr); }

    void set(void (*handler)(int)) {
        struct sigaction action{};
        action.sa_handler = handler;
        ::sigaction(SIGXFSZ, &action, nullptr);
    }

    // Reads the masks of /proc/PID/status.
    void launch() {
        Launch launch(plan_);
        const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
        ASSERT_EQ(::ptrace(PTRACE_SEIZE, launch.pid(), 0, options), 0);
        launch.let_go();
        int status = 0;
        ASSERT_EQ(::waitpid(launch.pid(), &status, 0), launch.pid());
        ASSERT_EQ(status >> 8, SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
        std::ifstream file("/proc/" + std::to_string(launch.pid()) + "/status");
        for (std::string name, value; file >> name >> value;) {
            if (name == "SigBlk:") blocked_ = std::stoull(value, nullptr, 16);
            if (name == "SigIgn:") ignored_ = std::stoull(value, nullptr, 16);
            if (name == "SigCgt:") caught_ = std::stoull(value, nullptr, 16);
            file.ignore(4096, '\n');
        }
        ASSERT_EQ(::ptrace(PTRACE_CONT, launch.pid(), 0, 0), 0);
        EXPECT_EQ(exit_status(launch.pid()), 0);
    }

    struct sigaction before_ = [] {
        struct sigaction action{};
        ::sigaction(SIGXFSZ, nullptr, &action);
        return action;
    }();
    uint64_t blocked_ = ~uint64_t{0};
    uint64_t ignored_ = ~uint64_t{0};
    uint64_t caught_ = ~uint64_t{0};
};

TEST_F(LaunchSignalTest, NoHandlerOfTheRunnerStays) {
    set([](int) {});
    launch();
    EXPECT_EQ(caught_, 0U);
    EXPECT_EQ(ignored_, 0U);
    EXPECT_EQ(blocked_, 0U);
}

TEST_F(LaunchSignalTest, AnIgnoredFileSizeLimitStaysIgnored) {
    set(SIG_IGN);
    launch();
    EXPECT_EQ(caught_, 0U);
    EXPECT_EQ(ignored_, bit(SIGXFSZ));
}

}  // namespace
}  // namespace kmes::conformance::tracing
