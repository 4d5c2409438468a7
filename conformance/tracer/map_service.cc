// SPDX-License-Identifier: MIT
//
// mmap of a served fd. The metadata is mapped as requested, and the data twice over the rest,
// read-only. A metadata page that only the producer writes is read-only as well (5.1.4, 5.1.5,
// E13). Also mprotect of a buffer, and the table of mappings. Knows injection and buffers.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {
namespace {

// PROT_SEM, which glibc's headers do not have. The kernel accepts it, and does nothing with it.
constexpr uint64_t kForSemaphores = 8;
// For arguments of which the kernel uses only the low half.
constexpr uint64_t kLowHalf = 0xffffffff;

MapRequest request_of(const user_regs_struct& registers) {
    MapRequest request;
    request.address = registers.rdi;
    request.length_bytes = registers.rsi;
    request.protection = registers.rdx & kLowHalf;
    request.flags = registers.r10 & kLowHalf;
    request.fd = static_cast<int>(registers.r8 & kLowHalf);
    request.offset_bytes = registers.r9;
    return request;
}

bool is_shared(uint64_t flags) {
    const uint64_t type = flags & MAP_TYPE;
    return type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
}

}  // namespace

MapDeviation Tracer::Engine::deviation_of(const MapRequest& request, BufferId buffer) const {
    const ServedFile& file = buffers_.at(buffer);
    MapDeviation deviation;
    deviation.address =
        request.address != 0 || (request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    deviation.length = request.length_bytes != file.expected_mapping_bytes;
    deviation.protection = request.protection != (PROT_READ | PROT_WRITE);
    deviation.shared = !is_shared(request.flags);
    deviation.offset = request.offset_bytes != 0;
    deviation.again = mappings_.has_mapped(buffer, file.attach_call);
    return deviation;
}

bool Tracer::Engine::is_refused(const ServedFile& file, const MapRequest& request) {
    if (!file.takes_only_whole_mapping || file.reported_capacity_bytes != file.capacity_bytes)
        return false;
    return whole_pages(request.length_bytes) != file.expected_mapping_bytes ||
           !is_shared(request.flags) || request.offset_bytes != 0;
}

// Maps the data, and the pages before it that the testee may not write, over their parts of
// [address, address + length). Their descriptors are read-only, so an mprotect of the testee cannot
// change that.
int64_t Tracer::Engine::overlay_data(Injection& injection, Thread& thread, const ServedFile& file,
                                     const MapRequest& request, uint64_t address) {
    const uint64_t data = file.metadata_bytes;
    const int64_t result = overlay_file(
        injection, thread, request, address, file.data_fd,
        {{data, file.capacity_bytes, 0}, {data + file.capacity_bytes, file.capacity_bytes, 0}});
    const uint64_t read_only_bytes = file.metadata_bytes - kPageBytes;
    if (result < 0 || read_only_bytes == 0) return result;
    return overlay_file(injection, thread, request, address, file.metadata_fd,
                        {{0, read_only_bytes, 0}});
}

// Maps the pieces read-only, as far as they are in the mapped range.
int64_t Tracer::Engine::overlay_file(Injection& injection, Thread& thread,
                                     const MapRequest& request, uint64_t address, int runner_fd,
                                     const std::vector<FilePiece>& pieces) {
    const uint64_t begin = request.offset_bytes;
    const uint64_t end = begin + whole_pages(request.length_bytes);
    const bool is_reached = std::any_of(pieces.begin(), pieces.end(), [=](const FilePiece& piece) {
        return begin < piece.layout_offset + piece.length_bytes && piece.layout_offset < end;
    });
    if (!is_reached) return 0;
    const int64_t fd = open_runner_fd(injection, thread, runner_fd, O_RDONLY);
    if (fd < 0) return fd;
    const uint64_t readable =
        (request.protection & (PROT_READ | PROT_WRITE)) != 0 ? PROT_READ : PROT_NONE;
    const uint64_t flags = (request.flags & ~uint64_t{MAP_FIXED_NOREPLACE | MAP_TYPE}) | MAP_FIXED |
                           (is_shared(request.flags) ? MAP_SHARED : MAP_PRIVATE);
    int64_t result = 0;
    for (const FilePiece& piece : pieces) {
        const uint64_t from = std::max(begin, piece.layout_offset);
        const uint64_t to = std::min(end, piece.layout_offset + piece.length_bytes);
        if (from >= to || result < 0) continue;
        result = injection.call(SYS_mmap, address + (from - begin), to - from, readable, flags,
                                static_cast<uint64_t>(fd),
                                piece.file_offset + from - piece.layout_offset);
    }
    injection.call(SYS_close, static_cast<uint64_t>(fd));
    return std::min<int64_t>(result, 0);
}

bool Tracer::Engine::serve_map(Thread& thread, const user_regs_struct& registers) {
    const MapRequest request = request_of(registers);
    if ((request.flags & MAP_ANONYMOUS) != 0 || buffers_.is_empty()) return false;
    const auto identity = identity_of_fd(thread.tid, request.fd);
    const auto buffer = identity ? buffers_.find(*identity) : std::nullopt;
    if (!buffer) return false;
    const ServedFile file = buffers_.at(*buffer);
    Mapped event;
    event.tid = thread.tid;
    event.buffer = *buffer;
    event.request = request;
    event.deviation = deviation_of(request, *buffer);
    event.site = call_site(thread, registers);
    Injection injection(*this, thread);
    give_back_hidden(injection);
    // Prefaulting would allocate the part of the metadata file that only gives it its length.
    const bool is_kernel_buffer = file.data_fd < 0;
    const uint64_t flags =
        is_kernel_buffer ? request.flags : request.flags & ~uint64_t{MAP_POPULATE | MAP_LOCKED};
    event.is_refused = is_refused(file, request);
    // A length of 0 is EINVAL.
    const uint64_t length = event.is_refused ? 0 : request.length_bytes;
    int64_t address = injection.call(SYS_mmap, request.address, length, request.protection, flags,
                                     registers.r8, request.offset_bytes);
    if (!injection.usable()) return true;
    if (address >= 0 && !is_kernel_buffer) {
        const int64_t overlaid =
            overlay_data(injection, thread, file, request, static_cast<uint64_t>(address));
        if (overlaid < 0) {
            injection.call(SYS_munmap, static_cast<uint64_t>(address), request.length_bytes);
            note_failed_open(thread,
                             "the data pages could not be placed in the testee: ", overlaid);
            address = overlaid;
        }
    }
    injection.finish_call(address);
    if (address < 0) {
        event.error = static_cast<int>(-address);
    } else {
        // The earlier mappings of this range are gone: by MAP_FIXED, or unmapped without a stop.
        mappings_.note_unmap(static_cast<uint64_t>(address), request.length_bytes);
        LiveMapping live;
        live.mapping = {0,
                        *buffer,
                        static_cast<uint64_t>(address),
                        request.length_bytes,
                        request.offset_bytes,
                        request.protection,
                        is_shared(request.flags)};
        live.mapped_bytes = whole_pages(request.length_bytes);
        live.attach_call = file.attach_call;
        event.mapping = mappings_.add(std::move(live)).mapping;
    }
    push(thread, std::move(event));
    return true;
}

// The lowest address above this one where a mapping, a guard, or what the testee may write to,
// begins or ends.
uint64_t Tracer::Engine::next_change_of_protection(uint64_t address) {
    const uint64_t edge = mappings_.next_edge(address);
    const LiveMapping* const live = mappings_.at(address);
    if (live == nullptr) return edge;
    const uint64_t metadata = buffers_.at(live->mapping.buffer).metadata_bytes;
    const uint64_t layout = live->place_at(address).offset_bytes;
    for (const uint64_t change : {metadata - kPageBytes, metadata}) {
        if (layout < change) return std::min(edge, address + change - layout);
    }
    return edge;
}

// Executes mprotect for a range without an edge inside. Returns 0 or -errno. Guarded pages stay
// closed: the hidden ones get the protection, so that the kernel says whether it permits it.
int64_t Tracer::Engine::protect_for_testee(Injection& injection, uint64_t address,
                                           uint64_t length_bytes, uint64_t protection) {
    LiveMapping* const live = mappings_.at(address);
    const bool is_guard = live != nullptr && live->hidden != 0 && live->is_guarded(address);
    const uint64_t offset = live == nullptr ? 0 : address - live->mapping.address;
    int64_t result = 0;
    if (!is_guard) result = injection.call(SYS_mprotect, address, length_bytes, protection);
    if (live == nullptr || result != 0) return result;
    if (live->hidden != 0)
        result = injection.call(SYS_mprotect, live->hidden + offset, length_bytes, protection);
    if (result != 0) return result;
    live->note_protection({offset, offset + length_bytes, protection});
    // A guard that lets reads pass depends on what the testee permits.
    const bool depends = is_guard && live->reads_pass;
    return !depends || protect(injection, *live, offset, length_bytes, true) ? 0 : -ENOMEM;
}

// mprotect of a buffer, which would open the guards. The pieces are done in the order of the
// kernel, which also ends at the first that fails. Returns false for a call that the kernel may
// execute: of other memory, or with arguments that it refuses.
bool Tracer::Engine::serve_protect(Thread& thread, const user_regs_struct& registers) {
    constexpr uint64_t kKnownBits = PROT_READ | PROT_WRITE | PROT_EXEC | kForSemaphores;
    const uint64_t address = registers.rdi;
    const uint64_t length_bytes = whole_pages(registers.rsi);
    const uint64_t protection = registers.rdx;
    const uint64_t end = address + length_bytes;
    if (address % kPageBytes != 0 || end <= address || (protection & ~kKnownBits) != 0 ||
        !mappings_.overlaps(address, length_bytes))
        return false;
    Injection injection(*this, thread);
    int64_t result = 0;
    for (uint64_t at = address; at < end && result == 0;) {
        const uint64_t until = std::min(end, next_change_of_protection(at));
        result = protect_for_testee(injection, at, until - at, protection);
        at = until;
    }
    if (injection.usable()) injection.finish_call(result);
    return true;
}

// Unmaps the hidden mappings of the mappings that the testee has unmapped. A testee that maps again
// and again would accumulate thousands. Does nothing while a system call may still use one.
void Tracer::Engine::give_back_hidden(Injection& injection) {
    const auto& threads = tracees_.threads();
    const bool is_led_there = std::any_of(threads.begin(), threads.end(), [](const auto& entry) {
        return entry.second.call.redirect.has_value();
    });
    if (is_led_there) return;
    for (LiveMapping& live : mappings_) {
        if (live.live || live.hidden == 0) continue;
        injection.call(SYS_munmap, live.hidden, live.hidden_bytes);
        live.hidden = 0;
    }
}

// Tries each thread, because a thread that is ending has no memory any more. Returns nothing if the
// maps may not be read, as those of an undumpable process.
std::optional<std::vector<MapsEntry>> Tracer::Engine::maps_of_testee() {
    for (auto& [tid, thread] : tracees_.threads()) {
        if (!is_testee(thread)) continue;
        errno = 0;
        std::vector<MapsEntry> maps = read_maps(tid);
        if (!maps.empty()) return maps;
        if (errno != EACCES && errno != EPERM) continue;
        note_unreadable(thread);
        return std::nullopt;
    }
    return std::vector<MapsEntry>();
}

std::vector<Mapping> Tracer::Engine::mappings() {
    // If the maps cannot be read, all mappings count as live.
    if (const auto maps = maps_of_testee()) mappings_.compare_with(*maps, buffers_);
    return mappings_.list();
}

std::vector<std::pair<int, BufferId>> Tracer::Engine::open_fds() {
    std::vector<std::pair<int, BufferId>> result;
    const pid_t tid = tracees_.live_testee_thread();
    if (tid == 0) return result;
    for (const int fd : list_fds(tid)) {
        const auto identity = identity_of_fd(tid, fd);
        const auto buffer = identity ? buffers_.find(*identity) : std::nullopt;
        if (buffer) result.emplace_back(fd, *buffer);
    }
    return result;
}

}  // namespace kmes::conformance
