// SPDX-License-Identifier: MIT
//
// The buffers of the rings as the tracer knows them: the id of each, and its mappings in the
// testee. Knows no history and no process.
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
    // The tracer serves this buffer under this id.
    void serve(BufferIndex buffer, BufferId id);
    const std::map<BufferIndex, BufferId>& ids() const { return ids_; }
    BufferId id_of(BufferIndex buffer) const { return ids_.at(buffer); }
    // Nothing: this stage does not serve that id.
    std::optional<BufferIndex> index_of(BufferId id) const;
    // The buffer that a hit of a guard is in.
    std::optional<BufferIndex> buffer_at(const BufferPlace& place) const {
        return index_of(place.buffer);
    }

    // A thread has mapped the buffer. Returns whether this is the first mapping of the buffer.
    bool note_mapped(BufferIndex buffer, MappingId mapping, pid_t maker);
    bool has_mapped_any() const { return !mapped_.empty(); }
    // The testee has mapped the buffer at some time. It may have unmapped it since.
    bool has_mapped(BufferIndex buffer) const { return mapped_.contains(buffer); }
    // The thread that made the newest mapping of a buffer that was mapped.
    pid_t last_maker_of(BufferIndex buffer) const { return makers_.at(mapped_.at(buffer)); }
    // The mapping through which the thread `reader` most likely reads: its own, or else the newest,
    // or else any of `mappings`, the current ones. Another thread may have mapped the buffer too,
    // and have unmapped it at once.
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
