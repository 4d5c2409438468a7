// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// One connection of a producer's socket. See socket_connection.h.
#include "kmes/user/socket_connection.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
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

// A body that was passed as a file. Memory files only: to read one does not wait for anybody. It is
// read, not mapped: its owner may cut it off meanwhile.
int read_body(int fd, std::vector<std::byte>* body, size_t bytes) {
    size_t done = 0;

    if (fcntl(fd, F_GET_SEALS) < 0) return -EPROTO;
    body->resize(bytes);
    while (done < bytes) {
        ssize_t got = pread(fd, body->data() + done, bytes - done, static_cast<off_t>(done));

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -EPROTO;
        done += static_cast<size_t>(got);
    }
    return 0;
}

bool is_well_formed(const struct kmes_socket_request& request, size_t body_bytes, size_t fds) {
    if (request.magic != KMES_SOCKET_MAGIC || request.reserved != 0) return false;
    if (request.operation != KMES_SOCKET_EMIT)
        return request.body_bytes == 0 && request.type_len == 0 && body_bytes == 0 && fds == 0;
    if (request.type_len > request.body_bytes) return false;
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

// The origin class is that of userspace, whatever the client would like (event-model.md).
void SocketConnection::serve_emit(const struct kmes_socket_request& request,
                                  std::span<const std::byte> body, int body_fd) {
    std::vector<std::byte> passed;
    int error = 0;

    // The emitters of such a producer have no lock, and this thread is not one of them.
    if (producer_->emitters() == EmitterMode::kSingle) return reply(-EOPNOTSUPP);
    if (request.body_bytes > KMES_CONFIG_EVENT_MAX_BYTES) return reply(-ENOSPC);
    if (body_fd >= 0) {
        error = read_body(body_fd, &passed, request.body_bytes);
        if (error) return reply_and_close(error);
        body = passed;
    }
    std::string_view type(reinterpret_cast<const char*>(body.data()), request.type_len);

    reply(producer_->emit(request.cpu % producer_->cpus(), type, body.subspan(request.type_len)));
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
