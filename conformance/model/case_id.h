// SPDX-License-Identifier: MIT
//
// The id of a case, `<clause>/<slug>`.
#ifndef KMES_CONFORMANCE_MODEL_CASE_ID_H_
#define KMES_CONFORMANCE_MODEL_CASE_ID_H_

#include <string_view>

namespace kmes::conformance {

// The clause in an id, or the whole of a text without a slash.
inline std::string_view clause_of_id(std::string_view id) {
    return id.substr(0, id.find('/'));
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_CASE_ID_H_
