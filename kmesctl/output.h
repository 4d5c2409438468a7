// SPDX-License-Identifier: MIT
// Standard output of a long-running command, and the signals that end it.
#ifndef KMES_KMESCTL_OUTPUT_H_
#define KMES_KMESCTL_OUTPUT_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace kmes::kmesctl {

// Thrown if the reader of the pipe has closed it. The command then ends with kExitDone, or by the
// signal that has requested the end.
struct PipeClosed {};

// Collects text and writes it to standard output by flush().
class Output {
  public:
    void add(std::string_view text) { pending_ += text; }
    // Returns the text, for appending.
    std::string* pending() { return &pending_; }
    std::size_t pending_bytes() const { return pending_.size(); }
    // Throws PipeClosed, or a Failure with the reason: a full disk, a limit, a closed descriptor.
    // After a signal has requested the end, it drops text that cannot be written without a wait.
    void flush();
    // Throws PipeClosed if the reader has closed the pipe, even if there is no text to write.
    static void check_reader();
    // True if standard output is a terminal that understands escape sequences.
    static bool is_terminal();
    // True if is_terminal() is true and NO_COLOR is not set.
    static bool wants_colors();

  private:
    std::string pending_;
};

// Returns whether the caller of this program has set the signal to be ignored (nohup, a shell's
// `&`). kmesctl does not change that.
bool is_ignored(int signal);

// Installs handlers for these signals, except for ignored ones. After one of them has arrived,
// stop_signal() returns it. An interrupted system call returns EINTR.
void keep_signals(std::initializer_list<int> signals);

// Returns the signal that has requested the end, or 0.
int stop_signal();

// Ends this process by this signal, as its parent expects, even if the signal is handled or
// blocked.
void end_by_signal(int number);

// Ends this process by the kept signal. Returns if there is none.
void end_by_stop_signal();

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_OUTPUT_H_
