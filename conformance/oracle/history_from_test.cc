// SPDX-License-Identifier: MIT
//
// A history made from its log is equal, and gives the same findings. Each property runs 2,000
// times, or as often as RC_PARAMS="max_success=..." says.
#include "conformance/model/history_log.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "conformance/oracle/history_draw.h"
#include "conformance/oracle/property_support.h"
#include "conformance/oracle/simulation.h"

namespace kmes::conformance::simulation {
namespace {

constexpr int kRuns = 2000;

std::vector<Finding> judged(const History& history, const std::string& report) {
    RecordParser parser;
    parser.feed(report);
    parser.finish();
    JudgeOptions options;
    options.exited_with_zero = true;
    return judge(history, parser, options);
}

TEST(HistoryLog, MakesTheSameHistoryAgain) {
    std::set<OperationKind> seen;
    EXPECT_TRUE(holds("a history from its log is the same", kRuns, [&seen] {
        const History history = draw_history(Tape(any_tape()));
        for (const LoggedOperation& operation : history.log().operations)
            seen.insert(operation.kind);
        const History again = history_from(history.log());
        RC_ASSERT(dump(again) == dump(history));
        // Its own log is also equal.
        RC_ASSERT(dump(history_from(again.log())) == dump(history));
    }));
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(OperationKind::outrun) + 1)
        << "an operation was never drawn";
}

TEST(HistoryLog, GivesTheSameFindings) {
    int with_findings = 0;
    EXPECT_TRUE(holds("the findings from the log are the same", kRuns, [&with_findings] {
        const auto fault = static_cast<Fault>(*rc::gen::inRange(0, 10));
        World world(any_tape(), fault);
        world.run();
        const std::string original = describe(world.findings());
        with_findings += original.empty() ? 0 : 1;
        const History again = history_from(world.history().log());
        RC_ASSERT(describe(judged(again, world.report())) == original);
    }));
    EXPECT_GT(with_findings, kRuns / 20);
}

EventSpec generated(std::uint64_t seed, std::size_t bytes) {
    EventSpec spec;
    spec.type = "t";
    spec.payload_seed = seed;
    spec.payload = generate_payload(seed, bytes);
    return spec;
}

TEST(HistoryLog, KeepsNoPayloadThatWasGenerated) {
    History history(HistorySettings{});
    for (std::uint64_t seed = 0; seed < 100; ++seed) history.emit(0, generated(seed, 4000));
    EXPECT_EQ(history.log().bytes, "t");
    EXPECT_EQ(dump(history_from(history.log())), dump(history));
}

TEST(HistoryLog, KeepsAPayloadWhoseSeedIsWrong) {
    History history(HistorySettings{});
    EventSpec spec = generated(7, 100);
    spec.payload.back() ^= 1;
    history.emit(0, spec);
    EXPECT_EQ(history.log().bytes, "t" + spec.payload);
    EXPECT_EQ(history_from(history.log()).find(0, 1)->payload, spec.payload);
}

TEST(HistoryLog, ARunThatIsTooLongIsGivenUpWhole) {
    History history(HistorySettings{});
    for (std::size_t i = 0; i <= HistoryLog::kMaximumOperations; ++i) history.spurious_wake(0);
    EXPECT_FALSE(history.log().complete);
    EXPECT_TRUE(history.log().operations.empty());
    EXPECT_THROW(history_from(history.log()), std::invalid_argument);
}

TEST(HistoryLog, TooManyBytesAreGivenUpWhole) {
    HistorySettings settings;
    settings.capacity_bytes = std::uint64_t{64} << 20;
    History history(settings);
    EventSpec spec;
    spec.type = "t";
    spec.payload.assign(HistoryLog::kMaximumBytes, 'x');
    history.emit(0, spec);
    EXPECT_FALSE(history.log().complete);
    EXPECT_TRUE(history.log().bytes.empty());
    history.drop(0);
    EXPECT_TRUE(history.log().operations.empty());
}

TEST(HistoryLog, NamesTheOperationThatNoDriverMade) {
    History history(HistorySettings{});
    history.drop(0);
    HistoryLog log = history.log();
    LoggedOperation wrong;
    wrong.kind = OperationKind::nudge;
    wrong.buffer = 9;
    log.operations.push_back(wrong);
    try {
        history_from(log);
        FAIL() << "it was taken";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "operation 1 (nudge): history: there is no such buffer");
    }
}

TEST(HistoryLog, BoundsTheWorkThatALogAsksFor) {
    HistoryLog log;
    log.settings.capacity_bytes = std::uint64_t{1} << 40;
    LoggedOperation small;
    small.type = log.keep("t");
    for (int i = 0; i < 10'000; ++i) log.operations.push_back(small);
    LoggedOperation swap;
    swap.kind = OperationKind::swap;
    swap.swap.capacity_bytes = log.settings.capacity_bytes;
    for (int i = 0; i < 1000; ++i) log.operations.push_back(swap);
    EXPECT_THROW(history_from(log), std::invalid_argument);

    LoggedOperation large = small;
    large.payload = {1, 0x80000000, true};
    log.operations.assign(3, large);
    EXPECT_THROW(history_from(log), std::invalid_argument);

    LoggedOperation outrun;
    outrun.kind = OperationKind::outrun;
    for (const std::uint64_t laps : {std::uint64_t{300'000}, ~std::uint64_t{0}}) {
        outrun.laps = laps;
        log.operations.assign(2, outrun);
        EXPECT_THROW(history_from(log), std::invalid_argument) << laps;
    }
    outrun.laps = 1;
    outrun.events = 2;
    log.operations.assign(20'000, outrun);
    EXPECT_THROW(history_from(log), std::invalid_argument);
}

// A small log may require gigabytes: payloads stay in memory while a buffer contains them, and the
// log sets the size of the buffer.
TEST(HistoryFrom, RefusesALogWhosePayloadsNeedMoreMemoryThanAnyRun) {
    constexpr std::uint32_t kPayloadBytes = 1000;
    HistoryLog log;
    log.settings.cpus = 2;
    log.settings.capacity_bytes = 1 << 20;
    LoggedOperation emit;
    emit.type = log.keep("t");
    emit.payload = {1, kPayloadBytes, true};
    log.operations.assign(6, emit);
    for (std::size_t i = 0; i < log.operations.size(); ++i) log.operations[i].cpu = i % 2;
    EXPECT_EQ(history_from(log, 6 * kPayloadBytes).payload_bytes_in_memory(), 6 * kPayloadBytes);
    try {
        history_from(log, 6 * kPayloadBytes - 1);
        FAIL() << "not refused";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "operation 5 (emit): the buffers hold more bytes than those of any run");
    }
}

}  // namespace
}  // namespace kmes::conformance::simulation
