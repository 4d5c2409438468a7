// SPDX-License-Identifier: MIT
//
// The command `smoke` with real testees: a correct one, and the same with one mistake each.
#include "conformance/main/smoke.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kAdapter = "conformance/main/testdata/adapter";

double timeout_scale() {
    const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
    return scale == nullptr ? 1.0 : std::atof(scale);
}

class Shell {
  public:
    int run(const std::vector<std::string>& arguments) {
        out.str("");
        error.str("");
        const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
        const Surroundings around{
            .cases = cases_,
            .run_on_stage = nullptr,
            .check_set_up = [](const StageSettings&) { return why_not_traceable(); },
            .out = out,
            .error = error,
            .command = "tools/kmes conformance",
            .timeout_scale = scale == nullptr ? "" : scale,
            .stop = stop_,
        };
        return smoke_command().run(arguments, around);
    }
    // Runs the adapter with this mistake; "" is none.
    int smoke(const std::string& mistake, bool verbose = false) {
        std::vector<std::string> words;
        if (verbose) words.push_back("-v");
        words.insert(words.end(), {"--", kAdapter, mistake});
        return run(words);
    }

    std::ostringstream out;
    std::ostringstream error;

  private:
    std::vector<Case> cases_;
    StopFlag stop_;
};

TEST(Smoke, PassesARightAdapterAndSaysWhatComesNext) {
    Shell shell;
    EXPECT_EQ(shell.smoke(""), 0) << shell.out.str() << shell.error.str();
    EXPECT_THAT(shell.out.str(), StartsWith("smoke: conformance/main/testdata/adapter ''\n"));
    EXPECT_THAT(shell.out.str(),
                HasSubstr("\nthe adapter is correct; now run: tools/kmes conformance -- "
                          "conformance/main/testdata/adapter ''\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("3 CPUs mapped"));
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Smoke, StartsACorrectAdapterAgainWithOneCpu) {
    Shell shell;
    EXPECT_EQ(shell.smoke("not-with-one-cpu"), 1);
    EXPECT_THAT(shell.out.str(),
                HasSubstr("with 3 CPUs the adapter is correct; started again with 1 CPU:\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("  the program exited with status 0; expected "));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("now run: ")));
}

TEST(Smoke, SaysThatItCannotWriteItsOutput) {
    for (const char* mistake : {"", "fnv1"}) {
        Shell shell;
        shell.out.setstate(std::ios::badbit);
        EXPECT_EQ(shell.smoke(mistake), 3);
        EXPECT_EQ(shell.error.str(), "kmes-conformance: cannot write to standard output\n");
    }
}

TEST(Smoke, ShowsTheReportWhereThatIsAsked) {
    Shell shell;
    EXPECT_EQ(shell.smoke("", true), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("\nits report:\n    1  "));
    EXPECT_THAT(shell.out.str(), HasSubstr("  E 1 1 "));
    EXPECT_THAT(shell.out.str(), HasSubstr("  R 2 bad magic\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("  L 0 2\n"));
}

TEST(Smoke, NamesTheLineAndTheField) {
    Shell shell;
    EXPECT_EQ(shell.smoke("fnv1"), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr(": field 7 (digest) is \""));
    EXPECT_THAT(shell.out.str(), HasSubstr("FNV-1 of the payload (multiplies first)"));
    EXPECT_THAT(shell.out.str(), HasSubstr("\n      is:    \"E 0 "));
    EXPECT_THAT(shell.out.str(), HasSubstr("\n      right: \"E 0 "));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("the adapter is correct")));
    EXPECT_EQ(shell.smoke("after-the-end"), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("follows the event kmes.conformance.end of CPU 1"));
}

TEST(Smoke, NamesWhatNoLineShows) {
    const std::vector<std::pair<std::string, std::string>> mistakes = {
        {"pieces", "is written in pieces: a write of 8 bytes that does not end with a newline"},
        {"stdout",
         "the records are on standard output; expected them on the descriptor that KMES_REPORT_FD "
         "names"},
        {"buffered", "has to be written before a sleep (is the output buffered?)"},
        {"begins-at-write-pos",
         "waited for the record of the event that was there before the attach: all threads are "
         "blocked for good; later the program delivered event 2 of CPU 0, but not event 1"},
        {"silent",
         "waited for the record of the event that was there before the attach: all threads are "
         "blocked for good"},
        {"short-mapping", "mmap of 69632 bytes; 4096 + 2 * capacity is 135168"},
        {"private-mapping", "mmap without MAP_SHARED"},
        {"one-fd-for-all",
         "the program did not map the buffers of CPUs 1, 2; it mapped that of CPU 0 3 times: "
         "all "
         "threads are blocked for good"},
        {"private-futex", "the program waits with FUTEX_PRIVATE_FLAG"},
        {"no-attach", "without having called kmes_attach (system call 1091)"},
        {"attach-of-one-cpu",
         "the last kmes_attach, with 0 slots, returned ERANGE, for it needs 3; expected another "
         "call with that many; its arguments are (int* fds"},
        {"waits-first", "the program does not call kmes_attach"},
        {"no-exit", "the program does not exit: all threads are blocked for good"},
        {"status", "the program exited with status 3; expected 0"},
        {"crash", "the program was killed by "},
    };
    for (const auto& [mistake, said] : mistakes) {
        Shell shell;
        EXPECT_EQ(shell.smoke(mistake), 1) << mistake << "\n" << shell.out.str();
        // A long line continues in the next one.
        std::string text = shell.out.str();
        for (std::size_t at = text.find("\n      "); at != std::string::npos;
             at = text.find("\n      ", at))
            text.replace(at, 7, " ");
        EXPECT_THAT(text, HasSubstr(said)) << mistake;
        EXPECT_EQ(shell.error.str(), "") << mistake;
    }
}

// The testee delivers later events, so none of its output was late.
TEST(Smoke, BlamesNoBufferOfTheOutputForAnEventThatIsPassedOver) {
    Shell shell;
    EXPECT_EQ(shell.smoke("begins-at-write-pos"), 1);
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("is the output buffered?")));
}

// A FIFO that every process of the testee has open: its reader notices when the last one has ended.
class ProcessWatch {
  public:
    ProcessWatch() {
        folder_ = ::testing::TempDir() + "/smoke_test.XXXXXX";
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
        EXPECT_EQ(::mkfifo(path().c_str(), 0600), 0);
        reader_ = ::open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    ~ProcessWatch() {
        ::close(reader_);
        std::filesystem::remove_all(folder_);
    }
    ProcessWatch(const ProcessWatch&) = delete;
    ProcessWatch& operator=(const ProcessWatch&) = delete;
    std::string path() const { return folder_ + "/fifo"; }
    bool is_cut() const {
        constexpr int kLimitMs = 60'000;
        pollfd ended{reader_, POLLIN, 0};
        return ::poll(&ended, 1, kLimitMs) == 1 && (ended.revents & POLLHUP) != 0;
    }

  private:
    std::string folder_;
    int reader_ = -1;
};

// Only what ends by a limit of time makes the test wait. The other testees keep the whole limit:
// with a quarter of it, a busy machine can end one before it has started.
enum class EndsBy { limit, count };

struct EndlessProgram {
    const char* mistake;
    const char* said;
    EndsBy ends_by = EndsBy::limit;
};

// Whatever a testee does, smoke ends and leaves no process of it. The status is that of a full run.
// If the machine gives the testee no time, it is inconclusive.
class Endless : public ::testing::TestWithParam<EndlessProgram> {};

TEST_P(Endless, IsEnded) {
    const ProcessWatch watch;
    Shell shell;
    const double whole = timeout_scale();
    const double factor = GetParam().ends_by == EndsBy::limit ? whole / 4 : whole;
    const int status =
        shell.run({"--timeout-scale", std::to_string(factor), "--", "sh", "-c",
                   R"(exec 9> "$0"; exec "$1" "$2")", watch.path(), kAdapter, GetParam().mistake});
    EXPECT_TRUE(watch.is_cut());
    const std::string out = shell.out.str();
    if (status == 4 && out.find("--timeout-scale allows more time") != std::string::npos) return;
    EXPECT_EQ(status, 1) << out << shell.error.str();
    EXPECT_THAT(out, HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Testees, Endless,
    ::testing::Values(
        EndlessProgram{"flood-before", "the program floods its report: ", EndsBy::count},
        EndlessProgram{"flood-after", "the program floods its report: ", EndsBy::count},
        EndlessProgram{"endless-before", "is written in pieces"},
        EndlessProgram{"endless-after", "is written in pieces"},
        EndlessProgram{"comments-before", "the program does not call kmes_attach"},
        EndlessProgram{"comments-after", "no progress in "},
        EndlessProgram{"spin-before", "the program does not call kmes_attach"},
        EndlessProgram{"spin-after", "no progress in "},
        EndlessProgram{"sleep-before", "the program does not call kmes_attach"},
        EndlessProgram{"sleep-after", "no progress in "},
        EndlessProgram{"stubborn-before", "the program does not call kmes_attach"},
        EndlessProgram{"stubborn-after", "no progress in "},
        EndlessProgram{"forks-before", "creates processes without end", EndsBy::count},
        EndlessProgram{"forks-after", "creates processes without end", EndsBy::count}),
    [](const auto& parameter) {
        std::string name = parameter.param.mistake;
        std::replace(name.begin(), name.end(), '-', '_');
        return name;
    });

// A launcher waits, while its child works for longer than a program may rest and then becomes the
// consumer.
TEST(Smoke, WaitsForTheConsumerOfALauncher) {
    constexpr const char* kLauncher = R"sh(sh -c '
        end=$(($(date +%s%N) + $1))
        while [ $(date +%s%N) -lt $end ]; do
            i=0
            while [ $i -lt 2000 ]; do i=$((i + 1)); done
        done
        exec "$0"' "$0" "$1"
        exit $?)sh";
    constexpr double kWorkNs = 3e9;  // a program may rest for 2 s with this factor
    constexpr double kFactor = 0.5;
    const double whole = timeout_scale();
    Shell shell;
    const int status =
        shell.run({"--timeout-scale", std::to_string(kFactor * whole), "--", "sh", "-c", kLauncher,
                   kAdapter, std::to_string(static_cast<std::int64_t>(kWorkNs * whole))});
    const std::string out = shell.out.str();
    if (status == 4 && out.find("--timeout-scale allows more time") != std::string::npos) return;
    EXPECT_EQ(status, 0) << out << shell.error.str();
}

TEST(Smoke, IsInconclusiveWhereASanitizerOwnsPtrace) {
    Shell shell;
    EXPECT_EQ(shell.smoke("sanitizer"), 4) << shell.out.str() << shell.error.str();
    EXPECT_THAT(shell.out.str(), HasSubstr("its LeakSanitizer does not work in a traced program"));
}

// As in the cases.
TEST(Smoke, IsInconclusiveWhereTheProgramsFilterKillsIt) {
    Shell shell;
    EXPECT_EQ(shell.smoke("seccomp"), 4) << shell.out.str() << shell.error.str();
    EXPECT_THAT(shell.out.str(), HasSubstr("the consumer's own seccomp filter killed it"));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("--layout")));
}

TEST(Smoke, SaysBadUsageAndBadSetUpInOneLine) {
    Shell shell;
    EXPECT_EQ(shell.run({}), 2);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: smoke: no program is named; expected smoke -- PROGRAM ARGS... "
              "(smoke --help says more)\n");
    EXPECT_EQ(shell.run({"--", ""}), 2);
    EXPECT_EQ(shell.run({"--timeout-scale", "0", "--", "p"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--timeout-scale is \"0\""));
    EXPECT_EQ(shell.run({"--cpus", "2", "--", "p"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--cpus"));
    EXPECT_EQ(shell.run({"--help"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("Exit status: 0 the adapter is correct"));
    EXPECT_EQ(shell.run({"--", "/no/such/program"}), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace kmes::conformance
