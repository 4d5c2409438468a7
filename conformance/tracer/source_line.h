// SPDX-License-Identifier: MIT
//
// The source line of an offset in an ELF file, from its debug information or that of a separate
// file beside it. Every byte of the files is untrusted. Knows no processes.

#ifndef CONFORMANCE_TRACER_SOURCE_LINE_H_
#define CONFORMANCE_TRACER_SOURCE_LINE_H_

#include <cstdint>
#include <string>

namespace kmes::conformance::tracing {

// "consumer.c:120"; empty if nothing says it. Files are read once in a process and kept open. From
// any thread.
std::string source_line_at(const std::string& path, uint64_t file_offset);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SOURCE_LINE_H_
