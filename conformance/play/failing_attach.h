// SPDX-License-Identifier: MIT
//
// A kmes_attach that fails after a change of generation (contract 1). The consumer delivers the
// unread events of the old buffer. Then it tries again at most 100 ms after each failure, or exits
// with a non-zero status. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_FAILING_ATTACH_H_
#define KMES_CONFORMANCE_PLAY_FAILING_ATTACH_H_

#include <chrono>
#include <cstdint>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Makes calls of kmes_attach fail, and blames the consumer's wrong actions in between. Create it
// before Stage::start(). The consumer may exit early (EarlyExit).
class FailingAttach {
  public:
    explicit FailingAttach(Stage& stage);
    ~FailingAttach();
    FailingAttach(const FailingAttach&) = delete;
    FailingAttach& operator=(const FailingAttach&) = delete;

    // The next `times` calls after the first `passed` ones fail. The consumer now owes the events
    // of this CPU, whose buffer is replaced next.
    void fail(std::uint32_t cpu, int error, int times, int passed);
    // Ends the case after an early exit. Blames the consumer if it has not delivered what it owes.
    CaseOutcome finish_given_up();

  private:
    // A correct consumer reaches neither limit: one attempt may follow another at once.
    static constexpr int kAtOnce = 2;
    static constexpr int kWithoutRest = 300;
    static constexpr Clock::duration kRests = std::chrono::milliseconds(400);

    // The last event that the testee must deliver before it gives up.
    struct Owed {
        std::uint32_t cpu = 0;
        std::uint64_t sequence = 0;
    };

    void answer();
    void watch();

    Stage& stage_;
    Owed owed_;
    int error_ = 0;
    int times_ = 0;
    int passed_ = 0;
    int without_rest_ = 0;     // failures since the last rest or fail()
    bool is_failing_ = false;  // the last call has failed
    bool all_slept_ = false;
    TimePoint checked_at_;
    Clock::duration slept_{};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_FAILING_ATTACH_H_
