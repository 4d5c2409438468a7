// SPDX-License-Identifier: MIT
// kmesctl: access to KMES from a shell, with the kernel module or a producer in userspace.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

#include "conformance/main/nearest.h"
#include "conformance/main/parse_error.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmesctl/release.h"
#include "kmod/kmesctl/module.h"

namespace kmes::kmesctl {
namespace {

using conformance::describe;
using conformance::did_you_mean;

constexpr const char* kStatuses = "Exit status: 0 done; 1 refused or failed; 2 wrong usage.";

// Opens each closed standard descriptor in a way that lets accesses fail, as if it were closed.
// Otherwise the kernel would reuse its number for another file.
void fill_standard_descriptors() {
    for (int fd = 0; fd <= 2; ++fd) {
        if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
}

const CommandEntry* find(const std::string& name) {
    for (const CommandEntry& command : commands()) {
        if (name == command.name) return &command;
    }
    return nullptr;
}

int print(const std::string& text) {
    Output output;
    output.add(text);
    output.flush();
    return kExitDone;
}

[[noreturn]] void fail_usage(const std::string& command, const std::string& line) {
    throw Failure(kExitUsage, fmt::format("{} (see kmesctl {}--help)", line, command));
}

std::string general_help() {
    CLI::App app("Emits, shows and configures KMES events.", "kmesctl");
    for (const CommandEntry& command : commands())
        app.add_subcommand(command.name, command.summary);
    app.require_subcommand(1);
    app.footer(std::string("kmesctl COMMAND --help describes a command. kmesctl --version prints "
                           "the release.\n") +
               kStatuses);
    return app.help();
}

int run_command(const CommandEntry& command, const std::vector<std::string>& words) {
    CLI::App app(command.summary, std::string("kmesctl ") + command.name);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    app.footer(kStatuses);  // a command with more statuses replaces it
    const Runner runner = command.declare(app);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::CallForHelp&) {
        return print(app.help());
    } catch (const CLI::ParseError& error) {
        fail_usage(std::string(command.name) + " ", describe(error, app));
    }
    return runner();
}

// Handles a command line that begins with --device, an option that few commands have.
int run_with_device(const std::vector<std::string>& words) {
    const std::size_t at = words.front() == "--device" ? 2 : 1;
    const CommandEntry* command = at < words.size() ? find(words[at]) : nullptr;
    if (command != nullptr && command->declare != nullptr && words[at] != "emit")
        fail_usage("", fmt::format("--device is only for emit and the commands of the kernel "
                                   "module; expected kmesctl {0} without it",
                                   command->name));
    return run_module_command(words);
}

int run(const std::vector<std::string>& words) {
    if (words.empty()) fail_usage("", "no command; expected kmesctl COMMAND");
    const std::string& first = words.front();
    if (first == "--help" || first == "-h") return print(general_help());
    // The option of the module's commands may come before the command.
    if (first.starts_with("--device")) return run_with_device(words);
    if (first == "--version") return print("kmesctl " KMES_RELEASE "\n");
    const CommandEntry* command = find(first);
    if (command == nullptr) {
        std::vector<std::string_view> names;
        for (const CommandEntry& each : commands()) names.emplace_back(each.name);
        fail_usage("", fmt::format("\"{}\" is not a command{}", first, did_you_mean(names, first)));
    }
    if (command->declare == nullptr) return run_module_command(words);
    return run_command(*command, {words.begin() + 1, words.end()});
}

// Prints which command failed, and why. An exception of the C++ library does not name the command.
// `word`: the first one of the command line; nullptr: there is none.
void report(const char* word, const std::exception& error) noexcept {
    try {
        const CommandEntry* command = word != nullptr ? find(word) : nullptr;
        say(fmt::format("{} failed: {}", command != nullptr ? command->name : "the command",
                        reason_of(error)));
    } catch (const std::exception&) {
        say("no memory is left");
    }
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    using namespace kmes::kmesctl;
    fill_standard_descriptors();
    // A write that exceeds a limit, or goes to a closed pipe, fails and is reported.
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    try {
        return run({arguments + 1, arguments + count});
    } catch (const PipeClosed&) {
        end_by_stop_signal();
        return kExitDone;
    } catch (const Failure& failure) {
        say(failure.what());
        return failure.status;
    } catch (const std::exception& error) {
        report(count > 1 ? arguments[1] : nullptr, error);
        return kExitFailed;
    }
}
