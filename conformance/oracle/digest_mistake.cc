// SPDX-License-Identifier: MIT
//
// Finds the reason of a wrong digest.
#include "conformance/oracle/digest_mistake.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace kmes::conformance {
namespace {

constexpr std::size_t kDigits = 16;
constexpr std::uint64_t kPrime32 = 0x01000193;
constexpr std::uint64_t kBasis32 = 0x811c9dc5;
// Wrong values of the two constants that circulate.
constexpr std::uint64_t kPrimeWithFewZeros = 0x1000001b3;
constexpr std::uint64_t kBasisWithoutLastDigit = 1469598103934665603;

std::uint64_t hash_a(std::string_view bytes, std::uint64_t basis, std::uint64_t prime) {
    for (const char byte : bytes) basis = (basis ^ static_cast<std::uint8_t>(byte)) * prime;
    return basis;
}

std::uint64_t hash_1(std::string_view bytes) {
    std::uint64_t hash = kFnvOffsetBasis;
    for (const char byte : bytes) hash = (hash * kFnvPrime) ^ static_cast<std::uint8_t>(byte);
    return hash;
}

// As with a signed `char`: a byte from 0x80 on also flips the upper bits.
std::uint64_t hash_signed(std::string_view bytes) {
    std::uint64_t hash = kFnvOffsetBasis;
    for (const char byte : bytes) {
        const auto widened = static_cast<std::int64_t>(static_cast<std::int8_t>(byte));
        hash = (hash ^ static_cast<std::uint64_t>(widened)) * kFnvPrime;
    }
    return hash;
}

std::uint64_t hash_32(std::string_view bytes) {
    auto hash = static_cast<std::uint32_t>(kBasis32);
    for (const char byte : bytes) {
        hash = (hash ^ static_cast<std::uint8_t>(byte)) * static_cast<std::uint32_t>(kPrime32);
    }
    return hash;
}

struct Suspect {
    std::uint64_t value;
    std::string what;
};

std::vector<Suspect> suspects(const EventSpec& event, std::uint64_t sequence, std::uint16_t cpu) {
    const std::string whole = encode_event(event, sequence, cpu);
    const std::string& payload = event.payload;
    const std::string after_type = event.extra_header + payload;
    return {
        {hash_1(payload), "FNV-1 of the payload (multiplies first); FNV-1a takes the byte first"},
        {hash_signed(payload),
         "FNV-1a with bytes that have a sign (a byte from 0x80 on is widened with ones)"},
        {fnv1a(whole), "FNV-1a of the whole event, header included"},
        {fnv1a(after_type), "FNV-1a from byte " + std::to_string(kHeaderBytesBeforeType) +
                                " + type_len on; the payload begins at header_size"},
        {fnv1a(event.type + payload), "FNV-1a of the type and the payload"},
        {fnv1a(event.type), "FNV-1a of the type"},
        {fnv1a(whole.substr(0, whole.size() - payload.size())), "FNV-1a of the header"},
        {fnv1a(""), "FNV-1a of no bytes at all"},
        {fnv1a(payload.substr(0, payload.empty() ? 0 : payload.size() - 1)),
         "FNV-1a of the payload without its last byte"},
        {fnv1a(payload + '\0'), "FNV-1a of the payload and a zero byte after it"},
        {fnv1a(hex_of(payload)), "FNV-1a of the payload's hex digits"},
        {hash_a(payload, 0, kFnvPrime), "FNV-1a with the offset basis 0"},
        {hash_a(payload, kBasisWithoutLastDigit, kFnvPrime),
         "FNV-1a with the offset basis 1469598103934665603; 14695981039346656037 has one digit "
         "more"},
        {hash_a(payload, kFnvOffsetBasis, kPrimeWithFewZeros),
         "FNV-1a with the prime 1000001b3; expected 100000001b3"},
        {hash_a(payload, kFnvOffsetBasis, kPrime32), "FNV-1a with the prime of the 32-bit hash"},
        {hash_32(payload), "the 32-bit FNV-1a"},
    };
}

std::optional<std::uint64_t> value_of(std::string_view digits, unsigned base) {
    if (digits.empty() || digits.size() > 20) return std::nullopt;
    std::uint64_t value = 0;
    for (const char digit : digits) {
        const std::size_t found = std::string_view("0123456789abcdef").find(digit);
        if (found >= base) return std::nullopt;
        value = value * base + found;
    }
    return value;
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& byte : lower) {
        if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
    }
    return lower;
}

// The digits of the field, and how their form differs from the correct one.
struct Form {
    std::string digits;
    std::string what;
};

Form form_of(std::string_view field) {
    Form form{lower_case(field), ""};
    const auto note = [&form](std::string_view what) {
        form.what += (form.what.empty() ? "" : ", ") + std::string(what);
    };
    if (form.digits != field) note("in upper case");
    if (form.digits.starts_with("0x")) {
        form.digits.erase(0, 2);
        note("with 0x before it");
    }
    if (form.digits.size() < kDigits) note("without its leading zeros");
    return form;
}

}  // namespace

std::string digest_text(std::uint64_t digest) {
    std::string digits(kDigits, '0');
    for (std::size_t i = kDigits; i > 0; --i, digest >>= 4)
        digits[i - 1] = "0123456789abcdef"[digest & 15];
    return digits;
}

std::string hex_of(std::string_view bytes) {
    std::string text;
    for (const char each : bytes) {
        const auto byte = static_cast<std::uint8_t>(each);
        text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    }
    return text;
}

std::string explain_digest(std::string_view field, const EventSpec& event, std::uint64_t sequence,
                           std::uint16_t cpu) {
    const Form form = form_of(field);
    const std::uint64_t right = fnv1a(event.payload);
    const std::string_view digits = form.digits;
    const auto value = value_of(digits.size() <= kDigits ? digits : std::string_view(), 16);
    const auto decimal = value_of(form.digits, 10);
    if (value == right) return "the right digest " + form.what;
    if (decimal == right) return "the right digest in decimal";
    if (!field.empty() && field[0] == '-' && value_of(field.substr(1), 10) == 0 - right) {
        return "the right digest in decimal, as a number with a sign";
    }
    if (value == __builtin_bswap64(right)) {
        return "the right digest with its bytes in the other order (most significant first is "
               "right)";
    }
    for (const Suspect& suspect : suspects(event, sequence, cpu)) {
        if (value == suspect.value) {
            // Leading zeros belong to the form of a shorter hash.
            return suspect.what + (form.what.empty() ? "" : ", " + form.what);
        }
        if (value == __builtin_bswap64(suspect.value)) {
            return suspect.what + ", with its bytes in the other order";
        }
        if (decimal == suspect.value) return suspect.what + ", in decimal";
    }
    return {};
}

}  // namespace kmes::conformance
