// SPDX-License-Identifier: MIT
//
// See batch_pinned.h.
#include "fuzz/targets/batch_pinned.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/targets/batch_caller.h"
#include "fuzz/targets/choices.h"
#include "kmes/call.h"
#include "kmes/tests/world.h"

namespace kmes::fuzz {
namespace {

constexpr int kOperations = 16;
constexpr int kMaxSwaps = 12;
constexpr std::uint64_t kCapacity = 4096;

class Play {
  public:
    Play(const std::uint8_t* data, std::size_t size)
        : choices_(data, size),
          caller_(choices_.bytes(), {kCapacity / 2, 1024, 128}),
          world_({.capacity_bytes = kCapacity}) {
        call_.max_event_bytes = 1024 + 64 * choices_.below(32);
        call_.staging_bytes = call_.max_event_bytes * (1 + choices_.below(3));
        staging_.resize(call_.staging_bytes / sizeof(std::uint64_t));
        call_.staging = reinterpret_cast<__u8*>(staging_.data());
        call_.fetch = [](void* context, void* to, const void* from, __u64 bytes) {
            return static_cast<Play*>(context)->fetch(static_cast<std::uint8_t*>(to),
                                                      reinterpret_cast<std::uint64_t>(from), bytes);
        };
        call_.pin = [](void* context) { return static_cast<Play*>(context)->pin(); };
        call_.unpin = [](void* context) { static_cast<Play*>(context)->unpin(); };
        call_.context = this;
    }

    void run() {
        for (int i = 0; i < kOperations; i++) {
            const std::uint64_t before = world_.cpu.statistics.events;
            const std::uint64_t kind = choices_.below(3);
            const std::uint64_t written = kind == 0   ? emit()
                                          : kind == 1 ? wild_batch()
                                                      : tame_batch();

            expect(!is_pinned_, "a call ends pinned");
            expect_equal(world_.cpu.inside, 0u, "inside");
            expect_equal(world_.cpu.statistics.events - before, written, "events of a call");
        }
    }

  private:
    struct kmes_cpu* pin() {
        expect(!is_pinned_, "a thread is pinned twice");
        if (choices_.one_in(16)) return nullptr;
        if (swaps_ < kMaxSwaps && choices_.one_in(8)) {
            ++swaps_;
            world_.swap(std::uint64_t{256} << choices_.below(5));
        }
        is_pinned_ = true;
        return &world_.cpu;
    }

    void unpin() {
        expect(is_pinned_, "a thread is unpinned that is not pinned");
        is_pinned_ = false;
    }

    int fetch(std::uint8_t* to, std::uint64_t address, std::uint64_t bytes) {
        expect(!is_pinned_, "something is fetched while the thread is pinned");
        expect_equal(world_.cpu.inside, 0u, "inside while something is fetched");
        if (is_tame_) {
            std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
            return 0;
        }
        for (std::uint64_t i = 0; i < bytes; i++) {
            if (!caller_.read(address + i, to + i)) return -EFAULT;
        }
        return choices_.one_in(64) ? -EFAULT : 0;
    }

    static void expect_error(int error) {
        expect(error == 0 || error == -EINVAL || error == -ENOSPC || error == -EBUSY ||
                   error == -EFAULT,
               "an error that is not in the list of kmes/call.h");
    }

    std::uint64_t emit() {
        const Descriptor what = caller_.pick(choices_.bytes());
        const int error =
            kmes_call_emit(&call_, reinterpret_cast<const void*>(what.type), what.type_len,
                           reinterpret_cast<const void*>(what.payload), what.payload_len);

        expect_error(error);
        return error ? 0 : 1;
    }

    // A batch of valid entries, more than the staging memory takes at once.
    std::uint64_t tame_batch() {
        static constexpr char kBytes[200] = "a payload";
        std::vector<kmes_emit_entry> entries(1 + choices_.below(100));

        for (kmes_emit_entry& entry : entries) {
            entry.type = "t";
            entry.type_len = 1;
            entry.payload = kBytes;
            entry.payload_len = static_cast<__u32>(choices_.below(sizeof(kBytes)));
        }
        is_tame_ = true;
        const std::uint64_t written = batch(reinterpret_cast<std::uint64_t>(entries.data()),
                                            static_cast<std::uint32_t>(entries.size()));
        is_tame_ = false;
        return written;
    }

    std::uint64_t wild_batch() {
        const std::uint64_t entries = caller_.pick_entries(choices_.bytes());

        return batch(entries, static_cast<std::uint32_t>(choices_.below(256) + choices_.below(3)));
    }

    std::uint64_t batch(std::uint64_t entries, std::uint32_t count) {
        std::uint32_t emitted = ~0u;
        const int error = kmes_call_emit_batch(
            &call_, reinterpret_cast<const kmes_emit_entry*>(entries), count, &emitted);

        expect_error(error);
        if (count == 0 || count > KMES_BATCH_MAX_ENTRIES) expect_equal(error, -EINVAL, "the error");
        expect(error ? emitted < count || count == 0 : emitted == count, "emitted");
        return emitted;
    }

    Choices choices_;
    Caller caller_;
    tests::World world_;
    std::vector<std::uint64_t> staging_;
    kmes_call call_{};
    bool is_pinned_ = false;
    bool is_tame_ = false;  // the addresses of this call are real ones of this process
    int swaps_ = 0;
};

}  // namespace

void play_pinned(const std::uint8_t* data, std::size_t size) {
    Play(data, size).run();
}

}  // namespace kmes::fuzz
