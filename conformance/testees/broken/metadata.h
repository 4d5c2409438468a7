// SPDX-License-Identifier: MIT
//
// The metadata page (5.1.6), as the designs in C++ map it.
#ifndef KMES_CONFORMANCE_TESTEES_BROKEN_METADATA_H_
#define KMES_CONFORMANCE_TESTEES_BROKEN_METADATA_H_

#include <atomic>
#include <cstdint>

struct Metadata {
    uint8_t magic[8];
    uint32_t version;
    uint16_t cpu_id, reserved0;
    uint64_t capacity, data_offset;
    std::atomic<uint64_t> generation;
    uint8_t reserved1[24];
    std::atomic<uint64_t> write_pos, tail_pos;
    uint8_t reserved2[48];
    std::atomic<uint32_t> futex_counter;
    std::atomic<uint8_t> need_wake;
};

#endif  // KMES_CONFORMANCE_TESTEES_BROKEN_METADATA_H_
