// SPDX-License-Identifier: MIT
//
// See guards.h.
#include "conformance/stage/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "conformance/oracle/layout.h"
#include "conformance/stage/stage_parts.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

namespace {

// From one try to guard a page to the next.
constexpr std::chrono::milliseconds kGuardPoll{3};
// After so many the recorder records no more accesses: they take some time each.
constexpr std::uint64_t kAccessesRecorded = 40000;

}  // namespace

Tracer& Guards::tracer() const {
    return parts_.testee.tracer();
}

// -- What a case guards ----------------------------------------------------------------------

// Callers count all metadata as page 0.
Guards::Pages Guards::pages_of(MappingId mapping, std::uint64_t first_page, std::uint64_t pages) {
    const std::uint64_t more = kMetadataPages - 1;
    return first_page == 0 ? Pages{mapping, 0, pages + more}
                           : Pages{mapping, first_page + more, pages};
}

void Guards::guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
                   GuardFunction function, SteppedFunction stepped) {
    constexpr int kTries = 10;
    const BufferIndex buffer = parts_.rings->history().present_buffer(cpu);
    if (!parts_.buffers.has_mapped(buffer))
        throw SuiteError("the consumer has not mapped this buffer yet");
    on_guard_ = std::move(function);
    on_stepped_ = std::move(stepped);
    for (int tries = 0; tries < kTries; ++tries) {
        const std::optional<MappingId> mapping = parts_.buffers.mapping_of(
            buffer, parts_.wait_log.last_sleeper(cpu), tracer().mappings());
        if (mapping) {
            const Pages wanted = pages_of(*mapping, first_page, pages);
            if (tracer().guard_pages(*mapping, wanted.first_page, wanted.pages)) {
                guarded_.push_back(wanted);
                return;
            }
        }
        parts_.events.pump(Clock::now() + kGuardPoll);
        if (parts_.testee.end()) break;
    }
    if (parts_.events.has_gone_or_stop()) return;
    stop_inconclusive(fmt::format(
        "CPU {}: the consumer's pages could not be guarded, because it has unmapped the buffer",
        cpu));
}

void Guards::guard_mapping(const Mapped& mapped, Guarded what) {
    const MappingId id = mapped.mapping.id;
    const std::uint64_t all_pages = mapped.mapping.length_bytes / kPageBytes;
    const std::uint64_t pages =
        what == Guarded::all ? all_pages : std::min(all_pages, kMetadataPages);
    const std::uint64_t first_page = mapped.mapping.offset_bytes / kPageBytes;
    if (!tracer().guard_pages(id, first_page, pages)) {
        if (parts_.events.has_gone_or_stop()) return;
        stop_inconclusive(
            "the consumer's pages could not be guarded, because it has removed its new mapping");
    }
    guarded_.push_back({id, first_page, pages});
}

void Guards::guard_data() {
    for (const Mapping& mapping : tracer().mappings()) {
        const std::uint64_t pages = mapping.length_bytes / kPageBytes;
        for (Pages& each : guarded_) {
            if (each.mapping != mapping.id || mapping.offset_bytes != 0 || pages <= kMetadataPages)
                continue;
            each = {each.mapping, 0, pages};
            if (!is_recording())
                tracer().guard_pages(mapping.id, kMetadataPages, pages - kMetadataPages);
        }
    }
}

void Guards::release_data() {
    for (Pages& each : guarded_) {
        each = {each.mapping, 0, kMetadataPages};
        // What has been unmapped meanwhile needs no guard.
        if (!is_recording() && tracer().release_guards(each.mapping))
            tracer().guard_pages(each.mapping, 0, kMetadataPages);
    }
}

void Guards::release() {
    parts_.reads.forget();
    for (const Pages& each : guarded_) {
        // The recorder's guards stay, and the case is asked about them no longer.
        if (!is_recording()) tracer().release_guards(each.mapping);
    }
    guarded_.clear();
    on_guard_ = nullptr;
    on_stepped_ = nullptr;
}

bool Guards::let_reads_pass(MappingId mapping, bool pass) {
    return tracer().let_reads_pass(mapping, pass);
}

void Guards::step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                       const std::function<void()>& between) {
    tracer().step_guarded_torn(hit.tid, split_bytes, between);
}

bool Guards::step_everything() const {
    return tracer().stepping() == Stepping::kSingleStep && stop_any();
}

// -- Hits ------------------------------------------------------------------------------------

bool Guards::is_plain(const GuardHit& hit) {
    if (!on_plain_guard_(hit)) return false;
    parts_.clock.note_work();
    ++hits_;
    return true;
}

void Guards::hit(const GuardHit& event) {
    const bool recording = is_recording();
    const bool asked = is_asked_for(event);
    // A consumer that only repeats recorded loads makes no progress by that.
    if (asked) {
        parts_.clock.note_work();
        ++hits_;
    } else {
        ++accesses_recorded_;
    }
    if (!asked && !recording) return stop_recording(event);
    const AtGuard answer = asked ? on_guard_(event) : AtGuard::step;
    parts_.reads.note_counters(event);
    if (answer == AtGuard::release) release();
    if (answer == AtGuard::done || (answer == AtGuard::release && !recording))
        return parts_.recorder.accessed(event, nullptr);
    const GuardStep step = tracer().step_guarded(event.tid);
    if (step.outcome == GuardStep::Outcome::kDone) parts_.recorder.accessed(event, &step);
    if (asked && on_stepped_) on_stepped_(event, step);
}

// Whether the case has guarded this page, or only the recorder.
bool Guards::is_asked_for(const GuardHit& event) const {
    const std::uint64_t page = event.place.offset_bytes / kPageBytes;
    if (!parts_.settings.record_accesses) return on_guard_ != nullptr;
    return on_guard_ && std::any_of(guarded_.begin(), guarded_.end(), [&](const Pages& each) {
               return each.mapping == event.place.mapping && page - each.first_page < each.pages;
           });
}

bool Guards::is_recording() const {
    return parts_.settings.record_accesses && accesses_recorded_ < kAccessesRecorded;
}

void Guards::record_accesses_of(const Mapping& mapping) {
    if (!is_recording()) return;
    tracer().guard_pages(mapping.id, mapping.offset_bytes / kPageBytes,
                         mapping.length_bytes / kPageBytes);
}

// A guard of the recorder that is needed no longer: those of the case stay.
void Guards::stop_recording(const GuardHit& event) {
    parts_.reads.forget();
    parts_.recorder.accessed(event, nullptr);
    tracer().release_guards(event.place.mapping);
    if (!on_guard_) return;
    for (const Pages& each : guarded_) {
        if (each.mapping == event.place.mapping)
            tracer().guard_pages(each.mapping, each.first_page, each.pages);
    }
}

}  // namespace kmes::conformance
