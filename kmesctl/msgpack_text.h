// SPDX-License-Identifier: MIT
//
// MessagePack as text. The bytes are hostile: nothing is read outside of them, depth and size of
// the text are bounded, and no length in them makes anything allocate.
#ifndef KMES_KMESCTL_MSGPACK_TEXT_H_
#define KMES_KMESCTL_MSGPACK_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kmes::kmesctl {

enum class MsgpackEnd {
    kWhole,     // one value, and nothing after it
    kMore,      // one value, and more bytes after it
    kShort,     // the bytes end inside of the value
    kReserved,  // the byte 0xc1, which is no value
    kDeep,      // deeper than kMsgpackMaxDepth
    kLong,      // the text would be longer than kMsgpackMaxTextBytes
};

inline constexpr unsigned kMsgpackMaxDepth = 32;
inline constexpr std::size_t kMsgpackMaxTextBytes = std::size_t{1} << 20;

struct MsgpackText {
    // JSON. A string holds what JSON has no form for: binary "hex:00ff", an extension
    // "ext TYPE hex:00ff", "NaN", "Infinity", "-Infinity". A key that is a number, nil or a
    // boolean is its text, an array or a map "msgpack hex:8101". The text ends where
    // `end` says; only after kWhole and kMore is it JSON. Time and length are linear in the bytes.
    std::string text;
    MsgpackEnd end = MsgpackEnd::kShort;
    std::size_t read_bytes = 0;  // bytes of the value that were read
};

MsgpackText msgpack_text(std::string_view bytes);

// What an end other than kWhole means, for a person.
const char* msgpack_end_text(MsgpackEnd end);

// True: the bytes are one whole map or array.
bool is_msgpack_container(std::string_view bytes);

// The value at `path` (names of keys, with dots between them; a number is an index of an array) as
// text: a string without quotes, everything else as msgpack_text has it. Nothing: it is not there,
// or the bytes are not MessagePack up to it.
std::optional<std::string> msgpack_field(std::string_view bytes, std::string_view path);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_MSGPACK_TEXT_H_
