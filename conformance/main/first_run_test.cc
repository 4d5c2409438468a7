// SPDX-License-Identifier: MIT
//
// The first steps of a new user: the runner on a terminal, misspelt words, a program that cannot be
// started, and a debugged case.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "conformance/main/testing.h"

namespace kmes::conformance {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kReference = "conformance/testees/reference";
const std::vector<std::string> kOneCase{"--explore", "off",     "--filter", "5.1.5/attach-and-map",
                                        "--",        kReference};

// Returns what the runner writes to a terminal, with these environment variables.
std::string on_terminal(const std::vector<std::pair<const char*, const char*>>& variables) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(terminal, 0);
    EXPECT_EQ(::grantpt(terminal), 0);
    EXPECT_EQ(::unlockpt(terminal), 0);
    const std::string name = ::ptsname(terminal);
    // Keep the terminal open while its text is read, so that the last output is not lost.
    const int keeper = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(keeper, 0);
    std::string text;
    {
        Process process(kOneCase, [&] {
            ::unsetenv("NO_COLOR");
            ::unsetenv("TERM");
            for (const auto& [variable, value] : variables) ::setenv(variable, value, 1);
            const int own = ::open(name.c_str(), O_RDWR | O_NOCTTY);
            ::dup2(own, STDOUT_FILENO);
            ::dup2(own, STDERR_FILENO);
        });
        while (text.find("1 pass") == std::string::npos || !text.ends_with("\n")) {
            char piece[4096];
            const ssize_t got = ::read(terminal, piece, sizeof piece);
            if (got <= 0) break;
            text.append(piece, static_cast<std::size_t>(got));
        }
        EXPECT_EQ(process.end(), 0) << text;
    }
    ::close(keeper);
    ::close(terminal);
    return text;
}

TEST(FirstRun, ColoursAndProgressAreForATerminalThatTakesThem) {
    const std::string plain = on_terminal({{"TERM", "xterm"}});
    EXPECT_THAT(plain, HasSubstr("\x1b[32m1 pass"));
    EXPECT_THAT(plain, HasSubstr("[1/1] 5.1.5/attach-and-map"));
    const std::string no_colour = on_terminal({{"TERM", "xterm"}, {"NO_COLOR", "1"}});
    EXPECT_THAT(no_colour, Not(HasSubstr("\x1b[32m")));
    EXPECT_THAT(no_colour, HasSubstr("[1/1] 5.1.5/attach-and-map"));
    EXPECT_THAT(on_terminal({{"TERM", "xterm"}, {"NO_COLOR", ""}}), HasSubstr("\x1b[32m1 pass"));
    EXPECT_THAT(on_terminal({{"TERM", "dumb"}}), Not(HasSubstr("\x1b")));
}

TEST(FirstRun, AProgramThatIsThereAndNotExecutableIsNamedSo) {
    const Folder folder;
    const std::string program = folder.file("consumer");
    std::ofstream(program) << "#!/bin/sh\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_read);
    Process by_path({"--", program});
    EXPECT_EQ(by_path.end(), 3);
    EXPECT_EQ(by_path.out,
              "kmes-conformance: " + program + ": this file is not executable (chmod +x)\n");
    std::ofstream("not-executable") << "#!/bin/sh\n";
    Process by_name({"smoke", "--", "not-executable"});
    EXPECT_EQ(by_name.end(), 3);
    EXPECT_EQ(by_name.out,
              "kmes-conformance: not-executable: not in PATH; the one in this folder is "
              "./not-executable: this file is not executable (chmod +x)\n");
    std::filesystem::remove("not-executable");
    Process folder_by_name({"--", "."});
    EXPECT_EQ(folder_by_name.end(), 3);
    EXPECT_EQ(folder_by_name.out, "kmes-conformance: .: this is a folder\n");
}

TEST(FirstRun, AMisspeltWordGetsAProposal) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> words = {
        {{"--explor", "off", "--", "p"}, "did you mean --explore?"},
        {{"smoke", "--timeout-scal", "2", "--", "p"}, "did you mean --timeout-scale?"},
        {{"smoek", "--", "p"}, "did you mean smoke?"},
        {{"--explain", "E2/event-at-evry-step"}, "nearest: E2/event-at-every-step"},
        {{"--filter", "E2/event-at-evry-step", "--", "p"}, "(nearest: E2/event-at-every-step"},
        {{"smoke"}, "no program is named; expected smoke -- PROGRAM ARGS..."},
        {{"--flter", "x", "--", "p"}, "there is no option --flter; did you mean --filter?"},
        {{"--verbose", "--", "p"}, "there is no option --verbose; did you mean -v?"},
        {{"-f", "E3/*", "--", "p"}, "there is no option -f; did you mean --filter?"},
        {{"clauses", "E1"}, "takes no name; --list --filter 'E1/*' prints the cases of E1"},
        {{"clauses", "nonsense"}, "takes no name; no case is of a clause \"nonsense\""},
        {{"-v=3", "--", "p"}, "kmes-conformance: -v takes no value ("},
        {{"-v3", "--", "p"}, "kmes-conformance: -v takes no value ("},
        {{"--explain", "E5"}, "E5 concerns only the producer, so no case can show it"},
        {{"--explain", "contract-5"}, "contract-5 has no case: "},
        {{"--expect-unsupported", "no-such-file", "--", kReference},
         "no-such-file: No such file or directory"},
        {{"-q", "--", "p"}, "there is no option -q; did you mean --quiet?"},
        {{"smoke", "p"}, "smoke: \"p\" is no option; the program to test follows after --"},
        {{"verify", "a", "b", "c"}, "verify: \"c\" is one word too many"},
        {{kReference}, "is no command; the program to test follows after --: "},
    };
    for (const auto& [line, said] : words) {
        Process process(line);
        EXPECT_EQ(process.end(), 2) << said;
        EXPECT_THAT(process.out, HasSubstr(said));
    }
}

TEST(FirstRun, ACapacityMayHaveAUnit) {
    std::vector<std::string> words = kOneCase;
    words.insert(words.begin(), {"--capacity", "4M"});
    Process process(words);
    EXPECT_EQ(process.end(), 0);
    EXPECT_THAT(process.out, HasSubstr("capacity 4194304 bytes"));
}

TEST(FirstRun, ACaseThatIsDebuggedEndsByOneLetter) {
    const Folder folder;
    const std::string typed = folder.file("typed");
    std::ofstream(typed) << "steep\nh\nq\n";
    Process process({"--debug", "5.1.5/attach-and-map", "--", kReference}, [&] {
        const int input = ::open(typed.c_str(), O_RDONLY);
        ::dup2(input, STDIN_FILENO);
    });
    EXPECT_EQ(process.end(), 4);
    EXPECT_THAT(process.out, HasSubstr("\"steep\" is not a command; did you mean step?"));
    EXPECT_THAT(process.out, HasSubstr("  quit, q             end the case here\n"));
    EXPECT_THAT(process.out, HasSubstr("ended by hand (--debug)"));
}

// docs/write-a-testee.md quotes the list of commands.
TEST(FirstRun, TheCommandsOfADebuggedCaseAreThoseOfTheDocument) {
    std::ifstream document("docs/write-a-testee.md");
    std::string quoted;
    bool is_quote = false;
    for (std::string line; std::getline(document, line);) {
        if (line.empty()) is_quote = false;
        if (is_quote) quoted += line.substr(std::min<std::size_t>(line.size(), 4)) + "\n";
        if (line == "    > help") is_quote = true;
    }
    ASSERT_THAT(quoted, HasSubstr("continue"));
    const Folder folder;
    const std::string typed = folder.file("typed");
    std::ofstream(typed) << "help\nquit\n";
    Process process({"--debug", "5.1.5/attach-and-map", "--", kReference}, [&] {
        const int input = ::open(typed.c_str(), O_RDONLY);
        ::dup2(input, STDIN_FILENO);
    });
    EXPECT_EQ(process.end(), 4);
    EXPECT_THAT(process.out, HasSubstr("> " + quoted + "> "));
}

// A load of the reference reader is in a function of its core, whose caller says what is loaded.
TEST(FirstRun, ADebuggedAccessIsShownWhereATraceShowsIt) {
    const Folder folder;
    const std::string typed = folder.file("typed");
    std::ofstream(typed) << "accesses on\n" << std::string(200, '\n');
    Process process({"--cpus", "1", "--debug", "5.1.5/attach-and-map", "--", kReference}, [&] {
        const int input = ::open(typed.c_str(), O_RDONLY);
        ::dup2(input, STDIN_FILENO);
    });
    EXPECT_EQ(process.end(), 0);
    EXPECT_THAT(process.out, ContainsRegex("kmes_attach with [0-9]+ slots: 1 fds, at [a-z_]+[(][)] "
                                           "consumer.cc:[0-9]+ [(]via syscall[)]\n"));
    EXPECT_THAT(process.out, ContainsRegex("is about to read 8 bytes .*, for load_positions[(][)] "
                                           "consumer.c:[0-9]+ [(]via kmes_load_acquire_u64[)]\n"));
}

// A command that the report proposes can be typed, also if the path of the runner has a space.
TEST(FirstRun, QuotesThePathOfTheRunner) {
    const Folder folder;
    std::filesystem::create_symlink(std::filesystem::absolute(kRunner), folder.file("my runner"));
    const std::string command = "'" + folder.file("my runner") + "'";
    FILE* out = ::popen((command + " -- /bin/false").c_str(), "r");
    ASSERT_NE(out, nullptr);
    std::string text;
    for (int byte = std::fgetc(out); byte != EOF; byte = std::fgetc(out))
        text.push_back(static_cast<char>(byte));
    ::pclose(out);
    EXPECT_THAT(text, HasSubstr("adapter alone: " + command + " smoke -- /bin/false"));
}

}  // namespace
}  // namespace kmes::conformance
