// SPDX-License-Identifier: MIT
//
// The table of testees that `selftest` reads.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/main/selftest.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kLeastFields = 5;

std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields;
    for (std::size_t begin = 0;;) {
        const std::size_t tab = line.find('\t', begin);
        fields.emplace_back(line.substr(begin, tab - begin));
        if (tab == std::string_view::npos) return fields;
        begin = tab + 1;
    }
}

}  // namespace

SelftestTable parse_selftest_table(std::string_view text) {
    SelftestTable table;
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        ++number;
        if (line.empty() || line[0] == '#') continue;
        const std::vector<std::string> fields = fields_of(line);
        const bool broken = fields[0] == "broken";
        const bool sound = fields.size() >= kLeastFields && (broken || fields[0] == "correct") &&
                           !fields[1].empty() && !fields[2].empty() && !fields[4].empty() &&
                           broken != fields[3].empty();
        if (!sound) {
            table.error = fmt::format(
                "line {} is \"{}\"; expected broken|correct, name, language, case, program and its "
                "arguments, separated by tabs",
                number, printable(line));
            return table;
        }
        table.entries.push_back(
            {broken, fields[1], fields[2], fields[3], {fields.begin() + 4, fields.end()}});
    }
    if (table.entries.empty()) table.error = "it names no testee";
    return table;
}

}  // namespace kmes::conformance
