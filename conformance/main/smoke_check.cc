// SPDX-License-Identifier: MIT
//
// Checks the report of a smoke run line by line. Each E line is matched with the most similar
// event, whatever is wrong with it, so that the one wrong field can be named.
#include "conformance/main/smoke_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/main/field_mistake.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// How strongly a correct field identifies the event, in the order of the fields.
constexpr unsigned kWeights[] = {0, 2, 2, 6, 1, 3, 1, 6};
constexpr unsigned kEnough = 6;
// The weight of being the next event on the same CPU, which decides if nothing else does.
constexpr unsigned kNextWeight = 1;
constexpr std::size_t kEventFields = 8;
// How many missing records of each CPU are reported one by one.
constexpr std::size_t kMissingShown = 2;

std::vector<std::string> split(std::string_view line) {
    std::vector<std::string> fields;
    for (std::size_t begin = 0;;) {
        const std::size_t end = line.find(' ', begin);
        fields.emplace_back(line.substr(begin, end - begin));
        if (end == std::string_view::npos) return fields;
        begin = end + 1;
    }
}

struct Line {
    std::uint64_t number = 0;
    std::string text;
    std::vector<std::string> fields;
    bool has_newline = true;
};

std::vector<Line> lines_of(std::string_view report) {
    std::vector<Line> lines;
    for (std::size_t begin = 0; begin < report.size();) {
        const std::size_t newline = report.find('\n', begin);
        const bool whole = newline != std::string_view::npos;
        const std::string_view text =
            report.substr(begin, whole ? newline - begin : std::string_view::npos);
        lines.push_back({lines.size() + 1, std::string(text), split(text), whole});
        begin += text.size() + 1;
    }
    return lines;
}

struct Match {
    std::uint32_t cpu = 0;
    const Event* event = nullptr;
};

class ReportCheck {
  public:
    ReportCheck(const History& history, std::string_view report)
        : history_(history), lines_(lines_of(report)), records_of_(history.cpus()) {}

    std::vector<LineProblem> run() {
        for (const Line& line : lines_) check_line(line);
        for (std::uint32_t cpu = 0; cpu < history_.cpus(); ++cpu) find_missing(cpu);
        // Sorted by line, problems without a line last. Problems of one line keep their order.
        std::multimap<std::uint64_t, LineProblem> by_line;
        for (LineProblem& problem : problems_)
            by_line.emplace(problem.line != 0 ? problem.line : ~std::uint64_t{0},
                            std::move(problem));
        std::vector<LineProblem> sorted;
        for (auto& [line, problem] : by_line) sorted.push_back(std::move(problem));
        return sorted;
    }

  private:
    // What the lines so far say about one CPU.
    struct CpuRecords {
        std::map<std::uint64_t, std::uint64_t> lines;  // by sequence number: the line of its record
        const Event* last = nullptr;
        std::optional<std::uint64_t> lost;  // an L since the last E
        std::uint64_t lost_line = 0;
        std::uint64_t end_line = 0;
        bool refused = false;
    };

    void complain(const Line& line, std::string what, std::string right = "") {
        problems_.push_back({line.number, std::move(what), quote_bytes(line.text), right});
    }

    void check_line(const Line& line) {
        if (!line.has_newline) {
            complain(
                line,
                "the report ends within the line; expected a newline at the end of each record");
        }
        Record record;
        const std::string malformed = parse_record_line(line.text, record);
        const bool looks_like_event = line.fields[0] == "E" || line.fields[0] == "e";
        const Match match = looks_like_event ? find_match(line) : Match{};
        if (match.event != nullptr) return check_event(line, match, malformed);
        if (!malformed.empty()) return complain(line, malformed);
        if (record.kind == RecordKind::comment) return;
        if (record.cpu >= history_.cpus()) {
            return complain(line, fmt::format("field 1 (cpu) is {}; there are {} CPUs here, from 0 "
                                              "to {}",
                                              record.cpu, history_.cpus(), history_.cpus() - 1));
        }
        const auto cpu = static_cast<std::uint32_t>(record.cpu);
        if (record.kind == RecordKind::event) {
            complain(line, fmt::format("there was no such event; event {} of CPU {} was another",
                                       record.sequence, cpu));
        } else if (record.kind == RecordKind::lost) {
            records_of_[cpu].lost = record.count;
            records_of_[cpu].lost_line = line.number;
            if (records_of_[cpu].last == nullptr) {
                complain(line, fmt::format("no event of CPU {} precedes the record; expected no "
                                           "count of events lost before the first one",
                                           cpu));
            }
        } else if (record.kind == RecordKind::generation) {
            check_generation(line, cpu, record.generation);
        } else {
            check_refusal(line, cpu);
        }
    }

    // The event that the line resembles most; nothing if it resembles none.
    Match find_match(const Line& line) const {
        Match best;
        unsigned best_score = 0;
        for (std::uint32_t cpu = 0; cpu < history_.cpus(); ++cpu) {
            for (const Event& event : history_.events_of(cpu)) {
                if (event.dropped) continue;
                const unsigned score = score_of(line, cpu, event);
                if (score <= best_score) continue;
                best_score = score;
                best = {cpu, &event};
            }
        }
        return best_score >= kEnough ? best : Match{};
    }

    unsigned score_of(const Line& line, std::uint32_t cpu, const Event& event) const {
        const std::vector<std::string> right = split(right_record(cpu, event));
        std::vector<std::string> fields = line.fields;
        std::erase(fields, "");  // from extra spaces
        if (!fields.empty() && fields.back().ends_with('\r')) fields.back().pop_back();
        unsigned score = 0;
        for (std::size_t i = 1; i < std::min(right.size(), fields.size()); ++i) {
            const bool same = fields[i] == right[i] || (i == 5 && fields[i] == event.type);
            if (same) score += kWeights[i];
        }
        const CpuRecords& records = records_of_[cpu];
        const std::uint64_t last = records.last == nullptr ? 0 : records.last->sequence;
        if (event.sequence == last + 1 && fields.size() > 1 && fields[1] == right[1]) {
            score += kNextWeight;
        }
        return score;
    }

    void check_event(const Line& line, const Match& match, const std::string& malformed) {
        const Event& event = *match.event;
        const std::string right = right_record(match.cpu, event);
        const std::vector<std::string> right_fields = split(right);
        CpuRecords& records = records_of_[match.cpu];
        std::string what;
        const bool has_shape = line.fields.size() == kEventFields && line.fields[0] == "E";
        if (!has_shape || line.text.ends_with('\r')) {
            what = malformed;
        } else {
            for (std::size_t i = 1; i < kEventFields; ++i) {
                if (line.fields[i] == right_fields[i]) continue;
                what +=
                    (what.empty() ? "" : "; ") + explain_field(i, line.fields[i], match.cpu, event);
            }
        }
        if (!what.empty()) complain(line, what, right);
        check_place(line, match);
        records.lines.emplace(event.sequence, line.number);
        if (records.last == nullptr || event.sequence > records.last->sequence)
            records.last = &event;
        if (event.type == kEndEventType) records.end_line = line.number;
        records.lost.reset();
    }

    // Checks for doubled records, wrong order, records after the end, and the L before.
    void check_place(const Line& line, const Match& match) {
        const Event& event = *match.event;
        CpuRecords& records = records_of_[match.cpu];
        const auto before = records.lines.find(event.sequence);
        if (before != records.lines.end()) {
            return complain(
                line,
                fmt::format("event {} of CPU {} is in line {} already; expected one record of it",
                            event.sequence, match.cpu, before->second));
        }
        if (records.end_line != 0) {
            return complain(line,
                            fmt::format("the record follows the event kmes.conformance.end of CPU "
                                        "{} (line {}); expected no record of the CPU after that",
                                        match.cpu, records.end_line));
        }
        if (records.last == nullptr) return;
        if (event.sequence < records.last->sequence) {
            return complain(
                line,
                fmt::format(
                    "event {} of CPU {} follows event {}; expected the order of sequence numbers",
                    event.sequence, match.cpu, records.last->sequence));
        }
        check_lost(line, match.cpu, event.sequence - records.last->sequence - 1, event);
    }

    void check_lost(const Line& line, std::uint32_t cpu, std::uint64_t lost, const Event& event) {
        const CpuRecords& records = records_of_[cpu];
        if (!records.lost || *records.lost == lost) return;
        const Line& loss = lines_[records.lost_line - 1];
        const std::string where = fmt::format(
            "between event {} (line {}) and event {} (line {}) of CPU {}", records.last->sequence,
            records.lines.at(records.last->sequence), event.sequence, line.number, cpu);
        if (lost == 0) {
            complain(loss, fmt::format("nothing was lost {}; expected no L record there", where));
        } else {
            complain(loss,
                     fmt::format("field 2 (count) is {}; {} {} lost {}", *records.lost, lost,
                                 lost == 1 ? "event was" : "events were", where),
                     fmt::format("L {} {}", cpu, lost));
        }
    }

    void check_generation(const Line& line, std::uint32_t cpu, std::uint64_t generation) {
        std::set<std::uint64_t> held;
        for (const BufferIndex index : history_.buffers_of(cpu)) {
            for (const GenerationValue& each : history_.buffer(index).generations) {
                held.insert(each.value);
            }
        }
        if (held.contains(generation)) return;
        const std::uint64_t current = history_.buffer(history_.current_buffer(cpu)).generation();
        complain(line,
                 fmt::format("field 2 (generation) is {}; the u64 at byte 32 of the buffer that it "
                             "reads now is {}",
                             generation, current),
                 fmt::format("G {} {}", cpu, current));
    }

    void check_refusal(const Line& line, std::uint32_t cpu) {
        records_of_[cpu].refused = true;
        const Buffer& buffer = history_.buffer(history_.current_buffer(cpu));
        if (may_refuse(buffer.fault)) return;
        complain(line,
                 fmt::format("the record refuses the sound buffer of CPU {}; expected its events, "
                             "since magic, version, capacity and data_offset are correct",
                             cpu));
    }

    void find_missing(std::uint32_t cpu) {
        const CpuRecords& records = records_of_[cpu];
        const Buffer& buffer = history_.buffer(history_.current_buffer(cpu));
        if (must_refuse(buffer.fault)) {
            if (records.refused) return;
            problems_.push_back(
                {0,
                 fmt::format("the buffer of CPU {} is malformed ({}); expected an R record", cpu,
                             buffer.fault_detail),
                 "", fmt::format("R {} {}", cpu, buffer.fault_detail)});
            return;
        }
        if (records.refused) return;
        std::size_t missing = 0;
        std::uint64_t line_before = 0;
        for (const Event& event : history_.events_of(cpu)) {
            if (event.dropped) continue;
            const auto found = records.lines.find(event.sequence);
            if (found != records.lines.end()) {
                line_before = found->second;
            } else if (++missing <= kMissingShown) {
                complain_missing(cpu, event, line_before);
            }
            if (event.type == kEndEventType) break;
        }
        if (missing > kMissingShown) {
            problems_.push_back(
                {0,
                 fmt::format("{} more records of CPU {} are missing", missing - kMissingShown, cpu),
                 "", ""});
        }
    }

    void complain_missing(std::uint32_t cpu, const Event& event, std::uint64_t line_before) {
        const std::string where =
            line_before == 0 ? std::string() : fmt::format(", after line {},", line_before);
        problems_.push_back({0,
                             fmt::format("the record of event {} of CPU {}{} is missing",
                                         event.sequence, cpu, where),
                             "", right_record(cpu, event)});
    }

    const History& history_;
    std::vector<Line> lines_;
    std::vector<CpuRecords> records_of_;  // by CPU
    std::vector<LineProblem> problems_;
};

}  // namespace

std::string right_record(std::uint32_t cpu, const Event& event) {
    return fmt::format("E {} {} {} {} {} {} {}", cpu, event.sequence, event.timestamp, event.origin,
                       hex_of(event.type), event.length, digest_text(event.digest()));
}

std::vector<LineProblem> check_report(const History& history, std::string_view report) {
    RecordParser parser;
    parser.feed(report);
    parser.finish();
    const std::vector<Finding> findings = judge(history, parser);
    if (findings.empty()) return {};
    std::vector<LineProblem> problems = ReportCheck(history, report).run();
    // If the explanation has found nothing, the judge's words are printed. (A mistake that is
    // explained has other consequences, which would only confuse.)
    const bool unexplained = problems.empty();
    for (const Finding& finding : findings) {
        if (unexplained || finding.code == FindingCode::missing_generation) {
            problems.push_back({finding.line, finding.message, "", ""});
        }
    }
    return problems;
}

}  // namespace kmes::conformance
