// SPDX-License-Identifier: MIT
//
// See batch.h. The core acts first, and every fetch is recorded; then the model reads the log.
#include "fuzz/targets/batch.h"

#include <memory>
#include <string>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/batch_caller.h"
#include "fuzz/targets/batch_entries.h"
#include "fuzz/targets/batch_model.h"
#include "fuzz/targets/batch_pinned.h"
#include "kmes/call.h"
#include "kmes/tests/world.h"

namespace kmes::fuzz {
namespace {

constexpr int kMaxOperations = 24;
constexpr std::uint64_t kMaxSwaps = 12;
constexpr std::uint64_t kFirstNs = 1000;

const void* at(std::uint64_t address) {
    return reinterpret_cast<const void*>(address);
}

std::uint64_t capacity_of(std::uint8_t byte) {
    return std::uint64_t{256} << (byte & 7);
}

// The beginning of the input.
struct Start {
    std::uint64_t capacity, start_pos, max_event_bytes;
    std::uint8_t origin_class, need_wake;

    explicit Start(FuzzedBytes* bytes) {
        capacity = capacity_of(bytes->take<std::uint8_t>());
        start_pos = bytes->take<std::uint8_t>() * std::uint64_t{0x100000033};
        max_event_bytes = bytes->below(8193);
        origin_class = bytes->take<std::uint8_t>();
        need_wake = bytes->take<std::uint8_t>();
    }

    std::vector<std::uint64_t> limits() const {
        return {capacity / 2, max_event_bytes, 128, std::uint64_t{1} << 32};
    }
};

class Play {
  public:
    explicit Play(FuzzedBytes* bytes)
        : bytes_(*bytes), start_(&bytes_), caller_(&bytes_, start_.limits()) {
        tests::WorldSetup setup;
        setup.capacity_bytes = start_.capacity;
        setup.start_pos = start_.start_pos;
        setup.cpu_id = 3;
        world_ = std::make_unique<tests::World>(setup);
        playing = this;
        world_->platform.enter = enter;
        world_->platform.exit = exit;
        world_->now_ns = kFirstNs;
        world_->cpu.has_light_fence = (start_.origin_class & 1) != 0;
        staging_ = std::make_unique<__u8[]>(start_.max_event_bytes);
        call_.cpu = &world_->cpu;
        call_.staging = staging_.get();
        call_.max_event_bytes = start_.max_event_bytes;
        call_.fetch = fetch;
        call_.context = this;
        call_.origin_class = start_.origin_class;
        prepare_model();
        happen({Happening::kAskWake, start_.need_wake});
        model_.happen({Happening::kAskWake, start_.need_wake});
    }
    ~Play() { playing = nullptr; }
    Play(const Play&) = delete;
    Play& operator=(const Play&) = delete;

    void run() {
        for (int i = 0; i < kMaxOperations && !bytes_.empty(); ++i) {
            operate();
            compare();
        }
    }

  private:
    void prepare_model() {
        model_.capacity = start_.capacity;
        model_.max_event_bytes = start_.max_event_bytes;
        model_.now_ns = kFirstNs;
        model_.cpu_id = 3;
        model_.origin_class = start_.origin_class;
        model_.tail = model_.published = model_.frontier = start_.start_pos;
    }

    // -- The platform and the caller's memory, as the core sees them --

    static bool enter(void*) {
        if (playing->is_closed_) return false;
        ++playing->depth_;
        return true;
    }
    static void exit(void*) { --playing->depth_; }

    static int fetch(void* context, void* to, const void* from, __u64 count) {
        return static_cast<Play*>(context)->fetch_one(static_cast<std::uint8_t*>(to),
                                                      reinterpret_cast<std::uint64_t>(from), count);
    }

    int fetch_one(std::uint8_t* to, std::uint64_t address, std::uint64_t count) {
        const std::uint8_t choice = bytes_.take<std::uint8_t>();
        Fetch done;

        expect(count != 0, "a fetch of nothing");
        expect_equal(depth_, is_nested_ ? 1 : 0,
                     "sections that are open while something is fetched");
        done.address = address;
        done.count = count;
        done.is_fault = choice >> 4 == 0x8;
        for (std::uint64_t i = 0; i < count && !done.is_fault; ++i)
            done.is_fault = !caller_.read(address + i, to + i);
        if (done.is_fault)
            std::memset(to, 0xFA, count);
        else
            done.bytes.assign(to, to + count);
        if (choice >> 4 == 0x9) caller_.change(address, count);
        done.meanwhile = choose_happening(choice);
        happen(done.meanwhile);
        log_.push_back(std::move(done));
        return log_.back().is_fault ? -EFAULT : 0;
    }

    Happening choose_happening(std::uint8_t choice) {
        const std::uint64_t low = choice & 15;
        const bool is_free = !is_closed_ && !is_nested_;

        switch (choice >> 4) {
            case 0xA:
                if (!is_free || swaps_ == kMaxSwaps) return {};
                return {Happening::kResize, capacity_of(choice)};
            case 0xB:
                return is_free ? Happening{Happening::kEmission, 30 + low * 9} : Happening{};
            case 0xC:
                return is_nested_ ? Happening{} : Happening{Happening::kClose, low & 1};
            case 0xD:
                return {Happening::kAskWake, low};
            case 0xE:
                return {Happening::kTick, low};
            default:
                return {};
        }
    }

    void happen(const Happening& what) {
        switch (what.kind) {
            case Happening::kNothing:
                return;
            case Happening::kResize:
                ++swaps_;
                expect_equal(world_->swap(what.value), 0, "the result of a resize");
                return;
            case Happening::kEmission:
                emit_in_kernel(what.value);
                return;
            case Happening::kClose:
                is_closed_ = what.value != 0;
                return;
            case Happening::kAskWake:
                *world_->cpu.buffer->shared.need_wake = static_cast<std::uint8_t>(what.value);
                return;
            case Happening::kTick:
                world_->now_ns += what.value;
                return;
        }
    }

    void emit_in_kernel(std::uint64_t event_bytes) {
        const Model::Bytes payload = Model::bytes_of_size(event_bytes - 30);
        const bool is_over = event_bytes > world_->cpu.buffer->capacity / 2;
        const int error =
            world_->emit("k", std::string(payload.begin(), payload.end()), KMES_ORIGIN_KMES);

        expect_equal(error, is_over ? -ENOSPC : 0, "the result of an in-kernel emission");
    }

    // -- Operations --

    void operate() {
        switch (bytes_.below(6)) {
            case 0:
                return call_emit();
            case 1:
            case 2:
                return call_batch();
            case 3:
                return do_both(choose_happening(0xA0 | bytes_.take<std::uint8_t>()));
            case 4:
                if (is_closed_) return do_both({Happening::kClose, 0});
                return do_both({Happening::kEmission, 30 + bytes_.below(start_.capacity)});
            default:
                return call_inside();
        }
    }

    void do_both(const Happening& what) {
        happen(what);
        model_.happen(what);
    }

    void call_emit() {
        const Descriptor what = caller_.pick(&bytes_);
        const int got = kmes_call_emit(&call_, at(what.type), what.type_len, at(what.payload),
                                       what.payload_len);

        expect_equal(got, model_.emit(what, &log_), "the result of kmes_call_emit");
        expect(log_.empty(), "kmes_call_emit fetched what it need not have");
    }

    std::uint32_t pick_count() {
        const std::uint8_t byte = bytes_.take<std::uint8_t>();

        if (byte == 0xFF) return bytes_.take<std::uint32_t>();
        return byte < 0xF0 ? byte : byte - 0xF0 + 250u;
    }

    void call_batch() {
        const std::uint64_t entries = caller_.pick_entries(&bytes_);
        const std::uint32_t count = pick_count();
        std::uint32_t emitted = 0xABCDEF, right_emitted;
        const int got = kmes_call_emit_batch(
            &call_, static_cast<const kmes_emit_entry*>(at(entries)), count, &emitted);

        expect_equal(got, model_.emit_batch(entries, count, &log_, &right_emitted),
                     "the result of kmes_call_emit_batch");
        expect_equal(emitted, right_emitted, "emitted");
        expect(log_.empty(), "kmes_call_emit_batch fetched what it need not have");
    }

    // A call made when the writer reads the time: in its critical section (E16).
    void call_inside() {
        if (is_closed_) return;
        world_->on_clock = [this] {
            world_->on_clock = nullptr;
            is_nested_ = model_.is_inside = true;
            if (bytes_.below(2) == 0)
                call_emit();
            else
                call_batch();
            is_nested_ = model_.is_inside = false;
        };
        happen({Happening::kEmission, 40});
        world_->on_clock = nullptr;
        model_.happen({Happening::kEmission, 40});
    }

    // -- The state of both --

    void compare() {
        const tests::TestBuffer& buffer = world_->current();
        const kmes_statistics& counted = world_->cpu.statistics;

        expect_equal(world_->cpu.inside, 0u, "inside");
        expect_equal(depth_, 0, "sections that are open");
        expect_equal(world_->cpu.sequence, model_.last_sequence, "the sequence number");
        expect_equal(buffer.shared_write_pos(), model_.published, "write_pos");
        expect_equal(buffer.shared_tail_pos(), model_.tail, "tail_pos");
        expect_equal(buffer.buffer.frontier, model_.frontier, "the frontier");
        expect_equal(*buffer.buffer.shared.generation, model_.generation, "generation");
        expect_equal(*buffer.buffer.shared.futex_counter, model_.futex_counter, "futex_counter");
        expect_equal(*buffer.buffer.shared.need_wake, model_.need_wake, "need_wake");
        expect(buffer.survivors() == model_.survivors(), "the bytes in the ring are others");
        expect_equal(counted.events, model_.emitted, "events");
        expect_equal(counted.bytes, model_.emitted_bytes, "bytes");
        expect_equal(counted.dropped, model_.dropped, "dropped");
        expect_equal(counted.dropped_nested, 0u, "dropped_nested");
        expect_equal(counted.overwritten, model_.overwritten, "overwritten");
        expect_equal(counted.wakes, model_.wakes, "wakes");
        expect_equal(counted.corrupt, 0u, "corrupt");
        expect_equal(counted.swaps, model_.swaps, "swaps");
        expect_equal(counted.left_behind, model_.left_behind, "left_behind");
        // Each wake comes from the writer, or from a replaced buffer.
        expect_equal(world_->wakes.size(), model_.wakes + model_.swaps, "wakes that were queued");
    }

    static inline Play* playing = nullptr;

    FuzzedBytes& bytes_;
    const Start start_;
    Caller caller_;
    std::unique_ptr<tests::World> world_;
    std::unique_ptr<__u8[]> staging_;
    kmes_call call_{};
    Model model_;
    std::deque<Fetch> log_;
    std::uint64_t swaps_ = 0;
    int depth_ = 0;
    bool is_closed_ = false;
    bool is_nested_ = false;
};

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_batch(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    kmes::fuzz::Play(&bytes).run();
    kmes::fuzz::play_pinned(data, size);
    kmes::fuzz::play_entries(data, size);
    return 0;
}
