// SPDX-License-Identifier: MIT
//
// See socket_peer.h.
#include "fuzz/targets/socket_peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fuzz/fail.h"
#include "kmes/event.h"
#include "kmes/user/libkmes_parts.h"

namespace kmes::fuzz {
namespace {

constexpr std::size_t kMaxDescriptors = 253;
constexpr int kErrorDependsOnTheBody =
    1;  // of expected_error: the check of the request itself decides
constexpr int kLeastError = -4095;

// Whether the descriptors fit into the server's room; more make a request malformed.
bool is_well_formed(const SentPacket& packet) {
    if (!packet.has_whole_request() || packet.fds.size() > 2) return false;
    const kmes_socket_request request = packet.request();
    const std::size_t body = packet.body().size(), fds = packet.fds.size();

    if (request.magic != KMES_SOCKET_MAGIC) return false;
    switch (request.operation) {
        case KMES_SOCKET_EMIT_BATCH:
            return request.type_len == 0 && body == 0 && fds == 1;
        case KMES_SOCKET_EMIT:
            if (request.count || request.type_len > request.body_bytes) return false;
            if (request.type_len > 0xFFFF || fds > 1) return false;
            return fds ? body == 0 : body == request.body_bytes;
        default:
            return !request.count && !request.type_len && !request.body_bytes && !body && !fds;
    }
}

bool is_attach(std::uint32_t operation) {
    return operation == KMES_SOCKET_ATTACH || operation == KMES_SOCKET_LEASE ||
           operation == KMES_SOCKET_LEASE_WITH_MEMBARRIER;
}

bool is_lease(std::uint32_t operation) {
    return is_attach(operation) && operation != KMES_SOCKET_ATTACH;
}

}  // namespace

// -- The log --

void EventLog::add(const RingEvent& event) {
    lost_ += event.lost_before;
    all_lost_ += event.lost_before;
    ++seen_;
    events_.push_back(event);
}

void EventLog::claim(const RingEvent& event) {
    const auto found = std::find_if(events_.begin(), events_.end(),
                                    [&](const RingEvent& one) { return one.is_same(event); });

    if (found != events_.end()) {
        events_.erase(found);
        return;
    }
    expect(lost_ > 0, "an event that the server reported as emitted is not in a ring");
    --lost_;
}

// -- The packet --

kmes_socket_request SentPacket::request() const {
    kmes_socket_request request = {};

    std::memcpy(&request, bytes.data(), std::min(bytes.size(), sizeof(request)));
    return request;
}

std::string_view SentPacket::body() const {
    return std::string_view(bytes).substr(std::min(bytes.size(), sizeof(kmes_socket_request)));
}

// -- The peer --

SocketPeer::SocketPeer(const ServerFacts* facts, const std::string& address) : facts_(facts) {
    struct sockaddr_un name;
    socklen_t length;

    expect_equal(kmes_socket_address(address.c_str(), &name, &length), 0, "the address' error");
    fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    expect(fd_ >= 0, "a socket can be made");
    if (connect(fd_, reinterpret_cast<struct sockaddr*>(&name), length) == 0) return;
    expect_equal(errno, EAGAIN, "the error of connect");  // the backlog is full
    close_now();
}

SocketPeer::~SocketPeer() {
    close_now();
    drop_descriptors();
}

void SocketPeer::close_now() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void SocketPeer::drop_descriptors() {
    for (const int fd : received_) close(fd);
    received_.clear();
}

void SocketPeer::shut_down(int how) {
    if (fd_ < 0) return;
    shutdown(fd_, how);
    may_end_ = true;
}

void SocketPeer::send(SentPacket packet) {
    alignas(struct cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
    struct iovec piece = {packet.bytes.data(), packet.bytes.size()};
    struct msghdr message = {};

    if (fd_ < 0) return;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!packet.fds.empty()) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(packet.fds.size() * sizeof(int));
        struct cmsghdr* part = CMSG_FIRSTHDR(&message);

        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(packet.fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(part), packet.fds.data(), packet.fds.size() * sizeof(int));
    }
    if (sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    last_error_ = 1;
    packet.is_memory_file = !packet.fds.empty() && fcntl(packet.fds[0], F_GET_SEALS) >= 0;
    // A server may drop a client that does not read, or that has sent an empty packet, which ends
    // the connection.
    if (packet.bytes.empty() || !sent_.empty()) may_end_ = true;
    sent_.push_back(std::move(packet));
}

void SocketPeer::forget_body(int fd) {
    for (SentPacket& packet : sent_) {
        if (!packet.fds.empty() && packet.fds[0] == fd) packet.is_body_known = false;
    }
}

bool SocketPeer::is_owed() const {
    return fd_ >= 0 && !sent_.empty() && !is_over_ && !may_end_ && !facts_->has_time_passed;
}

void SocketPeer::take_descriptors(struct msghdr* message) {
    drop_descriptors();
    for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        expect(part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS,
               "a server passes descriptors, and nothing else");
        for (std::size_t i = 0; i < count; ++i) {
            int fd;

            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            received_.push_back(fd);
        }
    }
}

void SocketPeer::receive() {
    struct {
        kmes_socket_reply reply;
        kmes_socket_emitter emitters[KMES_SOCKET_EMITTERS_MAX];
        char more;
    } room = {};
    alignas(struct cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    struct iovec piece = {&room, sizeof(room)};
    struct msghdr message = {};

    if (fd_ < 0) return;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got < 0 && (errno == EAGAIN || errno == ECONNRESET)) return;  // what was sent arrives next
    if (got <= 0) {
        expect(is_over_ || may_end_ || facts_->has_time_passed,
               "a server goes on with a client that gave no reason to end");
        is_over_ = true;
        return;
    }
    take_descriptors(&message);
    expect(!is_over_, "nothing comes after the end");
    expect(!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)), "a reply is whole");
    expect(!sent_.empty(), "each reply has a request");
    const SentPacket packet = std::move(sent_.front());

    sent_.pop_front();
    const bool has_emitters = packet.request().operation == KMES_SOCKET_EMITTERS &&
                              !room.reply.error && room.reply.count >= 1 &&
                              room.reply.count <= KMES_SOCKET_EMITTERS_MAX;

    expect_equal(static_cast<std::size_t>(got),
                 sizeof(kmes_socket_reply) +
                     (has_emitters ? room.reply.count * sizeof(kmes_socket_emitter) : 0),
                 "bytes of a reply");
    last_error_ = room.reply.error;
    last_capacity_ = room.reply.capacity;
    check(packet, room.reply);
}

// Returns the correct error, or kErrorDependsOnTheBody. -EPROTO ends the connection.
int SocketPeer::expected_error(const SentPacket& packet) const {
    const kmes_socket_request request = packet.request();
    const bool is_there = request.cpu < facts_->producer->cpus();

    if (!is_well_formed(packet) || is_lease_) return -EPROTO;
    switch (request.operation) {
        case KMES_SOCKET_ATTACH:
        case KMES_SOCKET_LEASE:
        case KMES_SOCKET_LEASE_WITH_MEMBARRIER:
            if (facts_->serves == Serves::kEmit) return -EPERM;
            return is_there || request.cpu == KMES_SOCKET_ALL_CPUS ? 0 : -EINVAL;
        case KMES_SOCKET_IDENTIFY:
            if (facts_->serves == Serves::kEmit) return -EPERM;
            return is_there ? 0 : -EINVAL;
        case KMES_SOCKET_EMITTERS:
            return facts_->serves == Serves::kEmit ? -EPERM : 0;
        case KMES_SOCKET_EMIT:
        case KMES_SOCKET_EMIT_BATCH:
            if (facts_->serves == Serves::kAttach) return -EPERM;
            if (facts_->producer->emitters() == EmitterMode::kSingle) return -EOPNOTSUPP;
            if (!packet.fds.empty() && !packet.is_memory_file) return -EPROTO;
            return kErrorDependsOnTheBody;
        default:
            return -EPROTO;
    }
}

void SocketPeer::check(const SentPacket& packet, const kmes_socket_reply& reply) {
    const std::uint32_t operation = packet.request().operation;
    // The server had no free worker (-EBUSY) or no room for replies (-EMFILE).
    const int late_error = !packet.fds.empty() ? -EBUSY : is_attach(operation) ? -EMFILE : 0;
    const bool is_late = late_error && reply.error == late_error && facts_->has_time_passed;
    const int expected = is_late ? late_error : expected_error(packet);

    expect_equal(reply.magic, KMES_SOCKET_MAGIC, "the magic of a reply");
    expect_equal(reply.cpus, facts_->producer->cpus(), "the CPUs of a reply");
    expect_equal(reply.session, facts_->producer->session(), "the session of a reply");
    expect(reply.error <= 0 && reply.error >= kLeastError,
           "the error of a reply is 0 or a negative errno");
    if (expected != kErrorDependsOnTheBody)
        expect_equal(reply.error, expected, "the error of a reply");
    if (reply.error == -EPROTO || is_late) is_over_ = true;
    if (reply.error) {
        expect_equal(reply.count, 0u, "CPUs in a reply with an error");
        expect_equal(received_.size(), 0u, "descriptors of a reply with an error");
        expect_equal(reply.capacity, 0u, "the capacity in a reply with an error");
    }
    if (!reply.error && is_attach(operation)) check_attach(packet, reply);
    if (!reply.error && operation == KMES_SOCKET_IDENTIFY) check_identify(packet, reply);
    if (!is_attach(operation) || reply.error)
        expect_equal(received_.size(), 0u, "descriptors of a reply that has none");
    if (operation != KMES_SOCKET_EMIT_BATCH && operation != KMES_SOCKET_IDENTIFY &&
        !is_lease(operation))
        expect_equal(reply.emitted, 0u, "emitted");
    if (expected != kErrorDependsOnTheBody) return;
    if (operation == KMES_SOCKET_EMIT) check_emit(packet, reply);
    if (operation == KMES_SOCKET_EMIT_BATCH) check_batch(packet, reply);
}

void SocketPeer::check_attach(const SentPacket& packet, const kmes_socket_reply& reply) {
    const kmes_socket_request request = packet.request();
    const bool is_all = request.cpu == KMES_SOCKET_ALL_CPUS;

    expect_equal(reply.first, is_all ? 0 : request.cpu, "the first CPU of a reply");
    expect_equal(reply.count, is_all ? facts_->producer->cpus() : 1, "the CPUs in a reply");
    expect_equal(received_.size(), 2 * reply.count, "the descriptors of a reply");
    is_lease_ = is_lease(request.operation);
    expect_equal(reply.emitted, is_lease_ ? 1u : 0u, "emitted, of a lease");
    for (std::uint32_t i = 0; i < reply.count; ++i) {
        struct stat status = {};

        expect_equal(
            kmes_check_buffer_files(received_[2 * i], received_[2 * i + 1], reply.capacity), 0,
            "what a consumer says of the files");
        expect_equal(fstat(received_[2 * i + 1], &status), 0, "the result of fstat");
        expect_equal(static_cast<std::uint64_t>(status.st_size), reply.capacity,
                     "the length of the data");
    }
}

void SocketPeer::check_identify(const SentPacket& packet, const kmes_socket_reply& reply) const {
    Attachment now;

    expect_equal(facts_->producer->inspect(packet.request().cpu, &now), 0, "the result of inspect");
    expect_equal(reply.device, now.buffers[0]->device(), "the device");
    const std::uint64_t next = reply.first | std::uint64_t{reply.emitted} << 32;

    expect(next >= 1 && next <= facts_->producer->next_sequence(packet.request().cpu),
           "the number of the next event");
    // A resize may have happened since the reply was sent.
    if (!facts_->has_time_passed && now.buffers[0]->inode() != reply.inode)
        expect(now.buffers[0]->buffer()->generation > 1, "the inode is that of the buffer");
}

// The current bytes of the body's file. If the body does not change, these are the bytes that were
// served.
bool SocketPeer::body_bytes(const SentPacket& packet, std::uint64_t offset, std::uint64_t bytes,
                            std::string* text) const {
    const std::string_view inside = packet.body();

    text->clear();
    if (packet.fds.empty()) {
        if (offset > inside.size() || bytes > inside.size() - offset) return false;
        *text = inside.substr(offset, bytes);
        return true;
    }
    if (bytes > facts_->max_event_bytes || offset >> 62) return false;
    text->resize(bytes);
    return pread(packet.fds[0], text->data(), bytes, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(bytes);
}

void SocketPeer::check_emit(const SentPacket& packet, const kmes_socket_reply& reply) {
    const kmes_socket_request request = packet.request();
    const std::uint64_t payload_bytes = request.body_bytes - request.type_len;
    RingEvent event;
    bool is_right =
        request.type_len > 0 &&
        KMES_EVENT_FIXED_BYTES + std::uint64_t{request.body_bytes} <= facts_->max_event_bytes;

    expect(reply.error == 0 || reply.error == -EINVAL || reply.error == -ENOSPC ||
               (!packet.fds.empty() && (reply.error == -EPROTO || reply.error == -EFAULT)),
           "the error of an emit is documented");
    if (!packet.is_body_known) {
        if (!reply.error) facts_->log->claim_unknown(1);
        return;
    }
    is_right = is_right && body_bytes(packet, 0, request.type_len, &event.type) &&
               kmes_utf8_is_valid(event.type.data(), event.type.size()) &&
               body_bytes(packet, request.type_len, payload_bytes, &event.payload);
    expect_equal(reply.error == 0, is_right, "whether an event was emitted");
    if (!reply.error) facts_->log->claim(event);
}

void SocketPeer::check_batch(const SentPacket& packet, const kmes_socket_reply& reply) {
    const kmes_socket_request request = packet.request();
    const bool is_possible = request.count > 0 && request.count <= KMES_BATCH_MAX_ENTRIES;

    expect(reply.error == 0 || reply.error == -EINVAL || reply.error == -ENOSPC ||
               reply.error == -EFAULT || reply.error == -EPROTO,
           "the error of a batch is documented");
    if (!is_possible) expect(reply.error != 0, "a batch of so many entries fails");
    if (reply.error)
        expect(reply.emitted == 0 || (is_possible && reply.emitted < request.count),
               "a batch that fails has not emitted all");
    else
        expect_equal(reply.emitted, request.count, "emitted, of a batch");
    if (!packet.is_body_known) return facts_->log->claim_unknown(reply.emitted);
    for (std::uint32_t i = 0; i < reply.emitted; ++i) {
        kmes_emit_entry entry = {};
        std::string text;
        RingEvent event;

        expect(body_bytes(packet, request.body_bytes + i * sizeof(entry), sizeof(entry), &text),
               "an entry that was emitted is there");
        std::memcpy(&entry, text.data(), sizeof(entry));
        expect(
            body_bytes(packet, reinterpret_cast<std::uint64_t>(entry.type), entry.type_len,
                       &event.type) &&
                body_bytes(packet,
                           entry.payload_len ? reinterpret_cast<std::uint64_t>(entry.payload) : 0,
                           entry.payload_len, &event.payload),
            "an event that was emitted was there");
        facts_->log->claim(event);
    }
}

}  // namespace kmes::fuzz
