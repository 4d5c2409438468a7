// SPDX-License-Identifier: MIT
//
// See header.h. Uses no structure or constant of the core: fields are bytes at the offsets of the
// event model's table.
#include "fuzz/targets/header.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "kmes/event.h"
#include "kmes/ring.h"

namespace kmes::fuzz {
namespace {

constexpr std::size_t kFixedBytes = 29;

std::uint64_t little_endian(const std::uint8_t* bytes, std::size_t offset, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i > 0; --i) value = value << 8 | bytes[offset + i - 1];
    return value;
}

void put_little_endian(std::uint8_t* bytes, std::size_t offset, std::size_t size,
                       std::uint64_t value) {
    for (std::size_t i = 0; i < size; ++i)
        bytes[offset + i] = static_cast<std::uint8_t>(value >> 8 * i);
}

// The fields of a header by the table of the event model.
struct Fields {
    std::uint64_t event_size, header_size, timestamp, sequence, cpu, origin, type_len;

    explicit Fields(const std::uint8_t* bytes)
        : event_size(little_endian(bytes, 0, 4)),
          header_size(little_endian(bytes, 4, 4)),
          timestamp(little_endian(bytes, 8, 8)),
          sequence(little_endian(bytes, 16, 8)),
          cpu(little_endian(bytes, 24, 2)),
          origin(little_endian(bytes, 26, 1)),
          type_len(little_endian(bytes, 27, 2)) {}
};

// E7, in the order of its sentence; returns the first broken rule.
enum kmes_event_check right_check(const Fields& fields, std::uint64_t available) {
    if (available < 30) return KMES_EVENT_IS_SHORT;
    if (fields.type_len == 0) return KMES_EVENT_HAS_NO_TYPE;
    if (29 + fields.type_len > fields.header_size) return KMES_EVENT_TYPE_TOO_LONG;
    if (fields.header_size > fields.event_size) return KMES_EVENT_HEADER_TOO_LONG;
    if (fields.event_size > available) return KMES_EVENT_TOO_LONG;
    return KMES_EVENT_IS_SOUND;
}

void expect_view(const kmes_event_view& view, const Fields& fields, const std::uint8_t* start) {
    expect_equal(view.event_size, fields.event_size, "view.event_size");
    expect_equal(view.header_size, fields.header_size, "view.header_size");
    expect_equal(view.timestamp, fields.timestamp, "view.timestamp");
    expect_equal(view.sequence, fields.sequence, "view.sequence");
    expect_equal(view.cpu_id, fields.cpu, "view.cpu_id");
    expect_equal(view.origin_class, fields.origin, "view.origin_class");
    expect_equal(view.type_len, fields.type_len, "view.type_len");
    expect_equal(view.payload_len, fields.event_size - fields.header_size, "view.payload_len");
    expect_equal(view.lost_before, 0u, "view.lost_before");
    expect(view.type == start + kFixedBytes, "view.type is not byte 29 of the event");
    expect(view.payload == start + fields.header_size, "view.payload is not at header_size");
}

// Reads every byte of the view, from memory that ends where the event does.
std::uint64_t touch(const kmes_event_view& view) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < view.type_len; ++i) sum += view.type[i];
    for (std::size_t i = 0; i < view.payload_len; ++i) sum += view.payload[i];
    return sum;
}

void check_and_view(const std::uint8_t* bytes, std::uint64_t available, std::string_view rest) {
    const Fields fields(bytes);
    kmes_event_header header;
    std::memcpy(&header, bytes, sizeof(header));
    const enum kmes_event_check found = kmes_event_check(&header, available);
    expect_equal(static_cast<int>(found), static_cast<int>(right_check(fields, available)),
                 "kmes_event_check");
    const char* text = kmes_event_check_text(found);
    expect(text != nullptr && *text != '\0', "kmes_event_check_text says nothing");
    if (found != KMES_EVENT_IS_SOUND || fields.event_size > kFixedBytes + rest.size()) return;
    const auto event = std::make_unique<std::uint8_t[]>(fields.event_size);
    std::memcpy(event.get(), bytes, kFixedBytes);
    if (fields.event_size > kFixedBytes)
        std::memcpy(event.get() + kFixedBytes, rest.data(), fields.event_size - kFixedBytes);
    kmes_event_view view;
    kmes_event_view_make(&view, event.get());
    expect_view(view, fields, event.get());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < fields.header_size - kFixedBytes - fields.type_len; ++i)
        sum += event[kFixedBytes + fields.type_len + i];
    for (std::size_t i = kFixedBytes; i < fields.event_size; ++i) sum -= event[i];
    expect_equal(sum + touch(view), 0u, "the sum of extra, type and payload less all bytes");
}

void build(FuzzedBytes& bytes) {
    kmes_event_input input{};
    input.type_len = bytes.take<std::uint16_t>();
    input.payload_len = bytes.take<std::uint32_t>();
    input.header_extra_len = bytes.take<std::uint32_t>();
    input.origin_class = bytes.take<std::uint8_t>();
    const auto timestamp = bytes.take<std::uint64_t>();
    const auto sequence = bytes.take<std::uint64_t>();
    const auto cpu = bytes.take<std::uint16_t>();
    const std::uint64_t header_bytes =
        std::uint64_t{29} + input.type_len + std::uint64_t{input.header_extra_len};
    const std::uint64_t event_bytes = header_bytes + input.payload_len;
    expect_equal(kmes_event_header_bytes(&input), header_bytes, "kmes_event_header_bytes");
    expect_equal(kmes_event_bytes(&input), event_bytes, "kmes_event_bytes");
    if (event_bytes > 0xffffffff) return;
    std::array<std::uint8_t, kFixedBytes> right{};
    put_little_endian(right.data(), 0, 4, event_bytes);
    put_little_endian(right.data(), 4, 4, header_bytes);
    put_little_endian(right.data(), 8, 8, timestamp);
    put_little_endian(right.data(), 16, 8, sequence);
    put_little_endian(right.data(), 24, 2, cpu);
    right[26] = input.origin_class;
    put_little_endian(right.data(), 27, 2, input.type_len);
    // Filled before the call, so that a missing byte is noticed.
    kmes_event_header header;
    std::memset(&header, 0xA5, sizeof(header));
    kmes_event_header_build(&header, &input, timestamp, sequence, cpu);
    expect(std::memcmp(&header, right.data(), kFixedBytes) == 0,
           "kmes_event_header_build makes other bytes than the event model says");
    expect_equal(static_cast<int>(kmes_event_check(&header, event_bytes)),
                 static_cast<int>(right_check(Fields(right.data()), event_bytes)),
                 "kmes_event_check of a built header");
}

// 5.1.3, 5.1.6: the page of a fresh buffer; an invalid setup must write nothing.
void set_up(FuzzedBytes& bytes) {
    constexpr std::uint64_t kMostCapacity = 1024;
    alignas(8) static std::uint8_t memory[4096 + 2 * kMostCapacity];
    static kmes_boundary index[64];
    std::memset(memory, 0, sizeof(memory));
    kmes_buffer_setup setup{};
    const std::uint64_t drawn = bytes.below(256);
    setup.capacity_bytes =
        drawn < 128 ? std::uint64_t{1} << drawn % 64 : bytes.take<std::uint64_t>();
    setup.version = drawn % 4 == 3 ? bytes.take<std::uint32_t>() : 1;
    setup.cpu_id = bytes.take<std::uint16_t>();
    setup.generation = bytes.take<std::uint64_t>();
    setup.start_pos = bytes.take<std::uint64_t>();
    setup.mapping = memory;
    setup.index = index;
    const std::uint64_t capacity = setup.capacity_bytes;
    const bool is_power =
        capacity >= 256 && capacity <= std::uint64_t{1} << 31 && (capacity & (capacity - 1)) == 0;
    expect((kmes_index_entries(capacity) != 0) == is_power, "kmes_index_entries of this capacity");
    if (is_power && setup.version == 1 && capacity > kMostCapacity)
        return;  // not that much memory here
    kmes_buffer buffer;
    const int result = kmes_buffer_init(&buffer, &setup);
    expect_equal(result, is_power && setup.version == 1 ? 0 : -EINVAL, "kmes_buffer_init");
    std::array<std::uint8_t, 4096> right{};
    if (result == 0) {
        std::memcpy(right.data(), "KMESRING", 8);
        put_little_endian(right.data(), 8, 4, 1);
        put_little_endian(right.data(), 12, 2, setup.cpu_id);
        put_little_endian(right.data(), 16, 8, capacity);
        put_little_endian(right.data(), 24, 8, 4096);
        put_little_endian(right.data(), 32, 8, setup.generation);
        put_little_endian(right.data(), 64, 8, setup.start_pos);
        put_little_endian(right.data(), 72, 8, setup.start_pos);
    }
    expect(std::memcmp(memory, right.data(), right.size()) == 0,
           "the page of a fresh buffer is not what 5.1.6 says");
}

// RFC 3629 in another way: decodes the code point, and checks that these bytes are its shortest
// form.
bool is_right_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
        const std::uint8_t lead = byte(0);
        std::size_t length = 0;
        while (length < 8 && (lead & 0x80u >> length) != 0) ++length;
        if (length == 1 || length > 4) return false;
        if (length == 0) length = 1;
        if (text.size() - at < length) return false;
        std::uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
        for (std::size_t i = 1; i < length; ++i) {
            if ((byte(i) & 0xC0) != 0x80) return false;
            point = point << 6 | (byte(i) & 0x3Fu);
        }
        const std::size_t shortest = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        if (length != shortest || point > 0x10FFFF) return false;
        if (point >= 0xD800 && point <= 0xDFFF) return false;
        at += length;
    }
    return true;
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_header(const std::uint8_t* data, std::size_t size) {
    using namespace kmes::fuzz;
    FuzzedBytes bytes(data, size);
    std::array<std::uint8_t, kFixedBytes> header{};
    const std::string_view given = bytes.piece(kFixedBytes);
    std::memcpy(header.data(), given.data(), given.size());
    const auto available = bytes.take<std::uint64_t>();
    build(bytes);
    set_up(bytes);
    // In a separate allocation, so that a read beyond the end is noticed.
    const std::string_view rest = bytes.rest();
    const auto text = std::make_unique<char[]>(rest.size());
    if (!rest.empty()) std::memcpy(text.get(), rest.data(), rest.size());
    expect_equal(kmes_utf8_is_valid(text.get(), rest.size()), is_right_utf8(rest),
                 "kmes_utf8_is_valid");
    check_and_view(header.data(), available, rest);
    // Invalid check numbers have a text, too.
    const auto any = static_cast<enum kmes_event_check>(header[0] % 8);
    expect(kmes_event_check_text(any) != nullptr, "kmes_event_check_text is NULL");
    return 0;
}
