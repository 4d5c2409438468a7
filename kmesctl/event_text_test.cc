// SPDX-License-Identifier: MIT
// append_event_line: each line equals its separately formatted fields in a row.
#include "kmesctl/event_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "kmesctl/escape.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kTimeNs = 1'795'900'000 * kSecondNs + 12'345'678;

struct Event {
    std::string type = "app.start";
    std::string payload = "hello";
    std::uint64_t timestamp = kTimeNs;
    std::uint64_t sequence = 7;
    unsigned cpu = 3;
    unsigned origin = 0;
};

std::string line_of(const Event& event, const LineStyle& style) {
    kmes_event_view view = {};
    view.type = reinterpret_cast<const unsigned char*>(event.type.data());
    view.type_len = static_cast<std::uint16_t>(event.type.size());
    view.payload = reinterpret_cast<const unsigned char*>(event.payload.data());
    view.payload_len = static_cast<std::uint32_t>(event.payload.size());
    view.timestamp = event.timestamp;
    view.sequence = event.sequence;
    view.cpu_id = static_cast<std::uint16_t>(event.cpu);
    view.origin_class = static_cast<std::uint8_t>(event.origin);
    std::string line;
    append_event_line(view, style, &line);
    return line;
}

std::string time_of(std::uint64_t timestamp_ns) {
    const auto second = static_cast<std::time_t>(timestamp_ns / kSecondNs);
    std::tm parts{};
    gmtime_r(&second, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    return fmt::format("{}.{:09}Z", text, timestamp_ns % kSecondNs);
}

void expect_text_line(const Event& event) {
    const std::string payload = event.payload.empty() ? "" : " " + kmesctl::quoted(event.payload);
    EXPECT_EQ(line_of(event, {PayloadForm::kText, false, false}),
              fmt::format("{} cpu {} #{} {} {}{}\n", time_of(event.timestamp), event.cpu,
                          event.sequence, origin_text(event.origin), escaped(event.type), payload));
}

void expect_json_line(const Event& event) {
    EXPECT_EQ(line_of(event, {PayloadForm::kText, true, false}),
              fmt::format("{{\"timestamp\":{},\"cpu\":{},\"sequence\":{},\"origin\":{},\"type\":{},"
                          "\"payload_form\":\"text\",\"payload\":{}}}\n",
                          event.timestamp, event.cpu, event.sequence, event.origin,
                          json_quoted(event.type), json_quoted(event.payload)));
}

void expect_lines(const Event& event) {
    expect_text_line(event);
    expect_json_line(event);
}

TEST(EventLine, HasEveryFieldAtItsEnds) {
    expect_lines({});
    expect_lines({.sequence = 0, .cpu = 0});
    expect_lines({.sequence = UINT64_MAX, .cpu = 65535, .origin = 255});
    for (unsigned origin = 0; origin < 6; ++origin) expect_lines({.origin = origin});
}

TEST(EventLine, HasTheTimeOfItsOwnEventInAnyOrder) {
    for (const std::uint64_t time :
         {kTimeNs, kTimeNs + 1, kTimeNs + kSecondNs, kTimeNs, std::uint64_t{0}, std::uint64_t{1},
          kSecondNs - 1, kSecondNs, kSecondNs + 1, 10 * kSecondNs - 1,
          kTimeNs / kSecondNs * kSecondNs, kTimeNs / kSecondNs * kSecondNs + kSecondNs - 1,
          std::uint64_t{UINT64_MAX}})
        expect_lines({.timestamp = time});
}

// Short plain texts have a fast path. The texts are on both sides of its limits.
TEST(EventLine, IsTheSameForPlainShortTextsAndOthers) {
    const std::vector<std::string> texts = {"",
                                            "a",
                                            "12345678",
                                            "123456789",
                                            "a\"b",
                                            "a\\b",
                                            "a\n",
                                            "1234567\x7f",
                                            "caf\xc3\xa9",
                                            "12345678\xff",
                                            " space and ~",
                                            std::string(511, 'x'),
                                            std::string(512, 'x'),
                                            std::string(513, 'x'),
                                            std::string(511, 'x') + "\"",
                                            std::string(60000, 'x')};
    for (const std::string& type : texts) {
        for (const std::string& payload : texts) {
            const Event event = {.type = type.empty() ? "t" : type, .payload = payload};
            // A payload that is not UTF-8 is shown as hex in JSON.
            if (payload.find('\xff') == std::string::npos) expect_json_line(event);
            expect_text_line(event);
        }
    }
}

TEST(EventLine, ChoosesTheFormOfAPayload) {
    const auto ends_with = [](const Event& event, PayloadForm form, std::string_view end) {
        const std::string line = line_of(event, {form, false, false});
        EXPECT_TRUE(line.ends_with(end)) << line;
    };
    ends_with({}, PayloadForm::kAuto, " app.start \"hello\"\n");
    ends_with({}, PayloadForm::kHex, " app.start 68656c6c6f\n");
    ends_with({}, PayloadForm::kNone, " app.start\n");
    ends_with({.payload = "\x91\x01"}, PayloadForm::kAuto, " app.start [1]\n");
    // In MessagePack a byte of ASCII is an integer. The form auto shows it as text.
    ends_with({.payload = "7"}, PayloadForm::kAuto, " app.start \"7\"\n");
    ends_with({.payload = "7"}, PayloadForm::kMsgpack, " app.start 55\n");
}

TEST(EventLine, HasColorsAroundTheSameText) {
    const Event event;
    std::string line = line_of(event, {PayloadForm::kAuto, false, true});
    EXPECT_TRUE(line.starts_with("\033[2m2026-")) << line;
    for (const std::string_view color : {"\033[2m", "\033[1;36m", "\033[0m", "\033[0m"}) {
        const std::size_t at = line.find(color);
        ASSERT_NE(at, std::string::npos) << line;
        line.erase(at, color.size());
    }
    EXPECT_EQ(line, line_of(event, {PayloadForm::kAuto, false, false}));
}

}  // namespace
}  // namespace kmes::kmesctl
