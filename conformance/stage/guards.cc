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

// The interval between two attempts to guard a page.
constexpr std::chrono::milliseconds kGuardPoll{3};
// The recorder stops recording accesses to data after this number, because each takes some time.
// The loads of the metadata are few and decide what the consumer does, so they have a limit of
// their own.
constexpr std::uint64_t kAccessesRecorded = 40000;
constexpr std::uint64_t kMetadataAccessesRecorded = 20000;

}  // namespace

Tracer& Guards::tracer() const {
    return parts_.testee.tracer();
}

// -- Guards of a case ------------------------------------------------------------------------

// Callers count all metadata as page 0.
Guards::Pages Guards::pages_of(MappingId mapping, std::uint64_t first_page, std::uint64_t pages) {
    const std::uint64_t more = kMetadataPages - 1;
    return first_page == 0 ? Pages{mapping, 0, pages + more}
                           : Pages{mapping, first_page + more, pages};
}

void Guards::guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
                   GuardFunction function, SteppedFunction stepped) {
    constexpr int kTries = 10;
    const BufferIndex buffer = parts_.rings->history().current_buffer(cpu);
    if (!parts_.buffers.has_mapped(buffer))
        throw SuiteError("the consumer has not mapped this buffer yet");
    on_guard_ = std::move(function);
    on_stepped_ = std::move(stepped);
    bool is_mapped = false;
    for (int tries = 0; tries < kTries; ++tries) {
        const std::optional<MappingId> mapping = parts_.buffers.mapping_of(
            buffer, parts_.wait_log.last_sleeper(cpu), tracer().mappings());
        is_mapped = mapping.has_value();
        if (mapping) {
            const Pages wanted = pages_of(*mapping, first_page, pages);
            if (tracer().guards().add(*mapping, wanted.first_page, wanted.pages)) {
                guarded_.push_back(wanted);
                return;
            }
        }
        parts_.events.pump(Clock::now() + kGuardPoll);
        if (parts_.testee.end()) break;
    }
    if (parts_.events.has_gone_or_stop()) return;
    stop_inconclusive(fmt::format(
        "CPU {}: {}", cpu,
        is_mapped ? "the pages of the consumer's mapping could not be guarded"
                  : "the consumer has unmapped the buffer, so no page could be guarded"));
}

void Guards::set_decider(AccessDecider& decider) {
    decider_ = &decider;
    on_guard_ = [&decider](const GuardHit& hit) { return decider.decide(hit); };
}

void Guards::guard_mapping(const Mapped& mapped, Guarded what) {
    const MappingId id = mapped.mapping.id;
    const std::uint64_t all_pages = mapped.mapping.length_bytes / kPageBytes;
    const std::uint64_t pages =
        what == Guarded::all ? all_pages : std::min(all_pages, kMetadataPages);
    const std::uint64_t first_page = mapped.mapping.offset_bytes / kPageBytes;
    if (!tracer().guards().add(id, first_page, pages)) {
        if (parts_.events.has_gone_or_stop()) return;
        const bool is_there = std::ranges::any_of(
            tracer().mappings(), [&](const Mapping& mapping) { return mapping.id == id; });
        stop_inconclusive(
            is_there ? "the pages of the consumer's new mapping could not be guarded"
                     : "the consumer has unmapped its new mapping, so no page could be guarded");
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
            if (!is_recording_data())
                tracer().guards().add(mapping.id, kMetadataPages, pages - kMetadataPages);
        }
    }
}

void Guards::release_data() {
    for (Pages& each : guarded_) {
        each = {each.mapping, 0, kMetadataPages};
        // A mapping that was removed meanwhile needs no guard.
        if (!is_recording_data() && tracer().guards().remove_all(each.mapping))
            tracer().guards().add(each.mapping, 0, kMetadataPages);
    }
}

void Guards::release() {
    parts_.reads.forget();
    for (const Pages& each : guarded_) {
        // The recorder's guards stay, but no longer call the function of the case.
        if (!is_recording_data()) guard_for_recorder_alone(each.mapping);
    }
    guarded_.clear();
    on_guard_ = nullptr;
    on_stepped_ = nullptr;
}

bool Guards::let_reads_pass(MappingId mapping, bool pass) {
    return tracer().guards().let_reads_pass(mapping, pass);
}

void Guards::step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                       const std::function<void()>& between) {
    tracer().guards().step_torn(hit.tid, split_bytes, between);
}

bool Guards::step_everything() const {
    return tracer().guards().stepping() == Stepping::kSingleStep && stop_any();
}

// -- Hits ------------------------------------------------------------------------------------

bool Guards::has_plain_hits() const {
    return decider_ != nullptr && !parts_.settings.record_accesses;
}

bool Guards::count_if_plain(const GuardHit& hit) {
    if (!decider_->is_plain(hit)) return false;
    parts_.clock.note_work();
    ++hits_;
    return true;
}

void Guards::hit(const GuardHit& event) {
    const bool recording =
        event.place.offset_bytes < kMetadataBytes ? is_recording() : is_recording_data();
    const bool asked = is_asked_for(event);
    // A consumer that only repeats recorded loads makes no progress.
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
        return parts_.recorder.accesses().accessed(event, nullptr);
    const GuardStep step = tracer().guards().step(event.tid);
    if (step.outcome == GuardStep::Outcome::kDone)
        parts_.recorder.accesses().accessed(event, &step);
    if (asked && on_stepped_) on_stepped_(event, step);
}

// True if the case has guarded this page, and not only the recorder.
bool Guards::is_asked_for(const GuardHit& event) const {
    const std::uint64_t page = event.place.offset_bytes / kPageBytes;
    if (!parts_.settings.record_accesses) return on_guard_ != nullptr;
    return on_guard_ && std::any_of(guarded_.begin(), guarded_.end(), [&](const Pages& each) {
               return each.mapping == event.place.mapping && page - each.first_page < each.pages;
           });
}

bool Guards::is_recording() const {
    return parts_.settings.record_accesses &&
           accesses_recorded_ < kAccessesRecorded + kMetadataAccessesRecorded;
}

bool Guards::is_recording_data() const {
    return parts_.settings.record_accesses && accesses_recorded_ < kAccessesRecorded;
}

void Guards::record_accesses_of(const Mapping& mapping) {
    if (!is_recording()) return;
    const std::uint64_t first_page = mapping.offset_bytes / kPageBytes;
    std::uint64_t pages = mapping.length_bytes / kPageBytes;
    if (!is_recording_data()) {
        if (first_page >= kMetadataPages) return;
        pages = std::min(pages, kMetadataPages - first_page);
    }
    tracer().guards().add(mapping.id, first_page, pages);
}

// Removes the guards of a case, and those of the recorder that are needed no longer.
void Guards::guard_for_recorder_alone(MappingId mapping) {
    // The result may be false: the mapping is gone, or no thread could remove its guards. In the
    // second case the next hit on one of them calls this function again.
    tracer().guards().remove_all(mapping);
    if (is_recording()) tracer().guards().add(mapping, 0, kMetadataPages);
}

// Removes a guard of the recorder that is needed no longer. The guards of the case stay.
void Guards::stop_recording(const GuardHit& event) {
    if (!is_recording()) parts_.reads.forget();
    parts_.recorder.accesses().accessed(event, nullptr);
    guard_for_recorder_alone(event.place.mapping);
    if (!on_guard_) return;
    for (const Pages& each : guarded_) {
        if (each.mapping == event.place.mapping)
            tracer().guards().add(each.mapping, each.first_page, each.pages);
    }
}

}  // namespace kmes::conformance
