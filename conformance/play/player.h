// SPDX-License-Identifier: MIT
//
// Plays a scenario on a stage together with the moves of a schedule. Before each access of the
// testee to its buffers, it makes the moves of that access. It also records all accesses, from
// which the search takes its points. Knows no search, and no testee's name, symbols or order of
// loads.
#ifndef KMES_CONFORMANCE_PLAY_PLAYER_H_
#define KMES_CONFORMANCE_PLAY_PLAYER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "conformance/model/schedule.h"
#include "conformance/play/turns.h"
#include "conformance/stage/spin_watch.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// One access of the testee, or another moment at which a move is possible.
struct TraceEntry {
    AccessPoint point;
    std::uint64_t instruction_pointer = 0;
    std::int32_t thread = 0;  // in order of appearance, from 1; 0: none
    // Since the previous entry the testee has attached, mapped a buffer, waited, or written to its
    // report; or its reads passed unseen. Known only for a play without moves.
    bool is_after_gap = false;
};

struct PlayTrace {
    std::vector<TraceEntry> entries;
    // The moves of a drawn schedule. A schedule with these moves has the same effect.
    std::vector<Move> drawn;
    // Moves of the schedule that did not come, because the testee did not make their accesses.
    std::size_t moves_not_made = 0;
    // Some accesses are missing: a phase or the whole play had more than a trace keeps.
    bool is_cut = false;
};

// The part of a play in which the testee is stopped at its accesses: all, or from the first move's
// phase to the last move. The rest runs as without exploration, and is judged in the same way.
enum class Course { whole, moves_only };

class Player;

// A play in phases. In phase 0 the testee attaches. Each later phase begins when the testee has
// delivered everything and sleeps.
struct Scenario {
    std::string_view name;
    std::string_view description;
    std::uint32_t cpus = 1;
    std::uint64_t capacity_bytes = 131072;
    std::uint64_t start_position = 0;
    // Swaps made by the scenario itself: see Player::must_nudge.
    std::uint32_t swaps = 0;
    std::uint32_t first_explored_phase = 0;
    // Also stop at accesses to the data (for small events). Otherwise only at the metadata page.
    bool guards_data = false;
    // Only tear the data of the events, word by word.
    bool tears = false;
    // Only hold one thread after the other, while events of this many bytes arrive; 0: do not hold.
    std::uint64_t holds_with_bytes = 0;
    // For a drawn schedule: how actions and turns are chosen (turns.h).
    Turning turning = Turning::none;
    std::function<void(Player&)> run;
};

class Player : private AccessDecider {
  public:
    // All arguments must outlive the player. `trace` gets the accesses as they happen, however the
    // play ends.
    Player(Stage& stage, const Scenario& scenario, const Schedule& schedule, PlayTrace& trace,
           Course course = Course::whole);

    // Plays everything up to the judge's verdict. Throws Stop as the stage does.
    CaseOutcome play();

    // -- For scenarios --
    Stage& stage() { return stage_; }
    Rings& rings() { return stage_.rings(); }
    // Publishes the reservation on this CPU, and then emits.
    void emit(std::uint32_t cpu, std::uint64_t event_bytes, std::string type = "t");
    // Starts the testee, with guards from its first mmap on.
    void start();
    // Publishes the reservation on this CPU. Call it before any other operation there.
    void publish_reserved(std::uint32_t cpu);
    // Publishes on all CPUs, and resizes within the limits of a play. `positions`: see Action.
    void resize_all(std::uint64_t capacity_bytes, std::uint64_t positions = 0);
    void nudge_retired();
    // Waits until the testee has delivered every owed event and sleeps. Then the next phase begins.
    void settle();
    // While the testee sleeps: performs the next action of a drawn schedule; any other schedule
    // continues if it has moves left. Returns false if the schedule is over.
    bool perform_next();

  private:
    AtGuard decide(const GuardHit& hit) override;
    bool is_plain(const GuardHit& hit) override;
    void on_wait(const FutexWait& wait, std::uint32_t cpu);
    bool publish_for_sleepers(bool is_quiet);
    AccessPoint point_of(const BufferAccess& access, BufferIndex buffer) const;
    AccessPoint note(const GuardHit& hit, const BufferAccess& access, BufferIndex buffer);
    void keep(TraceEntry entry);
    bool note_gap_end();
    bool make_move(const Move& move, const GuardHit& hit);
    void make_moves_asleep();
    // Performs the move, and records the words for the trace.
    void act_and_record(const Move& move, pid_t thread);
    void set_made(std::size_t move);
    void act(const Move& move, pid_t thread);
    void tear(std::uint32_t cpu, const Move& move);
    void hold(std::uint32_t cpu, pid_t thread, std::uint64_t event_bytes);
    void overtake(std::uint32_t cpu, std::uint64_t further);
    void write_over(std::uint32_t cpu, const Move& move);
    bool others_can_continue(pid_t thread) const;
    void yield(pid_t thread, std::uint64_t accesses);
    void take_turns(const AccessPoint& point, pid_t thread);
    std::optional<pid_t> first_at_turn() const;
    std::optional<pid_t> must_yield_to(pid_t thread) const;
    void yield_turn(const AccessPoint& point, pid_t thread);
    bool is_blocked(pid_t thread) const;
    bool must_nudge() const;
    void nudge_after_attach();
    bool has_made_a_move() const;
    std::uint32_t first_phase() const;
    void guard(const Mapped& mapped);
    void open();
    AtGuard cut_phase();
    bool has_no_more_to_do() const;
    bool has_move_left_at_data() const;
    bool may_guard_data() const;
    bool has_seen_enough_data() const;
    void stop_guarding_data();
    std::int32_t ordinal_of(pid_t thread);

    Stage& stage_;
    const Scenario& scenario_;
    const Schedule& schedule_;
    std::uint32_t phase_ = 0;
    std::size_t attaches_of_phase_0_ = 0;
    PlayTrace& trace_;
    std::uint64_t accesses_ = 0;
    std::uint64_t accesses_of_phase_ = 0;
    std::uint64_t data_after_a_move_ = 0;  // accesses of the current phase
    bool is_phase_cut_ = false;            // the rest of the phase runs without stops
    std::unordered_map<std::uint64_t, std::uint64_t> occurrences_;  // of the current phase
    std::vector<bool> made_;
    SpinWatch spin_watch_;
    std::vector<std::uint64_t> data_offset_;  // by CPU: region offset of the last read of data
    // By CPU: accesses until the reservation is published.
    std::vector<std::uint64_t> commit_after_;
    std::vector<pid_t> threads_;
    std::optional<Turns> turns_;
    std::vector<pid_t> held_;  // for others whose turn it is
    std::set<pid_t> stuck_;    // they had their turn, and made no progress
    std::uint64_t turns_without_progress_ = 0;
    bool plays_moves_only_;  // see Course
    int active_moves_ = 0;
    bool is_open_;  // guards stop the testee
    std::vector<Mapped> mapped_;
    // The testee's actions other than accesses: attaches, mappings, waits, bytes of the report, and
    // system calls that access a buffer.
    struct Calls {
        std::size_t attaches = 0;
        std::size_t mappings = 0;
        std::size_t waits = 0;
        std::uint64_t report_bytes = 0;
        std::uint64_t redirected_calls = 0;
        bool operator==(const Calls&) const = default;
    };
    Calls calls_;
    bool guards_data_;  // see may_guard_data
};

// Describes a move: "before its 2nd read of write_pos on CPU 0 in phase 1, one event is emitted".
std::string describe(const Move& move);
std::string describe(const AccessPoint& point);
std::string describe(Action action);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_PLAYER_H_
