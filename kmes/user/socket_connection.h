// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The producer's end of one connection (socket_protocol.h): takes a request, does it, sends the
// reply. Whoever is at the other end is hostile: nothing here waits for it, and what it can make
// the producer hold is bounded.
#ifndef KMES_USER_SOCKET_CONNECTION_H
#define KMES_USER_SOCKET_CONNECTION_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/socket_protocol.h"

namespace kmes {

class SocketConnection {
  public:
    // Takes `fd`, which does not block.
    SocketConnection(Producer* producer, int fd, uint64_t now_ms);
    ~SocketConnection();
    SocketConnection(SocketConnection&& other) noexcept;
    SocketConnection& operator=(SocketConnection&& other) noexcept;

    int fd() const { return fd_; }
    // What to poll for: one request at a time, and no request while a reply is not sent.
    short wanted_events() const;
    // The socket is ready. False: it is over, close it. `scratch` is for one call.
    bool on_ready(short events, std::vector<std::byte>* scratch, uint64_t now_ms);
    uint64_t last_active_ms() const { return last_active_ms_; }

    // Bytes that `scratch` must have: the longest packet.
    static constexpr size_t kScratchBytes =
        sizeof(struct kmes_socket_request) + KMES_SOCKET_INLINE_MAX_BYTES;

  private:
    bool receive(std::vector<std::byte>* scratch);
    bool is_waiting_to_be_read() const;
    void serve(const struct kmes_socket_request& request, std::span<const std::byte> body,
               int body_fd);
    void serve_attach(uint32_t cpu);
    void serve_identify(uint32_t cpu);
    void serve_emit(const struct kmes_socket_request& request, std::span<const std::byte> body,
                    int body_fd);
    void serve_emit_batch(const struct kmes_socket_request& request, int body_fd);
    void reply(int error);
    void reply_and_close(int error);
    bool send_reply();
    int send_packet();

    Producer* producer_ = nullptr;
    int fd_ = -1;
    uint64_t last_active_ms_ = 0;
    bool closes_ = false;     // when the reply is sent
    bool has_reply_ = false;  // that is not sent, or not all of it
    uint32_t first_cpu_ = 0;  // of attachment_.buffers[0]
    size_t sent_ = 0;         // of those buffers
    struct kmes_socket_reply reply_ = {};
    Attachment attachment_;  // holds its buffers until they are sent
};

}  // namespace kmes

#endif
