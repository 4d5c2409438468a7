// SPDX-License-Identifier: MIT
// Formats MessagePack as text. The bytes may be hostile. The functions read no other bytes, bound
// the depth and the size of the text, and allocate no memory for a length in the bytes.
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
    kShort,     // the bytes end inside the value
    kReserved,  // the byte 0xc1, which is not a value
    kDeep,      // deeper than kMsgpackMaxDepth
    kLong,      // the text would be longer than kMsgpackMaxTextBytes
};

inline constexpr unsigned kMsgpackMaxDepth = 32;
inline constexpr std::size_t kMsgpackMaxTextBytes = std::size_t{1} << 20;

struct MsgpackText {
    // JSON. A string represents values that JSON lacks: binary "hex:00ff", an extension "ext TYPE
    // hex:00ff", "NaN", "Infinity", "-Infinity". The text of a key is its number, nil or boolean;
    // for an array or a map it is "msgpack hex:8101". The text ends at the place that `end`
    // describes. It is JSON only after kWhole and kMore. Time and length are linear in the bytes.
    std::string text;
    MsgpackEnd end = MsgpackEnd::kShort;
    std::size_t read_bytes = 0;  // bytes of the value that were read
};

MsgpackText msgpack_text(std::string_view bytes);

// Returns a description of an end other than kWhole.
const char* msgpack_end_text(MsgpackEnd end);

// True if the bytes are one whole map or array.
bool is_msgpack_container(std::string_view bytes);

// Returns the value at `path` as text. The path consists of names of keys, separated by dots; a
// number is an index of an array. A string has no quotes; other values are as msgpack_text formats
// them. Returns nothing if the value does not exist, or if the bytes before it are not MessagePack.
std::optional<std::string> msgpack_field(std::string_view bytes, std::string_view path);

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_MSGPACK_TEXT_H_
