// SPDX-License-Identifier: MIT
//
// Instructions of a program by their address: decoded once, described for people on demand. Knows
// /proc and ELF files, no stops and no buffers.

#ifndef CONFORMANCE_TRACER_CODE_H_
#define CONFORMANCE_TRACER_CODE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "conformance/tracer/decode.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/transplant.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// The mappings of a process at one time, and where its files are found.
struct ModuleTable {
    std::vector<MapsEntry> entries;
    std::string root;           // "/proc/<tid>/root"
    bool root_is_ours = false;  // the same paths then work after the program's end

    const MapsEntry* find(uint64_t address) const;
    // The file of an entry if it still exists and is a plain file; else empty.
    std::string file_of(const MapsEntry& entry) const;
};

// The data that a CodePlace needs to describe itself later, without the program.
class CodeDetails {
  public:
    CodeDetails(Instruction instruction, uint64_t address,
                std::shared_ptr<const ModuleTable> modules)
        : instruction_(std::move(instruction)), address_(address), modules_(std::move(modules)) {}
    const CodeText& resolved() const;
    const Instruction& instruction() const { return instruction_; }
    const std::shared_ptr<const ModuleTable>& modules() const { return modules_; }

  private:
    Instruction instruction_;
    uint64_t address_;
    std::shared_ptr<const ModuleTable> modules_;
    mutable std::once_flag once_;
    mutable CodeText text_;
};

struct Code {
    CodePlace place;
    const Instruction& instruction() const { return place.details->instruction(); }
    // The routine of the instruction, looked up once. Called only if the instruction touches a
    // buffer.
    Routine routine(RoutinePages& pages) const;

  private:
    mutable bool is_asked_ = false;
    mutable Routine routine_ = nullptr;
};

// The known instructions of one program. Each time they are compared with the memory: a program can
// change its code by mprotect, by another mapping of it, or through /proc/self/mem.
class CodeTable {
  public:
    // Never null. The instruction is not valid if the memory cannot be read.
    std::shared_ptr<const Code> at(pid_t tid, uint64_t address);
    // For a new mapping of code: the same bytes can be of another file.
    void forget();

  private:
    std::unordered_map<uint64_t, std::shared_ptr<const Code>> entries_;
    std::shared_ptr<const ModuleTable> modules_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_CODE_H_
