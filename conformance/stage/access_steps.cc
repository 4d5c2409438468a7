// SPDX-License-Identifier: MIT
//
// See access_steps.h.
#include "conformance/stage/access_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/oracle/record.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

namespace {

const Field* exactly(std::span<const Field> fields, std::uint64_t offset, std::uint64_t bytes) {
    for (const Field& field : fields) {
        if (field.offset == offset && field.bytes == bytes) return &field;
    }
    return nullptr;
}

std::string value_text(const Field* field, std::uint64_t value, std::uint64_t bytes) {
    if (field == nullptr) return bytes > 1 ? fmt::format("{:#x}", value) : std::to_string(value);
    if (field->name != "magic") return std::to_string(value);
    std::string text;
    for (std::uint64_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
    return quote_bytes(text);
}

std::uint64_t low_bytes(std::uint64_t value, std::uint64_t bytes) {
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

}  // namespace

std::string retired_suffix(const History& history, BufferIndex index) {
    const Buffer& buffer = history.buffer(index);
    return buffer.retired ? fmt::format(" of buffer {}, which is retired", index) : "";
}

// Adds the code of this hit, whose access is the last step.
void AccessSteps::put_code(const GuardHit& hit) {
    const BufferAccess& access = hit.accesses.front();
    const std::uint64_t offset = access.place.offset_bytes;
    log_.add_place(hit.code, hit.stack,
                   offset < kMetadataBytes
                       ? field_names(metadata_fields(), offset, access.size_bytes)
                       : "data");
}

std::string AccessSteps::metadata_text(const BufferAccess& access, BufferIndex buffer,
                                       const GuardStep* step) {
    const std::uint64_t offset = access.place.offset_bytes;
    const std::uint64_t bytes = access.size_bytes;
    const bool is_flag_word = offset == kNeedWakeOffset && bytes == 4;
    const Field* field = exactly(metadata_fields(), offset, is_flag_word ? 1 : bytes);
    std::string what = field != nullptr
                           ? std::string(field->name)
                           : fmt::format("{} at {} ({})", amount_text(bytes, "byte"), offset,
                                         field_names(metadata_fields(), offset, bytes));
    what += retired_suffix(log_.history(), buffer);
    const bool has_value = step != nullptr && bytes > 0 && bytes <= 8;
    const auto value = [&](std::uint64_t raw) {
        return value_text(field, low_bytes(raw, bytes), bytes);
    };
    if (access.is_read && access.is_write)
        return has_value ? fmt::format("exchanges {}: {} before, {} after", what,
                                       value(step->value_before), value(step->value_after))
                         : "exchanges " + what;
    if (access.is_write)
        return has_value ? fmt::format("sets {} to {}", what, value(step->value_after))
                         : "writes " + what;
    return has_value ? fmt::format("reads {}: {}", what, value(step->value_before))
                     : "reads " + what;
}

std::string AccessSteps::metadata_clause(const BufferAccess& access, Reader& reader,
                                         std::uint64_t value) {
    const bool had_data = std::exchange(reader.has_data, false);
    reader.event = Placement{};
    const std::uint64_t offset = access.place.offset_bytes;
    const auto touches = [&](std::uint64_t field) { return access.touches(field); };
    if (access.is_write) {
        if (!touches(kNeedWakeOffset)) return "contract";
        const bool sets = (value >> (8 * (kNeedWakeOffset - offset)) & 0xff) != 0;
        const bool was_woken = std::exchange(reader.woken, false);
        reader.asked = sets;
        if (sets) return "5.1.8.2 step 1";
        return was_woken ? "5.1.8.2 step 6" : "5.1.8.2 step 2";
    }
    if (touches(kWritePosOffset)) {
        reader.has_loaded_write_pos = true;
        return reader.asked ? "5.1.8.2 step 2" : "5.1.8.1 step 1";
    }
    if (touches(kTailPosOffset)) {
        if (had_data) return "5.1.8.1 step 5";
        return reader.has_loaded_write_pos ? "5.1.8.1 step 2" : "5.1.8.3 step 4";
    }
    if (touches(kGenerationOffset)) return reader.asked ? "E3" : "5.1.8.3";
    if (touches(kFutexWordOffset)) return "5.1.8.2 step 3";
    return offset < kWritePosOffset ? "5.1.6.1" : "";
}

bool AccessSteps::is_overwritten(BufferIndex index, const Placement& event) const {
    const Buffer& buffer = log_.history().buffer(index);
    if (event.sequence == 0) return false;
    const bool is_present = !buffer.retired && log_.rings().emissions().is_reserved(buffer.cpu);
    return event.position < buffer.tail_pos ||
           (is_present && event.position < log_.rings().backend().state(index).tail);
}

// Returns the event at this offset of the layout. A thread that has read a byte of an event
// continues in that event until it accesses the metadata. This holds even if the event is
// overwritten by now.
Placement AccessSteps::event_at(BufferIndex index, std::uint64_t offset, Reader& reader) const {
    const Buffer& buffer = log_.history().buffer(index);
    const std::uint64_t mask = buffer.capacity - 1;
    const std::uint64_t place = (offset - kMetadataBytes) & mask;
    if (reader.event.sequence != 0 && ((place - reader.event.position) & mask) < reader.event.bytes)
        return reader.event;
    // The last written position at this place.
    const std::uint64_t behind = (buffer.write_frontier - 1 - place) & mask;
    const std::uint64_t position = buffer.write_frontier - 1 - behind;
    const auto next = std::upper_bound(
        buffer.placements.begin(), buffer.placements.end(), position,
        [](std::uint64_t at, const Placement& event) { return at < event.position; });
    if (next == buffer.placements.begin()) return Placement{};
    const Placement& found = *std::prev(next);
    return position - found.position < found.bytes ? found : Placement{};
}

std::string AccessSteps::reading_text(const Reading& reading,
                                      std::optional<std::uint64_t> value) const {
    const std::uint64_t bytes = reading.end_byte - reading.first_byte;
    const std::uint64_t mask = log_.history().buffer(reading.buffer).capacity - 1;
    const std::uint64_t offset = (reading.event.position + reading.first_byte) & mask;
    if (reading.first_byte != 0 || reading.event.sequence == 0) {
        const std::string stale = stale_capacity_text(log_.history(), reading.buffer, offset);
        if (!stale.empty())
            return fmt::format("reads {} at offset {} of the data; {}", amount_text(bytes, "byte"),
                               offset, stale);
    }
    if (reading.event.sequence == 0)
        return fmt::format("reads {} at offset {} of the data, where no event is, in {} access{}",
                           amount_text(bytes, "byte"), offset, reading.count,
                           reading.count == 1 ? "" : "es");
    const std::string state = reading.overwritten ? ", which is overwritten" : "";
    const std::string event = fmt::format("event {}{}", reading.event.sequence, state);
    if (reading.count == 1) {
        const Field* field = exactly(header_fields(), reading.first_byte, bytes);
        const std::string names = field_names(header_fields(), reading.first_byte, bytes);
        return fmt::format("reads {} of {} at its offset {}{}{}", amount_text(bytes, "byte"), event,
                           reading.first_byte, names.empty() ? "" : " (" + names + ")",
                           value && field ? fmt::format(": {}", *value) : "");
    }
    std::string part;
    if (reading.first_byte == 0 && reading.end_byte >= reading.event.bytes)
        part = "all of it";
    else if (reading.end_byte <= kHeaderBytesBeforeType)
        part = "of its header";
    return fmt::format("reads bytes {} to {}{} of {}, in {} accesses", reading.first_byte,
                       reading.end_byte - 1, part.empty() ? "" : " (" + part + ")", event,
                       reading.count);
}

void AccessSteps::read_data(const GuardHit& hit, const BufferAccess& access, BufferIndex index,
                            int thread, const GuardStep* step) {
    Reader& reader = readers_[{thread, index}];
    const Placement event = event_at(index, access.place.offset_bytes, reader);
    reader.event = event;
    reader.has_data = true;
    const Buffer& buffer = log_.history().buffer(index);
    const std::uint64_t place = access.place.offset_bytes - kMetadataBytes;
    const std::uint64_t byte = (place - event.position) & (buffer.capacity - 1);
    const bool overwritten = is_overwritten(index, event);
    const auto found = readings_.find(thread);
    if (found != readings_.end() && log_.is_latest(found->second.step, thread)) {
        Reading& reading = found->second;
        TimelineStep* entry = log_.timeline().find(reading.step);
        // A second pass over the event is another step, and so are the reads after an overwrite.
        if (entry != nullptr && reading.buffer == index &&
            reading.event.sequence == event.sequence && reading.overwritten == overwritten &&
            byte >= reading.first_byte && byte + 1 >= reading.end_byte) {
            reading.end_byte = std::max(reading.end_byte, byte + access.size_bytes);
            ++reading.count;
            entry->text = reading_text(reading, std::nullopt);
            note_read(reading);
            return;
        }
    }
    Reading reading{log_.timeline().last_number() + 1, index, event, overwritten, byte,
                    byte + access.size_bytes,          1};
    TimelineStep entry;
    entry.kind = StepKind::access;
    entry.thread = thread;
    entry.cpu = buffer.cpu;
    entry.clause = "5.1.8.1 step 4";
    entry.sequence = event.sequence;
    std::optional<std::uint64_t> value;
    if (step != nullptr && access.size_bytes <= 8)
        value = low_bytes(step->value_before, access.size_bytes);
    entry.text = reading_text(reading, value);
    log_.add(std::move(entry));
    put_code(hit);
    readings_[thread] = reading;
    note_read(reading);
}

void AccessSteps::note_read(const Reading& reading) {
    if (reading.event.sequence == 0) return;
    log_.add_event_read({reading.step, reading.end_byte >= reading.event.bytes, reading.buffer,
                         reading.event.position + reading.first_byte,
                         reading.end_byte - reading.first_byte});
}

void AccessSteps::accessed_by_second(const GuardHit& hit, BufferIndex buffer,
                                     const GuardStep* step) {
    if (!log_.on() || hit.accesses.empty()) return;
    TimelineStep entry;
    entry.kind = StepKind::scheduler;
    entry.cpu = log_.history().buffer(buffer).cpu;
    entry.text = (step != nullptr ? "second instance " : "second instance is stopped: it ") +
                 metadata_text(hit.accesses.front(), buffer, step);
    log_.add(std::move(entry));
    put_code(hit);
}

void AccessSteps::accessed(const GuardHit& hit, const GuardStep* step) {
    if (!log_.on() || hit.accesses.empty()) return;
    const BufferAccess& access = hit.accesses.front();
    const std::optional<BufferIndex> index = log_.find_buffer(access.place.buffer);
    if (!index) return;
    const int thread = log_.threads().of(hit.tid);
    log_.threads().note_user(log_.history().buffer(*index).cpu, thread);
    if (access.place.offset_bytes >= kMetadataBytes && !access.is_write)
        return read_data(hit, access, *index, thread, step);
    TimelineStep entry;
    entry.kind = StepKind::access;
    entry.thread = thread;
    entry.cpu = log_.history().buffer(*index).cpu;
    if (access.place.offset_bytes < kMetadataBytes) {
        entry.text = metadata_text(access, *index, step);
        entry.clause = metadata_clause(access, readers_[{thread, *index}],
                                       step != nullptr ? step->value_after : 0);
        log_.add_metadata_access({log_.timeline().last_number() + 1, *index});
    } else {
        entry.text = fmt::format(
            "writes {} into the data ({})", amount_text(access.size_bytes, "byte"),
            name_of_bytes(log_.history(), *index, access.place.offset_bytes, access.size_bytes));
        entry.clause = "contract";
    }
    if (access.is_write) entry.state = log_.state_of(log_.history().current_buffer(*entry.cpu));
    const bool is_tail_load =
        access.is_read && access.place.offset_bytes == kTailPosOffset && access.size_bytes == 8;
    if (is_tail_load && step != nullptr)
        log_.add_tail_load(
            {log_.timeline().last_number() + 1, *entry.cpu, *index, step->value_before});
    log_.add(std::move(entry));
    put_code(hit);
}

void AccessSteps::refused(const WriteFault& event) {
    if (!log_.on()) return;
    TimelineStep step;
    step.kind = StepKind::access;
    step.thread = log_.threads().of(event.tid);
    if (const std::optional<BufferIndex> index = log_.find_buffer(event.access.place.buffer))
        step.cpu = log_.history().buffer(*index).cpu;
    step.clause = "contract";
    const std::uint64_t offset = event.access.place.offset_bytes;
    std::string name;
    if (const std::optional<BufferIndex> index = log_.find_buffer(event.access.place.buffer))
        name = fmt::format(" ({})",
                           name_of_bytes(log_.history(), *index, offset, event.access.size_bytes));
    step.text = fmt::format("writes {} at byte {} of the mapping{}, against the contract",
                            amount_text(event.access.size_bytes, "byte"), offset, name);
    log_.add(std::move(step));
    log_.add_place(event.code, event.stack, "");
}

void AccessSteps::note_woken(int thread) {
    for (auto& [key, reader] : readers_) {
        if (key.first == thread) reader.woken = true;
    }
}

}  // namespace kmes::conformance
