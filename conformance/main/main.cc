// SPDX-License-Identifier: MIT
//
// The program kmes-conformance: the real cases, the real stage, this process's streams.
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases/registry.h"
#include "conformance/clauses/clauses.h"
#include "conformance/main/case_pool.h"
#include "conformance/main/clauses_command.h"
#include "conformance/main/console_debugger.h"
#include "conformance/main/failure_commands.h"
#include "conformance/main/interrupt.h"
#include "conformance/main/layout_choice.h"
#include "conformance/main/layout_detection.h"
#include "conformance/main/machine.h"
#include "conformance/main/options.h"
#include "conformance/main/preflight.h"
#include "conformance/main/program.h"
#include "conformance/main/report_commands.h"
#include "conformance/main/scheduling.h"
#include "conformance/main/selftest.h"
#include "conformance/main/smoke.h"
#include "conformance/main/version.h"
#include "conformance/model/layout.h"
#include "conformance/monitors/run.h"
#include "conformance/play/player.h"
#include "conformance/play/recorded_stream.h"
#include "conformance/report/descriptor_stream.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"
#include "conformance/stage/run.h"
#include "conformance/tracer/open_files.h"

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

// Without a terminal there is no width: 100 columns suit the reader of a log.
std::size_t columns_of(int stream) {
    winsize size{};
    return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

// The first of these variables that is set determines the character set (POSIX, "Locale").
bool is_unicode() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const std::string locale = environment(name);
        if (locale.empty()) continue;
        const std::size_t point = locale.find('.');
        const std::string set = point == std::string::npos ? "" : locale.substr(point + 1);
        return strncasecmp(set.c_str(), "utf-8", 5) == 0 ||
               strncasecmp(set.c_str(), "utf8", 4) == 0;
    }
    return false;
}

// Buffers that the runner serves are open files, hundreds of them in some cases.
constexpr std::uint64_t kOpenFiles = 8192;
constexpr std::uint64_t kOpenFilesOfTwoCases = 2048;

// As many simultaneous cases as the processors and the limit of files permit.
unsigned jobs_of_this_machine() {
    using namespace kmes::conformance;
    return raise_open_files(kOpenFiles) < kOpenFilesOfTwoCases ? 1 : default_jobs();
}

// Whether the stream is a terminal that interprets the codes for colours and for rewriting a line.
bool takes_codes(int stream) {
    return ::isatty(stream) == 1 && environment("TERM") != "dumb";
}

}  // namespace

namespace kmes::conformance {
namespace {

// --layout auto: starts the consumer to find its form, and executes the command line again with
// that form. Returns an empty string if the consumer cannot be started, and one line on failure.
std::string execute_in_detected_layout(std::span<char*> words,
                                       const std::vector<std::string>& testee, double scale,
                                       const StopFlag& stop) {
    const std::optional<std::size_t> word = automatic_layout_word(words);
    if (!word) return {};
    const DetectedLayout found = detect_layout(testee, scale, stop);
    if (stop || !found.is_startable) return {};
    const std::string_view name = found.layout->name;
    std::cerr << "kmes-conformance: --layout auto: form " << name << ", because " << found.reason
              << "\n";
    const bool has_option = std::string_view(words[*word]).starts_with("--layout=");
    std::string value = (has_option ? "--layout=" : "") + std::string(name);
    std::vector<char*> changed(words.begin(), words.end());
    changed[*word] = value.data();
    changed.push_back(nullptr);
    return execute_in_layout(*found.layout, changed.data());
}

Preflight preflight_of_smoke(const StageSettings& settings) {
    return run_preflight(play_smoke_stream, settings);
}

std::function<std::string(const std::vector<std::string>&, double)> other_form_by(
    const StopFlag& stop) {
    return [&stop](const std::vector<std::string>& testee, double scale) {
        return other_form_text(testee, scale, stop);
    };
}

}  // namespace
}  // namespace kmes::conformance

int main(int argument_count, char** arguments) {
    using namespace kmes::conformance;
    const std::span<char*> words(arguments, static_cast<std::size_t>(argument_count));
    const Layout* form = layout_of_option(words);
    std::string trouble = form == nullptr ? wrong_layout_variable() : "";
    if (form != nullptr && form != &layout()) trouble = execute_in_layout(*form, arguments);
    if (!trouble.empty()) {
        std::cerr << "kmes-conformance: " << trouble << "\n";
        return form == nullptr ? kExitUsage : kExitSuite;
    }
    report_failed_writes();
    leave_real_time();
    // The command line of a program that wraps this one, so that "run again" can be typed.
    std::string command = environment("KMES_CONFORMANCE_COMMAND");
    if (command.empty())
        command = argument_count > 0 ? shell_command({arguments[0]}) : "kmes-conformance";
    // The testees of `selftest` are beside the program, by the path that was used to call it.
    const std::string called = argument_count > 0 ? arguments[0] : "";
    const std::size_t slash = called.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : called.substr(0, slash);
    std::vector<Command> commands = failure_commands();
    commands.push_back(clauses_command(print_clauses));
    commands.push_back(smoke_command());
    for (Command& command : report_commands()) commands.push_back(std::move(command));
    const StopFlag& stop = watch_interrupts();
    commands.push_back(
        selftest_command(folder, [&stop](const auto& words) { return run_myself(words, stop); }));
    DescriptorBuffer out_buffer(STDOUT_FILENO);
    DescriptorBuffer error_buffer(STDERR_FILENO);
    std::ostream out(&out_buffer);
    std::ostream error(&error_buffer);
    ConsoleDebugger debugger(std::cin, out);
    const Surroundings surroundings{
        .cases = all_cases(),
        .run_on_stage = run_on_stage,
        .check_set_up = check_set_up,
        .out = out,
        .error = error,
        // https://no-color.org: set to a non-empty text.
        .out_has_colour = takes_codes(STDOUT_FILENO) && environment("NO_COLOR").empty(),
        .error_shows_progress = takes_codes(STDERR_FILENO),
        .out_columns = columns_of(STDOUT_FILENO),
        .out_is_unicode = ::isatty(STDOUT_FILENO) == 1 && is_unicode(),
        .command = command,
        .version = version_text(environment("KMES_CONFORMANCE_COMMIT")),
        .suite = suite_version(environment("KMES_CONFORMANCE_COMMIT")),
        .machine = this_machine(),
        .timeout_scale = environment("KMES_TIMEOUT_SCALE"),
        .shard = {environment("TEST_TOTAL_SHARDS"), environment("TEST_SHARD_INDEX"),
                  environment("TEST_SHARD_STATUS_FILE")},
        .jobs = jobs_of_this_machine(),
        .stop = stop,
        .commands = commands,
        .why_no_case = why_no_case,
        .describe_stepper = describe_stepper,
        .describe_move = [](const Move& move) { return describe(move); },
        .debugger = &debugger,
        .change_layout =
            [arguments](const Layout& other) { return execute_in_layout(other, arguments); },
        .detect_layout =
            [words, &stop](const std::vector<std::string>& testee, double scale) {
                return execute_in_detected_layout(words, testee, scale, stop);
            },
        .preflight = preflight_of_smoke,
        .other_form = other_form_by(stop),
        .check_stream = check_stream,
    };
    return run_program({arguments + (argument_count > 0 ? 1 : 0), arguments + argument_count},
                       surroundings);
}
