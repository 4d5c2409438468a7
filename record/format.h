// SPDX-License-Identifier: MIT
// The bytes of a record file (docs/record-format.md): its header, the headers of its blocks, and
// the items in a block. All bytes that this code decodes are hostile.
#ifndef KMES_RECORD_FORMAT_H_
#define KMES_RECORD_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kmes/event.h"

namespace kmes::record {

// The writer writes version 2. The reader accepts version 1, which has no sessions, and 2.
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kOldestVersion = 1;
inline constexpr std::size_t kFileHeaderBytes = 64;
inline constexpr std::size_t kBlockHeaderBytes = 40;
inline constexpr std::size_t kItemHeaderBytes = 8;
inline constexpr std::size_t kLossBytes = 24;
inline constexpr std::size_t kSessionBytes = 16;
// The largest event is half of the largest ring. A block has room for it and for a loss before it.
inline constexpr std::uint32_t kMaxEventBytes = 128u << 20;
inline constexpr std::uint32_t kMaxBodyBytes = kMaxEventBytes + 4096;

enum class Clock : std::uint32_t { kRealtime = 1 };

// The content of the file header.
struct FileHeader {
    std::uint32_t cpus = 0;            // 1 to 65536
    std::uint64_t capacity_bytes = 0;  // of each ring at the start of the recording; 0: unknown
    std::uint64_t session = 0;         // the first producer (E25); 0: there is only one
    std::uint64_t started_ns = 0;      // CLOCK_REALTIME
    std::uint64_t file_id = 0;         // random, and the same in all blocks of the file
    std::uint32_t file_number = 1;     // number in a rotation, from 1
    Clock clock = Clock::kRealtime;    // of the events

    bool operator==(const FileHeader&) const = default;
};

struct BlockHeader {
    std::uint64_t file_id = 0;
    std::uint64_t index = 0;  // from 0
    std::uint32_t body_bytes = 0;
    std::uint32_t items = 0;
    std::uint32_t body_crc = 0;

    bool operator==(const BlockHeader&) const = default;
};

enum class ItemKind : std::uint32_t {
    kEvent = 1,    // a whole event, its KMES header unchanged
    kLoss = 2,     // events that were overwritten before they were recorded
    kSession = 3,  // another producer follows
};

// `count` events of a CPU are missing here. The first of them has the number `first_sequence`.
struct Loss {
    std::uint16_t cpu = 0;
    std::uint64_t first_sequence = 0;
    std::uint64_t count = 0;

    bool operator==(const Loss&) const = default;
};

// The later items of a CPU belong to another producer, whose sequence numbers restart.
struct Session {
    std::uint16_t cpu = 0;
    std::uint64_t session = 0;  // as in the file header

    bool operator==(const Session&) const = default;
};

// An item of a block. `event` points into the block.
struct Item {
    ItemKind kind = ItemKind::kEvent;
    kmes_event_view event = {};                // kEvent
    std::span<const std::byte> event_bytes{};  // kEvent: header and payload
    Loss loss{};                               // kLoss
    Session session{};                         // kSession
};

std::array<std::byte, kFileHeaderBytes> encode(const FileHeader& header);
std::array<std::byte, kBlockHeaderBytes> encode(const BlockHeader& header);
std::array<std::byte, kItemHeaderBytes> encode_item(ItemKind kind, std::uint32_t content_bytes);
std::array<std::byte, kLossBytes> encode(const Loss& loss);
std::array<std::byte, kSessionBytes> encode(const Session& session);

// If it returns nothing, *wrong describes the error.
std::optional<FileHeader> decode_file_header(std::span<const std::byte> bytes, std::string* wrong);
// Returns nothing if these bytes are not the header of a block of the file `file_id`.
std::optional<BlockHeader> decode_block_header(std::span<const std::byte> bytes,
                                               std::uint64_t file_id);

// True if `bytes` are one whole event. *view then points to it.
bool is_event(std::span<const std::byte> bytes, kmes_event_view* view);

// Returns the items of a body in sequence. Skips items of unknown kinds.
class ItemCursor {
  public:
    explicit ItemCursor(std::span<const std::byte> body) : left_(body) {}

    // Reads the next item. Returns false at the end, and if the rest is not an item (is_broken).
    bool next(Item* item);
    bool is_broken() const { return is_broken_; }
    // Returns the number of items so far, including those of unknown kinds.
    std::uint32_t passed() const { return passed_; }

  private:
    std::span<const std::byte> left_;
    std::uint32_t passed_ = 0;
    bool is_broken_ = false;
};

}  // namespace kmes::record

#endif  // KMES_RECORD_FORMAT_H_
