// SPDX-License-Identifier: MIT
//
// The name of the function at an offset of an ELF file, from its own tables. Every byte of the file
// is untrusted. Knows no processes.

#ifndef CONFORMANCE_TRACER_SYMBOLS_H_
#define CONFORMANCE_TRACER_SYMBOLS_H_

#include <cstdint>
#include <string>

namespace kmes::conformance::tracing {

// Returns a C++ or Rust function's name as its author wrote it; any other name unchanged.
std::string as_written(const std::string& symbol);

// Returns "name+0x12" (the name as_written) for a file offset inside a function. Empty if the file
// has no such symbol or cannot be read.
std::string symbol_at(const std::string& path, uint64_t file_offset);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SYMBOLS_H_
