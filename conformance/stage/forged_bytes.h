// SPDX-License-Identifier: MIT
//
// Writes bytes into buffers without the producer: malformed metadata and data, and the stores of
// another consumer. Remembers these bytes, so that no check blames the testee for them. Knows no
// operation of the producer.
#ifndef KMES_CONFORMANCE_STAGE_FORGED_BYTES_H_
#define KMES_CONFORMANCE_STAGE_FORGED_BYTES_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

class ProducerSteps;

class ForgedBytes {
  public:
    // All arguments outlive this object.
    ForgedBytes(const History& history, RingBackend& backend, ProducerSteps& steps)
        : history_(history), backend_(backend), steps_(steps) {}

    // Writes bytes of the metadata page. Throws SuiteError if they do not fit into the page.
    void write_metadata(BufferIndex buffer, std::uint64_t offset,
                        std::span<const std::uint8_t> bytes);
    // Writes bytes of the data region, which both halves show (5.1.4). Throws SuiteError if there
    // are more than the capacity.
    void write_data(BufferIndex buffer, std::uint64_t position,
                    std::span<const std::uint8_t> bytes);
    // Stores to need_wake: a store of the testee that the suite has delayed, or a store of another
    // consumer. `text` is the step of the trace: "the suite holds this store back".
    void put_need_wake(BufferIndex buffer, std::uint8_t value, const std::string& text);

    bool has_put_need_wake(BufferIndex buffer) const { return flags_put_.contains(buffer); }
    bool has_written_metadata(BufferIndex buffer) const { return metadata_.contains(buffer); }
    // True if the suite has written data of any buffer.
    bool has_written_data() const { return has_written_data_; }
    // Copies the forged bytes of this buffer's metadata page into `page`, a copy of that page.
    void put_metadata_into(BufferIndex buffer, std::span<std::uint8_t> page) const;

  private:
    using BytesAtOffset = std::pair<std::uint64_t, std::vector<std::uint8_t>>;

    const History& history_;
    RingBackend& backend_;
    ProducerSteps& steps_;
    std::map<BufferIndex, std::vector<BytesAtOffset>> metadata_;
    bool has_written_data_ = false;
    std::set<BufferIndex> flags_put_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_FORGED_BYTES_H_
