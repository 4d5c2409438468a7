// SPDX-License-Identifier: MIT
//
// Text of others, made safe for a terminal and for one line.
#ifndef KMES_KMESCTL_ESCAPE_H_
#define KMES_KMESCTL_ESCAPE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kmes::kmesctl {

// Valid UTF-8 without control characters stays. Every other byte is written as \n, \t, \r or \xHH;
// a backslash is doubled. Control characters are those below U+0020, U+007F to U+009F, the line
// separators U+2028 and U+2029, and the marks that change the direction of text.
std::string escaped(std::string_view text);

// The same for a text that is quoted: a double quote is escaped, too.
std::string quoted(std::string_view text);

// As a string of JSON: control characters are \uXXXX, bytes that are no UTF-8 are U+FFFD.
std::string json_quoted(std::string_view text);

// Two lower-case digits for each byte.
std::string hex_text(std::string_view bytes);

// How many bytes at the start of `text` are one valid character of UTF-8 (1 to 4); 0: none.
std::size_t utf8_bytes(std::string_view text, char32_t* code_point);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_ESCAPE_H_
