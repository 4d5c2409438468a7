// SPDX-License-Identifier: MIT
//
// The simulated consumer and its producer. Test only.
#include "conformance/oracle/simulation.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace kmes::conformance::simulation {
namespace {

std::uint64_t little_endian(const std::string& bytes, std::size_t offset, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i > 0; --i) {
        value = value << 8 | static_cast<std::uint8_t>(bytes[offset + i - 1]);
    }
    return value;
}

constexpr std::size_t kHeaderBytes = 29;

}  // namespace

World::World(std::vector<std::uint32_t> choices, Fault fault)
    : tape_(std::move(choices)), fault_(fault), history_(choose_settings(tape_)) {
    writes_losses_ = fault == Fault::wrong_loss || !tape_.one_in(3);
    for (std::uint32_t cpu = 0; cpu < history_.cpus(); ++cpu) consumers_.emplace_back(*this, cpu);
    sync_memory();
}

HistorySettings World::choose_settings(Tape& tape) {
    HistorySettings settings;
    settings.cpus = 1 + tape.choose(2);
    settings.capacity_bytes = std::uint64_t{256} << tape.choose(3);
    constexpr std::uint64_t kStarts[] = {0, 1, 250, 0xfffffff0, 0x7ffffffffffffff0};
    for (std::uint32_t i = 0; i < 2; ++i) {
        settings.start_positions.push_back(kStarts[tape.choose(5)]);
    }
    return settings;
}

void World::run() {
    while (!tape_.empty()) {
        const std::uint32_t cpu = tape_.choose(history_.cpus());
        const std::uint32_t action = tape_.choose(8);
        if (action < 3) {
            for (std::uint32_t i = tape_.choose(6) + 1; i > 0; --i) produce(cpu);
        } else if (action == 7) {
            run_to_sleep(cpu);
        } else {
            for (std::uint32_t i = tape_.choose(6) + 1; i > 0; --i) consumers_[cpu].step();
        }
    }
    finishing_ = true;
    for (std::uint32_t cpu = 0; cpu < history_.cpus(); ++cpu) {
        sync_report();
        if (history_.batch_pending(cpu)) history_.batch_end(cpu);
        history_.emit(cpu, {std::string(kEndEventType), "", 0, 1, ""});
        sync_memory();
        consumers_[cpu].wake();
        for (int steps = 0; !consumers_[cpu].ended(); ++steps) {
            if (steps > 100000) throw std::logic_error("the simulated consumer never ends");
            consumers_[cpu].wake();
            consumers_[cpu].step();
        }
        consumers_[cpu].flush();
    }
}

std::vector<Finding> World::findings() const {
    RecordParser parser;
    parser.feed(report_);
    parser.finish();
    JudgeOptions options;
    options.exited_with_zero = true;
    return judge(history_, parser, options);
}

bool World::broken() const {
    if (fault_ != Fault::no_generation) return committed_;
    return std::any_of(consumers_.begin(), consumers_.end(),
                       [](const Consumer& consumer) { return consumer.buffers_slept_on() > 1; });
}

void World::produce(std::uint32_t cpu) {
    sync_report();
    switch (tape_.choose(16)) {
        case 0:
        case 1:
            toggle_batch(cpu);
            break;
        case 2:
            swap(cpu);
            break;
        case 3: {
            const std::vector<BufferIndex>& buffers = history_.buffers_of(cpu);
            const BufferIndex buffer =
                buffers[tape_.choose(static_cast<std::uint32_t>(buffers.size()))];
            if (history_.buffer(buffer).retired) history_.nudge(buffer);
            break;
        }
        default:
            emit(cpu);
            break;
    }
    sync_memory();
    consumers_[cpu].wake();
}

void World::emit(std::uint32_t cpu) {
    const EventSpec spec = choose_event(history_.buffer(history_.current_buffer(cpu)).capacity);
    if (history_.batch_pending(cpu) && !tape_.one_in(8)) {
        history_.batch_add(cpu, spec);
    } else {
        history_.emit(cpu, spec);
    }
}

EventSpec World::choose_event(std::uint64_t capacity) {
    EventSpec spec;
    const std::uint32_t kind = tape_.choose(16);
    spec.type.assign(1 + tape_.choose(3), static_cast<char>('a' + tape_.choose(26)));
    spec.origin = static_cast<std::uint8_t>(tape_.choose(4));
    spec.timestamp = tape_.choose(1000);
    if (tape_.one_in(8)) spec.extra_header = "later";
    const std::uint64_t header = header_bytes(spec);
    std::uint64_t payload = tape_.choose(40);
    if (kind == 0) payload = capacity / 2 + 1 - header;  // dropped
    if (kind == 1) payload = capacity / 2 - header;
    if (kind == 2) payload = tape_.choose(static_cast<std::uint32_t>(capacity / 2 - header));
    const char first = static_cast<char>(tape_.choose(256));
    for (std::uint64_t i = 0; i < payload; ++i) {
        spec.payload.push_back(static_cast<char>(first + static_cast<char>(i)));
    }
    return spec;
}

void World::swap(std::uint32_t cpu) {
    constexpr PositionRule kRules[] = {PositionRule::keep, PositionRule::tail_at,
                                       PositionRule::shift};
    SwapSpec spec;
    spec.capacity_bytes = std::uint64_t{128} << tape_.choose(4);
    spec.rule = kRules[tape_.choose(3)];
    spec.position = tape_.choose(1000);
    history_.swap(cpu, spec);
}

void World::toggle_batch(std::uint32_t cpu) {
    if (history_.batch_pending(cpu)) {
        history_.batch_end(cpu);
    } else {
        history_.batch_begin(cpu);
    }
}

// A size that is too small excuses more, and must never blame. If only the true size can show a
// fault, the true size is used.
void World::sync_report() {
    std::uint64_t size = report_.size();
    if (fault_ != Fault::early_from_batch && tape_.one_in(4)) {
        size -= std::min<std::uint64_t>(size, tape_.choose(200));
    }
    history_.set_report_bytes(size);
}

void World::sync_memory() {
    memory_.resize(history_.buffer_count());
    placements_written_.resize(history_.buffer_count(), 0);
    for (BufferIndex index = 0; index < history_.buffer_count(); ++index) {
        const Buffer& buffer = history_.buffer(index);
        memory_[index].resize(buffer.capacity);
        for (std::size_t& i = placements_written_[index]; i < buffer.placements.size(); ++i) {
            const Placement& placement = buffer.placements[i];
            const std::string bytes = history_.expected_bytes(index, placement);
            for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
                memory_[index][(placement.position + byte) & (buffer.capacity - 1)] =
                    static_cast<std::uint8_t>(bytes[byte]);
            }
        }
    }
}

bool World::commit(Fault fault) {
    if (fault != fault_ || committed_) return false;
    if (!finishing_ && !tape_.one_in(4)) return false;
    committed_ = true;
    return true;
}

void World::run_to_sleep(std::uint32_t cpu) {
    Consumer& consumer = consumers_[cpu];
    for (int steps = 0; !consumer.is_asleep() && !consumer.ended(); ++steps) {
        if (steps > 100000) throw std::logic_error("the simulated consumer never sleeps");
        consumer.step();
    }
}

std::uint8_t World::byte_at(BufferIndex buffer, std::uint64_t position) const {
    return memory_[buffer][position & (memory_[buffer].size() - 1)];
}

void Consumer::step() {
    if (ended_ || is_asleep_) return;
    if (!attached_) {
        attach();
    } else {
        drain_one();
    }
    if (world_.tape_.one_in(4)) flush();
}

void Consumer::flush() {
    world_.report_ += unwritten_;
    unwritten_.clear();
}

// A swap may come between the attach and the load of `generation` (E19). A consumer that attaches
// again and finds another buffer knows that this one was dead; it may drain it, or leave it unread.
void Consumer::attach() {
    buffer_ = world_.history_.current_buffer(cpu_);
    world_.history_.note_attached(buffer_);
    attached_ = true;
    has_loaded_ = false;
    if (world_.tape_.one_in(4)) world_.produce(cpu_);
    is_asleep_ = false;
    remembered_generation_ = world_.history_.buffer(buffer_).generation();
    if (world_.tape_.one_in(2) && world_.fault_ != Fault::no_generation) {
        unwritten_ +=
            "G " + std::to_string(cpu_) + " " + std::to_string(remembered_generation_) + "\n";
    }
    if (world_.history_.current_buffer(cpu_) == buffer_) return;
    --remembered_generation_;  // so that its current value looks changed
    if (world_.tape_.one_in(2)) switch_buffer();
}

void Consumer::switch_buffer() {
    release_held_back();
    buffer_ = world_.history_.current_buffer(cpu_);
    world_.history_.note_attached(buffer_);
    has_loaded_ = false;
    remembered_generation_ = world_.history_.buffer(buffer_).generation();
    if (world_.fault_ == Fault::no_generation) return;
    unwritten_ += "G " + std::to_string(cpu_) + " " + std::to_string(remembered_generation_) + "\n";
}

// 5.1.8.1 with E6, E7, E20, E21.
void Consumer::drain_one() {
    const Buffer& buffer = world_.history_.buffer(buffer_);
    if (!has_loaded_) read_pos_ = buffer.tail_pos;
    has_loaded_ = true;
    if (world_.commit(Fault::wrong_position)) return break_position();
    if (world_.fault_ == Fault::early_from_batch) break_batch();
    const std::uint64_t write_pos = world_.history_.buffer(buffer_).write_pos;
    if (read_pos_ >= write_pos) return find_nothing();
    if (read_pos_ < world_.history_.buffer(buffer_).tail_pos) {
        read_pos_ = world_.history_.buffer(buffer_).tail_pos;
        return;
    }
    std::string event;
    for (std::uint64_t i = 0; i < kHeaderBytes; ++i) {
        event.push_back(static_cast<char>(world_.byte_at(buffer_, read_pos_ + i)));
    }
    if (world_.tape_.one_in(8)) world_.produce(cpu_);
    const std::uint64_t event_size = little_endian(event, 0, 4);
    const std::uint64_t header_size = little_endian(event, 4, 4);
    const std::uint64_t type_len = little_endian(event, 27, 2);
    const bool whole = kHeaderBytes + type_len <= header_size && header_size <= event_size &&
                       event_size <= write_pos - read_pos_ && type_len > 0;
    const std::uint64_t torn_at = world_.tape_.choose(256);
    for (std::uint64_t i = kHeaderBytes; whole && i < event_size; ++i) {
        if (i == torn_at) world_.produce(cpu_);
        event.push_back(static_cast<char>(world_.byte_at(buffer_, read_pos_ + i)));
    }
    const std::uint64_t tail_pos = world_.history_.buffer(buffer_).tail_pos;
    if (tail_pos > read_pos_) {
        read_pos_ = tail_pos;
        return;
    }
    if (!whole) throw std::logic_error("the simulated memory is corrupt");
    read_pos_ += event_size;
    deliver(event);
}

void Consumer::find_nothing() {
    if (world_.history_.buffer(buffer_).generation() == remembered_generation_) {
        release_held_back();
        flush();
        world_.history_.checkpoint_idle(cpu_, buffer_, world_.report_.size());
        if (std::find(slept_on_.begin(), slept_on_.end(), buffer_) == slept_on_.end()) {
            slept_on_.push_back(buffer_);
        }
        is_asleep_ = true;
        return;
    }
    if (world_.history_.current_buffer(cpu_) == buffer_) {
        remembered_generation_ = world_.history_.buffer(buffer_).generation();
        return;
    }
    switch_buffer();
}

// If nothing came in between, the order is correct after all.
void Consumer::release_held_back() {
    if (held_back_.empty()) return;
    world_.committed_ = false;
    unwritten_ += held_back_;
    held_back_.clear();
}

void Consumer::deliver(const std::string& event) {
    const std::uint64_t sequence = little_endian(event, 16, 8);
    if (sequence <= last_sequence_) return;  // E21
    const bool is_current = world_.history_.current_buffer(cpu_) == buffer_;
    const std::string_view type = std::string_view(event).substr(29, little_endian(event, 27, 2));
    const bool is_end = type == kEndEventType;
    if (is_current && !is_end && world_.commit(Fault::skip_one)) {
        last_sequence_ = sequence;
        // The producer does nothing before the sleep, so the event is there all the time.
        Tape rest = std::exchange(world_.tape_, Tape({}));
        world_.run_to_sleep(cpu_);
        world_.tape_ = std::move(rest);
        return;
    }
    write_loss(sequence);
    write_event(sequence, event);
    last_sequence_ = sequence;
    ended_ = is_end;
    if (ended_) {
        unwritten_ += held_back_;
        held_back_.clear();
        flush();
    }
}

void Consumer::write_loss(std::uint64_t sequence) {
    if (!world_.writes_losses_ || last_sequence_ == 0) return;
    std::uint64_t lost = sequence - last_sequence_ - 1;
    if (world_.commit(Fault::wrong_loss)) ++lost;
    if (lost == 0) return;
    unwritten_ += "L " + std::to_string(cpu_) + " " + std::to_string(lost) + "\n";
}

void Consumer::write_event(std::uint64_t sequence, const std::string& event) {
    std::string line = event_line(event);
    const bool is_end = line.find("6b6d65732e636f6e66") != std::string::npos;
    if (world_.commit(Fault::flip_digest)) {
        char& digit = line[line.size() - 2];
        digit = digit == '0' ? '1' : '0';
    }
    if (world_.commit(Fault::double_one)) line += line;
    if (world_.commit(Fault::wrong_type)) {
        const std::string::size_type length = line.find_last_of(' ', line.find_last_of(' ') - 1);
        line.insert(length, 2, '0');
    }
    if (!is_end && held_back_.empty() && sequence > 0 && world_.commit(Fault::swap_two)) {
        held_back_ = line;
        return;
    }
    unwritten_ += line + held_back_;
    held_back_.clear();
}

std::string Consumer::event_line(const std::string& event) const {
    const std::uint64_t header_size = little_endian(event, 4, 4);
    const std::string payload = event.substr(std::min<std::size_t>(header_size, event.size()));
    std::string hex;
    char digits[20];
    for (const char byte : event.substr(kHeaderBytes, little_endian(event, 27, 2))) {
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        hex += digits;
    }
    std::snprintf(digits, sizeof digits, "%016llx",
                  static_cast<unsigned long long>(fnv1a(payload)));
    return "E " + std::to_string(cpu_) + " " + std::to_string(little_endian(event, 16, 8)) + " " +
           std::to_string(little_endian(event, 8, 8)) + " " +
           std::to_string(little_endian(event, 26, 1)) + " " + hex + " " +
           std::to_string(payload.size()) + " " + digits + "\n";
}

// Takes the bytes one position further for an event.
void Consumer::break_position() {
    std::string event;
    for (std::uint64_t i = 0; i < 200; ++i) {
        event.push_back(static_cast<char>(world_.byte_at(buffer_, read_pos_ + 1 + i)));
    }
    unwritten_ += event_line(event);
}

// Reads past write_pos, into the unpublished events of a batch.
void Consumer::break_batch() {
    const Buffer& buffer = world_.history_.buffer(buffer_);
    if (buffer.published_count == buffer.placements.size() || read_pos_ != buffer.write_pos) return;
    const Placement& placement = buffer.placements[buffer.published_count];
    if (placement.sequence <= last_sequence_ || !world_.commit(Fault::early_from_batch)) return;
    unwritten_ += event_line(world_.history_.expected_bytes(buffer_, placement));
    flush();
}

}  // namespace kmes::conformance::simulation
