// SPDX-License-Identifier: MIT
//
// See play.h.
#include "conformance/cases/play.h"

#include <utility>

#include "conformance/cases/forge.h"

namespace kmes::conformance {

AddCase add_to(std::vector<Case>& cases) {
    return
        [&cases](std::string_view id, Level level, std::string_view clause, std::string_view title,
                 std::string_view description, std::string_view expectation, CaseFunction run) {
            cases.push_back({id, level, clause, title, description, expectation, std::move(run)});
        };
}

void give_version_2(Stage& stage, std::uint32_t cpu) {
    break_field(stage, cpu, BufferFault::version, 8, bytes_of<std::uint32_t>(2), "version 2");
}

}  // namespace kmes::conformance
