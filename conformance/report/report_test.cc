// SPDX-License-Identifier: MIT
//
// Tests of verdicts, reports and the report file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "conformance/model/step_texts.h"
#include "conformance/report/console.h"
#include "conformance/report/descriptor_stream.h"
#include "conformance/report/html.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/output_file.h"
#include "conformance/report/result.h"
#include "conformance/report/tap.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CaseResult result_of(std::string id, Verdict verdict) {
    CaseResult result;
    result.id = std::move(id);
    result.verdict = verdict;
    result.seconds = 0.12345;
    return result;
}

RunReport small_report() {
    RunReport report;
    report.testee = {"./consumer", "--fast"};
    report.cpus = 4;
    report.capacity_bytes = 65536;
    report.seed = 7;
    report.seconds = 1.25;
    report.results.push_back(result_of("5.1.8/drain", Verdict::pass));
    report.results.push_back(result_of("E21/twice", Verdict::fail));
    report.results[1].level = Level::erratum;
    report.results[1].clause = "E21";
    report.results[1].message = "CPU 0: event 1 was delivered more than once";
    report.results[1].replay = "kmes-conformance --filter E21/twice -- ./consumer --fast";
    report.results[1].details = "stderr:\n  oh no\n";
    return report;
}

// A folder of the test's own.
class Folder {
  public:
    Folder() {
        const char* base = std::getenv("TEST_TMPDIR");
        path_ = std::string(base != nullptr ? base : "/tmp") + "/report_test.XXXXXX";
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::size_t entries() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                      std::filesystem::directory_iterator()));
    }

  private:
    std::string path_;
};

std::string read_file(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Text, IsCutBetweenCharacters) {
    EXPECT_EQ(cut("abc", 3), "abc");
    EXPECT_EQ(cut("abcd", 3), "abc");
    EXPECT_EQ(cut("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
    for (const std::size_t most : {1u, 2u, 3u}) EXPECT_EQ(cut("a\xe2\x82\xac", most), "a");
    EXPECT_EQ(cut("\xf0\x9f\x98\x80", 3), "");
    EXPECT_EQ(cut("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
    EXPECT_EQ(cut("abc", 0), "");
}

TEST(Level, HasANameAndBack) {
    for (const Level level : kLevels) {
        EXPECT_EQ(level_from_name(level_name(level)), level);
    }
    EXPECT_EQ(level_from_name("Must"), std::nullopt);
    EXPECT_LT(Level::must, Level::should);
    EXPECT_LT(Level::should, Level::erratum);
    EXPECT_LT(Level::erratum, Level::robust);
}

TEST(ExitStatus, RanksSuiteErrorsFirst) {
    EXPECT_EQ(exit_status(Summary{.pass = 3, .unsupported = 1}), 0);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .fail = 1, .inconclusive = 1}), 1);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .fail = 1, .inconclusive = 1, .suite_error = 1}), 3);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .inconclusive = 1, .unsupported = 1}), 4);
    EXPECT_EQ(exit_status(Summary{}), 0);
    RunReport interrupted = small_report();
    EXPECT_EQ(exit_status(interrupted), 1);
    interrupted.interrupted = true;
    EXPECT_EQ(exit_status(interrupted), 3);
}

TEST(Text, KeepsValidUtf8AndEscapesTheRest) {
    EXPECT_EQ(valid_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
              "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    EXPECT_EQ(valid_utf8("\xff\xc3"), "\\xff\\xc3");
    EXPECT_EQ(valid_utf8("\xc0\x80"), "\\xc0\\x80");           // overlong
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
    EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
    EXPECT_EQ(valid_utf8("\xe2\x82"), "\\xe2\\x82");
}

TEST(Text, LetsATerminalDoNothingButShow) {
    EXPECT_EQ(printable("a\x1b[2Jb\r\n"), "a\\x1b[2Jb\\x0d\\x0a");
    EXPECT_EQ(printable("a\tb\nc\x7f", true), "a\tb\nc\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // a control character in UTF-8
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
}

TEST(Text, QuotesForAShell) {
    EXPECT_EQ(shell_command({"./a", "--x=1", "two words", "it's", "", "*"}),
              "./a --x=1 'two words' 'it'\\''s' '' '*'");
    // Bytes that a report would escape.
    EXPECT_EQ(shell_command({"a\n1", "\xff'\\", "\xc3\xb6", "\xe2\x80\xae"}),
              "$'a\\0121' $'\\377\\'\\\\' '\xc3\xb6' $'\\342\\200\\256'");
}

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

TEST(Json, HasTheKeysOfSchemaTwo) {
    const nlohmann::json parsed = nlohmann::json::parse(to_json(small_report()));
    EXPECT_EQ(parsed["schema"], 2);
    EXPECT_EQ(parsed["testee"], nlohmann::json({"./consumer", "--fast"}));
    EXPECT_EQ(parsed["run"]["seed"], 7);
    EXPECT_EQ(parsed["cases"][0], nlohmann::json::parse(R"({
      "id": "5.1.8/drain",
      "level": "must",
      "verdict": "pass",
      "clause": "",
      "message": "",
      "seconds": 0.123,
      "replay": ""
    })"));
    EXPECT_EQ(parsed["cases"][1], nlohmann::json::parse(R"({
      "id": "E21/twice",
      "level": "erratum",
      "verdict": "fail",
      "clause": "E21",
      "message": "CPU 0: event 1 was delivered more than once",
      "seconds": 0.123,
      "replay": "kmes-conformance --filter E21/twice -- ./consumer --fast"
    })"));
    EXPECT_EQ(parsed["summary"], nlohmann::json::parse(R"({
      "pass": 1, "fail": 1, "known": 0, "inconclusive": 0, "unsupported": 0, "suite_error": 0
    })"));
}

TEST(Json, SurvivesAnyByteOfATestee) {
    RunReport report = small_report();
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
    report.testee[1] = bytes;
    report.results[1].message = bytes;
    report.results[1].replay = bytes;
    report.seed = UINT64_MAX;
    const nlohmann::json parsed = nlohmann::json::parse(to_json(report));
    EXPECT_EQ(parsed["run"]["seed"].get<std::uint64_t>(), UINT64_MAX);
    EXPECT_THAT(parsed["cases"][1]["message"].get<std::string>(), HasSubstr("~\x7f\\x80\\x81"));
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
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: copy() c.c:3; step 3 below\n"));
    // A wait that follows from a lap: the load that showed the lap says more.
    trace.rows.insert(trace.rows.begin(), trace_row(2, 1, "drain() c.c:2", true));
    trace.rows[0].kind = StepKind::access;
    trace.rows[2].decisive = true;
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: drain() c.c:2; step 2 below\n"));
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
                                               "    where: sleep() c.c:\\x1b; step 5 below\n"));
    EXPECT_THAT(printed(report, {}), HasSubstr("1 case   E21/twice; sleep() c.c:\\x1b\n"));
    EXPECT_THAT(printed(report, {}), HasSubstr("1 case   E3/once\n"));
    // Without a decisive step that has a line, it is the last line before the end.
    trace.rows[2].decisive = false;
    EXPECT_THAT(printed(report, {}), HasSubstr("    where: drain() c.c:6; step 6 below\n"));
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

// In another form of the layout than A, a clause is named as in the document of that form, too.
TEST(Reports, NameTheClauseOfThePublishedDocument) {
    RunReport report = small_report();
    report.results[1].clause = "5.1.8.1-5";
    const auto texts_of = [](const RunReport& of) {
        std::ostringstream out;
        ConsoleReport(out, {}).end(of);
        return std::vector<std::string>{out.str(), to_json(of), to_tap(of), to_html(of),
                                        to_junit(of)};
    };
    for (const std::string& text : texts_of(report)) EXPECT_THAT(text, Not(HasSubstr("published")));
    report.options.layout = "D";
    for (const std::string& text : texts_of(report))
        EXPECT_THAT(text, HasSubstr("Consumer Protocol, Draining, step 5"));
    report.options.layout = "B";
    for (const std::string& text : texts_of(report)) EXPECT_THAT(text, HasSubstr("5.1.9.1 step 5"));
}

// Only JSON has nothing for a clause that no document has: programs read a place there.
TEST(Reports, SayThatNoContractIsPublished) {
    RunReport report = small_report();
    report.results[1].clause = "contract-1";
    report.options.layout = "D";
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    for (const std::string& text : {out.str(), to_tap(report), to_html(report), to_junit(report)})
        EXPECT_THAT(text, HasSubstr("none; the published documents have no contract for testees"));
    EXPECT_THAT(to_json(report), Not(HasSubstr("published")));
}

TEST(Html, FailsWhereAListDoesNotFitAndSaysWhyNothingRan) {
    RunReport report = small_report();
    report.results.pop_back();
    EXPECT_THAT(to_html(report), HasSubstr("<p class=\"outcome pass\">"));
    report.differences = {{"", "<no case>"}};
    report.preflight = "no event <0>\n";
    const std::string text = to_html(report);
    EXPECT_THAT(text, HasSubstr("<p class=\"outcome fail\">No case of 1 failed, 1 line of a list "
                                "does not fit</p>"));
    EXPECT_THAT(text, HasSubstr("<li>&lt;no case&gt;</li>"));
    EXPECT_THAT(text, HasSubstr("no event &lt;0&gt;"));
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
    report.telling = {3, 1, 2};
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

TEST(Text, WrapsAtASpaceAndNeverWithinACharacter) {
    EXPECT_EQ(wrapped("a b", 10, 4), "a b\n");
    EXPECT_EQ(wrapped("aaaa bbbb cc", 10, 2), "aaaa bbbb\n  cc\n");
    EXPECT_EQ(wrapped("    aaaaaaaaaaaa", 10, 2), "    aaaaaa\n  aaaaaa\n");
    EXPECT_EQ(wrapped("x\ny\n", 10, 2), "x\ny\n");
    EXPECT_EQ(wrapped("aaaaaaaaa\xc3\xa4", 10, 2), "aaaaaaaaa\n  \xc3\xa4\n");
    EXPECT_EQ(wrapped("", 10, 2), "");
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
    EXPECT_THAT(out.str(), HasSubstr("9 cases were not run (--fail-fast):\n    E22/case-1\n"));
    EXPECT_THAT(out.str(), HasSubstr("    E22/case-5\n    (4 more: -v names them)\n"));
    EXPECT_THAT(out.str(), Not(HasSubstr("E22/case-6")));
    std::ostringstream all;
    ConsoleReport(all, {.verbose = true}).end(report);
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

TEST(OutputFile, IsThereOnlyWhenItIsWhole) {
    const Folder folder;
    {
        OutputFile file;
        ASSERT_EQ(file.open(folder.file("report.json")), OutputFile::Status::ok);
        // A killed run leaves nothing.
        EXPECT_EQ(folder.entries(), 0u);
    }
    EXPECT_EQ(folder.entries(), 0u);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report.json")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("{}\n"));
    EXPECT_EQ(read_file(folder.file("report.json")), "{}\n");
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, ReplacesAnOlderReport) {
    const Folder folder;
    std::ofstream(folder.file("report")) << "old";
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_EQ(read_file(folder.file("report")), "old");
    EXPECT_TRUE(file.commit("new"));
    EXPECT_EQ(read_file(folder.file("report")), "new");
}

TEST(OutputFile, HasTheRightsOfAnyFile) {
    const Folder folder;
    const mode_t mask = ::umask(022);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit(""));
    ::umask(mask);
    struct stat status;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(OutputFile, NamesAFolderThatIsNotThere) {
    const Folder folder;
    OutputFile missing;
    EXPECT_EQ(missing.open(folder.file("no/report")), OutputFile::Status::bad_path);
    EXPECT_THAT(missing.error(), HasSubstr("/no\" of the report file is not there"));
    OutputFile is_folder;
    EXPECT_EQ(is_folder.open(folder.file("")), OutputFile::Status::bad_path);
    OutputFile empty;
    EXPECT_EQ(empty.open(""), OutputFile::Status::bad_path);
}

TEST(OutputFile, SaysWhyItCannotBeWritten) {
    OutputFile file;
    EXPECT_EQ(file.open("/proc/kmes-report"), OutputFile::Status::unwritable);
    EXPECT_THAT(file.error(), HasSubstr("cannot write the report file \"/proc/kmes-report\": "));
    EXPECT_FALSE(file.commit("x"));
}

TEST(OutputFile, LeavesTheOldReportWhenTheRenameFails) {
    const Folder folder;
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    // Meanwhile something appears at its place that a file cannot replace.
    std::filesystem::create_directory(folder.file("report"));
    EXPECT_FALSE(file.commit("x"));
    EXPECT_THAT(file.error(), HasSubstr("cannot replace the report file"));
    EXPECT_EQ(folder.entries(), 1u);
}

// -- Special files, and links at the end of the path
// ------------------------------------------------

TEST(OutputFile, FollowsLinksAndKeepsThem) {
    const Folder folder;
    std::ofstream(folder.file("real")) << "old";
    std::filesystem::create_symlink("real", folder.file("link"));
    std::filesystem::create_symlink("link", folder.file("link-to-a-link"));
    std::filesystem::create_symlink("not-there", folder.file("dangling"));
    for (const std::string name : {"link-to-a-link", "dangling"}) {
        OutputFile file;
        ASSERT_EQ(file.open(folder.file(name)), OutputFile::Status::ok) << file.error();
        EXPECT_TRUE(file.commit("new")) << file.error();
        EXPECT_TRUE(std::filesystem::is_symlink(folder.file(name)));
    }
    EXPECT_EQ(read_file(folder.file("real")), "new");
    EXPECT_EQ(read_file(folder.file("not-there")), "new");
    EXPECT_EQ(folder.entries(), 5u);
}

TEST(OutputFile, WritesToAFifo) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
    const int reader = ::open(folder.file("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("fifo")), OutputFile::Status::ok) << file.error();
    EXPECT_TRUE(file.commit("new")) << file.error();
    char piece[8] = {};
    EXPECT_EQ(::read(reader, piece, sizeof piece), 3);
    ::close(reader);
    EXPECT_TRUE(std::filesystem::is_fifo(folder.file("fifo")));
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, WaitsForTheReaderOfAFifoButNotForEver) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
    StopFlag stop;
    int checks = 0;
    stop.before_each_check = [&] {
        if (++checks == 2) stop.ask(SIGINT);
    };
    OutputFile file;
    EXPECT_EQ(file.open(folder.file("fifo"), &stop), OutputFile::Status::unwritable);
    OutputFile nobody_reads;
    EXPECT_EQ(nobody_reads.open(folder.file("fifo")), OutputFile::Status::unwritable);
    EXPECT_THAT(nobody_reads.error(), HasSubstr("no process reads the FIFO"));
    EXPECT_TRUE(std::filesystem::is_fifo(folder.file("fifo")));
}

TEST(OutputFile, WritesToADeviceAndReportsAFullOne) {
    OutputFile null;
    ASSERT_EQ(null.open("/dev/null"), OutputFile::Status::ok) << null.error();
    EXPECT_TRUE(null.commit("new"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    OutputFile full;
    ASSERT_EQ(full.open("/dev/full"), OutputFile::Status::ok) << full.error();
    EXPECT_FALSE(full.commit("new"));
    EXPECT_THAT(full.error(), HasSubstr("No space left on device"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

// As in a process substitution, and with a file that is open already.
TEST(OutputFile, WritesToADescriptorOfThisProcess) {
    const Folder folder;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    char piece[8];
    for (const auto& [writer, reader] :
         {std::pair(ends[1], ends[0]), std::pair(sockets[1], sockets[0])}) {
        for (const std::string base : {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}) {
            OutputFile file;
            ASSERT_EQ(file.open(base + std::to_string(writer)), OutputFile::Status::ok)
                << file.error();
            EXPECT_TRUE(file.commit("new")) << file.error();
            EXPECT_EQ(::read(reader, piece, sizeof piece), 3);
        }
        ::close(reader);
        ::close(writer);
    }
    const int open = ::open(folder.file("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::write(open, "old,", 4), 4);
    OutputFile file;
    ASSERT_EQ(file.open("/dev/fd/" + std::to_string(open)), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("new,"));
    ASSERT_EQ(::write(open, "more", 4), 4);
    ::close(open);
    EXPECT_EQ(read_file(folder.file("file")), "old,new,more");
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, RefusesASocketAndADescriptorThatCannotBeWritten) {
    const Folder folder;
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder.file("socket");
    // The folder of a test may have a longer path than a socket address permits.
    const int inside = ::open(folder.file(".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const std::string shorter = "/proc/self/fd/" + std::to_string(inside) + "/socket";
    ASSERT_LT(shorter.size(), sizeof address.sun_path);
    shorter.copy(address.sun_path, shorter.size());
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    OutputFile file;
    EXPECT_EQ(file.open(path), OutputFile::Status::bad_path);
    EXPECT_THAT(file.error(), HasSubstr("is a socket"));
    ::close(socket);
    ::close(inside);
    EXPECT_TRUE(std::filesystem::is_socket(path));
    const int reading = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    OutputFile other;
    EXPECT_EQ(other.open("/dev/fd/" + std::to_string(reading)), OutputFile::Status::unwritable);
    ::close(reading);
}

TEST(OutputFile, KeepsModeAndOwnerOfWhatItReplaces) {
    const Folder folder;
    std::ofstream(folder.file("report")) << "old";
    ASSERT_EQ(::chmod(folder.file("report").c_str(), 0640), 0);
    // Only root may change the owner of a file, and in a user namespace only to its own users.
    const bool is_given_away = ::chown(folder.file("report").c_str(), 12, 34) == 0;
    static_cast<void>(is_given_away);
    struct stat before;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &before), 0);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("new"));
    struct stat after;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &after), 0);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_uid, before.st_uid);
    EXPECT_EQ(after.st_gid, before.st_gid);
    EXPECT_NE(after.st_ino, before.st_ino);
    EXPECT_EQ(read_file(folder.file("report")), "new");
}

TEST(OutputFile, ANewOneFollowsNoLink) {
    const Folder folder;
    std::filesystem::create_symlink("not-there", folder.file("link"));
    OutputFile file;
    ASSERT_EQ(file.open_new(folder.file("link")), OutputFile::Status::ok);
    EXPECT_FALSE(file.commit_new("new"));
    EXPECT_TRUE(file.is_taken());
    EXPECT_FALSE(std::filesystem::exists(folder.file("not-there")));
}

TEST(WriteAll, GoesOnAfterAShortWriteAndAFullPipe) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const std::string text(std::size_t{1} << 20, 'x');
    std::string got;
    std::thread reader([&] {
        char piece[4096];
        while (got.size() < text.size()) {
            pollfd ready{ends[0], POLLIN, 0};
            ::poll(&ready, 1, -1);
            const ssize_t count = ::read(ends[0], piece, sizeof piece);
            if (count > 0) got.append(piece, static_cast<std::size_t>(count));
        }
    });
    EXPECT_EQ(write_all(ends[1], text), 0);
    reader.join();
    EXPECT_EQ(got, text);
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(write_all(-1, "x"), EBADF);
}

TEST(DescriptorBuffer, WritesThroughAndShowsAFailure) {
    DescriptorBuffer full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    std::ostream out(&full);
    out << "text" << std::flush;
    EXPECT_FALSE(out.good());
}

TEST(DescriptorBuffer, NoticesThatTheReaderHasGoneWithoutAByteToWrite) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    DescriptorBuffer pipe(ends[1]);
    std::ostream out(&pipe);
    out << std::flush;
    EXPECT_TRUE(out.good());
    ::close(ends[0]);
    out << std::flush;
    EXPECT_FALSE(out.good());
    ::close(ends[1]);
}

}  // namespace
}  // namespace kmes::conformance
