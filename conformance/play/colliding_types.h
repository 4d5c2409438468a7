// SPDX-License-Identifier: MIT
//
// Pairs of types with the same 32-bit hash, for a consumer that takes a hash for the type. They
// come from random search: types of twelve letters were drawn until one had the hash of an earlier
// one. That took 40,000 to 140,000 types. colliding_types_test.cc computes each hash.
#ifndef KMES_CONFORMANCE_PLAY_COLLIDING_TYPES_H_
#define KMES_CONFORMANCE_PLAY_COLLIDING_TYPES_H_

#include <string_view>

namespace kmes::conformance {

struct CollidingTypes {
    std::string_view hash;
    std::string_view first, second;
};

inline constexpr CollidingTypes kCollidingTypes[] = {
    {"FNV-1a", "dvxkgsgpssit", "wblecdqxcrjv"},
    {"FNV-1", "hamlrwyfkcsd", "qzmrqrodqacr"},
    {"FNV-1a of 64 bits, the lower half", "lirwtqnfmupc", "cvggcfdbjyjq"},
    {"CRC-32", "fligqnozgaop", "gwstvluznsor"},
    {"CRC-32C", "ytpnojabnrfh", "cncxohltmhzl"},
    {"djb2", "jamywvybnsid", "eiuezinnlcob"},
    {"djb2 with exclusive or", "lqxzohgagnok", "umizxblbfgxu"},
    {"sdbm", "zdwtbxgictvr", "znybhioyucuk"},
    {"by 31", "fkoynfknpxln", "xkarfkxjazbb"},
    {"one at a time", "gzyodrddpvis", "dxtwenuapqtl"},
    {"MurmurHash3", "zfelethdlrqk", "pmuobtzkhzjq"},
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_COLLIDING_TYPES_H_
