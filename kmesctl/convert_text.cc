// SPDX-License-Identifier: MIT
//
// A record file as lines of JSON, and as CSV.
#include <fmt/format.h>

#include <cstdio>

#include "kmesctl/convert_form.h"
#include "kmesctl/escape.h"

namespace kmes::kmesctl {
namespace {

using record::Item;
using record::ItemKind;

std::string hex_of(std::span<const std::byte> bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes) {
        text += kDigits[static_cast<unsigned>(byte) >> 4];
        text += kDigits[static_cast<unsigned>(byte) & 15];
    }
    return text;
}

std::string_view type_of(const kmes_event_view& event) {
    return {reinterpret_cast<const char*>(event.type), event.type_len};
}

std::string payload_hex(const kmes_event_view& event) {
    return hex_of({reinterpret_cast<const std::byte*>(event.payload), event.payload_len});
}

// The content of a JSON string. Bytes that are not UTF-8 become U+FFFD each.
std::string json_text(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        char32_t code_point = 0;
        const std::size_t bytes = utf8_bytes(text, &code_point);
        if (bytes == 0)
            result += "\\ufffd";
        else if (code_point < 0x20 || code_point == 0x7f)
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(code_point));
        else if (code_point == '"' || code_point == '\\')
            result += {'\\', text[0]};
        else
            result += text.substr(0, bytes);
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return result;
}

class Lines : public ConvertForm {
  public:
    explicit Lines(std::FILE* out) : out_(out) {}

    void finish() override { check(std::fflush(out_) == 0); }

  protected:
    void write(const std::string& line) {
        check(std::fwrite(line.data(), 1, line.size(), out_) == line.size());
    }

  private:
    std::FILE* const out_;
};

class Json : public Lines {
  public:
    using Lines::Lines;

    void add(const Item& item) override {
        if (item.kind == ItemKind::kLoss) {
            write(fmt::format(R"({{"lost":{},"cpu":{},"first_sequence":{}}})"
                              "\n",
                              item.loss.count, item.loss.cpu, item.loss.first_sequence));
            return;
        }
        const kmes_event_view& event = item.event;
        write(fmt::format(R"({{"cpu":{},"sequence":{},"timestamp":{},"origin":{},"type":"{}",)"
                          R"("payload_hex":"{}"}})"
                          "\n",
                          event.cpu_id, event.sequence, event.timestamp, event.origin_class,
                          json_text(type_of(event)), payload_hex(event)));
    }
};

// RFC 4180, with a newline alone at the end of a line. Each type is quoted and escaped, so that
// every event is one line.
class Csv : public Lines {
  public:
    explicit Csv(std::FILE* out) : Lines(out) {
        write("kind,cpu,sequence,timestamp,origin,type,payload_hex,lost\n");
    }

    void add(const Item& item) override {
        if (item.kind == ItemKind::kLoss) {
            write(fmt::format("loss,{},{},,,,,{}\n", item.loss.cpu, item.loss.first_sequence,
                              item.loss.count));
            return;
        }
        const kmes_event_view& event = item.event;
        std::string type;
        for (const char character : escaped(type_of(event))) {
            if (character == '"') type += '"';
            type += character;
        }
        write(fmt::format("event,{},{},{},{},\"{}\",{},\n", event.cpu_id, event.sequence,
                          event.timestamp, event.origin_class, type, payload_hex(event)));
    }
};

}  // namespace

std::unique_ptr<ConvertForm> make_json_form(std::FILE* out) {
    return std::make_unique<Json>(out);
}

std::unique_ptr<ConvertForm> make_csv_form(std::FILE* out) {
    return std::make_unique<Csv>(out);
}

}  // namespace kmes::kmesctl
