// SPDX-License-Identifier: MIT
//
// The records of a testee (testee contract, version 1): the content of one line, and the strict
// parser of a growing report file. Knows only the grammar of a line, not which events exist or who
// writes the file. Every byte of the input is hostile.
#ifndef KMES_CONFORMANCE_ORACLE_RECORD_H_
#define KMES_CONFORMANCE_ORACLE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

enum class RecordKind {
    event,       // E: an event was delivered
    lost,        // L: events were lost
    generation,  // G: the consumer reads from another buffer now
    refusal,     // R: the consumer refuses a buffer
    comment,     // #: printed, never judged
};

// One well-formed line. Fields that its kind does not have are zero or empty. A well-formed line
// can be wrong: `cpu` may be no CPU of this run, `length` not the length of any event.
struct Record {
    RecordKind kind = RecordKind::comment;
    std::uint64_t cpu = 0;
    std::uint64_t sequence = 0;    // E
    std::uint64_t timestamp = 0;   // E, ns
    std::uint64_t origin = 0;      // E
    std::string type;              // E, raw bytes (decoded from hex)
    std::uint64_t length = 0;      // E, payload bytes
    std::uint64_t digest = 0;      // E, FNV-1a of the payload
    std::uint64_t count = 0;       // L
    std::uint64_t generation = 0;  // G
    std::string text;  // R and #, bounded by kMaximumTextBytes; may contain any byte except newline

    std::uint64_t line = 0;          // 1 for the first line of the report
    std::uint64_t begin_offset = 0;  // of its first byte in the report
    std::uint64_t end_offset = 0;    // after its newline
};

// A line that is no record. `message` names the field, its mistake and the correct form, and quotes
// the line (escaped, bounded).
struct MalformedLine {
    std::uint64_t line = 0;
    std::uint64_t begin_offset = 0;
    std::string message;
    std::optional<std::uint64_t> cpu;  // if the line begins as a record of a CPU does
};

// Limits of a report. An honest testee never reaches them. A flood ends at them with one malformed
// line that says so.
struct RecordLimits {
    std::uint64_t maximum_report_bytes = std::uint64_t{1} << 28;
    std::size_t maximum_records = 2'000'000;
    std::size_t maximum_malformed_kept = 16;  // more are only counted
    std::size_t maximum_comments_kept = 1000;
};

// A type has at most 65535 bytes, so the longest correct E line has 131070 digits and fewer than
// 200 other bytes.
inline constexpr std::size_t kMaximumLineBytes = 2 * 65535 + 256;
inline constexpr std::size_t kMaximumTextBytes = 1024;
inline constexpr std::size_t kMaximumQuoteBytes = 120;

// Reads a report piece by piece. The time is linear in the number of bytes, whatever they are.
class RecordParser {
  public:
    explicit RecordParser(RecordLimits limits = {});

    // Takes the next bytes of the report, in order. A piece may end anywhere. After finish() or a
    // flood, bytes are only counted.
    void feed(std::string_view bytes);

    // The report is complete. A last line without a newline is malformed: each `write` must contain
    // whole lines.
    void finish();

    // In the order of the file. Comments are not included.
    const std::vector<Record>& records() const { return records_; }
    const std::vector<Record>& comments() const { return comments_; }
    // The first maximum_malformed_kept lines; malformed_count() counts all.
    const std::vector<MalformedLine>& malformed() const { return malformed_; }
    std::uint64_t malformed_count() const { return malformed_count_; }

    std::uint64_t bytes_fed() const { return bytes_fed_; }
    // The bytes so far of a last line without a newline.
    std::uint64_t partial_bytes() const { return partial_.size() + skipped_bytes_; }
    bool flooded() const { return flooded_; }

  private:
    void keep_partial(std::string_view piece);
    void take_line(std::string_view line, std::uint64_t end_offset);
    void add_malformed(std::string_view message, std::string_view line);
    void stop_flood(std::string_view what);

    RecordLimits limits_;
    std::vector<Record> records_;
    std::vector<Record> comments_;
    std::vector<MalformedLine> malformed_;
    std::uint64_t malformed_count_ = 0;
    std::uint64_t bytes_fed_ = 0;
    std::uint64_t line_ = 1;
    std::uint64_t line_begin_ = 0;
    std::string partial_;              // the beginning of the current line, bounded
    std::uint64_t skipped_bytes_ = 0;  // further bytes of the current line, not kept
    bool finished_ = false;
    bool flooded_ = false;
};

// Parses one line without its newline. On success fills `record` (except line and offsets) and
// returns an empty string. Otherwise returns the mistake, without the quoted line.
std::string parse_record_line(std::string_view line, Record& record);

// Quotes bytes for a message: in double quotes, all but printable ASCII as \xNN, with "..." after
// `maximum_bytes` bytes.
std::string quote_bytes(std::string_view bytes, std::size_t maximum_bytes = kMaximumQuoteBytes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_RECORD_H_
