// SPDX-License-Identifier: MIT
//
// Tests of the report on the console, and of the line that shows the progress.
#include "conformance/report/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "conformance/model/step_texts.h"
#include "conformance/report/report_testing.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Console, BreaksACommandOnlyOutsideOfQuotes) {
    RunReport report = small_report();
    const std::string word = std::string(90, 'x') + " --inside " + std::string(90, 'x');
    const std::string begin = "kmes-conformance --filter " + std::string(20, 'y') + " -- ./p ";
    const auto printed = [&](const std::string& command) {
        CaseResult& result = report.results[0];
        result.verdict = Verdict::fail;
        result.replay = command;
        std::ostringstream out;
        ConsoleReport(out, {}).end(report);
        return out.str();
    };
    for (const std::string& quoted : {shell_command({word}), shell_command({word + "'"}),
                                      shell_command({"'\n" + word}), "\"" + word + "\""})
        EXPECT_THAT(printed(begin + quoted), HasSubstr(" \\\n        -- ./p " + quoted + "\n"));
}

std::string printed(const RunReport& report, const ConsoleOptions& options) {
    std::ostringstream out;
    ConsoleReport console(out, options);
    console.begin(report, report.results.size());
    for (const CaseResult& result : report.results) console.add(result);
    console.end(report);
    return out.str();
}

TEST(Console, BeginsWithTheFailuresAndEndsWithTheSums) {
    EXPECT_EQ(printed(small_report(), {}), R"(kmes-conformance 1: ./consumer --fast
2 cases, 4 CPUs, capacity 65536 bytes, seed 7

fail E21/twice (clause E21)
    CPU 0: event 1 was delivered more than once
    | stderr:
    |   oh no
    run again: kmes-conformance --filter E21/twice -- ./consumer --fast

2 cases: 1 pass, 1 fail; 1.2 s
)");
}

TEST(Console, PrintsATableBeforeTheFailuresWhereThatIsAsked) {
    ConsoleOptions options;
    options.id_width = 11;
    options.verbose = true;
    EXPECT_EQ(printed(small_report(), options), R"(kmes-conformance 1: ./consumer --fast
2 cases, 4 CPUs, capacity 65536 bytes, seed 7

case         level    verdict       seconds
5.1.8/drain  must     pass             0.12
E21/twice    erratum  fail             0.12
    CPU 0: event 1 was delivered more than once
    | stderr:
    |   oh no

fail E21/twice (clause E21)
    CPU 0: event 1 was delivered more than once
    run again: kmes-conformance --filter E21/twice -- ./consumer --fast

2 cases: 1 pass, 1 fail; 1.2 s
)");
}

TEST(Console, QuietPrintsNeitherHeadNorRemarks) {
    RunReport report = small_report();
    report.results[0].message = "in part: no access to overtake";
    ConsoleOptions options;
    options.quiet = true;
    EXPECT_THAT(printed(report, options), ::testing::StartsWith("\nfail E21/twice (clause E21)\n"));
    EXPECT_THAT(printed(report, options), Not(HasSubstr("in part")));
}

// A pass that says less than others is not lost among them.
TEST(Console, SaysWhatIsRemarkableAboutPassedCases) {
    RunReport report = small_report();
    report.results.pop_back();
    for (int i = 1; i <= 6; ++i) {
        report.results.push_back(result_of("E22/case-" + std::to_string(i), Verdict::pass));
        report.results.back().message = "in part: no access to overtake";
    }
    for (int i = 0; i < 2; ++i) {
        report.results.push_back(result_of("5.1.8/explored", Verdict::pass));
        report.results.back().explored = Explored{.schedules = 20, .seconds = 1.5};
    }
    EXPECT_THAT(printed(report, {}),
                HasSubstr("\n\npassed, with a remark:\n"
                          "        E22/case-1  in part: no access to overtake\n"));
    EXPECT_THAT(printed(report, {}), HasSubstr("case-5  in part: no access to overtake\n"
                                               "        (1 more: -v shows them)\n"
                                               "\nexplored: 40 schedules in 3.0 s\n\n9 cases: "));
}

TraceRow trace_row(std::uint64_t number, std::int32_t thread, std::string place, bool decisive) {
    TraceRow row;
    row.number = number;
    row.thread = thread;
    row.place = std::move(place);
    row.decisive = decisive;
    return row;
}

TEST(Console, NamesAnAccessRatherThanAWait) {
    RunReport report = small_report();
    Trace& trace = report.results[1].trace;
    trace.rows = {trace_row(3, 1, "copy() c.c:3", false), trace_row(4, 1, "sleep() c.c:4", false)};
    trace.rows[0].kind = StepKind::access;
    trace.rows[1].kind = StepKind::wait_begin;
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: copy() c.c:3\n"));
    // A wait that follows from a lap: the load that showed the lap says more.
    trace.rows.insert(trace.rows.begin(), trace_row(2, 1, "drain() c.c:2", true));
    trace.rows[0].kind = StepKind::access;
    trace.rows[2].decisive = true;
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: drain() c.c:2\n"));
    // What a whole run has left over is in no line.
    trace.rows.push_back(trace_row(5, 0, "", true));
    trace.rows[3].why = kWholeRunDecides;
    EXPECT_THAT(printed(report, {}), Not(HasSubstr("where:")));
}

TEST(Console, SaysOnceHowToSeeLinesOfCode) {
    RunReport report = small_report();
    report.results.push_back(report.results[1]);
    report.results[2].clause = "E3";
    for (const std::size_t i : {1, 2})
        report.results[i].trace.rows = {trace_row(3, 1, "`mov` at p+0x12", true)};
    const std::string text = printed(report, {});
    const std::size_t at = text.find("(compile the consumer with -g to see lines of its code)");
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(text.find("with -g", at + 40), std::string::npos);
    report.results[1].trace.rows[0].place = report.results[2].trace.rows[0].place = "f() c.c:1";
    EXPECT_THAT(printed(report, {}), Not(HasSubstr("with -g")));
}

TEST(Console, NamesTheLineOfCodeAboveTheTraceAndAtTheEnd) {
    RunReport report = small_report();
    report.results.push_back(report.results[1]);
    report.results[2].clause = "E3";
    report.results[2].id = "E3/once";
    Trace& trace = report.results[1].trace;
    trace.rows = {trace_row(3, 1, "drain() c.c:3", false), trace_row(4, 0, "", true),
                  trace_row(5, 1, "sleep() c.c:\x1b", true),
                  trace_row(6, 1, "drain() c.c:6", false), trace_row(7, 0, "", true)};
    EXPECT_THAT(printed(report, {}), HasSubstr("delivered more than once\n"
                                               "    where: sleep() c.c:\\x1b\n"));
    EXPECT_THAT(printed(report, {}), HasSubstr("1 case   E21/twice; sleep() c.c:\\x1b\n"));
    EXPECT_THAT(printed(report, {}), HasSubstr("1 case   E3/once\n"));
    // Without a decisive step that has a line, it is the last line before the end.
    trace.rows[2].decisive = false;
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: drain() c.c:6\n"));
}

TEST(Console, NamesAStepOnlyIfTheTraceBelowHasIt) {
    RunReport report = small_report();
    CaseResult& result = report.results[1];
    result.trace.rows = {trace_row(32, 1, "drain() c.c:3", true)};
    const std::string with_step = "    where: drain() c.c:3; step 32 below\n";
    for (const char* row : {">>   32 | reads tail_pos\n", "\x1b[1;31m>>   32 | reads\x1b[0m\n"}) {
        result.drawing = "   step | producer\n" + std::string(row);
        EXPECT_THAT(printed(report, {}), HasSubstr(with_step)) << row;
    }
    for (const char* row :
         {"        | ... 32 steps ...\n", ">>  320 | reads\n", "\x1b[m", "\x1b"}) {
        result.drawing = "   step | producer\n" + std::string(row);
        EXPECT_THAT(printed(report, {}), HasSubstr("    where: drain() c.c:3\n")) << row;
    }
}

TEST(Console, GivesASignOfLifeOnlyAfterItsTime) {
    const RunReport report = small_report();
    ConsoleOptions options;
    EXPECT_THAT(printed(report, options), Not(HasSubstr("have run")));
    options.sign_of_life = std::chrono::hours(24);
    EXPECT_THAT(printed(report, options), Not(HasSubstr("have run")));
    std::ostringstream out;
    options.sign_of_life = std::chrono::seconds(1);
    ConsoleReport console(out, options);
    console.begin(report, 2);
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        console.add(report.results[1]);
    } while (out.str().find("have run") == std::string::npos);
    EXPECT_THAT(out.str(), HasSubstr(" of 2 cases have run, "));
}

TEST(Console, SaysWhichFailuresAreKnown) {
    RunReport report = small_report();
    report.results[1].is_known = true;
    report.results.push_back(report.results[1]);
    report.results[2].id = "E21/again";
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    EXPECT_THAT(out.str(), HasSubstr("fail E21/twice (clause E21), a known failure\n"));
    EXPECT_THAT(out.str(), HasSubstr("        E21/again  (known) CPU 0: event 1"));
}

TEST(Console, TellsTheMostTellingFailureFirstAndNamesItAtTheEnd) {
    RunReport report = small_report();
    for (const char* id : {"E3/by-accident", "E3/meant"}) {
        report.results.push_back(result_of(id, Verdict::fail));
        report.results.back().clause = "E3";
        report.results.back().message = "it is wrong";
    }
    report.reading_order = {3, 1, 2};
    std::ostringstream out;
    ConsoleReport console(out, ConsoleOptions{});
    console.end(report);
    const std::string text = out.str();
    const auto place = [&text](std::string_view what) { return text.find(what); };
    EXPECT_LT(place("fail E3/meant (clause E3)"), place("fail E21/twice (clause E21)"));
    EXPECT_THAT(text, HasSubstr("    1 more case of E3 (-v prints them in full):\n"
                                "        E3/by-accident  it is wrong\n"));
    EXPECT_THAT(text, HasSubstr("\n"
                                "broken, and the case to read first (above, in this order):\n"
                                "    E3           2 cases  E3/meant\n"
                                "    E21          1 case   E21/twice\n"
                                "\n"
                                "4 cases: 1 pass, 3 fail; 1.2 s\n"));
}

TEST(Console, PrintsAMessageOfSeveralCasesOnceAndThenTheirIds) {
    RunReport report = small_report();
    for (int i = 0; i < 12; ++i) {
        report.results.push_back(report.results[1]);
        CaseResult& result = report.results.back();
        result.id = "E21/a-case-of-many-" + std::to_string(i);
        result.is_known = i == 3;
        if (i == 1 || i == 2) result.message = "another message " + std::to_string(i);
    }
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    const std::string message = report.results[1].message;
    const std::string wanted =
        "    12 more cases of E21 (-v prints them in full):\n"
        "        " +
        message +
        "\n"
        "            E21/a-case-of-many-0, E21/a-case-of-many-3 (known), E21/a-case-of-many-4,\n"
        "            E21/a-case-of-many-5, E21/a-case-of-many-6, E21/a-case-of-many-7, "
        "E21/a-case-of-many-8,\n"
        "            E21/a-case-of-many-9, E21/a-case-of-many-10, E21/a-case-of-many-11\n"
        "        E21/a-case-of-many-1  another message 1\n"
        "        E21/a-case-of-many-2  another message 2\n";
    EXPECT_THAT(out.str(), HasSubstr(wanted));
    // An id may be longer than a line.
    report.results[3].id = "E21/" + std::string(120, 'x');
    report.results[3].message = message;
    std::ostringstream longer;
    ConsoleReport(longer, {}).end(report);
    EXPECT_THAT(longer.str(), HasSubstr("E21/a-case-of-many-0,\n            E21/xxx"));
}

TEST(Console, PrintsEveryFailureInFullWhereThatIsAsked) {
    RunReport report = small_report();
    report.results.push_back(report.results[1]);
    report.results.back().id = "E21/other";
    ConsoleOptions options;
    options.verbose = true;
    std::ostringstream out;
    ConsoleReport(out, options).end(report);
    EXPECT_THAT(out.str(), HasSubstr("\nfail E21/twice (clause E21)\n"));
    EXPECT_THAT(out.str(), HasSubstr("\nfail E21/other (clause E21)\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("prints them in full")));
}

TEST(Console, ALineForOneOfManyFailuresIsShort) {
    RunReport report = small_report();
    report.results.push_back(report.results[1]);
    report.results.back().id = "E21/other";
    for (int i = 0; i < 200; ++i) report.results.back().message += " \xc3\xa4";
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    const std::size_t begin = out.str().find("        E21/other  CPU 0: ");
    const std::string line = out.str().substr(begin, out.str().find('\n', begin) - begin);
    EXPECT_LE(line.size(), 200u);
    EXPECT_THAT(line, ::testing::EndsWith("..."));
    EXPECT_EQ(valid_utf8(line), line) << "no character is cut in two";
}

// Whatever a failing run says, its log must be readable, and the command can be typed.
TEST(Console, HasNoLineThatIsLongerThan200Bytes) {
    RunReport report = small_report();
    CaseResult& failed = report.results[1];
    const auto words = [](std::size_t count) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "word" : " word");
        return text;
    };
    failed.message = words(100);
    failed.what_is_done = words(90);
    failed.what_is_right = words(80);
    failed.details = words(70) + "\n  also " + std::string(500, 'x') + "\n";
    failed.replay = "kmes-conformance";
    for (int i = 0; i < 20; ++i) failed.replay += " --filter E21/twice-" + std::to_string(i);
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 200u) << line;
    EXPECT_THAT(out.str(), HasSubstr("    what is done: word word"));
    EXPECT_THAT(out.str(), HasSubstr(" \\\n        --filter E21/twice-"));
}

TEST(Console, NamesNoFailureTwiceWhereThereIsOne) {
    std::ostringstream out;
    ConsoleReport console(out, ConsoleOptions{});
    console.end(small_report());
    EXPECT_THAT(out.str(), HasSubstr("fail E21/twice (clause E21)"));
    EXPECT_THAT(out.str(), Not(HasSubstr("to read first")));
}

TEST(Console, BoundsDetailsWithoutVerbose) {
    RunReport report = small_report();
    report.results[1].details.clear();
    for (int i = 0; i < 100; ++i) report.results[1].details += "line\n";
    std::ostringstream brief;
    ConsoleReport(brief, {}).end(report);
    EXPECT_THAT(brief.str(), HasSubstr("(76 more lines: run it again with -v)"));
    RunReport long_line = report;
    long_line.results[1].details = std::string(60'000, 'x');
    std::ostringstream cut;
    ConsoleReport(cut, {}).end(long_line);
    EXPECT_LT(cut.str().size(), 6000u);
    EXPECT_THAT(cut.str(), HasSubstr("-v prints the whole"));
    std::ostringstream out;
    ConsoleOptions options;
    options.verbose = true;
    ConsoleReport verbose(out, options);
    verbose.add(report.results[1]);
    EXPECT_THAT(out.str(), Not(HasSubstr("more lines")));
    EXPECT_THAT(out.str(), HasSubstr("event 1 was delivered more than once"));
}

TEST(Console, DoesNotAskToTryAgainWhatIsUnsupported) {
    RunReport report = small_report();
    report.results[1].verdict = Verdict::unsupported;
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    EXPECT_THAT(out.str(), HasSubstr("unsupported E21/twice"));
    EXPECT_THAT(out.str(), Not(HasSubstr("run again")));
}

TEST(Console, NamesWhatDidNotRun) {
    RunReport report = small_report();
    report.not_run = {"E22/other"};
    report.interrupted = true;
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    EXPECT_THAT(out.str(), HasSubstr("\ncase         level    verdict       seconds\n"
                                     "5.1.8/drain  must     pass             0.12\n"
                                     "E21/twice    erratum  fail             0.12\n"
                                     "\n1 case was not run (interrupted):\n    E22/other\n"));
    EXPECT_THAT(out.str(), HasSubstr("2 cases: 1 pass, 1 fail, 1 not run; "));
}

TEST(Console, NamesTheFirstOfManyThatDidNotRunAndAllWhereAsked) {
    RunReport report = small_report();
    for (int i = 1; i <= 9; ++i) report.not_run.push_back("E22/case-" + std::to_string(i));
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    EXPECT_THAT(out.str(), HasSubstr("9 cases were not run:\n    E22/case-1\n"));
    EXPECT_THAT(out.str(), HasSubstr("    E22/case-5\n    (4 more: -v names them)\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("E22/case-6")));
    std::ostringstream all;
    ConsoleReport(all, {.verbose = true, .fail_fast = true}).end(report);
    EXPECT_THAT(all.str(), HasSubstr("9 cases were not run (--fail-fast):\n"));
    EXPECT_THAT(all.str(), HasSubstr("    E22/case-9\n"));
}

TEST(Console, ShowsTesteeOutputWithoutItsControlCharacters) {
    RunReport report = small_report();
    report.results[1].message = "said \x1b[31mred\x1b[0m";
    report.results[1].details = "\x1b]0;title\x07\n";
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
    EXPECT_EQ(out.str().find('\x07'), std::string::npos);
}

TEST(Console, PaintsOnlyWhenAsked) {
    std::ostringstream out;
    ConsoleOptions options;
    options.colour = true;
    options.verbose = true;
    ConsoleReport(out, options).add(result_of("a/b", Verdict::pass));
    EXPECT_EQ(out.str(), "a/b   must     \x1b[32mpass        \x1b[0m     0.12\n");
}

TEST(ProgressLine, IsSilentWithoutATerminal) {
    ProgressLine none(nullptr);
    none.show(1, 2, 0, "a/b");
    none.clear();
    std::ostringstream out;
    {
        ProgressLine line(&out);
        line.show(1, 2, 0, "a/b");
        EXPECT_EQ(out.str(), "\r[1/2] a/b\x1b[K");
        out.str("");
        line.show(2, 2, 1, "c/d");
        EXPECT_EQ(out.str(), "\r[2/2, 1 failed] c/d\x1b[K");
    }
    EXPECT_EQ(out.str(), "\r[2/2, 1 failed] c/d\x1b[K\r\x1b[K");
}

}  // namespace
}  // namespace kmes::conformance
