// SPDX-License-Identifier: MIT
//
// See unwritten_bytes.h.
#include "conformance/stage/unwritten_bytes.h"

#include <span>
#include <utility>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

std::vector<std::uint8_t> copy_of(const std::uint8_t* from, std::uint64_t bytes) {
    return {from, from + bytes};
}

}  // namespace

void UnwrittenBytes::save_old(const RingBackend& backend, BufferIndex buffer,
                              std::uint64_t capacity_bytes, std::uint64_t position,
                              const EventSpec& spec) {
    Kept kept;
    kept.buffer = buffer;
    kept.position = position;
    kept.offset_bytes = kMetadataBytes + (position & (capacity_bytes - 1));
    kept.header_bytes = encoded_bytes(spec) - spec.payload.size();
    // One copy is enough, because the data region is mapped twice in a row (5.1.4). An event over
    // half of the capacity is dropped.
    if (encoded_bytes(spec) <= capacity_bytes / 2)
        kept.before = copy_of(backend.base(buffer) + kept.offset_bytes, encoded_bytes(spec));
    kept_.push_back(std::move(kept));
}

void UnwrittenBytes::remove(RingBackend& backend, std::uint64_t published, BatchWritten written) {
    const std::vector<Kept> all = std::exchange(kept_, {});
    for (std::size_t i = written.event; i < all.size(); ++i) {
        const Kept& kept = all[i];
        // The producer has published the earlier events (E8): they stay.
        if (written.written == Written::whole || kept.position < published || kept.before.empty())
            continue;
        const Written of_this = i == written.event ? written.written : Written::nothing;
        const std::uint64_t there =
            written_bytes(of_this, kept.header_bytes, kept.before.size() - kept.header_bytes);
        const std::uint64_t offset_bytes = kept.offset_bytes + there;
        const std::uint64_t bytes = kept.before.size() - there;
        if (bytes == 0) continue;
        rests_.push_back(
            {kept.buffer, offset_bytes, copy_of(backend.base(kept.buffer) + offset_bytes, bytes)});
        backend.write(kept.buffer, offset_bytes, std::span(kept.before).subspan(there));
    }
}

void UnwrittenBytes::write_rest(RingBackend& backend) {
    for (const Rest& rest : std::exchange(rests_, {}))
        backend.write(rest.buffer, rest.offset_bytes, rest.bytes);
}

}  // namespace kmes::conformance
