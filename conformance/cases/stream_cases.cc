// SPDX-License-Identifier: MIT
//
// Recorded events (--stream): the CPUs, types, sizes, payloads, order and number of events come
// from a file of kmesctl record. The oracle judges as in every other case.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/cases/recorded_stream.h"
#include "conformance/oracle/event.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Demand;

enum class Pace {
    every_event,  // no undelivered event is overwritten
    unpaced,
    sleeps,  // as every_event, and the consumer falls asleep after every few events
};

constexpr std::uint64_t kLargestCapacity = 256ull << 20;
constexpr std::uint64_t kMostBetweenSleeps = 64;
constexpr std::uint64_t kEventsPerIteration = 32;

// Every event fits: the producer writes events of up to half the capacity (5.1.7 step 5).
std::uint64_t capacity_for(const StreamFacts& facts, const Stage& stage) {
    return std::min(kLargestCapacity, std::max(stage.settings().capacity_bytes,
                                               std::bit_ceil(2 * facts.largest_bytes)));
}

// One play of the stream.
class StreamPlay {
  public:
    StreamPlay(Stage& stage, Pace pace, bool has_resize)
        : stage_(stage), pace_(pace), has_resize_(has_resize) {}

    CaseOutcome run() {
        try {
            StreamPart part = read_stream_part(stage_.settings().stream);
            facts_ = part.facts;
            start();
            emit_all(std::move(part.events));
        } catch (const StreamError& error) {
            stop_inconclusive(error.what());  // the file has changed since the run began
        }
        stage_.wait_asleep();
        CaseOutcome outcome = stage_.finish();
        if (outcome.verdict == Verdict::pass) outcome.message = summary();
        return outcome;
    }

  private:
    void start() {
        set_up_cpus(stage_, facts_.cpus, capacity_for(facts_, stage_));
        stage_.rings().events().take_timestamps_as_given();
        stage_.start();
        stage_.waits().mapped();
        unread_bytes_.assign(facts_.cpus, 0);
        until_sleep_ = next_until_sleep();
    }

    void emit_all(std::vector<RecordedStream::Recorded> events) {
        for (std::uint64_t i = 0; i < events.size(); ++i) {
            RecordedStream::Recorded& recorded = events[i];
            if (has_resize_ && i == facts_.events / 2)
                stage_.resize(std::min(kLargestCapacity, 2 * stage_.capacity_bytes()));
            make_room(recorded.cpu, encoded_bytes(recorded.spec));
            stage_.rings().emit(recorded.cpu, std::move(recorded.spec));
            if (pace_ == Pace::unpaced && i % kEventsPerIteration == 0) stage_.waits().let_run(0);
            if (pace_ == Pace::sleeps && --until_sleep_ == 0) sleep();
        }
    }

    // Call it before an event that would overwrite undelivered ones.
    void make_room(std::uint32_t cpu, std::uint64_t bytes) {
        std::uint64_t& unread = unread_bytes_.at(cpu);
        if (pace_ != Pace::unpaced && unread + bytes > capacity(stage_, cpu)) {
            stage_.waits().delivered(cpu);
            unread = 0;
        }
        unread += bytes;
    }

    void sleep() {
        stage_.wait_asleep();
        std::fill(unread_bytes_.begin(), unread_bytes_.end(), 0);
        until_sleep_ = next_until_sleep();
    }

    std::uint64_t next_until_sleep() {
        return 1 + stage_.rings().events().random() % kMostBetweenSleeps;
    }

    std::string summary() const {
        return fmt::format("{}{} events of {} CPU{}, {} bytes{}",
                           facts_.has_more ? "in part: the first " : "", facts_.events, facts_.cpus,
                           facts_.cpus == 1 ? "" : "s", facts_.bytes,
                           facts_.has_other_cpus
                               ? fmt::format("; those of CPU {} and above on CPU modulo {}",
                                             RecordedStream::kMostCpus, RecordedStream::kMostCpus)
                               : "");
    }

    Stage& stage_;
    const Pace pace_;
    const bool has_resize_;
    StreamFacts facts_;
    std::vector<std::uint64_t> unread_bytes_;  // of each CPU, at most
    std::uint64_t until_sleep_ = 0;
};

CaseFunction play(Pace pace, bool has_resize = false) {
    return [pace, has_resize](Stage& stage) { return StreamPlay(stage, pace, has_resize).run(); };
}

}  // namespace

const std::vector<Case> kStreamCases = {
    {"stream/every-event", must, "recorded events, none of them overwritten",
     "Emit the events of the file of --stream. Wait for the consumer before an unread one would be "
     "overwritten.",
     kOwnBytes, play(Pace::every_event), stream, "5.1.8"},
    {"stream/as-fast-as-possible", must, "recorded events without a pause",
     "Emit the events of the file of --stream without waiting for the consumer.",
     "The consumer delivers what is not overwritten once, in order, with exact counts of the lost "
     "events.",
     play(Pace::unpaced), stream, "5.1.9"},
    {"stream/with-a-resize", must, "recorded events with a resize in the middle",
     "Emit the events of the file of --stream. Double the capacity of every buffer in the middle.",
     "The consumer neither loses an event in the change of buffers nor delivers one twice.",
     play(Pace::every_event, true), stream, "5.1.8.4"},
    {"stream/between-sleeps", must, "recorded events for a sleeping consumer",
     "Emit the events of the file of --stream, a few at a time. Wait until the consumer sleeps "
     "before the next ones.",
     kDelivers, play(Pace::sleeps), stream, "5.1.8.2"},
};

}  // namespace kmes::conformance
