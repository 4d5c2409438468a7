// SPDX-License-Identifier: MIT
//
// Draws a driver's operations from a tape, all kinds that a driver may record in a History. Also
// prints the content of a History, to compare two of them. For tests.
#ifndef KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_
#define KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_

#include <string>

#include "conformance/oracle/history.h"
#include "conformance/oracle/simulation.h"

namespace kmes::conformance::simulation {

// Uses every kind of operation and every setting; no consumer.
History draw_history(Tape tape);

// Returns all values of every buffer and event.
std::string dump(const History& history);

}  // namespace kmes::conformance::simulation

#endif  // KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_
