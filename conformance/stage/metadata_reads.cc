// SPDX-License-Identifier: MIT
//
// See metadata_reads.h.
#include "conformance/stage/metadata_reads.h"

#include <algorithm>
#include <cstddef>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

void MetadataReads::note(const GuardHit& hit) {
    for (const BufferAccess& access : hit.accesses) {
        // Most accesses of a run are to events, and need no lookup.
        if (access.place.offset_bytes > kFutexWordOffset && !access.touches(kNeedWakeOffset))
            continue;
        const std::optional<BufferIndex> buffer = buffers_.index_of(access.place.buffer);
        if (!buffer) continue;
        note_recheck(access, *buffer);
        if (!access.is_read) continue;
        if (access.touches(kWritePosOffset)) {
            counter_last_.erase(*buffer);
            write_pos_[*buffer] = rings_->history().operations();
        } else if (access.touches(kFutexWordOffset)) {
            counter_last_.insert(*buffer);
        }
    }
}

void MetadataReads::note_recheck(const BufferAccess& access, BufferIndex buffer) {
    if (access.is_write && access.touches(kNeedWakeOffset)) {
        asked_.insert(buffer);
        rechecked_.erase(buffer);
        counter_after_recheck_.erase(buffer);
    } else if (access.is_read && access.touches(kGenerationOffset)) {
        if (asked_.contains(buffer)) rechecked_.insert(buffer);
        counter_after_recheck_.erase(buffer);
    } else if (access.is_read && access.touches(kFutexWordOffset) && rechecked_.contains(buffer)) {
        counter_after_recheck_.insert(buffer);
    }
}

// A load of a part of the word, or of more than the word, can have any purpose.
void MetadataReads::note_counters(const GuardHit& hit) {
    constexpr std::size_t kKept = 64;
    for (const BufferAccess& access : hit.accesses) {
        if (!access.is_read || !access.touches(kFutexWordOffset, 4)) continue;
        const std::optional<BufferIndex> buffer = buffers_.index_of(access.place.buffer);
        if (!buffer) continue;
        std::deque<std::uint32_t>& values = counters_[*buffer];
        if (access.place.offset_bytes == kFutexWordOffset && access.size_bytes == 4)
            values.push_back(rings_->counters().of(*buffer));
        else
            values.clear();
        if (values.size() > kKept) values.pop_front();
    }
}

void MetadataReads::forget() {
    counter_last_.clear();
    asked_.clear();
    rechecked_.clear();
    counter_after_recheck_.clear();
    counters_.clear();
}

std::optional<std::uint64_t> MetadataReads::operations_at_write_pos(BufferIndex buffer) const {
    const auto found = write_pos_.find(buffer);
    if (found == write_pos_.end()) return std::nullopt;
    return found->second;
}

std::optional<std::uint32_t> MetadataReads::counter_read_instead(BufferIndex buffer,
                                                                 std::uint32_t expected) const {
    const auto read = counters_.find(buffer);
    if (read == counters_.end() || read->second.empty()) return std::nullopt;
    const std::deque<std::uint32_t>& values = read->second;
    if (std::find(values.begin(), values.end(), expected) != values.end()) return std::nullopt;
    return values.back();
}

}  // namespace kmes::conformance
