// SPDX-License-Identifier: MIT
#include "kmesctl/record_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
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

// The N of NAME.N in a rotation of NAME; 0: another name. A number of more than 31 bits leaves no
// room for the numbers of this recording, so it is no part of the rotation.
std::uint64_t number_in(std::string_view name, std::string_view rotated) {
    if (!name.starts_with(rotated) || name.size() < rotated.size() + 2 ||
        name[rotated.size()] != '.' || name[rotated.size() + 1] == '0')
        return 0;
    const std::string_view digits = name.substr(rotated.size() + 1);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    return is_number && number <= INT32_MAX ? number : 0;
}

// Whether the file of an earlier recording can be read. Another program may have files of such
// names, too. Throws if a recorder still writes to it.
bool is_earlier_recording(const std::string& path) {
    std::string wrong;
    record::Reader reader;
    auto source = record::open_file(path, &wrong);
    if (source == nullptr || !reader.open(std::move(source), &wrong)) return false;
    const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_in_use = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    if (is_in_use)
        throw Failure(kExitFailed, fmt::format("another recorder writes to {}; expected the name "
                                               "of another rotation",
                                               path));
    return true;
}

}  // namespace

RecordFiles::RecordFiles(RecordFilesOptions options, record::FileHeader header)
    : options_(std::move(options)), header_(header), sessions_(header.cpus, header.session) {
    if (rotates()) find_earlier_files();
    open_next();
}

// A folder that cannot be read has no earlier files for this recorder: open_next() skips the names
// that exist.
void RecordFiles::find_earlier_files() {
    const std::filesystem::path path(options_.path);
    const std::filesystem::path folder = path.parent_path();
    std::map<std::uint64_t, std::string> files;
    std::error_code error;
    for (std::filesystem::directory_iterator each(folder.empty() ? "." : folder, error), end;
         !error && each != end; each.increment(error)) {
        const std::uint64_t number =
            number_in(each->path().filename().native(), path.filename().native());
        if (number != 0) files[number] = fmt::format("{}.{}", options_.path, number);
    }
    if (!files.empty()) number_ = files.rbegin()->first;
    for (const auto& [number, file] : files) {
        if (is_earlier_recording(file)) kept_.push_back({.path = file, .is_earlier = true});
    }
}

void RecordFiles::open_next() {
    header_.started_ns = kmes_clock_realtime_ns();
    header_.session = sessions_.front();
    std::fill(sessions_.begin(), sessions_.end(), header_.session);
    int error = 0;
    do {
        ++number_;
        path_ = rotates() ? fmt::format("{}.{}", options_.path, number_) : options_.path;
        header_.file_number = static_cast<std::uint32_t>(number_);
        error = writer_.open(path_, header_);
    } while (error == -EEXIST && rotates());
    if (error != 0) refuse_to_create(path_, -error);
    opened_ns_ = kmes_clock_monotonic_ns();
    kept_.push_back({.path = path_});
    while (options_.keep != 0 && kept_.size() > options_.keep) remove_oldest();
}

void RecordFiles::remove_oldest() {
    const File& oldest = kept_.front();
    unlink(oldest.path.c_str());
    ++(oldest.is_earlier ? earlier_removed_ : files_removed_);
    events_removed_ += oldest.events;
    kept_.pop_front();
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
    std::size_t files = 0;
    for (const File& file : kept_) {
        events += file.events;
        files += file.is_earlier ? 0 : 1;
    }
    std::string text = fmt::format("{} in {}", counted(events, "event"), counted(files, "file"));
    if (files_removed_ != 0)
        text += fmt::format("; --keep has removed {} with {}", counted(files_removed_, "file"),
                            counted(events_removed_, "event"));
    if (earlier_removed_ != 0)
        text += fmt::format("; --keep has removed {} of earlier recordings",
                            counted(earlier_removed_, "file"));
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
