// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A client of a producer's socket that can send anything. For tests only.
#ifndef KMES_USER_RAW_CLIENT_H
#define KMES_USER_RAW_CLIENT_H

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {

class RawClient {
  public:
    explicit RawClient(const std::string& address) {
        struct sockaddr_un name;
        socklen_t length;
        // A limit for a client that hangs, not a measurement.
        struct timeval limit = {static_cast<time_t>(patience_ns() / 1000000000), 0};

        EXPECT_EQ(0, kmes_socket_address(address.c_str(), &name, &length));
        fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        EXPECT_EQ(0, connect(fd_, reinterpret_cast<struct sockaddr*>(&name), length));
    }
    ~RawClient() { close(fd_); }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    bool send_bytes(const void* bytes, size_t length, const std::vector<int>& fds = {}) {
        struct iovec piece = {const_cast<void*>(bytes), length};
        struct msghdr message = {};
        alignas(struct cmsghdr) char room[CMSG_SPACE(253 * sizeof(int))] = {};

        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        if (!fds.empty()) {
            message.msg_control = room;
            message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
            struct cmsghdr* part = CMSG_FIRSTHDR(&message);

            part->cmsg_level = SOL_SOCKET;
            part->cmsg_type = SCM_RIGHTS;
            part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
            std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
        }
        return sendmsg(fd_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(length);
    }

    bool ask(uint32_t operation, uint32_t cpu) {
        struct kmes_socket_request request = {KMES_SOCKET_MAGIC, operation, cpu, 0, 0, 0};

        return send_bytes(&request, sizeof(request));
    }

    // True if there is something to receive.
    bool has_reply() const {
        char byte;

        return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    }

    // True if the server has received all bytes that were sent.
    bool is_received() const {
        int bytes = -1;

        return ioctl(fd_, SIOCOUTQ, &bytes) == 0 && bytes == 0;
    }

    // Returns the error of the reply, and the number of descriptors that came, which are closed. 1:
    // no reply came, the connection is over.
    int reply(size_t* descriptors = nullptr, struct kmes_socket_reply* whole = nullptr) {
        struct kmes_socket_reply reply;
        alignas(struct cmsghdr) char room[CMSG_SPACE(253 * sizeof(int))];
        struct iovec piece = {&reply, sizeof(reply)};
        struct msghdr message = {};
        size_t count = 0;

        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = room;
        message.msg_controllen = sizeof(room);
        ssize_t got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);

        if (got <= 0) return errno == EAGAIN && got < 0 ? 2 : 1;
        for (struct cmsghdr* part = CMSG_FIRSTHDR(&message); part;
             part = CMSG_NXTHDR(&message, part)) {
            count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < count; i++) {
                int fd;

                std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
                close(fd);
            }
        }
        if (descriptors) *descriptors = count;
        if (whole) *whole = reply;
        return reply.error;
    }

  private:
    int fd_ = -1;
};

}  // namespace kmes

#endif
