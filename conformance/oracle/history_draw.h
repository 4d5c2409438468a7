// SPDX-License-Identifier: MIT
//
// A driver that tells a History everything that a driver may tell it, drawn from a tape, and what a
// History holds as text, to compare two of them. Test only.
#ifndef KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_
#define KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_

#include <string>

#include "conformance/oracle/history.h"
#include "conformance/oracle/simulation.h"

namespace kmes::conformance::simulation {

// Every kind of operation and every setting; no consumer.
History draw_history(Tape tape);

// Every figure of every buffer and event.
std::string dump(const History& history);

}  // namespace kmes::conformance::simulation

#endif  // KMES_CONFORMANCE_ORACLE_HISTORY_DRAW_H_
