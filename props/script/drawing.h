// SPDX-License-Identifier: MIT
//
// Draws pieces of scripts where bugs are likely. These are phrases of a few lines (a batch, a
// resize in pieces, an operation that pauses while others run). Their sizes are at the edges of the
// ring's content at that point. generate.cc builds whole scripts from them, mutate.cc inserts them
// into others.
#ifndef KMES_PROPS_SCRIPT_DRAWING_H_
#define KMES_PROPS_SCRIPT_DRAWING_H_

#include <cstdint>
#include <vector>

#include "props/script/outline.h"
#include "props/script/random.h"
#include "props/script/script.h"

namespace kmes::props {

// The kinds of operations that are more frequent. Every profile sometimes draws any of them.
enum class Profile : std::uint8_t { anything, resizes, hostile, schedules, batches, readers };
inline constexpr std::size_t kProfileCount = static_cast<std::size_t>(Profile::readers) + 1;

// The largest drawn capacity. Small rings have the edges, and thousands of resizes stay affordable.
inline constexpr std::uint64_t kMaxDrawnCapacity = 65536;

Operation draw_settings(Random& random, Profile profile);
// No line, one reader, or several: a single one is exclusive, several are shared (E12 says what
// happens otherwise).
std::vector<Operation> draw_readers(Random& random, Profile profile, std::uint64_t capacity);

// A value of `rule` at an end of its range, next to a power of two, or anywhere.
std::uint64_t draw_value(Random& random, const KeyRule& rule);
// The size of an event at an edge of `outline`.
std::uint64_t draw_event_bytes(Random& random, const Outline& outline);

class Drawing {
  public:
    // `script` has the operations before; drawn phrases fit after them.
    Drawing(Random& random, Profile profile, const Script& script);

    // Appends a phrase to lines().
    void phrase();
    void phrases_until(std::size_t lines) {
        while (lines_.size() < lines) phrase();
    }
    const std::vector<Operation>& lines() const { return lines_; }

    // Gives the operation another size, at an edge.
    void aim(Operation& event);
    // Draws emit, add or reserve.
    Operation event(Verb verb);
    Operation of_consumer(Verb verb);
    static Operation of_buffer(Verb verb, std::uint64_t buffer);

  private:
    void line(Operation operation);
    void emit() { line(event(Verb::emit)); }
    void tiny_run();
    void batch();
    void reservation();
    void resize();
    void pieces();
    void large_then_shrink();
    void started();
    void reading();
    void sleeping();
    void handover();
    void jump();
    void poke();
    void corrupt();
    void attach();
    void retire();
    void world();

    void tiny(std::uint64_t most);
    // Sometimes adds a few lines of other actors: a burst of one consumer, an interrupt, a poke.
    void in_between();
    void interrupt();
    void burst();
    Operation startable();
    Operation swap_to(Verb verb);
    std::uint64_t draw_capacity();

    Random& random_;
    const Profile profile_;
    Outline outline_;
    std::vector<std::uint64_t> consumers_;
    std::uint64_t consumer_;  // the current one: a schedule often stays with it
    std::vector<Operation> lines_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_DRAWING_H_
