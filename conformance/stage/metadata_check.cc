// SPDX-License-Identifier: MIT
//
// See metadata_check.h.
#include "conformance/stage/metadata_check.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

// Returns the expected page, apart from the word of need_wake.
std::vector<std::uint8_t> right_page(const Rings& rings, BufferIndex index) {
    const History& history = rings.history();
    std::vector<std::uint8_t> right(kMetadataBytes, 0);
    const auto put = [&right](std::uint64_t offset, const void* bytes, std::size_t count) {
        std::memcpy(right.data() + offset, bytes, count);
    };
    const ExpectedMetadata expected = history.expected_metadata(index);
    const std::uint32_t version = 1;
    const std::uint64_t data_offset = kMetadataBytes;
    const std::uint32_t futex_counter = rings.counters().of(index);
    put(0, "KMESRING", 8);
    put(8, &version, 4);
    put(12, &expected.cpu_id, 2);
    put(16, &expected.capacity, 8);
    put(24, &data_offset, 8);
    put(32, &expected.generation, 8);
    put(64, &expected.write_pos, 8);
    put(72, &expected.tail_pos, 8);
    // Between reserve and commit the tail is ahead of the history.
    const std::uint64_t reserved_tail = rings.backend().state(index).tail;
    if (rings.emissions().is_reserved(history.buffer(index).cpu)) put(72, &reserved_tail, 8);
    put(128, &futex_counter, 4);
    rings.forged().put_metadata_into(index, right);
    return right;
}

}  // namespace

std::optional<Finding> check_metadata(const Rings& rings, BufferIndex index) {
    const std::uint64_t end_of_need_wake = kNeedWakeOffset + 4;  // a 32-bit store is correct too
    const std::uint32_t cpu = rings.history().buffer(index).cpu;
    const std::vector<std::uint8_t> right = right_page(rings, index);
    const std::uint8_t* page = rings.backend().base(index);
    // A fast comparison first: most pages are correct, and there may be hundreds.
    const bool is_right = std::memcmp(page, right.data(), kNeedWakeOffset) == 0 &&
                          std::memcmp(page + end_of_need_wake, right.data() + end_of_need_wake,
                                      kMetadataBytes - end_of_need_wake) == 0;
    for (std::uint64_t offset = 0; !is_right && offset < kMetadataBytes; ++offset) {
        if (offset >= kNeedWakeOffset && offset < end_of_need_wake) continue;
        // Forged positions remain until the producer publishes again.
        if (rings.history().tolerated(cpu) && offset >= 64 && offset < 80) continue;
        if (__atomic_load_n(page + offset, __ATOMIC_RELAXED) != right[offset])
            return write_outside(cpu, offset, 0, "");
    }
    std::uint8_t need_wake_bytes[4];
    for (std::uint64_t i = 0; i < 4; ++i)
        need_wake_bytes[i] = __atomic_load_n(page + kNeedWakeOffset + i, __ATOMIC_RELAXED);
    return judge_need_wake_bytes(cpu, need_wake_bytes);
}

}  // namespace kmes::conformance
