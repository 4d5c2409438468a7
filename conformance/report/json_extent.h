// SPDX-License-Identifier: MIT
//
// The number of values of a JSON text and its depth, which limit the memory that a parser takes.
#ifndef KMES_CONFORMANCE_REPORT_JSON_EXTENT_H_
#define KMES_CONFORMANCE_REPORT_JSON_EXTENT_H_

#include <cstddef>
#include <string_view>

namespace kmes::conformance {

// Counts without parsing. For text that is no JSON, the part before the first error has no more
// values and levels than that.
struct JsonExtent {
    std::size_t values = 0;  // numbers, strings, lists, objects and so on; names do not count
    std::size_t depth = 0;   // of lists and objects
};
JsonExtent json_extent(std::string_view text);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_EXTENT_H_
