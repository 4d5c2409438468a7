// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core in one form of the layout (KMES_LAYOUT): its numbers are those of docs/layouts.md, and
 * events go from its producer to its reader. Built once for each form.
 */
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kmes/reader.h"
#include "kmes/ring.h"

namespace {

constexpr __u64 kCapacity = 4096;
constexpr char kLetter = "?ABCD"[KMES_LAYOUT];

// Returns the numbers of the document's row for this build's form, in the order of its columns.
std::vector<__u64> row_of_document() {
    std::ifstream document("docs/layouts.md");
    std::string line;
    while (std::getline(document, line)) {
        std::istringstream cells(line);
        std::string letter;
        if (!(cells >> letter >> letter) || letter != std::string(1, kLetter)) continue;
        std::vector<__u64> numbers;
        std::string bar;
        for (__u64 number = 0; cells >> bar >> number;) numbers.push_back(number);
        return numbers;
    }
    return {};
}

TEST(Layouts, AreThoseOfTheDocument) {
    const std::vector<__u64> core = {kmes_data_offset_bytes(KMES_VERSION_1),
                                     offsetof(kmes_metadata_v1, need_wake),
                                     sizeof(kmes_event_header),
                                     offsetof(kmes_event_header, type_len),
                                     KMES_EVENT_MIN_BYTES,
                                     kmes_mapping_bytes(KMES_VERSION_1, 65536)};
    EXPECT_EQ(core, row_of_document()) << "form " << kLetter;
}

// One CPU on plain memory. Nothing here crosses the end of the ring, so one copy of the data is
// enough.
class Ring {
  public:
    Ring()
        : memory_(kmes_mapping_bytes(KMES_VERSION_1, kCapacity) / sizeof(__u64)),
          index_(kmes_index_entries(kCapacity)) {
        platform_.context = this;
        platform_.clock_ns = [](void*) -> __u64 { return 1'700'000'000; };
        platform_.queue_wake = [](void* context, kmes_buffer*) {
            ++static_cast<Ring*>(context)->wakes_;
        };
        kmes_buffer_setup setup{};
        setup.mapping = memory_.data();
        setup.index = index_.data();
        setup.capacity_bytes = kCapacity;
        setup.generation = 1;
        setup.version = KMES_VERSION_1;
        setup.cpu_id = 5;
        EXPECT_EQ(kmes_buffer_init(&buffer_, &setup), 0);
        kmes_cpu_init(&cpu_, 5, &buffer_, &platform_, 0);
    }

    int emit(const std::string& type, const std::string& payload) {
        kmes_event_input input{};
        input.type = type.data();
        input.type_len = static_cast<__u16>(type.size());
        input.payload = payload.data();
        input.payload_len = static_cast<__u32>(payload.size());
        input.origin_class = KMES_ORIGIN_KACS;
        return kmes_cpu_emit(&cpu_, &input);
    }

    __u8* base() { return reinterpret_cast<__u8*>(memory_.data()); }
    __u64 number_at(__u64 offset, unsigned bytes) {
        __u64 number = 0;
        std::memcpy(&number, base() + offset, bytes);
        return number;
    }
    unsigned wakes() const { return wakes_; }

    kmes_reader_config reader_config() {
        kmes_reader_config config{};
        config.platform = &platform_;
        config.cpu_id = 5;
        config.attach_functions.context = this;
        config.attach_functions.attach = [](void* context, __u16, kmes_mapping* mapping) {
            *mapping = kmes_mapping{};
            mapping->base = static_cast<Ring*>(context)->base();
            mapping->mapped_bytes = kmes_mapping_bytes(KMES_VERSION_1, kCapacity);
            return 0;
        };
        config.attach_functions.identify = config.attach_functions.attach;
        config.attach_functions.detach = [](void*, kmes_mapping*) {};
        return config;
    }

  private:
    std::vector<__u64> memory_;
    std::vector<kmes_boundary> index_;
    kmes_platform platform_{};
    kmes_buffer buffer_{};
    kmes_cpu cpu_{};
    unsigned wakes_ = 0;
};

TEST(Layouts, HaveTheFieldsOfAnEventWhereTheDocumentSays) {
    const std::vector<__u64> row = row_of_document();
    ASSERT_EQ(row.size(), 6u);
    const __u64 data = row[0], header = row[2], type_len = row[3];
    const std::string type = "some.type", payload = "payload";
    Ring ring;
    ASSERT_EQ(ring.emit(type, payload), 0);
    EXPECT_EQ(ring.number_at(24, 8), data);  // data_offset
    EXPECT_EQ(ring.number_at(data, 4), header + type.size() + payload.size());
    EXPECT_EQ(ring.number_at(data + 4, 4), header + type.size());
    EXPECT_EQ(ring.number_at(data + 8, 8), 1'700'000'000u);
    EXPECT_EQ(ring.number_at(data + 16, 8), 1u);
    EXPECT_EQ(ring.number_at(data + 24, 2), 5u);
    EXPECT_EQ(ring.number_at(data + 26, 1), KMES_ORIGIN_KACS);
    for (__u64 at = data + 27; at < data + type_len; ++at) EXPECT_EQ(ring.number_at(at, 1), 0u);
    EXPECT_EQ(ring.number_at(data + type_len, 2), type.size());
    EXPECT_EQ(std::memcmp(ring.base() + data + header, "some.typepayload", 16), 0);
}

TEST(Layouts, WakeByTheFlagOfTheDocument) {
    const std::vector<__u64> row = row_of_document();
    ASSERT_EQ(row.size(), 6u);
    Ring ring;
    ASSERT_EQ(ring.emit("t", ""), 0);
    EXPECT_EQ(ring.wakes(), 0u);
    ring.base()[row[1]] = 1;
    ASSERT_EQ(ring.emit("t", ""), 0);
    EXPECT_EQ(ring.wakes(), 1u);
    EXPECT_EQ(ring.number_at(128, 4), 1u);  // futex_counter
}

TEST(Layouts, CarryEventsFromProducerToReader) {
    Ring ring;
    auto reader = std::make_unique<kmes_reader>();
    const kmes_reader_config config = ring.reader_config();
    ASSERT_EQ(kmes_reader_open(reader.get(), &config), 0);
    std::vector<char> room(kCapacity);
    for (unsigned i = 1; i <= 5; ++i) {
        const std::string type(i, 't'), payload(100 * i, static_cast<char>('a' + i));
        ASSERT_EQ(ring.emit(type, payload), 0);
        kmes_event_view view{};
        ASSERT_EQ(kmes_reader_next(reader.get(), room.data(), room.size(), &view), KMES_READ_EVENT);
        EXPECT_EQ(view.sequence, i);
        EXPECT_EQ(view.cpu_id, 5u);
        EXPECT_EQ(view.origin_class, KMES_ORIGIN_KACS);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.type), view.type_len), type);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.payload), view.payload_len),
                  payload);
    }
    kmes_event_view view{};
    EXPECT_EQ(kmes_reader_next(reader.get(), room.data(), room.size(), &view), KMES_READ_EMPTY);
    kmes_reader_close(reader.get());
}

}  // namespace
