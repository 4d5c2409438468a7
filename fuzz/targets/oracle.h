// SPDX-License-Identifier: MIT
//
// The oracle's record parser and judge against whatever a testee may write.
//
// The first byte says which. Even: the bytes are the tape of the oracle's own simulation; a right
// consumer's report has no finding. Odd: a history is made of what comes next (a number of
// operations, then they), and the rest is the report, in which a byte from 0x80 on stands for the
// right record of an event of the history, so that a mutation of a few bytes is a mistake of a
// testee and no mere noise. It is fed in one piece and in many: nothing crashes, nothing differs,
// and what is found can be shown to a person.
#ifndef KMES_FUZZ_TARGETS_ORACLE_H_
#define KMES_FUZZ_TARGETS_ORACLE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_oracle(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_ORACLE_H_
