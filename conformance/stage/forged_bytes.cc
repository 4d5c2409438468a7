// SPDX-License-Identifier: MIT
//
// See forged_bytes.h.
#include "conformance/stage/forged_bytes.h"

#include <algorithm>

#include "conformance/oracle/layout.h"
#include "conformance/stage/producer_steps.h"

namespace kmes::conformance {

void ForgedBytes::write_metadata(BufferIndex buffer, std::uint64_t offset,
                                 std::span<const std::uint8_t> bytes) {
    if (offset + bytes.size() > kMetadataBytes) throw SuiteError("beyond the metadata");
    backend_.write(buffer, offset, bytes);
    metadata_[buffer].emplace_back(offset, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    steps_.planted(buffer, false, offset, bytes);
}

void ForgedBytes::write_data(BufferIndex buffer, std::uint64_t position,
                             std::span<const std::uint8_t> bytes) {
    const std::uint64_t capacity = history_.buffer(buffer).capacity;
    if (bytes.size() > capacity) throw SuiteError("beyond the data region");
    backend_.write(buffer, kMetadataBytes + (position & (capacity - 1)), bytes);
    has_written_data_ = true;
    steps_.planted(buffer, true, position, bytes);
}

void ForgedBytes::put_need_wake(BufferIndex buffer, std::uint8_t value, const std::string& text) {
    __atomic_store_n(backend_.base(buffer) + kNeedWakeOffset, value, __ATOMIC_SEQ_CST);
    flags_put_.insert(buffer);
    steps_.flag_put(buffer, text);
}

void ForgedBytes::put_metadata_into(BufferIndex buffer, std::span<std::uint8_t> page) const {
    const auto found = metadata_.find(buffer);
    if (found == metadata_.end()) return;
    for (const auto& [offset, bytes] : found->second)
        std::copy(bytes.begin(), bytes.end(), page.subspan(offset).begin());
}

}  // namespace kmes::conformance
