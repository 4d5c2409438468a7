// SPDX-License-Identifier: MIT
//
// The code of a program, read from its files by address, also after the program's end. Every byte
// of the files is untrusted. Knows no processes.

#ifndef CONFORMANCE_TRACER_PROGRAM_CODE_H_
#define CONFORMANCE_TRACER_PROGRAM_CODE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/tracer/code.h"

namespace kmes::conformance::tracing {

class ProgramCode {
  public:
    explicit ProgramCode(std::shared_ptr<const ModuleTable> modules)
        : modules_(std::move(modules)) {}
    ~ProgramCode();
    ProgramCode(const ProgramCode&) = delete;
    ProgramCode& operator=(const ProgramCode&) = delete;

    // Copies at most `most` bytes. Returns how many are there: fewer at the end of a file, and none
    // outside of executable mappings of files.
    size_t read(uint64_t address, uint8_t* to, size_t most);

  private:
    const std::vector<uint8_t>& page(uint64_t number);
    int file_of(const MapsEntry& entry);

    std::shared_ptr<const ModuleTable> modules_;
    std::map<std::string, int> files_;  // by path; -1: it cannot be read
    std::map<uint64_t, std::vector<uint8_t>> pages_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_PROGRAM_CODE_H_
