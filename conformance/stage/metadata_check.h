// SPDX-License-Identifier: MIT
//
// Finds bytes that the testee has written into a metadata page against the contract.
#ifndef KMES_CONFORMANCE_STAGE_METADATA_CHECK_H_
#define KMES_CONFORMANCE_STAGE_METADATA_CHECK_H_

#include <optional>

#include "conformance/model/finding.h"
#include "conformance/oracle/history.h"

namespace kmes::conformance {

class Rings;

// Compares the page with the bytes that the producer and the suite have written. Returns a finding
// for the first wrong byte, or for a wrong need_wake, if there is one.
std::optional<Finding> check_metadata(const Rings& rings, BufferIndex buffer);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_METADATA_CHECK_H_
