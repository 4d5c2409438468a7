// SPDX-License-Identifier: MIT
// CRC-32C (Castagnoli), as in iSCSI (RFC 3720, B.4).
#ifndef KMES_RECORD_CRC32C_H_
#define KMES_RECORD_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace kmes::record {

// Uses the instruction of the processor, if it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes);

// The same for any processor.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace kmes::record

#endif  // KMES_RECORD_CRC32C_H_
