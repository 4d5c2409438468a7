// SPDX-License-Identifier: MIT
// kmesctl print: prints events as they come, with all CPUs merged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/futex.h"
#include "kmesctl/command.h"
#include "kmesctl/event_text.h"
#include "kmesctl/output.h"
#include "kmesctl/source.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kLongestWaitNs = 100'000'000;  // limits the delay of an earlier signal
constexpr unsigned kEventsAtATime = 4096;              // merged by their timestamps
constexpr std::size_t kBytesAtATime = std::size_t{1} << 20;
constexpr std::uint64_t kMostSeconds = 1'000'000'000;

struct PrintOptions {
    std::string socket;
    std::vector<std::string> cpus;
    std::vector<std::string> origins;
    std::vector<std::string> types;
    std::vector<std::string> fields;
    std::string payload = "auto";
    std::string color = "auto";
    std::string count;
    std::string timeout;
    bool is_json = false;
};

PayloadForm form_option(const std::string& text) {
    if (text == "auto") return PayloadForm::kAuto;
    if (text == "text") return PayloadForm::kText;
    if (text == "hex") return PayloadForm::kHex;
    if (text == "msgpack") return PayloadForm::kMsgpack;
    if (text == "none") return PayloadForm::kNone;
    throw Failure(
        kExitUsage,
        fmt::format("--payload is \"{}\"; auto, text, hex, msgpack or none is right", text));
}

bool color_option(const std::string& text) {
    if (text == "auto") return Output::wants_colors();
    if (text == "always" || text == "never") return text == "always";
    throw Failure(kExitUsage,
                  fmt::format("--color is \"{}\"; auto, always or never is right", text));
}

Filter filter_option(const PrintOptions& options) {
    Filter filter;
    for (const std::string& text : options.cpus) {
        const auto ranges = parse_cpus(text);
        if (!ranges)
            throw Failure(kExitUsage,
                          fmt::format("--cpu is \"{}\"; CPUs such as 0,2-5 are right", text));
        filter.cpus.insert(filter.cpus.end(), ranges->begin(), ranges->end());
    }
    for (const std::string& text : options.origins) {
        const auto origin = parse_origin(text);
        if (!origin)
            throw Failure(kExitUsage, fmt::format("--origin is \"{}\"; userspace, kmes, kacs, lcs "
                                                  "or a number from 0 to 255 is right",
                                                  text));
        filter.origins.push_back(*origin);
    }
    filter.type_globs = options.types;
    for (const std::string& text : options.fields)
        filter.fields.push_back(field_option("--field", text));
    return filter;
}

// Merges the lines of a few events by timestamp. The order of each CPU is kept, whatever its clock
// did.
class Merger {
  public:
    explicit Merger(unsigned cpus) : queues_(cpus) {}

    void add(unsigned queue, std::uint64_t timestamp, std::string line) {
        queues_[queue % queues_.size()].push_back({timestamp, std::move(line)});
    }
    void take_all(Output& output) {
        for (;;) {
            std::deque<Line>* first = nullptr;
            for (auto& queue : queues_) {
                if (!queue.empty() &&
                    (first == nullptr || queue.front().timestamp < first->front().timestamp))
                    first = &queue;
            }
            if (first == nullptr) return;
            output.add(first->front().text);
            first->pop_front();
        }
    }

  private:
    struct Line {
        std::uint64_t timestamp;
        std::string text;
    };
    std::vector<std::deque<Line>> queues_;
};

class Printer {
  public:
    Printer(const PrintOptions& options, LineStyle style, Filter filter)
        : style_(style),
          filter_(std::move(filter)),
          most_(options.count.empty() ? UINT64_MAX
                                      : number_option("--count", options.count, 1, UINT64_MAX)),
          timeout_ns_(options.timeout.empty()
                          ? KMES_NO_TIMEOUT
                          : kNsPerSecond *
                                number_option("--timeout", options.timeout, 1, kMostSeconds)),
          source_([this](const std::string& news) { tell(news); }),
          merger_(source_.cpus()) {}

    int run() {
        const std::uint64_t begin_ns = kmes_clock_monotonic_ns();
        while (stop_signal() == 0 && printed_ < most_) {
            const unsigned count =
                source_.consume(kEventsAtATime, [this](const auto& event) { return take(event); });
            show();
            if (kmes_clock_monotonic_ns() - begin_ns >= timeout_ns_) break;
            if (count > 0) continue;
            Output::check_reader();
            source_.wait(kLongestWaitNs);
        }
        return finish();
    }

  private:
    // False: no more events now.
    bool take(const struct kmes_event_view& event) {
        std::string text;
        // A loss is reported even if the event after it is filtered out.
        if (event.lost_before > 0 && filter_.has_cpu(event.cpu_id))
            text = loss_line(event, style_) + '\n';
        if (filter_.matches(event)) {
            text += event_line(event, style_) + '\n';
            ++printed_;
        }
        bytes_ += text.size();
        if (!text.empty()) merger_.add(event.cpu_id, event.timestamp, std::move(text));
        return printed_ < most_ && bytes_ < kBytesAtATime && stop_signal() == 0;
    }

    void show() {
        merger_.take_all(output_);
        output_.flush();
        bytes_ = 0;
    }

    // After all earlier lines.
    void tell(const std::string& news) {
        show();
        say(news);
    }

    int finish() {
        end_by_stop_signal();
        if (most_ == UINT64_MAX || printed_ >= most_) return kExitDone;
        throw Failure(kExitFailed,
                      fmt::format("--timeout is over: {} of {} events have come", printed_, most_));
    }

    const LineStyle style_;
    const Filter filter_;
    const std::uint64_t most_;
    const std::uint64_t timeout_ns_;
    std::uint64_t printed_ = 0;
    std::size_t bytes_ = 0;
    Output output_;
    Source source_;
    Merger merger_;
};

int print(const PrintOptions& options) {
    LineStyle style;
    style.payload = form_option(options.payload);
    style.is_json = options.is_json;
    style.has_colors = color_option(options.color) && !options.is_json;
    Filter filter = filter_option(options);
    choose_socket(options.socket);
    keep_stop_signals();
    return Printer(options, style, std::move(filter)).run();
}

}  // namespace

Runner declare_print(CLI::App& app) {
    auto options = std::make_shared<PrintOptions>();
    const auto takes_all = CLI::MultiOptionPolicy::TakeAll;
    add_socket_option(app, &options->socket);
    app.add_option("--cpu", options->cpus, "only these CPUs, such as 0,2-5")
        ->type_name("LIST")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--origin", options->origins,
                   "only this origin class: userspace, kmes, kacs, lcs or a number; repeatable")
        ->type_name("CLASS")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--type", options->types,
                   "only types that match this shell pattern; repeatable: any of them")
        ->type_name("GLOB")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--field", options->fields,
                   "only payloads in MessagePack with this value, such as user.name=eve; "
                   "repeatable: all of them")
        ->type_name("PATH=VALUE")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--payload", options->payload,
                   "auto, text, hex, msgpack or none; auto: msgpack for a whole map or array, "
                   "text for UTF-8, else hex")
        ->type_name("FORM");
    app.add_option("--color", options->color,
                   "auto, always or never; auto: on a terminal, without NO_COLOR and TERM=dumb")
        ->type_name("WHEN");
    app.add_option("--count", options->count, "end after N printed events")->type_name("N");
    app.add_option("--timeout", options->timeout,
                   "end after so many seconds; status 1 if --count events have not come")
        ->type_name("SECONDS");
    app.add_flag("--json", options->is_json, "one JSON object a line, also for a loss");
    app.footer(
        "Exit status: 0 done, or the reader of the output has gone; 1 refused or failed;\n"
        "2 wrong usage; SIGINT and SIGTERM end it as they end other programs (130, 143).");
    return [options] { return print(*options); };
}

}  // namespace kmes::kmesctl
