// SPDX-License-Identifier: MIT
//
// Plays scripts until one shows a fault of the core: first the named files, then random ones.
// Prints one line of JSON: the verdict, the finding, and the shortest script that shows it. Run
// with a mutated core preloaded (core_build.py); knows no mutation.
//
//   driver [--seed=N] [--scripts=N] [--seconds=S] [--as-found] [FILE...]
//
// --as-found: do not make the script shorter. Exit status: 0 nothing was found; 1 something was; 2
// bad usage; 3 this driver does not work. A child plays the scripts, and says in a page of shared
// memory which one it plays. So a mutant that crashes or never ends is a finding like any other.
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "props/machine/play.h"
#include "props/script/generate.h"
#include "props/script/script.h"
#include "props/script/shrink.h"

namespace {

using kmes::props::Script;

// Such scripts take milliseconds, and some thousand accesses. A script that runs into the limit is
// made shorter with a lower one; otherwise each play of an endless loop would cost as much.
constexpr std::uint64_t kAccessLimit = 400000;
constexpr std::uint64_t kLowAccessLimit = 10000;
constexpr double kSecondsOfAScript = 2;
constexpr double kSecondsOfACandidate = 0.5;
// The number of plays for making a script shorter; each may cost kSecondsOfACandidate in a hang.
constexpr std::size_t kBudget = 1500;
constexpr std::uint64_t kBudgetOfAccesses = 3000000;
constexpr std::size_t kBudgetInProcesses = 300;
constexpr std::size_t kBudgetOfHangs = 12;

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t scripts = 2000;
    double seconds = 0;
    bool is_as_found = false;
    std::vector<Script> files;
};

enum class Outcome : int { running, well, failed };

// Shared between this process and the child.
struct Board {
    std::uint64_t index;  // of the script that is being played
    Outcome outcome;
    std::size_t text_bytes;
    char text[1 << 20];

    void write(std::string_view words) {
        text_bytes = std::min(words.size(), sizeof(text));
        std::memcpy(text, words.data(), text_bytes);
    }
    std::string read() const { return {text, text_bytes}; }
};

[[noreturn]] void die(int status, const std::string& message) {
    std::cerr << "driver: " << message << "\n";
    std::exit(status);
}

template <typename T>
T number(std::string_view argument, std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        die(2, std::string(argument) + ": a number is expected");
    return value;
}

Script read_file(const std::string& name) {
    std::ifstream stream(name, std::ios::binary);
    if (!stream) die(2, name + ": cannot be read");
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    auto parsed = kmes::props::parse_script(text);
    if (const auto* error = std::get_if<kmes::props::ScriptError>(&parsed))
        die(2, name + ":" + std::to_string(error->line) + ": " + error->message);
    return std::get<Script>(parsed);
}

Options parse(int count, char** words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        const std::string_view value = word.substr(std::min(word.find('=') + 1, word.size()));
        if (word.starts_with("--seed="))
            options.seed = number<std::uint64_t>(word, value);
        else if (word.starts_with("--scripts="))
            options.scripts = number<std::uint64_t>(word, value);
        else if (word.starts_with("--seconds="))
            options.seconds = number<double>(word, value);
        else if (word == "--as-found")
            options.is_as_found = true;
        else if (word.starts_with("-"))
            die(2, std::string(word) + ": unknown; --seed=N --scripts=N --seconds=S --as-found");
        else
            options.files.push_back(read_file(words[i]));
    }
    return options;
}

// Files come first; then random scripts of every profile, whose sizes grow and start again.
Script script_at(const Options& options, std::uint64_t index) {
    if (index < options.files.size()) return options.files[index];
    const std::uint64_t nth = index - options.files.size();
    const auto profile = static_cast<kmes::props::Profile>(nth % kmes::props::kProfileCount);
    const std::size_t size = 8 + nth * 5 % 113;
    return kmes::props::generate(options.seed * 1000003 + nth, size, profile);
}

std::string one_line(const Script& script) {
    std::string text = kmes::props::print_script(script);
    std::string line;
    std::size_t at = text.find('\n') + 1;  // after the header
    while (at < text.size()) {
        std::size_t end = text.find('\n', at);
        if (end == std::string::npos) end = text.size();
        if (end > at) line += (line.empty() ? "" : "; ") + text.substr(at, end - at);
        at = end + 1;
    }
    return line;
}

std::string words_of(const kmes::props::Failure& failure) {
    return failure.property + " (" + failure.clause + ")";
}

kmes::props::PlayResult played(const Script& script, std::uint64_t access_limit = kAccessLimit) {
    kmes::props::PlayOptions options;
    options.access_limit = access_limit;
    return kmes::props::play(script, options);
}

// SIGPROF ends the process when it has used this much processor time.
void limit_processor(double seconds) {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_PROF, &timer, nullptr);
}

// The end of a child; `words` if it did not write an outcome itself.
struct Ending {
    Outcome outcome = Outcome::well;
    bool is_hang = false;
    bool is_death = false;  // a crash or a hang
    std::string words;
};

// Runs `body` in a child, which writes its outcome to the board.
template <typename Body>
Ending in_child(Board* board, Body body) {
    board->outcome = Outcome::running;
    board->text_bytes = 0;
    std::cout.flush();
    const pid_t child = fork();
    if (child < 0) die(3, std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) die(3, std::string("waitpid: ") + std::strerror(errno));
    }
    Ending ending;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && board->outcome != Outcome::running) {
        ending.outcome = board->outcome;
        ending.words = board->read();
        return ending;
    }
    ending.outcome = Outcome::failed;
    ending.is_death = true;
    ending.is_hang = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
    if (ending.is_hang)
        ending.words = "hang";
    else if (WIFSIGNALED(status))
        ending.words = std::string("crash (SIG") + sigabbrev_np(WTERMSIG(status)) + ")";
    else
        ending.words = "crash (exit status " + std::to_string(WEXITSTATUS(status)) + ")";
    return ending;
}

void play_all(const Options& options, Board* board) {
    const std::uint64_t files = options.files.size();
    const std::clock_t begun = std::clock();
    for (; board->index < files + options.scripts; ++board->index) {
        const double used = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
        if (options.seconds > 0 && board->index >= files && used > options.seconds) break;
        const Script script = script_at(options, board->index);
        limit_processor(kSecondsOfAScript);
        if (const auto failure = played(script).failure) {
            board->write(words_of(*failure));
            board->outcome = Outcome::failed;
            return;
        }
    }
    board->outcome = Outcome::well;
}

Ending play_one(const Script& script, Board* board, double seconds) {
    return in_child(board, [&] {
        limit_processor(seconds);
        const auto failure = played(script).failure;
        if (failure) board->write(words_of(*failure));
        board->outcome = failure ? Outcome::failed : Outcome::well;
    });
}

// Uses one child as long as no candidate ends it. Returns the script from its text.
std::optional<Script> shorten_quickly(const Script& script, Board* board) {
    const Ending ending = in_child(board, [&] {
        // A script that also fails at the low limit may have another reason to fail.
        const bool is_low = played(script, kLowAccessLimit).failure.has_value();
        std::uint64_t accesses = 0;
        const Script shortest = kmes::props::minimise(
            script,
            [&](const Script& candidate) {
                if (accesses > kBudgetOfAccesses) return false;
                limit_processor(kSecondsOfACandidate);
                const auto result = played(candidate, is_low ? kLowAccessLimit : kAccessLimit);
                accesses += result.accesses;
                return result.failure.has_value();
            },
            kBudget);
        limit_processor(0);
        board->write(kmes::props::print_script(shortest));
        board->outcome = Outcome::failed;
    });
    if (ending.is_death) return std::nullopt;
    auto parsed = kmes::props::parse_script(ending.words);
    if (!std::holds_alternative<Script>(parsed)) return std::nullopt;
    return std::get<Script>(parsed);
}

Script shorten(const Script& script, const Ending& ending, Board* board) {
    if (!ending.is_death) {
        if (const auto shortest = shorten_quickly(script, board)) return *shortest;
    }
    std::size_t hangs = 0;
    return kmes::props::minimise(
        script,
        [&](const Script& candidate) {
            if (hangs >= kBudgetOfHangs) return false;
            const Ending end = play_one(candidate, board, kSecondsOfACandidate);
            hangs += end.is_hang ? 1 : 0;
            return end.outcome == Outcome::failed;
        },
        kBudgetInProcesses);
}

void print(std::string_view verdict, std::string_view what, std::string_view script) {
    std::cout << nlohmann::json{{"verdict", verdict}, {"what", what}, {"script", script}}.dump(
                     -1, ' ', true, nlohmann::json::error_handler_t::replace)
              << std::endl;
}

}  // namespace

int main(int count, char** words) {
    const Options options = parse(count, words);
    auto* board = static_cast<Board*>(
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (board == MAP_FAILED) die(3, std::string("mmap: ") + std::strerror(errno));
    const Ending found = in_child(board, [&] { play_all(options, board); });
    if (found.outcome == Outcome::well) {
        print("survived", "", "");
        return 0;
    }
    const Script script = script_at(options, board->index);
    const Ending again = play_one(script, board, kSecondsOfAScript);
    if (again.outcome == Outcome::well) {  // the failure came from an earlier script
        print("caught", found.words + ", not by one script alone", one_line(script));
        return 1;
    }
    const Script shortest = options.is_as_found ? script : shorten(script, again, board);
    const Ending last = play_one(shortest, board, kSecondsOfAScript);
    if (last.outcome == Outcome::failed)
        print("caught", last.words, one_line(shortest));
    else  // it failed by the low limit alone
        print("caught", again.words, one_line(script));
    return 1;
}
