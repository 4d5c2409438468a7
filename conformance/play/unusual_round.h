// SPDX-License-Identifier: MIT
//
// What may precede the store to need_wake and the second check: something other than a wake, a
// drain and an empty ring. A consumer that omits a barrier or a check only then is correct in every
// plain iteration.
#ifndef KMES_CONFORMANCE_PLAY_UNUSUAL_ROUND_H_
#define KMES_CONFORMANCE_PLAY_UNUSUAL_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

enum class Disturbance {
    given_up,      // an event came just after it had set need_wake: its second look found that
    lapped,        // all that was unread had been overwritten
    torn,          // the same while it read an event: between its two looks at tail_pos
    torn_whole,    // the same, where what it read has the sizes of a whole event
    many,          // it has just delivered hundreds of events in one round
    new_buffer,    // it has just moved to the next buffer, and delivered what was new there
    empty_buffer,  // it has just moved to the next buffer, in which there is nothing
    replaced_meanwhile,  // the same, and that one was replaced before it could look at it
    timed_out,           // its wait returned ETIMEDOUT; without a limit: a spurious wake
    refused,             // its wait returned EAGAIN: an event came just before the kernel looked
    interrupted,         // its wait returned EINTR
};

// "after a lap", for a message.
std::string_view describe(Disturbance disturbance);

// All buffers are replaced when the next kmes_attach has handed them out, before the testee sees
// it.
void replace_at_the_next_attach(Stage& stage);

// These iterations need rings of one CPU with this capacity.
inline constexpr std::uint64_t kUnusualCapacity = 65536;

// One such iteration of the sleeping consumer of CPU 0. The object has to see every access to the
// metadata page of the current buffer, before and after it, until the disturbance is made.
class UnusualRound {
  public:
    UnusualRound(Stage& stage, Disturbance disturbance)
        : stage_(stage), disturbance_(disturbance) {}

    // Wakes the consumer.
    void begin();
    // Before an access: what comes from this one on comes after the disturbance. A new buffer
    // counts as soon as its G record and the record of an event that only this buffer holds are
    // written. The consumer has then read its generation, so E19 does not excuse a missed later
    // swap.
    bool is_made(const GuardHit& hit);
    // Called after an access. True: the producer has done what makes the round unusual.
    bool make_behind(const GuardHit& hit);

  private:
    void wake_with(std::int64_t result);
    std::uint8_t need_wake() const;
    std::size_t buffers_told() const;  // G records of CPU 0

    Stage& stage_;
    Disturbance disturbance_;
    bool is_made_ = false;
    bool is_ready_ = false;        // the buffer that is meant is the present one
    std::size_t told_before_ = 0;  // buffers
    std::uint64_t torn_at_ = 0;
};

// Says in the finding of what ends `play` what came before.
void play_after(Disturbance disturbance, const std::function<void()>& play);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_UNUSUAL_ROUND_H_
