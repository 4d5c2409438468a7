// SPDX-License-Identifier: MIT
#include "kmesctl/record_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kmes/user/futex.h"
#include "kmesctl/command.h"

namespace kmes::kmesctl {
RecordFiles::RecordFiles(RecordFilesOptions options, record::FileHeader header)
    : options_(std::move(options)), header_(header) {
    open_next();
}

void RecordFiles::open_next() {
    const bool rotates = options_.rotate_bytes != 0 || options_.rotate_ns != 0;
    ++number_;
    path_ = rotates ? fmt::format("{}.{}", options_.path, number_) : options_.path;
    header_.file_number = static_cast<std::uint32_t>(number_);
    header_.started_ns = kmes_clock_realtime_ns();
    if (const int error = writer_.open(path_, header_); error != 0)
        throw Failure(kExitFailed,
                      error == -EEXIST
                          ? fmt::format("{} exists; a name that no file has is right", path_)
                          : fmt::format("cannot create {}: {}", path_, std::strerror(-error)));
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

void RecordFiles::add_event(std::span<const std::byte> event) {
    check(writer_.add_event(event));
    ++events_;
}

void RecordFiles::add_loss(const record::Loss& loss) {
    check(writer_.add_loss(loss));
}

void RecordFiles::rotate_if_due() {
    const bool is_large =
        options_.rotate_bytes != 0 && writer_.file_bytes() >= options_.rotate_bytes;
    const bool is_old =
        options_.rotate_ns != 0 && kmes_clock_monotonic_ns() - opened_ns_ >= options_.rotate_ns;
    if (!is_large && !is_old) return;
    check(writer_.close());
    open_next();
}

void RecordFiles::sync() {
    check(writer_.sync());
}

void RecordFiles::close() {
    check(writer_.close());
}

void open_record(const std::string& path, record::Reader* reader) {
    std::string wrong;
    auto source = record::open_file(path, &wrong);
    if (source == nullptr || !reader->open(std::move(source), &wrong))
        throw Failure(kExitFailed, fmt::format("cannot read {}: {}", path, wrong));
}

}  // namespace kmes::kmesctl
