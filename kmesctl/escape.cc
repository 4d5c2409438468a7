// SPDX-License-Identifier: MIT
//
// See escape.h.
#include "kmesctl/escape.h"

#include <fmt/format.h>

#include <iterator>

namespace kmes::kmesctl {
namespace {

bool is_control(char32_t c) {
    const bool is_direction = c == 0x061C || c == 0x200E || c == 0x200F ||
                              (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || is_direction;
}

std::string escaped_with(std::string_view text, bool escapes_quotes) {
    std::string line;
    line.reserve(text.size());
    while (!text.empty()) {
        char32_t c = 0;
        const std::size_t bytes = utf8_bytes(text, &c);
        if (bytes > 0 && (c == '\\' || (c == '"' && escapes_quotes))) {
            line += '\\';
            line += static_cast<char>(c);
        } else if (bytes > 0 && !is_control(c)) {
            line += text.substr(0, bytes);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
        } else {
            for (const char byte : text.substr(0, bytes > 0 ? bytes : 1))
                fmt::format_to(std::back_inserter(line), "\\x{:02x}",
                               static_cast<unsigned char>(byte));
        }
        text.remove_prefix(bytes > 0 ? bytes : 1);
    }
    return line;
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

std::string escaped(std::string_view text) {
    return escaped_with(text, false);
}

std::string quoted(std::string_view text) {
    return '"' + escaped_with(text, true) + '"';
}

std::string json_quoted(std::string_view text) {
    std::string line = "\"";
    line.reserve(text.size() + 2);
    while (!text.empty()) {
        char32_t c = 0;
        const std::size_t bytes = utf8_bytes(text, &c);
        if (bytes == 0) {
            line += "\\ufffd";
        } else if (is_control(c)) {
            fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            if (c == '\\' || c == '"') line += '\\';
            line += text.substr(0, bytes);
        }
        text.remove_prefix(bytes > 0 ? bytes : 1);
    }
    return line + '"';
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
