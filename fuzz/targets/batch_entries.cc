// SPDX-License-Identifier: MIT
//
// See batch_entries.h.
#include "fuzz/targets/batch_entries.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/targets/choices.h"
#include "kmes/tests/world.h"

namespace kmes::fuzz {
namespace {

constexpr int kBatches = 4;
constexpr std::size_t kMaxEntries = 24;
constexpr std::uint64_t kLargeBytes = 40000;  // two of them are more than KMES_BATCH_PIECE_BYTES
constexpr int kOpenAtOnce = 64;

// What entries point into: letters, and bytes that are no UTF-8.
const std::vector<char>& letters() {
    static const std::vector<char> all(1 << 17, 't');
    return all;
}

class Play {
  public:
    Play(const std::uint8_t* data, std::size_t size)
        : choices_(data, size),
          has_large_(choices_.one_in(8)),
          capacity_(has_large_ ? 1 << 18 : std::uint64_t{256} << choices_.below(6)),
          all_({.capacity_bytes = capacity_}),
          single_({.capacity_bytes = capacity_}) {
        rules_.max_event_bytes = has_large_ ? 1 << 17 : 64 + choices_.below(256) * 8;
        rules_.origin_class = static_cast<__u8>(choices_.below(256));
        // The producer ends after so many sections of the list: the rest of it is turned away.
        all_.platform.enter = [](void*) { return sections_left_-- > 0; };
    }

    void run() {
        for (int i = 0; i < kBatches; i++) {
            play_batch();
            compare();
        }
    }

  private:
    void play_batch() {
        const std::vector<kmes_batch_entry> entries = pick_entries();
        kmes_batch all_batch, single_batch;
        __u32 emitted = 0xABCDEF;

        sections_left_ = kOpenAtOnce;
        kmes_batch_begin(&all_.cpu, &all_batch);
        kmes_batch_begin(&single_.cpu, &single_batch);
        sections_left_ = choices_.one_in(8) ? 0 : kOpenAtOnce;
        const bool is_closed = sections_left_ == 0;
        const int got = kmes_batch_emit_entries(&all_.cpu, &all_batch, &rules_, entries.data(),
                                                static_cast<__u32>(entries.size()), &emitted);
        sections_left_ = kOpenAtOnce;

        __u32 right_emitted = 0;
        const int right = one_by_one(single_batch, entries, is_closed, &right_emitted);

        expect_equal(got, right, "the result of kmes_batch_emit_entries");
        expect_equal(emitted, right_emitted, "emitted");
        kmes_batch_end(&all_.cpu, &all_batch);
        kmes_batch_end(&single_.cpu, &single_batch);
    }

    int one_by_one(const kmes_batch& batch, const std::vector<kmes_batch_entry>& entries,
                   bool is_closed, __u32* emitted) {
        for (const kmes_batch_entry& entry : entries) {
            kmes_event_input input{};

            if (entry.type_len == 0 || entry.type_len > 65535) return -EINVAL;
            if (!kmes_utf8_check(entry.type, entry.type_len)) return -EINVAL;
            if (entry.payload_len > rules_.max_event_bytes) return -ENOSPC;
            input.type = entry.type;
            input.type_len = static_cast<__u16>(entry.type_len);
            input.payload = entry.payload;
            input.payload_len = static_cast<__u32>(entry.payload_len);
            input.origin_class = rules_.origin_class;
            if (kmes_event_bytes(&input) > rules_.max_event_bytes) return -ENOSPC;
            if (is_closed) return -EBUSY;
            const int error = kmes_batch_emit_call(&single_.cpu, &batch, &input);

            if (error) return error;
            ++*emitted;
        }
        return 0;
    }

    std::vector<kmes_batch_entry> pick_entries() {
        std::vector<kmes_batch_entry> entries(1 + choices_.below(kMaxEntries));

        for (kmes_batch_entry& entry : entries) entry = pick_entry();
        return entries;
    }

    kmes_batch_entry pick_entry() {
        static const char kNoUtf8[] = "type\xC0\xAF with more than a word";
        static const char kUtf8[] = "t\xC3\xBCpe \xE2\x82\xAC \xF0\x9F\x90\xA2";
        kmes_batch_entry entry{letters().data(), letters().data(), 1 + choices_.below(70),
                               choices_.below(140)};

        switch (choices_.below(64)) {
            case 0:
                entry.type_len = choices_.one_in(2) ? 0 : 65536 + choices_.below(3);
                break;
            case 1:
                entry.type = kNoUtf8;
                entry.type_len = 6 + choices_.below(sizeof(kNoUtf8) - 6);
                break;
            case 2:
                entry.payload_len = choices_.one_in(2) ? ~std::uint64_t{0} - choices_.below(256)
                                                       : (std::uint64_t{1} << 32);
                break;
            case 3:
                entry.payload_len =
                    rules_.max_event_bytes - 29 - entry.type_len + choices_.below(2);
                if (entry.payload_len > letters().size()) entry.payload_len = 0;
                break;
            case 4:
                entry.type = kUtf8;
                entry.type_len = sizeof(kUtf8) - 1;
                break;
            default:
                if (has_large_) entry.payload_len = kLargeBytes;
        }
        return entry;
    }

    void compare() {
        tests::settle_mirror();
        const tests::TestBuffer &all = all_.first(), &single = single_.first();

        expect(all.page() == single.page(), "the metadata pages differ");
        expect(all.survivors() == single.survivors(), "the bytes in the rings differ");
        expect_equal(all_.cpu.sequence, single_.cpu.sequence, "the sequence number");
        expect_equal(all_.cpu.inside, 0u, "inside");
        expect(std::memcmp(&all_.cpu.statistics, &single_.cpu.statistics,
                           sizeof(kmes_statistics)) == 0,
               "the statistics differ");
    }

    static inline int sections_left_ = 0;

    Choices choices_;
    const bool has_large_;
    const std::uint64_t capacity_;
    tests::World all_, single_;
    kmes_batch_rules rules_{};
};

}  // namespace

void play_entries(const std::uint8_t* data, std::size_t size) {
    Play(data, size).run();
}

}  // namespace kmes::fuzz
