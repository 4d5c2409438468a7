// SPDX-License-Identifier: MIT
//
// See pointer_redirect.h.

#include "conformance/tracer/pointer_redirect.h"

#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "conformance/tracer/memory.h"
#include "conformance/tracer/registers.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance::tracing {
namespace {

bool is_futex_call(long number) {
    return number == SYS_futex || number == SYS_futex_waitv || number == kFutexWakeCall ||
           number == kFutexWaitCall;
}

constexpr size_t kMostVectorBytes =
    1024 * sizeof(iovec);  // the kernel takes no longer one (IOV_MAX)
constexpr size_t kWaitvEntryBytes = 24;
constexpr size_t kWaitvAddressAt = 8;

// Calls for which an address is a value: it names the mapping itself, or the kernel gives it back,
// as the base of a segment or an offset. (Calls that touch its pages, as mlock does, get the hidden
// one.)
bool takes_addresses_as_values(long number) {
    switch (number) {
        case SYS_arch_prctl:
        case SYS_lseek:
        case SYS_mmap:
        case SYS_munmap:
        case SYS_mremap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_process_madvise:
        case SYS_remap_file_pages:
        case SYS_mbind:
            return true;
        default:
            return false;
    }
}

// Calls that return with other registers than those from before the call. rt_sigreturn restores the
// registers that a signal interrupted, and a child would keep redirected ones. None of these calls
// takes a pointer that may be in a buffer, but the registers that they ignore may hold anything.
bool leaves_other_registers(long number) {
    switch (number) {
        case SYS_rt_sigreturn:
        case SYS_clone:
        case SYS_clone3:
        case SYS_fork:
        case SYS_vfork:
            return true;
        default:
            return false;
    }
}

bool takes_iovec(long number) {
    switch (number) {
        case SYS_readv:
        case SYS_writev:
        case SYS_preadv:
        case SYS_pwritev:
        case SYS_preadv2:
        case SYS_pwritev2:
        case SYS_vmsplice:
            return true;
        default:
            return false;
    }
}

// Returns the name of a call with addresses deeper in its arguments than the tracer reads; else
// nullptr.
const char* name_if_deep(long number) {
    switch (number) {
        case SYS_sendmmsg:
            return "sendmmsg";
        case SYS_io_submit:
            return "io_submit";
        case SYS_io_uring_enter:
            return "io_uring_enter";
        default:
            return nullptr;
    }
}

}  // namespace

uint64_t PointerRedirect::unguarded_address(uint64_t address) {
    const LiveMapping* mapping = mappings_.at(address);
    if (mapping == nullptr || mapping->guards.empty() || mapping->hidden == 0) return address;
    return address - mapping->mapping.address + mapping->hidden;
}

// Copies `bytes` to scratch memory of this call. Returns 0 if none is left.
uint64_t PointerRedirect::put_into_scratch(Thread& thread, Redirect& redirect, const void* bytes,
                                           size_t size_bytes) {
    const uint64_t slot = slots_.take(size_bytes);
    if (slot == ScratchSlots::kNone) {
        events_.push(TracerTrouble{
            .tid = thread.tid,
            .what = "too many system calls at once have pointers into guarded pages: their vectors "
                    "need more than " +
                    std::to_string(ScratchSlots::kUnits * ScratchSlots::kUnitBytes / 1024) + " KiB",
            .reason = TracerTrouble::Reason::not_followed});
        return 0;
    }
    redirect.slots.push_back({slot, size_bytes});
    const uint64_t copy = tracees_.process_of(thread).scratch + slot;
    return write_memory(thread.tid, copy, bytes, size_bytes) ? copy : 0;
}

void PointerRedirect::give_back(Redirect& redirect) {
    for (const Redirect::Slot& each : redirect.slots) slots_.give_back(each.slot, each.size_bytes);
    redirect.slots.clear();
}

// Copies an array of structures that have an address each, and changes the addresses.
bool PointerRedirect::rewrite_vector(Thread& thread, Redirect& redirect, uint64_t& pointer,
                                     size_t count, size_t stride, size_t address_offset) {
    const size_t size_bytes = count * stride;
    if (size_bytes == 0 || size_bytes > kMostVectorBytes) return false;
    std::vector<char> content(size_bytes);
    if (!read_memory(thread.tid, pointer, content.data(), size_bytes)) return false;
    bool is_changed = false;
    for (size_t i = 0; i < count; ++i) {
        char* at = content.data() + i * stride + address_offset;
        uint64_t address = 0;
        memcpy(&address, at, sizeof address);
        const uint64_t changed = unguarded_address(address);
        is_changed = is_changed || changed != address;
        memcpy(at, &changed, sizeof changed);
    }
    if (!is_changed) return false;
    const uint64_t copy = put_into_scratch(thread, redirect, content.data(), size_bytes);
    if (copy == 0) return false;
    pointer = copy;
    return true;
}

bool PointerRedirect::rewrite_iovec(Thread& thread, Redirect& redirect, uint64_t& pointer,
                                    uint64_t count) {
    return rewrite_vector(thread, redirect, pointer, std::min<uint64_t>(count, kMostVectorBytes),
                          sizeof(iovec), offsetof(iovec, iov_base));
}

// For sendmsg, which does not write to the message.
void PointerRedirect::rewrite_message(Thread& thread, Redirect& redirect, uint64_t& pointer) {
    auto message = read_value<msghdr>(thread.tid, pointer);
    if (!message) return;
    auto vector = reinterpret_cast<uint64_t>(message->msg_iov);
    if (!rewrite_iovec(thread, redirect, vector, message->msg_iovlen)) return;
    message->msg_iov = reinterpret_cast<iovec*>(vector);
    const uint64_t copy = put_into_scratch(thread, redirect, &*message, sizeof *message);
    if (copy != 0) pointer = copy;
}

// The kernel's own guard pages (Linux 6.13) are a state of the pages, and not of the mapping. The
// pages of the testee and the hidden ones would differ.
void PointerRedirect::refuse_guard_pages(const Thread& thread, long number,
                                         const user_regs_struct& registers) {
    constexpr uint64_t kInstall = 102;  // MADV_GUARD_INSTALL
    constexpr uint64_t kRemove = 103;   // MADV_GUARD_REMOVE
    if (number != SYS_madvise || (registers.rdx != kInstall && registers.rdx != kRemove) ||
        unguarded_address(registers.rdi) == registers.rdi)
        return;
    events_.push(TracerTrouble{.tid = thread.tid,
                               .what = "the testee makes or removes guard pages in a buffer "
                                       "(madvise, MADV_GUARD_INSTALL), which the suite does not "
                                       "follow",
                               .reason = TracerTrouble::Reason::not_followed});
}

bool PointerRedirect::redirect(Thread& thread, user_regs_struct& registers) {
    const auto number = call_number_of(registers);
    // Also if the guard was set after the entry had been handled.
    if (number == SYS_restart_syscall && thread.call.wait) {
        restart_wait_afresh(thread, registers);
        return thread.call.redirect.has_value();
    }
    if (thread.call.redirect || takes_addresses_as_values(number) || leaves_other_registers(number))
        return false;
    refuse_guard_pages(thread, number, registers);
    if (const char* name = name_if_deep(number); name != nullptr)
        effects_.call_refused_by_guards = name;
    Redirect redirect;
    arguments_of(registers, redirect.original_arguments);
    uint64_t arguments[6];
    arguments_of(registers, arguments);
    for (uint64_t& argument : arguments) argument = unguarded_address(argument);
    if (number == SYS_futex_waitv) {
        rewrite_vector(thread, redirect, arguments[0],
                       std::min<uint64_t>(static_cast<uint32_t>(arguments[1]), kPageBytes),
                       kWaitvEntryBytes, kWaitvAddressAt);
    } else if (takes_iovec(number)) {
        rewrite_iovec(thread, redirect, arguments[1], arguments[2]);
    } else if (number == SYS_sendmsg) {
        rewrite_message(thread, redirect, arguments[1]);
    } else if (number == SYS_process_vm_readv || number == SYS_process_vm_writev) {
        rewrite_iovec(thread, redirect, arguments[1], arguments[2]);
        const Thread* other = tracees_.find(static_cast<pid_t>(arguments[0]));
        if (other != nullptr && tracees_.is_testee(*other))
            rewrite_iovec(thread, redirect, arguments[3], arguments[4]);
    }
    if (std::equal(arguments, arguments + 6, redirect.original_arguments)) {
        give_back(redirect);
        return false;
    }
    set_arguments(registers, arguments);
    if (!write_registers(thread.tid, registers)) return false;
    thread.call.redirect = redirect;
    if (!is_futex_call(number)) ++effects_.redirected_calls;
    return true;
}

void PointerRedirect::restart_wait_afresh(Thread& thread, user_regs_struct& registers) {
    registers.orig_rax = static_cast<uint64_t>(thread.call.wait->number);
    set_arguments(registers, thread.call.wait->arguments);
    thread.call.wait->interrupted = false;
    if (!redirect(thread, registers)) write_registers(thread.tid, registers);
}

void PointerRedirect::undo(Thread& thread, user_regs_struct& registers) {
    if (!thread.call.redirect) return;
    set_arguments(registers, thread.call.redirect->original_arguments);
    give_back(*thread.call.redirect);
    thread.call.redirect.reset();
}

void PointerRedirect::forget(Thread& thread) {
    if (thread.call.redirect) give_back(*thread.call.redirect);
}

}  // namespace kmes::conformance::tracing
