// SPDX-License-Identifier: MIT
//
// Standard output of a command that runs for long, and the signals that end it.
#ifndef KMES_KMESCTL_OUTPUT_H_
#define KMES_KMESCTL_OUTPUT_H_

#include <string>
#include <string_view>

namespace kmes::kmesctl {

// The reader of the pipe has gone: the command has nothing more to do, and ends with kExitDone.
struct PipeClosed {};

// Collects text and writes it to standard output by flush().
class Output {
  public:
    void add(std::string_view text) { pending_ += text; }
    std::size_t pending_bytes() const { return pending_.size(); }
    // Throws PipeClosed; or a Failure with the reason: a full disk, a limit, a closed descriptor.
    // Returns early where a signal has asked for the end.
    void flush();
    // Throws PipeClosed where the reader of the pipe has gone, also while nothing is written.
    static void check_reader();
    // Standard output is a terminal that understands escape sequences.
    static bool is_terminal();
    // As is_terminal, and NO_COLOR is not set.
    static bool wants_colors();

  private:
    std::string pending_;
};

// From now on the signal is kept for stop_signal(). A system call in which it arrives returns
// EINTR.
void keep_signal(int signal);

// From now on SIGINT and SIGTERM are kept as by keep_signal(), unless they were ignored.
void keep_stop_signals();

// The signal that has asked for the end, or 0.
int stop_signal();

// Ends this process by the kept signal, as its parent expects. Returns where there is none.
void end_by_stop_signal();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_OUTPUT_H_
