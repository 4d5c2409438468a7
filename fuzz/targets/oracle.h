// SPDX-License-Identifier: MIT
//
// The oracle's record parser and judge with arbitrary reports.
//
// The first byte selects one of two modes. Even: the bytes are the tape of the oracle's own
// simulation, in which a correct consumer's report has no finding. Odd: a number of operations
// follows, which make a history, and the rest is the report. A byte from 0x80 on in it stands for
// the correct record of an event of the history. So a mutation of a few bytes is a mistake of a
// testee, and not mere noise.
//
// The report is fed in one piece and in many. Nothing may crash, both results must be equal, and
// every finding must be printable.
#ifndef KMES_FUZZ_TARGETS_ORACLE_H_
#define KMES_FUZZ_TARGETS_ORACLE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_oracle(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_ORACLE_H_
