// SPDX-License-Identifier: MIT
//
// kmes_attach as a testee sees it, from programs of many kinds: event-model.md describes the call,
// and the testee contract the start.

#include <gmock/gmock.h>

#include <cerrno>
#include <fstream>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::testdata;
using tracer_testing::TestRun;

class AttachTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, AttachTest, kBothWays, name_of);

constexpr const char* kAttachedTwo = "attached 2\nclose-on-exec 1\nclose-on-exec 1\n";

TEST_P(AttachTest, GivesCloseOnExecFdsThatCanBeMapped) {
    TestRun run(options_for(GetParam()));
    run.start("attach");
    int attaches = 0;
    int maps = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* attached = std::get_if<Attached>(&event)) {
            ++attaches;
            EXPECT_EQ(attached->error, 0);
            EXPECT_EQ(attached->buffers, run.ids);
            EXPECT_EQ(attached->request.slots_requested, 64);
            EXPECT_EQ(attached->capacity_bytes, 65536u);
            EXPECT_EQ(attached->pid, run.tracer.testee_pid());
        }
        if (const auto* mapped = std::get_if<Mapped>(&event)) {
            ++maps;
            EXPECT_FALSE(mapped->deviation.any());
            EXPECT_EQ(mapped->error, 0);
        }
    });
    EXPECT_EQ(ended.kind, EndKind::kExited);
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_TRUE(ended.attached);
    EXPECT_TRUE(ended.mapped);
    EXPECT_EQ(attaches, 1);
    EXPECT_EQ(maps, 2);
    EXPECT_EQ(run.tracer.output().standard_output(), kAttachedTwo);
    EXPECT_EQ(run.tracer.interception(), GetParam());
}

TEST_P(AttachTest, AnswersTooFewSlotsAndBadPointersAsAKernel) {
    TestRun run(options_for(GetParam()));
    run.start("attach-errors");
    std::vector<int> errors;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* attached = std::get_if<Attached>(&event)) errors.push_back(attached->error);
    });
    EXPECT_EQ(ended.exit_status, 0);
    EXPECT_EQ(
        run.tracer.output().standard_output(),
        "question 34\nneeded 2\ntoo few 34\nneeded 2\nuntouched -7\nbad array 14\nbad count 14\n"
        "bad capacity 14\nread-only array 14\nright 0\n");
    EXPECT_EQ(errors, (std::vector<int>{ERANGE, ERANGE, EFAULT, EFAULT, EFAULT, EFAULT, 0}));
}

TEST_P(AttachTest, NamesTheArgumentThatItCannotWrite) {
    TestRun run(options_for(GetParam()));
    run.start("attach-errors");
    std::vector<std::string> reasons;
    run.finish([&](const TracerEvent& event) {
        const auto* attached = std::get_if<Attached>(&event);
        if (attached != nullptr && attached->bad_pointer)
            reasons.push_back(attached->bad_pointer->describe());
    });
    ASSERT_EQ(reasons.size(), 4u);
    EXPECT_EQ(reasons[0], "the memory at fds, 0x8, is not mapped");
    EXPECT_EQ(reasons[1], "the memory at count, 0x8, is not mapped");
    EXPECT_EQ(reasons[2], "the memory at capacity, 0x8, is not mapped");
    EXPECT_THAT(reasons[3], testing::ContainsRegex("^the memory at fds, 0x[0-9a-f]+, is mapped, "
                                                   "but may not be written$"));
}

TEST_P(AttachTest, NamesTheCallThatRemovedTheMemoryOfAnArgument) {
    TestRun run(options_for(GetParam()));
    run.start("attach-into-removed");
    std::vector<std::string> reasons;
    run.finish([&](const TracerEvent& event) {
        const auto* attached = std::get_if<Attached>(&event);
        if (attached == nullptr || attached->error == 0) return;
        EXPECT_EQ(attached->error, EFAULT);
        if (attached->bad_pointer) reasons.push_back(attached->bad_pointer->describe());
    });
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_THAT(reasons[0],
                testing::ContainsRegex(
                    "^the memory at fds, 0x[0-9a-f]+, is not mapped; it was removed by thread "
                    "[0-9]+ with munmap[(]0x[0-9a-f]+, 4096[)] at mode_attach_into_removed[(][)] "
                    "testee.c:[0-9]+"));
}

// The rights of the testee are not the reason.
TEST_P(AttachTest, NamesTheCallThatRemovedMemoryOfTheTracer) {
    TestRun run(options_for(GetParam()));
    run.start("remove-too-much");
    std::vector<TracerTrouble> troubles;
    const TimePoint deadline = limit();
    for (;;) {
        const TracerEvent event = run.tracer.wait(deadline);
        ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
        if (const auto* trouble = std::get_if<TracerTrouble>(&event)) troubles.push_back(*trouble);
        if (std::holds_alternative<Ended>(event)) break;
    }
    ASSERT_EQ(troubles.size(), 1u);
    EXPECT_EQ(troubles[0].reason, TracerTrouble::Reason::memory_removed) << troubles[0].what;
    EXPECT_THAT(troubles[0].what,
                testing::ContainsRegex("removed by thread [0-9]+ with munmap[(].*at "
                                       "mode_remove_too_much[(][)] testee.c:[0-9]+"));
}

TEST_P(AttachTest, GivesTheErrorThatTheRunnerChooses) {
    for (const int error : {EAGAIN, EPERM, EMFILE, ENOMEM}) {
        TestRun run(options_for(GetParam()));
        run.tracer.handlers().attach = [&](const AttachRequest&) {
            return AttachAnswer{error, {}, 0};
        };
        run.start("attach");
        const Ended ended = run.finish();
        EXPECT_EQ(ended.exit_status, 3);
        EXPECT_TRUE(ended.attached);
        EXPECT_EQ(run.tracer.output().standard_output(),
                  "attach failed " + std::to_string(error) + "\n");
    }
}

TEST_P(AttachTest, MakesFreshFdsForEveryCall) {
    TestRun run(options_for(GetParam()));
    run.start("attach-twice");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), "fresh fd 1\n");
}

TEST_P(AttachTest, GivesAllFdsOrNoneAndNeedsNoneForItself) {
    TestRun run(options_for(GetParam()));
    run.start("few-descriptors");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(),
              "one too few 24\nnone left open 1\nmapped 0\nlimit kept 1\n");
}

TEST_P(AttachTest, StartsTheTesteeAsTheContractSays) {
    TracerOptions options = options_for(GetParam());
    options.extra_environment = {"TRACER_TEST=1"};
    TestRun run(options);
    run.start("environment");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(),
              "report flags 1024\nreport close-on-exec 0\nlowest free 4\ninput empty 0\n"
              "SIGCHLD blocked 0\nleads session 1\nscratch variable 1\n");
    EXPECT_EQ(run.tracer.output().standard_error(), "to standard error\n");
    EXPECT_EQ(run.tracer.output().read_report(), "E 0 1\n");
    EXPECT_EQ(run.tracer.output().read_report(), "");
}

// By the contract: descriptor 1 if the variable is not set.
TEST(Report, IsTheStandardOutputOfAProgramWithoutTheVariable) {
    TestRun run;
    run.tracer.start({"sh", "-c", "echo before; exec env -u KMES_REPORT_FD \"$0\" few-descriptors",
                      testdata("testee")});
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().read_report(),
              "one too few 24\nnone left open 1\nmapped 0\nlimit kept 1\n");
    EXPECT_EQ(run.tracer.output().standard_output(), "before\n");
}

TEST(ReportWrites, AreShownBeforeTheyAreDone) {
    TestRun run;
    std::vector<ReportWrite> writes;
    run.tracer.handlers().report_write = [&writes](const ReportWrite& write) {
        writes.push_back(write);
    };
    run.start("report");
    EXPECT_EQ(run.finish().exit_status, 0);
    ASSERT_EQ(writes.size(), 3u);
    EXPECT_EQ(writes[0].begin, "E 0 0\n");
    EXPECT_TRUE(writes[0].ends_line);
    EXPECT_EQ(writes[1].begin, "# hello\nE 0 1\nE 0 ");
    EXPECT_EQ(writes[1].bytes, 18u);
    EXPECT_FALSE(writes[1].ends_line);
    EXPECT_EQ(writes[2].begin, std::string(ReportWrite::kBeginBytes, 'b'));
    EXPECT_EQ(writes[2].bytes, 1501u);
    EXPECT_TRUE(writes[2].ends_line);
}

TEST_P(AttachTest, ServesStaticPrograms) {
    TestRun run(options_for(GetParam()));
    run.start("attach", "testee_static");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), kAttachedTwo);
}

TEST_P(AttachTest, ServesWhatAWrapperStarts) {
    const std::string testee = testdata("testee");
    const std::vector<std::vector<std::string>> commands = {
        {"env", "A=b", testee, "attach"},
        {"sh", "-c", testee + " attach"},
        {"sh", "-c", "true; " + testee + " attach; exit 0"},
        {"sh", "-c", "true | " + testee + " attach"},
        {testee, "vfork-exec"},
    };
    for (const auto& command : commands) {
        TestRun run(options_for(GetParam()));
        run.tracer.start(command);
        const Ended ended = run.finish();
        EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
        EXPECT_EQ(ended.exit_status, 0) << ended.text;
        EXPECT_TRUE(ended.attached);
        EXPECT_EQ(run.tracer.output().standard_output(), kAttachedTwo) << command.back();
    }
}

TEST_P(AttachTest, ServesATesteeThatClosesEverythingFrom3Up) {
    TestRun run(options_for(GetParam()));
    run.start("close-all");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), "still there 42\n");
}

// Handlers for SIGSEGV and SIGTRAP, a timer every 200 us, 200 attaches of two fds each.
TEST_P(AttachTest, IsNotDisturbedBySignals) {
    TestRun run(options_for(GetParam()));
    run.start("signals");
    size_t attaches = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        attaches += std::holds_alternative<Attached>(event) ? 1 : 0;
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "attached 2\n");
    EXPECT_EQ(attaches, 200u);
    EXPECT_TRUE(run.tracer.mappings().empty());
}

TEST_P(AttachTest, ServesAnInterpreter) {
    std::ifstream python("/usr/bin/python3");
    if (!python) GTEST_SKIP() << "no /usr/bin/python3 on this machine";
    TestRun run(options_for(GetParam()));
    run.tracer.start({"/usr/bin/python3", testdata("testee.py")});
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* wait = std::get_if<FutexWait>(&event)) {
            ASSERT_EQ(wait->words.size(), 1u);
            EXPECT_EQ(wait->words[0].place.buffer, 1u);
            run.buffers[1]->wake();
        }
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text << run.tracer.output().standard_error();
    EXPECT_EQ(run.tracer.output().standard_output(), "attached 2, byte 42, word 1\n");
}

// The testee installs its own filter after a first attach. The filter permits a second attach and
// refuses the injected calls. The tracer reports that once, and the run continues.
TEST_P(AttachTest, AFilterThatRefusesAllElseIsReported) {
    TestRun run(options_for(GetParam()));
    run.start("own-filter");
    std::vector<TracerTrouble> troubles;
    const TimePoint deadline = limit();
    std::optional<Ended> ended;
    while (!ended && Clock::now() < deadline) {
        const TracerEvent event = run.tracer.wait(deadline);
        if (const auto* trouble = std::get_if<TracerTrouble>(&event)) troubles.push_back(*trouble);
        if (const auto* last = std::get_if<Ended>(&event)) ended = *last;
    }
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_status, EPERM) << ended->text;
    ASSERT_EQ(troubles.size(), 1u);
    EXPECT_EQ(troubles[0].reason, TracerTrouble::Reason::its_rights) << troubles[0].what;
}

// Another thread ends the process during an attach: the exit status is that of the process.
TEST_P(AttachTest, AnEndInTheMiddleIsReported) {
    for (int i = 0; i < 100; ++i) {
        TestRun run(options_for(GetParam()));
        run.start("end-in-attach");
        const TimePoint deadline = limit();
        for (;;) {
            const TracerEvent event = run.tracer.wait(deadline);
            ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
            if (const auto* trouble = std::get_if<TracerTrouble>(&event)) {
                EXPECT_EQ(trouble->reason, TracerTrouble::Reason::none_known) << trouble->what;
            }
            if (const auto* ended = std::get_if<Ended>(&event)) {
                ASSERT_EQ(ended->kind, EndKind::kExited) << ended->text;
                ASSERT_EQ(ended->exit_status, 78) << ended->text;
                break;
            }
        }
    }
}

// An outer filter answers 1091 with ENOSYS and takes precedence: kAutomatic notices that.
TEST(OuterFilter, IsFoundOutAndWorkedBelow) {
    TracerOptions options;
    options.simulate_outer_filter = true;
    TestRun run(options);
    run.start("attach");
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.interception(), Interception::kEveryCall);
    EXPECT_EQ(run.tracer.output().standard_output(), kAttachedTwo);

    options.interception = Interception::kSeccomp;  // the proof that the filter is there
    TestRun outranked(options);
    outranked.start("attach");
    const Ended ended = outranked.finish();
    EXPECT_FALSE(ended.attached);
    EXPECT_EQ(outranked.tracer.output().standard_output(), "attach failed 38\n");
}

TEST(AddBuffer, RefusesWhatCannotBeServed) {
    TestRun run;
    tracer_testing::TestBuffer buffer;
    ServedBuffer served = buffer.served();
    served.capacity_bytes = 65536 * 2;
    EXPECT_THROW(run.tracer.add_buffer(served), std::invalid_argument);
    served.capacity_bytes = 5000;
    EXPECT_THROW(run.tracer.add_buffer(served), std::invalid_argument);
    served = buffer.served();
    served.data_fd = -1;
    EXPECT_THROW(run.tracer.add_buffer(served), std::system_error);
}

}  // namespace
}  // namespace kmes::conformance
