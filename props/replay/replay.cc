// SPDX-License-Identifier: MIT
//
// Arguments, files and messages of the replay command (replay.h). All scripts are read before the
// first is played.
#include "props/replay/replay.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "props/script/shrink.h"

namespace kmes::props {
namespace {

constexpr char kUsage[] =
    "usage: kmes-replay [--quiet | --minimise | --check] FILE...\n"
    "\n"
    "Plays scripts (docs/script-format.md) on the core beside a plain model; - is the standard\n"
    "input. Without an option: each operation with the state after it, then the verdict.\n"
    "\n"
    "  --quiet     the verdict alone\n"
    "  --minimise  of one script that fails: the smallest one found that fails the same way\n"
    "  --check     read only, play nothing\n"
    "\n"
    "Exit status: 0 all pass; 1 a property is broken; 2 bad usage or bad script; 3 a file cannot\n"
    "be read.\n";

// The number of plays while minimising: seconds, for scripts of a hundred lines.
constexpr std::size_t kMinimiseBudget = 50000;

enum class Mode { trace, quiet, minimise, check };

struct Arguments {
    Mode mode = Mode::trace;
    std::vector<std::string> files;
};

std::optional<Arguments> arguments_of(const std::vector<std::string>& words, std::ostream& err) {
    Arguments arguments;
    const auto bad = [&err](const std::string& message) {
        err << "kmes-replay: " << message << "\n";
        return std::nullopt;
    };
    bool are_options = true;
    for (const std::string& word : words) {
        const bool is_option = are_options && word.size() > 1 && word[0] == '-';
        if (!is_option) {
            if (word.empty()) return bad("an empty name; each FILE is a script, or - for stdin");
            arguments.files.push_back(word);
            continue;
        }
        if (word == "--") {
            are_options = false;
            continue;
        }
        Mode mode;
        if (word == "--quiet") {
            mode = Mode::quiet;
        } else if (word == "--minimise") {
            mode = Mode::minimise;
        } else if (word == "--check") {
            mode = Mode::check;
        } else {
            return bad("unknown option '" + word + "'; one of: --quiet --minimise --check --help");
        }
        if (arguments.mode != Mode::trace && arguments.mode != mode) {
            return bad("--quiet, --minimise and --check are one at a time");
        }
        arguments.mode = mode;
    }
    if (arguments.files.empty()) return bad("no script; name one or more files, or - for stdin");
    if (std::count(arguments.files.begin(), arguments.files.end(), "-") > 1) {
        return bad("- stands more than once; stdin is one script");
    }
    if (arguments.mode == Mode::minimise && arguments.files.size() > 1) {
        return bad("--minimise takes one script at a time");
    }
    return arguments;
}

struct Named {
    std::string name;
    Script script;
};

// Returns 0, or the exit status after a printed error.
int read(const std::string& name, std::istream& in, std::vector<Named>& scripts,
         std::ostream& err) {
    std::ostringstream text;
    errno = 0;
    if (name == "-") {
        text << in.rdbuf();
    } else {
        std::ifstream file(name, std::ios::binary);
        // A folder can be opened, and fails when it is read. An empty file has nothing to read.
        if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
        if (!file.is_open() || file.bad() || errno != 0) {
            err << name << ": cannot be read: " << std::strerror(errno ? errno : EIO) << "\n";
            return kReplayUnreadable;
        }
    }
    auto parsed = parse_script(text.str());
    if (const auto* error = std::get_if<ScriptError>(&parsed)) {
        err << name << ":" << error->line << ": " << error->message << "\n";
        return kReplayBadScript;
    }
    scripts.push_back({name, std::move(std::get<Script>(parsed))});
    return kReplayPassed;
}

std::string indented(const std::string& text) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) result += "    " + line + "\n";
    return result;
}

// Prints the operation before it is executed, and its state afterwards. If the core crashes, the
// last line says in which operation.
class Trace {
  public:
    Trace(const Script& script, std::ostream& out) : script_(script), out_(out) { announce(); }

    void after(const std::string& state) {
        out_ << indented(state);
        next_++;
        announce();
    }

  private:
    void announce() {
        const std::size_t count = script_.operations.size();
        if (next_ < count) {
            out_ << next_ + 1 << ": " << print_operation(script_.operations[next_]) << "\n";
        } else if (next_ == count) {
            out_ << "end: what is open is ended, every consumer runs until it sleeps\n";
        }
        out_.flush();
    }

    const Script& script_;
    std::ostream& out_;
    std::size_t next_ = 0;
};

int play_one(const Named& named, Mode mode, const Player& player, std::ostream& out) {
    PlayOptions options;
    std::optional<Trace> trace;
    if (mode == Mode::trace) {
        trace.emplace(named.script, out);
        options.trace = [&trace](const Operation&, const std::string& state) {
            trace->after(state);
        };
    }
    const PlayResult result = player(named.script, options);
    if (result.failure) {
        out << named.name << ": FAIL: " << describe(named.script, *result.failure) << "\n";
        return kReplayFailed;
    }
    out << named.name << ": pass: " << named.script.operations.size() << " operations, "
        << result.skipped << " of them skipped; " << result.accesses << " accesses, "
        << result.events << " events, " << result.deliveries << " deliveries\n";
    return kReplayPassed;
}

int minimise_one(const Named& named, const Player& player, std::ostream& out, std::ostream& err) {
    const PlayResult first = player(named.script, {});
    if (!first.failure) {
        err << named.name << ": passes; there is nothing to minimise\n";
        return kReplayPassed;
    }
    const std::string& property = first.failure->property;
    const auto fails_alike = [&player, &property](const Script& script) {
        const PlayResult result = player(script, {});
        return result.failure && result.failure->property == property;
    };
    const Script small = minimise(named.script, fails_alike, kMinimiseBudget);
    std::string words = describe(small, *player(small, {}).failure);
    std::replace(words.begin(), words.end(), '\n', ' ');
    out << "# " << words << "\n" << print_script(small);
    return kReplayFailed;
}

}  // namespace

int replay(const std::vector<std::string>& words, const Player& player, std::istream& in,
           std::ostream& out, std::ostream& err) {
    if (std::find(words.begin(), words.end(), "--help") != words.end()) {
        out << kUsage;
        return kReplayPassed;
    }
    const std::optional<Arguments> arguments = arguments_of(words, err);
    if (!arguments) return kReplayBadScript;
    int status = kReplayPassed;
    std::vector<Named> scripts;
    for (const std::string& file : arguments->files) {
        status = std::max(status, read(file, in, scripts, err));
    }
    if (status != kReplayPassed || arguments->mode == Mode::check) return status;
    for (const Named& named : scripts) {
        const int verdict = arguments->mode == Mode::minimise
                                ? minimise_one(named, player, out, err)
                                : play_one(named, arguments->mode, player, out);
        status = std::max(status, verdict);
    }
    return status;
}

}  // namespace kmes::props
