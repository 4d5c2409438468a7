// SPDX-License-Identifier: MIT
//
// See backtrace.h.

#include "conformance/tracer/backtrace.h"

#include <elfutils/libdwfl.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "conformance/tracer/memory.h"
#include "conformance/tracer/program_code.h"
#include "conformance/tracer/return_slot.h"

namespace kmes::conformance::tracing {
// A walk over the frames of one thread. libdw passes its address to all callbacks.
struct StackWalk {
    pid_t tid = 0;
    const user_regs_struct* registers = nullptr;
    size_t most = 0;
    std::vector<uint64_t> found;
    const StackSnapshot* snapshot = nullptr;  // null: read the memory of the thread
    bool has_begun = false;
    // Whether there is an unwind table for this code. If it is set, the walk stops at the first
    // frame without one, and `without_table` has the registers there.
    std::function<bool(uint64_t address)> has_table;
    std::optional<user_regs_struct> without_table;
};

namespace {

pid_t next_thread(Dwfl*, void* argument, void** thread_argument) {
    if (*thread_argument != nullptr) return 0;
    *thread_argument = argument;
    return static_cast<StackWalk*>(argument)->tid;
}

bool get_thread(Dwfl*, pid_t tid, void* argument, void** thread_argument) {
    *thread_argument = argument;
    return tid == static_cast<StackWalk*>(argument)->tid;
}

std::optional<uint64_t> word_of(const StackSnapshot& snapshot, uint64_t address) {
    uint64_t word = 0;
    const std::vector<uint8_t>& bytes = snapshot.bytes;
    const uint64_t offset = address - snapshot.registers.rsp;
    if (offset >= bytes.size() || bytes.size() - offset < sizeof word) return std::nullopt;
    memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    const StackWalk& walk = *static_cast<StackWalk*>(argument);
    const auto value = walk.snapshot != nullptr ? word_of(*walk.snapshot, address)
                                                : read_value<uint64_t>(walk.tid, address);
    if (value) *result = *value;
    return value.has_value();
}

// In the order of DWARF's register numbers. 16 is the return address, here the place itself.
bool set_registers(Dwfl_Thread* thread, void* argument) {
    const user_regs_struct& of = *static_cast<StackWalk*>(argument)->registers;
    const Dwarf_Word words[] = {of.rax, of.rdx, of.rcx, of.rbx, of.rsi, of.rdi,
                                of.rbp, of.rsp, of.r8,  of.r9,  of.r10, of.r11,
                                of.r12, of.r13, of.r14, of.r15, of.rip};
    return dwfl_thread_state_registers(thread, 0, std::size(words), words);
}

// The registers of a frame that unwinding without tables needs.
std::optional<user_regs_struct> registers_of(Dwfl_Frame* frame, uint64_t address) {
    constexpr unsigned kRbpOfDwarf = 6;
    constexpr unsigned kRspOfDwarf = 7;
    Dwarf_Word rbp = 0;
    Dwarf_Word rsp = 0;
    if (dwfl_frame_reg(frame, kRspOfDwarf, &rsp) != 0) return std::nullopt;
    if (dwfl_frame_reg(frame, kRbpOfDwarf, &rbp) != 0) rbp = 0;
    user_regs_struct registers = {};
    registers.rip = address;
    registers.rsp = rsp;
    registers.rbp = rbp;
    return registers;
}

int take_frame(Dwfl_Frame* frame, void* argument) {
    StackWalk& walk = *static_cast<StackWalk*>(argument);
    Dwarf_Addr address = 0;
    bool is_interrupted = false;
    if (!dwfl_frame_pc(frame, &address, &is_interrupted)) return DWARF_CB_ABORT;
    if (std::exchange(walk.has_begun, true)) walk.found.push_back(address);
    if (walk.found.size() >= walk.most) return DWARF_CB_ABORT;
    // A call may be the last instruction of its function.
    const uint64_t place = is_interrupted ? address : address - 1;
    if (!walk.has_table || walk.has_table(place)) return DWARF_CB_OK;
    walk.without_table = registers_of(frame, place);
    return DWARF_CB_ABORT;
}

// Unwinding needs no debug information, and nothing may be fetched from a network.
int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                      GElf_Word, char**) {
    return -1;
}

constexpr Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = find_no_debuginfo,
    .section_address = nullptr,
    .debuginfo_path = nullptr,
};

constexpr Dwfl_Thread_Callbacks kThreadCallbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_word,
    .set_initial_registers = set_registers,
    .detach = nullptr,
    .thread_detach = nullptr,
};

}  // namespace

std::vector<uint64_t> return_addresses(pid_t tid, const user_regs_struct& registers, size_t most) {
    StackWalk walk;
    walk.tid = tid;
    walk.registers = &registers;
    walk.most = most;
    const std::unique_ptr<Dwfl, decltype(&dwfl_end)> files(dwfl_begin(&kCallbacks), dwfl_end);
    if (files == nullptr || dwfl_linux_proc_report(files.get(), tid) != 0 ||
        dwfl_report_end(files.get(), nullptr, nullptr) != 0 ||
        !dwfl_attach_state(files.get(), nullptr, tid, &kThreadCallbacks, &walk))
        return {};
    dwfl_getthread_frames(files.get(), tid, take_frame, &walk);
    return std::move(walk.found);
}

std::shared_ptr<const StackSnapshot> take_snapshot(pid_t tid, const user_regs_struct& registers) {
    auto snapshot = std::make_shared<StackSnapshot>();
    snapshot->tid = tid;
    snapshot->registers = registers;
    snapshot->bytes.resize(StackSnapshot::kMostBytes);
    snapshot->bytes.resize(
        read_memory_prefix(tid, registers.rsp, snapshot->bytes.data(), snapshot->bytes.size()));
    return snapshot;
}

class SnapshotUnwinder::Files {
  public:
    explicit Files(const std::shared_ptr<const ModuleTable>& modules)
        : files_(dwfl_begin(&kCallbacks), dwfl_end), code_(modules) {
        if (files_ != nullptr) report(*modules);
    }

    std::vector<uint64_t> callers(const StackSnapshot& snapshot, size_t most) {
        std::vector<uint64_t> found;
        user_regs_struct registers = snapshot.registers;
        while (found.size() < most) {
            const auto stopped_at = walk(snapshot, registers, most - found.size());
            found.insert(found.end(), walk_.found.begin(), walk_.found.end());
            if (!stopped_at || found.size() >= most) break;
            const auto caller = caller_by_code(snapshot, *stopped_at);
            // (rsp grows with each caller, so this ends.)
            if (!caller || caller->rsp <= stopped_at->rsp) break;
            found.push_back(caller->rip);
            registers = *caller;
            --registers.rip;  // into the call, as above
        }
        return found;
    }

  private:
    void report(const ModuleTable& modules) {
        dwfl_report_begin(files_.get());
        // Entries are sorted by address, so the first of a file has the file's address. (The entry
        // of its code may not: offset and address of segments can differ by different amounts.)
        std::map<std::string, uint64_t> first;
        for (const MapsEntry& entry : modules.entries) {
            if (entry.file.inode == 0) continue;
            const auto at = first.try_emplace(entry.path, entry.start).first;
            if (!entry.executable || is_reported_.contains(entry.path)) continue;
            const std::string path = modules.file_of(entry);
            if (path.empty()) continue;
            is_reported_.insert(entry.path);
            dwfl_report_elf(files_.get(), path.c_str(), path.c_str(), -1, at->second, false);
        }
        dwfl_report_end(files_.get(), nullptr, nullptr);
    }

    // Fills walk_.found. Returns the registers where the tables end, if they do.
    std::optional<user_regs_struct> walk(const StackSnapshot& snapshot,
                                         const user_regs_struct& registers, size_t most) {
        walk_ = {};
        if (files_ == nullptr) return std::nullopt;
        walk_.tid = snapshot.tid;
        walk_.registers = &registers;
        walk_.most = most;
        walk_.snapshot = &snapshot;
        walk_.has_table = [this](uint64_t address) { return has_table(address); };
        if (!std::exchange(is_attached_, true))
            can_unwind_ =
                dwfl_attach_state(files_.get(), nullptr, snapshot.tid, &kThreadCallbacks, &walk_);
        if (can_unwind_) dwfl_getthread_frames(files_.get(), snapshot.tid, take_frame, &walk_);
        return walk_.without_table;
    }

    bool has_table(uint64_t address) {
        const auto [known, is_new] = has_table_.try_emplace(address, false);
        if (is_new) known->second = find_table(address);
        return known->second;
    }

    bool find_table(uint64_t address) {
        Dwfl_Module* module = dwfl_addrmodule(files_.get(), address);
        if (module == nullptr) return false;
        for (const auto tables : {dwfl_module_eh_cfi, dwfl_module_dwarf_cfi}) {
            Dwarf_Addr bias = 0;
            Dwarf_CFI* table = tables(module, &bias);
            Dwarf_Frame* frame = nullptr;
            if (table == nullptr || dwarf_cfi_addrframe(table, address - bias, &frame) != 0)
                continue;
            free(frame);
            return true;
        }
        return false;
    }

    // The start of the function according to the symbols of its file; 0: not known.
    uint64_t entry_of(uint64_t address) {
        const auto [known, is_new] = entries_.try_emplace(address, 0);
        if (is_new) known->second = find_entry(address);
        return known->second;
    }

    uint64_t find_entry(uint64_t address) {
        Dwfl_Module* module = dwfl_addrmodule(files_.get(), address);
        GElf_Off offset = 0;
        GElf_Sym symbol;
        if (module == nullptr || dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr,
                                                      nullptr, nullptr) == nullptr)
            return 0;
        return address - offset;
    }

    // Whether a call of the function with this entry can have this return address.
    bool follows_call(uint64_t return_address, uint64_t entry) {
        const auto call = call_before(return_address, read_);
        return call && (!call->target || *call->target == entry || is_jump(*call->target, read_));
    }

    static uint64_t place_of(const ReturnSlot& slot, const user_regs_struct& registers) {
        return (slot.is_from_rbp ? registers.rbp : registers.rsp) + slot.offset_bytes;
    }

    // The registers of the caller; rip is the return address.
    std::optional<user_regs_struct> caller_at(const StackSnapshot& snapshot,
                                              const user_regs_struct& registers,
                                              const ReturnSlot& slot, uint64_t entry) {
        const uint64_t place = place_of(slot, registers);
        const auto address = word_of(snapshot, place);
        if (!address || !follows_call(*address, entry)) return std::nullopt;
        user_regs_struct caller = registers;
        if (slot.saved_rbp_bytes != 0)
            caller.rbp = word_of(snapshot, place - slot.saved_rbp_bytes).value_or(0);
        caller.rip = *address;
        caller.rsp = place + sizeof(uint64_t);
        return caller;
    }

    std::optional<user_regs_struct> caller_by_code(const StackSnapshot& snapshot,
                                                   const user_regs_struct& registers) {
        const uint64_t entry = entry_of(registers.rip);
        if (const auto slot = entry == 0 ? std::nullopt : slots_.find(entry, registers.rip))
            return caller_at(snapshot, registers, *slot, entry);
        // Without symbols, each return address on the stack is tried. If it follows a direct call,
        // the target may be this function. It is if the function's code keeps its return address at
        // that place.
        constexpr uint64_t kMostWords = 32;
        for (uint64_t i = 0; i < kMostWords; ++i) {
            const uint64_t place = registers.rsp + i * sizeof(uint64_t);
            const auto address = word_of(snapshot, place);
            if (!address) break;
            const auto call = call_before(*address, read_);
            if (!call || !call->target) continue;
            const auto slot = slots_.find(*call->target, registers.rip);
            if (slot && place_of(*slot, registers) == place)
                return caller_at(snapshot, registers, *slot, *call->target);
        }
        return std::nullopt;
    }

    std::unique_ptr<Dwfl, decltype(&dwfl_end)> files_;
    std::set<std::string> is_reported_;
    std::map<uint64_t, bool> has_table_;
    std::map<uint64_t, uint64_t> entries_;
    ProgramCode code_;
    ReadCode read_ = [this](uint64_t address, uint8_t* to, size_t most) {
        return code_.read(address, to, most);
    };
    ReturnSlotFinder slots_{read_};
    StackWalk walk_;
    bool is_attached_ = false;
    bool can_unwind_ = false;
};

SnapshotUnwinder::SnapshotUnwinder(std::shared_ptr<const ModuleTable> modules)
    : modules_(std::move(modules)) {
    if (modules_) files_ = std::make_unique<Files>(modules_);
}

SnapshotUnwinder::~SnapshotUnwinder() = default;

std::vector<uint64_t> SnapshotUnwinder::callers(const StackSnapshot& snapshot, size_t most) {
    return files_ ? files_->callers(snapshot, most) : std::vector<uint64_t>();
}

}  // namespace kmes::conformance::tracing
