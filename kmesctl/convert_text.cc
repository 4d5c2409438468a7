// SPDX-License-Identifier: MIT
//
// A record file as lines of JSON, and as CSV.
#include <fmt/format.h>

#include <cstdio>

#include "kmesctl/convert_form.h"
#include "kmesctl/escape.h"
#include "kmesctl/event_text.h"

namespace kmes::kmesctl {
namespace {

using record::Item;
using record::ItemKind;

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
        if (item.kind == ItemKind::kSession) {
            std::string line;
            append_session_line(item.session.cpu, item.session.session, &line);
            return write(line);
        }
        const kmes_event_view& event = item.event;
        write(fmt::format(R"({{"cpu":{},"sequence":{},"timestamp":{},"origin":{},"type":{},)"
                          R"("payload_hex":"{}"}})"
                          "\n",
                          event.cpu_id, event.sequence, event.timestamp, event.origin_class,
                          json_quoted(type_of(event)), hex_text(payload_of(event))));
    }
};

// RFC 4180, with a single newline at the end of a line. Each type is quoted and escaped, so that
// every event is one line.
class Csv : public Lines {
  public:
    explicit Csv(std::FILE* out) : Lines(out) {
        write("kind,cpu,sequence,timestamp,origin,type,payload_hex,lost,session\n");
    }

    void add(const Item& item) override {
        if (item.kind == ItemKind::kLoss) {
            write(fmt::format("loss,{},{},,,,,{},\n", item.loss.cpu, item.loss.first_sequence,
                              item.loss.count));
            return;
        }
        if (item.kind == ItemKind::kSession) {
            write(
                fmt::format("session,{},,,,,,,{:016x}\n", item.session.cpu, item.session.session));
            return;
        }
        const kmes_event_view& event = item.event;
        std::string type;
        for (const char character : escaped(type_of(event))) {
            if (character == '"') type += '"';
            type += character;
        }
        write(fmt::format("event,{},{},{},{},\"{}\",{},,\n", event.cpu_id, event.sequence,
                          event.timestamp, event.origin_class, type, hex_text(payload_of(event))));
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
