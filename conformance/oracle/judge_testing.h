// SPDX-License-Identifier: MIT
//
// For tests of the judge: a driver and a testee in one, with the findings of the judge.
#ifndef KMES_CONFORMANCE_ORACLE_JUDGE_TESTING_H_
#define KMES_CONFORMANCE_ORACLE_JUDGE_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/judge.h"

namespace kmes::conformance {

inline EventSpec spec_of(std::string type, std::string payload = "", std::uint64_t timestamp = 5) {
    return {std::move(type), std::move(payload), timestamp, 1, ""};
}

// A driver and a testee in one: it applies operations to the history, and writes lines of the
// report.
class TestRun {
  public:
    explicit TestRun(std::uint64_t capacity = 256, std::uint32_t cpus = 1)
        : history(make_settings(capacity, cpus)) {
        history.note_attached_all();
    }

    // The report is `pos()` bytes long when the next operation begins.
    std::uint64_t pos() const { return text_.size(); }
    void sync() { history.set_report_bytes(pos()); }

    std::uint64_t emit(std::uint32_t cpu, const EventSpec& spec) {
        sync();
        return history.emit(cpu, spec).sequence;
    }
    std::uint64_t emit_bytes(std::uint32_t cpu, std::uint64_t bytes, char fill = 'p') {
        return emit(cpu, spec_of("t", std::string(bytes - 30, fill)));
    }
    BufferIndex swap(std::uint32_t cpu, std::uint64_t capacity, bool attach = true) {
        sync();
        const BufferIndex fresh = history.swap(cpu, {capacity, PositionRule::keep, 0});
        if (attach) history.note_attached(fresh);
        return fresh;
    }
    void sleep(std::uint32_t cpu) {
        history.checkpoint_idle(cpu, history.current_buffer(cpu), pos());
    }

    void line(const std::string& text) { text_ += text + "\n"; }
    void deliver(std::uint32_t cpu, std::uint64_t sequence) {
        const Event& event = *history.find(cpu, sequence);
        deliver_as(cpu, sequence, event.type, event.length, event.digest());
    }
    void deliver_as(std::uint32_t cpu, std::uint64_t sequence, const std::string& type,
                    std::uint64_t length, std::uint64_t digest, std::uint64_t timestamp = 5,
                    unsigned origin = 1) {
        std::string hex;
        char buffer[40];
        for (const char byte : type) {
            std::snprintf(buffer, sizeof buffer, "%02x", static_cast<unsigned char>(byte));
            hex += buffer;
        }
        std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(digest));
        line("E " + std::to_string(cpu) + " " + std::to_string(sequence) + " " +
             std::to_string(timestamp) + " " + std::to_string(origin) + " " + hex + " " +
             std::to_string(length) + " " + buffer);
    }

    std::vector<Finding> findings() const {
        RecordParser parser;
        parser.feed(text_);
        parser.finish();
        return judge(history, parser, options);
    }
    // Returns the only finding; fails the test if there is another number of them.
    Finding only() const {
        const std::vector<Finding> found = findings();
        EXPECT_EQ(found.size(), 1u);
        for (const Finding& finding : found) {
            if (found.size() > 1) ADD_FAILURE() << finding.message;
        }
        return found.empty() ? Finding{} : found[0];
    }
    void expect_clean() const {
        for (const Finding& finding : findings()) {
            ADD_FAILURE() << finding_name(finding.code) << ": " << finding.message;
        }
    }

    History history;
    JudgeOptions options;

  private:
    static HistorySettings make_settings(std::uint64_t capacity, std::uint32_t cpus) {
        HistorySettings settings;
        settings.capacity_bytes = capacity;
        settings.cpus = cpus;
        return settings;
    }
    std::string text_;
};

#define EXPECT_CODE(finding, expected) \
    EXPECT_EQ(finding_name((finding).code), finding_name(FindingCode::expected))

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_JUDGE_TESTING_H_
