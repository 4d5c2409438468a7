// SPDX-License-Identifier: MIT
//
// See script_mutator.h.
#include "fuzz/script_mutator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "props/script/generate.h"
#include "props/script/mutate.h"
#include "props/script/script.h"

namespace kmes::fuzz {
namespace {

constexpr std::size_t kLeastBytes = 64;  // what mutate() needs
constexpr std::size_t kDrawnOperations = 8;

std::optional<props::Script> parse(const std::uint8_t* data, std::size_t size) {
    auto parsed = props::parse_script(std::string_view(reinterpret_cast<const char*>(data), size));
    if (auto* script = std::get_if<props::Script>(&parsed)) return std::move(*script);
    return std::nullopt;
}

std::size_t put(const props::Script& script, std::uint8_t* out, std::size_t most_bytes) {
    const std::string text = props::print_script(script);
    if (text.size() > most_bytes) return 0;
    std::memcpy(out, text.data(), text.size());
    return text.size();
}

}  // namespace

std::size_t mutate_script(std::uint8_t* data, std::size_t size, std::size_t most_bytes,
                          std::uint64_t seed) {
    if (most_bytes < kLeastBytes) return size;
    const auto profile = static_cast<props::Profile>(seed / 16 % props::kProfileCount);
    std::optional<props::Script> script = parse(data, size);
    if (!script) script = props::generate(seed, kDrawnOperations, profile);
    const std::size_t most = std::min(most_bytes, props::kMutantBytes);
    const std::size_t written = put(props::mutate(*script, seed, profile, most), data, most_bytes);
    return written != 0 ? written : size;
}

std::size_t cross_scripts(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other,
                          std::size_t other_size, std::uint8_t* out, std::size_t most_bytes,
                          std::uint64_t seed) {
    if (most_bytes < kLeastBytes) return 0;
    const std::optional<props::Script> first = parse(one, one_size);
    const std::optional<props::Script> second = parse(other, other_size);
    if (!first || !second) return 0;
    const std::size_t most = std::min(most_bytes, props::kMutantBytes);
    return put(props::cross(*first, *second, seed, most), out, most_bytes);
}

}  // namespace kmes::fuzz
