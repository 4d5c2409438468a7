// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The producer's end of one connection (socket_protocol.h): it receives a request, executes it, and
// sends the reply. The client is hostile. The resources that it can take are bounded, and only
// receive_by_worker() and the destructor wait for it.
//
// These two can wait without a limit, because a client selects its descriptors. The close of the
// last descriptor of a TCP socket with SO_LINGER waits for its peer; that of a FUSE file waits for
// the daemon. The kernel does both in the thread that receives the descriptor or closes the
// connection, even if the thread asks for no descriptors. The server's thread therefore peeks first
// (MSG_PEEK), and leaves a connection with descriptors to a worker (socket_workers.h). It does the
// same with an emit to a CPU whose emitter has an open reservation.
#ifndef KMES_USER_SOCKET_CONNECTION_H
#define KMES_USER_SOCKET_CONNECTION_H

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kmes/user/kept_fd.h"
#include "kmes/user/producer.h"
#include "kmes/user/socket_gate.h"
#include "kmes/user/socket_protocol.h"

namespace kmes {

class SocketConnection {
  public:
    enum class Step {
        kGoesOn,
        kOver,     // close it: close_if_empty()
        kMayWait,  // the next request: receive_by_worker()
    };

    // `fd` is non-blocking.
    SocketConnection(ProducerGate* gate, KeptFd fd, Serves serves, uint64_t now_ms);
    // The destructor closes. See close_if_empty().
    SocketConnection(const SocketConnection&) = delete;
    SocketConnection& operator=(const SocketConnection&) = delete;

    int fd() const { return fd_.number(); }
    // The process that connected, and its user.
    pid_t peer() const { return peer_; }
    uid_t user() const { return user_; }
    // True for a lease of buffers (E12), which is not closed when it is idle.
    bool is_lease() const { return !leases_.empty(); }
    // Allows or forbids a lease for the next request.
    void allow_lease(bool is_allowed) { may_lease_ = is_allowed; }
    // Call it inside the gate, after the client has gone. Without this call the leases never end.
    void end_leases();
    // True if the client has closed its end, or has not got the whole reply: it holds no lease.
    bool has_gone() const;
    // The events to poll for: one request at a time, and no request before the reply is sent.
    short wanted_events() const;
    // Called when the socket is ready; the caller is inside the gate. `scratch` is for one call.
    Step on_ready(short events, std::vector<std::byte>* scratch, uint64_t now_ms);
    uint64_t last_active_ms() const { return last_active_ms_; }

    // The descriptors in replies that the client has not read. They count for the producer's user
    // while the client keeps its end, even after the producer's end is closed.
    size_t unread_descriptors();
    // The descriptors of a reply that waits for send_delayed(), otherwise 0. on_ready() leaves
    // each reply with descriptors to its caller (unread_shares.h).
    size_t delayed_descriptors() const;
    // False: the connection is over.
    bool send_delayed(uint64_t now_ms);
    // Sends this error instead, and ends the connection.
    void refuse_delayed(int error);
    // The client can send no other request. What it has sent can still be received.
    void refuse_requests() const;
    // Ends the connection for the client, and drops what is not sent. Its end stays open.
    void abandon();

    // Called by a worker outside of the gate: receives the request that may wait, executes it, and
    // replies. False: the connection is over.
    bool receive_by_worker(std::vector<std::byte>* scratch, uint64_t now_ms);
    // Replies to a request that is not received, if that does not block.
    void refuse_unread(int error);
    // Ends the connection for the client. True: it is also closed. False: unreceived packets have
    // descriptors, so the destructor can wait, and a worker must call it.
    bool close_if_empty();

    // The required size of `scratch`: the longest packet.
    static constexpr size_t kScratchBytes =
        sizeof(struct kmes_socket_request) + KMES_SOCKET_INLINE_MAX_BYTES;

  private:
    class Received;

    enum class Next { kNothing, kPlain, kDescriptors };

    // `fd`: the result of fd_.get(), which costs a system call.
    static Next peek(int fd, struct kmes_socket_request* request);
    bool may_wait(const struct kmes_socket_request& request) const;
    static bool receive(int fd, Received* received, std::vector<std::byte>* scratch);
    static bool is_waiting_to_be_read(int fd);
    size_t unread_descriptors(int fd);
    void handle(const Received& received, std::span<const std::byte> packet);
    void serve(const struct kmes_socket_request& request, std::span<const std::byte> body,
               int body_fd);
    void serve_attach(uint32_t cpu, Promise promise);
    void serve_lease(uint32_t cpu, Promise promise);
    void serve_identify(uint32_t cpu);
    void serve_emitters();
    void serve_emit(const struct kmes_socket_request& request, std::span<const std::byte> body,
                    int body_fd);
    void serve_emit_batch(const struct kmes_socket_request& request, int body_fd);
    void count(int error, uint64_t events, uint64_t bytes) const;
    int cut_off(int error) const;
    bool has_privilege(uint32_t operation) const;
    void reply(int error);
    void reply_and_close(int error);
    bool send_reply(int fd);
    int send_packet(int fd);

    ProducerGate* const gate_;  // for the workers, which outlive the connections
    KeptFd fd_;
    const Serves serves_;
    pid_t peer_ = 0;
    uid_t user_ = static_cast<uid_t>(-1);
    bool may_lease_ = false;
    std::vector<uint64_t> leases_;  // inodes of the buffers from first_cpu_ on
    uint64_t last_active_ms_ = 0;
    bool closes_ = false;          // after the reply is sent
    bool has_reply_ = false;       // not sent yet, or only in part
    bool is_delayed_ = false;      // it waits for send_delayed()
    size_t sent_descriptors_ = 0;  // since all replies were read for the last time
    uint32_t first_cpu_ = 0;       // of attachment_.buffers[0]
    size_t sent_ = 0;              // of those buffers
    struct kmes_socket_reply reply_ = {};
    std::vector<struct kmes_socket_emitter> emitters_;  // that follow the reply
    Attachment attachment_;                             // keeps its buffers until they are sent
};

}  // namespace kmes

#endif
