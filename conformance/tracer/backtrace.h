// SPDX-License-Identifier: MIT
//
// The callers of a stopped thread, found by libdw with the unwind tables of its files. Stripped
// files have these tables as well. In a snapshot, the code itself tells the caller of a function
// without tables. Knows no buffers and no stops.

#ifndef CONFORMANCE_TRACER_BACKTRACE_H_
#define CONFORMANCE_TRACER_BACKTRACE_H_

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/tracer/code.h"

namespace kmes::conformance::tracing {

// Returns the return addresses of a stopped thread, innermost first, at most `most`. Returns fewer
// or none if a frame cannot be unwound. `registers` are the thread's.
std::vector<uint64_t> return_addresses(pid_t tid, const user_regs_struct& registers, size_t most);

// A copy of a thread's stack, from which its callers can be found after it has resumed.
struct StackSnapshot {
    pid_t tid = 0;
    user_regs_struct registers = {};
    std::vector<uint8_t> bytes;  // from registers.rsp on

    // Enough for the frames of small functions, the usual accessors.
    static constexpr size_t kMostBytes = 2048;
};

// Before: the thread is stopped with these registers.
std::shared_ptr<const StackSnapshot> take_snapshot(pid_t tid, const user_regs_struct& registers);

// Finds the callers of snapshots that were taken in one program.
class SnapshotUnwinder {
  public:
    explicit SnapshotUnwinder(std::shared_ptr<const ModuleTable> modules);
    ~SnapshotUnwinder();
    SnapshotUnwinder(const SnapshotUnwinder&) = delete;
    SnapshotUnwinder& operator=(const SnapshotUnwinder&) = delete;

    const ModuleTable* modules() const { return modules_.get(); }
    // As return_addresses(); fewer where the snapshot ends. Also follows functions without unwind
    // tables, if their code tells where their return address is.
    std::vector<uint64_t> callers(const StackSnapshot& snapshot, size_t most);

  private:
    class Files;
    std::shared_ptr<const ModuleTable> modules_;
    std::unique_ptr<Files> files_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_BACKTRACE_H_
