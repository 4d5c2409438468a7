// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A handle for emitting. See emitter.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/emitter.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmes/user/device.h"
#include "kmes/user/fork_lock.h"
#include "kmes/user/futex.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/uncancelled.h"
#include "kmes/user/ways.h"

/* A producer closes a connection after 10 s without a request. A connection near that limit is not
 * used: the emitter could not know whether the producer has read the request. */
#define FRESH_NS 5000000000ull

enum way { WAY_SYSTEM_CALL, WAY_DEVICE, WAY_SOCKET };

struct kmes_emitter {
    pthread_mutex_t lock; /* for the fields below, and for the connection during a request */
    struct kmes_emitter* next;
    char* address; /* of the socket */
    __u64 used_ns; /* the last use of the connection */
    __u64 device;  /* identifies the file of `fd` */
    __u64 inode;
    int fd; /* -1: none */
    enum way way;
};

/* -- Descriptors ------------------------------------------------------------------------------- */

static bool has_fd(const struct kmes_emitter* emitter) {
    return emitter->fd >= 0 && kmes_fd_is(emitter->fd, emitter->device, emitter->inode);
}

static void drop_fd(struct kmes_emitter* emitter) {
    if (has_fd(emitter)) close(emitter->fd);
    emitter->fd = -1;
}

static int keep_fd(struct kmes_emitter* emitter, int fd) {
    struct stat status;

    if (fd < 0) return fd;
    if (fstat(fd, &status) != 0) {
        int error = -errno;

        close(fd);
        return error;
    }
    emitter->device = status.st_dev;
    emitter->inode = status.st_ino;
    emitter->fd = fd;
    return 0;
}

/* No reply is due between two calls, so a readable connection has ended. */
static bool is_connected(const struct kmes_emitter* emitter) {
    struct pollfd end = {emitter->fd, POLLIN | POLLRDHUP, 0};

    return has_fd(emitter) && kmes_clock_monotonic_ns() - emitter->used_ns < FRESH_NS &&
           poll(&end, 1, 0) == 0;
}

static int connect_again(struct kmes_emitter* emitter) {
    drop_fd(emitter);
    return keep_fd(emitter, kmes_socket_connect(emitter->address));
}

static int open_device_again(struct kmes_emitter* emitter) {
    int error;

    drop_fd(emitter);
    error = keep_fd(emitter, kmes_device_open());
    return error == -ENODEV ? -ENOSYS : error;
}

/* -- fork -------------------------------------------------------------------------------------- */

static struct kmes_fork_lock all_lock = KMES_FORK_LOCK_INITIALIZER;
static struct kmes_emitter* all_emitters;

static void lock_all(void) {
    kmes_fork_lock_take(&all_lock);
}

static void unlock_all(void) {
    kmes_fork_lock_release(&all_lock);
}

/* The lock may belong to a thread that the child lacks. Replies on the connection are for the
 * parent. */
static void renew_in_child(void) {
    struct kmes_emitter* emitter;

    for (emitter = all_emitters; emitter; emitter = emitter->next) {
        pthread_mutex_init(&emitter->lock, NULL);
        if (emitter->way == WAY_SOCKET) drop_fd(emitter);
    }
    unlock_all();
}

KMES_FORK_LOCK_SETUP static void watch_forks(void) {
    pthread_atfork(lock_all, unlock_all, renew_in_child);
}

static void enlist(struct kmes_emitter* emitter) {
    lock_all();
    emitter->next = all_emitters;
    all_emitters = emitter;
    unlock_all();
}

static void delist(struct kmes_emitter* emitter) {
    struct kmes_emitter** at;

    lock_all();
    for (at = &all_emitters; *at != emitter;) at = &(*at)->next;
    *at = emitter->next;
    unlock_all();
}

/* -- Open and close ---------------------------------------------------------------------------- */

/* Interprets the result for an event without a type. Every server that exists rejects it. */
static int judge_probe(int error) {
    if (error == -ENODEV) return -ENOSYS;
    return error == -ENOSYS || error == -EPERM ? error : 0;
}

static int open_by_system_call(void* call) {
    struct kmes_emitter* emitter = (struct kmes_emitter*)call;

    emitter->way = WAY_SYSTEM_CALL;
    return judge_probe(syscall(KMES_SYSCALL_EMIT, NULL, 0, NULL, 0) == 0 ? 0 : -errno);
}

static int open_by_device(void* call) {
    struct kmes_emitter* emitter = (struct kmes_emitter*)call;
    int error = open_device_again(emitter);

    emitter->way = WAY_DEVICE;
    if (error) return error;
    error = judge_probe(kmes_device_emit_on(emitter->fd, NULL, 0, NULL, 0));
    if (error) drop_fd(emitter);
    return error;
}

static int open_by_socket(void* call) {
    struct kmes_emitter* emitter = (struct kmes_emitter*)call;
    const char* named = kmes_named_socket();
    int error;

    emitter->way = WAY_SOCKET;
    emitter->address = strdup(named ? named : KMES_SOCKET_DEFAULT_ADDRESS);
    if (!emitter->address) return -ENOMEM;
    error = connect_again(emitter);
    emitter->used_ns = kmes_clock_monotonic_ns();
    return error;
}

static void free_emitter(struct kmes_emitter* emitter) {
    drop_fd(emitter);
    pthread_mutex_destroy(&emitter->lock);
    free(emitter->address);
    free(emitter);
}

int kmes_emitter_open(struct kmes_emitter** emitter) {
    static const struct kmes_ways ways = {open_by_system_call, open_by_device, open_by_socket};
    KMES_UNCANCELLED;
    struct kmes_emitter* made = (struct kmes_emitter*)calloc(1, sizeof(*made));
    int error;

    *emitter = NULL;
    if (!made) return -ENOMEM;
    pthread_mutex_init(&made->lock, NULL);
    made->fd = -1;
    error = kmes_call_by(&ways, made);
    if (error) {
        free_emitter(made);
        return error;
    }
    enlist(made);
    *emitter = made;
    return 0;
}

void kmes_emitter_close(struct kmes_emitter* emitter) {
    KMES_UNCANCELLED;

    if (!emitter) return;
    delist(emitter);
    free_emitter(emitter);
}

/* -- Emit -------------------------------------------------------------------------------------- */

/* One call by each of the ways. */
struct request {
    int (*by_system_call)(const struct request* request);
    int (*by_descriptor)(const struct request* request, enum way way, int fd);
    const char* type;
    const void* payload;
    const struct kmes_emit_entry* entries;
    __u32* emitted;
    __u32 payload_len;
    __u32 count;
    __u16 type_len;
};

static int emit_by_system_call(const struct request* request) {
    return syscall(KMES_SYSCALL_EMIT, request->type, request->type_len, request->payload,
                   request->payload_len) == 0
               ? 0
               : -errno;
}

static int emit_by_descriptor(const struct request* request, enum way way, int fd) {
    return (way == WAY_DEVICE ? kmes_device_emit_on : kmes_socket_emit_on)(
        fd, request->type, request->type_len, request->payload, request->payload_len);
}

static int emit_batch_by_system_call(const struct request* request) {
    return syscall(KMES_SYSCALL_EMIT_BATCH, request->entries, request->count, request->emitted) == 0
               ? 0
               : -errno;
}

static int emit_batch_by_descriptor(const struct request* request, enum way way, int fd) {
    return (way == WAY_DEVICE ? kmes_device_emit_batch_on : kmes_socket_emit_batch_on)(
        fd, request->entries, request->count, request->emitted);
}

/* The reply may come later, or not at all, so the connection cannot be used again. */
static bool ends_connection(int error) {
    return error == -ENOSYS || error == -ECONNRESET || error == -ETIMEDOUT || error == -EPROTO;
}

/* A request of an emitter, with its lock: a connection serves one request at a time. */
struct socket_call {
    struct kmes_emitter* emitter;
    const struct request* request;
};

static int connect_if_necessary(void* call) {
    struct kmes_emitter* emitter = ((const struct socket_call*)call)->emitter;
    int error = is_connected(emitter) ? 0 : connect_again(emitter);

    return error ? error : emitter->fd;
}

static int ask_on(void* call, int fd) {
    const struct socket_call* socket = (const struct socket_call*)call;
    int error = socket->request->by_descriptor(socket->request, WAY_SOCKET, fd);

    socket->emitter->used_ns = kmes_clock_monotonic_ns();
    if (ends_connection(error)) drop_fd(socket->emitter);
    return error;
}

static int ask_by_socket(struct kmes_emitter* emitter, const struct request* request) {
    struct socket_call call = {emitter, request};

    return kmes_socket_attempt(connect_if_necessary, ask_on, &call);
}

/* The file has no state, so the calls of several threads run in parallel. */
static int ask_by_device(struct kmes_emitter* emitter, const struct request* request) {
    int error, fd;

    pthread_mutex_lock(&emitter->lock);
    error = has_fd(emitter) ? 0 : open_device_again(emitter);
    fd = emitter->fd;
    pthread_mutex_unlock(&emitter->lock);
    if (error) return error;
    error = request->by_descriptor(request, WAY_DEVICE, fd);
    return error == -ENODEV ? -ENOSYS : error;
}

static int ask(struct kmes_emitter* emitter, const struct request* request) {
    KMES_UNCANCELLED;
    int error;

    if (emitter->way == WAY_SYSTEM_CALL) return request->by_system_call(request);
    if (emitter->way == WAY_DEVICE) return ask_by_device(emitter, request);
    pthread_mutex_lock(&emitter->lock);
    error = ask_by_socket(emitter, request);
    pthread_mutex_unlock(&emitter->lock);
    return error;
}

int kmes_emitter_emit(struct kmes_emitter* emitter, const char* type, __u16 type_len,
                      const void* payload, __u32 payload_len) {
    const struct request request = {.by_system_call = emit_by_system_call,
                                    .by_descriptor = emit_by_descriptor,
                                    .type = type,
                                    .payload = payload,
                                    .payload_len = payload_len,
                                    .type_len = type_len};

    return ask(emitter, &request);
}

int kmes_emitter_emit_batch(struct kmes_emitter* emitter, const struct kmes_emit_entry* entries,
                            __u32 count, __u32* emitted) {
    const struct request request = {.by_system_call = emit_batch_by_system_call,
                                    .by_descriptor = emit_batch_by_descriptor,
                                    .entries = entries,
                                    .emitted = emitted,
                                    .count = count};

    if (!emitted) return -EFAULT;
    *emitted = 0;
    return ask(emitter, &request);
}
