// SPDX-License-Identifier: MIT
//
// How a stage holds its testee: all threads, one of them, or at each access to some pages. See
// stage.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "conformance/stage/stage.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

// How long a process that is going may take to be gone.
constexpr std::chrono::milliseconds kGoing{2000};

}  // namespace

void Stage::freeze() {
    if (!tracer_->freeze_all(Clock::now() + limit()) && !has_gone_or_stop()) {
        stop_inconclusive("a thread of the consumer could not be stopped in time");
    }
    frozen_ = true;
    read_report();
    recorder_.scheduled("the suite stops all threads of the consumer");
}

// What could not be done to a thread may have failed because its process is going: that is the
// testee's doing, and its end says more. True: it has ended every CPU before, and may go whatever
// its other threads are at.
bool Stage::has_gone_or_stop() {
    Patience patience(kGoing);
    while (!ended_ && !patience.is_over(tracer_->testee_threads())) {
        const TracerEvent event = tracer_->wait(Clock::now() + kPoll);
        if (const auto* ended = std::get_if<Ended>(&event)) on(*ended);
    }
    read_report();
    if (ended_ && !all_ended()) stop_ended();
    return ended_.has_value();
}

void Stage::thaw() {
    frozen_ = false;
    clock_.note_work();
    recorder_.scheduled("the suite continues all threads");
    tracer_->thaw_all();
}

void Stage::outrun(std::uint32_t cpu, std::uint64_t bytes) {
    freeze();
    rings_->outrun(cpu, bytes);
    thaw();
}

// Callers count all metadata as page 0.
Stage::GuardedPages Stage::pages_of(MappingId mapping, std::uint64_t first_page,
                                    std::uint64_t pages) {
    const std::uint64_t more = kMetadataPages - 1;
    return first_page == 0 ? GuardedPages{mapping, 0, pages + more}
                           : GuardedPages{mapping, first_page + more, pages};
}

void Stage::guard(std::uint32_t cpu, std::uint64_t first_page, std::uint64_t pages,
                  GuardFunction function, SteppedFunction stepped) {
    constexpr int kTries = 10;
    const BufferIndex buffer = rings_->history().present_buffer(cpu);
    if (!buffers_.has_mapped(buffer))
        throw SuiteError("the consumer has not mapped this buffer yet");
    on_guard_ = std::move(function);
    on_stepped_ = std::move(stepped);
    for (int tries = 0; tries < kTries; ++tries) {
        const std::optional<MappingId> mapping =
            buffers_.mapping_of(buffer, waits_.last_sleeper(cpu), tracer_->mappings());
        if (mapping) {
            const GuardedPages wanted = pages_of(*mapping, first_page, pages);
            if (tracer_->guard_pages(*mapping, wanted.first_page, wanted.pages)) {
                guarded_.push_back(wanted);
                return;
            }
        }
        pump(Clock::now() + kPoll);
        if (ended_) break;
    }
    if (has_gone_or_stop()) return;
    stop_inconclusive(fmt::format(
        "CPU {}: the consumer's pages could not be guarded, because it has unmapped the buffer",
        cpu));
}

void Stage::guard_data() {
    for (const Mapping& mapping : tracer_->mappings()) {
        const std::uint64_t pages = mapping.length_bytes / kPageBytes;
        for (GuardedPages& each : guarded_) {
            if (each.mapping != mapping.id || mapping.offset_bytes != 0 || pages <= kMetadataPages)
                continue;
            each = {each.mapping, 0, pages};
            if (!is_recording())
                tracer_->guard_pages(mapping.id, kMetadataPages, pages - kMetadataPages);
        }
    }
}

void Stage::release_data_guards() {
    for (GuardedPages& each : guarded_) {
        each = {each.mapping, 0, kMetadataPages};
        // What has been unmapped meanwhile needs no guard.
        if (!is_recording() && tracer_->release_guards(each.mapping))
            tracer_->guard_pages(each.mapping, 0, kMetadataPages);
    }
}

void Stage::guard_mapping(const Mapped& mapped, Guarded what) {
    const MappingId id = mapped.mapping.id;
    const std::uint64_t all_pages = mapped.mapping.length_bytes / kPageBytes;
    const std::uint64_t pages =
        what == Guarded::all ? all_pages : std::min(all_pages, kMetadataPages);
    const std::uint64_t first_page = mapped.mapping.offset_bytes / kPageBytes;
    if (!tracer_->guard_pages(id, first_page, pages)) {
        if (has_gone_or_stop()) return;
        stop_inconclusive(
            "the consumer's pages could not be guarded, because it has removed its new mapping");
    }
    guarded_.push_back({id, first_page, pages});
}

void Stage::step_torn(const GuardHit& hit, std::uint32_t split_bytes,
                      const std::function<void()>& between) {
    tracer_->step_guarded_torn(hit.tid, split_bytes, between);
}

void Stage::hold_while(pid_t tid, const std::function<bool()>& condition,
                       std::chrono::milliseconds at_most) {
    const auto others = [&] {
        std::vector<pid_t> threads = tracer_->testee_threads();
        std::erase(threads, tid);
        return threads;
    };
    Patience patience(at_most);
    recorder_.scheduled("the suite stops this thread", tid);
    tracer_->hold(tid);
    // It may have been held before this, and is let go in any case.
    while (!is_single_thread() && !ended_ && condition() && !patience.is_over(others()))
        pump(Clock::now() + kPoll);
    tracer_->release(tid);
    recorder_.scheduled("the suite continues this thread", tid);
    clock_.note_work();
    if (ended_) has_gone_or_stop();
}

void Stage::release_guards() {
    reads_.forget();
    for (const GuardedPages& each : guarded_) {
        // The recorder's guards stay, and are asked for no longer.
        if (!is_recording()) tracer_->release_guards(each.mapping);
    }
    guarded_.clear();
    on_guard_ = nullptr;
    on_stepped_ = nullptr;
}

}  // namespace kmes::conformance
