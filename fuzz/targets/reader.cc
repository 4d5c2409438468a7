// SPDX-License-Identifier: MIT
//
// See reader.h.
#include "fuzz/targets/reader.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/hostile_mapping.h"
#include "fuzz/targets/reader_restart.h"
#include "kmes/order.h"
#include "kmes/reader.h"

namespace kmes::fuzz {
namespace {

constexpr unsigned kMostCalls = 200;
// The limit of accesses of one call after the last change. It covers a walk over every event of the
// largest buffer, all delivered before. It also covers a copy of all its bytes, and the attempts of
// an attach.
constexpr std::uint64_t kMostAccesses = 16384;
constexpr std::uint64_t kBarrierLimitNs = 100'000'000, kNoBarrierLimitNs = 1'000'000;
constexpr int kNothingLeft = -ECANCELED;  // the result of a sleep after the end of the bytes

class Stage {
  public:
    explicit Stage(FuzzedBytes& bytes) : bytes_(bytes) {
        for (HostileMapping& mapping : mappings()) mapping.is_attached = false;
        kmes_order_hook_context = this;
        kmes_order_hook = [](void* context, const kmes_order_access* access) {
            static_cast<Stage*>(context)->before(*access);
        };
    }
    ~Stage() { kmes_order_hook = nullptr; }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    void play();

  private:
    static std::array<HostileMapping, 3>& mappings() {
        static std::array<HostileMapping, 3> three;
        return three;
    }

    void before(const kmes_order_access& access);
    HostileMapping* holding(const void* address, std::uint64_t bytes);
    void expect_store(const kmes_order_access& access, const HostileMapping& mapping);

    int attach(kmes_mapping* mapping);
    int identify(kmes_mapping* mapping);
    void detach(kmes_mapping* mapping);
    int sleep(const void* word, std::uint64_t timeout_ns);
    int barrier();
    const HostileMapping* sleeping_on();
    int draw_error();

    void open();
    void call();
    void next();
    void peek();
    void bulk();
    void wait();
    void wait_in_parts();
    void close();
    void run();
    void begin_call(const char* name);
    void end_call();
    void expect_result(int result, std::initializer_list<int> documented);
    void expect_view(const kmes_event_view& view, const void* from, std::uint64_t bytes);
    void delivered(const kmes_event_view& view);

    FuzzedBytes& bytes_;
    kmes_platform platform_{};
    kmes_reader_config config_{};
    kmes_reader reader_{};
    bool is_open_ = false;
    bool is_inside_ = false;  // a call of the reader is running
    const char* call_ = "";
    std::uint64_t accesses_ = 0;  // of the current call, since the last change
    std::uint64_t quiet_ = 0;     // accesses before the next change
    std::uint64_t next_inode_ = 1;
    std::uint64_t current_inode_ = 0;  // the answer of identify
    std::uint64_t session_ = 0;
    int attach_error_ = 0;  // the last one that was returned
    std::uint64_t read_pos_ = 0, read_inode_ = 0;
    bool has_sequence_ = false;
    std::uint64_t sequence_ = 0, sequence_session_ = 0;
    std::uint64_t run_left_ = 0;
    unsigned restless_ = 0;
};

HostileMapping* Stage::holding(const void* address, std::uint64_t bytes) {
    for (HostileMapping& mapping : mappings())
        if (mapping.is_attached && mapping.contains(address, bytes)) return &mapping;
    return nullptr;
}

void Stage::expect_store(const kmes_order_access& access, const HostileMapping& mapping) {
    const bool is_store = access.kind == KMES_ORDER_KIND_store_relaxed ||
                          access.kind == KMES_ORDER_KIND_store_release ||
                          access.kind == KMES_ORDER_KIND_copy_in;
    if (!is_store) return;
    expect(access.address == mapping.need_wake(), "the reader stores to what is not need_wake");
    expect(access.label != KMES_ORDER_CLEAR_WAKE || config_.sharing == KMES_EXCLUSIVE,
           "need_wake is cleared although the buffer is shared (E12)");
}

void Stage::before(const kmes_order_access& access) {
    expect(is_inside_, "an access outside of any call");
    if (++accesses_ > kMostAccesses) fail(std::string(call_) + " does not end");
    if (access.address == nullptr) return;  // a fence
    HostileMapping* mapping = holding(access.address, access.bytes);
    if (!mapping) fail(std::string(call_) + " accesses memory outside of what it has mapped");
    expect_store(access, *mapping);
    if (quiet_ > 0) {
        --quiet_;
        return;
    }
    if (bytes_.empty()) return;
    accesses_ = 0;
    const std::uint64_t drawn = bytes_.below(256);
    quiet_ = drawn % 32;
    if (drawn >= 224) {
        mapping->retire();
        if (drawn >= 240) current_inode_ = 0;  // and there is a newer buffer
    } else {
        mapping->change(bytes_);
    }
}

int Stage::draw_error() {
    constexpr int kErrors[] = {-EMFILE, -EPERM, -EINTR, -ENOMEM};
    return attach_error_ = kErrors[bytes_.below(4)];
}

bool needs_barrier(const HostileMapping& one) {
    return one.inode() % 2 == 1;
}

bool has_barrier(const HostileMapping& one) {
    return one.inode() % 4 == 3;
}

void describe(const HostileMapping& one, kmes_mapping* mapping) {
    mapping->base = one.base();
    mapping->mapped_bytes = one.mapped_bytes();
    mapping->device = 7;
    mapping->inode = one.inode();
    mapping->session = one.session;
    mapping->needs_barrier = needs_barrier(one);
}

int Stage::attach(kmes_mapping* mapping) {
    accesses_ = bytes_.empty() ? accesses_ + 64 : 0;
    const std::uint64_t drawn = bytes_.below(32);
    if (restless_ == 0 && (bytes_.empty() || drawn == 31)) return draw_error();
    // The current buffer of the reader once more.
    for (HostileMapping& one : mappings()) {
        if (one.is_attached && one.inode() == current_inode_ && drawn < 28) {
            describe(one, mapping);
            mapping->owner = nullptr;  // a second mapping of the same memory
            return 0;
        }
    }
    for (HostileMapping& one : mappings()) {
        if (one.is_attached) continue;
        current_inode_ = next_inode_++;
        one.draw(bytes_, current_inode_);
        one.is_attached = true;
        if (drawn == 30) ++session_;
        one.session = session_;
        describe(one, mapping);
        mapping->owner = &one;
        return 0;
    }
    fail("the reader holds more than two buffers");
}

int Stage::identify(kmes_mapping* mapping) {
    accesses_ = bytes_.empty() ? accesses_ + 64 : 0;
    const std::uint64_t drawn = bytes_.below(32);
    if (drawn == 31) return draw_error();
    // The producer swaps at every attach.
    if (drawn == 27) restless_ = 100;
    if (restless_ > 0 && !bytes_.empty()) --restless_;
    if (drawn >= 29 || restless_ > 0) current_inode_ = 0;  // the producer has replaced it
    mapping->device = drawn == 26 ? 8 : 7;
    mapping->inode = current_inode_;
    mapping->session = session_ + (drawn == 25);
    mapping->next_sequence = drawn < 8 ? drawn : 0;
    return 0;
}

void Stage::detach(kmes_mapping* mapping) {
    if (mapping->owner == nullptr) return;
    auto* one = static_cast<HostileMapping*>(mapping->owner);
    expect(one->is_attached, "a mapping is detached twice");
    one->is_attached = false;
}

int Stage::barrier() {
    expect(needs_barrier(*sleeping_on()), "a barrier that the producer has itself");
    return has_barrier(*sleeping_on()) ? 0 : -EPERM;
}

// The current buffer of the reader.
const HostileMapping* Stage::sleeping_on() {
    return holding(reader_.shared.futex_counter, 4);
}

int Stage::sleep(const void* word, std::uint64_t timeout_ns) {
    expect(holding(word, 4) && word == holding(word, 4)->futex_counter(),
           "the reader sleeps on what is not futex_counter");
    expect(!needs_barrier(*sleeping_on()) ||
               timeout_ns <= (has_barrier(*sleeping_on()) ? kBarrierLimitNs : kNoBarrierLimitNs),
           "a sleep after a barrier is longer than its bound");
    expect(config_.sharing == KMES_EXCLUSIVE || timeout_ns <= config_.shared_limit_ns ||
               config_.shared_limit_ns == 0,
           "a sleep on a shared buffer has no limit (E12)");
    expect(config_.sharing == KMES_EXCLUSIVE || timeout_ns != KMES_NO_TIMEOUT,
           "a sleep on a shared buffer lasts for ever (E12)");
    if (bytes_.empty()) return kNothingLeft;
    accesses_ = 0;
    constexpr int kAnswers[] = {0, -ETIMEDOUT, -EINTR, 0};
    const std::uint64_t drawn = bytes_.below(16);
    if (drawn >= 4) holding(word, 4)->change(bytes_);
    return kAnswers[drawn % 4];
}

void Stage::begin_call(const char* name) {
    call_ = name;
    accesses_ = 0;
    is_inside_ = true;
}

// 5.1.8.1: the read position in one buffer never moves back.
void Stage::end_call() {
    is_inside_ = false;
    if (reader_.mapping.inode == read_inode_ && reader_.read_pos < read_pos_)
        fail(std::string(call_) + " moves the read position back, from " +
             std::to_string(read_pos_) + " to " + std::to_string(reader_.read_pos));
    read_inode_ = reader_.mapping.inode;
    read_pos_ = reader_.read_pos;
}

void Stage::expect_result(int result, std::initializer_list<int> documented) {
    for (const int one : documented)
        if (result == one) return;
    // The error of an attach to a newer buffer, or of its check.
    if (result == attach_error_ && result != 0) return;
    if (result == -EPROTO || result == -EPROTONOSUPPORT || result == -EINVAL) return;
    if (result == -EBADMSG && reader_.stopped && config_.stop_on_corrupt) return;
    fail(std::string(call_) + " returns " + std::to_string(result) +
         ", which its comment does not name");
}

void Stage::expect_view(const kmes_event_view& view, const void* from, std::uint64_t bytes) {
    const auto* begin = static_cast<const std::uint8_t*>(from);
    expect(view.type_len > 0 && 29u + view.type_len <= view.header_size &&
               view.header_size <= view.event_size,
           "an event's lengths do not hold (E7)");
    expect_equal(view.payload_len, view.event_size - view.header_size, "payload_len");
    expect(view.event_size <= reader_.capacity, "an event is larger than the buffer");
    const auto type = static_cast<std::uint64_t>(view.type - begin);
    const auto payload = static_cast<std::uint64_t>(view.payload - begin);
    expect(view.type >= begin && type + view.type_len <= bytes, "a type is not where it may be");
    expect(view.payload >= begin && payload + view.payload_len <= bytes,
           "a payload is not where it may be");
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < view.type_len; ++i) sum += view.type[i];
    for (std::size_t i = 0; i < view.payload_len; ++i) sum += view.payload[i];
    expect(sum <= 0xFFull * (view.type_len + view.payload_len), "the bytes of a view");
}

// E21, 5.1.9. The place after the open says from where on losses are counted. A process numbers a
// new session from 1 on (E25), and sessions here never come again.
void Stage::delivered(const kmes_event_view& view) {
    if (reader_.mapping.session != sequence_session_) {
        has_sequence_ = reader_.mapping.session != 0;
        sequence_ = 0;
    }
    if (has_sequence_) {
        expect(view.sequence > sequence_, "a sequence number does not rise (E21)");
        expect_equal(view.lost_before, view.sequence - sequence_ - 1, "lost_before");
    } else {
        expect_equal(view.lost_before, 0u, "lost_before of the first event");
    }
    has_sequence_ = true;
    sequence_ = view.sequence;
    sequence_session_ = reader_.mapping.session;
}

void Stage::next() {
    const std::uint64_t room = bytes_.below(4) == 0 ? bytes_.below(256) : bytes_.below(8192);
    const auto buffer = std::make_unique<std::uint8_t[]>(room);
    const std::uint64_t before = reader_.statistics.delivered;
    kmes_event_view view{};
    begin_call("kmes_reader_next");
    const int result = kmes_reader_next(&reader_, buffer.get(), room, &view);
    end_call();
    expect_result(result, {KMES_READ_EVENT, KMES_READ_EMPTY, -EMSGSIZE});
    expect_equal(reader_.statistics.delivered - before, result == KMES_READ_EVENT ? 1u : 0u,
                 "statistics.delivered of one call");
    if (result == -EMSGSIZE) expect(view.event_size > room, "-EMSGSIZE, and it would have fitted");
    if (result != KMES_READ_EVENT) return;
    expect_view(view, buffer.get(), room);
    delivered(view);
}

void Stage::peek() {
    kmes_event_view view{};
    begin_call("kmes_reader_peek");
    const int result = kmes_reader_peek(&reader_, &view);
    end_call();
    expect_result(result, {KMES_READ_EVENT, KMES_READ_EMPTY});
    if (result == KMES_READ_EVENT) expect_view(view, reader_.shared.data, 2 * reader_.capacity);
    for (std::uint64_t checks = bytes_.below(4); checks > 0; --checks) {
        begin_call("kmes_reader_peek_is_whole");
        const bool whole = kmes_reader_peek_is_whole(&reader_);
        end_call();
        expect(result == KMES_READ_EVENT || !whole, "nothing was shown, and that was whole");
    }
    if (bytes_.below(4) == 3) return;  // not released: any other call ends it
    begin_call("kmes_reader_release");
    const bool whole = kmes_reader_release(&reader_);
    end_call();
    if (!whole) return;
    expect(result == KMES_READ_EVENT, "nothing was shown, and that was consumed");
    delivered(view);
}

void Stage::bulk() {
    const std::uint64_t room = bytes_.below(4) == 0 ? bytes_.below(256) : bytes_.below(8192);
    const auto buffer = std::make_unique<std::uint8_t[]>(room);
    kmes_bulk bulk{};
    std::uint32_t needed = 0;
    begin_call("kmes_reader_bulk");
    const bool asks = bytes_.below(4) != 0;
    reader_.config.bulk_bytes = room / 2 % 2 == 0 ? room / 4 : 0;
    const int result =
        kmes_reader_bulk(&reader_, buffer.get(), room, &bulk, asks ? &needed : nullptr);
    end_call();
    expect_result(result, {KMES_READ_EVENT, KMES_READ_EMPTY, -EMSGSIZE});
    if (result == -EMSGSIZE && asks) expect(needed > room, "-EMSGSIZE, and it would have fitted");
    if (result != KMES_READ_EVENT) return;
    std::array<kmes_event_view, 3> views{};
    // Takes events one by one, or several at a time.
    const bool one = room % 2 == 0;
    std::size_t taken = 0;
    do {
        taken = one ? kmes_bulk_next(&reader_, &bulk, views.data())
                    : kmes_bulk_take(&reader_, &bulk, views.data(), views.size());
        for (std::size_t i = 0; i < taken; ++i) {
            expect_view(views[i], buffer.get(), room);
            delivered(views[i]);
        }
    } while (taken > 0);
    expect_equal(bulk.left_bytes, 0u, "left_bytes at the end of a bulk");
}

void Stage::wait() {
    const std::uint64_t timeout = bytes_.below(4) == 0 ? KMES_NO_TIMEOUT : bytes_.below(256);
    if (timeout % 2 == 1) return wait_in_parts();
    begin_call("kmes_reader_wait");
    const int result = kmes_reader_wait(&reader_, timeout);
    end_call();
    expect_result(result, {1, -ETIMEDOUT, -EINTR, kNothingLeft});
}

// Sleeps as a set of readers does.
void Stage::wait_in_parts() {
    kmes_wait wait{};
    begin_call("kmes_reader_wait_begin");
    const int result = kmes_reader_wait_begin(&reader_, &wait);
    end_call();
    expect_result(result, {0, 1});
    if (result != 0) return;
    expect(reader_.statistics.sleeps > 0, "a sleep that is not counted");
    begin_call("kmes_reader_wait_end");
    const int slept = sleep(wait.word, wait.limit_ns);
    const bool is_replaced =
        kmes_reader_wait_end(&reader_, slept == -ETIMEDOUT ? wait.limit_ns : 0);
    end_call();
    expect_equal(is_replaced, reader_.is_replaced, "the result of kmes_reader_wait_end");
}

void Stage::close() {
    begin_call("kmes_reader_unread_bytes");
    const std::uint64_t unread = kmes_reader_unread_bytes(&reader_);
    end_call();
    expect(!reader_.stopped || unread == 0, "bytes to read for a reader that has stopped");
    kmes_reader_close(&reader_);
    is_open_ = false;
}

void Stage::run() {
    const std::uint64_t room = bytes_.below(8192);
    const auto buffer = std::make_unique<std::uint8_t[]>(room);
    run_left_ = bytes_.below(16);
    struct Context {
        Stage* stage;
        const std::uint8_t* buffer;
        std::uint64_t room;
    } context{this, buffer.get(), room};
    begin_call("kmes_reader_run");
    const int result = kmes_reader_run(
        &reader_, buffer.get(), room,
        [](void* given, const kmes_event_view* view) {
            auto* context = static_cast<Context*>(given);
            context->stage->accesses_ = 0;
            context->stage->expect_view(*view, context->buffer, context->room);
            context->stage->delivered(*view);
            return context->stage->run_left_-- == 0 ? 17 : 0;
        },
        &context);
    end_call();
    expect_result(result, {17, -EMSGSIZE, -ETIMEDOUT, kNothingLeft});
}

void Stage::open() {
    platform_.context = this;
    platform_.sleep = [](void* context, __u32* word, __u32, __u64 timeout) {
        return static_cast<Stage*>(context)->sleep(word, timeout);
    };
    platform_.barrier = [](void* context) { return static_cast<Stage*>(context)->barrier(); };
    config_.platform = &platform_;
    config_.attach_functions.context = this;
    config_.attach_functions.attach = [](void* context, std::uint16_t, kmes_mapping* mapping) {
        return static_cast<Stage*>(context)->attach(mapping);
    };
    config_.attach_functions.identify = [](void* context, std::uint16_t, kmes_mapping* mapping) {
        return static_cast<Stage*>(context)->identify(mapping);
    };
    config_.attach_functions.detach = [](void* context, kmes_mapping* mapping) {
        static_cast<Stage*>(context)->detach(mapping);
    };
    const std::uint64_t drawn = bytes_.below(64);
    config_.sharing = drawn % 4 == 3 ? KMES_SHARED : KMES_EXCLUSIVE;
    config_.shared_limit_ns = drawn / 4 % 2 * 1000;
    config_.stop_on_corrupt = drawn / 8 % 2 == 1;
    config_.spin_looks = static_cast<std::uint32_t>(drawn / 16);
    begin_call("kmes_reader_open");
    const int result = kmes_reader_open(&reader_, &config_);
    is_inside_ = false;
    if (result != 0) return expect_result(result, {});
    is_open_ = true;
    const kmes_reader_place place = kmes_reader_get_place(&reader_);
    has_sequence_ = place.is_known;
    sequence_ = place.last_sequence;
    sequence_session_ = reader_.mapping.session;
    expect_equal(place.session, sequence_session_, "the session of a place");
    read_inode_ = reader_.mapping.inode;
    read_pos_ = reader_.read_pos;
}

void Stage::call() {
    const std::uint64_t what = bytes_.below(16);
    if (what == 15) {
        close();
    } else if (what >= 13) {
        run();
    } else if (what >= 11) {
        wait();
    } else if (what >= 8) {
        bulk();
    } else if (what >= 5) {
        peek();
    } else {
        next();
    }
}

void Stage::play() {
    for (unsigned calls = 0; calls < kMostCalls && !bytes_.empty(); ++calls) {
        if (is_open_)
            call();
        else
            open();
    }
    if (is_open_) close();
    kmes_reader_close(&reader_);
    for (const HostileMapping& mapping : mappings())
        expect(!mapping.is_attached, "a closed reader holds a mapping");
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_reader(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    kmes::fuzz::Stage(bytes).play();
    kmes::fuzz::play_restarts(data, size);
    return 0;
}
