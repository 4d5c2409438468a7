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

constexpr std::uint32_t kContractVersion = 1;  // docs/testee-contract.md

}  // namespace

SuiteVersion suite_version(const std::string& commit_of_tree) {
    const std::string_view compiled_in = KMES_COMMIT;
    SuiteVersion suite;
    suite.release = KMES_RELEASE;
    suite.commit = compiled_in.empty() ? commit_of_tree : std::string(compiled_in);
    suite.ring_format = KMES_VERSION_1;
    suite.contract = kContractVersion;
    return suite;
}

std::string version_text(const std::string& commit_of_tree) {
    const SuiteVersion suite = suite_version(commit_of_tree);
    return fmt::format(
        "kmes-conformance {}, {}\nring format version {}\ntestee contract version {}\n",
        suite.release,
        suite.commit.empty() ? "unknown commit" : "commit " + printable(suite.commit),
        suite.ring_format, suite.contract);
}

}  // namespace kmes::conformance
