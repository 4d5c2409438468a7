// SPDX-License-Identifier: MIT
//
// kmesctl record: the events of all CPUs into a file (docs/record-format.md).
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes.h"
#include "kmes/user/reader_set.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmesctl/record_files.h"
#include "kmesctl/source.h"
#include "kmod/kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// A signal may come just before a wait, which then lasts this long.
constexpr std::uint64_t kLongestWaitNs = 100 * kNsPerMs;
// What a stop still reads of a producer that does not stop.
constexpr std::uint64_t kLastReadNs = kNsPerSecond;
constexpr unsigned kEventsAtATime = 4096;
// The producer wakes this reader at most once for so many bytes, or in so long.
constexpr std::uint64_t kWatermarkBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kWatermarkNs = 10 * kNsPerMs;

struct RecordOptions {
    std::string output;
    std::string socket;
    std::string rotate_size;
    std::string rotate_time;
    std::string keep;
    std::string sync = "1000";
};

struct CloseSet {
    void operator()(kmes_reader_set* set) const { kmes_reader_set_close(set); }
};
using ReaderSet = std::unique_ptr<kmes_reader_set, CloseSet>;

ReaderSet open_set() {
    kmes_reader_set_options options = {};
    options.watermark_bytes = kWatermarkBytes;
    options.watermark_ns = kWatermarkNs;
    kmes_reader_set* set = nullptr;
    if (const int error = kmes_reader_set_open(&set, &options); error != 0)
        throw Failure(kExitFailed, explain_attach(error));
    return ReaderSet(set);
}

// What one recording has done so far.
class Recording {
  public:
    Recording(kmes_reader_set* set, RecordFilesOptions options, std::uint64_t sync_ns)
        : set_(set), sync_ns_(sync_ns), files_(std::move(options), header()) {}

    void run() {
        std::uint64_t synced_ns = kmes_clock_monotonic_ns();
        while (stop_signal() == 0) {
            wait(std::min(sync_ns_, kLongestWaitNs));
            read_some();
            if (kmes_clock_monotonic_ns() - synced_ns < sync_ns_) continue;
            files_.sync();
            synced_ns = kmes_clock_monotonic_ns();
        }
        const std::uint64_t stopped_ns = kmes_clock_monotonic_ns();
        while ((is_cut_ = read_some() != 0) && kmes_clock_monotonic_ns() - stopped_ns < kLastReadNs)
            continue;
        files_.close();
    }

    // The line at the end of a recording, whatever has ended it.
    std::string summary() const {
        return fmt::format(
            "{} events in {} file{}, {} lost, {} corrupt places skipped{}", files_.events(),
            files_.files(), files_.files() == 1 ? "" : "s", lost_, corrupt(),
            is_cut_ ? "; the producer did not stop, and later events were unread" : "");
    }

  private:
    record::FileHeader header() const {
        record::FileHeader header;
        header.cpus = kmes_reader_set_cpus(set_);
        header.session = kmes_reader_set_get_place(set_, 0).session;
        int count = 0;
        __u64 capacity = 0;
        if (kmes_attach(nullptr, &count, &capacity) == 0 || errno == ERANGE)
            header.capacity_bytes = capacity;
        return header;
    }

    std::uint64_t corrupt() const {
        std::uint64_t sum = 0;
        for (unsigned cpu = 0; cpu < kmes_reader_set_cpus(set_); ++cpu)
            sum += kmes_reader_set_statistics(set_, cpu).corrupt;
        return sum;
    }

    void wait(std::uint64_t limit_ns) {
        const int result = kmes_reader_set_wait(set_, limit_ns);
        if (result >= 0 || result == -ETIMEDOUT || result == -EINTR) {
            if (result > 0) has_ended_ = false;
            return;
        }
        if (!has_ended_)
            say(fmt::format("the producer does not answer ({}); waits for the next one",
                            std::strerror(-result)));
        has_ended_ = true;
    }

    int read_some() {
        const int count = kmes_reader_set_consume(set_, kEventsAtATime, take, this);
        if (failure_) std::rethrow_exception(failure_);
        if (count == -ENOMEM) throw Failure(kExitFailed, "no memory for the largest event");
        files_.rotate_if_due();
        return std::max(count, 0);
    }

    // The reader set is C: no exception may pass it.
    static int take(void* context, const kmes_event_view* view) {
        auto* self = static_cast<Recording*>(context);
        try {
            self->record(*view);
            return 0;
        } catch (...) {
            self->failure_ = std::current_exception();
            return -ECANCELED;
        }
    }

    void record(const kmes_event_view& view) {
        if (view.lost_before != 0) {
            lost_ += view.lost_before;
            files_.add_loss({view.cpu_id, view.sequence - view.lost_before, view.lost_before});
        }
        const auto* event = reinterpret_cast<const std::byte*>(view.type) - KMES_EVENT_FIXED_BYTES;
        files_.add_event({event, view.event_size});
    }

    kmes_reader_set* const set_;
    const std::uint64_t sync_ns_;
    RecordFiles files_;
    std::exception_ptr failure_;
    std::uint64_t lost_ = 0;
    bool has_ended_ = false;
    bool is_cut_ = false;  // events were unread when the recording ended
};

RecordFilesOptions files_of(const RecordOptions& options) {
    RecordFilesOptions files;
    files.path = options.output;
    if (!options.rotate_size.empty()) {
        const auto bytes = parse_bytes(options.rotate_size);
        if (!bytes || *bytes < 4096)
            throw Failure(kExitUsage, fmt::format("--rotate-size is \"{}\"; a number of bytes from "
                                                  "4096 is right, such as 64M",
                                                  options.rotate_size));
        files.rotate_bytes = *bytes;
    }
    if (!options.rotate_time.empty())
        files.rotate_ns =
            number_option("--rotate-time", options.rotate_time, 1, 86400 * 366) * kNsPerSecond;
    if (!options.keep.empty()) files.keep = number_option("--keep", options.keep, 1, 1'000'000);
    if (files.keep != 0 && files.rotate_bytes == 0 && files.rotate_ns == 0)
        throw Failure(kExitUsage,
                      "--keep without --rotate-size or --rotate-time keeps one file; "
                      "one of them is right beside it");
    return files;
}

int record(const RecordOptions& options) {
    const RecordFilesOptions files = files_of(options);
    const std::uint64_t sync_ns = number_option("--sync", options.sync, 1, 3'600'000) * kNsPerMs;
    choose_socket(options.socket);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) keep_signal(signal);
    const ReaderSet set = open_set();
    Recording recording(set.get(), files, sync_ns);
    say(fmt::format("records {} CPUs to {}", kmes_reader_set_cpus(set.get()), files.path));
    try {
        recording.run();
    } catch (const Failure& failure) {
        throw Failure(failure.status,
                      fmt::format("{} ({} were read)", failure.what(), recording.summary()));
    }
    say(recording.summary());
    return kExitDone;
}

}  // namespace

Runner declare_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    app.add_option("-o,--output", options->output,
                   "the file, which must not exist; with rotation FILE.1, FILE.2 and so on")
        ->type_name("FILE")
        ->required();
    add_socket_option(app, &options->socket);
    app.add_option("--rotate-size", options->rotate_size,
                   "begin the next file when this one has so many bytes")
        ->type_name("BYTES");
    app.add_option("--rotate-time", options->rotate_time,
                   "begin the next file when this one is so old")
        ->type_name("SECONDS");
    app.add_option("--keep", options->keep, "remove all but the last N files of the rotation")
        ->type_name("N");
    app.add_option("--sync", options->sync,
                   "write what was read, and wait for the disk, at this interval (default 1000)")
        ->type_name("MS");
    return [options] { return record(*options); };
}

}  // namespace kmes::kmesctl
