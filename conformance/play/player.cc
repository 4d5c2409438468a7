// SPDX-License-Identifier: MIT
//
// See player.h.
#include "conformance/play/player.h"

#include <algorithm>
#include <utility>

#include "conformance/play/moves.h"

namespace kmes::conformance {

namespace {

constexpr std::size_t kTraceAtMost = 60000;
// A testee with more accesses in a phase runs without stops up to the next phase: it may spin.
constexpr std::uint64_t kAccessesOfAPhase = 20000;
// The number of accesses to the data in each phase that are seen after a move. After a lap there
// may be thousands, and few of them become points.
constexpr std::uint64_t kDataAfterAMove = 300;
constexpr std::uint64_t kLeastCapacityBytes = 65536;
constexpr std::uint64_t kGreatestCapacityBytes = 1 << 20;

std::uint64_t key_of(const AccessPoint& point) {
    return point.offset_bytes | std::uint64_t{point.size_bytes} << 32 |
           static_cast<std::uint64_t>(point.kind) << 54 | std::uint64_t{point.cpu & 0x7f} << 56 |
           std::uint64_t{point.is_write} << 63;
}

bool same_access(const AccessPoint& a, const AccessPoint& b) {
    AccessPoint whole = b;
    whole.split_bytes = a.split_bytes;
    return a == whole;
}

}  // namespace

Player::Player(Stage& stage, const Scenario& scenario, const Schedule& schedule, PlayTrace& trace,
               Course course)
    : stage_(stage),
      scenario_(scenario),
      schedule_(schedule),
      trace_(trace),
      made_(schedule.moves.size()),
      spin_watch_(stage),
      data_offset_(scenario.cpus),
      commit_after_(scenario.cpus),
      plays_moves_only_(course == Course::moves_only && !schedule.moves.empty() &&
                        !stage.settings().record_accesses),
      is_open_(first_phase() == 0),
      guards_data_(scenario.guards_data && scenario.first_explored_phase == 0) {
    trace_.moves_not_made = made_.size();
    if (schedule.drawn) turns_.emplace(schedule.seed, scenario.cpus, scenario.turning);
}

CaseOutcome Player::play() {
    RingsSetup setup;
    setup.cpus = scenario_.cpus;
    setup.capacity_bytes = scenario_.capacity_bytes;
    setup.start_positions.assign(scenario_.cpus, scenario_.start_position);
    stage_.set_up(setup);
    stage_.waits().set_nudging(must_nudge());
    scenario_.run(*this);
    // Publish the reservations that moves made in the last sleep.
    for (std::uint32_t cpu = 0; cpu < scenario_.cpus; ++cpu) publish_reserved(cpu);
    is_open_ = false;
    stage_.guards().release();
    // The end events follow, and no event may overwrite them.
    return stage_.finish();
}

// E19: a consumer that attached before a swap and loaded generation after it cannot know that its
// buffer is dead, unless it checked the inode. If that cannot have happened, a consumer that sleeps
// on a retired buffer is faulty, and is not nudged. (A consumer may attach again at any time: see
// nudge_after_attach.)
bool Player::must_nudge() const {
    std::uint32_t swaps = scenario_.swaps;
    for (const Move& move : schedule_.moves) {
        if (!swaps_buffers(move.action)) continue;
        if (move.point.phase == 0) return true;
        ++swaps;
    }
    return swaps > 1;
}

// A swap follows. The testee may have attached of its own accord since phase 0, and may not have
// loaded generation in the new mapping so far.
void Player::nudge_after_attach() {
    if (phase_ > 0 && stage_.testee().attaches().size() > attaches_of_phase_0_)
        stage_.waits().set_nudging(true);
}

void Player::emit(std::uint32_t cpu, std::uint64_t event_bytes, std::string type) {
    publish_reserved(cpu);
    rings().emit(cpu, rings().events().make(event_bytes, std::move(type)));
}

void Player::start() {
    stage_.guards().set_decider(*this);
    stage_.hooks().set_on_wait(
        [this](const FutexWait& wait, std::uint32_t cpu) { on_wait(wait, cpu); });
    stage_.hooks().set_on_mapped([this](const Mapped& mapped) {
        mapped_.push_back(mapped);
        if (is_open_ && !is_phase_cut_) guard(mapped);
    });
    stage_.hooks().set_on_iteration(
        [this](bool is_quiet) { return publish_for_sleepers(is_quiet); });
    stage_.start();
}

void Player::guard(const Mapped& mapped) {
    stage_.guards().guard_mapping(mapped, guards_data_ ? Guarded::all : Guarded::metadata);
}

std::uint32_t Player::first_phase() const {
    if (!plays_moves_only_) return 0;
    std::uint32_t first = schedule_.moves.front().point.phase;
    for (const Move& move : schedule_.moves) first = std::min(first, move.point.phase);
    return first;
}

// Call it while the testee sleeps. Buffers that it has unmapped meanwhile need no guard.
void Player::open() {
    is_open_ = true;
    is_phase_cut_ = false;
    stage_.guards().set_decider(*this);
    const std::vector<Mapping> there = stage_.testee().tracer().mappings();
    for (const Mapped& mapped : mapped_) {
        const bool is_there = std::any_of(there.begin(), there.end(), [&](const Mapping& each) {
            return each.id == mapped.mapping.id;
        });
        if (is_there) guard(mapped);
    }
}

// A testee that sleeps before a reservation is published makes no more accesses to wait for.
bool Player::publish_for_sleepers(bool is_quiet) {
    bool has_published = false;
    for (std::uint32_t cpu = 0; cpu < scenario_.cpus; ++cpu) {
        if (!rings().emissions().is_reserved(cpu) || !(is_quiet || stage_.wait_log().asleep(cpu)))
            continue;
        publish_reserved(cpu);
        has_published = true;
    }
    return has_published;
}

void Player::settle() {
    stage_.waits().mapped();
    // Repeat while there are reservations that came with the very last accesses.
    for (bool is_settled = false; !is_settled;) {
        stage_.wait_asleep();
        is_settled = !publish_for_sleepers(true);
    }
    spin_watch_.stop_at_all_loads();
    if (phase_++ == 0) attaches_of_phase_0_ = stage_.testee().attaches().size();
    if (may_guard_data() && !guards_data_) {
        guards_data_ = true;
        stage_.guards().guard_data();
    }
    accesses_of_phase_ = 0;
    data_after_a_move_ = 0;
    occurrences_.clear();
    const bool begins = !is_open_ && phase_ == first_phase();
    if (begins || (is_open_ && is_phase_cut_)) open();
    make_moves_asleep();
}

void Player::make_moves_asleep() {
    for (std::uint32_t cpu = 0; cpu < scenario_.cpus; ++cpu) {
        TraceEntry entry;
        entry.point.phase = phase_;
        entry.point.cpu = cpu;
        entry.point.kind = PointKind::sleep;
        keep(entry);
    }
    for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
        const Move& move = schedule_.moves[i];
        if (made_[i] || move.point.kind != PointKind::sleep || move.point.phase != phase_ ||
            move.point.cpu >= scenario_.cpus)
            continue;
        set_made(i);
        act_and_record(move, 0);
    }
}

std::int32_t Player::ordinal_of(pid_t thread) {
    const auto found = std::find(threads_.begin(), threads_.end(), thread);
    const auto index = found - threads_.begin();
    if (found == threads_.end()) threads_.push_back(thread);
    return static_cast<std::int32_t>(index) + 1;
}

// The point without its occurrence.
AccessPoint Player::point_of(const BufferAccess& access, BufferIndex buffer) const {
    const Buffer& of = stage_.rings().history().buffer(buffer);
    AccessPoint point;
    point.phase = phase_;
    point.cpu = of.cpu;
    point.offset_bytes = access.place.offset_bytes;
    if (point.offset_bytes >= kMetadataBytes + of.capacity) point.offset_bytes -= of.capacity;
    point.size_bytes = access.size_bytes;
    point.is_write = access.is_write;
    point.occurrence = 0;
    return point;
}

AccessPoint Player::note(const GuardHit& hit, const BufferAccess& access, BufferIndex buffer) {
    TraceEntry entry;
    entry.instruction_pointer = hit.code.instruction_pointer;
    entry.thread = ordinal_of(hit.tid);
    AccessPoint& point = entry.point;
    point = point_of(access, buffer);
    point.occurrence = ++occurrences_[key_of(point)];
    if (point.offset_bytes >= kMetadataBytes) {
        data_offset_[point.cpu] = point.offset_bytes - kMetadataBytes;
        if (has_made_a_move()) ++data_after_a_move_;
    }
    keep(entry);
    return point;
}

void Player::keep(TraceEntry entry) {
    if (trace_.entries.size() >= kTraceAtMost) {
        trace_.is_cut = true;
        return;
    }
    // The gaps of a play with moves are never used.
    if (schedule_.moves.empty() && !schedule_.drawn) entry.is_after_gap = note_gap_end();
    trace_.entries.push_back(entry);
}

// Returns true if the testee has done something other than accesses since the last call.
bool Player::note_gap_end() {
    stage_.testee().read_report();
    const Calls now{stage_.testee().attaches().size(), stage_.testee().maps().size(),
                    stage_.wait_log().all().size(), stage_.testee().records().bytes_fed(),
                    stage_.testee().tracer().effects().redirected_calls};
    return std::exchange(calls_, now) != now || spin_watch_.ignores_loads();
}

// The last moment before the kernel loads the word. It is not an access to a page.
void Player::on_wait(const FutexWait& wait, std::uint32_t cpu) {
    if (!is_open_ || is_phase_cut_) return;
    if (++accesses_of_phase_ > kAccessesOfAPhase) {
        trace_.is_cut = true;
        return;
    }
    TraceEntry entry;
    entry.thread = ordinal_of(wait.tid);
    AccessPoint& point = entry.point;
    point = {.phase = phase_,
             .cpu = cpu,
             .offset_bytes = kFutexWordOffset,
             .size_bytes = sizeof(std::uint32_t),
             .kind = PointKind::wait};
    point.occurrence = ++occurrences_[key_of(point)];
    keep(entry);
    for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
        if (made_[i] || schedule_.moves[i].point != point) continue;
        set_made(i);
        act_and_record(schedule_.moves[i], wait.tid);
    }
    if (turns_) take_turns(point, wait.tid);
}

// Most accesses of a play are only recorded, without going through the stage.
bool Player::is_plain(const GuardHit& hit) {
    if (!is_open_ || accesses_of_phase_ >= kAccessesOfAPhase || turns_ || has_no_more_to_do() ||
        has_seen_enough_data())
        return false;
    for (const BufferAccess& access : hit.accesses) {
        const std::optional<BufferIndex> buffer = stage_.buffers().buffer_at(access.place);
        if (!buffer) continue;
        AccessPoint point = point_of(access, *buffer);
        if (rings().emissions().is_reserved(point.cpu)) return false;
        const auto before = occurrences_.find(key_of(point));
        point.occurrence = before == occurrences_.end() ? 1 : before->second + 1;
        for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
            if (!made_[i] && same_access(point, schedule_.moves[i].point)) return false;
        }
    }
    ++accesses_;
    ++accesses_of_phase_;
    spin_watch_.note_access(hit);
    for (const BufferAccess& access : hit.accesses) {
        if (const auto buffer = stage_.buffers().buffer_at(access.place))
            note(hit, access, *buffer);
    }
    return true;
}

// While a thread is held, the accesses of others count: a reservation is published after a number
// of them.
bool Player::has_no_more_to_do() const {
    if (!plays_moves_only_ || active_moves_ > 0 ||
        std::find(made_.begin(), made_.end(), false) != made_.end())
        return false;
    for (std::uint32_t cpu = 0; cpu < scenario_.cpus; ++cpu) {
        if (stage_.rings().emissions().is_reserved(cpu)) return false;
    }
    return true;
}

AtGuard Player::decide(const GuardHit& hit) {
    is_open_ = is_open_ && !has_no_more_to_do();
    if (!is_open_) return AtGuard::release;
    if (++accesses_of_phase_ > kAccessesOfAPhase) return cut_phase();
    ++accesses_;
    spin_watch_.note_access(hit);
    bool is_done = false;
    for (const BufferAccess& access : hit.accesses) {
        const std::optional<BufferIndex> buffer = stage_.buffers().buffer_at(access.place);
        if (!buffer) continue;
        const AccessPoint point = note(hit, access, *buffer);
        if (rings().emissions().is_reserved(point.cpu) && commit_after_[point.cpu]-- == 0)
            publish_reserved(point.cpu);
        for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
            const Move& move = schedule_.moves[i];
            if (made_[i] || !same_access(point, move.point)) continue;
            set_made(i);
            is_done = make_move(move, hit) || is_done;
        }
        if (turns_) take_turns(point, hit.tid);
    }
    if (has_seen_enough_data()) stop_guarding_data();
    return is_done ? AtGuard::done : AtGuard::step;
}

bool Player::has_made_a_move() const {
    return std::find(made_.begin(), made_.end(), true) != made_.end();
}

void Player::set_made(std::size_t move) {
    made_[move] = true;
    --trace_.moves_not_made;
}

// The guards of the next phases are set by settle().
AtGuard Player::cut_phase() {
    is_phase_cut_ = true;
    trace_.is_cut = true;
    return AtGuard::release;
}

bool Player::has_move_left_at_data() const {
    for (std::size_t i = 0; i < schedule_.moves.size(); ++i) {
        if (!made_[i] && schedule_.moves[i].point.offset_bytes >= kMetadataBytes) return true;
    }
    return false;
}

// Before the explored phases, and after the last move unless the whole course is recorded, accesses
// to the data are not needed.
bool Player::may_guard_data() const {
    return scenario_.guards_data && phase_ >= scenario_.first_explored_phase &&
           (!plays_moves_only_ || !has_made_a_move() || has_move_left_at_data());
}

// In the course after a move, an access to the data may be that of a second move.
bool Player::has_seen_enough_data() const {
    return guards_data_ && has_made_a_move() && !has_move_left_at_data() &&
           (plays_moves_only_ || data_after_a_move_ >= kDataAfterAMove);
}

void Player::stop_guarding_data() {
    guards_data_ = false;
    stage_.guards().release_data();
}

// Returns true if the access has happened, too.
bool Player::make_move(const Move& move, const GuardHit& hit) {
    if (move.point.split_bytes == 0) {
        act_and_record(move, hit.tid);
        return false;
    }
    stage_.guards().step_torn(hit, move.point.split_bytes, [&] { act_and_record(move, hit.tid); });
    return true;
}

void Player::act_and_record(const Move& move, pid_t thread) {
    Recorder& recorder = stage_.recorder();
    if (recorder.on()) recorder.producer().begin_move("the suite's action: " + describe(move));
    ++active_moves_;
    act(move, thread);
    --active_moves_;
    recorder.producer().end_move();
}

void Player::publish_reserved(std::uint32_t cpu) {
    // A turn taken in here may publish this reservation, or make another one.
    stage_.waits().let_fall_asleep_again();
    if (!rings().emissions().is_reserved(cpu)) return;
    spin_watch_.stop_at_all_loads();
    rings().emissions().commit(cpu);
}

void Player::resize_all(std::uint64_t capacity_bytes, std::uint64_t positions) {
    constexpr std::uint64_t kHigherBy = 1000;
    const std::uint64_t bytes =
        std::clamp(capacity_bytes, kLeastCapacityBytes, kGreatestCapacityBytes);
    for (std::uint32_t cpu = 0; cpu < scenario_.cpus; ++cpu) publish_reserved(cpu);
    if (positions == kPositionsHigher) return stage_.resize(bytes, PositionRule::shift, kHigherBy);
    stage_.resize(bytes, positions == 0 ? PositionRule::keep : PositionRule::tail_at);
}

void Player::nudge_retired() {
    stage_.waits().let_fall_asleep_again();
    const History& history = rings().history();
    for (BufferIndex index = 0; index < history.buffer_count(); ++index) {
        const Buffer& buffer = history.buffer(index);
        if (buffer.retired && buffer.attached() && !rings().emissions().is_reserved(buffer.cpu))
            rings().nudge(index);
    }
}

void Player::act(const Move& move, pid_t thread) {
    constexpr std::uint64_t kUsualBytes = 70;
    const auto cpu = static_cast<std::uint32_t>((move.point.cpu + move.further) % scenario_.cpus);
    spin_watch_.stop_at_all_loads();
    // Between a reservation and its publication this CPU's producer does nothing else.
    publish_reserved(cpu);
    if (swaps_buffers(move.action)) nudge_after_attach();
    const std::uint64_t capacity = stage_.capacity_bytes();
    switch (move.action) {
        case Action::nothing:
            return;
        case Action::emit:
            return emit(cpu, move.parameter == 0
                                 ? kUsualBytes
                                 : std::clamp(move.parameter, kLeastEventBytes, capacity / 2));
        case Action::burst:
            return rings().emit_many(cpu, capacity / 2 / 512, 512);
        case Action::batch:
            return emit_batch(rings(), cpu);
        case Action::drop:
            return rings().drop(cpu);
        case Action::lap_part:
            return rings().emit_many(cpu, 10, capacity / 8);
        case Action::lap:
            return rings().emit_many(cpu, capacity / 8000 + 2, 8000);
        case Action::laps:
            return rings().emit_many(cpu, 7, capacity / 2);
        case Action::grow:
            resize_all(2 * capacity, move.parameter);
            return emit(cpu, 90);
        case Action::shrink:
            resize_all(capacity / 2, move.parameter);
            return emit(cpu, 90);
        case Action::swap:
            return resize_all(capacity, move.parameter);
        case Action::swap_twice:
            resize_all(capacity, move.parameter);
            return resize_all(capacity, move.parameter);
        case Action::nudge:
            return nudge_retired();
        case Action::wake:
            rings().spurious_wake(cpu);
            return;
        case Action::reserve:
            commit_after_[cpu] = move.parameter;
            return rings().emissions().reserve(cpu, rings().events().make(capacity / 2),
                                               move.written);
        case Action::tear:
            return tear(cpu, move);
        case Action::hold:
            return hold(move.point.cpu, thread, move.parameter);
        case Action::overtake:
            return overtake(cpu, move.parameter);
        case Action::write_over:
            return write_over(cpu, move);
        case Action::yield:
            return yield(thread, move.parameter);
    }
}

// Overwrites everything, and puts sizes of kind `move.parameter` at the place of the event that is
// being read: see torn_sizes.
void Player::tear(std::uint32_t cpu, const Move& move) {
    const History& history = rings().history();
    const Buffer& buffer = history.buffer(history.current_buffer(cpu));
    const std::uint64_t offset = move.point.offset_bytes - kMetadataBytes;
    const std::uint64_t event = start_of_event_at(buffer, offset);
    emit(cpu, 100);
    for (int i = 0; i < 3; ++i) {
        EventSpec over = rings().events().make(buffer.capacity / 2);
        const std::uint64_t payload = buffer.write_pos + over_header_bytes(over);
        const std::uint64_t at = (event - payload) & (buffer.capacity - 1);
        put_sizes(over.payload, at, torn_sizes(move.parameter, buffer.capacity));
        rings().emit(cpu, std::move(over));
    }
}

void Player::overtake(std::uint32_t cpu, std::uint64_t further) {
    const History& history = rings().history();
    const Buffer& buffer = history.buffer(history.current_buffer(cpu));
    const Placement* placement = placement_at(buffer, data_offset_[cpu], further);
    if (placement == nullptr) return;
    rings().emit_bytes(cpu, bytes_that_give_up(buffer, *placement));
}

// An unpublished event, or a part of one, overwrites the event that is being read. write_pos does
// not show it yet (5.1.7 steps 6 to 8).
void Player::write_over(std::uint32_t cpu, const Move& move) {
    const History& history = rings().history();
    const Buffer& buffer = history.buffer(history.current_buffer(cpu));
    const Placement* placement = placement_at(buffer, data_offset_[cpu], 0);
    if (placement == nullptr) return;
    const std::uint64_t all = bytes_that_give_up(buffer, *placement);
    std::uint64_t last = std::min(placement->bytes, buffer.capacity / 4);
    if (all - last < kLeastEventBytes) last = all;
    rings().emit_bytes(cpu, all - last);
    commit_after_[cpu] = move.parameter;
    rings().emissions().reserve(cpu, rings().events().make(last), move.written);
}

// The actions of the other threads meanwhile must not need this thread, and must not harm it. All
// of them get events. The stretch ends when they sleep or have made enough accesses.
void Player::hold(std::uint32_t cpu, pid_t thread, std::uint64_t event_bytes) {
    constexpr std::uint64_t kAccessesOfOthers = 150;
    if (thread == 0) return;  // all threads sleep
    for (std::uint32_t other = 0; other < scenario_.cpus; ++other) {
        if (other == cpu && scenario_.cpus > 1) continue;
        publish_reserved(other);
        // The number may come from a file.
        emit(other, event_bytes == 0
                        ? 80
                        : std::clamp(event_bytes, kLeastEventBytes, stage_.capacity_bytes() / 2));
    }
    const std::uint64_t end = accesses_ + kAccessesOfOthers;
    stage_.holding().hold_while(thread, [this, cpu, end] {
        bool others_sleep = scenario_.cpus > 1;
        for (std::uint32_t other = 0; other < scenario_.cpus; ++other)
            others_sleep = others_sleep && (other == cpu || stage_.wait_log().asleep(other));
        return !others_sleep && accesses_ < end;
    });
}

}  // namespace kmes::conformance
