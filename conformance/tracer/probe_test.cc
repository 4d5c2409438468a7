// SPDX-License-Identifier: MIT
//
// What the machine permits, said before the first testee is started.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

constexpr int kNoNamespace = 97;

// Writes the reason to `to` from a new process namespace whose /proc is still that of the old one.
[[noreturn]] void ask_in_new_namespace(int to) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        _exit(kNoNamespace);
    const pid_t first = fork();
    if (first == 0) {
        const std::string why = why_not_traceable();
        _exit(write(to, why.data(), why.size()) == static_cast<ssize_t>(why.size()) ? 0 : 1);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WEXITSTATUS(status));
}

// The answer of a process is kept, so this test asks first.
TEST(Probe, SaysThatProcShowsAnotherProcessNamespace) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) ask_in_new_namespace(ends[1]);
    close(ends[1]);
    char text[256];
    const ssize_t length = read(ends[0], text, sizeof text);
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "this user cannot make a namespace";
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(std::string(text, length > 0 ? static_cast<size_t>(length) : 0),
              "/proc is missing, or shows another process namespace: mount it for this one (mount "
              "-t proc proc /proc, or unshare --mount-proc)");
    EXPECT_EQ(why_not_traceable(), "") << "of this process";
}

}  // namespace
}  // namespace kmes::conformance
