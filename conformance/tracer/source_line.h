// SPDX-License-Identifier: MIT
//
// Finds the source line of an offset in an ELF file, and the functions around it. The debug
// information is in the file or in a separate one. Every byte of the files is untrusted. Knows no
// processes.

#ifndef CONFORMANCE_TRACER_SOURCE_LINE_H_
#define CONFORMANCE_TRACER_SOURCE_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/tracer/inline_chain.h"

namespace kmes::conformance::tracing {

// Returns "consumer.c:120", or empty if there is no debug information. Each file is read once in a
// process and stays open. Thread-safe.
std::string source_line_at(const std::string& path, uint64_t file_offset);

// Whether the line at this offset is in a file of a compiler or of a library. Thread-safe.
bool is_library_at(const std::string& path, uint64_t file_offset);

// Returns the functions at this offset: first the innermost inlined one, last the one that contains
// the code. Empty without debug information. Thread-safe.
std::vector<SourceFrame> source_frames_at(const std::string& path, uint64_t file_offset);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SOURCE_LINE_H_
