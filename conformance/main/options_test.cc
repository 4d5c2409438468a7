// SPDX-License-Identifier: MIT
//
// Tests of the command line.
#include "conformance/main/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/model/layout.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Options right(const std::vector<std::string>& arguments, const std::string& scale = "") {
    const ParsedOptions parsed = parse_options(arguments, scale);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.help, "");
    return parsed.options;
}

std::string wrong(const std::vector<std::string>& arguments, const std::string& scale = "") {
    const ParsedOptions parsed = parse_options(arguments, scale);
    EXPECT_EQ(parsed.error.find('\n'), std::string::npos);
    EXPECT_FALSE(parsed.error.empty());
    return parsed.error;
}

TEST(Options, HaveDefaults) {
    const Options options = right({"--", "./consumer"});
    EXPECT_FALSE(options.list);
    EXPECT_EQ(options.explain, "");
    EXPECT_THAT(options.filters, IsEmpty());
    EXPECT_EQ(options.level, std::nullopt);
    EXPECT_EQ(options.cpus, 4u);
    EXPECT_EQ(options.capacity_bytes, 65536u);
    EXPECT_EQ(options.seed, 1u);
    EXPECT_EQ(options.shuffle, std::nullopt);
    EXPECT_EQ(options.timeout_scale, 1.0);
    EXPECT_EQ(options.report, ReportFormat::console);
    EXPECT_EQ(options.report_file, std::nullopt);
    EXPECT_EQ(options.device, "");
    EXPECT_EQ(options.expect_unsupported, "");
    EXPECT_FALSE(options.fail_fast);
    EXPECT_FALSE(options.verbose);
    EXPECT_THAT(options.testee, ElementsAre("./consumer"));
}

TEST(Options, TakeEveryName) {
    const Options options = right({"--filter",
                                   "5.1.8*",
                                   "--filter=E*",
                                   "--without",
                                   "E7/*",
                                   "--level",
                                   "robust",
                                   "--cpus",
                                   "64",
                                   "--capacity",
                                   "268435456",
                                   "--seed",
                                   "18446744073709551615",
                                   "--shuffle",
                                   "0",
                                   "--timeout-scale",
                                   "2.5",
                                   "--report",
                                   "json",
                                   "--report-file",
                                   "out.json",
                                   "--fail-fast",
                                   "-v",
                                   "--",
                                   "prog",
                                   "--list",
                                   "--"});
    EXPECT_THAT(options.filters, ElementsAre("5.1.8*", "E*"));
    EXPECT_THAT(options.without, ElementsAre("E7/*"));
    EXPECT_EQ(options.level, Level::robust);
    EXPECT_EQ(options.cpus, 64u);
    EXPECT_EQ(options.capacity_bytes, 268435456u);
    EXPECT_EQ(options.seed, UINT64_MAX);
    EXPECT_EQ(options.shuffle, 0u);
    EXPECT_EQ(options.timeout_scale, 2.5);
    EXPECT_EQ(options.report, ReportFormat::json);
    EXPECT_EQ(options.report_file, "out.json");
    EXPECT_TRUE(options.fail_fast);
    EXPECT_TRUE(options.verbose);
    EXPECT_FALSE(options.list);  // it follows after --
    EXPECT_THAT(options.testee, ElementsAre("prog", "--list", "--"));
}

TEST(Options, TakeWhatGoesDeeper) {
    const Options none = right({"--", "p"});
    EXPECT_TRUE(none.explore.on);
    EXPECT_EQ(none.explore.seconds, 25);
    EXPECT_FALSE(none.explore.deep);
    EXPECT_EQ(none.stepper, Stepper::automatic);
    EXPECT_EQ(none.save_folder, std::nullopt);
    EXPECT_EQ(none.debug, "");
    EXPECT_FALSE(none.shared);
    EXPECT_EQ(none.soak_seconds, 0);
    EXPECT_EQ(none.jobs, 0u);
    EXPECT_EQ(right({"--jobs", "8", "--", "p"}).jobs, 8u);
    EXPECT_EQ(right({"--jobs", "1", "--device", "/dev/kmes", "--", "p"}).jobs, 1u);
    EXPECT_EQ(none.stream, "");
    const Options all =
        right({"--explore", "deep", "--stepper", "watchpoints", "--save", "kept", "--debug", "a/b",
               "--shared", "--soak", "1.5", "--stream", "f", "--", "p"});
    EXPECT_TRUE(all.explore.on);
    EXPECT_EQ(all.explore.seconds, 0);
    EXPECT_TRUE(all.explore.deep);
    EXPECT_EQ(all.stepper, Stepper::watchpoints);
    EXPECT_EQ(all.save_folder, "kept");
    EXPECT_EQ(all.debug, "a/b");
    EXPECT_TRUE(all.shared);
    EXPECT_EQ(all.soak_seconds, 1.5);
    EXPECT_EQ(all.stream, "f");
    EXPECT_FALSE(right({"--explore", "off", "--", "p"}).explore.on);
    EXPECT_EQ(right({"--explore", "quick", "--", "p"}).explore.seconds, 25);
    const ExploreSettings seconds = right({"--explore", "600", "--", "p"}).explore;
    EXPECT_TRUE(seconds.on);
    EXPECT_EQ(seconds.seconds, 600);
    EXPECT_FALSE(seconds.deep);
    for (const Stepper stepper :
         {Stepper::automatic, Stepper::guards, Stepper::watchpoints, Stepper::single_step}) {
        const std::string name(stepper_name(stepper));
        EXPECT_EQ(right({"--stepper", name, "--", "p"}).stepper, stepper);
    }
}

TEST(Options, TakeWhereItRuns) {
    const Options options =
        right({"--device", "/dev/kmes", "--expect-unsupported", "list", "--", "p"});
    EXPECT_EQ(options.device, "/dev/kmes");
    EXPECT_EQ(options.expect_unsupported, "list");
    EXPECT_THAT(wrong({"--device", "", "--", "p"}), HasSubstr("expected the path of a device"));
    EXPECT_EQ(right({"--layout", "stream", "--", "p"}).layout, other_layout());
    EXPECT_EQ(wrong({"--layout", "E", "--", "p"}),
              "--layout is \"E\"; expected auto, A, B, C or D (or 1, 0.20, 0.22 or stream)");
    EXPECT_THAT(wrong({"--expect-unsupported", "", "--", "p"}), HasSubstr("expected a file"));
}

TEST(Options, SayWhatGoesDeeperShouldBe) {
    for (const char* value : {"0", "-1", "fast", "nan", "2000000", "10s", "Deep"}) {
        EXPECT_THAT(wrong({std::string("--explore=") + value, "--", "p"}),
                    HasSubstr("off, quick, deep, or a number of seconds from 0.1 to 1000000"));
    }
    EXPECT_THAT(
        wrong({"--stepper", "guard", "--", "p"}),
        HasSubstr("--stepper is \"guard\"; expected auto, guards, watchpoints or single-step"));
    EXPECT_THAT(wrong({"--soak", "0", "--", "p"}),
                HasSubstr("--soak is \"0\"; expected a number of seconds from 0.1 to 1000000"));
    for (const char* value : {"0", "9", "-1", "two"}) {
        EXPECT_THAT(wrong({std::string("--jobs=") + value, "--", "p"}),
                    HasSubstr(value + std::string("\"; expected a number from 1 to 8")));
    }
    EXPECT_THAT(wrong({"--device", "/dev/kmes", "--jobs", "2", "--", "p"}),
                HasSubstr("--device runs one case at a time and excludes --jobs 2"));
    EXPECT_THAT(wrong({"--jobs", "2", "--debug", "a/b", "--", "p"}),
                HasSubstr("--debug runs one case at a time and excludes --jobs 2"));
    EXPECT_THAT(wrong({"--save", "", "--", "p"}), HasSubstr("--save is \"\"; expected a folder"));
    EXPECT_THAT(wrong({"--debug", "", "--", "p"}), HasSubstr("the id of a case"));
    EXPECT_THAT(wrong({"--debug", "a/b", "--filter", "a/*", "--", "p"}),
                HasSubstr("excludes --filter"));
    EXPECT_THAT(wrong({"--debug", "a/b", "--without", "a/*", "--", "p"}),
                HasSubstr("excludes --without"));
    EXPECT_THAT(wrong({"--debug", "a/b", "--report", "json", "--", "p"}),
                HasSubstr("also needs --report-file"));
}

TEST(Options, NeedNoProgramToListOrExplain) {
    EXPECT_TRUE(right({"--list"}).list);
    EXPECT_EQ(right({"--explain", "a/b"}).explain, "a/b");
}

TEST(Options, WantAProgram) {
    EXPECT_THAT(wrong({}), HasSubstr("no program to test is named"));
    EXPECT_THAT(wrong({"--"}), HasSubstr("no program to test is named"));
    EXPECT_THAT(wrong({"--", ""}), HasSubstr("program after -- is empty"));
    EXPECT_THAT(wrong({"./consumer"}), HasSubstr("./consumer"));
}

TEST(Options, SayWhatAValueShouldBe) {
    EXPECT_EQ(wrong({"--cpus", "0", "--", "p"}), "--cpus is \"0\"; expected a number from 1 to 64");
    EXPECT_THAT(wrong({"--cpus", "65", "--", "p"}), HasSubstr("--cpus is \"65\""));
    EXPECT_THAT(wrong({"--cpus=-1", "--", "p"}), HasSubstr("--cpus is \"-1\""));
    EXPECT_THAT(wrong({"--cpus", "four", "--", "p"}), HasSubstr("--cpus is \"four\""));
    EXPECT_THAT(wrong({"--cpus", "4 ", "--", "p"}), HasSubstr("--cpus is \"4 \""));
    EXPECT_THAT(wrong({"--capacity", "65535", "--", "p"}), HasSubstr("power of two from 65536"));
    EXPECT_THAT(wrong({"--capacity", "32768", "--", "p"}), HasSubstr("power of two from 65536"));
    for (const char* unit : {"64KB", "64k", "64kB"})
        EXPECT_THAT(wrong({"--capacity", unit, "--", "p"}), HasSubstr("; did you mean 64K?"));
    EXPECT_THAT(wrong({"--capacity", "60KB", "--", "p"}), Not(HasSubstr("did you mean")));
    EXPECT_THAT(wrong({"--capacity", "536870912", "--", "p"}), HasSubstr("power of two"));
    EXPECT_THAT(wrong({"--seed", "18446744073709551616", "--", "p"}), HasSubstr("below 2^64"));
    EXPECT_THAT(wrong({"--shuffle", "-1", "--", "p"}), HasSubstr("--shuffle is \"-1\""));
    EXPECT_THAT(wrong({"--timeout-scale", "0", "--", "p"}), HasSubstr("from 0.01 to 1000"));
    EXPECT_THAT(wrong({"--timeout-scale", "nan", "--", "p"}), HasSubstr("from 0.01 to 1000"));
    EXPECT_THAT(wrong({"--timeout-scale", "inf", "--", "p"}), HasSubstr("from 0.01 to 1000"));
    EXPECT_THAT(wrong({"--timeout-scale", "1x", "--", "p"}), HasSubstr("\"1x\""));
    EXPECT_THAT(wrong({"--level", "MUST", "--", "p"}),
                HasSubstr("must, should, erratum or robust"));
    EXPECT_THAT(wrong({"--report", "xml", "--", "p"}),
                HasSubstr("expected console, json, html, junit, tap or statement, or"));
    EXPECT_THAT(wrong({"--report", "json:", "--", "p"}), HasSubstr("--report is \"json:\""));
    EXPECT_THAT(wrong({"--report", "json", "--report", "tap", "--", "p"}),
                HasSubstr("--report is \"tap\"; expected tap:FILE, as another"));
    EXPECT_THAT(wrong({"--filter", "", "--", "p"}), HasSubstr("a pattern for case ids"));
    EXPECT_THAT(wrong({"--explain", ""}), HasSubstr("the id of a case"));
}

TEST(Options, TakeACapacityWithItsUnit) {
    EXPECT_EQ(right({"--capacity", "64K", "--", "p"}).capacity_bytes, 65536u);
    EXPECT_EQ(right({"--capacity", "64KiB", "--", "p"}).capacity_bytes, 65536u);
    EXPECT_EQ(right({"--capacity=4M", "--", "p"}).capacity_bytes, 4u << 20);
    EXPECT_EQ(right({"--capacity", "256MiB", "--", "p"}).capacity_bytes, 256u << 20);
    for (const char* text : {"32K", "3M", "1G", "4 M", "4MB", "4m", "M", "MiB", "4MM", "4KM", "-4M",
                             "18446744073709551615G", "17179869184G"})
        EXPECT_THAT(wrong({"--capacity", text, "--", "p"}), HasSubstr("power of two")) << text;
}

TEST(Options, NameWhatIsUnknownMissingOrDoubled) {
    EXPECT_THAT(wrong({"--colour", "--", "p"}), HasSubstr("--colour"));
    EXPECT_THAT(wrong({"--levle", "must", "--", "p"}), EndsWith("; did you mean --level?"));
    EXPECT_THAT(wrong({"--repot=json", "--", "p"}), EndsWith("; did you mean --report?"));
    EXPECT_THAT(wrong({"--xyzzy", "--", "p"}), Not(HasSubstr("did you mean")));
    EXPECT_THAT(wrong({std::string("--") + std::string(100'000, 'l'), "--", "p"}),
                Not(HasSubstr("did you mean")));
    EXPECT_THAT(wrong({"--seed", "--", "p"}), HasSubstr("--seed has no value; expected N"));
    EXPECT_THAT(wrong({"--seed", "1", "--seed", "2", "--", "p"}),
                HasSubstr("--seed is given 2 times; expected once"));
    EXPECT_THAT(wrong({"--filter", "--", "p"}), HasSubstr("--filter has no value; expected GLOB"));
}

TEST(Options, DoNotLetAFilterEatWhatFollows) {
    EXPECT_THAT(wrong({"--filter", "a", "b", "--", "p"}), HasSubstr("b"));
}

TEST(Options, TakeTheScaleOfTheEnvironment) {
    EXPECT_EQ(right({"--", "p"}, "4").timeout_scale, 4.0);
    EXPECT_EQ(right({"--timeout-scale", "2", "--", "p"}, "4").timeout_scale, 2.0);
    EXPECT_EQ(right({"--timeout-scale", "2", "--", "p"}, "rubbish").timeout_scale, 2.0);
    EXPECT_THAT(wrong({"--", "p"}, "rubbish"), HasSubstr("KMES_TIMEOUT_SCALE is \"rubbish\""));
}

TEST(Options, TakeSeveralReports) {
    const Options options =
        parse_options({"--report", "json:a:b", "--report=html:c", "--report", "tap", "--", "p"})
            .options;
    EXPECT_EQ(options.report, ReportFormat::tap);
    ASSERT_EQ(options.more_reports.size(), 2u);
    EXPECT_EQ(options.more_reports[0].format, ReportFormat::json);
    EXPECT_EQ(options.more_reports[0].file, "a:b");
    EXPECT_EQ(options.more_reports[1].format, ReportFormat::html);
}

TEST(Options, PrintHelp) {
    const ParsedOptions parsed = parse_options({"--help"}, "", {"smoke", "judge"});
    EXPECT_THAT(parsed.help, HasSubstr("Commands, as the first word: smoke, judge"));
    for (const char* name : {"--version",         "--list",       "--filter GLOB",
                             "--without GLOB",    "--level",      "--cpus N",
                             "--capacity BYTES",  "--seed N",     "--shuffle SEED",
                             "--timeout-scale X", "--report ",    "--report-file FILE",
                             "--explain CASE",    "--fail-fast",  "-v",
                             "Exit status",       "--explore ",   "--stepper ",
                             "--save DIR",        "--debug CASE", "--shared",
                             "--soak SECONDS",    "--jobs N"}) {
        EXPECT_THAT(parsed.help, HasSubstr(name));
    }
    EXPECT_THAT(parsed.help, HasSubstr("--no-preflight  "));
    EXPECT_THAT(parsed.help, HasSubstr("129, 130 and 143 after SIGHUP, SIGINT and SIGTERM."));
}

TEST(Options, SwitchThePreflightOff) {
    EXPECT_TRUE(parse_options({"--", "./consumer"}, "", {}).options.preflight);
    const ParsedOptions parsed = parse_options({"--no-preflight", "--", "./consumer"}, "", {});
    EXPECT_EQ(parsed.error, "");
    EXPECT_FALSE(parsed.options.preflight);
}

}  // namespace
}  // namespace kmes::conformance
