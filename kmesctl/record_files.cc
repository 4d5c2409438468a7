// SPDX-License-Identifier: MIT
#include "kmesctl/record_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "kmes/user/futex.h"
#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

[[noreturn]] void refuse_to_create(const std::string& path, int error) {
    throw Failure(kExitFailed,
                  error == EEXIST
                      ? fmt::format("{} exists; expected the name of a new file", path)
                      : fmt::format("cannot create {}: {}", path, std::strerror(error)));
}

}  // namespace

RecordFiles::RecordFiles(RecordFilesOptions options, record::FileHeader header)
    : options_(std::move(options)), header_(header), sessions_(header.cpus, header.session) {
    open_next();
}

void RecordFiles::open_next() {
    const bool rotates = options_.rotate_bytes != 0 || options_.rotate_ns != 0;
    ++number_;
    path_ = rotates ? fmt::format("{}.{}", options_.path, number_) : options_.path;
    header_.file_number = static_cast<std::uint32_t>(number_);
    header_.started_ns = kmes_clock_realtime_ns();
    header_.session = sessions_.front();
    std::fill(sessions_.begin(), sessions_.end(), header_.session);
    if (const int error = writer_.open(path_, header_); error != 0) refuse_to_create(path_, -error);
    opened_ns_ = kmes_clock_monotonic_ns();
    kept_.push_back({path_});
    while (options_.keep != 0 && kept_.size() > options_.keep) {
        unlink(kept_.front().path.c_str());
        ++files_removed_;
        events_removed_ += kept_.front().events;
        kept_.pop_front();
    }
}

void RecordFiles::check(int error) {
    if (error == 0) return;
    throw Failure(kExitFailed,
                  fmt::format("cannot write {}: {}; it has everything up to its last whole block",
                              path_, std::strerror(-error)));
}

void RecordFiles::set_cpus(unsigned cpus) {
    if (cpus <= header_.cpus) return;
    header_.cpus = cpus;
    sessions_.resize(cpus, header_.session);
    check(writer_.set_cpus(cpus));
}

void RecordFiles::enter_session(unsigned cpu, std::uint64_t session) {
    if (cpu >= sessions_.size() || sessions_[cpu] == session) return;
    check(writer_.add_session({static_cast<std::uint16_t>(cpu), session}));
    sessions_[cpu] = session;
}

void RecordFiles::add(const kmes_event_view& event) {
    if (event.lost_before != 0)
        add_loss({event.cpu_id, event.sequence - event.lost_before, event.lost_before});
    const auto* bytes = reinterpret_cast<const std::byte*>(event.type) - KMES_EVENT_FIXED_BYTES;
    ++events_;
    check(writer_.add_event({bytes, event.event_size}));
}

void RecordFiles::add_loss(const record::Loss& loss) {
    lost_ += loss.count;
    check(writer_.add_loss(loss));
}

void RecordFiles::rotate() {
    finish_file();
    open_next();
}

void RecordFiles::finish_file() {
    check(writer_.flush());
    if (writer_.is_removed()) {
        kept_.pop_back();
        ++files_lost_;
        events_lost_ += writer_.written_events();
    } else {
        kept_.back().events = writer_.written_events();
    }
    check(writer_.close());
}

void RecordFiles::rotate_if_large() {
    if (options_.rotate_bytes != 0 && writer_.file_bytes() >= options_.rotate_bytes) rotate();
}

void RecordFiles::rotate_if_old() {
    if (options_.rotate_ns != 0 && kmes_clock_monotonic_ns() - opened_ns_ >= options_.rotate_ns)
        rotate();
}

void RecordFiles::sync() {
    check(writer_.sync());
}

void RecordFiles::close() {
    finish_file();
}

std::string RecordFiles::text_of_events() const {
    std::uint64_t events = writer_.is_open() ? writer_.written_events() : 0;
    for (const File& file : kept_) events += file.events;
    std::string text =
        fmt::format("{} in {}", counted(events, "event"), counted(kept_.size(), "file"));
    if (files_removed_ != 0)
        text += fmt::format("; --keep has removed {} with {}", counted(files_removed_, "file"),
                            counted(events_removed_, "event"));
    if (files_lost_ != 0)
        text += fmt::format("; another process has removed {} with {} during the recording",
                            counted(files_lost_, "file"), counted(events_lost_, "event"));
    const std::uint64_t unwritten = events_ - events - events_removed_ - events_lost_;
    if (unwritten != 0)
        text += fmt::format("; not written: {} that were read", counted(unwritten, "event"));
    return text;
}

record::FileHeader record_header(const Source& source, std::uint64_t session) {
    record::FileHeader header;
    header.cpus = source.cpus();
    header.session = session;
    for (unsigned cpu = 0; cpu < header.cpus; ++cpu)
        header.capacity_bytes = std::max(header.capacity_bytes, source.ring(cpu).capacity_bytes);
    return header;
}

std::string text_of_unread(unsigned cpus) {
    if (cpus == 0) return "";
    return fmt::format("; {} CPU{} could not be read", cpus, cpus == 1 ? "" : "s");
}

void require_new_file(const std::string& path) {
    if (faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        refuse_to_create(path, EEXIST);
    const std::string folder = std::filesystem::path(path).parent_path();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
        refuse_to_create(path, errno);
}

void open_record(const std::string& path, record::Reader* reader) {
    std::string wrong;
    auto source = record::open_file(path, &wrong);
    if (source == nullptr || !reader->open(std::move(source), &wrong))
        throw Failure(kExitFailed, fmt::format("cannot read {}: {}", path, wrong));
}

}  // namespace kmes::kmesctl
