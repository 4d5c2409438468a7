// SPDX-License-Identifier: MIT
//
// Stops a thread of the consumer before it writes records to its report. In a consumer with several
// threads, one may read the ring and another write. The row needs Setup::stops_at_writes. Knows no
// case.
#ifndef KMES_CONFORMANCE_PLAY_WRITER_HOLD_H_
#define KMES_CONFORMANCE_PLAY_WRITER_HOLD_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>

#include "conformance/play/steps.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Stops a thread before its n-th write of records. Sets Hooks::set_on_report_write.
class WriterHold {
  public:
    // Writes of threads for which `is_reader` returns true do not count.
    WriterHold(Stage& stage, std::function<bool(pid_t)> is_reader);
    ~WriterHold() { stage_.hooks().set_on_report_write(nullptr); }
    WriterHold(const WriterHold&) = delete;
    WriterHold& operator=(const WriterHold&) = delete;

    // Counts writes from now on, and waits until a thread is stopped. Returns false if everything
    // of the CPU is delivered before that.
    bool wait_held(std::uint64_t nth, std::uint32_t cpu = 0);
    pid_t thread() const { return held_; }
    // Keeps the thread stopped while the others continue. See Holding::hold_while.
    void keep_while(const std::function<bool()>& condition, std::chrono::milliseconds at_most);

  private:
    Stage& stage_;
    std::uint64_t left_ = 0;  // writes before the thread is stopped; 0: it is not stopped
    pid_t held_ = 0;
};

// Emits events of 100 bytes on CPU 0, and waits until the consumer sleeps. Adds the threads that
// access CPU 0's metadata page meanwhile.
void note_readers(Stage& stage, std::set<pid_t>& readers, std::uint64_t events);

// For ActAt: before a write of records on this CPU, of any thread. The play ends with the actions.
PlayAt at_write(std::uint32_t cpu);
// For ActAt: before a write of records, of any CPU, by a thread that does not read CPU 0's ring.
// Two events before the wake show which threads read it.
PlayAt at_write_of_a_writer();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_WRITER_HOLD_H_
