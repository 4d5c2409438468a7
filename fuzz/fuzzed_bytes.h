// SPDX-License-Identifier: MIT
//
// The bytes of a fuzzer's input as choices, taken from the front. After their end every choice is
// 0, so a shorter input means less, and never something else. Knows no target.
#ifndef KMES_FUZZ_FUZZED_BYTES_H_
#define KMES_FUZZ_FUZZED_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kmes::fuzz {

class FuzzedBytes {
  public:
    FuzzedBytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

    bool empty() const { return left_ == 0; }
    std::size_t left_bytes() const { return left_; }

    // In this machine's order (little-endian); missing bytes are zero.
    template <typename Integer>
    Integer take() {
        Integer value{};
        const std::size_t bytes = std::min(left_, sizeof(value));
        if (bytes != 0) std::memcpy(&value, at_, bytes);
        at_ += bytes;
        left_ -= bytes;
        return value;
    }

    // Returns 0 to count - 1, from as few bytes as that needs.
    std::uint64_t below(std::uint64_t count) {
        if (count <= 1) return 0;
        if (count <= 0x100) return take<std::uint8_t>() % count;
        if (count <= 0x10000) return take<std::uint16_t>() % count;
        if (count <= 0x100000000) return take<std::uint32_t>() % count;
        return take<std::uint64_t>() % count;
    }

    // Returns up to `bytes` of the remaining bytes.
    std::string_view piece(std::size_t bytes) {
        const std::size_t size = std::min(bytes, left_);
        const std::string_view taken(reinterpret_cast<const char*>(at_), size);
        at_ += size;
        left_ -= size;
        return taken;
    }

    std::string_view rest() { return piece(left_); }

  private:
    const std::uint8_t* at_;
    std::size_t left_;
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_FUZZED_BYTES_H_
