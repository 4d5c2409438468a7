// SPDX-License-Identifier: MIT
//
// See recorded_stream.h.
#include "conformance/play/recorded_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/oracle/event.h"

namespace kmes::conformance {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& wrong) {
    throw StreamError(fmt::format("--stream {}: {}", path, wrong));
}

}  // namespace

RecordedStream::RecordedStream(const std::string& path) : path_(path) {
    std::string wrong;
    auto source = record::open_file(path, &wrong);
    if (source == nullptr || !reader_.open(std::move(source), &wrong)) fail(path, wrong);
}

bool RecordedStream::next(Recorded* recorded) {
    for (;;) {
        record::Item item;
        while (items_.next(&item)) {
            if (item.kind != record::ItemKind::kEvent) continue;
            ++events_;
            *recorded = check(item);
            return true;
        }
        const record::ReadResult result = reader_.next(&block_);
        if (result == record::ReadResult::kDamage) fail(path_, reader_.damage().what);
        if (result == record::ReadResult::kEnd) return false;
        items_ = record::ItemCursor(block_.body);
    }
}

RecordedStream::Recorded RecordedStream::check(const record::Item& item) const {
    const kmes_event_view& event = item.event;
    const std::string_view type(reinterpret_cast<const char*>(event.type), event.type_len);
    if (!kmes_utf8_is_valid(event.type, event.type_len))
        fail(path_, fmt::format("the type of event {} is no UTF-8", events_));
    if (type == kEndEventType)
        fail(path_, fmt::format("event {} has the type {}, which ends a consumer", events_, type));
    Recorded recorded;
    recorded.cpu = event.cpu_id % kMostCpus;
    recorded.has_other_cpu = event.cpu_id >= kMostCpus;
    recorded.spec.type = type;
    recorded.spec.payload.assign(reinterpret_cast<const char*>(event.payload), event.payload_len);
    recorded.spec.timestamp = event.timestamp;
    recorded.spec.origin = event.origin_class;
    // The extra header bytes, which a later version of the format may have. A file contains events
    // of form A, whatever the form of the run (--layout).
    recorded.spec.extra_header.assign(event.header_size - KMES_EVENT_FIXED_BYTES - type.size(),
                                      '\0');
    return recorded;
}

StreamPart read_stream_part(const std::string& path) {
    RecordedStream stream(path);
    RecordedStream::Recorded recorded;
    StreamPart part;
    StreamFacts& facts = part.facts;
    while (stream.next(&recorded)) {
        const std::uint64_t bytes = encoded_bytes(recorded.spec);
        facts.has_more = facts.events == RecordedStream::kMostEvents ||
                         (facts.events > 0 && facts.bytes + bytes > RecordedStream::kMostBytes);
        if (facts.has_more) break;
        ++facts.events;
        facts.bytes += bytes;
        facts.largest_bytes = std::max(facts.largest_bytes, bytes);
        facts.cpus = std::max(facts.cpus, recorded.cpu + 1);
        facts.has_other_cpus |= recorded.has_other_cpu;
        part.events.push_back(std::move(recorded));
    }
    return part;
}

std::string check_stream(const std::string& path) {
    try {
        RecordedStream stream(path);
        RecordedStream::Recorded recorded;
        if (!stream.next(&recorded)) fail(path, "it has no event");
        while (stream.next(&recorded)) continue;
    } catch (const StreamError& error) {
        return error.what();
    }
    return {};
}

}  // namespace kmes::conformance
