// SPDX-License-Identifier: MIT
//
// See batch_entries.h.
#include "fuzz/targets/batch_entries.h"

#include <cstring>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/targets/choices.h"
#include "kmes/tests/one_by_one.h"
#include "kmes/tests/world.h"

namespace kmes::fuzz {
namespace {

constexpr int kBatches = 4;
constexpr std::size_t kMaxEntries = 24;
constexpr std::uint64_t kLargeBytes = 40000;  // two of them exceed KMES_BATCH_PIECE_BYTES

// The memory that entries point to: letters, and bytes that are no UTF-8.
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
        // A producer that has ended refuses the entries.
        all_.platform.enter = single_.platform.enter = [](void*) { return !is_closed_; };
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

        kmes_batch_begin(&all_.cpu, &all_batch);
        kmes_batch_begin(&single_.cpu, &single_batch);
        is_closed_ = choices_.one_in(8);
        const int got = kmes_batch_emit_entries(&all_.cpu, &all_batch, &rules_, entries.data(),
                                                static_cast<__u32>(entries.size()), &emitted);
        __u32 right_emitted = 0;
        const int right =
            tests::emit_one_by_one(&single_.cpu, single_batch, rules_, entries, &right_emitted);

        is_closed_ = false;
        expect_equal(got, right, "the result of kmes_batch_emit_entries");
        expect_equal(emitted, right_emitted, "emitted");
        kmes_batch_end(&all_.cpu, &all_batch);
        kmes_batch_end(&single_.cpu, &single_batch);
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

    static inline bool is_closed_ = false;

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
