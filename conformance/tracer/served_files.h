// SPDX-License-Identifier: MIT
//
// The files of the served buffers, and the runner's own mappings of them, which have no guards.
// Knows files and layouts, no processes.

#ifndef CONFORMANCE_TRACER_SERVED_FILES_H_
#define CONFORMANCE_TRACER_SERVED_FILES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/tracer/proc.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

struct ServedFile {
    int metadata_fd = -1;
    int data_fd = -1;  // -1: a buffer of the kernel, all of which metadata_fd maps
    uint64_t metadata_bytes = kPageBytes;
    uint64_t capacity_bytes = 0;
    uint64_t expected_mapping_bytes = 0;
    bool takes_only_whole_mapping = false;
    uint64_t reported_capacity_bytes = 0;  // by the last attach
    FileIdentity identity;
    uint32_t attach_call = 0;  // the last call that returned it
    // The runner's own mapping: metadata page, data, data again (read-only). Null: not mapped yet.
    uint8_t* view = nullptr;

    uint64_t layout_bytes() const { return metadata_bytes + 2 * capacity_bytes; }
    // The testee may write the last page before the data.
    bool is_writable(uint64_t layout_offset) const {
        return layout_offset < metadata_bytes && layout_offset >= metadata_bytes - kPageBytes;
    }
};

class ServedFiles {
  public:
    ServedFiles() = default;
    ~ServedFiles();
    ServedFiles(const ServedFiles&) = delete;
    ServedFiles& operator=(const ServedFiles&) = delete;

    // See Tracer::add_buffer.
    BufferId add(const ServedBuffer& buffer);
    bool is_empty() const { return files_.empty(); }
    // Throws std::out_of_range for an unknown buffer. The reference holds until the next add().
    const ServedFile& at(BufferId id) const { return files_.at(id); }
    std::optional<BufferId> find(const FileIdentity& identity) const;

    // The call with this number has returned the buffer.
    void note_attached(BufferId id, uint32_t attach_call) {
        files_.at(id).attach_call = attach_call;
    }
    void note_capacity(BufferId id, uint64_t reported_bytes) {
        files_.at(id).reported_capacity_bytes = reported_bytes;
    }

    // The runner's address of these bytes of the layout. Null if they are not all in it, or cannot
    // be mapped.
    uint8_t* bytes_at(BufferId id, uint64_t layout_offset, uint64_t size_bytes);
    // The bytes in the buffer; the first 8 of a longer access.
    uint64_t value_of(const BufferAccess& access);

  private:
    uint8_t* view_of(BufferId id);

    std::vector<ServedFile> files_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SERVED_FILES_H_
