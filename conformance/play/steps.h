// SPDX-License-Identifier: MIT
//
// The steps of a row: the producer's actions, the accesses of the testee before which they come,
// and the waits of the case. Plain data. Producer steps act on the current CPU, which is CPU 0
// outside of OnCpu and OnEachCpu.
#ifndef KMES_CONFORMANCE_PLAY_STEPS_H_
#define KMES_CONFORMANCE_PLAY_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "conformance/model/operations.h"
#include "conformance/play/held_thread.h"
#include "conformance/play/play.h"
#include "conformance/play/unusual_iteration.h"

namespace kmes::conformance {

inline constexpr std::uint64_t kKibibyte = 1024;
inline constexpr std::uint64_t kMebibyte = 1024 * kKibibyte;

// A number of bytes or of events: plain, or relative to a capacity in bytes.
struct Amount {
    enum class Of { nothing, current, usual };

    constexpr Amount(std::uint64_t plain = 0) : more(plain) {}
    constexpr Amount(Of of_what, std::uint64_t times_it, std::uint64_t parts_of_it)
        : of(of_what), times(times_it), parts(parts_of_it) {}
    constexpr Amount operator+(std::uint64_t number) const {
        Amount sum = *this;
        sum.more += number;
        return sum;
    }
    constexpr Amount operator-(std::uint64_t number) const { return *this + (0 - number); }
    // The number, if the base of the amount is `base` bytes.
    constexpr std::uint64_t in(std::uint64_t base) const { return base * times / parts + more; }

    Of of = Of::nothing;
    std::uint64_t times = 0;
    std::uint64_t parts = 1;
    std::uint64_t more = 0;
};

// times/parts of the capacity: of the current CPU's buffer, or of the command line.
constexpr Amount current(std::uint64_t times = 1, std::uint64_t parts = 1) {
    return {Amount::Of::current, times, parts};
}
constexpr Amount usual(std::uint64_t times = 1, std::uint64_t parts = 1) {
    return {Amount::Of::usual, times, parts};
}

// The number for this CPU: Amount::current is the capacity of its buffer.
std::uint64_t bytes_in(Stage& stage, std::uint32_t cpu, const Amount& amount);

struct Step;

// A list of steps. Its functions are defined where Step is complete, because a std::vector member
// of an incomplete type may not have a default value.
class Steps {
  public:
    Steps();
    Steps(std::initializer_list<Step> steps);
    Steps(const Steps& other);
    Steps(Steps&& other) noexcept;
    Steps& operator=(const Steps& other);
    Steps& operator=(Steps&& other) noexcept;
    ~Steps();

    void push_back(Step step);
    void append(const Steps& more);
    bool empty() const;
    const Step* begin() const;
    const Step* end() const;

  private:
    std::vector<Step> steps_;
};

// -- Waits --
struct Asleep {};         // until everything is delivered and the testee sleeps on every CPU
struct AsleepHere {};     // the same for the current CPU
struct Delivered {};      // until everything is delivered
struct DeliveredHere {};  // the same for the current CPU
struct AllMapped {};      // until every buffer is mapped, or refused
// Ends the row if the testee has refused or ended the current CPU. The judge decides whether that
// was correct.
struct EndIfRefused {};
struct EndIfBlamed {};  // ends the row if the case has a finding
struct AllRefused {};   // until the testee has refused every CPU whose current buffer is malformed
// Waits until every buffer is mapped or refused. Ends the row if the testee exits before that with
// a non-zero status, which is correct if an attach fails (contract 1).
struct AllMappedOrExit {};
struct NudgingOff {};  // see Nudges::set_on

// -- The producer --
struct Emit {
    Amount count = 1;
    Amount bytes = 100;  // of each event
};
struct EmitEverywhere {  // one event on each CPU, then the next on each CPU
    std::uint64_t count = 1;
    Amount bytes = 100;
};
struct EmitTyped {  // one event with a long type, of another letter on each CPU
    Amount bytes = 100;
    std::uint64_t type_bytes = 1;
    std::uint64_t extra_header_bytes = 0;
};
struct EmitHeaders {  // events without a payload: cheap to process
    std::uint64_t count = 1;
    Amount bytes = 100;
};
struct EmitBytes {  // events of this many bytes in total
    Amount bytes = 100;
};
struct EmitSmall {  // as EmitBytes, but no event is larger than 16 pages
    Amount bytes = 100;
};
struct EmitTo {  // events until write_pos is this far before the end of the data region
    Amount before_end = 0;
};
struct Reserve {  // an event that UnderRead publishes
    Amount bytes = 100;
    Written written = Written::whole;
};
struct Batch {
    std::vector<Amount> sizes;
};
struct HandOver {};  // ends the boot phase of every CPU
struct EndCpu {      // the end event; waits until it is delivered
    void operator()(Stage& stage, std::uint32_t cpu) const { end_cpu(stage, cpu); }
};
struct EmitEnd {  // the end event
    void operator()(Stage& stage, std::uint32_t cpu) const { emit_end(stage, cpu); }
};
struct Drop {  // sequence numbers without an event
    std::uint64_t count = 1;
    std::uint64_t more_for_each_cpu = 0;
};
struct Lap {  // overwrites everything in the buffer with events of about this size
    Amount bytes = 4000;
    std::uint64_t more_for_each_cpu = 0;
};
struct Outrun {  // see Rings::outrun; only inside of AtOnce
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
};
struct OverwriteAll {  // with events whose payload is filled with one byte
    char filling = 0;
};
struct Resize {  // replaces all buffers; Amount::current is the capacity of all
    Amount capacity = current();
    PositionRule rule = PositionRule::keep;
    std::uint64_t position = 0;
};
struct Swap {  // replaces the current CPU's buffer
    Amount capacity = current();
};
struct NudgeRetired {  // nudges the buffers that the last Resize retired, or an earlier one
    std::uint64_t times = 1;
    std::size_t resizes_ago = 1;
};
struct FutexWake {};     // FUTEX_WAKE without an event
struct SpuriousWake {};  // the same for a sleeping consumer; waits until it sleeps again

// -- Combinations --
struct AtOnce {  // while the testee is stopped
    Steps steps;
};
struct InOrder {  // several steps where one step is expected
    Steps steps;
};
struct Times {
    std::uint64_t count = 1;
    Steps steps;
};
inline constexpr std::uint32_t kLastCpu = UINT32_MAX;
// The first list; when it is played again, the second list, and so on. A schedule that plays one
// access alone begins with the first list.
struct InTurn {
    std::vector<Steps> lists;
};
struct OnCpu {  // the CPU is modulo the number of CPUs
    std::uint32_t cpu = 0;
    Steps steps;
};
struct OnEachCpu {
    Steps steps;
    std::vector<std::uint32_t> except = {};  // may contain kLastCpu
};
// A function of the stage, or of the stage and the current CPU, for actions without a step of their
// own. A Step can be made from such a function, and from an object that is called like one.
struct Call {
    Call(std::function<void(Stage&)> of_stage)
        : function([play = std::move(of_stage)](Stage& stage, std::uint32_t) { play(stage); }) {}
    Call(std::function<void(Stage&, std::uint32_t)> of_cpu) : function(std::move(of_cpu)) {}

    std::function<void(Stage&, std::uint32_t)> function;
};
struct WakesReturn {  // see Hooks::set_wake_result
    std::int64_t result = 0;
};
// Plays the steps inside of a function of another file of this folder. The function calls `play`.
struct Around {
    std::function<void(Stage&, const std::function<void()>& play)> function;
    Steps steps;
};
// Makes the next `times` calls of kmes_attach after the first `passed` ones fail. The consumer owes
// the events of the current CPU before it may exit. Needs Setup::failing_attach.
struct FailAttach {
    int error = 0;
    int times = 1;
    int passed = 0;
};
// Plays the steps once, before the next kmes_attach of the testee is answered.
struct AtNextAttach {
    Steps steps;
};
// Ends the walks inside when they have taken long together (WalkLimit).
struct Limited {
    Steps steps;
};

// -- Places --
// Waits until the consumer of CPU 0 sleeps with its next event this far before the end of the data
// region. Ends the row as EndIfRefused does.
struct Place {
    Amount before_end = 0;
    Filler filler = Filler::any;
};
// Resizes so that write_pos has this value, and waits until the consumer sleeps.
struct MoveWritePos {
    Amount to = 0;
};

// -- Actions before accesses of the testee --
// Wakes the sleeping consumer and plays `actions` before its first access to the metadata page of
// the current CPU. Repeats this for its second access, and so on until the consumer sleeps before
// the access. If the consumer spins, only the first access of each instruction to each field counts
// (play.h).
struct BeforeEachAccess {
    Steps actions;
    Steps wake = {};                        // none: one event of 100 bytes
    int spurious_wakes = 0;                 // this many instead of `wake`
    std::optional<Disturbance> after = {};  // instead of `wake`: begin with this disturbance
    std::uint64_t last = 0;                 // 0: every access; else at most this many
    Steps before = {};                      // each access
    Steps afterwards = {};                  // after each access
};
// As BeforeEachAccess, for accesses to any pages of any CPUs' buffers.
struct BeforeAccessTo {
    Steps wake;
    Steps actions;
    std::vector<std::uint32_t> cpus = {0};  // none: all
    std::uint64_t first_page = 0;           // page 0 is the metadata
    std::uint64_t pages = 1;
    std::vector<std::uint64_t> accesses = {};  // none: each in turn
    Steps before = {};                         // each access
};
// `wake` gives the sleeping consumer of CPU 0 something to read. `actions` are played before its
// first access to `pages` pages of the data, from the page at offset `at` of the region on.
struct UnderRead {
    Amount at = 0;
    Steps wake;
    Steps actions;
    std::uint64_t pages = 1;
    IfUnseen if_unseen = IfUnseen::stop;
};
// Replaces all buffers, and plays `actions` before the first access to the next buffer of CPU 0.
// With `last`, repeats this for the second access, and so on up to `last`.
enum class NextPages { metadata, data, all };
struct InNextBuffer {
    Steps actions;
    NextPages pages = NextPages::metadata;
    std::uint64_t last = 1;
    Steps before = {};  // before each resize
};
// Holds the thread of CPU 0 at the n-th access to a page after `wake`, at the `place`
// (held_thread.h), and plays `meanwhile`. Plays `afterwards` when the other CPUs are delivered and
// asleep, or after a short time. With `last`, repeats this for the access after that, and so on up
// to `last`.
struct HoldAt {
    std::uint64_t page = 0;  // page 0 is the metadata
    std::uint64_t access = 1;
    Steps wake;
    Steps meanwhile;
    Steps afterwards = {};
    std::uint64_t at_most_ms = 60;
    AccessPlace place = AccessPlace::before;
    std::uint64_t last = 0;
    Steps before = {};  // each access
};
// Finds the place with this number, from 1. Calls `wake` first, and `act` with the thread that is
// stopped there. Returns false if the testee did not reach the place.
using PlayAt =
    std::function<bool(Stage& stage, std::uint64_t number, const std::function<void()>& wake,
                       const std::function<void(pid_t thread)>& act)>;
// Actions at a place that another file of this folder finds, for example writer_hold.h. With
// `last`, repeats them for the place after that, and so on up to `last`.
struct ActAt {
    std::string_view place;  // for a schedule, with {} for the number of the place
    PlayAt play_at;
    Steps wake;
    Steps actions;
    std::uint64_t number = 1;
    std::uint64_t last = 0;
    Steps before = {};  // each place
};
// Only among the actions of a walk: keeps the thread that is at this access or place stopped, while
// the others continue. Ends when `until` is true, or after some time, from which no verdict
// follows.
enum class HeldUntil {
    others_sleep,  // everything of the other CPUs is delivered, and they sleep
    cpu_sleeps,    // a thread sleeps on CPU 0
    finding,       // the case has a finding
};
struct Hold {
    HeldUntil until = HeldUntil::others_sleep;
    std::uint64_t at_most_ms = 60;
};

// Holds the stores to need_wake of the current CPU back, as a processor may (store_buffer.h).
struct HoldStores {
    std::uint64_t iterations = 1;
    Steps wake = {};                        // begins each iteration; none: one event of 100 bytes
    std::optional<Disturbance> after = {};  // instead: one iteration after this disturbance
};

struct Step {
    template <typename One>
    Step(One one) : what(of(std::move(one))) {}

    std::variant<Asleep, AsleepHere, Delivered, DeliveredHere, AllMapped, EndIfRefused,
                 AllMappedOrExit, NudgingOff, Emit, EmitEverywhere, EmitTyped, EmitHeaders,
                 EmitBytes, EmitSmall, EmitTo, Reserve, Batch, HandOver, Drop, Lap, Outrun,
                 OverwriteAll, Resize, Swap, NudgeRetired, FutexWake, SpuriousWake, AtOnce, InOrder,
                 Times, OnCpu, OnEachCpu, Call, WakesReturn, Limited, Place, MoveWritePos,
                 BeforeEachAccess, BeforeAccessTo, UnderRead, InNextBuffer, HoldAt, HoldStores,
                 Around, AtNextAttach, FailAttach, InTurn, ActAt, Hold, EndIfBlamed, AllRefused>
        what;

  private:
    template <typename One>
    static auto of(One one) {
        if constexpr (std::is_invocable_v<One&, Stage&> ||
                      std::is_invocable_v<One&, Stage&, std::uint32_t>)
            return Call{std::move(one)};
        else
            return one;
    }
};

// The steps that `make` returns for each value, in order.
template <typename Values, typename Make>
Step each(const Values& values, const Make& make) {
    InOrder all;
    for (const auto& value : values) all.steps.append(make(value));
    return all;
}
template <typename Value, typename Make>
Step each(std::initializer_list<Value> values, const Make& make) {
    return each<std::initializer_list<Value>, Make>(values, make);
}
// The steps that `make` returns for 0, 1, ... `count` - 1.
template <typename Make>
Step each_below(std::uint64_t count, const Make& make) {
    InOrder all;
    for (std::uint64_t i = 0; i < count; ++i) all.steps.append(make(i));
    return all;
}

// The steps that `make` returns for each value: the first value's on CPU 0, the next value's on CPU
// 1, and so on, modulo the number of CPUs.
template <typename Values, typename Make>
Step each_in_turn(const Values& values, const Make& make) {
    std::uint32_t cpu = 0;
    return each(values, [&](const auto& value) { return Steps{OnCpu{cpu++, make(value)}}; });
}

// A batch of `count` events: the first has `bytes` bytes, each later one is one byte larger.
Batch growing_batch(std::uint64_t count, Amount bytes);

// Emits events on CPU 0 and resizes. When the consumer checks again, only the old buffer has these
// events.
Steps leave_in_the_old_buffer(std::uint64_t events);

// Ends the first of three CPUs, then the second. Plays `steps` on the last CPU when two CPUs are
// left, and again when one is left.
Steps with_fewer_and_fewer(const Steps& steps);

// Overwrites exactly the newest event, with an event of the same size.
Step overwrite_newest(std::uint64_t bytes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_STEPS_H_
