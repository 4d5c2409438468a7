// SPDX-License-Identifier: MIT
#include "record/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "record/crc32c.h"

namespace kmes::record {
namespace {

constexpr std::size_t kSearchBytes = std::size_t{64} << 10;
// The limit of the search after damage: its candidates together may have this many times the bytes
// of the file.
constexpr std::uint64_t kSearchesOfFile = 4;

class FileSource : public Source {
  public:
    FileSource(int fd, std::uint64_t bytes) : fd_(fd), bytes_(bytes) {}
    ~FileSource() override { ::close(fd_); }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    std::uint64_t size() const override { return bytes_; }
    bool read(std::uint64_t offset, std::span<std::byte> to) override {
        while (!to.empty()) {
            const ssize_t got = pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            offset += static_cast<std::uint64_t>(got);
            to = to.subspan(static_cast<std::size_t>(got));
        }
        return true;
    }

  private:
    const int fd_;
    const std::uint64_t bytes_;
};

class MemorySource : public Source {
  public:
    explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::uint64_t size() const override { return bytes_.size(); }
    bool read(std::uint64_t offset, std::span<std::byte> to) override {
        if (offset > bytes_.size() || to.size() > bytes_.size() - offset) return false;
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
        return true;
    }

  private:
    const std::span<const std::byte> bytes_;
};

// True if a body consists of exactly `items` items.
bool is_whole(std::span<const std::byte> body, std::uint32_t items) {
    ItemCursor cursor(body);
    Item item;
    while (cursor.next(&item)) continue;
    return !cursor.is_broken() && cursor.passed() == items;
}

}  // namespace

std::unique_ptr<Source> open_file(const std::string& path, std::string* wrong) {
    // O_NONBLOCK: a pipe without a writer is rejected, without a wait.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status = {};
    if (fd < 0 || fstat(fd, &status) != 0) {
        *wrong = std::strerror(errno);
        if (fd >= 0) ::close(fd);
        return nullptr;
    }
    if (!S_ISREG(status.st_mode)) {
        *wrong = "it is not a regular file; expected a record file";
        ::close(fd);
        return nullptr;
    }
    return std::make_unique<FileSource>(fd, static_cast<std::uint64_t>(status.st_size));
}

std::unique_ptr<Source> source_of(std::span<const std::byte> bytes) {
    return std::make_unique<MemorySource>(bytes);
}

bool Reader::open(std::unique_ptr<Source> source, std::string* wrong) {
    *this = Reader();
    source_ = std::move(source);
    std::array<std::byte, kFileHeaderBytes> bytes = {};
    const std::size_t there = std::min<std::uint64_t>(source_->size(), bytes.size());
    if (!source_->read(0, std::span(bytes).first(there))) {
        *wrong = "its header cannot be read";
        return false;
    }
    const auto header = decode_file_header(std::span(bytes).first(there), wrong);
    if (!header) return false;
    header_ = *header;
    offset_ = kFileHeaderBytes;
    search_bytes_ = kSearchesOfFile * source_->size();
    return true;
}

bool Reader::read_block(std::uint64_t offset, BlockHeader* header, std::string* wrong) {
    std::array<std::byte, kBlockHeaderBytes> bytes = {};
    const std::uint64_t left = source_->size() - offset;
    if (left < bytes.size()) {
        *wrong = fmt::format("{} at its end {} not a whole block: the file is truncated",
                             left == 1 ? "1 byte" : fmt::format("{} bytes", left),
                             left == 1 ? "is" : "are");
        return false;
    }
    if (!source_->read(offset, bytes)) {
        *wrong = "the header of the block cannot be read";
        return false;
    }
    const auto found = decode_block_header(bytes, header_.file_id);
    if (!found) {
        *wrong = "the header of the block is damaged";
        return false;
    }
    *header = *found;
    if (header->body_bytes > left - bytes.size()) {
        *wrong = fmt::format("the block has {} bytes, but only {} follow: the file is truncated",
                             header->body_bytes, left - bytes.size());
        return false;
    }
    body_.resize(header->body_bytes);
    if (!source_->read(offset + bytes.size(), body_)) {
        *wrong = "the block cannot be read";
        return false;
    }
    if (crc32c(body_) != header->body_crc) {
        *wrong = "the checksum of the block is wrong: its content is damaged";
        return false;
    }
    if (!is_whole(body_, header->items)) {
        *wrong = "the checksum of the block is correct, but its items are not: a faulty writer";
        return false;
    }
    return true;
}

ReadResult Reader::report(std::string what) {
    is_damaged_ = true;
    search_from_ = offset_ + 1;
    damage_ = {offset_, fmt::format("damaged at byte {}: {}", offset_, what)};
    return ReadResult::kDamage;
}

ReadResult Reader::next(Block* block) {
    if (is_damaged_) return ReadResult::kDamage;
    if (offset_ == source_->size()) return ReadResult::kEnd;
    BlockHeader header;
    std::string wrong;
    if (!read_block(offset_, &header, &wrong)) return report(wrong);
    if (header.index < least_index_ || (header.index > least_index_ && !may_skip_blocks_)) {
        report(fmt::format("found block {}; expected block {}", header.index, least_index_));
        search_from_ = offset_;  // the block itself is whole
        return ReadResult::kDamage;
    }
    may_skip_blocks_ = false;
    least_index_ = header.index + 1;
    offset_ += kBlockHeaderBytes + body_.size();
    *block = {header.index, header.items, body_};
    return ReadResult::kBlock;
}

bool Reader::skip_damage() {
    if (!is_damaged_) return false;
    std::vector<std::byte> window;
    std::uint64_t at = search_from_;
    while (source_->size() > kBlockHeaderBytes && at <= source_->size() - kBlockHeaderBytes) {
        window.resize(std::min<std::uint64_t>(kSearchBytes, source_->size() - at));
        if (!source_->read(at, window)) return false;
        const std::size_t starts = window.size() - kBlockHeaderBytes + 1;
        for (std::size_t i = 0; i < starts; ++i) {
            const auto found = decode_block_header(std::span(window).subspan(i), header_.file_id);
            BlockHeader header;
            std::string wrong;
            if (!found || found->index < least_index_) continue;
            if (!read_block(at + i, &header, &wrong)) {
                // Limits the cost: a hostile file may have the header of a large block at each
                // byte.
                if (found->body_bytes >= search_bytes_) return false;
                search_bytes_ -= found->body_bytes;
                continue;
            }
            offset_ = at + i;
            is_damaged_ = false;
            may_skip_blocks_ = true;
            return true;
        }
        at += starts;
    }
    return false;
}

}  // namespace kmes::record
