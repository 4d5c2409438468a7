// SPDX-License-Identifier: MIT
//
// After detach, another program can trace the run, and the testee keeps its buffers.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::limit;
using tracer_testing::options_for;
using tracer_testing::TestRun;

// The value of a line of /proc/PID/status; empty if there is none.
std::string status_of(pid_t pid, const std::string& name) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
    }
    return {};
}

bool comes(pid_t pid, const std::string& name, const std::string& value) {
    while (Clock::now() < limit()) {
        if (status_of(pid, name).starts_with(value)) return true;
        usleep(1000);
    }
    return false;
}

TEST(DetachTest, TheTesteeIsStoppedWithoutATracerAndContinuesAtSigcont) {
    TestRun run(options_for(Interception::kEveryCall));
    run.start("sleep");
    ASSERT_TRUE(run.next<FutexWait>());
    run.until_asleep();
    const pid_t pid = run.tracer.testee_pid();
    ASSERT_TRUE(run.tracer.detach(limit()));
    EXPECT_EQ(status_of(pid, "TracerPid"), "0");
    EXPECT_TRUE(comes(pid, "State", "T"));
    EXPECT_TRUE(std::holds_alternative<Ended>(run.tracer.wait(limit())));
    kill(pid, SIGCONT);
    EXPECT_TRUE(comes(pid, "State", "S"));
    // It still sleeps on the buffer's word, and this wakes it.
    int status = 0;
    pid_t gone = 0;
    for (const TimePoint end = limit(); gone == 0 && Clock::now() < end;) {
        run.buffers[0]->wake();
        gone = waitpid(pid, &status, WNOHANG | __WALL);
        usleep(1000);
    }
    EXPECT_EQ(gone, pid);
    EXPECT_EQ(status, 0);  // it has exited
    if (gone != pid) kill(pid, SIGKILL);
}

TEST(DetachTest, AFilterOrAnEndForbidsIt) {
    TestRun filtered(options_for(Interception::kSeccomp));
    filtered.start("sleep");
    ASSERT_TRUE(filtered.next<FutexWait>());
    EXPECT_FALSE(filtered.tracer.detach(limit()));
    EXPECT_NE(status_of(filtered.tracer.testee_pid(), "TracerPid"), "0");
}

}  // namespace
}  // namespace kmes::conformance
