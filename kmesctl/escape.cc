// SPDX-License-Identifier: MIT
//
// See escape.h.
#include "kmesctl/escape.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <iterator>

namespace kmes::kmesctl {
namespace {

bool is_control(char32_t c) {
    const bool is_direction = c == 0x061C || c == 0x200E || c == 0x200F ||
                              (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || is_direction;
}

constexpr std::uint64_t kEachByte = 0x0101010101010101;
constexpr std::uint64_t kHighBits = 0x80 * kEachByte;

constexpr bool is_plain(char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

// Returns a number that is not 0 if and only if one of the bytes is `c`.
constexpr std::uint64_t has_byte(std::uint64_t word, unsigned char c) {
    const std::uint64_t zero = word ^ (c * kEachByte);
    return (zero - kEachByte) & ~zero & kHighBits;
}

// Returns true only if each of the 8 bytes is plain.
constexpr bool are_plain(std::uint64_t word) {
    const std::uint64_t below_space = (word - ' ' * kEachByte) & ~word;
    return (((word | below_space) & kHighBits) | has_byte(word, '"') | has_byte(word, '\\') |
            has_byte(word, 0x7F)) == 0;
}

// Returns the length of the plain prefix, which no form escapes. Most texts are plain.
std::size_t plain_bytes(std::string_view text) {
    std::size_t bytes = 0;
    for (std::uint64_t word = 0; bytes + sizeof(word) <= text.size(); bytes += sizeof(word)) {
        std::memcpy(&word, text.data() + bytes, sizeof(word));
        if (!are_plain(word)) break;
    }
    while (bytes < text.size() && is_plain(text[bytes])) ++bytes;
    return bytes;
}

// Moves the plain prefix of `text` to `line`. Returns false if `text` is then empty.
bool append_plain(std::string_view* text, std::string* line) {
    const std::size_t bytes = plain_bytes(*text);
    line->append(text->data(), bytes);
    text->remove_prefix(bytes);
    return !text->empty();
}

void append_escaped(std::string_view text, bool escapes_quotes, std::string* line) {
    while (append_plain(&text, line)) {
        char32_t c = 0;
        const std::size_t bytes = utf8_bytes(text, &c);
        if (bytes > 0 && (c == '\\' || (c == '"' && escapes_quotes))) {
            *line += '\\';
            *line += static_cast<char>(c);
        } else if (bytes > 0 && !is_control(c)) {
            *line += text.substr(0, bytes);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            *line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
        } else {
            for (const char byte : text.substr(0, bytes > 0 ? bytes : 1))
                fmt::format_to(std::back_inserter(*line), "\\x{:02x}",
                               static_cast<unsigned char>(byte));
        }
        text.remove_prefix(bytes > 0 ? bytes : 1);
    }
}

}  // namespace

std::size_t utf8_bytes(std::string_view text, char32_t* code_point) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.empty()) return 0;
    const unsigned first = byte(0);
    const std::size_t bytes = first < 0x80   ? 1
                              : first < 0xC2 ? 0
                              : first < 0xE0 ? 2
                              : first < 0xF0 ? 3
                              : first < 0xF5 ? 4
                                             : 0;
    if (bytes == 0 || bytes > text.size()) return 0;
    char32_t value = bytes == 1 ? first : first & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
        value = value << 6 | (byte(i) & 0x3F);
    }
    const bool is_overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
    if (is_overlong || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) return 0;
    *code_point = value;
    return bytes;
}

void append_escaped(std::string_view text, std::string* line) {
    append_escaped(text, false, line);
}

void append_quoted(std::string_view text, std::string* line) {
    *line += '"';
    append_escaped(text, true, line);
    *line += '"';
}

void append_json_quoted(std::string_view text, std::string* line) {
    *line += '"';
    while (append_plain(&text, line)) {
        char32_t c = 0;
        const std::size_t bytes = utf8_bytes(text, &c);
        if (bytes == 0) {
            *line += "\\ufffd";
        } else if (is_control(c)) {
            fmt::format_to(std::back_inserter(*line), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            if (c == '\\' || c == '"') *line += '\\';
            *line += text.substr(0, bytes);
        }
        text.remove_prefix(bytes > 0 ? bytes : 1);
    }
    *line += '"';
}

std::string escaped(std::string_view text) {
    std::string line;
    append_escaped(text, &line);
    return line;
}

std::string quoted(std::string_view text) {
    std::string line;
    append_quoted(text, &line);
    return line;
}

std::string json_quoted(std::string_view text) {
    std::string line;
    append_json_quoted(text, &line);
    return line;
}

bool is_plain(std::string_view text) {
    return plain_bytes(text) == text.size();
}

std::string hex_text(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const char each : bytes) {
        const auto byte = static_cast<unsigned char>(each);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 0x0F];
    }
    return text;
}

}  // namespace kmes::kmesctl
