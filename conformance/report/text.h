// SPDX-License-Identifier: MIT
//
// Makes text from a testee safe to print: it may contain any byte. Knows no report.
#ifndef KMES_CONFORMANCE_REPORT_TEXT_H_
#define KMES_CONFORMANCE_REPORT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

// Keeps valid UTF-8, and replaces every other byte with \xNN.
std::string valid_utf8(std::string_view bytes);

// Keeps valid UTF-8 without control characters, so a terminal only shows it. `keep_lines` keeps
// newlines and tabs. Everything else becomes \xNN.
std::string printable(std::string_view bytes, bool keep_lines = false);

// Returns printable text for an element or an attribute of XML 1.0, with markup escaped.
// `keep_lines` keeps newlines and tabs. (In an attribute a parser would turn them into spaces.)
std::string xml_text(std::string_view bytes, bool keep_lines = false);

// Returns the beginning of a text, at most `most` bytes, without cutting a character. Bytes that
// are no UTF-8 may be cut anywhere.
std::string_view cut(std::string_view text, std::size_t most);

// Formats seconds since 1970 as "2026-11-26T18:46:00Z".
std::string utc_text(std::int64_t seconds);

// Breaks a text into lines of at most `width` bytes, at a space if there is one. Continuation lines
// begin with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Joins the words to one line for a POSIX shell, with quotes if necessary.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_TEXT_H_
