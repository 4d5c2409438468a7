// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libkmes's end of the socket to a producer in another process: one connection for each request
 * (socket_protocol.h). The other side is trusted no more than necessary: every length is checked,
 * and every received descriptor is either returned or closed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kmes/user/file_size_signal.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/time_limit.h"
#include "kmes/user/ways.h"

#define CPUS_MAX 65536u
#define PACKET_FDS_MAX (2 * KMES_SOCKET_CPUS_PER_PACKET)
#define ERROR_MIN (-4095) /* lowest error number of a kernel */

/* Descriptors that came with a packet. */
struct descriptors {
    int fds[PACKET_FDS_MAX];
    unsigned count;
};

static void close_all(const int* fds, unsigned count) {
    unsigned i;

    for (i = 0; i < count; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
}

static const char* producer_address(void) {
    const char* named = kmes_named_socket();

    return named ? named : KMES_SOCKET_DEFAULT_ADDRESS;
}

/* Distinguishes an absent producer from a missing permission. */
static int connect_error(int error) {
    switch (error) {
        case ENOENT:
        case ENOTDIR:
        case ELOOP:
        case ECONNREFUSED:
            return -ENOSYS;
        case EACCES:
            return -EPERM;
        case EAGAIN:
            return -ETIMEDOUT;
        default:
            return -error;
    }
}

/* Any user may take an abstract name, so its server must be this user, or root. A path belongs to
 * the users that may write to its folder. */
static int check_server(int fd, const struct sockaddr_un* address) {
    struct ucred server;
    socklen_t length = sizeof(server);

    if (address->sun_path[0] != '\0') return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &length) != 0) return -errno;
    return server.uid == geteuid() || server.uid == 0 ? 0 : -EPERM;
}

/* As recvmsg, with EAGAIN after the time limit of the socket. `message` is unchanged by EINTR. */
static ssize_t receive_in_time(int fd, struct msghdr* message) {
    struct kmes_time_limit limit = kmes_begin_limit(fd, SO_RCVTIMEO);
    ssize_t got;

    while ((got = recvmsg(fd, message, MSG_CMSG_CLOEXEC)) < 0 && kmes_continue_limit(&limit))
        continue;
    kmes_end_limit(&limit);
    return got;
}

static int connect_to(int fd, const struct sockaddr_un* address, socklen_t length) {
    struct kmes_time_limit limit = kmes_begin_limit(fd, SO_SNDTIMEO);

    while (connect(fd, (const struct sockaddr*)address, length) != 0) {
        if (!kmes_continue_limit(&limit)) return connect_error(errno);
    }
    kmes_end_limit(&limit);
    return check_server(fd, address);
}

/* limit_ms 0: nothing on the connection waits. */
static int open_connection(const char* name, unsigned limit_ms) {
    const struct timeval limit = {limit_ms / 1000, (limit_ms % 1000) * 1000};
    struct sockaddr_un address;
    socklen_t length;
    int error = kmes_socket_address(name, &address, &length);
    int fd;

    if (error) return error;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (limit_ms ? 0 : SOCK_NONBLOCK), 0);
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    error = connect_to(fd, &address, length);
    if (!error) return fd;
    close(fd);
    return error;
}

int kmes_socket_connect(const char* address) {
    return open_connection(address, KMES_SOCKET_ANSWER_MS);
}

static int send_packet(int fd, const struct msghdr* message) {
    struct kmes_time_limit limit = kmes_begin_limit(fd, SO_SNDTIMEO);
    ssize_t sent;

    while ((sent = sendmsg(fd, message, MSG_NOSIGNAL)) < 0 && kmes_continue_limit(&limit)) continue;
    kmes_end_limit(&limit);
    if (sent >= 0) return 0;
    if (errno == EAGAIN) return -ETIMEDOUT;
    /* The producer has gone between connect and here, as if it had not existed. */
    return errno == EPIPE || errno == ECONNRESET ? -ENOSYS : -errno;
}

/* Takes the descriptors out of a message. The kernel has installed all that it names. */
static void take_descriptors(struct msghdr* message, struct descriptors* descriptors) {
    struct cmsghdr* part;

    descriptors->count = 0;
    for (part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        unsigned count = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        unsigned i;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        for (i = 0; i < count && descriptors->count < PACKET_FDS_MAX; i++)
            memcpy(&descriptors->fds[descriptors->count++], CMSG_DATA(part) + i * sizeof(int),
                   sizeof(int));
    }
}

static int check_reply(const struct kmes_socket_reply* reply, const struct msghdr* message,
                       ssize_t bytes, const struct descriptors* descriptors) {
    if (bytes == 0) return -ECONNRESET; /* it has ended; the request may have been served */
    if (message->msg_flags & MSG_CTRUNC) return -EMFILE;
    if (bytes != (ssize_t)sizeof(*reply) || message->msg_flags & MSG_TRUNC) return -EPROTO;
    if (reply->magic != KMES_SOCKET_MAGIC) return -EPROTO;
    if (reply->error > 0 || reply->error < ERROR_MIN) return -EPROTO;
    if (reply->error) return reply->error;
    if (reply->cpus == 0 || reply->cpus > CPUS_MAX) return -EPROTO;
    return descriptors->count == 2 * reply->count ? 0 : -EPROTO;
}

/* A request without effect may be repeated, so its sender need not know how far it came. */
static int without_effect(int error) {
    return error == -ECONNRESET ? -ENOSYS : error;
}

/*
 * Receives the next packet of a reply. The caller owns the descriptors only after 0. A server that
 * ends with the request unread leaves ECONNRESET (unix(7)): it has served nothing, as if it had not
 * existed. If it has read the request, the connection just ends, and the result is unknown:
 * -ECONNRESET.
 */
static int receive_packet(int fd, struct kmes_socket_reply* reply,
                          struct descriptors* descriptors) {
    union {
        struct cmsghdr first;
        char room[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
    } control;
    struct iovec piece = {reply, sizeof(*reply)};
    struct msghdr message;
    ssize_t got;
    int error;

    memset(&message, 0, sizeof(message));
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.room;
    message.msg_controllen = sizeof(control.room);
    got = receive_in_time(fd, &message);
    if (got < 0) {
        if (errno == EAGAIN) return -ETIMEDOUT;
        return errno == ECONNRESET ? -ENOSYS : -errno;
    }
    take_descriptors(&message, descriptors);
    error = check_reply(reply, &message, got, descriptors);
    if (error) close_all(descriptors->fds, descriptors->count);
    return error;
}

int kmes_socket_attempt(int (*connect)(void* call), int (*request)(void* call, int fd),
                        void* call) {
    int attempt, result = -ENOSYS;

    for (attempt = 0; attempt < KMES_SOCKET_ATTEMPTS && result == -ENOSYS; attempt++) {
        int fd = connect(call);

        if (fd < 0) return fd;
        result = request(call, fd);
    }
    return result;
}

/* A request without a body. */
struct plain_request {
    struct kmes_socket_request request;
    unsigned limit_ms;
};

static int connect_for_plain(void* call) {
    return open_connection(producer_address(), ((const struct plain_request*)call)->limit_ms);
}

/* Returns the connection. */
static int send_plain(void* call, int fd) {
    struct iovec piece = {&((struct plain_request*)call)->request,
                          sizeof(struct kmes_socket_request)};
    struct msghdr message;
    int error;

    memset(&message, 0, sizeof(message));
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    error = send_packet(fd, &message);
    if (!error) return fd;
    close(fd);
    return error;
}

/* Sends the request on a new connection, and returns its descriptor. */
static int send_request(enum kmes_socket_operation operation, __u32 cpu, unsigned limit_ms) {
    struct plain_request call = {{KMES_SOCKET_MAGIC, operation, cpu, 0, 0, 0}, limit_ms};

    return kmes_socket_attempt(connect_for_plain, send_plain, &call);
}

static int make_attachment(struct kmes_socket_attachment* attachment, __u32 count) {
    attachment->metadata_fds = (int*)malloc(count * sizeof(int));
    attachment->data_fds = (int*)malloc(count * sizeof(int));
    if (attachment->metadata_fds && attachment->data_fds) return 0;
    kmes_socket_attachment_free(attachment);
    return -ENOMEM;
}

/* Packets come in order. Each has its stated number of CPUs, and none has more than requested. */
static int add_packet(struct kmes_socket_attachment* attachment,
                      const struct kmes_socket_reply* reply, const struct descriptors* descriptors,
                      __u32 first, __u32 wanted) {
    unsigned i;

    if (reply->count == 0 || reply->first != first + attachment->count ||
        reply->count > wanted - attachment->count)
        return -EPROTO;
    for (i = 0; i < reply->count; i++) {
        attachment->metadata_fds[attachment->count + i] = descriptors->fds[2 * i];
        attachment->data_fds[attachment->count + i] = descriptors->fds[2 * i + 1];
    }
    attachment->count += reply->count;
    attachment->capacity = reply->capacity;
    attachment->session = reply->session;
    return 0;
}

/* *granted: the flags of the reply to a lease. After an error the caller closes `fd`. */
static int receive_attachment(int fd, __u32 cpu, struct kmes_socket_attachment* attachment,
                              __u32* granted) {
    struct kmes_time_limit limit = kmes_begin_limit(fd, SO_RCVTIMEO); /* of all packets */
    __u32 wanted = 0;
    __u32 first = cpu == KMES_SOCKET_ALL_CPUS ? 0 : cpu;

    do {
        struct kmes_socket_reply reply;
        struct descriptors descriptors;
        int error = receive_packet(fd, &reply, &descriptors);

        if (error) return error;
        if (!wanted) {
            wanted = cpu == KMES_SOCKET_ALL_CPUS ? reply.cpus : 1;
            error = make_attachment(attachment, wanted);
        }
        if (!error) error = add_packet(attachment, &reply, &descriptors, first, wanted);
        *granted = reply.emitted;
        if (error) {
            close_all(descriptors.fds, descriptors.count);
            return error;
        }
    } while (attachment->count < wanted && kmes_shorten_limit(&limit));
    kmes_end_limit(&limit);
    return attachment->count < wanted ? -ETIMEDOUT : 0;
}

/* Runs before anything is mapped or returned. */
static int check_files(const struct kmes_socket_attachment* attachment) {
    int error = 0;
    __u32 i;

    for (i = 0; i < attachment->count && !error; i++)
        error = kmes_check_buffer_files(attachment->metadata_fds[i], attachment->data_fds[i],
                                        attachment->capacity);
    return error;
}

int kmes_socket_ask_attach(__u32 operation, __u32 cpu) {
    return send_request((enum kmes_socket_operation)operation, cpu, 0);
}

int kmes_socket_take_attach(int fd, __u32 operation, __u32 cpu,
                            struct kmes_socket_attachment* attachment) {
    __u32 granted = 0;
    int error;

    memset(attachment, 0, sizeof(*attachment));
    attachment->lease_fd = -1;
    error = without_effect(receive_attachment(fd, cpu, attachment, &granted));
    if (operation == KMES_SOCKET_LEASE_WITH_MEMBARRIER)
        attachment->needs_barrier = granted & KMES_SOCKET_NEEDS_BARRIER;
    if (!error && granted & KMES_SOCKET_IS_LEASE && operation != KMES_SOCKET_ATTACH)
        attachment->lease_fd = fd;
    else
        close(fd);
    if (!error) error = check_files(attachment);
    if (error) kmes_socket_attachment_free(attachment);
    return error;
}

static int attach_by(__u32 operation, __u32 cpu, struct kmes_socket_attachment* attachment) {
    int fd = send_request((enum kmes_socket_operation)operation, cpu, KMES_SOCKET_ANSWER_MS);

    if (fd >= 0) return kmes_socket_take_attach(fd, operation, cpu, attachment);
    memset(attachment, 0, sizeof(*attachment));
    attachment->lease_fd = -1;
    return fd;
}

__u32 kmes_socket_older_attach(__u32 operation) {
    switch (operation) {
        case KMES_SOCKET_LEASE_WITH_MEMBARRIER:
            return KMES_SOCKET_LEASE; /* the server executes a full fence in each emission */
        case KMES_SOCKET_LEASE:
            return KMES_SOCKET_ATTACH;
        default:
            return 0;
    }
}

static int attach_from(__u32 operation, __u32 cpu, struct kmes_socket_attachment* attachment) {
    int error = attach_by(operation, cpu, attachment);

    while (error == -EPROTO && (operation = kmes_socket_older_attach(operation)) != 0)
        error = attach_by(operation, cpu, attachment);
    return error;
}

int kmes_socket_attach(__u32 cpu, struct kmes_socket_attachment* attachment) {
    return attach_from(KMES_SOCKET_LEASE, cpu, attachment);
}

int kmes_socket_attach_with_membarrier(__u32 cpu, struct kmes_socket_attachment* attachment) {
    return attach_from(KMES_SOCKET_LEASE_WITH_MEMBARRIER, cpu, attachment);
}

void kmes_socket_attachment_free(struct kmes_socket_attachment* attachment) {
    if (attachment->metadata_fds) close_all(attachment->metadata_fds, attachment->count);
    if (attachment->data_fds) close_all(attachment->data_fds, attachment->count);
    if (attachment->lease_fd >= 0) close(attachment->lease_fd);
    free(attachment->metadata_fds);
    free(attachment->data_fds);
    memset(attachment, 0, sizeof(*attachment));
    attachment->lease_fd = -1;
}

/* Receives a reply of one packet without descriptors. */
static int receive_plain(int fd, struct kmes_socket_reply* reply) {
    struct descriptors descriptors;
    int error = receive_packet(fd, reply, &descriptors);

    if (error) return error;
    close_all(descriptors.fds, descriptors.count);
    return descriptors.count ? -EPROTO : 0;
}

int kmes_socket_ask_identity(__u32 cpu) {
    return send_request(KMES_SOCKET_IDENTIFY, cpu, 0);
}

int kmes_socket_take_identity(int fd, struct kmes_socket_identity* identity) {
    struct kmes_socket_reply reply;
    int error = without_effect(receive_plain(fd, &reply));

    close(fd);
    if (error) return error;
    identity->device = reply.device;
    identity->inode = reply.inode;
    identity->session = reply.session;
    identity->next_sequence = reply.first | (__u64)reply.emitted << 32;
    identity->cpus = reply.cpus;
    return 0;
}

int kmes_socket_identify(__u32 cpu, unsigned limit_ms, struct kmes_socket_identity* identity) {
    int fd = send_request(KMES_SOCKET_IDENTIFY, cpu, limit_ms);

    return fd < 0 ? fd : kmes_socket_take_identity(fd, identity);
}

/* One packet without descriptors: none are installed for a message that has no room for them. */
static int receive_emitters(int fd, struct kmes_socket_reply* reply,
                            struct kmes_socket_emitter* emitters) {
    struct iovec pieces[2] = {{reply, sizeof(*reply)},
                              {emitters, KMES_SOCKET_EMITTERS_MAX * sizeof(*emitters)}};
    struct descriptors none = {.count = 0};
    struct msghdr message;
    ssize_t got;
    int error;

    memset(&message, 0, sizeof(message));
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    got = receive_in_time(fd, &message);
    if (got < 0) return errno == EAGAIN ? -ETIMEDOUT : errno == ECONNRESET ? -ENOSYS : -errno;
    if (got <= (ssize_t)sizeof(*reply)) {
        if (got == (ssize_t)sizeof(*reply)) reply->count = 0;
        error = check_reply(reply, &message, got, &none);
        return error ? error : -EPROTO;
    }
    none.count = 2 * reply->count; /* here they are entries, and no descriptors */
    error = check_reply(reply, &message, sizeof(*reply), &none);
    if (error) return error;
    got -= (ssize_t)sizeof(*reply);
    if (reply->count > KMES_SOCKET_EMITTERS_MAX) return -EPROTO;
    return (size_t)got == reply->count * sizeof(*emitters) ? 0 : -EPROTO;
}

int kmes_socket_emitters(struct kmes_socket_emitter* emitters, __u32* count) {
    struct kmes_socket_reply reply;
    int fd = send_request(KMES_SOCKET_EMITTERS, 0, KMES_SOCKET_ANSWER_MS);
    int error;

    *count = 0;
    if (fd < 0) return fd;
    error = without_effect(receive_emitters(fd, &reply, emitters));
    close(fd);
    if (!error) *count = reply.count;
    return error;
}

static int write_file(int fd, const void* from, __u64 bytes) {
    const char* at = (const char*)from;

    while (bytes > 0) {
        ssize_t written = write(fd, at, bytes);

        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? -errno : -EIO;
        at += written;
        bytes -= (__u64)written;
    }
    return 0;
}

/* Makes a memory file with the type and the payload, if they are too long for a packet. */
static int make_body_file(const struct iovec* pieces, int count) {
    struct kmes_file_size_signal saved;
    int fd = memfd_create("kmes-emit", MFD_CLOEXEC);
    int error = 0;
    int i;

    if (fd < 0) return -errno;
    kmes_file_size_signal_block(&saved);
    for (i = 0; i < count && !error; i++)
        error = write_file(fd, pieces[i].iov_base, pieces[i].iov_len);
    kmes_file_size_signal_restore(&saved);
    if (!error) return fd;
    close(fd);
    return error;
}

static int current_cpu(void) {
    int cpu = sched_getcpu();

    return cpu < 0 ? 0 : cpu;
}

/* Sends the event; body_fd < 0: inline. The kernel checks the caller's pointers. */
static int send_with_body(int fd, struct iovec* pieces, int piece_count, int body_fd) {
    union {
        struct cmsghdr first;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;

    memset(&message, 0, sizeof(message));
    memset(&control, 0, sizeof(control));
    message.msg_iov = pieces;
    message.msg_iovlen = (size_t)piece_count;
    if (body_fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof(control.room);
        control.first.cmsg_level = SOL_SOCKET;
        control.first.cmsg_type = SCM_RIGHTS;
        control.first.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.first), &body_fd, sizeof(int));
    }
    return send_packet(fd, &message);
}

/* The request of an emit, and its two bodies. */
struct emit {
    struct kmes_socket_request request;
    struct iovec pieces[3];
};

static int send_as_file(int fd, struct emit* emit) {
    int body_fd = make_body_file(&emit->pieces[1], 2);
    int error;

    if (body_fd < 0) return body_fd;
    error = send_with_body(fd, emit->pieces, 1, body_fd);
    close(body_fd);
    return error;
}

/* Sends in the packet, or as a file if it is longer than the protocol or the socket's buffer
 * allows. */
static int send_emit(int fd, struct emit* emit) {
    int error = -EMSGSIZE;

    if (emit->request.body_bytes <= KMES_SOCKET_INLINE_MAX_BYTES)
        error = send_with_body(fd, emit->pieces, 3, -1);
    return error == -EMSGSIZE ? send_as_file(fd, emit) : error;
}

static int check_emit(__u16 type_len, __u32 payload_len) {
    if (type_len == 0) return -EINVAL;
    return (__u64)type_len + payload_len > KMES_CONFIG_EVENT_MAX_BYTES ? -ENOSPC : 0;
}

int kmes_socket_emit_on(int fd, const char* type, __u16 type_len, const void* payload,
                        __u32 payload_len) {
    __u64 body_bytes = (__u64)type_len + payload_len;
    struct emit emit = {
        {KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT, (__u32)current_cpu(), (__u32)body_bytes, type_len, 0},
        {{&emit.request, sizeof(emit.request)},
         {(void*)(__UINTPTR_TYPE__)type, type_len},
         {(void*)(__UINTPTR_TYPE__)payload, payload_len}}};
    struct kmes_socket_reply reply;
    int error = check_emit(type_len, payload_len);

    if (!error) error = send_emit(fd, &emit);
    return error ? error : receive_plain(fd, &reply);
}

/* The arguments of an emission. */
struct emission {
    const char* type;
    const void* payload;
    const struct kmes_emit_entry* entries;
    __u32* emitted;
    __u32 payload_len;
    __u32 count;
    __u16 type_len;
};

static int connect_for_emission(void* call) {
    (void)call;
    return kmes_socket_connect(producer_address());
}

static int emit_and_close(void* call, int fd) {
    const struct emission* emission = (const struct emission*)call;
    int error = kmes_socket_emit_on(fd, emission->type, emission->type_len, emission->payload,
                                    emission->payload_len);

    close(fd);
    return error;
}

int kmes_socket_emit(const char* type, __u16 type_len, const void* payload, __u32 payload_len) {
    struct emission emission = {
        .type = type, .payload = payload, .payload_len = payload_len, .type_len = type_len};
    int error = check_emit(type_len, payload_len);

    return error ? error : kmes_socket_attempt(connect_for_emission, emit_and_close, &emission);
}

/* Sets the number of emitted entries. A credible reply has all of them without an error, and fewer
 * with one. */
static int receive_emitted(int fd, __u32 count, __u32* emitted) {
    struct kmes_socket_reply reply;
    int error;

    memset(&reply, 0, sizeof(reply));
    error = receive_plain(fd, &reply);
    if (reply.magic != KMES_SOCKET_MAGIC || reply.error != error) return error; /* no answer */
    if (error ? reply.emitted >= count : reply.emitted != count) return -EPROTO;
    *emitted = reply.emitted;
    return error;
}

static int check_batch(__u32 count) {
    return count == 0 || count > KMES_BATCH_MAX_ENTRIES ? -EINVAL : 0;
}

int kmes_socket_emit_batch_on(int fd, const struct kmes_emit_entry* entries, __u32 count,
                              __u32* emitted) {
    struct kmes_socket_request request = {
        KMES_SOCKET_MAGIC, KMES_SOCKET_EMIT_BATCH, (__u32)current_cpu(), 0, 0, count};
    struct iovec piece = {&request, sizeof(request)};
    int error = check_batch(count);
    int body_fd;

    *emitted = 0;
    if (error) return error;
    body_fd = kmes_batch_file_make(entries, count, &request.body_bytes);
    if (body_fd < 0) return body_fd;
    error = send_with_body(fd, &piece, 1, body_fd);
    close(body_fd);
    return error ? error : receive_emitted(fd, count, emitted);
}

static int emit_batch_and_close(void* call, int fd) {
    const struct emission* emission = (const struct emission*)call;
    int error =
        kmes_socket_emit_batch_on(fd, emission->entries, emission->count, emission->emitted);

    close(fd);
    return error;
}

int kmes_socket_emit_batch(const struct kmes_emit_entry* entries, __u32 count, __u32* emitted) {
    struct emission emission = {.entries = entries, .emitted = emitted, .count = count};
    int error = check_batch(count);

    if (!emitted) return -EFAULT;
    *emitted = 0;
    return error ? error
                 : kmes_socket_attempt(connect_for_emission, emit_batch_and_close, &emission);
}
