// SPDX-License-Identifier: MIT
//
// See msgpack_text.h. The format: https://github.com/msgpack/msgpack/blob/master/spec.md
#include "kmesctl/msgpack_text.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "kmesctl/escape.h"

namespace kmes::kmesctl {
namespace {

enum class Kind {
    kNil,
    kFalse,
    kTrue,
    kUnsigned,
    kSigned,
    kFloat,
    kString,
    kBinary,
    kExtension,
    kArray,
    kMap
};

// A value without its elements. For kArray and kMap, `count` is the number of elements (pairs of a
// map) that follow.
struct Token {
    Kind kind = Kind::kNil;
    std::uint64_t number = 0;  // kUnsigned; kSigned: two's complement
    double real = 0;
    int extension = 0;
    std::string_view bytes;  // kString, kBinary, kExtension
    std::uint32_t count = 0;
};

class Tokens {
  public:
    explicit Tokens(std::string_view bytes) : bytes_(bytes) {}

    // Reads the next token. Returns false if there is none; end() is the reason.
    bool next(Token& token) {
        std::uint64_t first = 0;
        if (!take_number(1, first)) return false;
        if (first < 0x80) return number(token, first);
        if (first < 0x90) return container(token, Kind::kMap, first & 0x0F);
        if (first < 0xA0) return container(token, Kind::kArray, first & 0x0F);
        if (first < 0xC0) return blob(token, Kind::kString, first & 0x1F);
        if (first >= 0xE0) return signed_number(token, first, 1);
        return next_long(token, static_cast<unsigned>(first));
    }
    // Reads one value and discards it. Returns false as next() does, or if the value is too deep.
    bool skip(unsigned depth) {
        Token token;
        if (!next(token)) return false;
        if (token.kind != Kind::kArray && token.kind != Kind::kMap) return true;
        if (depth == kMsgpackMaxDepth) {
            end_ = MsgpackEnd::kDeep;
            return false;
        }
        const std::uint64_t each = token.kind == Kind::kMap ? 2 : 1;
        for (std::uint64_t i = 0; i < token.count * each; ++i) {
            if (!skip(depth + 1)) return false;
        }
        return true;
    }
    MsgpackEnd end() const { return end_; }
    std::size_t position() const { return position_; }
    bool is_at_end() const { return position_ == bytes_.size(); }
    void rewind(std::size_t position) { position_ = position; }

  private:
    bool next_long(Token& token, unsigned first) {
        switch (first) {
            case 0xC0:
                return constant(token, Kind::kNil);
            case 0xC2:
                return constant(token, Kind::kFalse);
            case 0xC3:
                return constant(token, Kind::kTrue);
            case 0xC4:
            case 0xC5:
            case 0xC6:
                return sized(token, Kind::kBinary, first - 0xC4);
            case 0xC7:
            case 0xC8:
            case 0xC9:
                return sized(token, Kind::kExtension, first - 0xC7);
            case 0xCA:
            case 0xCB:
                return real(token, first == 0xCA ? 4 : 8);
            case 0xCC:
            case 0xCD:
            case 0xCE:
            case 0xCF:
                return unsigned_of(token, first - 0xCC);
            case 0xD0:
            case 0xD1:
            case 0xD2:
            case 0xD3:
                return signed_of(token, first - 0xD0);
            case 0xD4:
            case 0xD5:
            case 0xD6:
            case 0xD7:
            case 0xD8:
                return extension(token, std::uint64_t{1} << (first - 0xD4));
            case 0xD9:
            case 0xDA:
            case 0xDB:
                return sized(token, Kind::kString, first - 0xD9);
            case 0xDC:
            case 0xDD:
                return sized(token, Kind::kArray, first - 0xDC + 1);
            case 0xDE:
            case 0xDF:
                return sized(token, Kind::kMap, first - 0xDE + 1);
            default:
                end_ = MsgpackEnd::kReserved;
                return false;
        }
    }

    bool take_number(std::size_t bytes, std::uint64_t& value) {
        if (bytes > bytes_.size() - position_) return false;
        value = 0;
        for (std::size_t i = 0; i < bytes; ++i)
            value = value << 8 | static_cast<unsigned char>(bytes_[position_ + i]);
        position_ += bytes;
        return true;
    }
    static bool constant(Token& token, Kind kind) {
        token = {};
        token.kind = kind;
        return true;
    }
    static bool number(Token& token, std::uint64_t value) {
        constant(token, Kind::kUnsigned);
        token.number = value;
        return true;
    }
    static bool signed_number(Token& token, std::uint64_t value, unsigned bytes) {
        const unsigned shift = 64 - 8 * bytes;
        constant(token, Kind::kSigned);
        token.number =
            static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
        return true;
    }
    static bool container(Token& token, Kind kind, std::uint64_t count) {
        constant(token, kind);
        token.count = static_cast<std::uint32_t>(count);
        return true;
    }
    bool blob(Token& token, Kind kind, std::uint64_t bytes) {
        if (bytes > bytes_.size() - position_) return false;
        constant(token, kind);
        token.bytes = bytes_.substr(position_, bytes);
        position_ += bytes;
        return true;
    }
    bool extension(Token& token, std::uint64_t bytes) {
        std::uint64_t type = 0;
        if (!take_number(1, type) || !blob(token, Kind::kExtension, bytes)) return false;
        token.extension = static_cast<std::int8_t>(type);
        return true;
    }
    // Reads a token whose length field has 2^power bytes.
    bool sized(Token& token, Kind kind, unsigned power) {
        std::uint64_t length = 0;
        if (!take_number(std::size_t{1} << power, length)) return false;
        if (kind == Kind::kExtension) return extension(token, length);
        if (kind == Kind::kArray || kind == Kind::kMap) return container(token, kind, length);
        return blob(token, kind, length);
    }
    bool unsigned_of(Token& token, unsigned power) {
        std::uint64_t value = 0;
        return take_number(std::size_t{1} << power, value) && number(token, value);
    }
    bool signed_of(Token& token, unsigned power) {
        std::uint64_t value = 0;
        return take_number(std::size_t{1} << power, value) &&
               signed_number(token, value, 1U << power);
    }
    bool real(Token& token, std::size_t bytes) {
        std::uint64_t bits = 0;
        if (!take_number(bytes, bits)) return false;
        constant(token, Kind::kFloat);
        token.real =
            bytes == 8
                ? std::bit_cast<double>(bits)
                : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        return true;
    }

    const std::string_view bytes_;
    std::size_t position_ = 0;
    MsgpackEnd end_ = MsgpackEnd::kShort;
};

std::string real_text(double value) {
    if (std::isnan(value)) return "\"NaN\"";
    if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

std::string scalar_text(const Token& token) {
    switch (token.kind) {
        case Kind::kNil:
            return "null";
        case Kind::kFalse:
            return "false";
        case Kind::kTrue:
            return "true";
        case Kind::kUnsigned:
            return fmt::format("{}", token.number);
        case Kind::kSigned:
            return fmt::format("{}", static_cast<std::int64_t>(token.number));
        case Kind::kFloat:
            return real_text(token.real);
        case Kind::kString:
            return json_quoted(token.bytes);
        case Kind::kBinary:
            return fmt::format("\"hex:{}\"", hex_text(token.bytes));
        default:
            return fmt::format("\"ext {} hex:{}\"", token.extension, hex_text(token.bytes));
    }
}

class Writer {
  public:
    explicit Writer(std::string_view bytes) : bytes_(bytes), tokens_(bytes) {}

    bool value(unsigned depth) {
        Token token;
        const bool is_value = tokens_.next(token);
        if (!is_value) return ends(tokens_.end());
        if (token.kind != Kind::kArray && token.kind != Kind::kMap) return scalar(token);
        if (depth == kMsgpackMaxDepth) return ends(MsgpackEnd::kDeep);
        const bool is_map = token.kind == Kind::kMap;
        if (!write(is_map ? "{" : "[")) return false;
        for (std::uint32_t i = 0; i < token.count; ++i) {
            if (i > 0 && !write(",")) return false;
            if (is_map && (!key(depth + 1) || !write(":"))) return false;
            if (!value(depth + 1)) return false;
        }
        return write(is_map ? "}" : "]");
    }
    MsgpackText result(bool is_value) {
        if (is_value) end_ = tokens_.is_at_end() ? MsgpackEnd::kWhole : MsgpackEnd::kMore;
        return {std::move(text_), end_, tokens_.position()};
    }

  private:
    bool ends(MsgpackEnd end) {
        end_ = end;
        return false;
    }
    bool write(std::string_view piece) {
        if (piece.size() > kMsgpackMaxTextBytes - text_.size()) return ends(MsgpackEnd::kLong);
        text_ += piece;
        return true;
    }
    bool scalar(const Token& token) {
        // Check before the long text is built.
        if (token.bytes.size() > kMsgpackMaxTextBytes - text_.size())
            return ends(MsgpackEnd::kLong);
        return write(scalar_text(token));
    }
    // Writes a key. JSON keys are strings, so the text of another scalar is quoted. A container is
    // written as its bytes: quoted text would double its backslashes at each level.
    bool key(unsigned depth) {
        const std::size_t start = tokens_.position();
        Token token;
        if (!tokens_.next(token)) return ends(tokens_.end());
        if (token.kind == Kind::kArray || token.kind == Kind::kMap) {
            tokens_.rewind(start);
            if (!tokens_.skip(depth)) return ends(tokens_.end());
            const std::string_view key = bytes_.substr(start, tokens_.position() - start);
            return write(fmt::format("\"msgpack hex:{}\"", hex_text(key)));
        }
        if (token.kind >= Kind::kString) return scalar(token);
        const std::string text = scalar_text(token);
        return write(text.front() == '"' ? text : json_quoted(text));
    }

    const std::string_view bytes_;
    Tokens tokens_;
    std::string text_;
    MsgpackEnd end_ = MsgpackEnd::kShort;
};

// Moves `tokens` to the element `name` of the container that was just read.
bool enter(Tokens& tokens, const Token& container, std::string_view name) {
    if (container.kind == Kind::kArray) {
        std::uint32_t index = 0;
        const auto [stopped, error] =
            std::from_chars(name.data(), name.data() + name.size(), index);
        if (error != std::errc{} || stopped != name.data() + name.size()) return false;
        if (index >= container.count) return false;
        for (std::uint32_t i = 0; i < index; ++i) {
            if (!tokens.skip(1)) return false;
        }
        return true;
    }
    for (std::uint32_t i = 0; container.kind == Kind::kMap && i < container.count; ++i) {
        Tokens at_key = tokens;
        Token key;
        if (!at_key.next(key)) return false;
        if (!tokens.skip(1)) return false;
        if (key.kind == Kind::kString ? key.bytes == name
                                      : key.kind < Kind::kString && scalar_text(key) == name)
            return true;
        if (!tokens.skip(1)) return false;
    }
    return false;
}

}  // namespace

MsgpackText msgpack_text(std::string_view bytes) {
    Writer writer(bytes);
    const bool is_value = writer.value(0);
    return writer.result(is_value);
}

const char* msgpack_end_text(MsgpackEnd end) {
    switch (end) {
        case MsgpackEnd::kWhole:
            return "whole";
        case MsgpackEnd::kMore:
            return "more bytes after the value";
        case MsgpackEnd::kShort:
            return "the bytes end inside of the value";
        case MsgpackEnd::kReserved:
            return "0xc1 is not a value";
        case MsgpackEnd::kDeep:
            return "too deep to print";
        case MsgpackEnd::kLong:
            return "too long to print";
    }
    return "";
}

bool is_msgpack_container(std::string_view bytes) {
    Tokens tokens(bytes), first(bytes);
    Token token;
    if (!first.next(token) || (token.kind != Kind::kArray && token.kind != Kind::kMap))
        return false;
    return tokens.skip(0) && tokens.is_at_end();
}

std::optional<std::string> msgpack_field(std::string_view bytes, std::string_view path) {
    Tokens tokens(bytes);
    while (!path.empty()) {
        const std::size_t dot = path.find('.');
        Token token;
        if (!tokens.next(token) || !enter(tokens, token, path.substr(0, dot))) return std::nullopt;
        path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    }
    Tokens at_value = tokens;
    Token token;
    if (!at_value.next(token)) return std::nullopt;
    if (token.kind == Kind::kString) return std::string(token.bytes);
    Writer writer(bytes.substr(tokens.position()));
    if (!writer.value(0)) return std::nullopt;
    return writer.result(true).text;
}

}  // namespace kmes::kmesctl
