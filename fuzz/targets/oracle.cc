// SPDX-License-Identifier: MIT
//
// See oracle.h.
#include "fuzz/targets/oracle.h"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/oracle/judge.h"
#include "conformance/oracle/simulation.h"
#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {
namespace {

using namespace kmes::conformance;

constexpr std::size_t kLongestTape = 600;
constexpr std::size_t kMostOperations = 64;

std::string show(const Finding& finding) {
    return std::string(finding_name(finding.code)) + " " + finding.clause + ": " + finding.message;
}

void blame_nobody(FuzzedBytes bytes) {
    std::vector<std::uint32_t> tape;
    while (!bytes.empty() && tape.size() < kLongestTape) tape.push_back(bytes.take<std::uint8_t>());
    simulation::World world(tape, simulation::Fault::none);
    world.run();
    for (const Finding& finding : world.findings())
        fail("a right consumer is blamed: " + show(finding) + "\nits report:\n" + world.report());
}

HistorySettings take_settings(FuzzedBytes& bytes) {
    constexpr std::uint64_t kStarts[] = {0, 1, 250, 0xfffffff0, 0x7ffffffffffffff0};
    HistorySettings settings;
    settings.cpus = static_cast<std::uint32_t>(1 + bytes.below(2));
    settings.capacity_bytes = std::uint64_t{256} << bytes.below(3);
    settings.start_positions = {kStarts[bytes.below(5)], kStarts[bytes.below(5)]};
    settings.first_sequence = 1 + bytes.below(4);
    if (bytes.below(4) == 1) settings.boot_capacity_bytes = std::uint64_t{64} << bytes.below(4);
    return settings;
}

EventSpec take_event(FuzzedBytes& bytes) {
    EventSpec spec;
    const std::uint64_t kind = bytes.below(16);
    spec.type = kind == 15 ? std::string(kEndEventType)
                           : std::string(1 + kind % 3, static_cast<char>('a' + kind));
    spec.origin = static_cast<std::uint8_t>(bytes.below(4));
    spec.timestamp = bytes.below(200);
    if (kind == 14) spec.extra_header = "later";
    spec.payload.assign(bytes.below(200), static_cast<char>(kind));
    return spec;
}

SwapSpec take_swap(FuzzedBytes& bytes) {
    SwapSpec spec;
    spec.capacity_bytes = std::uint64_t{128} << bytes.below(4);
    spec.rule = static_cast<PositionRule>(bytes.below(3));
    spec.position = bytes.below(256);
    return spec;
}

// The operations of a driver that obeys the history's rules: an operation that does not apply is
// skipped.
class Driver {
  public:
    explicit Driver(FuzzedBytes& bytes) : bytes_(bytes), history_(take_settings(bytes)) {}

    const History& history() const { return history_; }

    void play() {
        for (std::uint64_t left = bytes_.below(kMostOperations); left > 0; --left) {
            report_bytes_ += bytes_.below(64);
            history_.set_report_bytes(report_bytes_);
            const auto cpu = static_cast<std::uint32_t>(bytes_.below(history_.cpus()));
            const std::uint64_t what = bytes_.below(16);
            if (what < 10)
                produce(cpu, what);
            else
                observe(cpu, what);
        }
    }

  private:
    void produce(std::uint32_t cpu, std::uint64_t what) {
        const BufferIndex current = history_.current_buffer(cpu);
        const auto style = what == 4 ? EmitStyle::call : EmitStyle::kernel;
        if (what <= 4) {
            history_.emit(cpu, take_event(bytes_), style);
        } else if (what == 5) {
            history_.drop(cpu);
        } else if (what == 6) {
            if (!history_.batch_pending(cpu)) history_.batch_begin(cpu);
        } else if (what == 7) {
            if (history_.batch_pending(cpu)) history_.batch_add(cpu, take_event(bytes_), style);
        } else if (what == 8) {
            if (history_.batch_pending(cpu)) history_.batch_end(cpu);
        } else if (history_.buffer(current).boot) {
            history_.hand_over(cpu, take_swap(bytes_));
        } else {
            history_.swap(cpu, take_swap(bytes_));
        }
    }

    void observe(std::uint32_t cpu, std::uint64_t what) {
        const std::vector<BufferIndex>& buffers = history_.buffers_of(cpu);
        const BufferIndex index = buffers[bytes_.below(buffers.size())];
        const Buffer& buffer = history_.buffer(index);
        if (what == 10 || what == 11) {
            if (!buffer.boot) history_.note_attached(index);
        } else if (what == 12) {
            if (buffer.attached()) history_.note_draining(index);
        } else if (what == 13) {
            if (buffer.attached()) history_.checkpoint_idle(cpu, index, report_bytes_);
        } else if (what == 14) {
            if (!buffer.boot)
                history_.nudge(index);
            else
                history_.spurious_wake(index);
        } else if (bytes_.below(4) == 0) {
            history_.tolerate(cpu);
        } else {
            history_.set_fault(index, static_cast<BufferFault>(bytes_.below(7)), "as it was drawn");
        }
    }

    FuzzedBytes& bytes_;
    History history_;
    std::uint64_t report_bytes_ = 0;
};

std::string right_record(std::uint32_t cpu, const Event& event) {
    std::string line = "E " + std::to_string(cpu) + " " + std::to_string(event.sequence) + " " +
                       std::to_string(event.timestamp) + " " + std::to_string(event.origin) + " ";
    char text[20];
    for (const char byte : event.type) {
        std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(byte));
        line += text;
    }
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(event.digest()));
    return line + " " + std::to_string(event.length) + " " + text + "\n";
}

// 0x80 + n is the record of event n of CPU 0, 0xC0 + n of CPU 1.
std::string expand(const History& history, std::string_view drawn) {
    std::string report;
    for (const char drawn_byte : drawn) {
        const auto byte = static_cast<std::uint8_t>(drawn_byte);
        const std::uint32_t cpu = byte >> 6 & 1;
        const std::size_t index = byte & 0x3F;
        if (byte >= 0x80 && cpu < history.cpus() && index < history.events_of(cpu).size())
            report += right_record(cpu, history.events_of(cpu)[index]);
        else
            report.push_back(drawn_byte);
    }
    return report;
}

RecordLimits take_limits(FuzzedBytes& bytes) {
    RecordLimits limits;
    const std::uint64_t drawn = bytes.below(256);
    if (drawn < 200) return limits;
    limits.maximum_report_bytes = bytes.below(256);
    limits.maximum_records = bytes.below(8);
    limits.maximum_malformed_kept = bytes.below(4);
    limits.maximum_comments_kept = bytes.below(4);
    return limits;
}

void expect_same(const std::vector<Record>& a, const std::vector<Record>& b) {
    expect_equal(a.size(), b.size(), "the number of records of the report in pieces");
    for (std::size_t i = 0; i < a.size(); ++i) {
        expect(a[i].kind == b[i].kind && a[i].cpu == b[i].cpu && a[i].sequence == b[i].sequence &&
                   a[i].timestamp == b[i].timestamp && a[i].origin == b[i].origin &&
                   a[i].type == b[i].type && a[i].length == b[i].length &&
                   a[i].digest == b[i].digest && a[i].count == b[i].count &&
                   a[i].generation == b[i].generation && a[i].text == b[i].text &&
                   a[i].line == b[i].line && a[i].begin_offset == b[i].begin_offset &&
                   a[i].end_offset == b[i].end_offset,
               "a record differs when the report comes in pieces");
    }
}

void expect_same(const RecordParser& a, const RecordParser& b) {
    expect_same(a.records(), b.records());
    expect_same(a.comments(), b.comments());
    expect_equal(b.malformed_count(), a.malformed_count(), "malformed_count() in pieces");
    expect_equal(b.malformed().size(), a.malformed().size(), "malformed().size() in pieces");
    for (std::size_t i = 0; i < a.malformed().size(); ++i) {
        expect(a.malformed()[i].message == b.malformed()[i].message &&
                   a.malformed()[i].line == b.malformed()[i].line &&
                   a.malformed()[i].begin_offset == b.malformed()[i].begin_offset,
               "a malformed line differs when the report comes in pieces");
    }
    expect_equal(b.bytes_fed(), a.bytes_fed(), "bytes_fed() in pieces");
    expect_equal(b.flooded(), a.flooded(), "flooded() in pieces");
    expect_equal(b.partial_bytes(), a.partial_bytes(), "partial_bytes() in pieces");
}

void expect_records(const RecordParser& parser, const RecordLimits& limits) {
    expect(parser.records().size() <= limits.maximum_records, "more records than the limit");
    expect(parser.comments().size() <= limits.maximum_comments_kept, "more comments than kept");
    std::uint64_t line = 0, offset = 0;
    for (const Record& record : parser.records()) {
        expect(record.line > line && record.begin_offset >= offset &&
                   record.end_offset > record.begin_offset &&
                   record.end_offset <= parser.bytes_fed(),
               "records are not in the order of the report, or not inside of it");
        line = record.line;
        offset = record.end_offset;
    }
}

void expect_line(std::string_view message) {
    expect(!message.empty(), "a finding says nothing");
    for (const char byte : message) {
        if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f)
            fail("a finding is no line that can be shown: " + quote_bytes(message, 2000));
    }
}

void expect_sane(const std::vector<Finding>& findings, const History& history,
                 const RecordParser& parser) {
    for (const Finding& finding : findings) {
        expect(!finding.clause.empty(), "a finding without a clause: " + show(finding));
        expect(!finding_name(finding.code).empty(), "a finding without a name");
        expect_line(finding.message);
        expect_line(finding.clause);
        if (finding.cpu)
            expect(*finding.cpu < history.cpus(), "a finding of no CPU: " + show(finding));
        expect(finding.line <= parser.bytes_fed() + 1, "a finding of no line: " + show(finding));
    }
}

void expect_same(const std::vector<Finding>& a, const std::vector<Finding>& b) {
    expect_equal(b.size(), a.size(), "the number of findings, the second time,");
    for (std::size_t i = 0; i < a.size(); ++i) {
        expect(a[i].code == b[i].code && a[i].clause == b[i].clause &&
                   a[i].message == b[i].message && a[i].cpu == b[i].cpu &&
                   a[i].sequence == b[i].sequence && a[i].line == b[i].line,
               "a finding differs the second time: " + show(a[i]) + " / " + show(b[i]));
    }
}

void expect_same_progress(const History& history, const Progress& a, const Progress& b) {
    expect_equal(b.all_ended(), a.all_ended(), "all_ended() in pieces");
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        expect_equal(b.ended(cpu), a.ended(cpu), "ended() in pieces");
        expect_equal(b.refused(cpu), a.refused(cpu), "refused() in pieces");
        expect_equal(b.last_sequence(cpu), a.last_sequence(cpu), "last_sequence() in pieces");
        expect_equal(b.delivered_count(cpu), a.delivered_count(cpu), "delivered_count() in pieces");
        expect(a.first_undelivered(cpu) == b.first_undelivered(cpu),
               "first_undelivered() in pieces differs");
    }
}

void judge_report(FuzzedBytes bytes) {
    const std::uint64_t piece_bytes = 1 + bytes.below(40);
    const RecordLimits limits = take_limits(bytes);
    JudgeOptions options;
    const std::uint64_t drawn = bytes.below(32);
    options.exited_with_zero = (drawn & 1) != 0;
    options.cut_short = (drawn & 2) != 0;
    options.maximum_findings_per_code = drawn >> 2;
    Driver driver(bytes);
    driver.play();
    const History& history = driver.history();
    const std::string report = expand(history, bytes.rest());

    RecordParser whole(limits), pieces(limits);
    Progress at_once(history), in_pieces(history);
    whole.feed(report);
    for (std::size_t at = 0; at < report.size(); at += piece_bytes) {
        pieces.feed(std::string_view(report).substr(at, piece_bytes));
        in_pieces.update(pieces);
    }
    at_once.update(whole);
    expect_same(whole, pieces);
    expect_same_progress(history, at_once, in_pieces);
    whole.finish();
    pieces.finish();
    expect_same(whole, pieces);
    expect_records(whole, limits);
    const std::vector<Finding> findings = judge(history, whole, options);
    expect_sane(findings, history, whole);
    expect_same(findings, judge(history, pieces, options));
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu)
        expect(describe_history(history, whole, cpu) == describe_history(history, pieces, cpu),
               "describe_history differs the second time");
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_oracle(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    if (bytes.take<std::uint8_t>() % 2 == 0)
        kmes::fuzz::blame_nobody(bytes);
    else
        kmes::fuzz::judge_report(bytes);
    return 0;
}
