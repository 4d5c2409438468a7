// SPDX-License-Identifier: MIT
// kmesctl: access to KMES from a shell, with the kernel module or a producer in userspace.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <exception>
#include <string>
#include <vector>

#include "conformance/main/nearest.h"
#include "conformance/main/parse_error.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmod/kmesctl/module.h"

namespace kmes::kmesctl {
namespace {

using conformance::did_you_mean;
using conformance::meant_option;
using conformance::one_line;

constexpr const char* kStatuses = "Exit status: 0 done; 1 refused or failed; 2 wrong usage.";

// The number of a closed standard descriptor would be reused for another file. This function opens
// each of them such that an access fails, as for a closed descriptor.
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

int print_help(const std::string& text) {
    fmt::print("{}", text);
    if (fflush(stdout) == 0 || errno == EPIPE) return kExitDone;
    throw Failure(kExitFailed, "cannot write to standard output");
}

[[noreturn]] void fail_usage(const std::string& command, const std::string& line) {
    throw Failure(kExitUsage, fmt::format("{} (kmesctl {}--help says more)", line, command));
}

std::string general_help() {
    CLI::App app("Emits, shows and configures KMES events.", "kmesctl");
    for (const CommandEntry& command : commands())
        app.add_subcommand(command.name, command.summary);
    app.require_subcommand(1);
    app.footer(std::string("kmesctl COMMAND --help describes a command.\n") + kStatuses);
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
        return print_help(app.help());
    } catch (const CLI::ParseError& error) {
        fail_usage(std::string(command.name) + " ",
                   one_line(error.what()) + meant_option(app, words));
    }
    return runner();
}

int run(const std::vector<std::string>& words) {
    if (words.empty()) fail_usage("", "no command; kmesctl COMMAND is right");
    const std::string& first = words.front();
    if (first == "--help" || first == "-h") return print_help(general_help());
    // The option of the module's commands may come before the command.
    if (first.starts_with("--device")) return run_module_command(words);
    const CommandEntry* command = find(first);
    if (command == nullptr) {
        std::vector<std::string_view> names;
        for (const CommandEntry& each : commands()) names.emplace_back(each.name);
        fail_usage("", fmt::format("\"{}\" is no command{}", first, did_you_mean(names, first)));
    }
    if (command->declare == nullptr) return run_module_command(words);
    return run_command(*command, {words.begin() + 1, words.end()});
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
        return kExitDone;
    } catch (const Failure& failure) {
        say(failure.what());
        return failure.status;
    } catch (const std::exception& error) {
        say(error.what());
        return kExitFailed;
    }
}
