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
#include <functional>
#include <memory>
#include <utility>

#include "kmes/abi.h"
#include "kmes/user/futex.h"
#include "kmes/user/producer.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmesctl/record_files.h"
#include "kmesctl/service.h"
#include "kmod/kmesctl/text.h"
#include "record/reader.h"

namespace kmes::kmesctl {
namespace {

using record::Reader;
using record::ReadResult;

struct ReplayOptions {
    std::string file;
    std::string socket;
    std::string speed = "1";
    std::string capacity;
    bool is_unpaced = false;
    bool waits = false;
};

double speed_of(const std::string& text) {
    char* end = nullptr;
    const double speed = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(speed) || speed < 0.001 || speed > 1e6)
        throw Failure(
            kExitUsage,
            fmt::format("--speed is \"{}\"; expected a number from 0.001 to 1000000", text));
    return speed;
}

// The signal that has requested the end.
class End {
  public:
    explicit End(const sigset_t& signals) : signals_(signals) {}

    // Returns false if a signal has come.
    bool wait_until_ns(std::uint64_t due_ns) {
        while (true) {
            const std::uint64_t now = kmes_clock_monotonic_ns();
            const std::uint64_t left = due_ns > now ? due_ns - now : 0;
            const timespec limit = {static_cast<time_t>(left / kNsPerSecond),
                                    static_cast<long>(left % kNsPerSecond)};
            const int signal = sigtimedwait(&signals_, nullptr, &limit);
            if (signal > 0) signal_ = signal;
            if (signal > 0) return false;
            if (left == 0) return true;
        }
    }
    bool has_come() { return !wait_until_ns(0); }

    // Ends this process by the signal. Returns if none has come.
    void end_process() const {
        if (signal_ != 0) end_by_signal(signal_);
    }

  private:
    const sigset_t signals_;
    int signal_ = 0;
};

// Calls `take` for each item, until it returns false. *wrong describes the damage of the file.
void for_each_item(Reader* reader, std::string* wrong,
                   const std::function<bool(const record::Item&)>& take) {
    record::Block block;
    ReadResult result = ReadResult::kEnd;
    while ((result = reader->next(&block)) == ReadResult::kBlock) {
        record::ItemCursor items(block.body);
        record::Item item;
        while (items.next(&item)) {
            if (!take(item)) return;
        }
    }
    if (result == ReadResult::kDamage) *wrong = reader->damage().what;
}

// The counts of a recording.
struct Content {
    std::uint64_t events = 0;
    std::uint64_t lost = 0;

    void add(const record::Item& item) {
        if (item.kind == record::ItemKind::kEvent) ++events;
        if (item.kind == record::ItemKind::kLoss) lost += item.loss.count;
    }
};

class Replay {
  public:
    Replay(Producer* producer, End* end, double speed)
        : producer_(producer), end_(end), speed_(speed) {}

    // False: a signal has requested the end before this item. `speed` 0: as fast as possible.
    bool play(const record::Item& item) {
        if (item.kind == record::ItemKind::kEvent && !emit(item.event)) return false;
        played_.add(item);
        return true;
    }

    // `all`: the content of the file.
    std::string summary(const Content& all) const {
        std::string text = played_.events < all.events
                               ? fmt::format("{} of {}", emitted_, counted(all.events, "event"))
                               : counted(emitted_, "event");
        text += fmt::format(" emitted, {} refused", refused_);
        if (all.lost != 0)
            text += fmt::format("; not replayed: {} that the recording lost",
                                counted(all.lost, "event"));
        return text;
    }
    const Content& played() const { return played_; }
    // One line about the first event that the producer refused. Empty: it refused none.
    const std::string& first_refused() const { return first_refused_; }

  private:
    bool emit(const kmes_event_view& event) {
        if (!wait_for(event)) return false;
        const std::string_view type(reinterpret_cast<const char*>(event.type), event.type_len);
        const std::span payload(reinterpret_cast<const std::byte*>(event.payload),
                                event.payload_len);
        const int error = producer_->emit_in_kernel(event.cpu_id % producer_->cpus(), type, payload,
                                                    event.origin_class);
        if (error != 0 && refused_ == 0) first_refused_ = describe(event, -error);
        ++(error == 0 ? emitted_ : refused_);
        return true;
    }

    static std::string describe(const kmes_event_view& event, int error) {
        return fmt::format("first refused: event {} of CPU {}, {} bytes: {}{}", event.sequence,
                           event.cpu_id, event.event_size, explain_error(Verb::emit, error),
                           error == ENOSPC ? "; --capacity makes the buffers larger" : "");
    }

    // Waits until the event is due. False: a signal has requested the end.
    bool wait_for(const kmes_event_view& event) {
        constexpr std::uint64_t kEventsBetweenChecks = 1024;
        if (speed_ != 0) return end_->wait_until_ns(due_ns(event.timestamp));
        return (emitted_ + refused_) % kEventsBetweenChecks != 0 || !end_->has_come();
    }

    // Returns when the event is due. An event with an earlier timestamp than the previous one is
    // due at once.
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
    End* const end_;
    const double speed_;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t first_ns_ = 0;
    std::uint64_t emitted_ = 0;
    std::uint64_t refused_ = 0;
    std::string first_refused_;
    Content played_;
};

// Returns the content of the file. A further signal ends the count.
Content content_of(const std::string& file, End* end) {
    Content content;
    std::string wrong;
    Reader reader;
    open_record(file, &reader);
    for_each_item(&reader, &wrong, [&](const record::Item& item) {
        content.add(item);
        return content.events % 65536 != 0 || !end->has_come();
    });
    return content;
}

// Waits until consumers have attached to every ring. False: a signal has requested the end.
bool wait_for_consumers(const Producer& producer, End* end) {
    constexpr std::uint64_t kCheckEveryNs = 5'000'000;
    for (unsigned cpu = 0; cpu < producer.cpus();) {
        if (producer.is_attended(cpu))
            ++cpu;
        else if (!end->wait_until_ns(kmes_clock_monotonic_ns() + kCheckEveryNs))
            return false;
    }
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
    ProducerOptions rings = producer_of(reader.header());
    if (!options.capacity.empty()) rings.capacity_bytes = capacity_option(options.capacity);
    const sigset_t ends = block_end_signals();
    End end(ends);
    Producer producer(rings);
    start_rings(&producer);
    serve_at(&producer, options.socket);
    say(fmt::format("replays at {}, with {} of {} bytes", options.socket,
                    counted(rings.cpus, "ring"), rings.capacity_bytes));
    Replay replay(&producer, &end, speed);
    bool is_done = !options.waits || wait_for_consumers(producer, &end);
    if (is_done)
        for_each_item(&reader, &wrong,
                      [&](const record::Item& item) { return is_done = replay.play(item); });
    say(replay.summary(is_done ? replay.played() : content_of(options.file, &end)));
    if (!replay.first_refused().empty()) say(replay.first_refused());
    if (!wrong.empty()) say(fmt::format("{} is {}", options.file, wrong));
    if (is_done) wait_for_end(ends);
    producer.retire();
    if (!is_done) end.end_process();
    return wrong.empty() && replay.first_refused().empty() ? kExitDone : kExitFailed;
}

}  // namespace

Runner declare_replay(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    app.add_option("--socket", options->socket,
                   "where to serve the events, until SIGTERM: a path, or @NAME")
        ->type_name("ADDRESS")
        ->check(wrong_address)
        ->required();
    app.add_option("--speed", options->speed, "how many times as fast as recorded (default 1)")
        ->type_name("FACTOR");
    app.add_option("--capacity", options->capacity,
                   "bytes of each ring: a power of two from 64K to 256M (default: as recorded)")
        ->type_name("BYTES");
    app.add_flag("--wait", options->waits,
                 "emit nothing until a reader has attached to every ring");
    app.add_flag("--as-fast-as-possible", options->is_unpaced,
                 "emit the events without waiting for their times");
    app.add_option("file", options->file, "a file of kmesctl record")
        ->type_name("FILE")
        ->required();
    app.footer(
        "The events get new sequence numbers and timestamps. Losses of the recording are counted\n"
        "at the end, and not replayed.\n"
        "Exit status: 0 all events are emitted; 1 one was refused, or failed; 2 wrong usage; a "
        "signal "
        "before\n"
        "the last event ends it as it ends other programs (129, 130, 143).");
    return [options] { return replay(*options); };
}

}  // namespace kmes::kmesctl
