// SPDX-License-Identifier: MIT
//
// Failing starts, child processes, ends and floods of output. Repeated runs leak nothing.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/tracer/proc.h"
#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::testdata;
using tracer_testing::TestRun;

class ProcessTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, ProcessTest, kBothWays, name_of);

size_t open_descriptors() {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

Ended start_and_end(const std::vector<std::string>& arguments) {
    TestRun run;
    run.tracer.start(arguments);
    return run.finish();
}

TEST_P(ProcessTest, AProgramThatNeverAttachesSaysSo) {
    TestRun run(options_for(GetParam()));
    run.start("nothing");
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited);
    EXPECT_EQ(ended.exit_status, 5);
    EXPECT_FALSE(ended.attached);
    EXPECT_NE(ended.text.find("without having called kmes_attach"), std::string::npos);
}

TEST_P(ProcessTest, ChildrenOfTheTesteeAreReportedAndRunOn) {
    TestRun run(options_for(GetParam()));
    run.start("fork");
    size_t forks = 0;
    size_t foreign = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        forks += std::holds_alternative<Forked>(event) ? 1 : 0;
        foreign += std::holds_alternative<ForeignAttach>(event) ? 1 : 0;
    });
    EXPECT_EQ(ended.exit_status, 0);
    EXPECT_EQ(forks, 2u);
    EXPECT_EQ(foreign, 1u);
    EXPECT_EQ(run.tracer.output().standard_output(),
              "child " + std::to_string(EPERM) + "\nspawned 0\n");
}

// LeakSanitizer's helper requests that. If it were not traced, the filtered calls would fail in it.
TEST_P(ProcessTest, AChildThatAsksNotToBeTracedIsTraced) {
    TestRun run(options_for(GetParam()));
    run.start("untraced-clone");
    size_t forks = 0;
    const Ended ended = run.finish(
        [&](const TracerEvent& event) { forks += std::holds_alternative<Forked>(event) ? 1 : 0; });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(forks, 1u);
    EXPECT_EQ(run.tracer.output().standard_output(), "untraced 21\n");
}

TEST_P(ProcessTest, ANewProgramInTheTesteeIsReported) {
    TestRun run(options_for(GetParam()));
    run.start("exec");
    ASSERT_TRUE(run.next<Executed>());
    EXPECT_TRUE(run.tracer.mappings().empty());
    EXPECT_EQ(run.finish().exit_status, 0);
}

// Starts "leaves-processes", and returns the processes that it names, when it sleeps.
std::vector<pid_t> start_and_leave_processes(TestRun* run) {
    run->start("leaves-processes");
    EXPECT_TRUE(run->next<FutexWait>());
    std::istringstream lines(run->tracer.output().standard_output());
    std::vector<pid_t> processes;
    std::string word;
    for (pid_t process = 0; lines >> word >> process;) processes.push_back(process);
    EXPECT_EQ(processes.size(), 5u);
    return processes;
}

std::vector<pid_t> processes_of_session(pid_t session) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto pid = static_cast<pid_t>(std::stoi(name));
        if (getsid(pid) == session) found.push_back(pid);
    }
    return found;
}

// Not even as processes that have ended: a container may have an init that waits for nobody.
TEST_P(ProcessTest, NoDescendantIsLeft) {
    std::vector<pid_t> processes;
    {
        TestRun run(options_for(GetParam()));
        processes = start_and_leave_processes(&run);
        EXPECT_EQ(tracing::read_status(processes.back())->tracer, getpid()) << "it is not traced";
    }
    for (const pid_t pid : processes) EXPECT_FALSE(tracing::read_status(pid)) << pid;
}

TEST_P(ProcessTest, TheEndOfARunLeavesAnotherRunAlone) {
    TestRun run(options_for(GetParam()));
    const std::vector<pid_t> processes = start_and_leave_processes(&run);
    std::thread([] {
        TestRun other(options_for(GetParam()));
        const std::vector<pid_t> others = start_and_leave_processes(&other);
        other.tracer.kill_all();
        for (const pid_t pid : others) EXPECT_FALSE(tracing::read_status(pid)) << pid;
    }).join();
    for (const pid_t pid : processes) EXPECT_TRUE(tracing::read_status(pid)) << pid;
    run.tracer.kill_all();
    for (const pid_t pid : processes) EXPECT_FALSE(tracing::read_status(pid)) << pid;
}

// The kill meets processes at every stage of a fork: some children are not known yet.
TEST_P(ProcessTest, AForkBombEndsWithTheRun) {
    for (int i = 0; i < 20; ++i) {
        pid_t testee = 0;
        {
            TestRun run(options_for(GetParam()));
            run.start("fork-bomb");
            for (int fork = 0; fork < 6; ++fork) ASSERT_TRUE(run.next<Forked>());
            testee = run.tracer.testee_pid();
            EXPECT_GT(processes_of_session(testee).size(), 6u);
        }
        ASSERT_TRUE(processes_of_session(testee).empty()) << i;
    }
}

TEST_P(ProcessTest, AForkBombIsStoppedBeforeItTakesAllProcessNumbers) {
    constexpr size_t kMost = 1100;
    TestRun run(options_for(GetParam()));
    run.start("fork-bomb");
    TracerTrouble trouble;
    while (trouble.what.empty()) {
        const TracerEvent event = run.tracer.wait(limit());
        ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
        if (const auto* found = std::get_if<TracerTrouble>(&event)) trouble = *found;
    }
    EXPECT_EQ(trouble.what, "the testee has more than 500 processes at once");
    EXPECT_EQ(trouble.reason, TracerTrouble::Reason::too_many_processes);
    while (!std::holds_alternative<TimedOut>(run.tracer.wait(Clock::now()))) continue;
    const pid_t testee = run.tracer.testee_pid();
    EXPECT_LT(processes_of_session(testee).size(), kMost);
    run.tracer.kill_all();
    EXPECT_TRUE(processes_of_session(testee).empty());
}

// The machine is the reason, so a consumer is not blamed for what it does then.
TEST_P(ProcessTest, AProcessThatTheKernelRefusesIsReported) {
    constexpr int kNoNamespaces = 97;
    TestRun run(options_for(GetParam()));
    run.start("no-more-processes");
    std::vector<TracerTrouble> troubles;
    Ended ended;
    while (ended.text.empty()) {
        const TracerEvent event = run.tracer.wait(limit());
        ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
        if (const auto* trouble = std::get_if<TracerTrouble>(&event)) troubles.push_back(*trouble);
        if (const auto* end = std::get_if<Ended>(&event)) ended = *end;
    }
    if (ended.exit_status == kNoNamespaces) GTEST_SKIP() << "this user cannot make a namespace";
    EXPECT_EQ(ended.exit_status, 0);
    ASSERT_EQ(troubles.size(), 2u) << "a fork and a vfork; the first fork was not refused";
    for (const TracerTrouble& trouble : troubles) {
        EXPECT_EQ(trouble.reason, TracerTrouble::Reason::task_refused);
        EXPECT_EQ(trouble.what.find("the testee could not make a thread or a process: Cannot "
                                    "allocate memory. "),
                  0u)
            << trouble.what;
    }
}

TEST_P(ProcessTest, NothingOutlivesTheTracer) {
    pid_t testee = 0;
    std::vector<pid_t> daemons;
    {
        TestRun run(options_for(GetParam()));
        run.start("daemon");
        const Ended ended =
            run.finish([&](const TracerEvent&) { testee = run.tracer.testee_pid(); });
        EXPECT_EQ(ended.exit_status, 0);
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            const std::string name = entry.path().filename();
            if (name.find_first_not_of("0123456789") != std::string::npos) continue;
            std::ifstream file(entry.path() / "status");
            const std::string status(std::istreambuf_iterator<char>(file), {});
            if (status.find("TracerPid:\t" + std::to_string(getpid()) + "\n") !=
                std::string::npos) {
                daemons.push_back(std::stoi(name));
            }
        }
        EXPECT_EQ(daemons.size(), 1u);
    }
    ASSERT_NE(testee, 0);
    for (const pid_t pid : daemons) EXPECT_FALSE(tracing::read_status(pid)) << pid;
    int status = 0;
    EXPECT_EQ(waitpid(-1, &status, __WALL | WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST_P(ProcessTest, AHangingTesteeIsKilledAndTheRunEnds) {
    TestRun run(options_for(GetParam()));
    run.start("hang");
    ASSERT_TRUE(run.next<Mapped>());
    run.tracer.kill_all();
    const TracerEvent event = run.tracer.wait(limit());
    const auto* ended = std::get_if<Ended>(&event);
    ASSERT_NE(ended, nullptr);
    EXPECT_EQ(ended->kind, EndKind::kKilled);
    EXPECT_TRUE(ended->attached);
}

// An operator, the kernel's killer of processes where memory is used up, or a limit of time.
TEST_P(ProcessTest, AnEndFromOutsideIsMarked) {
    for (const int signal : {SIGKILL, SIGTERM}) {
        TestRun run(options_for(GetParam()));
        run.start("hang");
        ASSERT_TRUE(run.next<Mapped>());
        const std::string kill_it =
            "kill -" + std::to_string(signal) + " " + std::to_string(run.tracer.testee_pid());
        ASSERT_EQ(system(kill_it.c_str()), 0);
        const Ended ended = run.finish([](const TracerEvent&) {});
        EXPECT_EQ(ended.signal, signal);
        EXPECT_TRUE(ended.is_from_outside) << signal;
    }
    TestRun run(options_for(GetParam()));
    run.start("abort");
    const Ended ended = run.finish([](const TracerEvent&) {});
    EXPECT_EQ(ended.signal, SIGABRT);
    EXPECT_FALSE(ended.is_from_outside);
}

TEST_P(ProcessTest, AStopFromOutsideIsReported) {
    TestRun run(options_for(GetParam()));
    run.start("hang");
    ASSERT_TRUE(run.next<Mapped>());
    const std::string stop_it = "kill -STOP " + std::to_string(run.tracer.testee_pid());
    ASSERT_EQ(system(stop_it.c_str()), 0);
    TracerTrouble trouble;
    while (trouble.what.empty()) {
        const TracerEvent event = run.tracer.wait(limit());
        ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
        if (const auto* found = std::get_if<TracerTrouble>(&event)) trouble = *found;
    }
    EXPECT_EQ(trouble.reason, TracerTrouble::Reason::stopped);
    EXPECT_EQ(trouble.what,
              "another process or the terminal has stopped the testee by SIGSTOP, and it would not "
              "run before a SIGCONT");
}

TEST_P(ProcessTest, AFloodIsBoundedAndReported) {
    TracerOptions options = options_for(GetParam());
    options.output_limit_bytes = 1 << 20;
    options.shown_output_bytes = 1000;
    TestRun run(options);
    run.start("flood");
    const auto limit_event = run.next<OutputLimit>();
    ASSERT_TRUE(limit_event);
    EXPECT_EQ(limit_event->file, OutputLimit::File::kStandardOutput);
    run.tracer.kill_all();
    const std::string shown = run.tracer.output().standard_output();
    EXPECT_LT(shown.size(), 1200u);
    EXPECT_NE(shown.find("bytes left out"), std::string::npos);
}

TEST(Start, SaysWhyAProgramCannotBeStarted) {
    // (The process id must not be part of the name: tests in different sandboxes can have the
    // same.)
    std::string made = std::filesystem::temp_directory_path() / "tracer_test_XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr) << made;
    const std::filesystem::path folder = made;
    std::ofstream(folder / "text") << "neither\n";
    std::ofstream(folder / "lost") << "#!/no/such/interpreter\n";
    std::filesystem::permissions(folder / "lost", std::filesystem::perms::owner_all);

    Ended ended = start_and_end({folder / "absent"});
    EXPECT_EQ(ended.kind, EndKind::kNotStarted);
    EXPECT_EQ(ended.error, ENOENT);
    EXPECT_NE(ended.text.find("no such file"), std::string::npos) << ended.text;

    ended = start_and_end({"no-such-program-in-path"});
    EXPECT_EQ(ended.error, ENOENT);
    EXPECT_NE(ended.text.find("in PATH"), std::string::npos) << ended.text;

    ended = start_and_end({folder / "text"});
    EXPECT_EQ(ended.error, EACCES);
    EXPECT_NE(ended.text.find("not executable"), std::string::npos) << ended.text;

    std::filesystem::permissions(folder / "text", std::filesystem::perms::owner_all);
    ended = start_and_end({folder / "text"});
    EXPECT_EQ(ended.error, ENOEXEC);
    EXPECT_NE(ended.text.find("#!"), std::string::npos) << ended.text;

    ended = start_and_end({folder / "lost"});
    EXPECT_EQ(ended.error, ENOENT);
    EXPECT_NE(ended.text.find("interpreter"), std::string::npos) << ended.text;

    ended = start_and_end({folder});
    EXPECT_EQ(ended.error, EACCES);
    EXPECT_NE(ended.text.find("folder"), std::string::npos) << ended.text;

    ended = start_and_end({});
    EXPECT_EQ(ended.kind, EndKind::kNotStarted);
    std::filesystem::remove_all(folder);
}

TEST(Start, ASanitizerThatNeedsPtraceIsRecognized) {
    TestRun run;
    run.tracer.start(
        {"sh", "-c",
         "echo 'LeakSanitizer does not work under ptrace (strace, gdb, etc)' >&2; exit 23"});
    const Ended ended = run.finish();
    EXPECT_TRUE(ended.sanitizer_needs_ptrace);
    EXPECT_NE(ended.text.find("LeakSanitizer"), std::string::npos) << ended.text;
}

TEST(Endurance, AThousandRunsLeaveNothing) {
    start_and_end({testdata("testee"), "attach"});  // makes what exists once in a process
    const size_t descriptors = open_descriptors();
    for (int i = 0; i < 1000; ++i) {
        TestRun run(options_for(i % 2 == 0 ? Interception::kSeccomp : Interception::kEveryCall));
        run.start(i % 3 == 0 ? "all-asleep" : "attach");
        if (i % 3 == 0) {
            ASSERT_TRUE(run.next<FutexWait>());  // destroyed in the middle
        } else {
            ASSERT_EQ(run.finish().exit_status, 0);
        }
    }
    EXPECT_EQ(open_descriptors(), descriptors);
    int status = 0;
    EXPECT_EQ(waitpid(-1, &status, __WALL | WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

// If many threads stop all the time, the last one has its turn, too.
TEST(Threads, EachGetsItsTurn) {
    TestRun run;
    run.start("crowd");
    ASSERT_TRUE(run.next<Mapped>());
    EXPECT_EQ(run.finish().exit_status, 7);
}

TEST(Threads, WhatTheKernelEndsByItselfIsNotForGood) {
    for (const std::string on : {"read", "poll", "epoll", "eventfd", "open", "socket"}) {
        TestRun run;
        run.tracer.start({testdata("testee"), "blocked-on", on});
        ASSERT_TRUE(run.next<Mapped>());
        Inspection inspection;
        for (const TimePoint deadline = limit(); !inspection.all_blocked;) {
            ASSERT_LT(Clock::now(), deadline) << on;
            run.tracer.wait(Clock::now() + std::chrono::milliseconds(2));
            inspection = run.tracer.inspect();
        }
        // The peer of a socket may be outside of the run.
        EXPECT_EQ(inspection.all_blocked_for_good, on == "eventfd" || on == "socket") << on;
        EXPECT_EQ(inspection.others_may_end_it, on == "socket") << on;
    }
}

TEST(ThisThread, GetsItsSignalsBack) {
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    {
        start_and_end({testdata("testee"), "attach"});
    }
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(sigismember(&before, SIGCHLD), sigismember(&after, SIGCHLD));
    sigset_t pending;
    sigpending(&pending);
    EXPECT_FALSE(sigismember(&pending, SIGCHLD));
}

}  // namespace
}  // namespace kmes::conformance
