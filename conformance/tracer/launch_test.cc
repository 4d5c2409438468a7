// SPDX-License-Identifier: MIT
//
// The child of a Launch that no engine seizes: its end, and what it says of a failure.

#include "conformance/tracer/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "conformance/tracer/launch_child.h"

namespace kmes::conformance::tracing {
namespace {

// /dev/null, at a number that the testee does not get.
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

// The child has a copy of the runner's end of the socket, which it must not keep.
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

}  // namespace
}  // namespace kmes::conformance::tracing
