// SPDX-License-Identifier: MIT
// kmesctl record: writes the events of all CPUs into a file (docs/record-format.md).
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kmes/user/futex.h"
#include "kmesctl/command.h"
#include "kmesctl/output.h"
#include "kmesctl/record_files.h"
#include "kmesctl/snapshot.h"
#include "kmesctl/source.h"
#include "kmod/kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// A signal may come just before a wait, which then lasts this long.
constexpr std::uint64_t kLongestWaitNs = 100 * kNsPerMs;
// The producer wakes this reader at most once in this many bytes, or in this time.
constexpr std::uint64_t kWatermarkBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kWatermarkNs = 10 * kNsPerMs;

struct RecordOptions {
    std::string output;
    std::string socket;
    std::string rotate_size;
    std::string rotate_time;
    std::string keep;
    std::string sync = "1000";
    bool is_snapshot = false;
    std::vector<std::string> types;
    std::vector<std::string> fields;
    std::string process;
};

// The state of one recording.
class Recording {
  public:
    Recording(RecordFilesOptions options, std::uint64_t sync_ns)
        : sync_ns_(sync_ns),
          source_([](const std::string& notice) { say(notice); }, {kWatermarkBytes, kWatermarkNs}),
          files_(std::move(options), record_header(source_, source_.session(0))) {}

    unsigned cpus() const { return source_.cpus(); }

    void run() {
        std::uint64_t synced_ns = kmes_clock_monotonic_ns();
        while (stop_signal() == 0) {
            source_.wait(std::min(sync_ns_, kLongestWaitNs));
            follow_cpus();
            read_some();
            if (kmes_clock_monotonic_ns() - synced_ns < sync_ns_) continue;
            files_.sync();
            synced_ns = kmes_clock_monotonic_ns();
        }
        const auto never = [] { return false; };
        is_cut_ = source_.read_backlog(take_, never) != Backlog::read;
        if (follow_cpus()) is_cut_ = source_.read_backlog(take_, never) != Backlog::read;
        files_.close();
    }

    // Returns the line at the end of each recording.
    std::string summary() const {
        return fmt::format(
            "{}, {} lost, {} skipped{}{}", files_.text_of_events(), files_.lost(),
            counted(source_.corrupt(), "corrupt place"),
            is_cut_ ? "; the producer did not stop, and later events were unread" : "",
            text_of_unread(source_.unread_cpus()));
    }
    bool is_complete() const { return source_.unread_cpus() == 0 && files_.is_whole(); }

  private:
    bool follow_cpus() {
        if (!source_.follow_cpus()) return false;
        files_.set_cpus(source_.cpus());
        return true;
    }

    unsigned read_some() {
        const unsigned count = source_.consume(kEventsAtATime, take_);
        files_.rotate_if_old();
        return count;
    }

    const std::uint64_t sync_ns_;
    Source source_;
    RecordFiles files_;
    const Take take_ = [this](const kmes_event_view& event) {
        files_.enter_session(event.cpu_id, source_.session_of_event(event.cpu_id));
        files_.add(event);
        files_.rotate_if_large();
        return true;
    };
    bool is_cut_ = false;  // events were unread when the recording ended
};

RecordFilesOptions files_of(const RecordOptions& options) {
    RecordFilesOptions files;
    files.path = options.output;
    if (!options.rotate_size.empty()) {
        const auto bytes = parse_bytes(options.rotate_size);
        if (!bytes || *bytes < 4096)
            throw Failure(kExitUsage, fmt::format("--rotate-size is \"{}\"; expected a number of "
                                                  "bytes from 4096 on, such as 64M",
                                                  options.rotate_size));
        files.rotate_bytes = *bytes;
    }
    if (!options.rotate_time.empty())
        files.rotate_ns =
            number_option("--rotate-time", options.rotate_time, 1, 86400 * 366) * kNsPerSecond;
    if (!options.keep.empty()) files.keep = number_option("--keep", options.keep, 1, 1'000'000);
    if (files.keep != 0 && files.rotate_bytes == 0 && files.rotate_ns == 0)
        throw Failure(kExitUsage, "--keep needs --rotate-size or --rotate-time");
    return files;
}

int snapshot(const RecordOptions& options) {
    SnapshotOptions wanted;
    wanted.path = options.output;
    if (!options.types.empty() || !options.fields.empty()) {
        wanted.match.emplace();
        wanted.match->type_globs = options.types;
        for (const std::string& text : options.fields)
            wanted.match->fields.push_back(field_option("--on-field", text));
    }
    if (!options.process.empty())
        wanted.process =
            static_cast<pid_t>(number_option("--on-exit", options.process, 1, INT32_MAX));
    choose_socket(options.socket);
    return record_snapshot(wanted);
}

int record(const RecordOptions& options) {
    if (options.is_snapshot) return snapshot(options);
    const RecordFilesOptions files = files_of(options);
    const std::uint64_t sync_ns = number_option("--sync", options.sync, 1, 3'600'000) * kNsPerMs;
    choose_socket(options.socket);
    keep_signals({SIGTERM, SIGINT, SIGHUP});
    // SIGUSR2 requests a snapshot, but this recorder writes everything.
    signal(SIGUSR2, SIG_IGN);
    Recording recording(files, sync_ns);
    say(fmt::format("records {} to {}", counted(recording.cpus(), "CPU"), files.path));
    try {
        recording.run();
    } catch (const Failure& failure) {
        throw Failure(failure.status, fmt::format("{} ({})", failure.what(), recording.summary()));
    } catch (const std::bad_alloc& error) {
        throw Failure(kExitFailed, fmt::format("{} ({})", reason_of(error), recording.summary()));
    }
    say(recording.summary());
    return recording.is_complete() ? kExitDone : kExitFailed;
}

// The reasons to write a snapshot.
void add_reasons(CLI::App& app, RecordOptions* options, CLI::Option* snapshot) {
    app.add_option("--on-type", options->types,
                   "with --snapshot: an event whose type matches this shell pattern is a reason; "
                   "repeatable: any of them")
        ->type_name("GLOB")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1)
        ->needs(snapshot);
    app.add_option("--on-field", options->fields,
                   "with --snapshot: an event with this value in MessagePack is a reason; "
                   "repeatable: all of them, and --on-type")
        ->type_name("PATH=VALUE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->expected(1)
        ->needs(snapshot);
    app.add_option("--on-exit", options->process,
                   "with --snapshot: the end of this process is a reason")
        ->type_name("PID")
        ->needs(snapshot);
}

// A recording cannot go to a pipe, because the recorder waits until the disk has the data.
std::string wrong_file(const std::string& path) {
    return path == "-" ? "a recording cannot go to standard output; ./- is a file of this name"
                       : wrong_path(path);
}

}  // namespace

Runner declare_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    app.add_option(
           "-o,--output", options->output,
           "the file, which must not exist; with rotation FILE.1, FILE.2 and so on, after the "
           "last one that exists")
        ->type_name("FILE")
        ->check(wrong_file)
        ->required();
    add_socket_option(app, &options->socket);
    auto* snapshot = app.add_flag("--snapshot", options->is_snapshot,
                                  "write nothing until SIGUSR2 or one of the reasons below; then "
                                  "write the content of the rings, and end");
    app.add_option("--rotate-size", options->rotate_size,
                   "begin the next file when this one has this number of bytes")
        ->type_name("BYTES")
        ->excludes(snapshot);
    app.add_option("--rotate-time", options->rotate_time,
                   "begin the next file when this one has this age")
        ->type_name("SECONDS")
        ->excludes(snapshot);
    app.add_option("--keep", options->keep,
                   "remove all but the last N files of the rotation, earlier recordings included")
        ->type_name("N")
        ->excludes(snapshot);
    app.add_option("--sync", options->sync,
                   "write to the file, and wait for the disk, at this interval (default 1000)")
        ->type_name("MS")
        ->excludes(snapshot);
    add_reasons(app, options.get(), snapshot);
    return [options] { return record(*options); };
}

}  // namespace kmes::kmesctl
