// SPDX-License-Identifier: MIT
//
// See socket_server.h.
#include "fuzz/targets/socket_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fail.h"
#include "fuzz/free_address.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/passed_files.h"
#include "fuzz/targets/ring_events.h"
#include "fuzz/targets/socket_peer.h"
#include "kmes/user/socket_loop.h"
#include "kmes/user/socket_server.h"
#include "kmes/user/unread_shares.h"

namespace kmes::fuzz {
namespace {

constexpr int kMaxOperations = 64;
constexpr std::size_t kMaxPeers = 6;
constexpr unsigned kCpus = 2;
constexpr std::uint64_t kCapacityBytes = 64 << 10;
constexpr std::uint64_t kMaxEventBytes = 1024;
// Descriptors in unread replies: a quarter of it for these peers. A few peers use that up.
constexpr std::size_t kUnreadLimit = 16;
constexpr int kMaxResizes = 2;
constexpr std::uint64_t kMillisecondNs = 1000000;
constexpr std::uint64_t kSteps[] = {1, 400, 5001, 10001};  // ms
constexpr int kSettleSteps = 16;
constexpr std::uint32_t kAttaches[] = {KMES_SOCKET_ATTACH, KMES_SOCKET_LEASE,
                                       KMES_SOCKET_LEASE_WITH_MEMBARRIER};
// Enough steps to serve an honest peer: a step accepts one connection, and each operation can leave
// one.
constexpr int kPatience = kMaxOperations + kSettleSteps;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

class Play {
  public:
    explicit Play(FuzzedBytes* bytes) : bytes_(*bytes) {
        const std::uint64_t choice = bytes_.below(16);

        serves_ = choice == 0   ? Serves::kAttach
                  : choice == 1 ? Serves::kEmit
                                : Serves::kAttachAndEmit;
        producer_ = std::make_unique<Producer>(options(choice == 2));
        expect_equal(producer_->start_without_registry(), 0, "the result of the start");
        loop_ = std::make_unique<SocketLoop>(
            producer_.get(), std::make_unique<ListeningAddress>(address(), 0600), serves_,
            WorkersOptions{false, clock()}, UnreadShares(kUnreadLimit));
        facts_ = {producer_.get(), &log_, serves_, kMaxEventBytes, false};
        for (unsigned cpu = 0; cpu < kCpus; ++cpu) {
            rings_.push_back(
                std::make_unique<RingEvents>(producer_.get(), static_cast<std::uint16_t>(cpu)));
        }
    }

    void run() {
        for (int i = 0; i < kMaxOperations && !bytes_.empty(); ++i) {
            operate();
            read_rings();
        }
        be_honest();
        settle();
    }

    // After the destructors nothing else may be left.
    void end() {
        for (auto& peer : peers_) peer->close_now();
        loop_->close_all();
        while (loop_->workers()->work_once()) continue;
        loop_->stop();
    }

  private:
    static const std::string& address() {
        static const std::string name = free_address("server");

        return name;
    }

    Clock clock() {
        return {[](void* context) { return *static_cast<std::uint64_t*>(context); }, &now_ns_};
    }

    ProducerOptions options(bool is_single) {
        ProducerOptions result;

        result.cpus = kCpus;
        result.boot_capacity_bytes = KMES_USER_CAPACITY_MIN_BYTES;
        result.capacity_bytes = kCapacityBytes;
        result.max_event_bytes = kMaxEventBytes;
        result.emitters = is_single ? EmitterMode::kSingle : EmitterMode::kLocked;
        result.clock = result.schedule_clock = clock();
        result.nudges.in_background = false;
        result.resume.session = 7;
        return result;
    }

    // -- Operations --

    void operate() {
        switch (bytes_.below(16)) {
            case 0:
            case 1:
            case 2:
                return step();
            case 3:
                loop_->workers()->work_once();
                return;
            case 4:
                if (peers_.size() < kMaxPeers)
                    peers_.push_back(std::make_unique<SocketPeer>(&facts_, address()));
                return;
            case 5:
            case 6:
            case 7:
                return send_request();
            case 8:
                return send_anything();
            case 9:
                return send_batch();
            case 10:
                if (SocketPeer* peer = pick_peer()) peer->receive();
                return;
            case 11:
                return end_peer();
            case 12:
                return use_producer();
            case 13:
                return pass_time();
            case 14:
                return change_file();
            default:
                return be_honest();
        }
    }

    void step() {
        ProducerGate* gate = loop_->workers()->gate();

        expect(gate->enter(), "the gate is open");
        loop_->poll_once(0);
        gate->leave();
    }

    SocketPeer* pick_peer() {
        const std::uint64_t choice = bytes_.below(kMaxPeers);

        if (peers_.empty()) peers_.push_back(std::make_unique<SocketPeer>(&facts_, address()));
        return peers_[choice % peers_.size()].get();
    }

    std::uint32_t pick_cpu() {
        const std::uint8_t byte = bytes_.take<std::uint8_t>();

        if (byte < 0xF0) return byte % 4;
        return byte < 0xF8 ? KMES_SOCKET_ALL_CPUS : bytes_.take<std::uint32_t>();
    }

    // Sends a request that is correct except for a field or two.
    void send_request() {
        SocketPeer* peer = pick_peer();
        const std::uint8_t shape = bytes_.take<std::uint8_t>();
        kmes_socket_request request = {KMES_SOCKET_MAGIC, shape % 8u, pick_cpu(), 0, 0, 0};
        SentPacket packet;

        if (request.operation == KMES_SOCKET_EMIT) {
            packet.bytes = bytes_.piece(bytes_.below(64));
            request.body_bytes = static_cast<__u32>(packet.bytes.size());
            request.type_len = static_cast<__u32>(bytes_.below(request.body_bytes + 2ull));
        }
        if (request.operation == KMES_SOCKET_EMIT_BATCH) request.count = 1;
        if (shape & 0x80) change_field(&request);
        if ((shape & 0x40) && request.operation == KMES_SOCKET_EMIT) {
            packet.fds.push_back(files_.make_memory(packet.bytes, packet.bytes.size(), false, 0));
            packet.bytes.clear();
        } else if (shape & 0x20) {
            add_descriptors(&packet);
        }
        packet.bytes.insert(0, reinterpret_cast<const char*>(&request), sizeof(request));
        if (shape & 0x10) packet.bytes.resize(bytes_.below(packet.bytes.size() + 8));
        peer->send(std::move(packet));
    }

    void change_field(kmes_socket_request* request) {
        std::uint32_t fields[sizeof(*request) / sizeof(std::uint32_t)];
        std::uint32_t* field = &fields[bytes_.below(std::size(fields))];

        std::memcpy(fields, request, sizeof(fields));
        if (bytes_.below(2))
            *field += bytes_.take<std::uint8_t>() - 128u;
        else
            *field = bytes_.take<std::uint32_t>();
        std::memcpy(request, fields, sizeof(fields));
    }

    void send_anything() {
        SocketPeer* peer = pick_peer();
        SentPacket packet;

        packet.bytes = bytes_.piece(bytes_.below(256));
        add_descriptors(&packet);
        peer->send(std::move(packet));
    }

    // Sends types and payloads, then entries that point to them or elsewhere.
    void send_batch() {
        SocketPeer* peer = pick_peer();
        std::string file(bytes_.piece(bytes_.below(64)));
        const auto texts = static_cast<__u32>(file.size());
        kmes_socket_request request = {
            KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, pick_cpu(), texts, 0, 0};
        SentPacket packet;

        for (std::uint64_t left = bytes_.below(8); left > 0; --left) {
            kmes_emit_entry entry = {};

            entry.type = reinterpret_cast<const void*>(bytes_.below(256) % (texts + 1));
            entry.type_len = static_cast<__u16>(1 + bytes_.below(4));
            entry.payload = reinterpret_cast<const void*>(bytes_.below(256) % (texts + 1));
            entry.payload_len = static_cast<__u32>(bytes_.below(256) % (texts + 1));
            if (entry.payload_len == 7) entry.payload_len = bytes_.take<std::uint32_t>();
            if (entry.payload_len == 11)
                entry.payload = reinterpret_cast<const void*>(bytes_.take<std::uint64_t>());
            file.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
            ++request.count;
        }
        if (bytes_.below(4) == 1) request.count += static_cast<__u32>(bytes_.below(256));
        if (bytes_.below(8) == 1) change_field(&request);
        packet.fds.push_back(files_.make_memory(file, file.size(), false, 0));
        last_file_ = packet.fds.back();
        packet.bytes.assign(reinterpret_cast<const char*>(&request), sizeof(request));
        peer->send(std::move(packet));
    }

    void add_descriptors(SentPacket* packet) {
        for (std::uint64_t left = bytes_.below(5); left > 0; --left) add_descriptor(packet);
    }

    void add_descriptor(SentPacket* packet) {
        const auto kinds = static_cast<std::uint64_t>(PassedFiles::Kind::kCount);
        const std::uint64_t choice = bytes_.below(kinds + 6);
        Attachment now;

        if (choice < kinds) {
            last_file_ = files_.make(static_cast<PassedFiles::Kind>(choice));
        } else if (choice == kinds) {
            const std::string_view text = bytes_.piece(bytes_.below(64));

            last_file_ = files_.make_memory(text, bytes_.below(8192), false, F_SEAL_SHRINK);
        } else if (choice <= kinds + 2) {
            expect_equal(producer_->inspect(0, &now), 0, "the result of inspect");
            packet->is_body_known = false;
            last_file_ = files_.keep_copy(choice == kinds + 1 ? now.buffers[0]->metadata_fd()
                                                              : now.buffers[0]->data_fd());
            if (choice == kinds + 1) metadata_files_.push_back(last_file_);
        } else if (choice == kinds + 3) {
            const SocketPeer* peer = pick_peer();

            last_file_ = files_.keep_copy(peer->is_open() ? peer->fd() : STDERR_FILENO);
        }
        if (last_file_ < 0) last_file_ = files_.make(PassedFiles::Kind::kNull);
        packet->fds.push_back(last_file_);
        if (last_file_ == changed_file_) packet->is_body_known = false;
    }

    void change_file() {
        if (last_file_ < 0) return;
        std::uint64_t how = bytes_.below(6);

        // A process that may attach may write there (E25), but cannot truncate the file.
        if (std::find(metadata_files_.begin(), metadata_files_.end(), last_file_) !=
            metadata_files_.end())
            how %= 2;
        changed_file_ = last_file_;
        for (auto& peer : peers_) peer->forget_body(changed_file_);
        PassedFiles::change(changed_file_, how);
    }

    void end_peer() {
        SocketPeer* peer = pick_peer();
        const std::uint64_t how = bytes_.below(8);

        if (how < 3) return peer->shut_down(static_cast<int>(how));
        remember_unanswered(*peer);
        const auto place = std::find_if(peers_.begin(), peers_.end(),
                                        [peer](const auto& one) { return one.get() == peer; });

        peers_.erase(place);
    }

    // A sent packet may or may not be served.
    void remember_unanswered(const SocketPeer& peer) {
        for (const SentPacket& packet : peer.unanswered()) {
            const kmes_socket_request request = packet.request();

            if (request.operation == KMES_SOCKET_EMIT) ++possible_;
            if (request.operation == KMES_SOCKET_EMIT_BATCH && request.count <= 256)
                possible_ += request.count;
        }
    }

    void use_producer() {
        const std::uint64_t choice = bytes_.below(16);
        RingEvent event;

        if (choice == 0 && resizes_ < kMaxResizes) {
            ++resizes_;
            expect_equal(producer_->resize(kCapacityBytes << (1 + bytes_.below(2))), 0,
                         "the result of a resize");
            return;
        }
        event.type = "own";
        event.payload = std::to_string(choice);
        expect_equal(producer_->emit(static_cast<unsigned>(choice % kCpus), event.type,
                                     bytes_of(event.payload)),
                     0, "the result of emit");
        read_rings();
        log_.claim(event);
    }

    void pass_time() {
        pass(kSteps[bytes_.below(std::size(kSteps))]);
        producer_->nudge_due();
    }

    void pass(std::uint64_t milliseconds) {
        now_ns_ += milliseconds * kMillisecondNs;
        passed_ms_ += milliseconds;
        if (passed_ms_ >= SocketWorkers::kMaxWaitMs) facts_.has_time_passed = true;
    }

    // -- An honest peer --

    // Makes steps until there is an answer. Replies that others do not read can delay it.
    int ask(SocketPeer* peer, std::uint32_t operation, std::uint32_t cpu, std::string_view type,
            std::string_view payload) {
        const std::string body = std::string(type) + std::string(payload);
        const kmes_socket_request request = {KMES_SOCKET_MAGIC,
                                             operation,
                                             cpu,
                                             static_cast<__u32>(body.size()),
                                             static_cast<__u32>(type.size()),
                                             0};
        SentPacket packet;

        packet.bytes.assign(reinterpret_cast<const char*>(&request), sizeof(request));
        packet.bytes += body;
        peer->send(std::move(packet));
        await_answer(peer);
        if (peer->last_error() > 0) {
            pass(SocketServer::kMaxUnreadWaitMs + 1);
            await_answer(peer);
        }
        expect(peer->last_error() <= 0, "an honest peer gets an answer");
        return peer->last_error();
    }

    void await_answer(SocketPeer* peer) {
        for (int i = 0; i < kPatience && peer->last_error() > 0; ++i) {
            step();
            read_rings();
            peer->receive();
        }
    }

    void be_honest() {
        const auto cpu = static_cast<std::uint32_t>(bytes_.below(kCpus));
        SocketPeer reading(&facts_, address());
        SocketPeer emitting(&facts_, address());
        const int error = ask(&reading, kAttaches[bytes_.below(3)], cpu, "", "");
        std::unique_ptr<RingEvents> ring;
        RingEvent event, found;

        event.type = "honest";
        event.payload = std::to_string(++honest_);
        if (!error) {
            ring = std::make_unique<RingEvents>(producer_.get(), static_cast<std::uint16_t>(cpu),
                                                reading.received_fds()[0],
                                                reading.received_fds()[1], reading.last_capacity());
        }
        const bool is_emitted =
            ask(&emitting, KMES_SOCKET_EMIT, cpu, event.type, event.payload) == 0;

        if (!is_emitted || !ring) return;
        while (!found.is_same(event))
            expect(ring->next(&found), "an honest peer reads the event that it has emitted");
    }

    // -- The content of the rings --

    void read_rings() {
        RingEvent event;

        for (auto& ring : rings_) {
            while (ring->next(&event)) log_.add(event);
        }
    }

    // Serves everything that can be served, and accounts for it.
    void settle() {
        for (int i = 0; i < kSettleSteps; ++i) {
            step();
            while (loop_->workers()->work_once()) continue;
            read_rings();
            for (auto& peer : peers_) peer->receive();
        }
        for (auto& peer : peers_) {
            expect(!peer->is_owed(), "each request of a client that reads is answered");
            remember_unanswered(*peer);
        }
        expect(log_.unclaimed() <= possible_ + log_.unknown(),
               "a ring has events that nobody has emitted");
        expect_equal(producer_->statistics().events, log_.seen() + log_.lost_events(),
                     "the events that were emitted");
    }

    FuzzedBytes& bytes_;
    std::uint64_t now_ns_ = 3600000 * kMillisecondNs;
    Serves serves_ = Serves::kAttachAndEmit;
    std::unique_ptr<Producer> producer_;
    std::unique_ptr<SocketLoop> loop_;
    EventLog log_;
    ServerFacts facts_;
    PassedFiles files_;
    std::vector<std::unique_ptr<RingEvents>> rings_;
    std::vector<std::unique_ptr<SocketPeer>> peers_;
    std::uint64_t possible_ = 0;  // events of requests with unread answers
    std::uint64_t passed_ms_ = 0;
    std::vector<int> metadata_files_;  // of the rings
    int last_file_ = -1;
    int changed_file_ = -1;
    int resizes_ = 0;
    int honest_ = 0;
};

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_socket_server(const std::uint8_t* data, std::size_t size) {
    using namespace kmes::fuzz;
    const std::size_t descriptors = count_open_descriptors();
    FuzzedBytes bytes(data, size);

    {
        Play play(&bytes);

        play.run();
        play.end();
    }
    expect_equal(count_open_descriptors(), descriptors, "open descriptors after a run");
    expect_equal(count_mappings("memfd:kmes-"), 0u, "mappings of rings after a run");
    return 0;
}
