// SPDX-License-Identifier: MIT
//
// See expected.h.
#include "conformance/main/expected.h"

#include <fmt/format.h>

#include <sstream>

#include "conformance/report/input_file.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {

CaseList read_case_list(const std::string& path, const std::vector<Case>& cases) {
    CaseList list;
    constexpr std::size_t kMostBytes = std::size_t{16} << 20;
    const InputFile file = read_input_file(path, kMostBytes);
    if (!file.error.empty()) list.error = "--expect-unsupported: " + file.error;
    std::istringstream in(file.text);
    for (std::string line; std::getline(in, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (line.empty() || line.front() == '#') continue;
        const std::string id = line.substr(0, line.find(' '));
        const Case* const known = find_case(cases, id);
        if (known == nullptr) {
            list.error = fmt::format("{}: there is no case \"{}\"", printable(path), printable(id));
            return list;
        }
        list.ids.emplace(known->id);
    }
    return list;
}

std::vector<ListDifference> differences(const RunReport& report,
                                        const std::set<std::string>& listed) {
    std::vector<ListDifference> lines;
    for (const CaseResult& result : report.results) {
        const bool is_unsupported = result.verdict == Verdict::unsupported;
        if (is_unsupported == listed.contains(result.id)) continue;
        lines.push_back(
            {result.id, is_unsupported
                            ? fmt::format("{} is unsupported, and not expected to be: {}",
                                          result.id, printable(result.message))
                            : fmt::format("{} is expected to be unsupported, and was not: {}",
                                          result.id, verdict_name(result.verdict))});
    }
    return lines;
}

}  // namespace kmes::conformance
