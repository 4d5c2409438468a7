// SPDX-License-Identifier: MIT
// Standard output of a long-running command, and the signals that end it.
#ifndef KMES_KMESCTL_OUTPUT_H_
#define KMES_KMESCTL_OUTPUT_H_

#include <initializer_list>
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

// Whether the signal has no effect on this process, as the caller of the program has arranged it
// (nohup, a shell's `&`). It remains so.
bool is_ignored(int signal);

// From now on stop_signal() returns one of these signals after it has arrived, unless it was
// ignored. A system call that it interrupts returns EINTR.
void keep_signals(std::initializer_list<int> signals);

// Returns the signal that has requested the end, or 0.
int stop_signal();

// Ends this process by the kept signal, as its parent expects. Returns if there is none.
void end_by_stop_signal();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_OUTPUT_H_
