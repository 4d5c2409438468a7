// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// One connection of a producer's socket. See socket_connection.h.
#include "kmes/user/socket_connection.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

namespace kmes {
namespace {

// True for memory files, because a read of them never blocks. A hole reads as zeros, without the
// userfaultfd of any mapping, and the read takes no lock of the file.
bool is_memory_file(int fd, uint64_t at_least_bytes) {
    struct stat status = {};

    return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &status) == 0 &&
           static_cast<uint64_t>(status.st_size) >= at_least_bytes;
}

uint64_t event_bytes_of(uint64_t type_len, uint64_t payload_len) {
    return KMES_EVENT_FIXED_BYTES + type_len + payload_len;
}

// The body of a request as the memory of the caller: an address is an offset in it. kmes/call.h
// assumes that the caller's memory may change at any time. The same holds for a file: its owner may
// write to it and truncate it meanwhile. So the file is read, and not mapped.
class Body {
  public:
    explicit Body(std::span<const std::byte> bytes) : bytes_(bytes) {}
    // The entries of a batch begin at `entries_offset`.
    Body(int fd, const ProducerGate* gate, uint64_t entries_offset = UINT64_MAX)
        : fd_(fd), gate_(gate), next_entry_(entries_offset) {}

    CallerMemory memory() { return {fetch, this}; }
    // Bytes of the first `count` events of a batch that was emitted.
    uint64_t event_bytes(size_t count) const {
        return std::accumulate(event_bytes_.begin(), event_bytes_.begin() + count, uint64_t{0});
    }
    static const void* address(uint64_t offset) { return reinterpret_cast<const void*>(offset); }

  private:
    static int fetch(void* context, void* to, const void* from, __u64 bytes) {
        const auto* self = static_cast<const Body*>(context);
        const auto offset = reinterpret_cast<uint64_t>(from);

        return self->fd_ < 0 ? self->fetch_inline(to, offset, bytes)
                             : self->fetch_file(static_cast<char*>(to), offset, bytes);
    }

    int fetch_inline(void* to, uint64_t offset, uint64_t bytes) const {
        if (offset > bytes_.size() || bytes > bytes_.size() - offset) return -EFAULT;
        std::memcpy(to, bytes_.data() + offset, bytes);
        return 0;
    }

    int fetch_file(char* to, uint64_t offset, uint64_t bytes) const {
        for (uint64_t done = 0; done < bytes;) {
            uint64_t piece = std::min<uint64_t>(bytes - done, kPieceBytes);

            if (gate_->is_cancelled()) return -EFAULT;
            ssize_t got = pread(fd_, to + done, piece, static_cast<off_t>(offset + done));

            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return -EFAULT;
            done += static_cast<uint64_t>(got);
        }
        if (offset == next_entry_) note_entry(to, bytes);
        return 0;
    }

    // The entries are fetched in their order, each once.
    void note_entry(const char* bytes, uint64_t count) const {
        struct kmes_emit_entry entry;

        if (count != sizeof(entry) || entries_ == event_bytes_.size()) return;
        std::memcpy(&entry, bytes, sizeof(entry));
        event_bytes_[entries_++] = event_bytes_of(entry.type_len, entry.payload_len);
        next_entry_ += sizeof(entry);
    }

    static constexpr uint64_t kPieceBytes = 256 << 10;  // between two checks of the gate

    std::span<const std::byte> bytes_;
    int fd_ = -1;
    const ProducerGate* gate_ = nullptr;
    mutable uint64_t next_entry_ = UINT64_MAX;
    mutable size_t entries_ = 0;
    mutable std::array<uint64_t, KMES_BATCH_MAX_ENTRIES> event_bytes_ = {};
};

constexpr size_t kCredentialsRoom = CMSG_SPACE(sizeof(struct ucred));

bool is_well_formed(const struct kmes_socket_request& request, size_t body_bytes, size_t fds) {
    if (request.magic != KMES_SOCKET_MAGIC) return false;
    if (request.operation == KMES_SOCKET_EMIT_BATCH)
        return request.type_len == 0 && body_bytes == 0 && fds == 1;
    if (request.count != 0) return false;
    if (request.operation != KMES_SOCKET_EMIT)
        return request.body_bytes == 0 && request.type_len == 0 && body_bytes == 0 && fds == 0;
    if (request.type_len > request.body_bytes || request.type_len > UINT16_MAX) return false;
    return fds == 0 ? request.body_bytes == body_bytes : fds == 1 && body_bytes == 0;
}

}  // namespace

// A request, and the descriptors that came with it, which the destructor closes. More than one
// descriptor is malformed. The kernel does not install descriptors past the room for two.
class SocketConnection::Received {
  public:
    Received() = default;
    ~Received() {
        for (size_t i = 0; i < count_; i++) close(fds_[i]);
    }
    Received(const Received&) = delete;
    Received& operator=(const Received&) = delete;

    // Returns the bytes, 0 for the end of the connection, or a negative error number.
    ssize_t take(int fd, std::vector<std::byte>* scratch) {
        struct iovec piece = {scratch->data(), scratch->size()};
        struct msghdr message = {};

        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = room_;
        message.msg_controllen = sizeof(room_);
        bytes_ = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (bytes_ < 0) {
            bytes_ = 0;
            return -errno;
        }
        collect(&message);
        // The kernel also cuts descriptors off if this process may open no more.
        lacks_descriptors_ = message.msg_flags & MSG_CTRUNC && count_ < kMax;
        is_cut_ = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
        return bytes_;
    }

    bool is_cut() const { return is_cut_; }
    // A descriptor did not arrive, because this process may open no more.
    bool lacks_descriptors() const { return lacks_descriptors_; }
    size_t bytes() const { return static_cast<size_t>(bytes_); }
    size_t count() const { return count_; }
    int first() const { return count_ ? fds_[0] : -1; }

  private:
    static constexpr size_t kMax = 2;

    void collect(struct msghdr* message) {
        for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part;
             part = CMSG_NXTHDR(message, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
            size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            for (size_t i = 0; i < count && count_ < kMax; i++)
                std::memcpy(&fds_[count_++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        }
    }

    alignas(struct cmsghdr) char room_[kCredentialsRoom + CMSG_SPACE(kMax * sizeof(int))] = {};
    int fds_[kMax] = {};
    size_t count_ = 0;
    ssize_t bytes_ = 0;
    bool is_cut_ = false;
    bool lacks_descriptors_ = false;
};

SocketConnection::SocketConnection(ProducerGate* gate, KeptFd fd, Serves serves, uint64_t now_ms)
    : gate_(gate), fd_(std::move(fd)), serves_(serves), last_active_ms_(now_ms) {
    struct ucred peer = {};
    socklen_t length = sizeof(peer);
    const int yes = 1;

    setsockopt(fd_.number(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));  // for peek()
    if (getsockopt(fd_.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) {
        peer_ = peer.pid;
        user_ = peer.uid;
    }
}

bool SocketConnection::has_gone() const {
    struct pollfd state = {fd_.get(), 0, 0};

    if (has_reply_ || state.fd < 0) return true;
    return poll(&state, 1, 0) == 1 && state.revents & (POLLHUP | POLLERR);
}

short SocketConnection::wanted_events() const {
    if (is_delayed_) return 0;  // poll reports the end of the client nevertheless
    return has_reply_ ? POLLOUT : POLLIN;
}

SocketConnection::Step SocketConnection::on_ready(short events, std::vector<std::byte>* scratch,
                                                  uint64_t now_ms) {
    const int fd = fd_.get();

    if (events & (POLLERR | POLLNVAL) || fd < 0) return Step::kOver;
    if (is_delayed_) return events & POLLHUP ? Step::kOver : Step::kGoesOn;
    if (!has_reply_ && (events & (POLLIN | POLLHUP))) {
        Received received;
        struct kmes_socket_request request = {};

        // receive() ends it too. But a worker would also close it, and its unread descriptors would
        // be forgotten.
        if (unread_descriptors(fd) > 0) return Step::kOver;
        if (peek(fd, &request) == Next::kDescriptors || may_wait(request)) return Step::kMayWait;
        if (!receive(fd, &received, scratch)) return Step::kOver;
        if (received.bytes()) handle(received, {scratch->data(), received.bytes()});
    }
    last_active_ms_ = now_ms;
    return send_reply(fd) ? Step::kGoesOn : Step::kOver;
}

bool SocketConnection::receive_by_worker(std::vector<std::byte>* scratch, uint64_t now_ms) {
    Received received;
    bool goes_on = receive(fd_.get(), &received, scratch);  // its destructor can block

    if (!goes_on || !gate_->enter()) return false;
    try {
        if (received.bytes()) handle(received, {scratch->data(), received.bytes()});
        goes_on = send_reply(fd_.get());  // checked again: the worker may have waited
    } catch (const std::bad_alloc&) {
        goes_on = false;
    }
    last_active_ms_ = now_ms;
    gate_->leave();
    return goes_on;
}

// Peeks at the next packet without receiving its descriptors, for which there is no room. The
// credentials of SO_PASSCRED distinguish an empty packet from the end of the connection. `request`:
// its first bytes.
SocketConnection::Next SocketConnection::peek(int fd, struct kmes_socket_request* request) {
    alignas(struct cmsghdr) char room[kCredentialsRoom] = {};
    struct iovec piece = {request, sizeof(*request)};
    struct msghdr message = {};
    ssize_t got;

    do {
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_PEEK);
        // A peer that closes with our reply unread leaves ECONNRESET, which comes once, and before
        // the packets that it has sent.
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0) return Next::kNothing;
    if (message.msg_flags & MSG_CTRUNC) return Next::kDescriptors;
    return got > 0 || CMSG_FIRSTHDR(&message) ? Next::kPlain : Next::kNothing;
}

// While an emitter has an open reservation, an emission to its CPU waits. An attach does not.
bool SocketConnection::may_wait(const struct kmes_socket_request& request) const {
    const Producer* producer = gate_->producer();

    return request.magic == KMES_SOCKET_MAGIC && request.operation == KMES_SOCKET_EMIT &&
           has_privilege(request.operation) && !is_lease() &&
           producer->is_held_long(request.cpu % producer->cpus());
}

void SocketConnection::refuse_unread(int error) {
    reply_and_close(error);
    send_reply(fd_.get());
}

// After shutdown no packet can come any more.
bool SocketConnection::close_if_empty() {
    const int fd = fd_.get();
    struct kmes_socket_request first;

    shutdown(fd, SHUT_RDWR);
    for (;;) {
        Next next = peek(fd, &first);

        if (next == Next::kDescriptors) return false;
        if (next == Next::kNothing) break;
        recv(fd, &first, 1, MSG_DONTWAIT);
    }
    fd_.close();
    return true;
}

size_t SocketConnection::unread_descriptors() {
    return sent_descriptors_ > 0 ? unread_descriptors(fd_.get()) : 0;
}

size_t SocketConnection::unread_descriptors(int fd) {
    if (sent_descriptors_ > 0 && !is_waiting_to_be_read(fd)) sent_descriptors_ = 0;
    return sent_descriptors_;
}

size_t SocketConnection::delayed_descriptors() const {
    return is_delayed_ ? 2 * attachment_.buffers.size() : 0;
}

bool SocketConnection::send_delayed(uint64_t now_ms) {
    is_delayed_ = false;
    last_active_ms_ = now_ms;
    return send_reply(fd_.get());
}

void SocketConnection::refuse_delayed(int error) {
    is_delayed_ = false;
    refuse_unread(error);
}

void SocketConnection::refuse_requests() const {
    shutdown(fd_.get(), SHUT_RD);
}

void SocketConnection::abandon() {
    shutdown(fd_.get(), SHUT_RDWR);
    attachment_ = Attachment();
    emitters_.clear();
}

// Replies that their client does not read would accumulate in the socket, with descriptors in
// flight (unread_shares.h).
bool SocketConnection::is_waiting_to_be_read(int fd) {
    int bytes = 0;

    if (fd < 0) return false;
    return ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes != 0;
}

// False: over, without a reply. A request of 0 bytes: none was there.
bool SocketConnection::receive(int fd, Received* received, std::vector<std::byte>* scratch) {
    ssize_t got = received->take(fd, scratch);

    if (got < 0) return got == -EAGAIN || got == -EINTR;
    return got != 0 && !is_waiting_to_be_read(fd);
}

void SocketConnection::handle(const Received& received, std::span<const std::byte> packet) {
    struct kmes_socket_request request;

    if (received.lacks_descriptors()) return reply_and_close(-EMFILE);
    if (received.is_cut() || packet.size() < sizeof(request)) return reply_and_close(-EPROTO);
    std::memcpy(&request, packet.data(), sizeof(request));
    std::span<const std::byte> body = packet.subspan(sizeof(request));

    if (!is_well_formed(request, body.size(), received.count())) return reply_and_close(-EPROTO);
    serve(request, body, received.first());
}

// An unknown operation needs no privilege: serve() rejects it.
bool SocketConnection::has_privilege(uint32_t operation) const {
    switch (operation) {
        case KMES_SOCKET_ATTACH:
        case KMES_SOCKET_LEASE:
        case KMES_SOCKET_LEASE_WITH_MEMBARRIER:
        case KMES_SOCKET_IDENTIFY:
        case KMES_SOCKET_EMITTERS:
            return serves_ != Serves::kEmit;
        case KMES_SOCKET_EMIT:
        case KMES_SOCKET_EMIT_BATCH:
            return serves_ != Serves::kAttach;
        default:
            return true;
    }
}

void SocketConnection::serve(const struct kmes_socket_request& request,
                             std::span<const std::byte> body, int body_fd) {
    if (is_lease()) return reply_and_close(-EPROTO);
    if (!has_privilege(request.operation)) {
        if (serves_ == Serves::kAttach) count(-EPERM, 0, 0);  // it wants to emit
        return reply(-EPERM);
    }
    switch (request.operation) {
        case KMES_SOCKET_ATTACH:
            return serve_attach(request.cpu, Promise::kNone);
        case KMES_SOCKET_LEASE:
            return serve_lease(request.cpu, Promise::kNone);
        case KMES_SOCKET_LEASE_WITH_MEMBARRIER:
            return serve_lease(request.cpu, Promise::kMembarrier);
        case KMES_SOCKET_IDENTIFY:
            return serve_identify(request.cpu);
        case KMES_SOCKET_EMITTERS:
            return serve_emitters();
        case KMES_SOCKET_EMIT:
            return serve_emit(request, body, body_fd);
        case KMES_SOCKET_EMIT_BATCH:
            return serve_emit_batch(request, body_fd);
        default:
            return reply_and_close(-EPROTO);
    }
}

void SocketConnection::reply(int error) {
    const Producer* producer = gate_->producer();

    reply_ = {};
    reply_.magic = KMES_SOCKET_MAGIC;
    reply_.error = error;
    reply_.cpus = producer->cpus();
    reply_.session = producer->session();
    reply_.capacity = error ? 0 : attachment_.capacity_bytes;
    if (error) attachment_ = Attachment();
    sent_ = 0;
    has_reply_ = true;
}

void SocketConnection::reply_and_close(int error) {
    reply(error);
    closes_ = true;
}

void SocketConnection::serve_attach(uint32_t cpu, Promise promise) {
    const Producer* producer = gate_->producer();
    bool is_all = cpu == KMES_SOCKET_ALL_CPUS;

    first_cpu_ = is_all ? 0 : cpu;
    reply(is_all ? producer->attach(&attachment_, promise)
                 : producer->attach(cpu, &attachment_, promise));
    reply_.emitted = attachment_.needs_barrier ? KMES_SOCKET_NEEDS_BARRIER : 0;
    is_delayed_ = !attachment_.buffers.empty();
}

void SocketConnection::serve_lease(uint32_t cpu, Promise promise) {
    const Producer* producer = gate_->producer();
    bool is_all = cpu == KMES_SOCKET_ALL_CPUS;

    if (!may_lease_) return serve_attach(cpu, promise);
    leases_.reserve(is_all ? producer->cpus() : 1);
    first_cpu_ = is_all ? 0 : cpu;
    reply(is_all ? producer->lease(&attachment_, promise)
                 : producer->lease(cpu, &attachment_, promise));
    for (const BufferHandle& buffer : attachment_.buffers) leases_.push_back(buffer->inode());
    reply_.emitted = (is_lease() ? KMES_SOCKET_IS_LEASE : 0) |
                     (attachment_.needs_barrier ? KMES_SOCKET_NEEDS_BARRIER : 0);
    is_delayed_ = !attachment_.buffers.empty();
}

void SocketConnection::end_leases() {
    for (size_t i = 0; i < leases_.size(); i++)
        gate_->producer()->end_lease(first_cpu_ + static_cast<unsigned>(i), leases_[i]);
    leases_.clear();
}

void SocketConnection::serve_identify(uint32_t cpu) {
    int error = gate_->producer()->inspect(cpu, &attachment_);
    const uint64_t next = error ? 0 : gate_->producer()->next_sequence(cpu);

    reply(error);
    if (error) return;
    reply_.device = attachment_.buffers[0]->device();
    reply_.inode = attachment_.buffers[0]->inode();
    reply_.first = static_cast<__u32>(next);
    reply_.emitted = static_cast<__u32>(next >> 32);
    attachment_ = Attachment();
}

void SocketConnection::serve_emitters() {
    emitters_.clear();
    for (const EmitterCount& count : gate_->producer()->emitter_counts()->snapshot())
        emitters_.push_back({static_cast<__u32>(count.process), count.user, count.emitters,
                             count.events, count.bytes, count.refused});
    reply(0);
}

void SocketConnection::count(int error, uint64_t events, uint64_t bytes) const {
    gate_->producer()->emitter_counts()->add({peer_, user_, 1, events, bytes, error != 0});
}

// The client does not cause a fetch to fail that the end of the server cuts off.
int SocketConnection::cut_off(int error) const {
    return error == -EFAULT && gate_->is_cancelled() ? -ESHUTDOWN : error;
}

// The server's thread does not emit to a producer without locks: it is not one of the emitters.
void SocketConnection::serve_emit(const struct kmes_socket_request& request,
                                  std::span<const std::byte> bytes, int body_fd) {
    Producer* producer = gate_->producer();
    Body body = body_fd < 0 ? Body(bytes) : Body(body_fd, gate_);

    if (producer->emitters() == EmitterMode::kSingle) return reply(-EOPNOTSUPP);
    if (body_fd >= 0 && !is_memory_file(body_fd, request.body_bytes))
        return reply_and_close(-EPROTO);
    const uint32_t payload_len = request.body_bytes - request.type_len;
    const int error = cut_off(producer->serve_emit(
        request.cpu % producer->cpus(), body.memory(), Body::address(0),
        static_cast<uint16_t>(request.type_len), Body::address(request.type_len), payload_len));

    count(error, error ? 0 : 1, error ? 0 : event_bytes_of(request.type_len, payload_len));
    reply(error);
}

// An entry that is not in the file is one that the client could not read (batch_file.c). A worker
// reads the bytes, at most 256 times MaxEventSize; the other connections continue.
void SocketConnection::serve_emit_batch(const struct kmes_socket_request& request, int body_fd) {
    Producer* producer = gate_->producer();
    Body body(body_fd, gate_, request.body_bytes);
    uint32_t emitted = 0;

    if (producer->emitters() == EmitterMode::kSingle) return reply(-EOPNOTSUPP);
    if (!is_memory_file(body_fd, request.body_bytes)) return reply_and_close(-EPROTO);
    const int error = cut_off(producer->serve_emit_batch(
        request.cpu % producer->cpus(), body.memory(),
        static_cast<const struct kmes_emit_entry*>(Body::address(request.body_bytes)),
        request.count, &emitted));

    count(error, emitted, body.event_bytes(emitted));
    reply(error);
    reply_.emitted = emitted;
}

// Sends the next packet of a reply; an attach may need several. Returns 0 or a negative error
// number.
int SocketConnection::send_packet(int fd) {
    const size_t count =
        std::min<size_t>(attachment_.buffers.size() - sent_, KMES_SOCKET_CPUS_PER_PACKET);
    alignas(struct cmsghdr) char room[CMSG_SPACE(2 * KMES_SOCKET_CPUS_PER_PACKET * sizeof(int))];
    struct iovec pieces[] = {
        {&reply_, sizeof(reply_)},
        {emitters_.data(), emitters_.size() * sizeof(struct kmes_socket_emitter)}};
    struct msghdr message = {};

    if (count) reply_.first = first_cpu_ + static_cast<uint32_t>(sent_);
    reply_.count = static_cast<uint32_t>(count + emitters_.size());
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    if (count) {
        std::memset(room, 0, sizeof(room));
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(2 * count * sizeof(int));
        struct cmsghdr* part = CMSG_FIRSTHDR(&message);

        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(2 * count * sizeof(int));
        for (size_t i = 0; i < count; i++) {
            const BufferMemory& memory = *attachment_.buffers[sent_ + i];
            const int pair[2] = {memory.metadata_fd(), memory.data_fd()};

            std::memcpy(CMSG_DATA(part) + i * sizeof(pair), pair, sizeof(pair));
        }
    }
    if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return -errno;
    sent_ += count;
    sent_descriptors_ += 2 * count;
    return 0;
}

// False: over. If a reply cannot be sent whole, an error is sent. If that also fails, the
// connection is over.
bool SocketConnection::send_reply(int fd) {
    if (!has_reply_ || is_delayed_) return true;
    for (;;) {
        int error = send_packet(fd);

        if (error == -EAGAIN || error == -EINTR) return true;
        if (error && closes_) return false;
        if (error) {
            // ETOOMANYREFS: this user has too many descriptors in flight.
            emitters_.clear();
            reply_and_close(error == -ETOOMANYREFS ? -EMFILE : error);
            continue;
        }
        if (sent_ < attachment_.buffers.size()) continue;
        attachment_ = Attachment();
        emitters_.clear();
        has_reply_ = false;
        return !closes_;
    }
}

}  // namespace kmes
