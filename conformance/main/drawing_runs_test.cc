// SPDX-License-Identifier: MIT
//
// Broken consumers in the cases made for them: the timeline of the failure has the expected steps,
// and the trace shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <string>

#include "conformance/cases/registry.h"
#include "conformance/failure/drawing.h"
#include "conformance/model/case.h"
#include "conformance/model/run_record.h"
#include "conformance/model/settings.h"
#include "conformance/monitors/run.h"

namespace kmes::conformance {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A source line or, if the tracer reads no line tables, the nearest symbol.
constexpr const char* kPlaceInTheCode =
    "^([a-z_]+[(][)] broken_[a-z0-9-]+\\.c:[0-9]+|[a-z_]+\\+0x[0-9a-f]+)$";
// attach_all() may be a thin wrapper of its system call: some compilers give it few lines of code.
constexpr const char* kPlaceOfACall =
    "[a-z_].* [(]via [a-z0-9_]*(syscall|mmap|attach_all)[a-z0-9_]*[)]$";
constexpr std::size_t kNotThere = static_cast<std::size_t>(-1);

// The failure of a broken consumer. Every access is recorded, unless the consumer spins
// (`spins_for`: a factor for the time until the suite says so).
class Failure {
  public:
    Failure(std::string_view case_id, const std::string& broken,
            std::optional<double> spins_for = std::nullopt) {
        static const StopFlag kGoOn;
        StageSettings settings;
        settings.testee = {"conformance/testees/broken_" + broken};
        settings.cpus = 1;
        settings.seed = 1;
        settings.record_accesses = !spins_for;
        settings.patience = spins_for.value_or(1);
        settings.stop = &kGoOn;
        if (const char* scale = std::getenv("KMES_TIMEOUT_SCALE"))
            settings.timeout_scale = std::atof(scale);
        const std::vector<Case>& cases = all_cases();
        const auto found = std::find_if(cases.begin(), cases.end(),
                                        [&](const Case& each) { return each.id == case_id; });
        if (found == cases.end()) return;
        outcome_ = run_on_stage(*found, settings);
    }

    bool has_failed() const { return outcome_.verdict == Verdict::fail && outcome_.record; }
    const CaseOutcome& outcome() const { return outcome_; }
    const Finding& finding() const { return outcome_.record->findings.front(); }
    const Timeline& timeline() const { return outcome_.record->timeline; }
    std::string event() const { return "event " + std::to_string(finding().sequence); }

    // The index of the first step from `from` on with this kind and text; kNotThere: none.
    std::size_t find(StepKind kind, const std::string& text, std::size_t from = 0) const {
        const auto& steps = timeline().steps();
        for (std::size_t i = from; i < steps.size(); ++i) {
            if (steps[i].kind == kind && steps[i].text.find(text) != std::string::npos) return i;
        }
        return kNotThere;
    }
    std::size_t find_decisive(StepKind kind, const std::string& text, std::size_t from = 0) const {
        std::size_t found = find(kind, text, from);
        while (found != kNotThere && !at(found).decisive) found = find(kind, text, found + 1);
        return found;
    }
    const TimelineStep& at(std::size_t index) const { return timeline().steps().at(index); }

    // Every decisive step is in the trace, and marked, and so is the verdict.
    void expect_to_be_drawn() const {
        const std::string drawing = draw(timeline());
        for (std::size_t i = 0; i < timeline().steps().size(); ++i) {
            if (!at(i).decisive) continue;
            EXPECT_THAT(drawing,
                        ContainsRegex("\n>> +" + std::to_string(timeline().number(i)) + " [|]"));
        }
        EXPECT_THAT(drawing, HasSubstr("| FAILED, "));
        EXPECT_LE(std::count(drawing.begin(), drawing.end(), '\n'), 70) << drawing;
        std::istringstream lines(drawing);
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 200u) << line;
    }

  private:
    CaseOutcome outcome_;
};

TEST(DrawingOfARun, AnEventBetweenTheLastLoadAndTheCounter) {
    const Failure failure("E2/event-at-every-step", "counter-after-the-recheck");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::lost_wake_up);
    const std::size_t emit = failure.find(StepKind::producer, "emits " + failure.event() + ":");
    ASSERT_NE(emit, kNotThere);
    EXPECT_TRUE(failure.at(emit).decisive);
    EXPECT_THAT(failure.at(emit).why, HasSubstr("has not read it when it goes to sleep"));
    // The step before is its second load of write_pos.
    EXPECT_THAT(failure.at(emit - 1).text, StartsWith("reads write_pos: "));
    EXPECT_EQ(failure.at(emit - 1).clause, "5.1.8.2 step 2");
    EXPECT_THAT(failure.at(emit - 1).source, ContainsRegex(kPlaceInTheCode));
    const std::size_t counter = failure.find(StepKind::access, "reads futex_counter: ", emit);
    ASSERT_NE(counter, kNotThere);
    EXPECT_EQ(failure.at(counter).clause, "5.1.8.2 step 3");
    const std::size_t wait = failure.find(StepKind::wait_begin, "futex_counter", counter);
    ASSERT_NE(wait, kNotThere);
    for (const StepKind kind : {StepKind::attach, StepKind::map, StepKind::wait_begin}) {
        const std::size_t call = failure.find(kind, "");
        ASSERT_NE(call, kNotThere);
        EXPECT_THAT(failure.at(call).source, ContainsRegex(kPlaceOfACall));
    }
    EXPECT_THAT(failure.at(failure.find(StepKind::wait_end, "")).source,
                ContainsRegex(kPlaceOfACall));
    EXPECT_TRUE(failure.at(wait).decisive);
    EXPECT_EQ(failure.at(wait).clause, "5.1.8.2 step 5");
    failure.expect_to_be_drawn();
}

// A run of half a minute is not repeated with all accesses recorded, so its end is recorded.
TEST(DrawingOfARun, TheLoopOfAConsumerThatSpins) {
    const Failure failure("5.1.6.2/positions-near-the-top", "positions-of-32-bits", 0.02);
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::missing_event);
    for (const char* load : {"reads write_pos: ", "reads tail_pos: "}) {
        const std::size_t access = failure.find_decisive(StepKind::access, load);
        ASSERT_NE(access, kNotThere) << load;
        EXPECT_THAT(failure.at(access).source, ContainsRegex(kPlaceInTheCode));
        EXPECT_THAT(failure.at(access).why, HasSubstr("repeats this access"));
    }
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, AnEventThatIsOverwrittenWhileItIsRead) {
    const Failure failure("5.1.8.1-5/torn-in-the-middle", "no-tail-recheck");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::torn_event);
    const std::size_t read = failure.find(StepKind::access, "of " + failure.event() + ", in");
    ASSERT_NE(read, kNotThere);
    EXPECT_EQ(failure.at(read).clause, "5.1.8.1 step 4");
    EXPECT_THAT(failure.at(read).source, ContainsRegex(kPlaceInTheCode));
    std::size_t overwrite = read;
    do {
        overwrite = failure.find(StepKind::producer, "tail_pos moves over", overwrite + 1);
        ASSERT_NE(overwrite, kNotThere);
    } while (!failure.at(overwrite).decisive);
    EXPECT_THAT(failure.at(overwrite).why,
                StartsWith("Event " + std::to_string(failure.finding().sequence) +
                           " is overwritten here, after the consumer began to read it"));
    const std::size_t load = failure.find_decisive(StepKind::access, "reads tail_pos: ");
    ASSERT_NE(load, kNotThere);
    EXPECT_LT(load, read);
    EXPECT_THAT(failure.at(load).why, HasSubstr("No load of tail_pos follows the copy"));
    const std::size_t read_on =
        failure.find(StepKind::access, failure.event() + ", which is overwritten", overwrite);
    ASSERT_NE(read_on, kNotThere);
    const std::size_t record =
        failure.find(StepKind::record, "delivered " + failure.event(), read_on);
    ASSERT_NE(record, kNotThere);
    EXPECT_TRUE(failure.at(record).decisive);
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, ALapThatIsNotNoticed) {
    const Failure failure("5.1.8.1-2/lapped-by-one-event", "no-lap-check");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::missing_event);
    const std::size_t load = failure.find_decisive(StepKind::access, "reads tail_pos: ");
    ASSERT_NE(load, kNotThere);
    EXPECT_THAT(failure.at(load).why, StartsWith("tail_pos is at " + failure.event() + ":"));
    failure.expect_to_be_drawn();
}

// The case has far more accesses to data than are recorded.
TEST(DrawingOfARun, ALapInALongRun) {
    const Failure failure("5.1.8.1-5/torn-by-a-pending-batch", "sure-while-little-is-unread");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::early_event);
    const std::size_t load = failure.find_decisive(StepKind::access, "reads tail_pos: ");
    ASSERT_NE(load, kNotThere);
    EXPECT_THAT(failure.at(load).why, HasSubstr("No load of tail_pos follows the copy"));
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, AStoreThatIsStillInTheStoreBuffer) {
    const Failure failure("E1/full-barrier", "no-full-barrier");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().clause, "E1");
    const std::size_t store = failure.find(StepKind::access, "sets need_wake to 1");
    ASSERT_NE(store, kNotThere);
    const std::size_t held = failure.find_decisive(
        StepKind::scheduler, "keeps the store to need_wake in the store buffer", store + 1);
    ASSERT_NE(held, kNotThere);
    EXPECT_THAT(failure.at(held).why, HasSubstr("No full barrier"));
    // The producer reads 0, but no step stored it.
    const std::size_t emit = failure.find(StepKind::producer, "need_wake is 0: no wake", held);
    ASSERT_NE(emit, kNotThere);
    EXPECT_TRUE(failure.at(emit).decisive);
    EXPECT_NE(failure.find(StepKind::scheduler, "leaves the store buffer", emit), kNotThere);
    const std::string drawing = draw(failure.timeline());
    EXPECT_EQ(drawing.find("need_wake 1 -> 0"), std::string::npos) << drawing;
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, AStoreThatMakesItHang) {
    const Failure failure("5.1.8.2-5/sleeps-and-wakes", "resets-the-counter");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().clause, "5.1.6.3");
    EXPECT_THAT(failure.finding().message, HasSubstr("(futex_counter)"));
    EXPECT_NE(failure.find_decisive(StepKind::access, "sets futex_counter to 0"), kNotThere);
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, ACpuThatWasLeft) {
    const Failure failure("contract-4/almost-the-end", "end-but-for-its-last-byte");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_THAT(failure.finding().message, HasSubstr("the last delivered event is event 25 (type "
                                                     "\"kmes.conformance.ene\")"));
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, ABufferThatHadToBeRefused) {
    const Failure failure("5.1.6.1/version-of-the-next-buffer", "checks-the-first-buffer");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_THAT(failure.finding().message, HasSubstr("keeps a malformed buffer (version 2)"));
    const std::size_t mapping = failure.find(StepKind::map, "maps buffer 1 of CPU 0");
    ASSERT_NE(mapping, kNotThere);
    EXPECT_TRUE(failure.at(mapping).decisive);
    failure.expect_to_be_drawn();
}

// Irrelevant of what the case is about.
TEST(DrawingOfARun, AnEndAfterAnInterruptedWait) {
    const Failure failure("E3/swap-after-an-interruption", "eintr-is-the-end");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().clause, "5.1.8.2-5");
    EXPECT_THAT(failure.finding().message,
                HasSubstr("its last action was a futex wait that returned EINTR"));
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, AStoreToAFieldOfAnEvent) {
    const Failure failure("5.1.8.1-6/drain", "marks-events-as-read");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_THAT(failure.finding().message, HasSubstr("(event_size of event 1)"));
    failure.expect_to_be_drawn();
}

// With a timeout: no sleep lasts for ever.
TEST(DrawingOfARun, SleepsOnAReplacedBuffer) {
    const Failure failure("E3/swap-after-a-timeout", "times-out-to-write-pos-alone");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_THAT(failure.finding().message,
                HasSubstr("a change of futex_counter from 1 (now 1) in the retired buffer"));
    failure.expect_to_be_drawn();
}

// The first thread ends the second one while its fault is examined.
TEST(DrawingOfARun, FaultsOfTwoThreads) {
    const Failure failure("5.1.6.1/static-fields-that-change", "reads-the-capacity-each-time");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_THAT(failure.finding().message, HasSubstr("SIGSEGV at "));
    EXPECT_THAT(failure.finding().message, HasSubstr("` at broken_reads-the-capacity-each-time"));
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, AStoreToWhatBelongsToTheProducer) {
    const Failure failure("5.1.8.1-6/drain", "moves-tail-pos");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::write_outside);
    std::size_t store = failure.find(StepKind::access, "tail_pos: ");
    while (!failure.at(store).decisive) {
        store = failure.find(StepKind::access, "tail_pos: ", store + 1);
        ASSERT_NE(store, kNotThere);
    }
    EXPECT_THAT(failure.at(store).text, StartsWith("exchanges tail_pos: "));
    EXPECT_THAT(failure.at(store).why, HasSubstr("A consumer may write need_wake only"));
    failure.expect_to_be_drawn();
}

TEST(DrawingOfARun, ASleepOnABufferThatIsDead) {
    const Failure failure("E3/swap-at-every-step", "sleeps-on-a-dead-buffer");
    ASSERT_TRUE(failure.has_failed()) << failure.outcome().message;
    EXPECT_EQ(failure.finding().code, FindingCode::lost_wake_up);
    const std::size_t emit = failure.find(StepKind::producer, "emits " + failure.event() + ":");
    ASSERT_NE(emit, kNotThere);
    EXPECT_TRUE(failure.at(emit).decisive);
    // The resize comes just before the event, into the new buffer.
    EXPECT_THAT(failure.at(emit - 1).text, StartsWith("replaces buffer "));
    EXPECT_THAT(failure.at(emit - 1).why, HasSubstr("is retired"));
    const std::size_t wait = failure.find(StepKind::wait_begin, ", which is retired", emit);
    ASSERT_NE(wait, kNotThere);
    EXPECT_TRUE(failure.at(wait).decisive);
    EXPECT_THAT(failure.at(wait).why, HasSubstr("published in another buffer"));
    failure.expect_to_be_drawn();
}

}  // namespace
}  // namespace kmes::conformance
