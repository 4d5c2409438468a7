// SPDX-License-Identifier: MIT
#include "record/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace kmes::record {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they are");

constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78;
constexpr std::size_t kSlices = 8;

// Table s, entry b: the contribution of byte b if s more bytes follow it.
constexpr auto make_tables() {
    std::array<std::array<std::uint32_t, 256>, kSlices> tables = {};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit)
            rest = (rest >> 1) ^ ((rest & 1) != 0 ? kReflectedPolynomial : 0);
        tables[0][byte] = rest;
    }
    for (std::size_t slice = 1; slice < kSlices; ++slice) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[slice - 1][byte];
            tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
    return tables;
}

constexpr auto kTables = make_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes) {
    std::uint64_t rest = ~std::uint32_t{0};
    for (; bytes.size() >= sizeof(rest); bytes = bytes.subspan(sizeof(rest))) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), sizeof(word));
        rest = __builtin_ia32_crc32di(rest, word);
    }
    auto last = static_cast<std::uint32_t>(rest);
    for (const std::byte byte : bytes)
        last = __builtin_ia32_crc32qi(last, static_cast<std::uint8_t>(byte));
    return ~last;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
    std::uint32_t rest = ~std::uint32_t{0};
    while (bytes.size() >= kSlices) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), sizeof(word));
        word ^= rest;
        rest = 0;
        for (std::size_t i = 0; i < kSlices; ++i)
            rest ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xff];
        bytes = bytes.subspan(kSlices);
    }
    for (const std::byte byte : bytes)
        rest = (rest >> 8) ^ kTables[0][(rest ^ static_cast<std::uint32_t>(byte)) & 0xff];
    return ~rest;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return by_instruction(bytes);
#endif
    return crc32c_by_table(bytes);
}

}  // namespace kmes::record
