// SPDX-License-Identifier: MIT
// kmesctl top: rates, losses, fill and wakes of each CPU, and the rate of each type.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kmes/user/futex.h"
#include "kmesctl/command.h"
#include "kmesctl/escape.h"
#include "kmesctl/event_text.h"
#include "kmesctl/output.h"
#include "kmesctl/source.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kReadEveryNs = 5'000'000;  // so that no wake is needed
constexpr unsigned kMostEventsAtATime = 65536;
constexpr std::size_t kMostTypes = 1000;  // all others are counted as one
constexpr std::size_t kMostTypesShown = 20;
constexpr std::size_t kMostTypeCharacters = 48;
constexpr std::uint64_t kMostSeconds = 86400;

struct TopOptions {
    std::string socket;
    std::string interval = "1";
    std::string count;
};

struct Figures {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t wakes = 0;
};

class Top {
  public:
    explicit Top(const TopOptions& options)
        : interval_ns_(kNsPerSecond *
                       number_option("--interval", options.interval, 1, kMostSeconds)),
          most_(options.count.empty() ? UINT64_MAX
                                      : number_option("--count", options.count, 1, UINT64_MAX)),
          is_screen_(Output::is_terminal()),
          source_([this](const std::string& notice) { notice_ = notice; }),
          cpus_(source_.cpus()),
          counters_(source_.cpus()) {
        for (unsigned cpu = 0; cpu < source_.cpus(); ++cpu) count_wakes(cpu);
        for (Figures& figures : cpus_) figures = {};
    }

    int run() {
        std::uint64_t begin_ns = kmes_clock_monotonic_ns();
        for (std::uint64_t shown = 0; shown < most_ && stop_signal() == 0;) {
            if (source_.follow_cpus()) cpus_.resize(source_.cpus());
            counters_.resize(cpus_.size());
            source_.consume(kMostEventsAtATime, [this](const auto& event) { return take(event); });
            const std::uint64_t now_ns = kmes_clock_monotonic_ns();
            if (now_ns - begin_ns < interval_ns_) {
                Output::check_reader();
                pause();
                continue;
            }
            source_.check_producer();
            for (unsigned cpu = 0; cpu < source_.cpus(); ++cpu) count_wakes(cpu);
            show(static_cast<double>(now_ns - begin_ns) / static_cast<double>(kNsPerSecond));
            ++shown;
            begin_ns = now_ns;
        }
        end_by_stop_signal();
        return kExitDone;
    }

  private:
    struct Counter {
        std::uint64_t attaches = 0;
        std::uint32_t value = 0;
    };

    // False: no more events now.
    bool take(const struct kmes_event_view& event) {
        Figures& cpu = cpus_.at(event.cpu_id);
        ++cpu.events;
        cpu.bytes += event.event_size;
        cpu.lost += event.lost_before;
        const std::string_view name = type_of(event);
        auto type = types_.find(name);
        if (type == types_.end() && types_.size() < kMostTypes)
            type = types_.emplace(std::string(name), Figures{}).first;
        Figures& figures = type == types_.end() ? other_types_ : type->second;
        ++figures.events;
        figures.bytes += event.event_size;
        return stop_signal() == 0;
    }

    static void pause() {
        const timespec time = {0, static_cast<long>(kReadEveryNs)};
        nanosleep(&time, nullptr);
    }

    // Counts the wakes from futex_counter, which starts again in a new buffer.
    void count_wakes(unsigned cpu) {
        const Source::Ring ring = source_.ring(cpu);
        Counter& counter = counters_[cpu];
        if (!ring.is_attached) return;
        if (counter.attaches == source_.attaches(cpu))
            cpus_[cpu].wakes += static_cast<std::uint32_t>(ring.futex_counter - counter.value);
        counter = {source_.attaches(cpu), ring.futex_counter};
    }

    double fill_of(unsigned cpu) const {
        const Source::Ring ring = source_.ring(cpu);
        if (!ring.is_attached || ring.capacity_bytes == 0) return 0;
        const std::uint64_t used = std::min(ring.write_pos - ring.tail_pos, ring.capacity_bytes);
        return 100.0 * static_cast<double>(used) / static_cast<double>(ring.capacity_bytes);
    }

    void show(double seconds) {
        if (is_screen_)
            show_screen(seconds);
        else
            show_line(seconds);
        output_.flush();
        for (Figures& figures : cpus_) figures = {};
        types_.clear();
        other_types_ = {};
    }

    void show_line(double seconds) {
        Figures all;
        double fill = 0;
        for (unsigned cpu = 0; cpu < cpus_.size(); ++cpu) {
            all.events += cpus_[cpu].events;
            all.bytes += cpus_[cpu].bytes;
            all.lost += cpus_[cpu].lost;
            all.wakes += cpus_[cpu].wakes;
            fill = std::max(fill, fill_of(cpu));
        }
        if (!notice_.empty()) say(std::exchange(notice_, ""));
        output_.add(fmt::format(
            "events/s {:.0f} bytes/s {:.0f} lost/s {:.0f} wakes/s {:.0f} "
            "fill {:.1f}% cpus {} types {}\n",
            static_cast<double>(all.events) / seconds, static_cast<double>(all.bytes) / seconds,
            static_cast<double>(all.lost) / seconds, static_cast<double>(all.wakes) / seconds, fill,
            cpus_.size(), types_.size()));
    }

    void add_row(const std::string& name, const Figures& figures, double seconds) {
        output_.add(fmt::format("{:>14.0f} {:>14.0f}  {}\033[K\n",
                                static_cast<double>(figures.events) / seconds,
                                static_cast<double>(figures.bytes) / seconds, name));
    }

    void show_screen(double seconds) {
        output_.add(fmt::format("\033[H{}\033[K\n", escaped(notice_)));
        output_.add("cpu       events/s        bytes/s     lost/s    wakes/s   fill\033[K\n");
        for (unsigned cpu = 0; cpu < cpus_.size(); ++cpu) {
            const Figures& figures = cpus_[cpu];
            output_.add(
                fmt::format("{:>3} {:>14.0f} {:>14.0f} {:>10.0f} {:>10.0f} {:>5.1f}%\033[K\n", cpu,
                            static_cast<double>(figures.events) / seconds,
                            static_cast<double>(figures.bytes) / seconds,
                            static_cast<double>(figures.lost) / seconds,
                            static_cast<double>(figures.wakes) / seconds, fill_of(cpu)));
        }
        output_.add("\033[K\n      events/s        bytes/s  type\033[K\n");
        std::vector<std::pair<std::uint64_t, std::string>> order;
        for (const auto& [name, figures] : types_) order.emplace_back(figures.events, name);
        std::sort(order.rbegin(), order.rend());
        if (order.size() > kMostTypesShown) order.resize(kMostTypesShown);
        for (const auto& [events, name] : order)
            add_row(escaped(name.substr(0, kMostTypeCharacters)), types_.find(name)->second,
                    seconds);
        if (other_types_.events > 0) add_row("(all other types)", other_types_, seconds);
        output_.add("\033[J");
    }

    const std::uint64_t interval_ns_;
    const std::uint64_t most_;
    const bool is_screen_;
    std::string notice_;
    Output output_;
    Source source_;
    std::vector<Figures> cpus_;
    std::vector<Counter> counters_;
    std::map<std::string, Figures, std::less<>> types_;
    Figures other_types_;
};

int top(const TopOptions& options) {
    choose_socket(options.socket);
    keep_signals({SIGINT, SIGTERM});
    return Top(options).run();
}

}  // namespace

Runner declare_top(CLI::App& app) {
    auto options = std::make_shared<TopOptions>();
    add_socket_option(app, &options->socket);
    app.add_option("--interval", options->interval, "refresh every N seconds (default 1)")
        ->type_name("N");
    app.add_option("--count", options->count, "end after N refreshes")->type_name("N");
    app.footer(
        "Without a terminal (or with TERM=dumb) it prints one line for each refresh.\n"
        "It reads the rings without sleeping on them, so it causes no wakes.\n"
        "Exit status: 0 done, or the reader of the output has gone; 1 refused or failed;\n"
        "2 wrong usage; SIGINT and SIGTERM end it as they end other programs (130, 143).");
    return [options] { return top(*options); };
}

}  // namespace kmes::kmesctl
