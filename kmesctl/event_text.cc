// SPDX-License-Identifier: MIT
//
// See event_text.h.
#include "kmesctl/event_text.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>

#include "kmes/abi.h"
#include "kmesctl/command.h"
#include "kmesctl/escape.h"
#include "kmesctl/msgpack_text.h"

namespace kmes::kmesctl {
namespace {

constexpr std::array<std::string_view, 4> kOrigins = {"userspace", "kmes", "kacs", "lcs"};
static_assert(KMES_ORIGIN_USERSPACE == 0 && KMES_ORIGIN_KMES == 1 && KMES_ORIGIN_KACS == 2 &&
              KMES_ORIGIN_LCS == 3);

struct Colors {
    std::string_view dim = "";
    std::string_view type = "";
    std::string_view loss = "";
    std::string_view end = "";
};

Colors colors_of(const LineStyle& style) {
    if (!style.has_colors) return {};
    return {"\033[2m", "\033[1;36m", "\033[1;31m", "\033[0m"};
}

// "00" to "99".
constexpr auto kTwoDigits = [] {
    std::array<char, 200> digits{};
    for (std::size_t i = 0; i < digits.size(); ++i)
        digits[i] = static_cast<char>('0' + (i % 2 == 0 ? i / 20 : i / 2 % 10));
    return digits;
}();

// The second of a timestamp in both forms of a line. A cache: most events share it with the
// previous event.
struct SecondText {
    static constexpr std::size_t kDateBytes = 20;

    std::uint64_t second = UINT64_MAX;
    std::array<char, kDateBytes> date{};  // "2026-11-27T00:43:12."; a timestamp ends in 2554
    std::string number;

    void set(std::uint64_t to) {
        const auto time = static_cast<std::time_t>(to);
        std::tm parts{};
        gmtime_r(&time, &parts);
        fmt::format_to_n(date.data(), date.size(), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.",
                         parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                         parts.tm_min, parts.tm_sec);
        number = fmt::format("{}", to);
        second = to;
    }
};

const SecondText& text_of_second(std::uint64_t second) {
    thread_local SecondText text;
    if (text.second != second) text.set(second);
    return text;
}

// A line, or its beginning, in a fixed array. It needs no bounds check, because all parts are
// short.
class ShortLine {
  public:
    static constexpr std::size_t kMostTextBytes = 512;  // of a type, or of a payload

    void add(std::string_view text) {
        std::memcpy(end_, text.data(), text.size());
        end_ += text.size();
    }
    void add(std::uint64_t number) { end_ = std::to_chars(end_, end_ + 20, number).ptr; }
    // "2026-11-27T00:43:12.472854950Z"
    void add_time(std::uint64_t timestamp_ns) {
        const SecondText& second = text_of_second(timestamp_ns / kNsPerSecond);
        add({second.date.data(), SecondText::kDateBytes});
        add_nine_digits(timestamp_ns % kNsPerSecond);
        *end_++ = 'Z';
    }
    void add_nanoseconds(std::uint64_t timestamp_ns) {
        if (timestamp_ns < kNsPerSecond) return add(timestamp_ns);
        add(text_of_second(timestamp_ns / kNsPerSecond).number);
        add_nine_digits(timestamp_ns % kNsPerSecond);
    }
    std::string_view text() const { return {text_.data(), end_}; }

  private:
    void add_nine_digits(std::uint64_t number) {
        auto left = static_cast<std::uint32_t>(number);
        for (int at = 7; at > 0; at -= 2, left /= 100)
            std::memcpy(end_ + at, &kTwoDigits[2 * (left % 100)], 2);
        *end_ = static_cast<char>('0' + left);
        end_ += 9;
    }

    static constexpr std::size_t kMostOtherBytes = 256;
    std::array<char, 2 * kMostTextBytes + kMostOtherBytes> text_;
    char* end_ = text_.data();
};

// Returns true if the type and the payload are short, and no form of a line escapes a byte of them.
// A plain byte starts no container of MessagePack, so the payload is text.
bool is_short_and_plain(const kmes_event_view& event, PayloadForm form) {
    return (form == PayloadForm::kAuto || form == PayloadForm::kText) && event.payload_len > 0 &&
           event.payload_len <= ShortLine::kMostTextBytes &&
           event.type_len <= ShortLine::kMostTextBytes && is_plain(type_of(event)) &&
           is_plain(payload_of(event));
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        if (static_cast<unsigned char>(text.front()) < 0x80) {
            text.remove_prefix(1);
            continue;
        }
        char32_t c = 0;
        const std::size_t bytes = utf8_bytes(text, &c);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

PayloadForm form_of(std::string_view payload, PayloadForm wanted) {
    if (wanted != PayloadForm::kAuto) return wanted;
    if (is_msgpack_container(payload)) return PayloadForm::kMsgpack;
    return is_utf8(payload) ? PayloadForm::kText : PayloadForm::kHex;
}

void append_payload_json(std::string_view payload, PayloadForm wanted, std::string* line) {
    PayloadForm form = form_of(payload, wanted);
    if (form == PayloadForm::kNone) return;
    if (form == PayloadForm::kMsgpack) {
        const MsgpackText value = msgpack_text(payload);
        if (value.end == MsgpackEnd::kWhole) {
            *line += ",\"payload_form\":\"msgpack\",\"payload\":";
            *line += value.text;
            return;
        }
        form = PayloadForm::kHex;  // truncated bytes are not JSON
    }
    // JSON cannot represent bytes that are not text.
    if (form == PayloadForm::kText && is_utf8(payload)) {
        *line += ",\"payload_form\":\"text\",\"payload\":";
        append_json_quoted(payload, line);
        return;
    }
    *line += ",\"payload_form\":\"hex\",\"payload\":\"";
    *line += hex_text(payload);
    *line += '"';
}

void append_json(const kmes_event_view& event, const LineStyle& style, std::string* line) {
    ShortLine head;
    head.add("{\"timestamp\":");
    head.add_nanoseconds(event.timestamp);
    head.add(",\"cpu\":");
    head.add(std::uint64_t{event.cpu_id});
    head.add(",\"sequence\":");
    head.add(std::uint64_t{event.sequence});
    head.add(",\"origin\":");
    head.add(std::uint64_t{event.origin_class});
    head.add(",\"type\":");
    if (is_short_and_plain(event, style.payload)) {
        head.add("\"");
        head.add(type_of(event));
        head.add("\",\"payload_form\":\"text\",\"payload\":\"");
        head.add(payload_of(event));
        head.add("\"}\n");
        *line += head.text();
        return;
    }
    *line += head.text();
    append_json_quoted(type_of(event), line);
    append_payload_json(payload_of(event), style.payload, line);
    *line += "}\n";
}

std::optional<unsigned> parse_unsigned(std::string_view text) {
    unsigned value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

bool matches_glob(const std::string& glob, const std::string& type) {
    return fnmatch(glob.c_str(), type.c_str(), 0) == 0;
}

}  // namespace

std::string origin_text(unsigned origin_class) {
    return origin_class < kOrigins.size() ? std::string(kOrigins[origin_class])
                                          : fmt::format("origin-{}", origin_class);
}

void append_payload(std::string_view payload, PayloadForm wanted, std::string* line) {
    switch (form_of(payload, wanted)) {
        case PayloadForm::kNone:
            return;
        case PayloadForm::kHex:
            *line += hex_text(payload);
            return;
        case PayloadForm::kMsgpack: {
            const MsgpackText value = msgpack_text(payload);
            *line += value.text;
            if (value.end != MsgpackEnd::kWhole)
                *line +=
                    fmt::format(" <{}, at byte {}>", msgpack_end_text(value.end), value.read_bytes);
            return;
        }
        default:
            if (!payload.empty()) append_quoted(payload, line);
    }
}

std::string payload_text(std::string_view payload, PayloadForm wanted) {
    std::string text;
    append_payload(payload, wanted, &text);
    return text;
}

std::string_view type_of(const struct kmes_event_view& event) {
    return {reinterpret_cast<const char*>(event.type), event.type_len};
}

std::string_view payload_of(const struct kmes_event_view& event) {
    return {reinterpret_cast<const char*>(event.payload), event.payload_len};
}

void append_event_line(const kmes_event_view& event, const LineStyle& style, std::string* line) {
    if (style.is_json) {
        append_json(event, style, line);
        return;
    }
    const Colors colors = colors_of(style);
    ShortLine head;
    head.add(colors.dim);
    head.add_time(event.timestamp);
    head.add(" cpu ");
    head.add(std::uint64_t{event.cpu_id});
    head.add(" #");
    head.add(std::uint64_t{event.sequence});
    head.add(" ");
    if (event.origin_class < kOrigins.size())
        head.add(kOrigins[event.origin_class]);
    else
        head.add(origin_text(event.origin_class));
    head.add(colors.end);
    head.add(" ");
    head.add(colors.type);
    if (is_short_and_plain(event, style.payload)) {
        head.add(type_of(event));
        head.add(colors.end);
        head.add(" \"");
        head.add(payload_of(event));
        head.add("\"\n");
        *line += head.text();
        return;
    }
    *line += head.text();
    append_escaped(type_of(event), line);
    *line += colors.end;
    const std::size_t before_space = line->size();
    *line += ' ';
    append_payload(payload_of(event), style.payload, line);
    if (line->size() == before_space + 1) line->pop_back();
    *line += '\n';
}

void append_loss_line(const kmes_event_view& event, const LineStyle& style, std::string* line) {
    const Colors colors = colors_of(style);
    *line += style.is_json
                 ? fmt::format("{{\"lost\":{},\"cpu\":{},\"before_sequence\":{}}}\n",
                               event.lost_before, event.cpu_id, event.sequence)
                 : fmt::format("{}-- cpu {}: {} events lost before #{}{}\n", colors.loss,
                               event.cpu_id, event.lost_before, event.sequence, colors.end);
}

void append_session_line(unsigned cpu, std::uint64_t session, std::string* line) {
    *line += fmt::format("{{\"session\":\"{:016x}\",\"cpu\":{}}}\n", session, cpu);
}

bool Filter::has_cpu(unsigned cpu) const {
    return cpus.empty() || std::any_of(cpus.begin(), cpus.end(), [cpu](const auto& range) {
               return cpu >= range.first && cpu <= range.second;
           });
}

bool Filter::matches(const struct kmes_event_view& event) const {
    if (!has_cpu(event.cpu_id)) return false;
    if (!origins.empty() &&
        std::find(origins.begin(), origins.end(), event.origin_class) == origins.end())
        return false;
    if (!type_globs.empty()) {
        const std::string type(type_of(event));
        const bool is_any =
            std::any_of(type_globs.begin(), type_globs.end(),
                        [&type](const std::string& glob) { return matches_glob(glob, type); });
        if (!is_any) return false;
    }
    return std::all_of(fields.begin(), fields.end(), [&event](const auto& field) {
        return msgpack_field(payload_of(event), field.first) == field.second;
    });
}

std::optional<std::vector<std::pair<unsigned, unsigned>>> parse_cpus(std::string_view text) {
    std::vector<std::pair<unsigned, unsigned>> ranges;
    for (;;) {
        const std::size_t comma = text.find(',');
        const std::string_view piece = text.substr(0, comma);
        const std::size_t dash = piece.find('-');
        const auto first = parse_unsigned(piece.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_unsigned(piece.substr(dash + 1));
        if (!first || !last || *first > *last) return std::nullopt;
        ranges.emplace_back(*first, *last);
        if (comma == std::string_view::npos) return ranges;
        text.remove_prefix(comma + 1);
    }
}

std::pair<std::string, std::string> field_option(const char* option, const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw Failure(kExitUsage, fmt::format("{} is \"{}\"; expected PATH=VALUE", option, text));
    return {text.substr(0, equals), text.substr(equals + 1)};
}

std::optional<unsigned> parse_origin(std::string_view text) {
    const auto* const named = std::find(kOrigins.begin(), kOrigins.end(), text);
    if (named != kOrigins.end()) return static_cast<unsigned>(named - kOrigins.begin());
    const auto number = parse_unsigned(text);
    return number && *number <= UINT8_MAX ? number : std::nullopt;
}

}  // namespace kmes::kmesctl
