// SPDX-License-Identifier: MIT
// Makes untrusted text safe for a terminal and for one line.
#ifndef KMES_KMESCTL_ESCAPE_H_
#define KMES_KMESCTL_ESCAPE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kmes::kmesctl {

// Keeps valid UTF-8 without control characters. Writes every other byte as \n, \t, \r or \xHH, and
// doubles a backslash. Control characters are those below U+0020, U+007F to U+009F, the line
// separators U+2028 and U+2029, and the marks that change the direction of text.
std::string escaped(std::string_view text);

// As escaped(), for quoted text: it also escapes a double quote.
std::string quoted(std::string_view text);

// Returns a string of JSON: control characters are \uXXXX, bytes that are not UTF-8 are U+FFFD.
std::string json_quoted(std::string_view text);

// Append the results of the functions above to `line`.
void append_escaped(std::string_view text, std::string* line);
void append_quoted(std::string_view text, std::string* line);
void append_json_quoted(std::string_view text, std::string* line);

// Returns true if the text is printable ASCII without a double quote and a backslash. The functions
// above do not change such a text.
bool is_plain(std::string_view text);

// Returns two lower-case digits for each byte.
std::string hex_text(std::string_view bytes);

// Returns the length in bytes (1 to 4) of the valid UTF-8 character at the start of `text`. 0:
// there is none.
std::size_t utf8_bytes(std::string_view text, char32_t* code_point);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_ESCAPE_H_
