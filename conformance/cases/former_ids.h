// SPDX-License-Identifier: MIT
//
// Earlier ids of cases. Lists, failure files and commands of other projects contain them, so each
// works forever in place of the current id.
#ifndef KMES_CONFORMANCE_CASES_FORMER_IDS_H_
#define KMES_CONFORMANCE_CASES_FORMER_IDS_H_

#include <string_view>
#include <vector>

namespace kmes::conformance {

struct FormerId {
    std::string_view former_id;
    std::string_view id;
};

const std::vector<FormerId>& former_ids();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_FORMER_IDS_H_
