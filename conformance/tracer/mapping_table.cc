// SPDX-License-Identifier: MIT
//
// See mapping_table.h.

#include "conformance/tracer/mapping_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace kmes::conformance::tracing {
namespace {

constexpr uint64_t kMostGuardedBytes = uint64_t{1} << 20;

// Whether a string operation at these two neighbouring pages is two accesses.
bool is_border(const LiveMapping& live, uint64_t before, uint64_t page) {
    const uint64_t readable = readable_protections();
    return live.is_end_of_guard(std::max(before, page)) ||
           live.permits(before, 1, readable) != live.permits(page, 1, readable);
}

// Whether the kernel, which reads with the rights of this thread, can read a page that is only
// executable.
bool can_read_executable_page() {
    int pipe_ends[2];
    void* const page = mmap(nullptr, kPageBytes, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    const bool can_read = write(pipe_ends[1], page, 1) == 1;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    munmap(page, kPageBytes);
    return can_read;
}

// The end of the file mappings that follow this address without a gap.
uint64_t end_of_files(const std::vector<MapsEntry>& maps, uint64_t address) {
    uint64_t end = address;
    for (const MapsEntry& entry : maps) {
        const bool is_file = entry.file.inode != 0;
        if (is_file && entry.start <= end && end < entry.end) end = entry.end;
    }
    return end;
}

}  // namespace

uint64_t readable_protections() {
    static const uint64_t protections =
        PROT_READ | PROT_WRITE | (can_read_executable_page() ? PROT_EXEC : PROT_NONE);
    return protections;
}

bool LiveMapping::overlaps(uint64_t address, uint64_t length_bytes) const {
    return live && address < mapping.address + whole_pages(mapping.length_bytes) &&
           mapping.address < address + whole_pages(length_bytes);
}

bool LiveMapping::is_guarded(uint64_t address) const {
    const uint64_t offset = address - mapping.address;
    return std::any_of(guards.begin(), guards.end(),
                       [=](const auto& guard) { return offset - guard.first < guard.second; });
}

bool LiveMapping::is_end_of_guard(uint64_t address) const {
    const uint64_t offset = address - mapping.address;
    return std::any_of(guards.begin(), guards.end(), [=](const auto& guard) {
        return offset == guard.first || offset == guard.first + guard.second;
    });
}

uint64_t LiveMapping::protection_at(uint64_t offset) const {
    for (const ProtectedPart& part : protections) {
        if (part.begin <= offset && offset < part.end) return part.protection;
    }
    return mapping.protection;
}

uint64_t LiveMapping::end_of_protection(uint64_t offset) const {
    uint64_t end = UINT64_MAX;
    for (const ProtectedPart& part : protections) {
        if (part.begin > offset) end = std::min(end, part.begin);
        if (part.end > offset) end = std::min(end, part.end);
    }
    return end;
}

bool LiveMapping::permits(uint64_t address, uint64_t size_bytes, uint64_t wanted) const {
    uint64_t offset = address - mapping.address;
    const uint64_t end = offset + std::max<uint64_t>(size_bytes, 1);
    for (; offset < end; offset = end_of_protection(offset)) {
        if ((protection_at(offset) & wanted) == 0) return false;
    }
    return true;
}

void LiveMapping::note_protection(const ProtectedPart& part) {
    ProtectedPart added = part;
    std::vector<ProtectedPart> all;
    for (const ProtectedPart& old : protections) {
        const bool is_same = old.protection == part.protection;
        if (is_same && old.begin <= part.end && part.begin <= old.end) {
            // A testee may open page after page. One part for each would take long to search.
            added.begin = std::min(added.begin, old.begin);
            added.end = std::max(added.end, old.end);
            continue;
        }
        if (old.begin < part.begin)
            all.push_back({old.begin, std::min(old.end, part.begin), old.protection});
        if (old.end > part.end)
            all.push_back({std::max(old.begin, part.end), old.end, old.protection});
    }
    all.push_back(added);
    protections = std::move(all);
}

uint64_t LiveMapping::guarded_bytes(uint64_t address, bool is_backward) const {
    uint64_t at = (is_backward ? address - 1 : address) & ~(kPageBytes - 1);
    if (!is_guarded(at)) return 0;
    if (is_backward) {
        while (address - at < kMostGuardedBytes && !is_border(*this, at, at - kPageBytes))
            at -= kPageBytes;
        return address - at;
    }
    do {
        at += kPageBytes;
    } while (at - address < kMostGuardedBytes && !is_border(*this, at - kPageBytes, at));
    return at - address;
}

void LiveMapping::cut_off_at(uint64_t address) {
    const uint64_t length = address - mapping.address;
    mapping.length_bytes = length;
    std::erase_if(guards, [length](const auto& guard) { return guard.first >= length; });
    for (auto& [offset, bytes] : guards) bytes = std::min(bytes, length - offset);
    const uint64_t end = whole_pages(length);
    std::erase_if(protections, [end](const ProtectedPart& part) { return part.begin >= end; });
    for (ProtectedPart& part : protections) part.end = std::min(part.end, end);
}

const LiveMapping& MappingTable::add(LiveMapping mapping) {
    mapping.mapping.id = mappings_.size();
    mappings_.push_back(std::move(mapping));
    return mappings_.back();
}

std::vector<Mapping> MappingTable::list() const {
    std::vector<Mapping> result;
    for (const LiveMapping& live : mappings_) {
        if (live.live) result.push_back(live.mapping);
    }
    return result;
}

LiveMapping* MappingTable::find_live(MappingId id) {
    return id < mappings_.size() && mappings_[id].live ? &mappings_[id] : nullptr;
}

LiveMapping* MappingTable::at(uint64_t address) {
    const auto found =
        std::find_if(mappings_.begin(), mappings_.end(),
                     [=](const LiveMapping& live) { return live.live && live.contains(address); });
    return found == mappings_.end() ? nullptr : &*found;
}

LiveMapping* MappingTable::guarded_at(uint64_t address) {
    LiveMapping* live = at(address);
    return live != nullptr && live->is_guarded(address) ? live : nullptr;
}

const LiveMapping* MappingTable::removed_at(uint64_t address) const {
    const auto found =
        std::find_if(mappings_.rbegin(), mappings_.rend(), [=](const LiveMapping& each) {
            return !each.live && address - each.mapping.address < each.mapping.length_bytes;
        });
    return found == mappings_.rend() ? nullptr : &*found;
}

std::optional<BufferPlace> MappingTable::place_of(uint64_t address) const {
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        if (live.contains(address)) return live.place_at(address);
        // The hidden mapping has the same shape, and system calls may use it.
        const uint64_t same = address - live.hidden + live.mapping.address;
        if (live.hidden != 0 && live.contains(same)) return live.place_at(same);
    }
    return std::nullopt;
}

bool MappingTable::any_guards() const {
    return std::any_of(mappings_.begin(), mappings_.end(),
                       [](const LiveMapping& live) { return live.live && !live.guards.empty(); });
}

uint64_t MappingTable::guarded_metadata_page() const {
    for (const LiveMapping& live : mappings_) {
        if (!live.live || live.mapping.offset_bytes != 0) continue;
        for (const auto& [offset, length] : live.guards) {
            if (offset == 0 && length != 0) return live.mapping.address;
        }
    }
    return 0;
}

bool MappingTable::overlaps(uint64_t address, uint64_t length_bytes) const {
    return std::any_of(mappings_.begin(), mappings_.end(), [=](const LiveMapping& live) {
        return live.overlaps(address, length_bytes);
    });
}

uint64_t MappingTable::next_edge(uint64_t address) const {
    uint64_t edge = UINT64_MAX;
    const auto consider = [&](uint64_t begin, uint64_t length_bytes) {
        for (const uint64_t at : {begin, begin + length_bytes}) {
            if (at > address) edge = std::min(edge, at);
        }
    };
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        consider(live.mapping.address, whole_pages(live.mapping.length_bytes));
        for (const auto& [offset, length_bytes] : live.guards)
            consider(live.mapping.address + offset, length_bytes);
    }
    return edge;
}

bool MappingTable::has_guard_for_load(uint64_t address) {
    const LiveMapping* const live = guarded_at(address);
    return live != nullptr && live->permits(address, 1, readable_protections());
}

bool MappingTable::has_mapped(BufferId buffer, uint32_t attach_call) const {
    return std::any_of(mappings_.begin(), mappings_.end(), [=](const LiveMapping& live) {
        return live.live && live.mapping.buffer == buffer && live.attach_call == attach_call;
    });
}

void MappingTable::note_unmap(uint64_t address, uint64_t length_bytes) {
    for (LiveMapping& live : mappings_) {
        if (!live.overlaps(address, length_bytes)) continue;
        if (address > live.mapping.address)
            live.cut_off_at(address & ~(kPageBytes - 1));
        else
            live.end();
    }
}

void MappingTable::note_exec() {
    removals_.forget_all();
    for (LiveMapping& live : mappings_) {
        live.end();
        live.hidden = 0;  // gone with all mappings
    }
}

void MappingTable::compare_with(const std::vector<MapsEntry>& maps, const ServedFiles& buffers) {
    for (LiveMapping& live : mappings_) {
        if (!live.live) continue;
        const Mapping& mapping = live.mapping;
        const FileIdentity& identity = buffers.at(mapping.buffer).identity;
        const bool is_there = std::any_of(maps.begin(), maps.end(), [&](const MapsEntry& entry) {
            return entry.start <= mapping.address && mapping.address < entry.end &&
                   (entry.file == identity || mapping.offset_bytes != 0);
        });
        if (!is_there) {
            live.end();
            continue;
        }
        const uint64_t end = end_of_files(maps, mapping.address);
        if (end < mapping.address + whole_pages(mapping.length_bytes)) live.cut_off_at(end);
    }
}

}  // namespace kmes::conformance::tracing
