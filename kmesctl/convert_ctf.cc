// SPDX-License-Identifier: MIT
//
// A record file as a trace of the Common Trace Format, version 1.8 (diamon.org/ctf).
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>

#include "kmesctl/convert_form.h"

namespace kmes::kmesctl {
namespace {

using record::Item;
using record::ItemKind;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::uint32_t kPacketMagic = 0xc1fc1fc1;
// The id of the events in the metadata.
constexpr std::uint16_t kEventId = 0;
constexpr std::uint16_t kLostId = 1;
constexpr std::uint16_t kSessionId = 2;
constexpr std::size_t kPacketHeadBytes = 4 + 4 + 8 + 8 + 8 + 8 + 4;

constexpr const char* kMetadata = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text_t;

trace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct {
        uint32_t magic;
        uint32_t stream_id;
    };
};

clock {
    name = realtime;
    description = "CLOCK_REALTIME";
    freq = 1000000000;
    offset_s = 0;
    absolute = true;
};

typealias integer {
    size = 64; align = 8; signed = false; map = clock.realtime.value;
} := realtime_t;

stream {
    id = 0;
    packet.context := struct {
        realtime_t timestamp_begin;
        realtime_t timestamp_end;
        uint64_t content_size;
        uint64_t packet_size;
        uint32_t cpu_id;
    };
    event.header := struct {
        uint16_t id;
        realtime_t timestamp;
    };
};

event {
    name = "kmes";
    id = 0;
    stream_id = 0;
    fields := struct {
        uint64_t sequence;
        uint64_t emitted;
        uint8_t origin;
        uint16_t type_len;
        text_t type[type_len];
        uint32_t payload_len;
        uint8_t payload[payload_len];
    };
};

event {
    name = "kmes_lost";
    id = 1;
    stream_id = 0;
    fields := struct {
        uint64_t first_sequence;
        uint64_t count;
    };
};

event {
    name = "kmes_session";
    id = 2;
    stream_id = 0;
    fields := struct {
        uint64_t session;
    };
};
)";

template <typename T>
void put(std::string* to, T value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    to->append(bytes, sizeof(value));
}

class Ctf : public ConvertForm {
  public:
    explicit Ctf(const std::string& path) : path_(path) { append("metadata", kMetadata); }

    void add(const Item& item) override {
        if (item.kind == ItemKind::kLoss) {
            Packet& packet = begin_event(item.loss.cpu, 0, kLostId);
            put(&packet.events, item.loss.first_sequence);
            put(&packet.events, item.loss.count);
            return;
        }
        if (item.kind == ItemKind::kSession) {
            Packet& packet = begin_event(item.session.cpu, 0, kSessionId);
            put(&packet.events, item.session.session);
            return;
        }
        const kmes_event_view& event = item.event;
        Packet& packet = begin_event(event.cpu_id, event.timestamp, kEventId);
        put<std::uint64_t>(&packet.events, event.sequence);
        put<std::uint64_t>(&packet.events, event.timestamp);
        put<std::uint8_t>(&packet.events, event.origin_class);
        put<std::uint16_t>(&packet.events, event.type_len);
        packet.events.append(reinterpret_cast<const char*>(event.type), event.type_len);
        put<std::uint32_t>(&packet.events, event.payload_len);
        packet.events.append(reinterpret_cast<const char*>(event.payload), event.payload_len);
    }

    void end_block() override {
        for (auto& [cpu, packet] : packets_) {
            if (packet.events.empty()) continue;
            const std::uint64_t bits = 8 * (kPacketHeadBytes + packet.events.size());
            std::string whole;
            put(&whole, kPacketMagic);
            put(&whole, std::uint32_t{0});
            put(&whole, packet.first_ns);
            put(&whole, packet.last_ns);
            put(&whole, bits);
            put(&whole, bits);
            put(&whole, static_cast<std::uint32_t>(cpu));
            append(fmt::format("cpu_{}", cpu), whole + packet.events);
            packet.events.clear();
            packet.events.shrink_to_fit();
        }
    }

    void finish() override { end_block(); }

  private:
    struct Packet {
        std::string events;
        std::uint64_t first_ns = 0;
        std::uint64_t last_ns = 0;
    };

    // The format forbids decreasing times, but CLOCK_REALTIME can step back. The field `emitted`
    // has the original time.
    Packet& begin_event(std::uint16_t cpu, std::uint64_t timestamp_ns, std::uint16_t id) {
        Packet& packet = packets_[cpu];
        packet.last_ns = std::max(packet.last_ns, timestamp_ns);
        if (packet.events.empty()) packet.first_ns = packet.last_ns;
        put(&packet.events, id);
        put(&packet.events, packet.last_ns);
        return packet;
    }

    // Opens the file for each packet, because the limit of open files may be less than the number
    // of CPUs.
    void append(const std::string& name, std::string_view bytes) const {
        const int fd =
            open((path_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        check(fd >= 0);
        while (!bytes.empty()) {
            const ssize_t written = write(fd, bytes.data(), bytes.size());
            const int error = errno;
            if (written < 0 && error == EINTR) continue;
            if (written <= 0) {
                close(fd);
                errno = written == 0 ? ENOSPC : error;
                check(false);
            }
            bytes.remove_prefix(static_cast<std::size_t>(written));
        }
        check(close(fd) == 0);
    }

    const std::string path_;
    std::map<std::uint16_t, Packet> packets_;
};

}  // namespace

std::unique_ptr<ConvertForm> make_ctf_form(const std::string& path) {
    return std::make_unique<Ctf>(path);
}

}  // namespace kmes::kmesctl
