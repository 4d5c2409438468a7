// SPDX-License-Identifier: MIT
//
// The loads of the testee from the metadata of each buffer, as far as guards stopped them. They are
// the evidence for E2 and E3. Knows no thread and no wait.
#ifndef KMES_CONFORMANCE_STAGE_METADATA_READS_H_
#define KMES_CONFORMANCE_STAGE_METADATA_READS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/tracer/events.h"

namespace kmes::conformance {

class MetadataReads {
  public:
    explicit MetadataReads(const ServedBuffers& buffers) : buffers_(buffers) {}
    // To be called first. `rings` outlives this object.
    void watch(const Rings& rings) { rings_ = &rings; }

    // Records an access that the testee is about to do.
    void note(const GuardHit& hit);
    // Records the value of futex_counter that this access is going to read. To be called after the
    // actions of the case before the access.
    void note_counters(const GuardHit& hit);
    // Forgets the loads of futex_counter. To be called when some later accesses will not be seen.
    void forget();

    // True if the last load of futex_counter came after the last load of write_pos.
    bool is_counter_read_last(BufferIndex buffer) const { return counter_last_.contains(buffer); }
    // True if the last load of futex_counter came after a load of generation that followed the last
    // store to need_wake, and no load of generation came later.
    bool is_counter_read_after_recheck(BufferIndex buffer) const {
        return counter_after_recheck_.contains(buffer);
    }
    // Returns History::operations() at the last load of write_pos. Nothing: no load was seen.
    std::optional<std::uint64_t> operations_at_write_pos(BufferIndex buffer) const;
    // Returns the last value read from futex_counter, if all loads were seen and none returned
    // `expected`.
    std::optional<std::uint32_t> counter_read_instead(BufferIndex buffer,
                                                      std::uint32_t expected) const;

  private:
    void note_recheck(const BufferAccess& access, BufferIndex buffer);

    const ServedBuffers& buffers_;
    const Rings* rings_ = nullptr;
    std::set<BufferIndex> counter_last_;
    std::set<BufferIndex> asked_;      // need_wake was stored
    std::set<BufferIndex> rechecked_;  // generation was loaded after the last store to need_wake
    std::set<BufferIndex> counter_after_recheck_;
    std::map<BufferIndex, std::deque<std::uint32_t>> counters_;  // the last values, oldest first
    std::map<BufferIndex, std::uint64_t> write_pos_;             // operations at the last load
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_METADATA_READS_H_
