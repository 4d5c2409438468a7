// SPDX-License-Identifier: MIT
#include "conformance/report/json_extent.h"

#include <algorithm>

namespace kmes::conformance {

JsonExtent json_extent(std::string_view text) {
    JsonExtent extent{.values = 1};
    std::size_t depth = 0;
    bool is_string = false;
    bool has_opened = false;  // a list or an object, and nothing has followed yet
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (is_string) {
            if (c == '\\') ++i;
            is_string = c != '"';
            continue;
        }
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
        const bool opens = c == '[' || c == '{';
        const bool closes = c == ']' || c == '}';
        if (c == ',' || (has_opened && !closes)) ++extent.values;
        has_opened = opens;
        is_string = c == '"';
        if (opens) extent.depth = std::max(extent.depth, ++depth);
        if (closes && depth > 0) --depth;
    }
    return extent;
}

}  // namespace kmes::conformance
