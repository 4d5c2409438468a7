// SPDX-License-Identifier: MIT
//
// The numbers of the testee's threads in the trace of a failure: 1, 2, ... in the order of first
// use. Knows no thread.
#ifndef KMES_CONFORMANCE_STAGE_THREAD_NUMBERS_H_
#define KMES_CONFORMANCE_STAGE_THREAD_NUMBERS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kmes::conformance {

class ThreadNumbers {
  public:
    int of(pid_t thread);
    // The thread with this number has used a buffer of this CPU.
    void note_user(std::uint32_t cpu, int number) { user_of_cpu_[cpu] = number; }
    // Returns the last such thread; 0: none.
    int last_user_of(std::uint32_t cpu) const;
    // Replaces each "thread 24601" of a message by the number of that thread. The result has
    // numbers, so it must not be replaced again.
    std::string put_into(std::string_view message) const;

  private:
    std::map<pid_t, int> numbers_;
    std::map<std::uint32_t, int> user_of_cpu_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_THREAD_NUMBERS_H_
