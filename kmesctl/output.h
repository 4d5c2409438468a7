// SPDX-License-Identifier: MIT
// Standard output of a long-running command, and the signals that end it.
#ifndef KMES_KMESCTL_OUTPUT_H_
#define KMES_KMESCTL_OUTPUT_H_

#include <string>
#include <string_view>

namespace kmes::kmesctl {

// The reader of the pipe has gone: the command has no more work, and ends with kExitDone.
struct PipeClosed {};

// Collects text and writes it to standard output by flush().
class Output {
  public:
    void add(std::string_view text) { pending_ += text; }
    // The text itself, to append to.
    std::string* pending() { return &pending_; }
    std::size_t pending_bytes() const { return pending_.size(); }
    // Throws PipeClosed, or a Failure with the reason: a full disk, a limit, a closed descriptor.
    // Returns early if a signal has requested the end.
    void flush();
    // Throws PipeClosed if the reader of the pipe has gone, even if nothing is written.
    static void check_reader();
    // True if standard output is a terminal that understands escape sequences.
    static bool is_terminal();
    // True if is_terminal() is true and NO_COLOR is not set.
    static bool wants_colors();

  private:
    std::string pending_;
};

// From now on stop_signal() returns the signal after it has arrived. A system call that it
// interrupts returns EINTR.
void keep_signal(int signal);

// From now on SIGINT and SIGTERM are handled as by keep_signal(), unless they were ignored.
void keep_stop_signals();

// Returns the signal that has requested the end, or 0.
int stop_signal();

// Ends this process by the kept signal, as its parent expects. Returns if there is none.
void end_by_stop_signal();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_OUTPUT_H_
