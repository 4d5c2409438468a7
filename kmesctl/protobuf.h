// SPDX-License-Identifier: MIT
// Writes messages in the wire format of Protocol Buffers
// (protobuf.dev/programming-guides/encoding).
#ifndef KMES_KMESCTL_PROTOBUF_H_
#define KMES_KMESCTL_PROTOBUF_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kmes::kmesctl {

class ProtobufMessage {
  public:
    // uint32, uint64 and enumerations.
    void add_number(std::uint32_t field, std::uint64_t value) {
        add_varint(std::uint64_t{field} << 3);
        add_varint(value);
    }
    // string: valid UTF-8. bytes.
    void add_bytes(std::uint32_t field, std::string_view value) {
        add_varint(std::uint64_t{field} << 3 | 2);
        add_varint(value.size());
        bytes_ += value;
    }
    void add_message(std::uint32_t field, const ProtobufMessage& message) {
        add_bytes(field, message.bytes_);
    }
    const std::string& bytes() const { return bytes_; }

  private:
    void add_varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

}  // namespace kmes::kmesctl

#endif  // KMES_KMESCTL_PROTOBUF_H_
