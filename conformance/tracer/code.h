// SPDX-License-Identifier: MIT
//
// Instructions of a program by their address: decoded once, told for people when somebody asks.
// Knows /proc and ELF files, no stops and no buffers.

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

// What was mapped at one time, and where its files are found as the program sees them.
struct ModuleTable {
    std::vector<MapsEntry> entries;
    std::string root;           // "/proc/<tid>/root"
    bool root_is_ours = false;  // then the same paths do when the program is gone

    const MapsEntry* find(uint64_t address) const;
    // The file of an entry, if it is still there and is a plain file; else empty.
    std::string file_of(const MapsEntry& entry) const;
};

// What a CodePlace keeps to describe itself later, without the program.
class CodeDetails {
  public:
    CodeDetails(Instruction instruction, uint64_t address,
                std::shared_ptr<const ModuleTable> modules)
        : instruction_(std::move(instruction)), address_(address), modules_(std::move(modules)) {}
    const CodeText& told() const;
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
    // Asked for where an instruction touches a buffer, once.
    Routine routine(RoutinePages& pages) const;

  private:
    mutable bool is_asked_ = false;
    mutable Routine routine_ = nullptr;
};

// The instructions of one program that have been looked at. What is mapped from a file and not
// writable does not change under an address unless something is mapped there: forget() is for that.
// All else is compared with what stands there each time.
class CodeTable {
  public:
    // Never null; of what cannot be read the instruction is not valid.
    std::shared_ptr<const Code> at(pid_t tid, uint64_t address);
    void forget();

  private:
    struct Entry {
        std::shared_ptr<const Code> code;
        bool can_change = true;
    };
    std::unordered_map<uint64_t, Entry> entries_;
    std::shared_ptr<const ModuleTable> modules_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_CODE_H_
