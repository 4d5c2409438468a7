// SPDX-License-Identifier: MIT
//
// The strict parser of records (testee contract, "Records"). Knows the grammar of a line only.
#include "conformance/oracle/record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace kmes::conformance {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kDigestDigits = 16;
constexpr std::size_t kLongestTypeBytes = 65535;

constexpr std::string_view kEventShape =
    "E <cpu> <sequence> <timestamp> <origin> <type> <length> <digest>";
constexpr std::string_view kLostShape = "L <cpu> <count>";
constexpr std::string_view kGenerationShape = "G <cpu> <generation>";
constexpr std::string_view kRefusalShape = "R <cpu> <reason>";

// The fields of one line, from left to right. After the first error, calls do nothing.
class FieldReader {
  public:
    FieldReader(std::string_view rest, std::string_view shape) : rest_(rest), shape_(shape) {}

    bool failed() const { return !error_.empty(); }
    const std::string& error() const { return error_; }

    // Returns the bytes up to the next space, and consumes the space.
    std::string_view text(std::string_view name) {
        if (failed()) return {};
        if (at_end_) {
            fail("field <", name, "> is missing");
            return {};
        }
        const std::size_t space = rest_.find(' ');
        const std::string_view field = rest_.substr(0, space);
        at_end_ = space == std::string_view::npos;
        rest_ = at_end_ ? std::string_view{} : rest_.substr(space + 1);
        if (field.empty()) {
            fail("field <", name,
                 "> is empty: fields are separated by one space, without one at the end");
        }
        return field;
    }

    std::uint64_t number(std::string_view name) {
        const std::string_view field = text(name);
        if (failed()) return 0;
        std::uint64_t value = 0;
        for (const char digit : field) {
            if (digit < '0' || digit > '9') return bad_number(name, field, "is no decimal number");
            const std::uint64_t add = static_cast<std::uint64_t>(digit - '0');
            if (value > (UINT64_MAX - add) / 10) {
                return bad_number(name, field, "does not fit 64 bits");
            }
            value = value * 10 + add;
        }
        if (field.size() > 1 && field[0] == '0') {
            return bad_number(name, field, "has leading zeros");
        }
        return value;
    }

    std::string hex_bytes(std::string_view name) {
        const std::string_view field = text(name);
        std::string bytes;
        if (failed()) return bytes;
        if (field.size() % 2 != 0) {
            fail("field <", name,
                 "> is " + quote_bytes(field, 40) +
                     ": an odd number of hex digits; expected two for each byte");
            return bytes;
        }
        if (field.size() / 2 > kLongestTypeBytes) {
            fail("field <", name, "> is longer than 65535 bytes, the longest type there is");
            return bytes;
        }
        bytes.reserve(field.size() / 2);
        for (std::size_t i = 0; i < field.size(); i += 2) {
            const int high = hex_value(name, field, field[i]);
            const int low = hex_value(name, field, field[i + 1]);
            if (high < 0 || low < 0) return {};
            bytes.push_back(static_cast<char>(high * 16 + low));
        }
        return bytes;
    }

    std::uint64_t digest(std::string_view name) {
        const std::string_view field = text(name);
        if (failed()) return 0;
        if (field.size() != kDigestDigits) {
            fail("field <", name,
                 "> is " + quote_bytes(field, 40) + ", " + std::to_string(field.size()) +
                     " characters; expected 16 lower-case hex digits");
            return 0;
        }
        std::uint64_t value = 0;
        for (const char digit : field) {
            const int nibble = hex_value(name, field, digit);
            if (nibble < 0) return 0;
            value = value * 16 + static_cast<std::uint64_t>(nibble);
        }
        return value;
    }

    // The rest of the line: free text.
    std::string_view remainder(std::string_view name) {
        if (failed()) return {};
        if (at_end_) fail("field <", name, "> is missing");
        at_end_ = true;
        return rest_;
    }

    void expect_end() {
        if (failed() || at_end_) return;
        error_ = "there is more after the last field: " + quote_bytes(rest_, 40) + "; expected " +
                 std::string(shape_);
    }

  private:
    void fail(std::string_view before, std::string_view name, std::string_view after) {
        if (failed()) return;
        error_.append(before).append(name).append(after).append(" in ").append(shape_);
    }

    std::uint64_t bad_number(std::string_view name, std::string_view field, std::string_view what) {
        fail("field <", name,
             "> is " + quote_bytes(field, 40) + ", which " + std::string(what) +
                 "; expected a decimal 64-bit number without sign or leading zeros");
        return 0;
    }

    int hex_value(std::string_view name, std::string_view field, char digit) {
        const std::size_t value = kHexDigits.find(digit);
        if (value != std::string_view::npos) return static_cast<int>(value);
        const bool upper_case = digit >= 'A' && digit <= 'F';
        fail("field <", name,
             "> is " + quote_bytes(field, 40) + ", which contains " +
                 quote_bytes(std::string_view(&digit, 1)) +
                 (upper_case ? ", an upper-case hex digit; expected lower-case ones"
                             : "; expected only the hex digits 0-9 and a-f"));
        return -1;
    }

    std::string_view rest_;
    std::string_view shape_;
    bool at_end_ = false;
    std::string error_;
};

std::string bounded_text(std::string_view text) {
    return std::string(text.substr(0, kMaximumTextBytes));
}

std::string parse_event(std::string_view rest, Record& record) {
    FieldReader fields(rest, kEventShape);
    record.kind = RecordKind::event;
    record.cpu = fields.number("cpu");
    record.sequence = fields.number("sequence");
    record.timestamp = fields.number("timestamp");
    record.origin = fields.number("origin");
    record.type = fields.hex_bytes("type");
    record.length = fields.number("length");
    record.digest = fields.digest("digest");
    fields.expect_end();
    return fields.error();
}

std::string parse_refusal(std::string_view rest, Record& record) {
    FieldReader fields(rest, kRefusalShape);
    record.kind = RecordKind::refusal;
    record.cpu = fields.number("cpu");
    const std::string_view reason = fields.remainder("reason");
    record.text = bounded_text(reason);
    if (fields.failed()) return fields.error();
    const auto foreign = std::find_if(reason.begin(), reason.end(), [](char byte) {
        return static_cast<unsigned char>(byte) >= 0x80 || byte == '\0';
    });
    if (foreign == reason.end()) return {};
    return "field <reason> holds the byte " + quote_bytes(std::string_view(&*foreign, 1)) +
           "; expected a line of ASCII";
}

std::string parse_counter(std::string_view rest, Record& record) {
    const bool lost = record.kind == RecordKind::lost;
    FieldReader fields(rest, lost ? kLostShape : kGenerationShape);
    record.cpu = fields.number("cpu");
    (lost ? record.count : record.generation) = fields.number(lost ? "count" : "generation");
    fields.expect_end();
    return fields.error();
}

// The CPU of "E 3 ...".
std::optional<std::uint64_t> cpu_of(std::string_view line) {
    if (line.size() < 3 || line[1] != ' ') return std::nullopt;
    std::uint64_t cpu = 0;
    const auto [end, error] = std::from_chars(line.data() + 2, line.data() + line.size(), cpu);
    const bool is_whole = end == line.data() + line.size() || *end == ' ';
    return error == std::errc() && is_whole ? std::optional(cpu) : std::nullopt;
}

}  // namespace

std::string parse_record_line(std::string_view line, Record& record) {
    record = Record{};
    if (line.empty()) return "the line is empty; expected a record or a comment";
    if (line[0] == '#') {
        record.kind = RecordKind::comment;
        line.remove_prefix(line.starts_with("# ") ? 2 : 1);
        record.text = bounded_text(line);
        return {};
    }
    if (line.back() == '\r') return "the line ends in CR LF; expected a line that ends in LF alone";
    const std::string_view kind = line.substr(0, line.find(' '));
    // Without a space there is no first field: the reader reports it as missing, not as empty.
    const bool bare = kind.size() == line.size();
    const std::string_view rest = bare ? std::string_view{} : line.substr(kind.size() + 1);
    if (bare && (kind == "E" || kind == "L" || kind == "G" || kind == "R")) {
        const std::string_view shape = kind == "E"   ? kEventShape
                                       : kind == "L" ? kLostShape
                                       : kind == "G" ? kGenerationShape
                                                     : kRefusalShape;
        return "field <cpu> is missing; expected " + std::string(shape);
    }
    if (kind == "E") return parse_event(rest, record);
    if (kind == "R") return parse_refusal(rest, record);
    if (kind == "L" || kind == "G") {
        record.kind = kind == "L" ? RecordKind::lost : RecordKind::generation;
        return parse_counter(rest, record);
    }
    return "unknown record " + quote_bytes(kind, 40) + "; expected E, L, G, R or #";
}

std::string quote_bytes(std::string_view bytes, std::size_t maximum_bytes) {
    std::string quoted = "\"";
    for (const char byte : bytes.substr(0, maximum_bytes)) {
        const unsigned char value = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\') {
            quoted.push_back('\\');
            quoted.push_back(byte);
        } else if (value >= 0x20 && value < 0x7f) {
            quoted.push_back(byte);
        } else {
            quoted.append("\\x");
            quoted.push_back(kHexDigits[value / 16]);
            quoted.push_back(kHexDigits[value % 16]);
        }
    }
    quoted.push_back('"');
    if (bytes.size() > maximum_bytes) quoted.append("...");
    return quoted;
}

RecordParser::RecordParser(RecordLimits limits) : limits_(limits) {}

void RecordParser::feed(std::string_view bytes) {
    const std::uint64_t begin = bytes_fed_;
    bytes_fed_ += bytes.size();
    if (finished_ || flooded_) return;
    const bool too_many = bytes_fed_ > limits_.maximum_report_bytes;
    if (too_many) bytes = bytes.substr(0, limits_.maximum_report_bytes - begin);

    std::size_t taken = 0;
    while (taken < bytes.size() && !flooded_) {
        const std::size_t newline = bytes.find('\n', taken);
        const std::size_t piece_end = newline == std::string_view::npos ? bytes.size() : newline;
        const std::string_view piece = bytes.substr(taken, piece_end - taken);
        if (newline == std::string_view::npos) {
            keep_partial(piece);
            taken = piece_end;
            break;
        }
        taken = newline + 1;
        if (partial_.empty() && skipped_bytes_ == 0 && piece.size() <= kMaximumLineBytes) {
            take_line(piece, begin + taken);
            continue;
        }
        keep_partial(piece);
        const std::string line = std::move(partial_);
        partial_.clear();
        take_line(line, begin + taken);
    }
    if (too_many && !flooded_) {
        stop_flood("the report is longer than " + std::to_string(limits_.maximum_report_bytes) +
                   " bytes; the rest was not read");
    }
}

void RecordParser::keep_partial(std::string_view piece) {
    const std::size_t room = kMaximumLineBytes - partial_.size();
    partial_.append(piece.substr(0, room));
    skipped_bytes_ += piece.size() - std::min(room, piece.size());
}

void RecordParser::take_line(std::string_view line, std::uint64_t end_offset) {
    Record record;
    const bool free_text = line.starts_with('#') || line.starts_with("R ");
    std::string error;
    if (skipped_bytes_ > 0 && !free_text) {
        error = "the line has " + std::to_string(line.size() + skipped_bytes_) +
                " bytes; the longest right record has fewer than " +
                std::to_string(kMaximumLineBytes);
    } else {
        error = parse_record_line(line, record);
    }
    record.line = line_;
    record.begin_offset = line_begin_;
    record.end_offset = end_offset;
    if (!error.empty()) {
        add_malformed(error, line);
    } else if (record.kind == RecordKind::comment) {
        if (comments_.size() < limits_.maximum_comments_kept)
            comments_.push_back(std::move(record));
    } else if (records_.size() < limits_.maximum_records) {
        records_.push_back(std::move(record));
    } else {
        stop_flood("the report holds more than " + std::to_string(limits_.maximum_records) +
                   " records; the rest was not read");
    }
    ++line_;
    line_begin_ = end_offset;
    skipped_bytes_ = 0;
}

void RecordParser::finish() {
    if (finished_) return;
    finished_ = true;
    if (flooded_ || (partial_.empty() && skipped_bytes_ == 0)) return;
    add_malformed("the report ends within a line; expected a newline at the end of every record",
                  partial_);
    partial_.clear();
    skipped_bytes_ = 0;
}

void RecordParser::add_malformed(std::string_view message, std::string_view line) {
    ++malformed_count_;
    if (malformed_.size() >= limits_.maximum_malformed_kept) return;
    malformed_.push_back({line_, line_begin_,
                          "line " + std::to_string(line_) +
                              " of the report: " + std::string(message) + ": " + quote_bytes(line),
                          cpu_of(line)});
}

void RecordParser::stop_flood(std::string_view what) {
    flooded_ = true;
    partial_.clear();
    skipped_bytes_ = 0;
    ++malformed_count_;
    malformed_.push_back({line_, line_begin_, std::string(what), std::nullopt});
}

}  // namespace kmes::conformance
