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
#include <cerrno>
#include <cstring>
#include <utility>

namespace kmes {
namespace {

// Descriptors that came with a request; all are closed at its end. More than one is nonsense, and
// what does not fit into the room for two the kernel does not install.
class ReceivedDescriptors {
  public:
    ReceivedDescriptors() = default;
    ~ReceivedDescriptors() {
        for (size_t i = 0; i < count_; i++) close(fds_[i]);
    }
    ReceivedDescriptors(const ReceivedDescriptors&) = delete;
    ReceivedDescriptors& operator=(const ReceivedDescriptors&) = delete;

    void prepare(struct msghdr* message) {
        message->msg_control = room_;
        message->msg_controllen = sizeof(room_);
    }

    void collect(struct msghdr* message) {
        for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part;
             part = CMSG_NXTHDR(message, part)) {
            if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
            size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            for (size_t i = 0; i < count && count_ < kMax; i++)
                std::memcpy(&fds_[count_++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        }
    }

    size_t count() const { return count_; }
    int first() const { return count_ ? fds_[0] : -1; }

  private:
    static constexpr size_t kMax = 2;

    alignas(struct cmsghdr) char room_[CMSG_SPACE(kMax * sizeof(int))] = {};
    int fds_[kMax] = {};
    size_t count_ = 0;
};

// Memory files only: to read one does not wait for anybody.
bool is_memory_file(int fd, uint64_t at_least_bytes) {
    struct stat status = {};

    return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &status) == 0 &&
           static_cast<uint64_t>(status.st_size) >= at_least_bytes;
}

// What came with a request, as the memory of the caller: an address is an offset in it. What
// kmes/call.h makes of a caller whose memory changes under its hands holds for a file, too, which
// its owner may write to and cut off meanwhile; so it is read, and not mapped.
class Body {
  public:
    explicit Body(std::span<const std::byte> bytes) : bytes_(bytes) {}
    explicit Body(int fd) : fd_(fd) {}

    CallerMemory memory() { return {fetch, this}; }
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
            ssize_t got = pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));

            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return -EFAULT;
            done += static_cast<uint64_t>(got);
        }
        return 0;
    }

    std::span<const std::byte> bytes_;
    int fd_ = -1;
};

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

SocketConnection::SocketConnection(Producer* producer, int fd, uint64_t now_ms)
    : producer_(producer), fd_(fd), last_active_ms_(now_ms) {}

SocketConnection::~SocketConnection() {
    if (fd_ >= 0) close(fd_);
}

SocketConnection::SocketConnection(SocketConnection&& other) noexcept {
    *this = std::move(other);
}

SocketConnection& SocketConnection::operator=(SocketConnection&& other) noexcept {
    std::swap(producer_, other.producer_);
    std::swap(fd_, other.fd_);
    std::swap(last_active_ms_, other.last_active_ms_);
    std::swap(closes_, other.closes_);
    std::swap(has_reply_, other.has_reply_);
    std::swap(first_cpu_, other.first_cpu_);
    std::swap(sent_, other.sent_);
    std::swap(reply_, other.reply_);
    std::swap(attachment_, other.attachment_);
    return *this;
}

short SocketConnection::wanted_events() const {
    return has_reply_ ? POLLOUT : POLLIN;
}

bool SocketConnection::on_ready(short events, std::vector<std::byte>* scratch, uint64_t now_ms) {
    if (events & (POLLERR | POLLNVAL)) return false;
    if (!has_reply_ && (events & (POLLIN | POLLHUP)) && !receive(scratch)) return false;
    last_active_ms_ = now_ms;
    return !has_reply_ || send_reply();
}

// Replies that their client does not read would pile up in the socket, and with them descriptors
// on their way, of which a user has so many.
bool SocketConnection::is_waiting_to_be_read() const {
    int bytes = 0;

    return ioctl(fd_, SIOCOUTQ, &bytes) != 0 || bytes != 0;
}

// False: over, with nothing to say.
bool SocketConnection::receive(std::vector<std::byte>* scratch) {
    struct kmes_socket_request request;
    struct iovec piece = {scratch->data(), scratch->size()};
    struct msghdr message = {};
    ReceivedDescriptors descriptors;

    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    descriptors.prepare(&message);
    ssize_t got = recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got < 0) return errno == EAGAIN || errno == EINTR;
    descriptors.collect(&message);
    if (got == 0 || is_waiting_to_be_read()) return false;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
        static_cast<size_t>(got) < sizeof(request)) {
        reply_and_close(-EPROTO);
        return true;
    }
    std::memcpy(&request, scratch->data(), sizeof(request));
    std::span<const std::byte> body(scratch->data() + sizeof(request),
                                    static_cast<size_t>(got) - sizeof(request));

    if (is_well_formed(request, body.size(), descriptors.count()))
        serve(request, body, descriptors.first());
    else
        reply_and_close(-EPROTO);
    return true;
}

void SocketConnection::serve(const struct kmes_socket_request& request,
                             std::span<const std::byte> body, int body_fd) {
    switch (request.operation) {
        case KMES_SOCKET_ATTACH:
            return serve_attach(request.cpu);
        case KMES_SOCKET_IDENTIFY:
            return serve_identify(request.cpu);
        case KMES_SOCKET_EMIT:
            return serve_emit(request, body, body_fd);
        case KMES_SOCKET_EMIT_BATCH:
            return serve_emit_batch(request, body_fd);
        default:
            return reply_and_close(-EPROTO);
    }
}

void SocketConnection::reply(int error) {
    reply_ = {};
    reply_.magic = KMES_SOCKET_MAGIC;
    reply_.error = error;
    reply_.cpus = producer_->cpus();
    reply_.session = producer_->session();
    reply_.capacity = error ? 0 : attachment_.capacity_bytes;
    if (error) attachment_ = Attachment();
    sent_ = 0;
    has_reply_ = true;
}

void SocketConnection::reply_and_close(int error) {
    reply(error);
    closes_ = true;
}

void SocketConnection::serve_attach(uint32_t cpu) {
    bool is_all = cpu == KMES_SOCKET_ALL_CPUS;

    first_cpu_ = is_all ? 0 : cpu;
    reply(is_all ? producer_->attach(&attachment_) : producer_->attach(cpu, &attachment_));
}

void SocketConnection::serve_identify(uint32_t cpu) {
    int error = producer_->attach(cpu, &attachment_);

    reply(error);
    if (error) return;
    reply_.device = attachment_.buffers[0]->device();
    reply_.inode = attachment_.buffers[0]->inode();
    attachment_ = Attachment();
}

// The emitters of a producer without locks are not joined: this thread is not one of them.
void SocketConnection::serve_emit(const struct kmes_socket_request& request,
                                  std::span<const std::byte> bytes, int body_fd) {
    Body body = body_fd < 0 ? Body(bytes) : Body(body_fd);

    if (producer_->emitters() == EmitterMode::kSingle) return reply(-EOPNOTSUPP);
    if (body_fd >= 0 && !is_memory_file(body_fd, request.body_bytes))
        return reply_and_close(-EPROTO);
    reply(producer_->serve_emit(request.cpu % producer_->cpus(), body.memory(), Body::address(0),
                                static_cast<uint16_t>(request.type_len),
                                Body::address(request.type_len),
                                request.body_bytes - request.type_len));
}

// An entry that is not in the file is one that the client could not read (batch_file.c).
// The other connections wait meanwhile: for 256 times MaxEventSize bytes, at most.
void SocketConnection::serve_emit_batch(const struct kmes_socket_request& request, int body_fd) {
    Body body(body_fd);
    uint32_t emitted = 0;

    if (producer_->emitters() == EmitterMode::kSingle) return reply(-EOPNOTSUPP);
    if (!is_memory_file(body_fd, request.body_bytes)) return reply_and_close(-EPROTO);
    reply(producer_->serve_emit_batch(
        request.cpu % producer_->cpus(), body.memory(),
        static_cast<const struct kmes_emit_entry*>(Body::address(request.body_bytes)),
        request.count, &emitted));
    reply_.emitted = emitted;
}

// The next packet of a reply; an attach may need several. 0 or a negative error number.
int SocketConnection::send_packet() {
    const size_t count =
        std::min<size_t>(attachment_.buffers.size() - sent_, KMES_SOCKET_CPUS_PER_PACKET);
    alignas(struct cmsghdr) char room[CMSG_SPACE(2 * KMES_SOCKET_CPUS_PER_PACKET * sizeof(int))];
    struct iovec piece = {&reply_, sizeof(reply_)};
    struct msghdr message = {};

    reply_.first = first_cpu_ + static_cast<uint32_t>(sent_);
    reply_.count = static_cast<uint32_t>(count);
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
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
    if (sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return -errno;
    sent_ += count;
    return 0;
}

// False: over. What cannot be sent whole is said to have failed; what cannot even be said is over.
bool SocketConnection::send_reply() {
    for (;;) {
        int error = send_packet();

        if (error == -EAGAIN || error == -EINTR) return true;
        if (error && closes_) return false;
        if (error) {
            // ETOOMANYREFS: this user has too many descriptors on their way.
            reply_and_close(error == -ETOOMANYREFS ? -EMFILE : error);
            continue;
        }
        if (sent_ < attachment_.buffers.size()) continue;
        attachment_ = Attachment();
        has_reply_ = false;
        return !closes_;
    }
}

}  // namespace kmes
