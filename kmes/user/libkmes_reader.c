// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader on libkmes. See libkmes_reader.h.
 *
 * The device and the socket attach to the one CPU, and identify without a descriptor. The system
 * call returns all CPUs at once, and so does a module without KMES_IOC_ATTACH_CPU. The code then
 * closes the other descriptors.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kmes/user/libkmes_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kmes/user/device.h"
#include "kmes/user/double_map.h"
#include "kmes/user/futex.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/membarrier.h"
#include "kmes/user/pending.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/uncancelled.h"
#include "kmes/user/ways.h"

#define ATTACH_ROOM 64        /* slots of the first try: one call for up to 64 CPUs */
#define QUESTION_MS 1000      /* the limit of a question without a lease: a producer may hang */
#define QUESTIONS_OF_LEASE 20 /* one of them reaches the producer */
#define ATTACH_TRIES 8        /* CPUs do not change: more tries mean a faulty server */

/* All CPUs, by kmes_attach. */
struct all_fds {
    int* fds;
    int count;
    __u64 capacity;
};

typedef int (*attach_function)(int* fds, int* count, __u64* capacity);

static int attach_by_system_call(int* fds, int* count, __u64* capacity) {
    return syscall(KMES_SYSCALL_ATTACH, fds, count, capacity) == 0 ? 0 : -errno;
}

/* Converts -ENODEV to an absent way of ways.h. */
static int attach_by_device(int* fds, int* count, __u64* capacity) {
    int error = kmes_device_attach(fds, count, capacity);

    return error == -ENODEV ? -ENOSYS : error;
}

static int attach_all(attach_function attach, struct all_fds* all) {
    int room = ATTACH_ROOM;
    int tries;

    for (tries = 0; tries < ATTACH_TRIES; tries++) {
        int error;

        all->fds = (int*)malloc((size_t)room * sizeof(int));
        if (!all->fds) return -ENOMEM;
        all->count = room;
        error = attach(all->fds, &all->count, &all->capacity);
        if (!error && all->count >= 0 && all->count <= room) return 0;
        free(all->fds);
        if (!error) return -EPROTO;
        if (error != -ERANGE) return error;
        if (all->count <= room) return -EPROTO;
        room = all->count;
    }
    return -ERANGE;
}

static void close_but(struct all_fds* all, int kept) {
    int i;

    for (i = 0; i < all->count; i++) {
        if (i != kept) close(all->fds[i]);
    }
    free(all->fds);
}

static int identify_fd(int fd, struct kmes_mapping* mapping) {
    struct stat status;

    if (fstat(fd, &status) != 0) return -errno;
    mapping->device = status.st_dev;
    mapping->inode = status.st_ino;
    return 0;
}

/* One mmap maps the whole layout of 5.1.5. The fd is not needed after it. */
static int map_fd(int fd, __u64 capacity, struct kmes_mapping* mapping) {
    int error;

    if (!kmes_capacity_is_valid(capacity)) return -EINVAL;
    mapping->mapped_bytes = kmes_mapping_bytes(KMES_VERSION_1, capacity);
    error = identify_fd(fd, mapping);
    if (!error) error = kmes_check_file_length(fd, mapping->mapped_bytes);
    if (error) return error;
    mapping->needs_barrier = false; /* a kernel executes its own fence */
    mapping->base = mmap(NULL, mapping->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return mapping->base == MAP_FAILED ? -errno : 0;
}

/* Converts a device's error for one CPU to the terms of ways.h and of a reader. */
static int device_error(int error) {
    if (error == -ENODEV) return -ENOSYS;
    return error == -EINVAL ? -ENODEV : error; /* no such CPU */
}

static int attach_one_of_all(attach_function attach, __u16 cpu_id, bool maps,
                             struct kmes_mapping* mapping) {
    struct all_fds all;
    int fd, error = attach_all(attach, &all);

    if (error) return error;
    if (cpu_id >= all.count) {
        close_but(&all, -1);
        return -ENODEV;
    }
    fd = all.fds[cpu_id];
    close_but(&all, cpu_id);
    error = maps ? map_fd(fd, all.capacity, mapping) : identify_fd(fd, mapping);
    close(fd);
    mapping->session = 0; /* a kernel has one */
    mapping->next_sequence = 0;
    return error;
}

/* promises: membarrier (socket_protocol.h). */
static int attach_by_socket(__u16 cpu_id, bool promises,
                            struct kmes_socket_attachment* attachment) {
    return promises ? kmes_socket_attach_with_membarrier(cpu_id, attachment)
                    : kmes_socket_attach(cpu_id, attachment);
}

/* EINVAL of a producer: it has no such CPU. EINVAL of this library: the address is invalid. */
static int error_of_socket(int error) {
    const char* named = kmes_named_socket();
    struct sockaddr_un address;
    socklen_t length;

    if (error != -EINVAL || (named && kmes_socket_address(named, &address, &length) != 0))
        return error;
    return -ENODEV;
}

int kmes_socket_attachment_map(struct kmes_socket_attachment* attachment,
                               struct kmes_mapping* mapping) {
    int error = identify_fd(attachment->metadata_fds[0], mapping);

    if (!error)
        error = kmes_double_map(attachment->metadata_fds[0], attachment->data_fds[0],
                                attachment->capacity, false, &mapping->base);
    mapping->mapped_bytes = kmes_mapping_bytes(KMES_VERSION_1, attachment->capacity);
    mapping->session = attachment->session;
    mapping->needs_barrier = attachment->needs_barrier;
    if (!error) {
        mapping->owner = kmes_lease_make(attachment->lease_fd);
        attachment->lease_fd = -1;
    }
    kmes_socket_attachment_free(attachment);
    return error;
}

static int map_from_socket(__u16 cpu_id, bool promises, struct kmes_mapping* mapping) {
    struct kmes_pending_attach* pending = kmes_pending_attach_used();
    struct kmes_socket_attachment attachment;
    int error;

    if (pending)
        return error_of_socket(kmes_pending_attach_step(pending, cpu_id, promises, mapping));
    error = attach_by_socket(cpu_id, promises, &attachment);
    return error ? error_of_socket(error) : kmes_socket_attachment_map(&attachment, mapping);
}

void kmes_mapping_identify(struct kmes_mapping* mapping,
                           const struct kmes_socket_identity* identity) {
    mapping->device = identity->device;
    mapping->inode = identity->inode;
    mapping->session = identity->session;
    mapping->next_sequence = identity->next_sequence;
}

static int identify_from_socket(__u16 cpu_id, struct kmes_mapping* mapping) {
    struct kmes_pending_attach* pending = kmes_pending_attach_used();
    struct kmes_socket_identity identity;
    int error;

    if (pending && kmes_pending_attach_identify(pending, mapping)) return 0;
    error = kmes_socket_identify(cpu_id, KMES_SOCKET_ANSWER_MS, &identity);
    if (error) return error_of_socket(error);
    kmes_mapping_identify(mapping, &identity);
    return 0;
}

/* A request about one CPU, by any way. */
struct question {
    struct kmes_mapping* mapping;
    __u16 cpu_id;
    bool promises; /* attach by the socket: membarrier */
};

static int attach_cpu_by_system_call(void* call) {
    const struct question* question = (const struct question*)call;

    return attach_one_of_all(attach_by_system_call, question->cpu_id, true, question->mapping);
}

static int attach_cpu_by_device(void* call) {
    const struct question* question = (const struct question*)call;
    __u64 capacity;
    int fd;
    int error = kmes_device_attach_cpu(question->cpu_id, &fd, &capacity);

    if (error == -ENOTTY)
        return attach_one_of_all(attach_by_device, question->cpu_id, true, question->mapping);
    if (error) return device_error(error);
    error = map_fd(fd, capacity, question->mapping);
    close(fd);
    question->mapping->session = 0; /* a kernel has one */
    return error;
}

static int attach_cpu_by_socket(void* call) {
    const struct question* question = (const struct question*)call;

    return map_from_socket(question->cpu_id, question->promises, question->mapping);
}

static int identify_cpu_by_system_call(void* call) {
    const struct question* question = (const struct question*)call;

    return attach_one_of_all(attach_by_system_call, question->cpu_id, false, question->mapping);
}

static int identify_cpu_by_device(void* call) {
    const struct question* question = (const struct question*)call;
    struct kmes_device_identity identity;
    int error = kmes_device_identify(question->cpu_id, &identity);

    if (error == -ENOTTY)
        return attach_one_of_all(attach_by_device, question->cpu_id, false, question->mapping);
    if (error) return device_error(error);
    question->mapping->device = identity.device;
    question->mapping->inode = identity.inode;
    question->mapping->session = 0;
    question->mapping->next_sequence = identity.next_sequence;
    return 0;
}

static int identify_cpu_by_socket(void* call) {
    const struct question* question = (const struct question*)call;

    return identify_from_socket(question->cpu_id, question->mapping);
}

static int attach_cpu(__u16 cpu_id, bool promises, struct kmes_mapping* mapping) {
    static const struct kmes_ways ways = {attach_cpu_by_system_call, attach_cpu_by_device,
                                          attach_cpu_by_socket};
    struct question question = {mapping, cpu_id, promises};
    KMES_UNCANCELLED;

    return kmes_call_by(&ways, &question);
}

static int libkmes_attach(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    (void)context;
    return attach_cpu(cpu_id, false, mapping);
}

static int libkmes_attach_with_membarrier(void* context, __u16 cpu_id,
                                          struct kmes_mapping* mapping) {
    (void)context;
    return attach_cpu(cpu_id, true, mapping);
}

void kmes_mapping_detach(struct kmes_mapping* mapping) {
    kmes_pending_attach_forget(mapping->base);
    munmap(mapping->base, mapping->mapped_bytes);
    kmes_lease_drop((struct kmes_lease*)mapping->owner);
    mapping->owner = NULL;
}

static void detach(void* context, struct kmes_mapping* mapping) {
    KMES_UNCANCELLED;

    (void)context;
    kmes_mapping_detach(mapping);
}

static int libkmes_attach_read_only(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    KMES_UNCANCELLED;
    int error = libkmes_attach(context, cpu_id, mapping);

    if (error || mprotect(mapping->base, mapping->mapped_bytes, PROT_READ) == 0) return error;
    error = -errno;
    detach(context, mapping);
    return error;
}

static int libkmes_identify(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    static const struct kmes_ways ways = {identify_cpu_by_system_call, identify_cpu_by_device,
                                          identify_cpu_by_socket};
    struct question question = {mapping, cpu_id, false};
    KMES_UNCANCELLED;

    (void)context;
    return kmes_call_by(&ways, &question);
}

/* The lease has ended although the buffer is current. Either the program has closed all its
 * descriptors, or the producer has stopped serving for a while. Takes another lease if possible,
 * without waiting for the producer. Otherwise the next question is followed by another attempt. */
static void renew_lease(__u16 cpu_id, struct kmes_mapping* mapping) {
    const __u32 operation =
        mapping->needs_barrier ? KMES_SOCKET_LEASE_WITH_MEMBARRIER : KMES_SOCKET_LEASE;
    struct kmes_socket_attachment attachment;
    struct kmes_pending request;
    struct stat now;

    kmes_pending_init(&request);
    if (kmes_pending_begin(&request, kmes_socket_ask_attach(operation, cpu_id))) return;
    if (kmes_pending_check(&request, true)) {
        kmes_pending_end(&request);
        return;
    }
    if (kmes_socket_take_attach(kmes_pending_take(&request), operation, cpu_id, &attachment))
        return;
    if (fstat(attachment.metadata_fds[0], &now) == 0 && now.st_dev == mapping->device &&
        now.st_ino == mapping->inode && attachment.lease_fd >= 0) {
        kmes_lease_drop((struct kmes_lease*)mapping->owner);
        mapping->owner = kmes_lease_make(attachment.lease_fd);
        attachment.lease_fd = -1;
    }
    kmes_socket_attachment_free(&attachment);
}

/*
 * A mapping with a session came by the socket. While the lease lasts, a process of its producer
 * exists, which needs no request. This process may be a child that the producer has forked, so the
 * address is checked as well from time to time. A producer that does not answer at once does not
 * delay the caller: until it answers, the last answer holds. Without a lease the caller waits.
 */
static int libkmes_is_current(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    KMES_UNCANCELLED;
    struct kmes_lease* lease = (struct kmes_lease*)mapping->owner;
    bool is_held = kmes_lease_is_held(lease);
    struct kmes_socket_identity now;
    int error;

    (void)context;
    if (is_held && !kmes_lease_is_asking(lease) &&
        kmes_lease_count_question(lease) % QUESTIONS_OF_LEASE != 0)
        return 1;
    error = lease ? kmes_lease_ask(lease, cpu_id, &now)
                  : kmes_socket_identify(cpu_id, QUESTION_MS, &now);
    if (error == -EINPROGRESS) return 1;
    if (error) return error_of_socket(error);
    if (now.device != mapping->device || now.inode != mapping->inode ||
        now.session != mapping->session)
        return 0;
    if (lease && !is_held) renew_lease(cpu_id, mapping);
    return 1;
}

static int system_call_attach(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    KMES_UNCANCELLED;

    (void)context;
    return attach_one_of_all(attach_by_system_call, cpu_id, true, mapping);
}

static int system_call_identify(void* context, __u16 cpu_id, struct kmes_mapping* mapping) {
    KMES_UNCANCELLED;

    (void)context;
    return attach_one_of_all(attach_by_system_call, cpu_id, false, mapping);
}

void kmes_reader_by_libkmes(struct kmes_reader_config* config, __u16 cpu_id) {
    config->attach_functions.attach = libkmes_attach;
    config->attach_functions.identify = libkmes_identify;
    config->attach_functions.detach = detach;
    config->attach_functions.context = NULL;
    config->is_current = libkmes_is_current;
    config->platform = kmes_user_platform();
    config->cpu_id = cpu_id;
}

int kmes_reader_promise_membarrier(struct kmes_reader_config* config) {
    int error = kmes_membarrier();

    if (error) return error;
    config->attach_functions.attach = libkmes_attach_with_membarrier;
    return 0;
}

void kmes_reader_make_read_only(struct kmes_reader_config* config) {
    config->attach_functions.attach = libkmes_attach_read_only;
}

void kmes_reader_by_system_call(struct kmes_reader_config* config, __u16 cpu_id) {
    kmes_reader_by_libkmes(config, cpu_id);
    config->attach_functions.attach = system_call_attach;
    config->attach_functions.identify = system_call_identify;
    config->is_current = NULL;
}

static int count_cpus(attach_function attach) {
    KMES_UNCANCELLED;
    __u64 capacity;
    int count = 0;
    int error = attach(NULL, &count, &capacity);

    if (error == -ERANGE) return count > 0 ? count : -EPROTO;
    return error ? error : -EPROTO; /* no number of slots was enough */
}

int kmes_cpus_by_system_call(void) {
    return count_cpus(attach_by_system_call);
}

static int cpus_by_system_call(void* call) {
    (void)call;
    return kmes_cpus_by_system_call();
}

static int cpus_by_device(void* call) {
    (void)call;
    return count_cpus(attach_by_device);
}

static int cpus_by_socket(void* call) {
    struct kmes_socket_identity identity;
    int error = kmes_socket_identify(0, KMES_SOCKET_ANSWER_MS, &identity);

    (void)call;
    return error ? error : (int)identity.cpus;
}

int kmes_cpus_by_libkmes(void) {
    static const struct kmes_ways ways = {cpus_by_system_call, cpus_by_device, cpus_by_socket};
    KMES_UNCANCELLED;

    return kmes_call_by(&ways, NULL);
}

static __u64 platform_clock_ns(void* context) {
    (void)context;
    return kmes_clock_realtime_ns();
}

static int platform_sleep(void* context, __u32* word, __u32 expected, __u64 timeout_ns) {
    (void)context;
    return kmes_futex_wait(word, expected, timeout_ns);
}

static int platform_barrier(void* context) {
    (void)context;
    return kmes_membarrier();
}

struct kmes_platform* kmes_user_platform(void) {
    static struct kmes_platform platform = {
        .clock_ns = platform_clock_ns,
        .sleep = platform_sleep,
        .barrier = platform_barrier,
    };

    return &platform;
}
