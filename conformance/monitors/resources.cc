// SPDX-License-Identifier: MIT
//
// See resources.h. The monitor counts whenever the consumer sleeps and a buffer was replaced often
// enough since the last count.
#include "conformance/monitors/resources.h"

#include <fmt/format.h>

#include <sstream>

#include "conformance/model/step_texts.h"
#include "conformance/monitors/monitors.h"
#include "conformance/stage/stage.h"
#include "conformance/tracer/proc.h"

namespace kmes::conformance {
namespace {

// The first thread may have ended before the others.
pid_t live_thread(const Tracer& tracer) {
    for (const pid_t tid : tracer.testee_threads()) {
        if (!tracing::read_maps(tid).empty()) return tid;
    }
    return tracer.testee_pid();
}

// The target of an fd without numbers: `anon_inode:[timerfd]`, `pipe:[#]`.
std::string kind_of_file(std::string_view target) {
    std::string kind;
    for (const char each : target) {
        const bool is_digit = each >= '0' && each <= '9';
        if (!is_digit || !kind.ends_with('#')) kind += is_digit ? '#' : each;
    }
    return kind;
}

// The kind of file that grew most.
std::string most_added(const Holdings& first, const Holdings& last) {
    std::string most;
    std::uint64_t most_of_it = 0;
    for (const auto& [kind, number] : last.files) {
        const auto before = first.files.find(kind);
        const std::uint64_t added = number - (before == first.files.end() ? 0 : before->second);
        if (number < added || added <= most_of_it) continue;
        most = kind;
        most_of_it = added;
    }
    return fmt::format("{} more on {}", most_of_it, most);
}

class ResourceMonitor : public Monitor {
  public:
    explicit ResourceMonitor(Stage& stage)
        : stage_(stage), is_on_(stage.the_case().clause() != kOwnClause) {}

    void asleep(std::uint32_t cpu) override {
        const History& history = stage_.rings().history();
        const std::uint64_t buffers = history.buffers_of(cpu).size();
        if (!is_on_ || buffers < buffers_at_last_count_ + kChanges) return;
        buffers_at_last_count_ = buffers;
        counts_.push_back(count_holdings(stage_));
    }

    void finishing() override {
        if (counts_.size() < kCounts) return;
        blame_growth(stage_, counts_, figures_of(kChanges, stage_.capacity_bytes() >= kLargeBytes),
                     kChanges);
    }

  private:
    static constexpr std::string_view kOwnClause = "5.1.8.3-6";
    static constexpr std::uint64_t kChanges = 20;
    static constexpr std::size_t kCounts = 4;
    static constexpr std::uint64_t kLargeBytes = 1 << 20;

    Stage& stage_;
    bool is_on_;
    std::uint64_t buffers_at_last_count_ = 0;
    std::vector<Holdings> counts_;
};

}  // namespace

std::uint64_t read_kib(const std::string& path, const std::string& name) {
    std::istringstream in(tracing::read_small_file(path).value_or(""));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name)) return std::stoull(line.substr(name.size())) * 1024;
    }
    stop_unsupported(fmt::format("{} has no line {}", path, name));
}

Holdings count_holdings(Stage& stage) {
    Tracer& tracer = stage.testee().tracer();
    const pid_t tid = live_thread(tracer);
    Holdings holdings;
    for (const int fd : tracing::list_fds(tid)) {
        ++holdings.files[kind_of_file(tracing::fd_link(tid, fd))];
        ++holdings.fds;
    }
    holdings.ring_mappings = tracer.mappings().size();
    holdings.regions = tracing::read_maps(tid).size();
    holdings.data_bytes = read_kib(fmt::format("/proc/{}/status", tid), "VmData:");
    return holdings;
}

std::vector<Figure> figures_of(std::uint64_t changes, bool counts_memory) {
    const std::uint64_t least = changes / 5;
    // A runtime that maps and unmaps splits its regions.
    const std::uint64_t least_regions = changes / 2;
    std::vector<Figure> all = {{&Holdings::fds, least, "open files"},
                               {&Holdings::ring_mappings, least, kMappingsOfBuffers},
                               {&Holdings::regions, least_regions, "regions of memory"}};
    if (counts_memory)
        all.push_back({&Holdings::data_bytes, kOwnGrowthBytes, "bytes of private memory"});
    return all;
}

bool grows(const std::vector<Holdings>& counts, std::uint64_t Holdings::* figure,
           std::uint64_t least) {
    for (std::size_t i = 1; i < counts.size(); ++i) {
        if (counts[i].*figure <= counts[i - 1].*figure + least) return false;
    }
    return true;
}

std::string text_of(const std::vector<Holdings>& counts, std::uint64_t Holdings::* figure) {
    std::string text;
    for (const Holdings& count : counts)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", count.*figure);
    return text;
}

void count_again(Stage& stage, std::vector<Holdings>& counts,
                 const std::function<bool()>& is_worse) {
    constexpr int kTries = 40;
    constexpr std::uint64_t kPauseMs = 50;
    for (int i = 0; i < kTries && is_worse(); ++i) {
        counts.back() = count_holdings(stage);
        if (is_worse()) stage.waits().let_run(kPauseMs);
    }
}

void blame_growth(Stage& stage, std::vector<Holdings> counts, const std::vector<Figure>& figures,
                  std::uint64_t changes) {
    std::vector<Figure> growing;
    const auto any_grows = [&] {
        growing = figures;
        std::erase_if(growing, [&](const Figure& figure) {
            return !grows(counts, figure.count, figure.least);
        });
        return !growing.empty();
    };
    count_again(stage, counts, any_grows);
    any_grows();
    for (std::size_t i = 0; i < growing.size(); ++i) {
        const Figure& figure = growing[i];
        // A mapping of a buffer is a region, too.
        if (figure.count == &Holdings::regions && i > 0 &&
            growing[i - 1].count == &Holdings::ring_mappings)
            continue;
        const std::string why = figure.count == &Holdings::fds
                                    ? fmt::format("{} after the last count than after the first",
                                                  most_added(counts.front(), counts.back()))
                                    : "old buffers are not given back";
        stage.findings().blame(
            "5.1.8.3-6", fmt::format("the consumer has {1} {2} after every {0} resizes; "
                                     "expected no growth. Evidence: {3}",
                                     changes, text_of(counts, figure.count), figure.what, why));
    }
}

std::unique_ptr<Monitor> make_resource_monitor(Stage& stage) {
    return std::make_unique<ResourceMonitor>(stage);
}

}  // namespace kmes::conformance
