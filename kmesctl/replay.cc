// SPDX-License-Identifier: MIT
// kmesctl replay: emits the events of a record file again, by a producer in this process.
#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "kmes/abi.h"
#include "kmes/user/futex.h"
#include "kmes/user/producer.h"
#include "kmesctl/command.h"
#include "kmesctl/record_files.h"
#include "kmesctl/service.h"
#include "record/reader.h"

namespace kmes::kmesctl {
namespace {

using record::Reader;
using record::ReadResult;

struct ReplayOptions {
    std::string file;
    std::string socket;
    std::string speed = "1";
    bool is_unpaced = false;
};

double speed_of(const std::string& text) {
    char* end = nullptr;
    const double speed = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(speed) || speed < 0.001 || speed > 1e6)
        throw Failure(
            kExitUsage,
            fmt::format("--speed is \"{}\"; a number from 0.001 to 1000000 is right", text));
    return speed;
}

// False: a signal has requested the end.
bool wait_until_ns(const sigset_t& ends, std::uint64_t due_ns) {
    while (true) {
        const std::uint64_t now = kmes_clock_monotonic_ns();
        const std::uint64_t left = due_ns > now ? due_ns - now : 0;
        const timespec limit = {static_cast<time_t>(left / kNsPerSecond),
                                static_cast<long>(left % kNsPerSecond)};
        if (sigtimedwait(&ends, nullptr, &limit) > 0) return false;
        if (left == 0) return true;
    }
}

class Replay {
  public:
    Replay(Producer* producer, const sigset_t& ends, double speed)
        : producer_(producer), ends_(ends), speed_(speed) {}

    // False: a signal has requested the end. `speed` 0: as fast as possible.
    bool play(const record::Item& item) {
        if (item.kind != record::ItemKind::kEvent) return true;
        const kmes_event_view& event = item.event;
        if (!wait_for(event)) return false;
        const std::string_view type(reinterpret_cast<const char*>(event.type), event.type_len);
        const std::span payload(reinterpret_cast<const std::byte*>(event.payload),
                                event.payload_len);
        const int error = producer_->emit_in_kernel(event.cpu_id % producer_->cpus(), type, payload,
                                                    event.origin_class);
        ++(error == 0 ? emitted_ : refused_);
        return true;
    }

    std::string summary() const {
        return fmt::format("{} events emitted, {} refused", emitted_, refused_);
    }

  private:
    // Waits until the event is due. False: a signal has requested the end.
    bool wait_for(const kmes_event_view& event) {
        constexpr std::uint64_t kEventsBetweenChecks = 1024;
        if (speed_ != 0) return wait_until_ns(ends_, due_ns(event.timestamp));
        return (emitted_ + refused_) % kEventsBetweenChecks != 0 || wait_until_ns(ends_, 0);
    }

    // A step back of the clock, or between CPUs, takes no time.
    std::uint64_t due_ns(std::uint64_t timestamp) {
        if (begun_ns_ == 0) {
            begun_ns_ = kmes_clock_monotonic_ns();
            first_ns_ = timestamp;
        }
        const std::uint64_t later = timestamp > first_ns_ ? timestamp - first_ns_ : 0;
        const double scaled = std::min(static_cast<double>(later) / speed_, 1e18);
        return begun_ns_ + static_cast<std::uint64_t>(scaled);
    }

    Producer* const producer_;
    const sigset_t ends_;
    const double speed_;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t first_ns_ = 0;
    std::uint64_t emitted_ = 0;
    std::uint64_t refused_ = 0;
};

// False: a signal has requested the end. *wrong describes the damage of the file.
bool play_all(Reader* reader, Replay* replay, std::string* wrong) {
    record::Block block;
    ReadResult result = ReadResult::kEnd;
    while ((result = reader->next(&block)) == ReadResult::kBlock) {
        record::ItemCursor items(block.body);
        record::Item item;
        while (items.next(&item)) {
            if (!replay->play(item)) return false;
        }
    }
    if (result == ReadResult::kDamage) *wrong = reader->damage().what;
    return true;
}

ProducerOptions producer_of(const record::FileHeader& header) {
    ProducerOptions options;
    options.cpus = std::min<std::uint32_t>(header.cpus, kMaxCpus);
    if (std::has_single_bit(header.capacity_bytes) &&
        header.capacity_bytes >= KMES_CONFIG_CAPACITY_MIN_BYTES &&
        header.capacity_bytes <= KMES_CONFIG_CAPACITY_MAX_BYTES)
        options.capacity_bytes = header.capacity_bytes;
    return options;
}

int replay(const ReplayOptions& options) {
    const double speed = options.is_unpaced ? 0 : speed_of(options.speed);
    std::string wrong;
    Reader reader;
    open_record(options.file, &reader);
    const sigset_t ends = block_end_signals();
    Producer producer(producer_of(reader.header()));
    start_rings(&producer);
    producer.serve(options.socket);
    Replay replay(&producer, ends, speed);
    const bool is_done = play_all(&reader, &replay, &wrong);
    say(replay.summary());
    if (!wrong.empty()) say(fmt::format("{} is {}", options.file, wrong));
    if (is_done) wait_for_end(ends);
    producer.retire();
    return wrong.empty() ? kExitDone : kExitFailed;
}

}  // namespace

Runner declare_replay(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    app.add_option("--socket", options->socket,
                   "where to serve the events, until SIGTERM: a path, or @NAME")
        ->type_name("ADDRESS")
        ->required();
    app.add_option("--speed", options->speed, "how many times as fast as recorded (default 1)")
        ->type_name("FACTOR");
    app.add_flag("--as-fast-as-possible", options->is_unpaced, "emit the events without a pace");
    app.add_option("file", options->file, "a file of kmesctl record")
        ->type_name("FILE")
        ->required();
    return [options] { return replay(*options); };
}

}  // namespace kmes::kmesctl
