// SPDX-License-Identifier: MIT
//
// See loop_record.h.
#include "conformance/stage/loop_record.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/model/step_texts.h"
#include "conformance/stage/stage_parts.h"

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

// Enough for some iterations of a loop that copies a small event.
constexpr unsigned kLoopAccesses = 400;
constexpr milliseconds kLoopTime{500};
constexpr milliseconds kLoopPoll{3};

void record_access(StageParts& parts, const GuardHit& hit) {
    const GuardStep step = parts.testee.tracer().guards().step(hit.tid);
    if (step.outcome == GuardStep::Outcome::kDone) parts.recorder.accesses().accessed(hit, &step);
}

}  // namespace

void record_loop(StageParts& parts, std::optional<std::uint32_t> cpu) {
    if (!parts.recorder.on() || parts.guards.stop_any() || parts.holding.is_frozen()) return;
    Tracer& tracer = parts.testee.tracer();
    if (tracer.guards().stepping() == Stepping::kSingleStep) return;
    std::vector<Mapping> mappings = tracer.mappings();
    std::erase_if(mappings, [&](const Mapping& mapping) {
        const std::optional<BufferIndex> index = parts.buffers.index_of(mapping.buffer);
        return !index || (cpu && parts.cpu_of(*index) != *cpu);
    });
    parts.recorder.scheduled(std::string(kLoopRecorded));
    for (const Mapping& mapping : mappings)
        tracer.guards().add(mapping.id, mapping.offset_bytes / kPageBytes,
                            mapping.length_bytes / kPageBytes);
    const TimePoint end = Clock::now() + kLoopTime;
    for (unsigned accesses = 0; accesses < kLoopAccesses && Clock::now() < end;) {
        const TracerEvent event = tracer.wait(Clock::now() + kLoopPoll);
        if (const auto* ended = std::get_if<Ended>(&event)) return parts.testee.note(*ended);
        const auto* hit = std::get_if<GuardHit>(&event);
        if (hit == nullptr) continue;
        record_access(parts, *hit);
        ++accesses;
    }
    for (const Mapping& mapping : mappings) tracer.guards().remove_all(mapping.id);
}

}  // namespace kmes::conformance
