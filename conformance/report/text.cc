// SPDX-License-Identifier: MIT
//
// Makes text from a testee safe to print.
#include "conformance/report/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace kmes::conformance {
namespace {

void append_escaped(std::string& text, unsigned char byte) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text.append("\\x");
    text.push_back(kDigits[byte / 16]);
    text.push_back(kDigits[byte % 16]);
}

bool is_inside_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// The character at the beginning of `bytes`: its length in bytes, 0 if it is no valid UTF-8 (RFC
// 3629: no overlong form, no surrogate, nothing beyond U+10FFFF).
std::size_t character_bytes(std::string_view bytes, std::uint32_t& character) {
    const unsigned char first = static_cast<unsigned char>(bytes[0]);
    character = first;
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || bytes.size() < size) return 0;
    character = first & (0xffu >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        const unsigned char next = static_cast<unsigned char>(bytes[i]);
        if ((next & 0xc0) != 0x80) return 0;
        character = character << 6 | (next & 0x3f);
    }
    constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (character < kSmallest[size] || character > 0x10ffff) return 0;
    if (character >= 0xd800 && character <= 0xdfff) return 0;
    return size;
}

template <typename Allowed>
std::string filter(std::string_view bytes, Allowed allowed) {
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t i = 0; i < bytes.size();) {
        std::uint32_t character = 0;
        const std::size_t size = character_bytes(bytes.substr(i), character);
        if (size > 0 && allowed(character)) {
            text.append(bytes.substr(i, size));
            i += size;
            continue;
        }
        for (std::size_t end = i + std::max<std::size_t>(size, 1); i < end; ++i) {
            append_escaped(text, static_cast<unsigned char>(bytes[i]));
        }
    }
    return text;
}

// Appends $'...', which bash, zsh and the shells of POSIX 2024 expand.
void append_ansi_c_quoted(std::string& line, std::string_view word) {
    constexpr std::string_view kOctal = "01234567";
    line.append("$'");
    for (const char each : word) {
        const auto byte = static_cast<unsigned char>(each);
        if (byte == '\'' || byte == '\\') {
            line.push_back('\\');
            line.push_back(each);
        } else if (byte < 0x20 || byte >= 0x7f) {
            // Three octal digits, because some shells take more than two hexadecimal ones.
            line.push_back('\\');
            for (const unsigned shift : {6u, 3u, 0u}) line.push_back(kOctal[byte >> shift & 7]);
        } else {
            line.push_back(each);
        }
    }
    line.push_back('\'');
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
    return filter(bytes, [](std::uint32_t) { return true; });
}

std::string printable(std::string_view bytes, bool keep_lines) {
    return filter(bytes, [keep_lines](std::uint32_t character) {
        if (character == '\n' || character == '\t') return keep_lines;
        const bool control = character < 0x20 || (character >= 0x7f && character < 0xa0);
        // Characters that change the direction of writing or end the line.
        const bool moves = character == 0x2028 || character == 0x2029 ||
                           (character >= 0x202a && character <= 0x202e) ||
                           (character >= 0x2066 && character <= 0x2069);
        // YAML and XML permit no such character.
        const bool is_none = character == 0xfffe || character == 0xffff;
        return !control && !moves && !is_none;
    });
}

std::string xml_text(std::string_view bytes, bool keep_lines) {
    std::string text;
    for (const char c : printable(bytes, keep_lines)) {
        switch (c) {
            case '&':
                text += "&amp;";
                break;
            case '<':
                text += "&lt;";
                break;
            case '>':
                text += "&gt;";
                break;
            case '"':
                text += "&quot;";
                break;
            default:
                text.push_back(c);
        }
    }
    return text;
}

std::string utc_text(std::int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    char text[32];
    if (::gmtime_r(&time, &parts) == nullptr ||
        std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return "1970-01-01T00:00:00Z";
    return text;
}

std::string_view cut(std::string_view text, std::size_t most) {
    constexpr std::size_t kLongestCharacter = 4;
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && most - end < kLongestCharacter && is_inside_character(text[end])) --end;
    return text.substr(0, most - end < kLongestCharacter ? end : most);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        while (line.size() > width) {
            std::size_t cut = line.rfind(' ', width);
            // Do not cut within the indentation.
            if (cut == std::string::npos || line.find_first_not_of(' ') >= cut) {
                cut = width;
                while (cut > indent + 1 && is_inside_character(line[cut])) --cut;
            }
            const std::size_t rest = line.find_first_not_of(' ', cut);
            out.append(line, 0, cut).push_back('\n');
            line = rest == std::string::npos ? "" : std::string(indent, ' ') + line.substr(rest);
        }
        out.append(line).push_back('\n');
    }
    return out;
}

std::string shell_command(const std::vector<std::string>& words) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line.push_back(' ');
        if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
            line.append(word);
            continue;
        }
        if (printable(word) != word) {
            append_ansi_c_quoted(line, word);
            continue;
        }
        line.push_back('\'');
        for (const char byte : word) {
            if (byte == '\'') {
                line.append("'\\''");
            } else {
                line.push_back(byte);
            }
        }
        line.push_back('\'');
    }
    return line;
}

}  // namespace kmes::conformance
