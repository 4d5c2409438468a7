// SPDX-License-Identifier: MIT
// kmesctl print: prints the events of all CPUs in the order of their timestamps.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/merge.h"
#include "kmesctl/command.h"
#include "kmesctl/event_text.h"
#include "kmesctl/output.h"
#include "kmesctl/source.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kLongestWaitNs = 100'000'000;  // limits the delay of an earlier signal
constexpr std::uint64_t kHoldNs = 10'000'000;  // an empty CPU delays the others by at most this
constexpr std::uint64_t kMostHeldBytes = 16 << 20;
// A producer that never pauses has no last event.
constexpr std::uint64_t kLastReadNs = kNsPerSecond;
constexpr std::size_t kBytesAtATime = 64 << 10;  // stays in a near cache, and fills a pipe
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
        fmt::format("--payload is \"{}\"; expected auto, text, hex, msgpack or none", text));
}

bool color_option(const std::string& text) {
    if (text == "auto") return Output::wants_colors();
    if (text == "always" || text == "never") return text == "always";
    throw Failure(kExitUsage,
                  fmt::format("--color is \"{}\"; expected auto, always or never", text));
}

Filter filter_option(const PrintOptions& options) {
    Filter filter;
    for (const std::string& text : options.cpus) {
        const auto ranges = parse_cpus(text);
        if (!ranges)
            throw Failure(kExitUsage,
                          fmt::format("--cpu is \"{}\"; expected CPUs such as 0,2-5", text));
        filter.cpus.insert(filter.cpus.end(), ranges->begin(), ranges->end());
    }
    for (const std::string& text : options.origins) {
        const auto origin = parse_origin(text);
        if (!origin)
            throw Failure(kExitUsage, fmt::format("--origin is \"{}\"; expected userspace, kmes, "
                                                  "kacs, lcs or a number from 0 to 255",
                                                  text));
        filter.origins.push_back(*origin);
    }
    filter.type_globs = options.types;
    for (const std::string& text : options.fields)
        filter.fields.push_back(field_option("--field", text));
    return filter;
}

struct CloseMerge {
    void operator()(kmes_merge* merge) const { kmes_merge_close(merge); }
};
using Merge = std::unique_ptr<kmes_merge, CloseMerge>;

Merge open_merge(kmes_reader_set* set) {
    const kmes_merge_options options = {kHoldNs, kMostHeldBytes};
    kmes_merge* merge = nullptr;
    if (const int error = kmes_merge_open(&merge, set, &options); error != 0) cannot_read(error);
    return Merge(merge);
}

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
          source_([this](const std::string& notice) { notices_.push_back(notice); }),
          first_session_(source_.session()),
          merge_(open_merge(source_.set())) {}

    int run() {
        check_cpus();
        const std::uint64_t begin_ns = kmes_clock_monotonic_ns();
        while (stop_signal() == 0 && printed_ < most_) {
            follow_cpus();
            const unsigned count = print_some();
            if (kmes_clock_monotonic_ns() - begin_ns >= timeout_ns_) {
                print_held();
                break;
            }
            if (count > 0) continue;
            Output::check_reader();
            source_.check_cpus();
            kmes_merge_wait(merge_.get(), kLongestWaitNs);
        }
        return finish();
    }

  private:
    // Prints the events that are due now, up to a limit. Returns how many were read.
    unsigned print_some() {
        unsigned count = 0;
        while (count < kEventsAtATime && printed_ < most_ &&
               output_.pending_bytes() < kBytesAtATime && stop_signal() == 0) {
            kmes_event_view event;
            const int found = kmes_merge_next(merge_.get(), &event, nullptr);
            if (found < 0) cannot_read(found);
            if (found == KMES_READ_EMPTY) break;
            take(event);
            ++count;
        }
        output_.flush();
        if (count == 0 && kmes_merge_due_ns(merge_.get()) == KMES_NO_TIMEOUT) print_notices();
        return count;
    }

    // Prints the events that the merge holds. They have been published, so a timeout must not omit
    // them.
    void print_held() {
        kmes_merge_flush(merge_.get());
        const std::uint64_t begun_ns = kmes_clock_monotonic_ns();
        while (print_some() != 0 && kmes_clock_monotonic_ns() - begun_ns < kLastReadNs) continue;
    }

    // Throws a Failure if --cpu has a CPU that does not exist.
    void check_cpus() const {
        for (const auto& [first, last] : filter_.cpus) {
            if (first >= source_.cpus())
                throw Failure(kExitUsage,
                              fmt::format("--cpu has CPU {}; this producer has {}, numbered from 0",
                                          first, counted(source_.cpus(), "CPU")));
        }
    }

    void follow_cpus() {
        const auto places = [this] {
            print_held();
            std::vector<kmes_reader_place> all;
            for (unsigned cpu = 0; cpu < source_.cpus(); ++cpu)
                all.push_back(kmes_merge_get_place(merge_.get(), cpu));
            return all;
        };
        if (source_.follow_cpus(places, [this] { merge_.reset(); }))
            merge_ = open_merge(source_.set());
    }

    void take(const kmes_event_view& event) {
        const std::uint64_t session = kmes_merge_buffer(merge_.get(), event.cpu_id)->session;
        if (session != session_) {
            if (session_ != 0) print_notices();
            session_ = session;
        }
        enter_session(event.cpu_id, session);
        // A loss is reported even if the event after it is filtered out.
        if (event.lost_before > 0 && filter_.has_cpu(event.cpu_id))
            append_loss_line(event, style_, output_.pending());
        if (!filter_.matches(event)) return;
        append_event_line(event, style_, output_.pending());
        ++printed_;
    }

    // The sequence numbers of the CPU restart here.
    void enter_session(unsigned cpu, std::uint64_t session) {
        if (cpu >= sessions_.size()) sessions_.resize(cpu + 1, first_session_);
        if (sessions_[cpu] == session) return;
        sessions_[cpu] = session;
        if (style_.is_json && filter_.has_cpu(cpu))
            append_session_line(cpu, session, output_.pending());
    }

    // Call it after the lines of the earlier producer: when a notice comes, the merge may still
    // hold some of that producer's events.
    void print_notices() {
        if (notices_.empty()) return;
        output_.flush();
        for (const std::string& notice : notices_) say(notice);
        notices_.clear();
    }

    int finish() {
        end_by_stop_signal();
        if (most_ == UINT64_MAX || printed_ >= most_) return kExitDone;
        throw Failure(kExitFailed,
                      fmt::format("--timeout is over: {} of {} events printed", printed_, most_));
    }

    const LineStyle style_;
    const Filter filter_;
    const std::uint64_t most_;
    const std::uint64_t timeout_ns_;
    std::uint64_t printed_ = 0;
    std::uint64_t session_ = 0;  // of the last event
    std::vector<std::string> notices_;
    Output output_;
    Source source_;
    const std::uint64_t first_session_;
    std::vector<std::uint64_t> sessions_;  // of the last event of each CPU
    Merge merge_;
};

int print(const PrintOptions& options) {
    LineStyle style;
    style.payload = form_option(options.payload);
    style.is_json = options.is_json;
    style.has_colors = color_option(options.color) && !options.is_json;
    Filter filter = filter_option(options);
    choose_socket(options.socket);
    keep_signals({SIGINT, SIGTERM});
    return Printer(options, style, std::move(filter)).run();
}

}  // namespace

Runner declare_print(CLI::App& app) {
    auto options = std::make_shared<PrintOptions>();
    const auto takes_all = CLI::MultiOptionPolicy::TakeAll;
    add_socket_option(app, &options->socket);
    app.add_option("--cpu", options->cpus, "print only these CPUs, such as 0,2-5")
        ->type_name("LIST")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option(
           "--origin", options->origins,
           "print only this origin class: userspace, kmes, kacs, lcs or a number; repeatable")
        ->type_name("CLASS")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--type", options->types,
                   "print only types that match this shell pattern; repeatable: any of them")
        ->type_name("GLOB")
        ->multi_option_policy(takes_all)
        ->expected(1);
    app.add_option("--field", options->fields,
                   "print only payloads in MessagePack with this value, such as user.name=eve; "
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
                   "end after N seconds; status 1 if fewer than --count events were printed")
        ->type_name("SECONDS");
    app.add_flag("--json", options->is_json,
                 "one JSON object per line, also for a loss, and for the start of "
                 "another producer");
    app.footer(
        "Events come in the order of their timestamps. For that, print holds an event for at most\n"
        "10 ms while another CPU has none.\n"
        "Exit status: 0 done, or the reader of the output has gone; 1 refused or failed;\n"
        "2 wrong usage; SIGINT and SIGTERM end it as they end other programs (130, 143).");
    return [options] { return print(*options); };
}

}  // namespace kmes::kmesctl
