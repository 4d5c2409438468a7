// SPDX-License-Identifier: MIT
//
// The mappings of served buffers in the testee, which of their pages are guarded, and the memory
// that the testee has removed. A record: it changes nothing in the testee.

#ifndef CONFORMANCE_TRACER_MAPPING_TABLE_H_
#define CONFORMANCE_TRACER_MAPPING_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/tracer/proc.h"
#include "conformance/tracer/removals.h"
#include "conformance/tracer/served_files.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// Returns the protections with which a page can be read. PROT_EXEC is one of them on a machine
// without protection keys.
uint64_t readable_protections();

inline uint64_t whole_pages(uint64_t length_bytes) {
    return (length_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
}

// Pages of a mapping whose protection the testee has changed; [begin, end) are offsets in the
// mapping.
struct ProtectedPart {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t protection = 0;
};

struct LiveMapping {
    Mapping mapping;            // the part that is still mapped
    uint64_t mapped_bytes = 0;  // the length at the mmap
    bool live = true;
    uint32_t attach_call = 0;
    // Address of the second mapping of the same buffer, which is never guarded; 0: none.
    uint64_t hidden = 0;
    uint64_t hidden_bytes = 0;
    bool reads_pass = false;  // a guarded metadata page stops only writes
    // Offset in the mapping, length; whole pages.
    std::vector<std::pair<uint64_t, uint64_t>> guards;
    std::vector<ProtectedPart> protections;  // disjoint

    bool contains(uint64_t address) const {
        return address - mapping.address < whole_pages(mapping.length_bytes);
    }
    // Whether the range of `length_bytes` from `address` overlaps the mapping.
    bool overlaps(uint64_t address, uint64_t length_bytes) const;
    bool is_guarded(uint64_t address) const;
    // Whether a guard begins or ends at this address.
    bool is_end_of_guard(uint64_t address) const;
    // Returns the number of guarded bytes from `address` on (`is_backward`: before it), up to the
    // next place where a guard begins or ends: a case that guards a page sees an access to it also
    // where the recorder guards the pages beside it. Also up to a page that the testee has closed,
    // or opened. Stops counting at about 1 MiB.
    uint64_t guarded_bytes(uint64_t address, bool is_backward) const;
    // The protection that the testee has given to the page at this offset of the mapping.
    uint64_t protection_at(uint64_t offset) const;
    // The first offset after this one where such a protection may change.
    uint64_t end_of_protection(uint64_t offset) const;
    // Whether the testee has given each of these bytes one of the protections in `wanted`
    // (readable_protections(), PROT_WRITE).
    bool permits(uint64_t address, uint64_t size_bytes, uint64_t wanted) const;
    void note_protection(const ProtectedPart& part);
    BufferPlace place_at(uint64_t address) const {
        return {mapping.buffer, mapping.id, address - mapping.address + mapping.offset_bytes};
    }

    // Shortens the mapping to end at this address.
    void cut_off_at(uint64_t address);
    void end() {
        live = false;
        guards.clear();
        protections.clear();
    }
};

class MappingTable {
  public:
    // Gives the mapping its number.
    const LiveMapping& add(LiveMapping mapping);
    bool is_empty() const { return mappings_.empty(); }  // true only if there were never any
    size_t size() const { return mappings_.size(); }
    LiveMapping& operator[](MappingId id) { return mappings_[id]; }
    // All mappings of the run, including the removed ones.
    auto begin() { return mappings_.begin(); }
    auto end() { return mappings_.end(); }
    // The live mappings.
    std::vector<Mapping> list() const;

    // Each returns null if there is none.
    LiveMapping* find_live(MappingId id);
    LiveMapping* at(uint64_t address);
    LiveMapping* guarded_at(uint64_t address);
    // Whether a guard stops a load there. In a page that the testee has closed, the load faults.
    bool has_guard_for_load(uint64_t address);
    // The last removed mapping that contained this address.
    const LiveMapping* removed_at(uint64_t address) const;
    // The place of an address in a mapping, or in the second mapping of the same buffer.
    std::optional<BufferPlace> place_of(uint64_t address) const;

    bool any_guards() const;
    // For one step the guards are open: a fault now comes from the instruction itself.
    bool are_guards_open() const { return are_guards_open_; }
    void note_open_guards(bool are_open) { are_guards_open_ = are_open; }
    // The address of the first guarded metadata page; 0: none.
    uint64_t guarded_metadata_page() const;
    bool overlaps(uint64_t address, uint64_t length_bytes) const;
    // The lowest address above this one where a mapping or a guard begins or ends.
    uint64_t next_edge(uint64_t address) const;
    // Whether the testee has mapped the buffer since that attach.
    bool has_mapped(BufferId buffer, uint32_t attach_call) const;

    // All memory that was removed, whether it was of a buffer or not.
    Removals& removals() { return removals_; }
    const Removals& removals() const { return removals_; }
    void note_unmap(uint64_t address, uint64_t length_bytes);
    // The program was replaced: all mappings are gone.
    void note_exec();
    // Ends or shortens the mappings that are no longer whole in the memory map of the testee.
    void compare_with(const std::vector<MapsEntry>& maps, const ServedFiles& buffers);

  private:
    std::vector<LiveMapping> mappings_;
    Removals removals_;
    bool are_guards_open_ = false;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_MAPPING_TABLE_H_
