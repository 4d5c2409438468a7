// SPDX-License-Identifier: MIT
//
// Guard pages stop before every access, exactly once, and in order.

#include <linux/futex.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdio>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::act_in_timed_wait;
using tracer_testing::end_before_failed;
using tracer_testing::kBothWays;
using tracer_testing::kNotPossibleHere;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class GuardTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, GuardTest, kBothWays, name_of);

struct Seen {
    uint64_t offset_bytes;
    uint32_t size_bytes;
    bool is_read;
    bool is_write;
    uint64_t before;
    uint64_t after;
    bool operator==(const Seen&) const = default;
};

TEST_P(GuardTest, AKnownSequenceIsSeenAccessByAccess) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("accesses", 0, 2));
    std::vector<Seen> all;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        if (all.empty()) *reinterpret_cast<uint64_t*>(run.buffers[0]->metadata() + 64) = 1000;
        const GuardStep step = run.tracer.guards().step(hit->tid);
        ASSERT_EQ(step.outcome, GuardStep::Outcome::kDone);
        ASSERT_EQ(step.accesses.size(), 1u) << hit->code.describe();
        const BufferAccess& access = step.accesses[0];
        all.push_back({access.place.offset_bytes, access.size_bytes, access.is_read,
                       access.is_write, step.value_before, step.value_after});
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    const std::vector<Seen> expected = {
        {64, 8, true, false, 1000, 1000}, {132, 1, false, true, 0, 1},
        {136, 4, true, true, 0, 5},       {128, 4, true, false, 0, 0},
        {4101, 1, true, false, 42, 42},
    };
    EXPECT_EQ(all, expected);
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 1000\nlast 42\n");
}

// The instructions between two accesses can be examined one by one, to see what orders the
// accesses.
TEST_P(GuardTest, TheNextInstructionIsReportedAndCanBeSteppedOver) {
    TestRun run(options_for(GetParam()));
    const auto mapped = run.start_guarded("accesses", 0, 2);
    ASSERT_TRUE(mapped);
    std::vector<bool> barriers;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        const auto next = run.tracer.guards().next_instruction(hit->tid);
        ASSERT_TRUE(next);
        EXPECT_EQ(next->code.resolved().text, hit->code.resolved().text);
        barriers.push_back(next->is_full_barrier);
        if (barriers.size() == 2) {
            EXPECT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
            return;
        }
        ASSERT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
        // Step to the next access, which the guards stop again, or to a system call.
        for (int i = 0; i < 1000; ++i) {
            const auto between = run.tracer.guards().next_instruction(hit->tid);
            ASSERT_TRUE(between);
            if (between->is_system_call || !run.tracer.guards().step_over(hit->tid)) break;
            EXPECT_FALSE(between->is_full_barrier) << between->code.resolved().text;
        }
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(barriers, (std::vector<bool>{false, false}));
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 0\nlast 42\n");
}

// The trap flag of a step must not appear in flags that the testee saves and restores later.
TEST_P(GuardTest, AStepIsNotSeenInTheFlags) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("flags", 0, 1));
    size_t hits = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        ++hits;
        ASSERT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
        for (int i = 0; i < 1000; ++i) {
            const auto between = run.tracer.guards().next_instruction(hit->tid);
            ASSERT_TRUE(between);
            if (between->is_system_call || !run.tracer.guards().step_over(hit->tid)) break;
        }
    });
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(hits, 2u);
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 0\ntrap flag 0\n");
}

// The same with every instruction stepped.
TEST_P(GuardTest, SingleStepsAreNotSeenInTheFlags) {
    TracerOptions options = options_for(GetParam());
    options.stepping = Stepping::kSingleStep;
    TestRun run(options);
    const auto mapped = run.start_guarded("flags", 0, 1);
    ASSERT_TRUE(mapped);
    size_t hits = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (std::get_if<GuardHit>(&event) == nullptr || ++hits == 1) return;
        EXPECT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    });
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(hits, 2u);
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 0\ntrap flag 0\n");
}

TEST_P(GuardTest, AReleasedGuardIsGone) {
    TestRun run(options_for(GetParam()));
    run.start("accesses");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    EXPECT_FALSE(run.tracer.guards().add(mapped->mapping.id, 0, 100)) << "longer than the mapping";
    EXPECT_FALSE(run.tracer.guards().add(mapped->mapping.id + 7, 0, 1)) << "no such mapping";
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
    const auto hit = run.next<GuardHit>();
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->place.offset_bytes, 64u);
    *reinterpret_cast<uint64_t*>(run.buffers[0]->metadata() + 64) = 5;
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    size_t more = 0;
    const Ended ended = run.finish(
        [&](const TracerEvent& event) { more += std::holds_alternative<GuardHit>(event) ? 1 : 0; });
    EXPECT_EQ(ended.exit_status, 0);
    EXPECT_EQ(more, 0u);
    EXPECT_EQ(run.tracer.output().standard_output(), "seen 5\nlast 42\n");
}

TEST_P(GuardTest, OfAMappingGivenBackInPartTheRestIsGuarded) {
    TestRun run(options_for(GetParam()));
    run.buffers[0]->data()[5] = 42;
    run.start("half-map");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<FutexWait>());
    const Mapping& all = mapped->mapping;
    ASSERT_TRUE(run.tracer.guards().add(all.id, 0, all.length_bytes / 4096));
    EXPECT_TRUE(run.tracer.guards().add(all.id, all.length_bytes / 4096 - 1, 1)) << "it is gone";
    run.buffers[0]->wake();
    std::vector<uint64_t> seen;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        seen.push_back(hit->place.offset_bytes);
        run.tracer.guards().step(hit->tid);
        run.tracer.release(hit->tid);
    });
    EXPECT_EQ(ended.exit_status, 0);
    EXPECT_EQ(seen, (std::vector<uint64_t>{4096 + 5, 4096 + 65535}));
    EXPECT_EQ(run.tracer.output().standard_output(), "first 42\nlast 0\n");
}

TEST_P(GuardTest, ReadsOfTheMetadataPassAsLongAsTheyAreLet) {
    TestRun run(options_for(GetParam()));
    run.start("accesses");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    const MappingId id = mapped->mapping.id;
    EXPECT_FALSE(run.tracer.guards().let_reads_pass(id + 1, true)) << "no such mapping";
    ASSERT_TRUE(run.tracer.guards().add(id, 0, 2));
    ASSERT_TRUE(run.tracer.guards().let_reads_pass(id, true));
    std::vector<uint64_t> offsets;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        offsets.push_back(hit->place.offset_bytes);
        // After a load at 64, and before one at 128.
        if (offsets.size() == 2) {
            ASSERT_TRUE(run.tracer.guards().let_reads_pass(id, false));
        }
        ASSERT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(offsets, (std::vector<uint64_t>{132, 136, 128, 4101}));
}

TEST_P(GuardTest, AStoreToGuardedDataIsStillAWriteFault) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("write-data-handled", 1, 1));
    const auto hit = run.next<GuardHit>();
    ASSERT_TRUE(hit);
    const GuardStep step = run.tracer.guards().step(hit->tid);
    EXPECT_EQ(step.outcome, GuardStep::Outcome::kWriteFault);
    const auto fault = run.next<WriteFault>();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->access.place.offset_bytes, 4196u);
    EXPECT_EQ(run.finish().exit_status, 7);
    EXPECT_EQ(run.tracer.output().standard_output(), "handled 11\nat offset 4196\ncode 2\n");
}

// Three threads that read in a loop, a timer every millisecond, handlers for SIGSEGV and SIGTRAP.
// Every access is seen, and no handler of the testee runs.
TEST_P(GuardTest, ThreadsAndSignalsDoNotSlipThrough) {
    TestRun run(options_for(GetParam()));
    run.start("guarded-threads");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<FutexWait>());
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
    std::map<pid_t, int> hits;
    const TimePoint deadline = limit();
    for (int i = 0; i < 150 || (hits.size() < 3 && Clock::now() < deadline); ++i) {
        const auto hit = run.next<GuardHit>();
        ASSERT_TRUE(hit);
        ++hits[hit->tid];
        EXPECT_EQ(hit->place.offset_bytes, 64u);
        const GuardStep step = run.tracer.guards().step(hit->tid);
        ASSERT_EQ(step.outcome, GuardStep::Outcome::kDone);
    }
    EXPECT_EQ(hits.size(), 3u);
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    run.buffers[0]->wake();
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "done 0\n");
}

// Threads that read guarded pages block all signals. Another has a SIGSEGV handler for memory of
// its own, and checks the handler. Neither mask nor handler may change.
TEST_P(GuardTest, BlockedSignalsStayBlockedAndTheHandlerStays) {
    TestRun run(options_for(GetParam()));
    run.start("blocked-signals");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    uint64_t hits = 0;
    run.tracer.handlers().guarded_access = [&](const GuardHit&) {
        ++hits;
        return GuardAnswer::kStep;
    };
    for (int iteration = 0; iteration < 20; ++iteration) {
        ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
        const uint64_t before = hits;
        const TimePoint deadline = limit();
        while (hits < before + 100 && Clock::now() < deadline) {
            const TracerEvent event = run.tracer.wait(Clock::now() + std::chrono::milliseconds(2));
            ASSERT_FALSE(std::holds_alternative<Ended>(event))
                << std::get<Ended>(event).text << run.tracer.output().standard_error();
        }
        EXPECT_GE(hits, before + 100);
        ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    }
    *run.buffers[0]->word() = 1;  // tells the testee to end
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text << run.tracer.output().standard_error();
}

// Pointers into guarded pages work in system calls as without guards, and do not count as accesses
// of the program.
TEST_P(GuardTest, SystemCallsReachGuardedPages) {
    TestRun run(options_for(GetParam()));
    run.buffers[0]->data()[6] = 'x';
    run.buffers[0]->data()[7] = 'y';
    for (int i = 0; i < 4; ++i) run.buffers[0]->metadata()[i] = 'm';
    ASSERT_TRUE(run.start_guarded("guarded-calls", 0, 2));
    std::vector<int64_t> ends;
    for (int i = 0; i < 2; ++i) {
        const auto wait = run.next<FutexWait>();
        ASSERT_TRUE(wait);
        ASSERT_EQ(wait->words.size(), 1u);
        EXPECT_EQ(wait->words[0].place.offset_bytes, 128u);
        EXPECT_EQ(wait->words[0].value_there, 0u);
        const Inspection inspection = run.until_asleep();
        ASSERT_TRUE(inspection.all_blocked_for_good);
        ASSERT_EQ(inspection.threads[0].words.size(), 1u);
        ASSERT_TRUE(run.tracer.freeze_all(limit()));
        run.tracer.thaw_all();
        ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
        EXPECT_EQ(run.buffers[0]->wake(), 1);
        *run.buffers[0]->word() = 0;
        const auto end = run.next<FutexWaitEnd>();
        ASSERT_TRUE(end);
        ends.push_back(end->result);
    }
    size_t hits = 0;
    const Ended ended = run.finish(
        [&](const TracerEvent& event) { hits += std::holds_alternative<GuardHit>(event) ? 1 : 0; });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(hits, 0u) << "a forked child reads the page without a guard";
    EXPECT_EQ(ends, (std::vector<int64_t>{0, 0}));
    EXPECT_EQ(run.tracer.output().standard_error(), "*xy*xmmmm*xy");
    EXPECT_EQ(run.tracer.output().standard_output(),
              "write 3\nwritev 6\nsendmsg 6\nmessage kept 1\nreadv of itself 3\nwaitv 0\n"
              "vector kept 1\nwait 0\nchild 12\n");
}

// rt_sigreturn ignores the values of the registers. After it, the registers are those of the code
// that the signal interrupted.
TEST_P(GuardTest, ASignalKeepsTheRegisters) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("signal-context", 0, 2));
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(),
              "handled 1\nkept 1\nkept 1\nkept 1\nkept 1\nkept 1\nkept 1\n");
}

TEST_P(GuardTest, AChildHasTheRegistersOfItsParent) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("child-registers", 0, 2));
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "parent kept 1\nchild 21\n");
}

// A thread is at the entry of its wait, or sleeps in a timed one, when the guard is set. Neither
// may get EFAULT.
TEST_P(GuardTest, AGuardInTheMiddleOfAWaitDoesNotHarmIt) {
    for (const bool is_asleep : {false, true}) {
        const auto add_guard = [is_asleep](TestRun& run,
                                           MappingId mapping) -> std::optional<FutexWaitEnd> {
            if (is_asleep) {
                const TracerEvent event =
                    run.tracer.wait(Clock::now() + std::chrono::milliseconds(20));
                if (const auto* end = std::get_if<FutexWaitEnd>(&event)) return *end;
            }
            if (!run.tracer.guards().add(mapping, 0, 1)) return end_before_failed("add", run);
            return std::nullopt;
        };
        act_in_timed_wait(options_for(GetParam()), add_guard);
    }
}

// Plays a testee that starts children between two accesses to a guarded page. The children must
// work, and the testee's guards must stay.
void play_with_children(Interception interception, const std::string& mode,
                        const std::string& output) {
    TestRun run(options_for(interception));
    ASSERT_TRUE(run.start_guarded(mode, 0, 1));
    size_t hits = 0;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        ++hits;
        EXPECT_EQ(run.tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(hits, 2u);
    EXPECT_EQ(run.tracer.output().standard_output(), output);
}

TEST_P(GuardTest, ChildrenDoNotOpenTheTesteesGuards) {
    play_with_children(GetParam(), "fork-and-read", "child 0\nspawned 0\n");
}

TEST_P(GuardTest, GuardsStayWhenAProgramIsStartedWithoutTheFirstThread) {
    play_with_children(GetParam(), "spawn-without-the-leader", "spawned 0\n");
}

// All accesses of one string instruction to guarded pages count as one.
TEST_P(GuardTest, ARepeatedStringInstructionIsOneAccess) {
    TestRun run(options_for(GetParam()));
    ASSERT_TRUE(run.start_guarded("rep-movsb", 1, 1));
    const auto hit = run.next<GuardHit>();
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->place.offset_bytes, 4101u);
    ASSERT_EQ(hit->accesses.size(), 1u);
    EXPECT_EQ(hit->accesses[0].size_bytes, 4u);
    EXPECT_EQ(hit->accesses[0].value, 42u);
    // Overwrite the byte before the copy.
    run.buffers[0]->data()[7] = 9;
    const GuardStep step = run.tracer.guards().step(hit->tid);
    EXPECT_EQ(step.outcome, GuardStep::Outcome::kDone);
    EXPECT_EQ(step.way, GuardStep::Way::kEmulated);
    EXPECT_EQ(step.value_before, 0x09002au);
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "sum 51\n");
}

// A case guards a page beside those of the recorder, and must see the access to it.
TEST_P(GuardTest, ARepeatedStringInstructionStopsWhereAGuardBegins) {
    for (const bool has_second : {false, true}) {
        TestRun run(options_for(GetParam()));
        const auto mapped = run.start_guarded("rep-movsb-across-pages", 1, 2);
        ASSERT_TRUE(mapped);
        const bool is_second = has_second && run.tracer.guards().add(mapped->mapping.id, 2, 1);
        ASSERT_EQ(is_second, has_second);
        std::vector<uint32_t> sizes;
        const Ended ended = run.finish([&](const TracerEvent& event) {
            const auto* hit = std::get_if<GuardHit>(&event);
            if (hit == nullptr) return;
            const GuardStep step = run.tracer.guards().step(hit->tid);
            EXPECT_EQ(step.outcome, GuardStep::Outcome::kDone);
            ASSERT_EQ(step.accesses.size(), 1u);
            sizes.push_back(step.accesses[0].size_bytes);
        });
        EXPECT_EQ(ended.exit_status, 0) << ended.text;
        EXPECT_EQ(sizes, has_second ? (std::vector<uint32_t>{3, 1}) : std::vector<uint32_t>{4});
    }
}

// The offsets of the accesses that the guards of the first mapping see.
struct Protecting {
    std::vector<uint64_t> offsets;
    Ended ended;
    std::string output;
};

Protecting run_protecting(Interception interception, const std::string& mode, bool is_guarded) {
    TestRun run(options_for(interception), 1);
    Protecting seen;
    run.start(mode);
    seen.ended = run.finish([&](const TracerEvent& event) {
        // Guard both mappings of a testee that maps twice.
        const auto* mapped = std::get_if<Mapped>(&event);
        if (mapped != nullptr && is_guarded) {
            EXPECT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 33));
        }
        EXPECT_EQ(std::get_if<WriteFault>(&event), nullptr);
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        seen.offsets.push_back(hit->place.offset_bytes);
        run.tracer.guards().step(hit->tid);
    });
    seen.output = run.tracer.output().standard_output();
    return seen;
}

TEST_P(GuardTest, AnMprotectOfTheTesteeOpensNoGuard) {
    for (const bool is_guarded : {false, true}) {
        const Protecting seen = run_protecting(GetParam(), "protects-again", is_guarded);
        EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
        EXPECT_EQ(seen.output, "metadata 0\ndata 0\nword 0\nbyte 42\n");
        EXPECT_EQ(seen.offsets,
                  is_guarded ? (std::vector<uint64_t>{128, 4101}) : std::vector<uint64_t>{});
    }
}

TEST_P(GuardTest, APageThatTheTesteeClosesFaultsAsWithoutGuards) {
    for (const bool is_guarded : {false, true}) {
        const Protecting idle = run_protecting(GetParam(), "protects-while-idle", is_guarded);
        EXPECT_EQ(idle.ended.exit_status, 0) << idle.ended.text;
        EXPECT_EQ(idle.output,
                  "closed 0\nbyte 42\nfaults 1\nbyte 42\ncall 9\nclosed page in a call 14\n"
                  "open page in a call 0\nfaults 1\n");
        EXPECT_EQ(idle.offsets,
                  is_guarded ? (std::vector<uint64_t>{4101, 4101}) : std::vector<uint64_t>{});
        const Protecting metadata = run_protecting(GetParam(), "protects-metadata", is_guarded);
        EXPECT_EQ(metadata.ended.exit_status, 0) << metadata.ended.text;
        EXPECT_EQ(metadata.output, "closed 0\nword 0\nfaults 0\nfaults 1\nfaults 1\n");
    }
}

// Each page is one access: it faults, is opened, and the instruction continues there.
TEST_P(GuardTest, AStringInstructionIsOneAccessForEachPageThatTheTesteeOpens) {
    for (const bool is_guarded : {false, true}) {
        const Protecting seen = run_protecting(GetParam(), "protects-pages", is_guarded);
        EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
        EXPECT_EQ(seen.output, "closed 0\nbyte 42\nfaults 3\n");
        EXPECT_EQ(seen.offsets, is_guarded ? (std::vector<uint64_t>{4096, 8192, 12288})
                                           : std::vector<uint64_t>{});
    }
}

TEST_P(GuardTest, AnExecutablePageIsReadableAsWithoutGuards) {
    const Protecting plain = run_protecting(GetParam(), "protects-for-execution", false);
    const Protecting guarded = run_protecting(GetParam(), "protects-for-execution", true);
    EXPECT_EQ(guarded.ended.exit_status, 0) << guarded.ended.text;
    EXPECT_EQ(guarded.output, plain.output);
    EXPECT_EQ(guarded.offsets, (std::vector<uint64_t>{4101}));
}

// The hidden mapping is as long as what is left. Its neighbours keep their protection.
TEST_P(GuardTest, AGuardAfterAnMprotectAndAMunmapHarmsNoOtherMemory) {
    TestRun run(options_for(GetParam()), 6);
    std::vector<Mapping> all;
    run.start("protects-and-cuts");
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* mapped = std::get_if<Mapped>(&event)) all.push_back(mapped->mapping);
        if (std::holds_alternative<FutexWait>(event)) {
            EXPECT_TRUE(run.tracer.guards().add(all.front().id, 2, 1));
        }
    });
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "protected 0\ncut 0\nfaults 0\n");
}

TEST_P(GuardTest, AnAddressThatTheKernelKeepsIsNotRedirected) {
    const Protecting seen = run_protecting(GetParam(), "addresses-as-values", true);
    EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
    EXPECT_EQ(seen.output, "base is kept 1\noffset is kept 1\n");
}

TEST_P(GuardTest, AVectorMayBeAsLongAsTheKernelPermits) {
    const Protecting seen = run_protecting(GetParam(), "many-parts", true);
    EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
    EXPECT_EQ(seen.output, "written 8192\nread 1\nbyte 42\n");
}

TEST_P(GuardTest, AHundredThreadsWaitByVectorsAtOnce) {
    const Protecting seen = run_protecting(GetParam(), "many-waits", true);
    EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
    EXPECT_EQ(seen.output, "timeouts 100\n");
}

// The testee lets no call pass while it reads.
TEST_P(GuardTest, ACallOfTheTracerIsNotDispatchedToTheTestee) {
    utsname kernel{};
    int major = 0;
    int minor = 0;
    ASSERT_EQ(uname(&kernel), 0);
    ASSERT_EQ(std::sscanf(kernel.release, "%d.%d", &major, &minor), 2);
    if (major < 6 || (major == 6 && minor < 4)) GTEST_SKIP() << "Linux 6.4 shows a tracer how";
    TestRun run(options_for(GetParam()), 1);
    std::optional<MappingId> mapping;
    run.start("dispatches-calls");
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* mapped = std::get_if<Mapped>(&event)) {
            mapping = mapped->mapping.id;
            EXPECT_TRUE(run.tracer.guards().add(*mapping, 1, 32));
        }
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) return;
        run.tracer.guards().step(hit->tid);
        EXPECT_TRUE(run.tracer.guards().remove_all(*mapping));
    });
    if (ended.exit_status == kNotPossibleHere)
        GTEST_SKIP() << "the kernel has no syscall user dispatch";
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(), "sum 84\n");
}

TEST_P(GuardTest, TheStrictModeOfSeccompIsReported) {
    TestRun run(options_for(GetParam()), 1);
    run.start("strict-thread");
    const TimePoint deadline = limit();
    for (;;) {
        const TracerEvent event = run.tracer.wait(deadline);
        ASSERT_FALSE(std::holds_alternative<Ended>(event));
        ASSERT_FALSE(std::holds_alternative<TimedOut>(event));
        const auto* trouble = std::get_if<TracerTrouble>(&event);
        if (trouble == nullptr) continue;
        EXPECT_EQ(trouble->reason, TracerTrouble::Reason::not_followed);
        EXPECT_NE(trouble->what.find("strict mode of seccomp"), std::string::npos);
        break;
    }
}

TEST_P(GuardTest, AnMprotectFailsAsWithoutGuards) {
    for (const bool is_guarded : {false, true}) {
        const Protecting seen = run_protecting(GetParam(), "protects-wrongly", is_guarded);
        EXPECT_EQ(seen.ended.exit_status, 0) << seen.ended.text;
        EXPECT_EQ(seen.output,
                  "unaligned 22\nno bytes 0\nno such bit 22\ntoo long 12\nwritable data 13\n"
                  "to the hole 12\nfaults 1\nwith its neighbour 0\nfaults 3\n");
    }
}

// A guard that ends gives the page the protection that the testee wants.
TEST_P(GuardTest, ARemovedGuardLeavesTheProtectionOfTheTestee) {
    TestRun run(options_for(GetParam()), 1);
    const auto mapped = run.start_guarded("protects-metadata", 0, 33);
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.next<GuardHit>());  // after its mprotect
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
    EXPECT_EQ(run.tracer.output().standard_output(),
              "closed 0\nword 0\nfaults 0\nfaults 1\nfaults 1\n");
}

}  // namespace
}  // namespace kmes::conformance
