// SPDX-License-Identifier: MIT
//
// Guard pages: pages of a mapping made inaccessible, so that each access to them is seen before it
// happens. Knows injection and mappings.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conformance/tracer/backtrace.h"
#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

// The protection of the page at this offset of the layout without a guard.
uint64_t protection_of(const LiveMapping& live, const ServedFile& file, uint64_t layout_offset) {
    const uint64_t protection = live.protection_at(layout_offset - live.mapping.offset_bytes);
    if (file.is_writable(layout_offset)) return protection;
    const uint64_t read = (protection & (PROT_READ | PROT_WRITE)) != 0 ? PROT_READ : PROT_NONE;
    return read | (protection & PROT_EXEC);
}

// Whether the other process sees a write of one process to this page. The page is the runner's.
bool shares_scratch(pid_t one, pid_t other, uint64_t scratch) {
    uint64_t before = 0;
    uint64_t seen = 0;
    if (scratch == 0 || !read_memory(one, scratch, &before, sizeof before)) return false;
    const uint64_t probe = ~before;
    if (!write_memory(one, scratch, &probe, sizeof probe)) return false;
    const bool is_read = read_memory(other, scratch, &seen, sizeof seen);
    write_memory(one, scratch, &before, sizeof before);
    return is_read && seen == probe;
}

}  // namespace

// Returns a thread other than `but` in which calls can be executed now. All threads of the testee
// are stopped.
Thread* Tracer::Engine::injectable_thread(pid_t but) {
    // A thread whose stop has been handled, or needs no handling, is best. A thread with a stop
    // still to be handled also works.
    for (const bool backlog_too : {false, true}) {
        for (auto& [tid, thread] : tracees_.threads()) {
            if (tid == but || !is_testee(thread) || !thread.stopped ||
                thread.in_backlog != backlog_too)
                continue;
            if (!WIFSTOPPED(thread.status)) continue;
            if (thread.now == StopKind::kEntry || thread.now == StopKind::kExit ||
                thread.now == StopKind::kSignal || thread.now == StopKind::kInterrupt) {
                return &thread;
            }
        }
    }
    return nullptr;
}

bool Tracer::Engine::with_frozen_testee(const std::function<bool(Thread&)>& action) {
    const bool was_frozen = tracees_.is_frozen();
    if (!freeze_all(Clock::now() + kFreezeLimit)) return false;
    Thread* thread = injectable_thread();
    const bool done = thread != nullptr && action(*thread);
    tracees_.set_frozen(was_frozen);
    return done;
}

bool Tracer::Engine::ensure_hidden_mapping(Injection& injection, Thread& thread,
                                           LiveMapping& live) {
    if (live.hidden != 0) return true;
    const ServedFile& file = buffers_.at(live.mapping.buffer);
    MapRequest request;
    request.length_bytes = live.mapping.length_bytes;
    live.hidden_bytes = request.length_bytes;
    request.protection = live.mapping.protection;
    request.flags = live.mapping.shared ? MAP_SHARED : MAP_PRIVATE;
    request.offset_bytes = live.mapping.offset_bytes;
    const int64_t address = file.data_fd < 0 ? map_kernel_buffer(injection, file, request)
                                             : map_hidden(injection, thread, file, request);
    if (address < 0) return false;
    for (const ProtectedPart& part : live.protections) {
        if (injection.call(SYS_mprotect, static_cast<uint64_t>(address) + part.begin,
                           part.end - part.begin, part.protection) == 0)
            continue;
        injection.call(SYS_munmap, static_cast<uint64_t>(address), live.hidden_bytes);
        return false;
    }
    live.hidden = static_cast<uint64_t>(address);
    return true;
}

// Returns the address, or -errno.
int64_t Tracer::Engine::map_hidden(Injection& injection, Thread& thread, const ServedFile& file,
                                   const MapRequest& request) {
    const int64_t metadata_fd = open_runner_fd(injection, thread, file.metadata_fd, O_RDWR);
    if (metadata_fd < 0) return metadata_fd;
    const int64_t address =
        injection.call(SYS_mmap, 0, request.length_bytes, request.protection, request.flags,
                       static_cast<uint64_t>(metadata_fd), request.offset_bytes);
    injection.call(SYS_close, static_cast<uint64_t>(metadata_fd));
    if (address < 0) return address;
    const int64_t overlaid =
        overlay_data(injection, thread, file, request, static_cast<uint64_t>(address));
    if (overlaid >= 0) return address;
    injection.call(SYS_munmap, static_cast<uint64_t>(address), request.length_bytes);
    return overlaid;
}

// Executes mprotect for [offset, offset + length) of the mapping. The metadata page and the data
// have different protections.
bool Tracer::Engine::protect(Injection& injection, const LiveMapping& live, uint64_t offset,
                             uint64_t length, bool closed) {
    const ServedFile& file = buffers_.at(live.mapping.buffer);
    uint64_t at = offset;
    const uint64_t end = offset + length;
    while (at < end) {
        const uint64_t layout = at + live.mapping.offset_bytes;
        const bool is_half_closed = closed && live.reads_pass && layout < file.metadata_bytes;
        const bool is_alone = layout < file.metadata_bytes && (!closed || live.reads_pass);
        uint64_t piece = is_alone ? kPageBytes : end - at;
        uint64_t protection = PROT_NONE;
        if (!closed) {
            piece = std::min(piece, live.end_of_protection(at) - at);
            protection = protection_of(live, file, layout);
        } else if (is_half_closed) {
            protection = protection_of(live, file, layout) & ~uint64_t{PROT_WRITE};
        }
        if (injection.call(SYS_mprotect, live.mapping.address + at, piece, protection) != 0)
            return false;
        at += piece;
    }
    return true;
}

bool Tracer::Engine::set_guards(Thread& thread, bool closed) {
    mappings_.note_open_guards(!closed && is_testee(thread));
    Injection injection(*this, thread);
    bool all = injection.usable();
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        for (const auto& [offset, length] : live.guards) {
            all = protect(injection, live, offset, length, closed) && all;
        }
    }
    return all;
}

bool Tracer::Engine::guard_pages(MappingId id, uint64_t first_page, uint64_t page_count) {
    mappings();  // forgets what has been unmapped
    LiveMapping* const found = mappings_.find_live(id);
    if (found == nullptr || page_count == 0) return false;
    LiveMapping& live = *found;
    const uint64_t begin = first_page * kPageBytes;
    const uint64_t end = begin + page_count * kPageBytes;
    const uint64_t mapped_begin = live.mapping.offset_bytes;
    const uint64_t mapped_end =
        mapped_begin + (live.mapping.length_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (begin < mapped_begin || end > mapped_begin + live.mapped_bytes) return false;
    if (begin >= mapped_end) return true;  // unmapped since
    return with_frozen_testee([&](Thread& thread) {
               return close_guard(thread, live, begin - mapped_begin,
                                  std::min(end, mapped_end) - begin);
           }) &&
           redirect_entries();
}

bool Tracer::Engine::close_guard(Thread& thread, LiveMapping& live, uint64_t offset,
                                 uint64_t length) {
    if (stepping_.uses_pages()) {
        Injection injection(*this, thread);
        const bool is_closed = ensure_hidden_mapping(injection, thread, live) &&
                               protect(injection, live, offset, length, true);
        if (!is_closed && !injection.usable()) return false;
        if (!is_closed) {
            if (!stepping_.may_fall_back() || mappings_.any_guards()) return false;
            stepping_.fall_back_to_steps(
                "single steps: a call in the testee that makes guard pages failed");
        }
    }
    live.guards.emplace_back(offset, length);
    share_processor();
    return true;
}

// A thread at an already handled entry of a call would use its pointers into guarded pages. This
// redirects them.
bool Tracer::Engine::redirect_entries() {
    for (auto& [tid, thread] : tracees_.threads()) {
        if (!is_testee(thread) || !thread.stopped || thread.in_backlog || thread.call.reissued ||
            thread.now != StopKind::kEntry)
            continue;
        if (auto registers = read_registers(tid)) pointers_.redirect(thread, *registers);
    }
    return true;
}

bool Tracer::Engine::release_guards(MappingId id) {
    mappings();
    LiveMapping* const found = mappings_.find_live(id);
    if (found == nullptr) return false;
    LiveMapping& live = *found;
    live.reads_pass = false;
    if (live.guards.empty()) return true;
    return with_frozen_testee([&](Thread& thread) {
        bool all = true;
        if (!stepping_.uses_steps()) {
            note_pending_guard_faults();
            Injection injection(*this, thread);
            all = injection.usable();
            for (const auto& [offset, length] : live.guards) {
                all = protect(injection, live, offset, length, false) && all;
            }
        }
        if (all) live.guards.clear();
        unshare_processor();
        return all;
    });
}

bool Tracer::Engine::let_reads_pass(MappingId id, bool pass) {
    // If watchpoints saw an access that a guard does not stop, it would count as an error.
    if (!stepping_.uses_pages() || stepping_.watchpoints().is_used()) return false;
    mappings();
    LiveMapping* const found = mappings_.find_live(id);
    if (found == nullptr) return false;
    LiveMapping& live = *found;
    if ((live.mapping.protection & PROT_READ) == 0) return false;
    if (live.reads_pass == pass) return true;
    return with_frozen_testee([&](Thread& thread) {
        live.reads_pass = pass;
        Injection injection(*this, thread);
        bool all = injection.usable();
        for (const auto& [offset, length] : live.guards) {
            const uint64_t layout = offset + live.mapping.offset_bytes;
            const uint64_t metadata = buffers_.at(live.mapping.buffer).metadata_bytes;
            if (layout >= metadata) continue;
            all =
                protect(injection, live, offset, std::min(length, metadata - layout), true) && all;
        }
        return all;
    });
}

// The first thread of the testee may have ended, and has no memory then. Containers may refuse
// kcmp.
bool Tracer::Engine::has_the_memory_of_the_testee(pid_t process) {
    constexpr int kCompareMemory = 1;  // KCMP_VM
    const pid_t tid = tracees_.live_testee_thread();
    if (tid == 0) return false;
    const long order = syscall(SYS_kcmp, process, tid, kCompareMemory, 0, 0);
    if (order >= 0) return order == 0;
    return shares_scratch(tid, process, tracees_.process(tracees_.testee()).scratch);
}

void Tracer::Engine::open_inherited_guards(Thread& thread) {
    // A child of vfork shares the testee's memory: opening the guards in the child would open them
    // for the testee.
    if (!mappings_.any_guards() || has_the_memory_of_the_testee(thread.process) ||
        stepping_.uses_steps())
        return;
    // The same program at the same addresses: the child can use the parent's syscall instruction.
    const Process testee = tracees_.process(tracees_.testee());
    process_of(thread).syscall_instruction = testee.syscall_instruction;
    process_of(thread).scratch = testee.scratch;
    set_guards(thread, false);
}

bool Tracer::Engine::is_at_guard(const siginfo_t& info) {
    if (!stepping_.uses_pages() || info.si_signo != SIGSEGV || info.si_code != SEGV_ACCERR ||
        mappings_.are_guards_open())
        return false;
    return mappings_.has_guard_for_load(reinterpret_cast<uint64_t>(info.si_addr));
}

bool Tracer::Engine::take_guard_fault(Thread& thread, const siginfo_t& info) {
    if (!is_at_guard(info)) return false;
    note_guard_fault(thread);
    return true;
}

// A thread that had faulted at a guard when an interrupt stopped it reports the interrupt first;
// the fault is pending. If the guard is removed meanwhile, that fault is not the testee's own.
void Tracer::Engine::note_pending_guard_faults() {
    constexpr int kMostSignals = 16;
    for (auto& [tid, thread] : tracees_.threads()) {
        if (!is_testee(thread) || !thread.stopped) continue;
        siginfo_t pending[kMostSignals];
        __ptrace_peeksiginfo_args which{0, 0, kMostSignals};
        const long count = ptrace(PTRACE_PEEKSIGINFO, tid, &which, pending);
        for (long i = 0; i < count; ++i) {
            if (is_at_guard(pending[i])) thread.guard.is_late_fault = true;
        }
    }
}

bool Tracer::Engine::report_guard_hit(Thread& thread) {
    if (!thread.guard.is_fault) return false;
    thread.signal.deliver = 0;
    const auto address = reinterpret_cast<uint64_t>(thread.signal.info.si_addr);
    const LiveMapping* live = mappings_.guarded_at(address);
    // The guard was released before this stop was handled: repeat the access.
    if (live == nullptr) return true;
    auto pending = load_next_instruction(thread);
    if (!pending) return true;
    GuardHit& hit = pending->hit;
    hit.address = address;
    hit.place = live->place_at(address);
    if (hit.accesses.empty()) hit.accesses.push_back({hit.place, 0, true, false});
    thread.guard.pending = std::move(pending);
    ask_about(thread);
    return true;
}

// Calls the handler for the pending access, or pushes an event. Returns false if it pushed an
// event.
bool Tracer::Engine::ask_about(Thread& thread) {
    const pid_t tid = thread.tid;
    if (options_.keep_stacks)
        thread.guard.pending->hit.stack = take_snapshot(tid, thread.guard.pending->registers);
    // (A copy, because the handler may reset the thread's own.)
    const GuardHit hit = thread.guard.pending->hit;
    const GuardAnswer answer =
        handlers_.guarded_access ? handlers_.guarded_access(hit) : GuardAnswer::kEvent;
    Thread* still = find(tid);
    if (answer == GuardAnswer::kStep) {
        if (still != nullptr && still->guard.pending) step_guarded(tid, nullptr);
        return true;
    }
    if (still != nullptr) push(*still, hit);
    return false;
}

bool Tracer::Engine::report_write_fault(Thread& thread) {
    const auto address = reinterpret_cast<uint64_t>(thread.signal.info.si_addr);
    const LiveMapping* live = mappings_.at(address);
    if (live == nullptr) return false;
    // The module answers a write to its data pages with SIGBUS.
    const bool is_refused = thread.signal.info.si_signo == SIGSEGV
                                ? thread.signal.info.si_code == SEGV_ACCERR
                                : buffers_.at(live->mapping.buffer).data_fd < 0;
    if (!is_refused) return false;
    // The testee itself has made the page read-only.
    const bool was_writable =
        (live->mapping.protection & PROT_WRITE) != 0 &&
        buffers_.at(live->mapping.buffer).is_writable(live->place_at(address).offset_bytes);
    if (was_writable && !live->permits(address, 1, PROT_WRITE)) return false;
    WriteFault fault;
    fault.tid = thread.tid;
    fault.address = address;
    fault.access.place = live->place_at(address);
    if (const auto instruction = load_next_instruction(thread)) {
        const auto& accesses = instruction->hit.accesses;
        const auto is_load = [](const BufferAccess& access) { return !access.is_write; };
        // The testee itself made the page inaccessible.
        if (!accesses.empty() && std::all_of(accesses.begin(), accesses.end(), is_load))
            return false;
        fault.code = instruction->hit.code;
        fault.stack = take_snapshot(thread.tid, instruction->registers);
        for (const BufferAccess& access : instruction->hit.accesses) {
            if (access.is_write) fault.access = access;
        }
    }
    fault.access.is_write = true;
    push(thread, std::move(fault));
    return true;
}

}  // namespace kmes::conformance
