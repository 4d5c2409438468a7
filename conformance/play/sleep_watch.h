// SPDX-License-Identifier: MIT
//
// Blames a consumer that sleeps for long before it has written the records of what it could read.
// Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_SLEEP_WATCH_H_
#define KMES_CONFORMANCE_PLAY_SLEEP_WATCH_H_

#include <string_view>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// The finding about a thread that has loaded CPU 0's write_pos and enters a wait of more than 100
// ms: an event published before has no record, although need_wake is set and the counter is
// current.
struct SleepBlame {
    std::string_view clause;
    std::string_view message;
};

// For ActAt: before an access to CPU 0's metadata page. Blames the sleep after the wake.
PlayAt at_access_before_a_sleep(const SleepBlame& blame);
// For ActAt: before a write of a thread that writes records, and has not loaded write_pos since the
// wake (writer_hold.h). Blames the sleep of the thread that has.
PlayAt at_write_before_a_sleep(const SleepBlame& blame);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_SLEEP_WATCH_H_
