// SPDX-License-Identifier: MIT
//
// The actions of one run with real threads, drawn from a seed: the same seed gives the same mix,
// though never the same schedule. Knows no thread.
#ifndef KMES_PROPS_THREADS_MIX_H_
#define KMES_PROPS_THREADS_MIX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kmes/ring.h"
#include "props/threads/payload.h"

namespace kmes::props {

// Numbers drawn from a seed.
class Draw {
  public:
    explicit Draw(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() { return mix_bits(state_++); }
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

  private:
    std::uint64_t state_;
};

// The side of the protocol that a run stresses.
enum class Profile {
    kAny,      // everything below
    kLaps,     // one emitter that never rests, a small ring: the tail, and torn reads
    kSleeps,   // one emitter, rounds of few events: sleep and wake
    kResizes,  // swaps all the time
};

enum class Form { kCopy, kPlace, kBulk, kRun };

// A further writer of need_wake.
enum class Hostile {
    kNobody,
    kAwake,  // stores any value but 0: no reader may be affected
    kAny,    // also clears it: a reader that shares with it sleeps with a timeout (E12)
};

struct ReaderMix {
    unsigned cpu = 0;
    Form form = Form::kCopy;
    bool is_shared = false;
    std::uint32_t spin_looks = 0;
    std::uint64_t room_bytes = 4096;  // for one read, at first
    unsigned dawdle = 0;              // turns between reading and the last check, or two events
    bool restarts = false;            // closes and opens again from time to time
};

struct Mix {
    std::uint64_t seed = 0;
    Profile profile = Profile::kAny;
    unsigned cpus = 1;
    unsigned emitters = 1;   // for each CPU, one thread each
    bool is_single = false;  // no lock: one thread does everything for the producer
    bool has_boot_phase = false;
    std::uint64_t capacity_bytes = 64 << 10;
    enum kmes_swap_positions positions = KMES_SWAP_KEEP;
    Sizes sizes = Sizes::kSmall;
    unsigned rounds = 1;
    unsigned round_events = 0;  // of an emitter, at most
    unsigned resizes = 0;       // in a round, at most
    bool nudges = false;
    bool nudges_in_background = false;
    bool is_lossless = false;  // rings that can contain everything emitted
    Hostile hostile = Hostile::kNobody;
    bool ends_by_retire = false;  // E25: readers continue until the producer has ended
    unsigned noise = 0;           // kmes_tsan_noise
    std::vector<ReaderMix> readers;
};

Mix draw_mix(std::uint64_t seed, Profile profile);
std::string print_mix(const Mix& mix);

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_MIX_H_
