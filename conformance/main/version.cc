// SPDX-License-Identifier: MIT
//
// The lines that --version prints.
#include "conformance/main/version.h"

#include <fmt/format.h>

#include <string_view>

#include "conformance/main/release.h"
#include "conformance/report/text.h"
#include "kmes/abi.h"

namespace kmes::conformance {
namespace {

constexpr unsigned kContractVersion = 1;  // docs/testee-contract.md

}  // namespace

std::string version_text(const std::string& commit_of_tree) {
    const std::string_view compiled_in = KMES_COMMIT;
    const std::string commit = compiled_in.empty() ? commit_of_tree : std::string(compiled_in);
    return fmt::format(
        "kmes-conformance {}, {}\nring format version {}\ntestee contract version {}\n",
        KMES_RELEASE, commit.empty() ? "unknown commit" : "commit " + printable(commit),
        KMES_VERSION_1, kContractVersion);
}

}  // namespace kmes::conformance
