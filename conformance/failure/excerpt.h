// SPDX-License-Identifier: MIT
//
// The part of a timeline that a report shows: the same steps as the trace on a terminal, in more
// rows. Knows no report and no way to draw.
#ifndef KMES_CONFORMANCE_FAILURE_EXCERPT_H_
#define KMES_CONFORMANCE_FAILURE_EXCERPT_H_

#include <cstddef>

#include "conformance/model/timeline.h"
#include "conformance/report/trace.h"

namespace kmes::conformance {

// Returns at most `maximum_rows` rows, with columns for at most `maximum_threads` threads. Decisive
// steps and the last step are always included. Texts are cut at kMaximumTraceTextBytes.
inline constexpr std::size_t kMaximumTraceTextBytes = 2000;
Trace excerpt(const Timeline& timeline, std::size_t maximum_rows = 80,
              std::size_t maximum_threads = 4);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_EXCERPT_H_
