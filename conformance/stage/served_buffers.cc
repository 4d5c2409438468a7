// SPDX-License-Identifier: MIT
//
// See served_buffers.h.
#include "conformance/stage/served_buffers.h"

namespace kmes::conformance {

void ServedBuffers::serve(BufferIndex buffer, BufferId id) {
    ids_[buffer] = id;
    indices_[id] = buffer;
}

std::optional<BufferIndex> ServedBuffers::index_of(BufferId id) const {
    const auto found = indices_.find(id);
    if (found == indices_.end()) return std::nullopt;
    return found->second;
}

bool ServedBuffers::note_mapped(BufferIndex buffer, MappingId mapping, pid_t maker) {
    const bool is_first = !has_mapped(buffer);
    mapped_[buffer] = mapping;
    makers_[mapping] = maker;
    return is_first;
}

std::optional<MappingId> ServedBuffers::mapping_of(BufferIndex buffer, pid_t reader,
                                                   const std::vector<Mapping>& mappings) const {
    std::optional<MappingId> best;
    int best_rank = -1;
    for (const Mapping& mapping : mappings) {
        if (mapping.offset_bytes != 0 || index_of(mapping.buffer) != buffer) continue;
        const auto maker = makers_.find(mapping.id);
        const bool is_its_own = maker != makers_.end() && maker->second == reader;
        const int rank = is_its_own ? 2 : mapping.id == mapped_.at(buffer) ? 1 : 0;
        if (rank <= best_rank) continue;
        best = mapping.id;
        best_rank = rank;
    }
    return best;
}

}  // namespace kmes::conformance
