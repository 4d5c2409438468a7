// SPDX-License-Identifier: MIT
//
// See batch_model.h.
#include "fuzz/targets/batch_model.h"

#include <cerrno>
#include <string>

#include "fuzz/fail.h"

namespace kmes::fuzz {
namespace {

void put(Model::Bytes* bytes, std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes->push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

std::uint64_t number(const Model::Bytes& bytes, std::size_t at, int count) {
    std::uint64_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | bytes[at + static_cast<std::size_t>(i)];
    return value;
}

// RFC 3629 by its table of sequences ("UTF8-octets", section 4), row by row.
bool is_utf8(const Model::Bytes& text) {
    struct Row {
        int first_from, first_to, second_from, second_to, length;
    };
    static constexpr Row kRows[] = {
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    std::size_t at = 0;

    const auto fits = [&](const Row& row) {
        if (text[at] < row.first_from || text[at] > row.first_to) return false;
        if (text.size() - at < static_cast<std::size_t>(row.length)) return false;
        if (row.length > 1 && (text[at + 1] < row.second_from || text[at + 1] > row.second_to))
            return false;
        for (int i = 2; i < row.length; ++i)
            if ((text[at + static_cast<std::size_t>(i)] & 0xC0) != 0x80) return false;
        return true;
    };
    while (at < text.size()) {
        int length = 0;
        for (const Row& row : kRows)
            if (fits(row)) length = row.length;
        if (length == 0) return false;
        at += static_cast<std::size_t>(length);
    }
    return true;
}

}  // namespace

Model::Bytes Model::bytes_of_size(std::uint64_t payload_bytes) {
    Bytes bytes;
    for (std::uint64_t i = 0; i < payload_bytes; ++i)
        bytes.push_back(static_cast<std::uint8_t>(i * 7 + payload_bytes));
    return bytes;
}

// Takes the next fetch from the log, which must be this one.
bool Model::fetch(std::deque<Fetch>* log, std::uint64_t address, std::uint64_t count, Bytes* got) {
    expect(!log->empty(), "something was not fetched that had to be");
    const Fetch done = std::move(log->front());
    log->pop_front();
    expect_equal(done.address, address, "the address of a fetch");
    expect_equal(done.count, count, "the length of a fetch");
    happen(done.meanwhile);
    *got = done.bytes;
    return !done.is_fault;
}

// 5.1.7 step 6, with E8: tail_pos never reaches write_pos while something is unpublished.
void Model::make_room(std::uint64_t event_bytes) {
    std::uint64_t new_tail = tail;
    std::uint64_t passed = 0;

    while (frontier + event_bytes - new_tail > capacity) {
        new_tail += events.front().size();
        events.pop_front();
        ++passed;
    }
    if (passed == 0) return;
    if (frontier != published && new_tail >= published) {
        published = frontier;
        wake_owed_ = true;
    }
    tail = new_tail;
    overwritten += passed;
}

// Event header: the table of event-model.md.
void Model::append(const Bytes& type, const Bytes& payload, std::uint8_t origin,
                   std::uint64_t time) {
    const std::uint64_t event_bytes = 29 + type.size() + payload.size();
    Bytes event;

    make_room(event_bytes);
    put(&event, event_bytes, 4);
    put(&event, 29 + type.size(), 4);
    put(&event, time, 8);
    put(&event, ++last_sequence, 8);
    put(&event, cpu_id, 2);
    put(&event, origin, 1);
    put(&event, type.size(), 2);
    event.insert(event.end(), type.begin(), type.end());
    event.insert(event.end(), payload.begin(), payload.end());
    events.push_back(std::move(event));
    frontier += event_bytes;
    ++emitted;
    emitted_bytes += event_bytes;
}

// 5.1.7 steps 8 and 9.
void Model::publish_and_wake() {
    published = frontier;
    wake_owed_ = false;
    if (need_wake == 0) return;
    ++futex_counter;
    ++wakes;
}

void Model::end_batch() {
    if (is_closed || is_inside) return;
    if (frontier != published || wake_owed_) publish_and_wake();
}

void Model::emit_in_kernel(std::uint64_t event_bytes) {
    if (event_bytes > capacity / 2) {
        ++last_sequence;
        ++dropped;
        return;
    }
    append({'k'}, bytes_of_size(event_bytes - 30), 1, now_ns);
    publish_and_wake();
}

// E10: the longest suffix of whole events that fits. E3: the old buffer's consumers are woken, and
// the new buffer has none yet.
void Model::resize(std::uint64_t new_capacity) {
    while (frontier - tail > new_capacity) {
        tail += events.front().size();
        events.pop_front();
        ++left_behind;
    }
    capacity = new_capacity;
    published = frontier;
    wake_owed_ = false;
    need_wake = 0;
    futex_counter = 0;
    ++generation;
    ++swaps;
}

void Model::happen(const Happening& what) {
    switch (what.kind) {
        case Happening::kNothing:
            return;
        case Happening::kResize:
            return resize(what.value);
        case Happening::kEmission:
            return emit_in_kernel(what.value);
        case Happening::kClose:
            is_closed = what.value != 0;
            return;
        case Happening::kAskWake:
            need_wake = static_cast<std::uint8_t>(what.value);
            return;
        case Happening::kTick:
            now_ns += what.value;
            return;
    }
}

// event-model.md, kmes_emit, in the order of kmes/call.h. `timestamp`: of the batch, or NULL.
int Model::one_event(const Descriptor& what, std::deque<Fetch>* log,
                     const std::uint64_t* timestamp) {
    const std::uint64_t event_bytes = std::uint64_t{29} + what.type_len + what.payload_len;
    Bytes type, payload;

    if (what.type_len == 0) return -EINVAL;
    if (event_bytes > max_event_bytes) return -ENOSPC;
    if (is_closed || is_inside) return -EBUSY;
    if (event_bytes > capacity / 2) return -ENOSPC;
    if (!fetch(log, what.type, what.type_len, &type)) return -EFAULT;
    if (!is_utf8(type)) return -EINVAL;
    if (what.payload_len != 0 && !fetch(log, what.payload, what.payload_len, &payload))
        return -EFAULT;
    if (is_closed || is_inside) return -EBUSY;
    if (event_bytes > capacity / 2) return -ENOSPC;
    append(type, payload, origin_class, timestamp ? *timestamp : now_ns);
    if (!timestamp) publish_and_wake();
    return 0;
}

int Model::emit(const Descriptor& what, std::deque<Fetch>* log) {
    return one_event(what, log, nullptr);
}

int Model::emit_batch(std::uint64_t entries, std::uint32_t count, std::deque<Fetch>* log,
                      std::uint32_t* emitted_entries) {
    const std::uint64_t timestamp = now_ns;
    int error = 0;

    *emitted_entries = 0;
    if (count < 1 || count > 256) return -EINVAL;
    while (*emitted_entries < count) {
        Bytes bytes;
        Descriptor what;

        if (!fetch(log, entries + 32 * std::uint64_t{*emitted_entries}, 32, &bytes)) {
            error = -EFAULT;
            break;
        }
        what.type = number(bytes, 0, 8);
        what.type_len = static_cast<std::uint16_t>(number(bytes, 8, 2));
        what.payload = number(bytes, 16, 8);
        what.payload_len = static_cast<std::uint32_t>(number(bytes, 24, 4));
        error = one_event(what, log, &timestamp);
        if (error) break;
        ++*emitted_entries;
    }
    end_batch();
    return error;
}

Model::Bytes Model::survivors() const {
    Bytes all;
    for (const Bytes& event : events) all.insert(all.end(), event.begin(), event.end());
    return all;
}

}  // namespace kmes::fuzz
