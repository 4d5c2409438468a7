// SPDX-License-Identifier: MIT
//
// See backtrace.h.

#include "conformance/tracer/backtrace.h"

#include <elfutils/libdwfl.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "conformance/tracer/memory.h"

namespace kmes::conformance::tracing {
// A walk over the frames of one thread. libdw passes its address to all callbacks.
struct StackWalk {
    pid_t tid = 0;
    const user_regs_struct* registers = nullptr;
    size_t most = 0;
    std::vector<uint64_t> found;
    const StackSnapshot* snapshot = nullptr;  // null: read the memory of the thread
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

bool read_word(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    const StackWalk& walk = *static_cast<StackWalk*>(argument);
    if (walk.snapshot != nullptr) {
        const std::vector<uint8_t>& bytes = walk.snapshot->bytes;
        const uint64_t offset = address - walk.registers->rsp;
        if (offset >= bytes.size() || bytes.size() - offset < sizeof *result) return false;
        memcpy(result, bytes.data() + offset, sizeof *result);
        return true;
    }
    const auto value = read_value<uint64_t>(walk.tid, address);
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

int take_frame(Dwfl_Frame* frame, void* argument) {
    StackWalk& walk = *static_cast<StackWalk*>(argument);
    Dwarf_Addr address = 0;
    bool is_innermost = false;
    if (!dwfl_frame_pc(frame, &address, &is_innermost)) return DWARF_CB_ABORT;
    if (address != walk.registers->rip || !walk.found.empty()) walk.found.push_back(address);
    return walk.found.size() < walk.most ? DWARF_CB_OK : DWARF_CB_ABORT;
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
    StackWalk walk{tid, &registers, most, {}, nullptr};
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
    explicit Files(const ModuleTable& modules) : files_(dwfl_begin(&kCallbacks), dwfl_end) {
        if (files_ == nullptr) return;
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

    std::vector<uint64_t> callers(const StackSnapshot& snapshot, size_t most) {
        if (files_ == nullptr) return {};
        walk_ = {snapshot.tid, &snapshot.registers, most, {}, &snapshot};
        if (!std::exchange(is_attached_, true))
            can_unwind_ =
                dwfl_attach_state(files_.get(), nullptr, snapshot.tid, &kThreadCallbacks, &walk_);
        if (can_unwind_) dwfl_getthread_frames(files_.get(), snapshot.tid, take_frame, &walk_);
        return std::move(walk_.found);
    }

  private:
    std::unique_ptr<Dwfl, decltype(&dwfl_end)> files_;
    std::set<std::string> is_reported_;
    StackWalk walk_;
    bool is_attached_ = false;
    bool can_unwind_ = false;
};

SnapshotUnwinder::SnapshotUnwinder(std::shared_ptr<const ModuleTable> modules)
    : modules_(std::move(modules)) {
    if (modules_) files_ = std::make_unique<Files>(*modules_);
}

SnapshotUnwinder::~SnapshotUnwinder() = default;

std::vector<uint64_t> SnapshotUnwinder::callers(const StackSnapshot& snapshot, size_t most) {
    return files_ ? files_->callers(snapshot, most) : std::vector<uint64_t>();
}

}  // namespace kmes::conformance::tracing
