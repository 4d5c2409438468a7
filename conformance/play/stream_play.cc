// SPDX-License-Identifier: MIT
//
// See stream_play.h.
#include "conformance/play/stream_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/event.h"
#include "conformance/play/play.h"
#include "conformance/play/recorded_stream.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kLargestCapacity = 256ull << 20;
constexpr std::uint64_t kMostBetweenSleeps = 64;
constexpr std::uint64_t kEventsPerIteration = 32;

// Every event fits: the producer writes events of up to half the capacity (5.1.7 step 5).
std::uint64_t capacity_for(const StreamFacts& facts, const Stage& stage) {
    return std::min(kLargestCapacity, std::max(stage.settings().capacity_bytes,
                                               std::bit_ceil(2 * facts.largest_bytes)));
}

// One play of the stream.
class Streaming {
  public:
    Streaming(Stage& stage, const StreamPlay& play) : stage_(stage), play_(play) {}

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
            if (play_.has_resize && i == facts_.events / 2)
                stage_.resize(std::min(kLargestCapacity, 2 * stage_.capacity_bytes()));
            make_room(recorded.cpu, encoded_bytes(recorded.spec));
            stage_.rings().emit(recorded.cpu, std::move(recorded.spec));
            if (play_.pace == Pace::unpaced && i % kEventsPerIteration == 0)
                stage_.waits().let_run(0);
            if (play_.pace == Pace::sleeps && --until_sleep_ == 0) sleep();
        }
    }

    // Call it before an event that would overwrite undelivered ones.
    void make_room(std::uint32_t cpu, std::uint64_t bytes) {
        std::uint64_t& unread = unread_bytes_.at(cpu);
        if (play_.pace != Pace::unpaced && unread + bytes > capacity(stage_, cpu)) {
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
    const StreamPlay play_;
    StreamFacts facts_;
    std::vector<std::uint64_t> unread_bytes_;  // of each CPU, at most
    std::uint64_t until_sleep_ = 0;
};

}  // namespace

CaseOutcome StreamPlay::operator()(Stage& stage) const {
    return Streaming(stage, *this).run();
}

}  // namespace kmes::conformance
