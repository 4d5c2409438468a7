// SPDX-License-Identifier: MIT
#include "record/writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "record/crc32c.h"

namespace kmes::record {

Writer::~Writer() {
    close();
}

int Writer::open(const std::string& path, FileHeader header) {
    if (is_open() || header.cpus == 0) return -EINVAL;
    if (getrandom(&header.file_id, sizeof(header.file_id), 0) != sizeof(header.file_id))
        return -EIO;
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) return -errno;
    // Tells another recorder that this file is written. A file system without locks is all right.
    flock(fd_, LOCK_EX | LOCK_NB);
    error_ = 0;
    header_ = header;
    written_bytes_ = 0;
    index_ = 0;
    items_ = 0;
    written_events_ = 0;
    block_events_ = 0;
    block_.assign(kBlockHeaderBytes, std::byte{0});
    if (const int error = write_whole(encode(header)); error != 0) {
        // A file without a header is not a record file.
        unlink(path.c_str());
        ::close(fd_);
        fd_ = -1;
        return error;
    }
    return 0;
}

bool Writer::is_removed() const {
    struct stat status = {};
    return is_open() && fstat(fd_, &status) == 0 && status.st_nlink == 0;
}

std::uint64_t Writer::file_bytes() const {
    return written_bytes_ + (items_ == 0 ? 0 : block_.size());
}

int Writer::fail(int error) {
    error_ = error;
    // A reader reports a part of a block as damage, so remove it. If that fails, ignore it.
    if (ftruncate(fd_, static_cast<off_t>(written_bytes_)) != 0) return error;
    return error;
}

int Writer::write_whole(std::span<const std::byte> bytes) {
    const std::size_t whole = bytes.size();
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(-errno);
        if (written == 0) return fail(-ENOSPC);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    written_bytes_ += whole;
    return 0;
}

int Writer::set_cpus(std::uint32_t cpus) {
    if (!is_open()) return -EBADF;
    if (error_ != 0) return error_;
    header_.cpus = cpus;
    const auto bytes = encode(header_);
    ssize_t written = 0;
    while ((written = pwrite(fd_, bytes.data(), bytes.size(), 0)) < 0 && errno == EINTR) continue;
    if (written < 0) return error_ = -errno;
    return written == static_cast<ssize_t>(bytes.size()) ? 0 : error_ = -EIO;
}

int Writer::add(ItemKind kind, std::span<const std::byte> content) {
    if (!is_open()) return -EBADF;
    if (error_ != 0) return error_;
    const std::size_t more = kItemHeaderBytes + content.size();
    if (items_ != 0 && block_.size() + more > kBlockHeaderBytes + kBodyBytes) {
        if (const int error = flush(); error != 0) return error;
    }
    const auto header = encode_item(kind, static_cast<std::uint32_t>(content.size()));
    block_.insert(block_.end(), header.begin(), header.end());
    block_.insert(block_.end(), content.begin(), content.end());
    ++items_;
    if (kind == ItemKind::kEvent) ++block_events_;
    return 0;
}

int Writer::add_event(std::span<const std::byte> event) {
    kmes_event_view view;
    if (!is_event(event, &view)) return -EINVAL;
    return add(ItemKind::kEvent, event);
}

int Writer::add_loss(const Loss& loss) {
    return add(ItemKind::kLoss, encode(loss));
}

int Writer::add_session(const Session& session) {
    return add(ItemKind::kSession, encode(session));
}

int Writer::flush() {
    if (!is_open()) return -EBADF;
    if (error_ != 0) return error_;
    if (items_ == 0) return 0;
    const auto body = std::span<const std::byte>(block_).subspan(kBlockHeaderBytes);
    BlockHeader header;
    header.file_id = header_.file_id;
    header.index = index_;
    header.body_bytes = static_cast<std::uint32_t>(body.size());
    header.items = items_;
    header.body_crc = crc32c(body);
    const auto bytes = encode(header);
    std::copy(bytes.begin(), bytes.end(), block_.begin());
    if (const int error = write_whole(block_); error != 0) return error;
    ++index_;
    items_ = 0;
    written_events_ += block_events_;
    block_events_ = 0;
    block_.resize(kBlockHeaderBytes);
    // Frees the memory of a large event.
    if (block_.capacity() > 2 * kBodyBytes) block_.shrink_to_fit();
    return 0;
}

int Writer::sync() {
    if (const int error = flush(); error != 0) return error;
    // EINVAL, EROFS: a file that cannot be synced, such as a pipe.
    if (fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) return error_ = -errno;
    return 0;
}

int Writer::close() {
    if (!is_open()) return 0;
    int error = sync();
    if (::close(fd_) != 0 && error == 0) error = -errno;
    fd_ = -1;
    return error;
}

}  // namespace kmes::record
