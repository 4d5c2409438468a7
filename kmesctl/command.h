// SPDX-License-Identifier: MIT
// The common parts of all commands of kmesctl: the entry in the table (commands.cc), the exit
// statuses, and the output of one line.
//
// To add a command, write a function `Runner declare_NAME(CLI::App& app)` in a file NAME.cc. It
// declares the options on `app` and returns the function that runs the command. Declare it here,
// and add one line to the table in commands.cc.
#ifndef KMES_KMESCTL_COMMAND_H_
#define KMES_KMESCTL_COMMAND_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kmes::kmesctl {

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;  // an error of the system, the producer or a file
inline constexpr int kExitUsage = 2;   // the command line is invalid; nothing was done

// Ends the command. main prints the text as one line on standard error, and exits with `status`.
class Failure : public std::runtime_error {
  public:
    Failure(int status, const std::string& line) : std::runtime_error(line), status(status) {}
    const int status;
};

// Runs a command whose options are parsed; returns the exit status, or throws a Failure.
using Runner = std::function<int()>;

struct CommandEntry {
    const char* name;
    const char* summary;
    // nullptr: a command of the kernel module, which kmod/kmesctl parses and runs.
    Runner (*declare)(CLI::App& app);
};

// All commands, in the order of --help.
const std::vector<CommandEntry>& commands();

Runner declare_serve(CLI::App& app);
Runner declare_record(CLI::App& app);
Runner declare_convert(CLI::App& app);
Runner declare_replay(CLI::App& app);
Runner declare_emit(CLI::App& app);
Runner declare_emitters(CLI::App& app);
Runner declare_print(CLI::App& app);
Runner declare_top(CLI::App& app);

// Prints "kmesctl: LINE" on standard error, with control characters escaped. Ignores errors.
// Without memory for the line it prints that no memory is left.
void say(std::string_view line) noexcept;

// Returns the text of an exception. Where memory has run out it is "no memory is left".
std::string reason_of(const std::exception& error);

// "1 file", "2 files": `noun` has a plural that ends in s.
std::string counted(std::uint64_t count, std::string_view noun);

// Returns the value of an option that is a number from `least` to `most`. Otherwise throws a
// Failure of kExitUsage that names the option and the range.
std::uint64_t number_option(const char* option, const std::string& text, std::uint64_t least,
                            std::uint64_t most);

// Returns an error line if `address` is not a valid address of a producer, otherwise "".
std::string wrong_address(const std::string& address);

// Returns an error line if `path` is not a valid name of a file, otherwise "".
std::string wrong_path(const std::string& path);

// Declares --socket, for choose_socket(). It checks the value by wrong_address().
void add_socket_option(CLI::App& app, std::string* address);

// Makes `address` the producer of libkmes (KMES_SOCKET). Empty: no change. Throws a Failure of
// kExitUsage if KMES_SOCKET is not a valid address.
void choose_socket(const std::string& address);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_COMMAND_H_
