// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Random scripts of everything that a producer does, with reads in three forms, compared with a
 * plain model of deques. After each operation the whole metadata page of every buffer and all
 * surviving bytes are compared. The model is written from 5.1 and the errata; it shares nothing
 * with the core.
 */
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>

#include "kmes/tests/bytes.h"
#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

constexpr std::uint64_t kFixed = KMES_EVENT_FIXED_BYTES;
constexpr std::uint64_t kLeast = KMES_EVENT_MIN_BYTES;

void put(Bytes& to, std::size_t offset, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) to[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/* An event with a type of one byte, whose payload repeats the low byte of its number. */
Bytes event_bytes(std::uint64_t size, std::uint64_t timestamp, std::uint64_t sequence) {
    Bytes event(size, static_cast<std::uint8_t>(sequence));
    std::fill_n(event.begin(), kFixed, std::uint8_t{0});  // cpu_id, origin_class and GUIDs are 0
    put(event, 0, size, 4);
    put(event, 4, kFixed + 1, 4);
    put(event, 8, timestamp, 8);
    put(event, 16, sequence, 8);
    put(event, kFixed - 2, 1, 2);  // type_len
    event[kFixed] = 't';
    return event;
}

struct ModelEvent {
    std::uint64_t sequence;
    Bytes bytes;
};

/* 5.1.6 and 5.1.7 with deques. */
struct ModelBuffer {
    std::uint64_t capacity;
    std::uint64_t tail, write;
    std::uint64_t generation;
    std::uint32_t counter = 0;
    std::deque<ModelEvent> events; /* those at the end of a batch are pending */
    std::size_t pending = 0;
    std::uint64_t published() const {
        std::uint64_t bytes = 0;
        for (std::size_t i = events.size() - pending; i < events.size(); i++)
            bytes += events[i].bytes.size();
        return write - bytes;
    }

    Bytes page() const {
        Bytes page(KMES_METADATA_BYTES, 0);
        const char magic[] = "KMESRING";
        for (int i = 0; i < 8; i++) page[i] = static_cast<std::uint8_t>(magic[i]);
        put(page, 8, 1, 4);
        put(page, 16, capacity, 8);
        put(page, 24, KMES_METADATA_BYTES, 8);
        put(page, 32, generation, 8);
        put(page, 64, published(), 8);
        put(page, 72, tail, 8);
        put(page, 128, counter, 4);
        return page;
    }

    Bytes survivors() const {
        Bytes all;
        for (const ModelEvent& event : events)
            all.insert(all.end(), event.bytes.begin(), event.bytes.end());
        return all;
    }

    /* Step 6; E8: publishes the pending events before the tail would reach the published ones. */
    void make_room(std::uint64_t bytes) {
        std::uint64_t new_tail = tail;
        std::size_t gone = 0;
        while (write + bytes - new_tail > capacity) new_tail += events[gone++].bytes.size();
        if (gone && new_tail >= published()) pending = 0;
        events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(gone));
        tail = new_tail;
    }

    void write_event(const ModelEvent& event, bool is_batch) {
        make_room(event.bytes.size());
        events.push_back(event);
        write += event.bytes.size();
        pending = is_batch ? pending + 1 : 0;
    }
};

struct Model {
    std::vector<ModelBuffer> buffers;
    std::uint64_t sequence = 0;
    ModelBuffer& now() { return buffers.back(); }

    void emit(std::uint64_t size, std::uint64_t timestamp, bool is_batch) {
        sequence++;
        if (size > now().capacity / 2) return;
        now().write_event({sequence, event_bytes(size, timestamp, sequence)}, is_batch);
    }

    /* E10, E11, E3, E15. */
    void swap(std::uint64_t capacity, enum kmes_swap_positions positions, std::uint64_t shift) {
        ModelBuffer& old_buffer = now();
        old_buffer.pending = 0;
        ModelBuffer fresh = old_buffer;
        fresh.capacity = capacity;
        while (fresh.write - fresh.tail > capacity) {
            fresh.tail += fresh.events.front().bytes.size();
            fresh.events.pop_front();
        }
        const std::uint64_t delta = positions == KMES_SWAP_ZERO    ? 0 - fresh.tail
                                    : positions == KMES_SWAP_SHIFT ? shift
                                                                   : 0;
        fresh.tail += delta;
        fresh.write += delta;
        fresh.counter = 0;
        fresh.generation = ++old_buffer.generation;
        old_buffer.counter++;
        buffers.push_back(fresh);
    }
};

/* Returns where two tables of bytes begin to differ; -1: nowhere. (Whole pages would flood a
 * report.) */
std::ptrdiff_t first_difference(const Bytes& a, const Bytes& b) {
    if (a.size() != b.size()) return static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    if (a == b) return -1;  // at once, where mismatch takes a minute under a sanitizer
    return std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
}

/* The world, the model, and a reader that reads in one of three ways. */
class Pair {
  public:
    Pair(std::uint64_t capacity, std::uint64_t start)
        : world({.capacity_bytes = capacity, .start_pos = start}), reader(world) {
        model.buffers.push_back({capacity, start, start, 1, 0, {}, 0});
        RC_ASSERT(reader.open() == 0);
    }

    void compare() {
        RC_ASSERT(world.buffers.size() == model.buffers.size());
        for (std::size_t i = 0; i < model.buffers.size(); i++) {
            RC_ASSERT(first_difference(world.buffers[i]->page(), model.buffers[i].page()) == -1);
            RC_ASSERT(first_difference(world.buffers[i]->survivors(),
                                       model.buffers[i].survivors()) == -1);
        }
        RC_ASSERT(world.cpu.sequence == model.sequence);
        RC_ASSERT(world.cpu.statistics.corrupt == 0u);
    }

    void emit() {
        const std::uint64_t half = model.now().capacity / 2;
        const auto size = *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(kLeast, kLeast + 6),
                                          rc::gen::inRange<std::uint64_t>(kLeast, half + 1),
                                          rc::gen::inRange<std::uint64_t>(half - 2, half + 3));
        world.now_ns++;
        model.emit(size, world.now_ns, false);
        world.emit_sized(size);
    }

    void batch() {
        kmes_batch batch;
        const std::uint64_t timestamp = ++world.now_ns;
        kmes_batch_begin(&world.cpu, &batch);
        const auto count = *rc::gen::inRange(0, 8);
        for (int i = 0; i < count; i++) {
            const auto size =
                *rc::gen::inRange<std::uint64_t>(kLeast, model.now().capacity / 2 + 2);
            model.emit(size, timestamp, true);
            world.batch_emit_sized(batch, size);
            compare();
            if (*rc::gen::inRange(0, 10) == 0) emit();  // E16: publishes all of it
        }
        kmes_batch_end(&world.cpu, &batch);
        model.now().pending = 0;
    }

    void swap() {
        const auto capacity = 256ull << *rc::gen::inRange(0, 4);
        const auto positions = *rc::gen::element(KMES_SWAP_KEEP, KMES_SWAP_ZERO, KMES_SWAP_SHIFT);
        /* Anywhere, but not over 2^64. */
        const std::uint64_t room = (~0ull >> 1) - 1000000;
        const std::uint64_t shift =
            model.now().write < room ? *rc::gen::inRange<std::uint64_t>(0, room / 4) : 0;
        model.swap(capacity, positions, shift);
        RC_ASSERT(world.swap(capacity, positions, shift) == 0);
    }

    void nudge() {
        if (model.buffers.size() < 2) return;
        const auto which = *rc::gen::inRange<std::size_t>(0, model.buffers.size() - 1);
        model.buffers[which].generation++;
        model.buffers[which].counter++;
        RC_ASSERT(kmes_buffer_nudge(&world.cpu, &world.buffers[which]->buffer) == 0);
    }

    /* A late reader must get everything that survives in its own buffer, and then everything
     * newer in the current one. */
    void read() {
        Sequences owed;
        std::uint64_t last = last_delivered_;
        auto take = [&](const ModelBuffer& buffer, std::uint64_t from_pos) {
            std::uint64_t pos = buffer.tail;
            for (const ModelEvent& event : buffer.events) {
                if (pos >= from_pos && event.sequence > last) owed.push_back(last = event.sequence);
                pos += event.bytes.size();
            }
        };
        take(model.buffers[reading_], 0);
        if (reading_ + 1 != model.buffers.size()) take(model.now(), 0);
        reading_ = model.buffers.size() - 1;
        last_delivered_ = last;
        RC_ASSERT(read_in_some_form() == owed);
    }

    World world;
    Reader reader;
    Model model;

  private:
    Sequences read_in_some_form() {
        const auto form = *rc::gen::inRange(0, 3);
        if (form == 0) return reader.drain();
        Sequences sequences;
        kmes_event_view view;
        if (form == 1) {
            while (kmes_reader_peek(&reader.reader, &view) == KMES_READ_EVENT) {
                RC_ASSERT(kmes_reader_release(&reader.reader));
                sequences.push_back(view.sequence);
            }
            return sequences;
        }
        const auto room = *rc::gen::inRange<std::uint64_t>(2048, sizeof(reader.room));
        kmes_bulk bulk;
        while (kmes_reader_bulk(&reader.reader, reader.room, room, &bulk, nullptr) ==
               KMES_READ_EVENT) {
            while (kmes_bulk_next(&reader.reader, &bulk, &view)) {
                RC_ASSERT(is_self_describing(Delivered::from(view)));
                sequences.push_back(view.sequence);
            }
        }
        return sequences;
    }

    std::size_t reading_ = 0;
    std::uint64_t last_delivered_ = 0;
};

RC_GTEST_PROP(Core, IsWhatAPlainModelOfTheTextIs, ()) {
    const auto capacity = 256ull << *rc::gen::inRange(0, 4);
    const auto start = *rc::gen::oneOf(
        rc::gen::inRange<std::uint64_t>(0, 5000), rc::gen::arbitrary<std::uint64_t>(),
        rc::gen::inRange<std::uint64_t>((1ull << 32) - 3000, (1ull << 32) + 10),
        rc::gen::inRange<std::uint64_t>((1ull << 63) - 3000, (1ull << 63) + 10),
        rc::gen::inRange<std::uint64_t>(~0ull - 900000, ~0ull - 800000));
    RC_PRE(start < ~0ull - 800000);
    Pair pair(capacity, start);
    const auto steps = *rc::gen::inRange(1, 80);
    for (int i = 0; i < steps; i++) {
        switch (*rc::gen::weightedElement<int>({{12, 0}, {4, 1}, {1, 2}, {1, 3}, {3, 4}})) {
            case 0:
                pair.emit();
                break;
            case 1:
                pair.batch();
                break;
            case 2:
                pair.swap();
                break;
            case 3:
                pair.nudge();
                break;
            default:
                pair.read();
                break;
        }
        pair.compare();
    }
    pair.read();
}

}  // namespace
}  // namespace kmes::tests
