// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The consumers that the explorer runs (consumers.h).
 */
#include "kmes/tests/consumers.h"

#include "kmes/event.h"
#include "kmes/reader.h"

namespace kmes::tests {
namespace {

constexpr std::size_t kRoomBytes = 4096;

class Reference : public Consumer {
  public:
    int open(Run& run) override {
        const kmes_reader_config config = run.world.reader_config();
        return kmes_reader_open(&reader_, &config);
    }
    ~Reference() override { kmes_reader_close(&reader_); }
    int wait(Run&) override { return kmes_reader_wait(&reader_, KMES_NO_TIMEOUT); }

  protected:
    kmes_reader reader_{};
    std::uint8_t room_[kRoomBytes];
};

class ReferenceNext : public Reference {
    void drain(Run& run) override {
        kmes_event_view view;
        int found;
        while ((found = kmes_reader_next(&reader_, room_, sizeof(room_), &view)) > 0)
            run.deliver(Delivered::from(view));
        if (found < 0) run.fault("next: " + std::to_string(found));
        if (reader_.statistics.corrupt) run.fault("took a torn event for a corrupt one");
    }
};

class ReferencePeek : public Reference {
    void drain(Run& run) override {
        kmes_event_view view;
        int found;
        while ((found = kmes_reader_peek(&reader_, &view)) > 0) {
            const Delivered event = Delivered::from(view);
            if (kmes_reader_release(&reader_)) run.deliver(event);
        }
        if (found < 0) run.fault("peek: " + std::to_string(found));
    }
};

class ReferenceBulk : public Reference {
    void drain(Run& run) override {
        kmes_bulk bulk;
        kmes_event_view view;
        int found;
        while ((found = kmes_reader_bulk(&reader_, room_, 300_b, &bulk, nullptr)) > 0) {
            while (kmes_bulk_next(&reader_, &bulk, &view)) run.deliver(Delivered::from(view));
        }
        if (found < 0) run.fault("bulk: " + std::to_string(found));
    }
};

/* 5.1.8 as a separate small program that uses only the ordered accesses. */
class LiteralReader : public Consumer {
  public:
    LiteralReader(Run& run, const Literal& points)
        : points_(points), functions_(run.world.reader_config().attach_functions) {}

    int open(Run& run) override { return attach(run); }
    void drain(Run& run) override;
    int wait(Run& run) override;

  private:
    int attach(Run& run);
    std::uint64_t generation() {
        return points_.e9 ? generation_
                          : kmes_load_acquire_u64(shared_.generation, KMES_ORDER_LOAD_GENERATION);
    }
    std::uint64_t write_pos(enum kmes_order_label label = KMES_ORDER_LOAD_WRITE_POS) {
        return kmes_load_acquire_u64(shared_.write_pos, label);
    }
    std::uint64_t tail_pos(enum kmes_order_label label = KMES_ORDER_LOAD_TAIL) {
        return kmes_load_acquire_u64(shared_.tail_pos, label);
    }
    bool is_changed() {
        const std::uint64_t now = generation();
        return points_.e15 ? now == generation_ + 1 : now != generation_;
    }
    bool follow(Run& run);
    void read_event(Run& run, std::uint64_t write_pos);
    bool copy_event(Run& run, std::uint64_t write_pos, kmes_event_header* header);
    void deliver(Run& run, const kmes_event_header& header);

    Literal points_;
    kmes_attach_functions functions_;
    kmes_mapping mapping_{};
    kmes_fields shared_{};
    std::uint64_t capacity_ = 0;
    std::uint64_t read_pos_ = 0;
    std::uint64_t generation_ = 0;
    std::uint64_t last_sequence_ = 0;
    std::uint8_t room_[kRoomBytes];
};

int LiteralReader::attach(Run& run) {
    kmes_mapping now{};
    do {
        if (run.is_endless()) return -EAGAIN;
        functions_.attach(functions_.context, 0, &mapping_);
        kmes_bind_fields(&shared_, mapping_.base, KMES_VERSION_1);
        capacity_ = kmes_load_relaxed_u64(shared_.capacity, KMES_ORDER_STATIC_FIELD);
        generation_ = kmes_load_acquire_u64(shared_.generation, KMES_ORDER_LOAD_GENERATION);
        functions_.identify(functions_.context, 0, &now);
    } while (!points_.e19 && now.inode != mapping_.inode);
    if (!points_.e11 || read_pos_ == 0) read_pos_ = tail_pos();
    return 0;
}

/* 5.1.8.3, at the end of a drain cycle. Returns true if the consumer must check again. */
bool LiteralReader::follow(Run& run) {
    if (!is_changed()) return false;
    if (!points_.e24 && !points_.e10 && read_pos_ < write_pos(KMES_ORDER_FROZEN_WRITE_POS))
        return true;
    if (points_.e21) last_sequence_ = 0;
    attach(run);
    return true;
}

/* 5.1.8.1 step 4. Returns false if the bytes cannot be an event. */
bool LiteralReader::copy_event(Run& run, std::uint64_t write_pos, kmes_event_header* header) {
    kmes_copy_out(header, shared_.data, capacity_, read_pos_, sizeof(*header),
                  KMES_ORDER_READ_DATA);
    if (points_.e7) {
        if (header->event_size > capacity_ || header->header_size > header->event_size ||
            header->event_size == 0) {
            run.fault("used a length that was overwritten during the copy: " +
                      std::to_string(header->event_size));
            return false;
        }
    } else if (kmes_event_check(header, write_pos - read_pos_) != KMES_EVENT_IS_SOUND) {
        return false;
    }
    if (!points_.e6)
        kmes_copy_out(room_, shared_.data, capacity_, read_pos_, header->event_size,
                      KMES_ORDER_READ_DATA);
    return true;
}

void LiteralReader::deliver(Run& run, const kmes_event_header& header) {
    kmes_event_view view;
    if (points_.e6)
        kmes_copy_out(room_, shared_.data, capacity_, read_pos_, header.event_size,
                      KMES_ORDER_READ_DATA);
    if (header.sequence <= last_sequence_ && last_sequence_ != 0) return;
    kmes_event_view_from(&view, &header, room_);
    run.deliver(Delivered::from(view));
    last_sequence_ = header.sequence;
}

/* 5.1.8.1 steps 2 to 6: reads one event, or moves read_pos. */
void LiteralReader::read_event(Run& run, std::uint64_t write_pos) {
    for (;;) {
        if (run.is_endless() || run.is_over()) return;
        const std::uint64_t saved_tail = tail_pos();
        if (read_pos_ < saved_tail) {
            read_pos_ = saved_tail;
            if (!points_.e20) return;
        }
        if (!points_.e20 && !points_.e26 && write_pos - read_pos_ > capacity_) {
            read_pos_ = write_pos; /* corrupt content */
            return;
        }
        kmes_event_header header{};
        std::uint64_t tail_now = 0;
        if (points_.e4) tail_now = tail_pos(KMES_ORDER_RECHECK_TAIL);
        const bool sound =
            copy_event(run, points_.e20 ? read_pos_ + capacity_ : write_pos, &header);
        kmes_fence_acquire(KMES_ORDER_DATA_FENCE);
        if (!points_.e4) tail_now = tail_pos(KMES_ORDER_RECHECK_TAIL);
        if (tail_now > read_pos_) {
            if (points_.e20) continue;
            read_pos_ = tail_now;
            return;
        }
        if (!sound) {
            run.fault("content that was not overwritten is no event");
            return;
        }
        deliver(run, header);
        read_pos_ += header.event_size;
        return;
    }
}

void LiteralReader::drain(Run& run) {
    for (;;) {
        if (run.is_endless() || run.is_over()) return;
        if (points_.e10 && follow(run)) continue;
        const std::uint64_t write = write_pos();
        const bool empty = points_.e20 ? read_pos_ == write : read_pos_ >= write;
        if (!empty)
            read_event(run, write);
        else if (!follow(run))
            return;
    }
}

/* 5.1.8.2. */
int LiteralReader::wait(Run& run) {
    std::uint32_t counter = 0;
    if (!points_.e2)
        counter = kmes_load_acquire_u32(shared_.futex_counter, KMES_ORDER_SLEEP_COUNTER);
    if (!points_.e1) {
        kmes_store_release_u8(shared_.need_wake, 1, KMES_ORDER_ASK_WAKE);
        kmes_fence_full(KMES_ORDER_SLEEP_FENCE);
    }
    const bool is_new =
        read_pos_ < write_pos(KMES_ORDER_SLEEP_WRITE_POS) || (!points_.e3 && is_changed());
    if (points_.e1) kmes_store_release_u8(shared_.need_wake, 1, KMES_ORDER_ASK_WAKE);
    int result = 0;
    if (!is_new) {
        if (points_.e2)
            counter = kmes_load_acquire_u32(shared_.futex_counter, KMES_ORDER_SLEEP_COUNTER);
        result = run.sleep(shared_.futex_counter, counter);
    }
    kmes_store_relaxed_u8(shared_.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
    return result;
}

}  // namespace

ConsumerFactory reference_next() {
    return [](Run&) { return std::make_unique<ReferenceNext>(); };
}

ConsumerFactory reference_peek() {
    return [](Run&) { return std::make_unique<ReferencePeek>(); };
}

ConsumerFactory reference_bulk() {
    return [](Run&) { return std::make_unique<ReferenceBulk>(); };
}

ConsumerFactory literal(const Literal& points) {
    return [points](Run& run) { return std::make_unique<LiteralReader>(run, points); };
}

}  // namespace kmes::tests
