// SPDX-License-Identifier: MIT
//
// See row_player.h.
#include "conformance/play/row_player.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "conformance/play/access_step.h"
#include "conformance/play/failing_attach.h"
#include "conformance/play/held_thread.h"
#include "conformance/play/play.h"
#include "conformance/play/store_buffer.h"

namespace kmes::conformance {

namespace {

// The numbers from `first` to `last`, or only `first`.
std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> numbers(std::max(first, last) + 1 - first);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

class RowPlayer {
  public:
    // `failing_attach`: nullptr if the row has no FailAttach.
    RowPlayer(Stage& stage, const RowChoice& choice, std::vector<RowPlay>& begun,
              FailingAttach* failing_attach)
        : stage_(stage), choice_(choice), begun_(begun), failing_attach_(failing_attach) {}
    ~RowPlayer() {
        if (failing_attach_ == nullptr) stage_.hooks().set_on_attach(nullptr);  // AtNextAttach
    }
    RowPlayer(const RowPlayer&) = delete;
    RowPlayer& operator=(const RowPlayer&) = delete;

    // Whether all walks ended before the access at which they act.
    bool has_walked_without_action() const { return !begun_.empty() && !has_acted_; }

    // Whether AllMappedOrExit has ended the row.
    bool has_exited() const { return has_exited_; }

    void play(const Steps& steps) {
        for (const Step& step : steps) {
            if (is_over_) return;
            if (!choice_.plays(step)) continue;
            step_ = &step;
            std::visit(*this, step.what);
        }
    }

    void operator()(const Asleep&) { stage_.wait_asleep(); }
    void operator()(const AsleepHere&) { stage_.wait_asleep(cpu_); }
    void operator()(const Delivered&) { stage_.waits().delivered(); }
    void operator()(const DeliveredHere&) { stage_.waits().delivered(cpu_); }
    void operator()(const AllMapped&) { stage_.waits().mapped(); }
    void operator()(const EndIfRefused&) { is_over_ = stage_.testee().has_ended(cpu_); }
    void operator()(const AllMappedOrExit&) {
        has_exited_ = !stage_.waits().mapped_or_exit();
        is_over_ = has_exited_;
    }
    void operator()(const EndIfBlamed&) { is_over_ = !stage_.findings().all().empty(); }
    void operator()(const NudgingOff&) { stage_.waits().set_nudging(false); }

    void operator()(const Emit& emit) {
        emit_some(stage_, cpu_, count(bytes(emit.count)), bytes(emit.bytes));
    }
    void operator()(const EmitEverywhere& emit) {
        emit_everywhere(stage_, count(emit.count), bytes(emit.bytes));
    }
    void operator()(const EmitTyped& emit) {
        const auto letter = static_cast<char>('a' + cpu_ % 26);
        rings().emit(cpu_,
                     rings().events().make(bytes(emit.bytes), std::string(emit.type_bytes, letter),
                                           emit.extra_header_bytes));
    }
    void operator()(const EmitHeaders& emit) {
        emit_headers(stage_, cpu_, count(emit.count), bytes(emit.bytes));
    }
    void operator()(const EmitBytes& emit) { rings().emit_bytes(cpu_, bytes(emit.bytes)); }
    void operator()(const EmitSmall& emit) { emit_small(stage_, cpu_, bytes(emit.bytes)); }
    void operator()(const EmitTo& to) { fill_up_to(stage_, cpu_, bytes(to.before_end)); }
    void operator()(const Reserve& reserve) {
        rings().emissions().reserve(cpu_, rings().events().make(bytes(reserve.bytes)),
                                    reserve.written);
    }
    void operator()(const Batch& batch) {
        std::vector<EventSpec> specs;
        for (const Amount& size : batch.sizes) specs.push_back(rings().events().make(bytes(size)));
        rings().batch(cpu_, specs);
    }
    void operator()(const HandOver&) {
        for (std::uint32_t cpu = 0; cpu < stage_.cpus(); ++cpu)
            rings().hand_over(cpu, SwapSpec{stage_.capacity_bytes(), PositionRule::keep, 0});
    }
    void operator()(const Drop& drop) {
        const std::uint64_t count = drop.count + cpu_ * drop.more_for_each_cpu;
        for (std::uint64_t i = 0; i < count; ++i) rings().drop(cpu_);
    }
    void operator()(const Lap& one) {
        lap(stage_, cpu_, bytes(one.bytes) + cpu_ * one.more_for_each_cpu);
    }
    void operator()(const Outrun& one) { rings().outrun(cpu_, one.bytes, one.events); }
    void operator()(const OverwriteAll& over) {
        overwrite_all(stage_, [&over](std::string& payload, std::uint64_t) {
            payload.assign(payload.size(), over.filling);
        });
    }
    void operator()(const Resize& resize) {
        std::vector<BufferIndex>& retired = retired_.emplace_back();
        for (std::uint32_t cpu = 0; cpu < stage_.cpus(); ++cpu)
            retired.push_back(rings().history().current_buffer(cpu));
        stage_.resize(bytes(resize.capacity, stage_.capacity_bytes()), resize.rule,
                      resize.position);
    }
    void operator()(const Swap& swap) {
        rings().swap(cpu_, SwapSpec{bytes(swap.capacity, stage_.capacity_bytes())});
    }
    void operator()(const NudgeRetired& nudge) {
        const std::uint64_t times = count(nudge.times);
        // A schedule may leave the resize out.
        if (!choice_.is_whole() && retired_.size() < nudge.resizes_ago) return;
        for (const BufferIndex buffer : retired_.at(retired_.size() - nudge.resizes_ago)) {
            for (std::uint64_t i = 0; i < times; ++i) rings().nudge(buffer);
        }
    }
    void operator()(const FutexWake&) { rings().spurious_wake(cpu_); }
    void operator()(const SpuriousWake&) { wake_spuriously(stage_, cpu_); }

    void operator()(const AtOnce& at_once) {
        stage_.holding().freeze();
        play(at_once.steps);
        stage_.holding().thaw();
    }
    void operator()(const InOrder& in_order) { play(in_order.steps); }
    void operator()(const Times& times) {
        const std::uint64_t all = count(times.count);
        for (std::uint64_t i = 0; i < all; ++i) play(times.steps);
    }
    void operator()(const InTurn& in_turn) {
        std::size_t& turn = turns_[&in_turn];
        play(in_turn.lists.at(turn++ % in_turn.lists.size()));
    }
    void operator()(const FailAttach& fail) {
        if (failing_attach_ == nullptr)
            throw SuiteError("a row with FailAttach needs Setup::failing_attach");
        failing_attach_->fail(cpu_, fail.error, fail.times, fail.passed);
    }
    void operator()(const OnCpu& on) { play_on(cpu_named(on.cpu), on.steps); }
    void operator()(const OnEachCpu& on) {
        const auto is_left_out = [this, &on](std::uint32_t cpu) {
            return std::ranges::any_of(
                on.except, [&](std::uint32_t except) { return cpu == cpu_named(except); });
        };
        for (std::uint32_t cpu = 0; cpu < stage_.cpus(); ++cpu) {
            if (!is_left_out(cpu)) play_on(cpu, on.steps);
        }
    }
    void operator()(const Call& call) { call.function(stage_, cpu_); }
    void operator()(const WakesReturn& wakes) { stage_.hooks().set_wake_result(wakes.result); }
    void operator()(const Around& around) {
        around.function(stage_, [&] { play(around.steps); });
    }
    void operator()(const Limited& limited) {
        WalkLimit limit(stage_);
        WalkLimit* const outer = std::exchange(limit_, &limit);
        play(limited.steps);
        limit_ = outer;
    }

    void operator()(const Place& place) {
        is_over_ = !place_next_event(stage_, bytes(place.before_end), place.filler) ||
                   stage_.testee().has_ended(0);
    }
    void operator()(const MoveWritePos& move) {
        move_positions(stage_, write_pos(stage_, cpu_), bytes(move.to));
    }

    void operator()(const BeforeEachAccess& walk);
    void operator()(const BeforeAccessTo& access);
    void operator()(const UnderRead& read);
    void operator()(const InNextBuffer& next);
    void operator()(const HoldAt& hold);
    void operator()(const HoldStores& hold) {
        if (hold.after)
            return play_after(*hold.after, [&] { hold_stores_after(stage_, *hold.after); });
        const Steps& wake = wake_of(hold.wake);
        hold_stores(stage_, cpu_, static_cast<int>(hold.iterations), [&] { play(wake); });
    }
    void operator()(const ActAt& walk);
    void operator()(const Hold& hold);
    void operator()(const AtNextAttach& next);
    void operator()(const AllRefused&);

  private:
    Rings& rings() { return stage_.rings(); }
    std::uint32_t cpu_named(std::uint32_t cpu) const {
        return cpu == kLastCpu ? stage_.cpus() - 1 : cpu % stage_.cpus();
    }
    std::uint64_t bytes(const Amount& number, std::uint64_t current) const {
        return number.in(number.of == Amount::Of::usual ? stage_.default_setup().capacity_bytes
                                                        : current);
    }
    std::uint64_t bytes(const Amount& number) const { return bytes_in(stage_, cpu_, number); }
    std::uint64_t count(std::uint64_t as_written) const {
        return choice_.count(*step_, as_written);
    }
    WalkChoice choice_of(const Step& walk);
    void play_each(const Step& walk, const std::vector<std::uint64_t>& accesses,
                   const std::function<bool(std::uint64_t)>& play_one);
    void play_on(std::uint32_t cpu, const Steps& steps) {
        const std::uint32_t before = std::exchange(cpu_, cpu);
        play(steps);
        cpu_ = before;
    }
    static const Steps& wake_of(const Steps& wake) {
        static const Steps kOneEvent{Emit{}};
        return wake.empty() ? kOneEvent : wake;
    }
    void act(const Steps& actions) {
        has_acted_ = true;
        play(actions);
    }
    // Plays actions while this thread is stopped.
    void act_at(pid_t thread, const Steps& actions) {
        thread_ = thread;
        act(actions);
    }

    Stage& stage_;
    const RowChoice& choice_;
    std::vector<RowPlay>& begun_;
    FailingAttach* failing_attach_;
    const Step* step_ = nullptr;  // the current one
    std::uint32_t cpu_ = 0;
    pid_t thread_ = 0;  // the last one that was stopped for actions
    bool is_over_ = false;
    bool has_exited_ = false;
    bool has_acted_ = false;                         // before an access
    WalkLimit* limit_ = nullptr;                     // of the current Limited
    std::vector<std::vector<BufferIndex>> retired_;  // for each Resize
    std::map<const InTurn*, std::size_t> turns_;     // how often each was played
};

// If a schedule leaves out a walk, the consumer still sleeps afterwards.
WalkChoice RowPlayer::choice_of(const Step& walk) {
    const std::uint32_t number = choice_.row().number_of(walk);
    const std::uint32_t cpu = cpu_;
    WalkChoice choice;
    choice.only = choice_.accesses(walk, cpu);
    if (choice.only && choice.only->empty()) stage_.wait_asleep();
    choice.on_begin = [this, number, cpu](const AccessNumber& access) {
        RowPlay play{point_of(number, cpu, access), 0, {}};
        const std::vector<Record>& records = stage_.testee().records().records();
        if (!records.empty()) play.lines = records.back().line;
        for (std::uint32_t each = 0; each < stage_.cpus(); ++each) {
            const auto& events = rings().history().events_of(each);
            play.last_sequences.push_back(events.empty() ? 0 : events.back().sequence);
        }
        begun_.push_back(std::move(play));
    };
    return choice;
}

// Plays before each of these accesses while `play_one` returns true, or before the chosen ones.
void RowPlayer::play_each(const Step& walk, const std::vector<std::uint64_t>& accesses,
                          const std::function<bool(std::uint64_t)>& play_one) {
    const WalkChoice choice = choice_of(walk);
    std::vector<AccessNumber> all;
    for (const std::uint64_t access : accesses) all.push_back({Counted::all, access});
    for (const AccessNumber& access : choice.only.value_or(all)) {
        if (limit_ != nullptr && limit_->is_over()) return;
        choice.on_begin(access);
        if (!play_one(access.number)) return;
    }
}

void RowPlayer::operator()(const BeforeEachAccess& walk) {
    const Step& step = *step_;
    const auto act_here = [&] { act(walk.actions); };
    if (walk.last > 0) {
        const Steps& wake = wake_of(walk.wake);
        return play_each(step, from_to(1, walk.last), [&](std::uint64_t k) {
            play(walk.before);
            if (is_over_ || stage_.testee().has_ended(cpu_) ||
                !act_at_access_of(stage_, cpu_, k, [&] { play(wake); }, act_here))
                return false;
            play(walk.afterwards);
            return true;
        });
    }
    const WalkChoice choice = choice_of(step);
    if (walk.after) {
        const auto after = [&] {
            act_at_every_access_after(stage_, *walk.after, act_here, choice);
        };
        return play_after(*walk.after, after);
    }
    if (walk.spurious_wakes == 0) return act_at_every_access(stage_, cpu_, act_here, choice);
    const std::uint64_t wakes = 1 + choice_.count(step, *count_of(step));
    act_at_every_access_after_nothing(stage_, cpu_, act_here, wakes, choice);
}

void RowPlayer::operator()(const BeforeAccessTo& access) {
    const Step& here = *step_;
    AccessStep step;
    step.cpus = access.cpus;
    for (std::uint32_t cpu = 0; access.cpus.empty() && cpu < stage_.cpus(); ++cpu)
        step.cpus.push_back(cpu);
    step.first_page = access.first_page;
    step.pages = access.pages;
    step.wake = [&] { play(access.wake); };
    step.act = [&](const GuardHit& hit) { act_at(hit.tid, access.actions); };
    if (!access.before.empty())
        return play_each(here, from_to(1, last_access_of(here)), [&](std::uint64_t k) {
            play(access.before);
            return !is_over_ && act_at_step(stage_, step, k);
        });
    if (access.accesses.empty()) return act_at_every_step(stage_, step, choice_of(here));
    play_each(here, access.accesses, [&](std::uint64_t k) {
        act_at_step(stage_, step, k);
        return true;
    });
}

void RowPlayer::operator()(const UnderRead& read) {
    play_each(*step_, {1}, [&](std::uint64_t) {
        overwrite_under_read(
            stage_, bytes(read.at) / kPageBytes, read.pages, [&] { play(read.wake); },
            [&] { act(read.actions); }, read.if_unseen);
        return true;
    });
}

void RowPlayer::operator()(const InNextBuffer& next) {
    HeldAccess access{.place = AccessPlace::in_next_buffer};
    access.first_page = next.pages == NextPages::data ? 1 : 0;
    play_each(*step_, from_to(1, next.last), [&](std::uint64_t number) {
        play(next.before);
        const std::uint64_t data_pages = 2 * stage_.capacity_bytes() / kPageBytes;
        if (next.pages != NextPages::metadata) access.pages = data_pages + 1 - access.first_page;
        access.number = number;
        return !is_over_ && act_at_held_access(
                                stage_, access, [this] { stage_.resize(stage_.capacity_bytes()); },
                                [&](pid_t thread) { act_at(thread, next.actions); });
    });
}

void RowPlayer::operator()(const HoldAt& hold) {
    play_each(*step_, from_to(hold.access, hold.last), [&](std::uint64_t number) {
        play(hold.before);
        const auto act_and_hold = [&](pid_t thread) {
            act_at(thread, hold.meanwhile);
            (*this)(Hold{HeldUntil::others_sleep, hold.at_most_ms});
            play(hold.afterwards);
        };
        return !is_over_ && act_at_held_access(
                                stage_, {hold.page, 1, number, hold.place},
                                [&] { play(hold.wake); }, act_and_hold);
    });
}

void RowPlayer::operator()(const ActAt& walk) {
    has_acted_ = true;  // a correct consumer may have no such place
    play_each(*step_, from_to(walk.number, walk.last), [&](std::uint64_t number) {
        play(walk.before);
        return !is_over_ && walk.play_at(
                                stage_, number, [&] { play(walk.wake); },
                                [&](pid_t thread) { act_at(thread, walk.actions); });
    });
}

void RowPlayer::operator()(const Hold& hold) {
    const auto is_over = [this, &hold] {
        if (hold.until == HeldUntil::finding) return !stage_.findings().all().empty();
        if (hold.until == HeldUntil::cpu_sleeps) return stage_.wait_log().asleep(0);
        for (std::uint32_t cpu = 1; cpu < stage_.cpus(); ++cpu) {
            if (!stage_.testee().has_ended(cpu) &&
                !(is_delivered(stage_, cpu) && stage_.wait_log().asleep(cpu)))
                return false;
        }
        return true;
    };
    stage_.holding().hold_while(
        thread_, [&] { return !is_over(); }, std::chrono::milliseconds(hold.at_most_ms));
}

void RowPlayer::operator()(const AtNextAttach& next) {
    if (failing_attach_ != nullptr)
        throw SuiteError("a row has AtNextAttach and Setup::failing_attach; expected only one");
    const std::uint32_t cpu = cpu_;
    stage_.hooks().set_on_attach([this, &next, cpu, is_done = false](const AttachRequest&) mutable {
        if (!std::exchange(is_done, true)) play_on(cpu, next.steps);
    });
}

void RowPlayer::operator()(const AllRefused&) {
    const auto is_missing = [this](std::uint32_t cpu) {
        const History& history = rings().history();
        return must_refuse(history.buffer(history.current_buffer(cpu)).fault) &&
               !stage_.testee().has_refused(cpu);
    };
    stage_.waits().until(
        [&] {
            for (std::uint32_t cpu = 0; cpu < stage_.cpus(); ++cpu) {
                if (is_missing(cpu)) return false;
            }
            return true;
        },
        "a refusal of each CPU with a malformed buffer");
}

void set_up(Stage& stage, const Setup& setup) {
    RingsSetup rings = stage.default_setup();
    const std::uint64_t usual = rings.capacity_bytes;
    if (setup.cpus != 0) rings.cpus = setup.cpus;
    rings.capacity_bytes = setup.capacity.in(usual);
    for (std::uint32_t cpu = 0; setup.position && cpu < rings.cpus; ++cpu)
        rings.start_positions.push_back(setup.position->in(usual) + cpu * setup.position_step);
    if (setup.rings) setup.rings(rings);
    stage.set_up(rings);
}

CaseOutcome finish(Stage& stage, RowEnd end) {
    switch (end) {
        case RowEnd::drained:
            break;
        case RowEnd::tolerant:
            stage.waits().tolerated_at_rest();
            return stage.ending().finish_tolerant();
        case RowEnd::refused:
            return stage.ending().finish_refused();
    }
    return stage.finish();
}

CaseOutcome play_to_the_end(Stage& stage, const Setup& setup, const Steps& steps,
                            RowPlayer& player) {
    player.play(setup.before_start);
    stage.start();
    player.play(steps);
    if (player.has_exited()) return stage.ending().finish_any_exit();
    // A refused buffer is judged, whatever the walks have shown.
    bool has_ended = false;
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        has_ended = has_ended || stage.testee().has_ended(cpu);
    if (player.has_walked_without_action() && !has_ended)
        stage.findings().played_in_part(
            "the consumer made no access before which the case acts, so only the rest was played");
    return finish(stage, setup.end);
}

}  // namespace

std::size_t play_of(const Finding& finding, const std::vector<RowPlay>& plays) {
    const auto is_before = [&](const RowPlay& play) {
        if (finding.line > 0) return play.lines < finding.line;
        const bool has_event =
            finding.cpu && finding.sequence > 0 && *finding.cpu < play.last_sequences.size();
        return !has_event || play.last_sequences[*finding.cpu] < finding.sequence;
    };
    const auto last = std::find_if(plays.rbegin(), plays.rend(), is_before);
    return last == plays.rend() ? 0 : static_cast<std::size_t>(plays.rend() - last) - 1;
}

CaseOutcome play_row(Stage& stage, const Setup& setup, const Steps& steps, const RowChoice& choice,
                     std::vector<RowPlay>& begun) {
    set_up(stage, setup);
    stage.hooks().set_wake_result(setup.wake_result);
    stage.waits().set_nudging(setup.nudging);
    if (setup.stops_at_writes)
        stage.hooks().set_on_report_write([](const ReportWrite&) { return false; });
    std::optional<ShortenedWaits> shortened_waits;
    if (setup.shortened_waits) shortened_waits.emplace(stage.waits());
    std::optional<FailingAttach> failing_attach;
    if (setup.failing_attach) failing_attach.emplace(stage);
    RowPlayer player(stage, choice, begun, failing_attach ? &*failing_attach : nullptr);
    try {
        return play_to_the_end(stage, setup, steps, player);
    } catch (const EarlyExit&) {
        if (!failing_attach) throw;
        return failing_attach->finish_given_up();
    }
}

}  // namespace kmes::conformance
