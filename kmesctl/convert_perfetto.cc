// SPDX-License-Identifier: MIT
//
// A record file as a trace of Perfetto (perfetto.dev): a track for each CPU, and an instant for
// each event. The messages are those of perfetto.proto.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "kmesctl/convert_form.h"
#include "kmesctl/escape.h"
#include "kmesctl/event_text.h"
#include "kmesctl/protobuf.h"

namespace kmes::kmesctl {
namespace {

using record::Item;
using record::ItemKind;

// Numbers of fields and values in perfetto.proto.
namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kClockSnapshot = 6;
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequence = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kTimestampClock = 58;
constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet
namespace clock_snapshot {
constexpr std::uint32_t kClocks = 1;
constexpr std::uint32_t kPrimaryClock = 2;
constexpr std::uint32_t kClockId = 1;
constexpr std::uint32_t kClockTimestamp = 2;
constexpr std::uint64_t kRealtime = 1;
}  // namespace clock_snapshot
namespace track {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
}  // namespace track
namespace track_event {
constexpr std::uint32_t kAnnotations = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kTrack = 11;
constexpr std::uint32_t kCategories = 22;
constexpr std::uint32_t kName = 23;
constexpr std::uint64_t kInstant = 3;
}  // namespace track_event
namespace annotation {
constexpr std::uint32_t kUint = 3;
constexpr std::uint32_t kString = 6;
constexpr std::uint32_t kName = 10;
}  // namespace annotation

// The bound of losses without an event after them. Only a hostile file has more.
constexpr std::size_t kMostWaiting = 1000;
// One writer has written all packets.
constexpr std::uint64_t kSequence = 1;

ProtobufMessage instant(std::uint16_t cpu, std::string_view category, std::string_view name) {
    ProtobufMessage event;
    event.add_number(track_event::kType, track_event::kInstant);
    // Track 0 is that of the whole trace.
    event.add_number(track_event::kTrack, cpu + std::uint64_t{1});
    event.add_bytes(track_event::kCategories, category);
    event.add_bytes(track_event::kName, name);
    return event;
}

void annotate(ProtobufMessage* event, std::string_view name, std::uint64_t value) {
    ProtobufMessage message;
    message.add_bytes(annotation::kName, name);
    message.add_number(annotation::kUint, value);
    event->add_message(track_event::kAnnotations, message);
}

void annotate(ProtobufMessage* event, std::string_view name, std::string_view value) {
    ProtobufMessage message;
    message.add_bytes(annotation::kName, name);
    message.add_bytes(annotation::kString, value);
    event->add_message(track_event::kAnnotations, message);
}

class Perfetto : public ConvertForm {
  public:
    explicit Perfetto(std::FILE* out) : out_(out) {}

    void add(const Item& item) override {
        if (item.kind == ItemKind::kLoss) {
            ProtobufMessage loss = instant(item.loss.cpu, "kmes.lost", "events lost");
            annotate(&loss, "first_sequence", item.loss.first_sequence);
            annotate(&loss, "count", item.loss.count);
            return wait_for_event(item.loss.cpu, std::move(loss));
        }
        if (item.kind == ItemKind::kSession) {
            ProtobufMessage next = instant(item.session.cpu, "kmes.session", "another producer");
            annotate(&next, "session", fmt::format("{:016x}", item.session.session));
            return wait_for_event(item.session.cpu, std::move(next));
        }
        const kmes_event_view& event = item.event;
        Cpu& cpu = cpus_[event.cpu_id];
        cpu.last_ns = event.timestamp;
        write_waiting(event.cpu_id, &cpu);
        ProtobufMessage message =
            instant(event.cpu_id, origin_text(event.origin_class), escaped(type_of(event)));
        annotate(&message, "sequence", event.sequence);
        const std::string payload = payload_text(payload_of(event), PayloadForm::kAuto);
        if (!payload.empty()) annotate(&message, "payload", payload);
        write_event(event.timestamp, message);
    }

    void finish() override {
        for (auto& [number, cpu] : cpus_) write_waiting(number, &cpu);
        check(std::fflush(out_) == 0);
    }

  private:
    struct Cpu {
        std::uint64_t last_ns = 0;
        bool has_track = false;
        // Losses and sessions get the time of the next event.
        std::vector<ProtobufMessage> waiting;
    };

    void wait_for_event(std::uint16_t number, ProtobufMessage message) {
        Cpu& cpu = cpus_[number];
        cpu.waiting.push_back(std::move(message));
        if (cpu.waiting.size() == kMostWaiting) write_waiting(number, &cpu);
    }

    void write_waiting(std::uint16_t number, Cpu* cpu) {
        if (!cpu->has_track) write_track(number, cpu->last_ns);
        cpu->has_track = true;
        for (const ProtobufMessage& event : cpu->waiting) write_event(cpu->last_ns, event);
        cpu->waiting.clear();
    }

    // All times are CLOCK_REALTIME, and the trace is shown in it.
    void write_clock(std::uint64_t timestamp_ns) {
        ProtobufMessage clock, snapshot, packet;
        clock.add_number(clock_snapshot::kClockId, clock_snapshot::kRealtime);
        clock.add_number(clock_snapshot::kClockTimestamp, timestamp_ns);
        snapshot.add_message(clock_snapshot::kClocks, clock);
        snapshot.add_number(clock_snapshot::kPrimaryClock, clock_snapshot::kRealtime);
        packet.add_message(packet::kClockSnapshot, snapshot);
        write(packet);
        has_clock_ = true;
    }

    void write_track(std::uint16_t number, std::uint64_t timestamp_ns) {
        if (!has_clock_) write_clock(timestamp_ns);
        ProtobufMessage track, packet;
        track.add_number(track::kUuid, number + std::uint64_t{1});
        track.add_bytes(track::kName, fmt::format("CPU {}", number));
        packet.add_message(packet::kTrackDescriptor, track);
        write(packet);
    }

    void write_event(std::uint64_t timestamp_ns, const ProtobufMessage& event) {
        ProtobufMessage packet;
        packet.add_number(packet::kTimestamp, timestamp_ns);
        packet.add_number(packet::kTimestampClock, clock_snapshot::kRealtime);
        packet.add_message(packet::kTrackEvent, event);
        write(packet);
    }

    void write(ProtobufMessage packet) {
        packet.add_number(packet::kSequence, kSequence);
        ProtobufMessage framed;
        framed.add_message(trace::kPacket, packet);
        const std::string& bytes = framed.bytes();
        check(std::fwrite(bytes.data(), 1, bytes.size(), out_) == bytes.size());
    }

    std::FILE* const out_;
    std::map<std::uint16_t, Cpu> cpus_;
    bool has_clock_ = false;
};

}  // namespace

std::unique_ptr<ConvertForm> make_perfetto_form(std::FILE* out) {
    return std::make_unique<Perfetto>(out);
}

}  // namespace kmes::kmesctl
