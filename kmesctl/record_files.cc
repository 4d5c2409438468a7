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
                      ? fmt::format("{} exists; a name that no file has is right", path)
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
    kept_.push_back(path_);
    while (options_.keep != 0 && kept_.size() > options_.keep) {
        unlink(kept_.front().c_str());
        kept_.pop_front();
    }
}

void RecordFiles::check(int error) {
    if (error == 0) return;
    throw Failure(kExitFailed,
                  fmt::format("cannot write {}: {}; it has everything up to its last whole block",
                              path_, std::strerror(-error)));
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
    check(writer_.add_event({bytes, event.event_size}));
    ++events_;
}

void RecordFiles::add_loss(const record::Loss& loss) {
    check(writer_.add_loss(loss));
    lost_ += loss.count;
}

void RecordFiles::rotate() {
    check(writer_.close());
    open_next();
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
    check(writer_.close());
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
