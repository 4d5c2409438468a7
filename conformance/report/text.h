// SPDX-License-Identifier: MIT
//
// Text from a testee made safe to print: it may hold any byte. Knows no report.
#ifndef KMES_CONFORMANCE_REPORT_TEXT_H_
#define KMES_CONFORMANCE_REPORT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

// Valid UTF-8 stays; every byte of what is not becomes \xNN.
std::string valid_utf8(std::string_view bytes);

// Valid UTF-8 without control characters: a terminal does nothing but show it. Newlines and tabs
// stay if `keep_lines`; everything else (and they, if not) becomes \xNN.
std::string printable(std::string_view bytes, bool keep_lines = false);

// Printable text for an element or an attribute of XML 1.0, with its markup escaped. Newlines and
// tabs stay if `keep_lines`; in an attribute a parser would make spaces of them.
std::string xml_text(std::string_view bytes, bool keep_lines = false);

// The beginning of a text that has at most `most` bytes and ends with a whole character. What is
// not UTF-8 is cut anywhere.
std::string_view cut(std::string_view text, std::size_t most);

// "2026-11-26T18:46:00Z" for seconds since 1970.
std::string utc_text(std::int64_t seconds);

// The lines of a text with none longer than `width` bytes: cut at a space, where there is one; what
// is cut goes on with so many spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// The words as one line for a POSIX shell, quoted where that is needed.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_TEXT_H_
