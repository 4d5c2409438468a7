// SPDX-License-Identifier: MIT
//
// See snapshot.h.
#include "kmesctl/snapshot.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_reader.h"
#include "kmesctl/command.h"
#include "kmesctl/record_files.h"
#include "kmesctl/service.h"
#include "kmesctl/source.h"

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// The interval between checks whether the rings still belong to the producer.
constexpr std::uint64_t kAskEveryNs = 100 * kNsPerMs;
constexpr Watermark kWatermark = {std::uint64_t{64} << 10, 10 * kNsPerMs};

std::unique_ptr<Source> open_rings() {
    constexpr bool kIsReadOnly = true;
    return std::make_unique<Source>([](const std::string&) {}, Watermark{}, kIsReadOnly);
}

// Returns the session of the producer to which the rings belong. Without reads, the reader set does
// not switch to another producer.
std::uint64_t session_of(const Source& rings) {
    for (unsigned cpu = 0; cpu < rings.cpus(); ++cpu) {
        if (rings.error(cpu) == 0) return rings.session(cpu);
    }
    return 0;
}

// Identifies the buffer of CPU 0. A resize replaces the buffers of all CPUs.
struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t session = 0;

    bool operator==(const Identity&) const = default;
};

std::optional<Identity> current_identity() {
    kmes_reader_config config = {};
    kmes_reader_by_libkmes(&config, 0);
    kmes_mapping mapping = {};
    if (config.attach_functions.identify(config.attach_functions.context, 0, &mapping) != 0)
        return std::nullopt;
    return Identity{mapping.device, mapping.inode, mapping.session};
}

// The rings of the producer and of the one before it, which remain mapped after its death.
class HeldRings {
  public:
    HeldRings() : identity_(current_identity()), current_(open_rings()) {}

    // Switches to the rings of a resize, which contain the surviving events, or of another
    // producer. Keeps the old rings while fewer of the new ones can be read.
    void follow() {
        asked_ns_ = kmes_clock_monotonic_ns();
        const auto now = current_identity();
        if (!now || now == identity_) return;
        try {
            auto next = open_rings();
            if (next->unread_cpus() > current_->unread_cpus()) return;
            if (session_of(*next) != session_of(*current_)) earlier_ = std::move(current_);
            current_ = std::move(next);
            identity_ = now;
        } catch (const Failure&) {  // no producer serves, or its rings cannot be attached now
        }
    }
    void follow_if_due() {
        if (kmes_clock_monotonic_ns() - asked_ns_ >= kAskEveryNs) follow();
    }

    record::FileHeader header() const {
        const Source& first = earlier_ ? *earlier_ : *current_;
        record::FileHeader header = record_header(*current_, session_of(first));
        header.cpus = std::max(header.cpus, first.cpus());
        return header;
    }
    // Returns the number of CPUs whose rings cannot be read.
    unsigned unread_cpus() const { return current_->unread_cpus(); }
    // Writes all events. Returns false if is_over() has ended that early.
    bool write(RecordFiles* files, const std::function<bool()>& is_over) {
        if (earlier_ && !write_rings(earlier_.get(), files, is_over)) return false;
        return write_rings(current_.get(), files, is_over);
    }

  private:
    static bool write_rings(Source* rings, RecordFiles* files,
                            const std::function<bool()>& is_over) {
        const std::uint64_t session = session_of(*rings);
        std::vector<bool> has_begun(rings->cpus());
        const auto take = [&](const kmes_event_view& event) {
            const unsigned cpu = event.cpu_id;
            // The reader may switch to the next producer, whose rings are others.
            if (cpu >= has_begun.size() || rings->session_of_event(cpu) != session) return true;
            kmes_event_view written = event;
            // Events that are older than the ring are not lost.
            if (!has_begun[cpu]) written.lost_before = 0;
            has_begun[cpu] = true;
            files->enter_session(cpu, session);
            files->add(written);
            return true;
        };
        return rings->read_backlog(take, is_over) != Backlog::stopped;
    }

    std::optional<Identity> identity_;
    std::unique_ptr<Source> earlier_;
    std::unique_ptr<Source> current_;
    std::uint64_t asked_ns_ = 0;
};

int open_process(pid_t process) {
    if (process == 0) return -1;
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (fd >= 0) return fd;
    throw Failure(kExitFailed,
                  errno == ESRCH || errno == EINVAL
                      ? fmt::format("--on-exit is {}; expected the number of a process", process)
                      : fmt::format("cannot watch process {}: {}", process, std::strerror(errno)));
}

int open_signals() {
    sigset_t signals = block_end_signals();
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const int fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        throw Failure(kExitFailed, fmt::format("cannot wait for signals: {}", strerror(errno)));
    return fd;
}

class Trigger {
  public:
    explicit Trigger(const SnapshotOptions& options)
        : options_(options), signals_(open_signals()), process_(open_process(options.process)) {
        if (!options.match) return;
        source_ =
            std::make_unique<Source>([](const std::string& notice) { say(notice); }, kWatermark);
        ready_ = source_->ready_fd();
        pass_old_events();
    }
    ~Trigger() {
        close(signals_);
        if (process_ >= 0) close(process_);
    }
    Trigger(const Trigger&) = delete;
    Trigger& operator=(const Trigger&) = delete;

    // Returns early if there is an event.
    void wait() {
        pollfd fds[] = {{signals_, POLLIN, 0}, {process_, POLLIN, 0}, {ready_, POLLIN, 0}};
        const int ready = poll(fds, std::size(fds), static_cast<int>(kAskEveryNs / kNsPerMs));
        if (source_ && source_->follow_cpus()) ready_ = source_->ready_fd();
        if (ready <= 0) return;
        take_signals();
        if (fds[1].revents != 0) found(fmt::format("process {} has ended", options_.process));
        if (fds[2].revents != 0) take_events();
    }
    // Returns the reason to write a snapshot; empty: there is no reason yet.
    const std::string& reason() const { return reason_; }
    bool is_over() const { return is_over_; }
    // Reads the pending signals, and then returns is_over().
    bool must_end() {
        take_signals();
        return is_over_;
    }
    // The number of events that were overwritten before the comparison.
    std::uint64_t missed() const { return missed_; }

    std::string description() const {
        std::string text = "SIGUSR2";
        if (options_.match) text += ", an event that matches";
        if (process_ >= 0) text += fmt::format(", the end of process {}", options_.process);
        return text;
    }

  private:
    void found(const std::string& reason) {
        if (reason_.empty()) reason_ = reason;
    }

    void take_signals() {
        signalfd_siginfo signal;
        while (read(signals_, &signal, sizeof(signal)) == sizeof(signal)) {
            if (signal.ssi_signo == SIGUSR2)
                found("SIGUSR2 has come");
            else
                is_over_ = true;
        }
    }

    void take_events() {
        source_->consume(kEventsAtATime, [this](const kmes_event_view& event) {
            missed_ += event.lost_before;
            if (options_.match->matches(event))
                found(fmt::format("event {} of CPU {} matches", event.sequence, event.cpu_id));
            return reason_.empty();
        });
    }

    // Skips the events that are older than the trigger.
    void pass_old_events() {
        const auto pass = [](const kmes_event_view&) { return true; };
        source_->read_backlog(pass, [this] { return must_end(); });
    }

    const SnapshotOptions& options_;
    const int signals_;
    const int process_;
    int ready_ = -1;
    std::unique_ptr<Source> source_;  // nullptr: no event is a reason
    std::string reason_;
    std::uint64_t missed_ = 0;
    bool is_over_ = false;
};

// Returns the exit status: a snapshot that lacks something has failed.
int write_snapshot(const std::string& path, HeldRings* rings, Trigger* trigger) {
    RecordFilesOptions options;
    options.path = path;
    RecordFiles files(options, rings->header());
    bool is_whole = false;
    try {
        is_whole = rings->write(&files, [trigger] { return trigger->must_end(); });
        files.close();
    } catch (const Failure& failure) {
        throw Failure(failure.status,
                      fmt::format("{} ({})", failure.what(), files.text_of_events()));
    }
    std::string more;
    if (trigger->missed() != 0)
        more +=
            fmt::format("; not compared: {} that were lost", counted(trigger->missed(), "event"));
    more += text_of_unread(rings->unread_cpus());
    if (!is_whole) more += "; a signal ended it before all events were written";
    say(fmt::format("{}: {} in {}, {} lost while they were written{}", trigger->reason(),
                    counted(files.events(), "event"), path, files.lost(), more));
    return is_whole && rings->unread_cpus() == 0 ? kExitDone : kExitFailed;
}

}  // namespace

int record_snapshot(const SnapshotOptions& options) {
    require_new_file(options.path);
    Trigger trigger(options);
    HeldRings rings;
    say(fmt::format("waits for {}, and writes {} then", trigger.description(), options.path));
    while (trigger.reason().empty() && !trigger.is_over()) {
        trigger.wait();
        rings.follow_if_due();
    }
    if (trigger.reason().empty()) {
        say("ended by a signal; no snapshot was written");
        return kExitDone;
    }
    rings.follow();
    return write_snapshot(options.path, &rings, &trigger);
}

}  // namespace kmes::kmesctl
