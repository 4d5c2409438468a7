// SPDX-License-Identifier: MIT
//
// The operations that a History was told, in order: enough to make it again, and so to judge a run
// again without a testee. Plain data and the replay; knows no file format.
#ifndef KMES_CONFORMANCE_ORACLE_HISTORY_LOG_H_
#define KMES_CONFORMANCE_ORACLE_HISTORY_LOG_H_

#include "conformance/oracle/history.h"

namespace kmes::conformance {

struct HistoryLog {
    HistorySettings settings;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_HISTORY_LOG_H_
