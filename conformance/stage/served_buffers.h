// SPDX-License-Identifier: MIT
//
// The ids under which the tracer serves the buffers of the rings, and their mappings in the testee.
// Knows no history and no process.
#ifndef KMES_CONFORMANCE_STAGE_SERVED_BUFFERS_H_
#define KMES_CONFORMANCE_STAGE_SERVED_BUFFERS_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <vector>

#include "conformance/model/operations.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class ServedBuffers {
  public:
    // Records that the tracer serves this buffer under this id.
    void serve(BufferIndex buffer, BufferId id);
    const std::map<BufferIndex, BufferId>& ids() const { return ids_; }
    BufferId id_of(BufferIndex buffer) const { return ids_.at(buffer); }
    // Returns the buffer with this id. Nothing: this stage does not serve the id.
    std::optional<BufferIndex> index_of(BufferId id) const;
    // Returns the buffer of a guard hit.
    std::optional<BufferIndex> buffer_at(const BufferPlace& place) const {
        return index_of(place.buffer);
    }

    // Records that a thread has mapped the buffer. Returns whether this is the first mapping of the
    // buffer.
    bool note_mapped(BufferIndex buffer, MappingId mapping, pid_t maker);
    bool has_mapped_any() const { return !mapped_.empty(); }
    // True if the testee has ever mapped the buffer. It may have unmapped it since.
    bool has_mapped(BufferIndex buffer) const { return mapped_.contains(buffer); }
    // Returns the thread that made the newest mapping of the buffer, which must have been mapped.
    pid_t last_maker_of(BufferIndex buffer) const { return makers_.at(mapped_.at(buffer)); }
    // Returns the mapping through which the thread `reader` most likely reads: its own, else the
    // newest, else any of `mappings`, the current ones. (Another thread may have mapped the buffer
    // too, and may have unmapped it at once.)
    std::optional<MappingId> mapping_of(BufferIndex buffer, pid_t reader,
                                        const std::vector<Mapping>& mappings) const;

  private:
    std::map<BufferIndex, BufferId> ids_;
    std::map<BufferId, BufferIndex> indices_;
    std::map<BufferIndex, MappingId> mapped_;  // the newest mapping of each buffer
    std::map<MappingId, pid_t> makers_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SERVED_BUFFERS_H_
