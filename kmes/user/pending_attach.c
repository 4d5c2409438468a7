// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * An attach that goes on in the next call if the producer has not answered. See libkmes_parts.h.
 *
 *   lease or attach -> mapped, generation loaded -> identify -> the reader gets the mapping
 *
 * E19: the producer must name the buffer as the current one after the reader has loaded its
 * generation. A reader loads it after the attach, and an answer that comes then would be a further
 * wait. So the answer to a request that was sent after an earlier load counts, if the generation is
 * still the same: it changes only once, when the buffer is retired.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmes/reader.h"
#include "kmes/user/libkmes_parts.h"
#include "kmes/user/pending.h"
#include "kmes/user/socket_protocol.h"

struct kmes_pending_attach {
    struct kmes_pending request;
    struct kmes_mapping mapping; /* base is NULL: not mapped, or handed out */
    __u64 generation;            /* of the mapping, before the request for the identity */
    const void* answered_base;   /* the mapping of `identity`; NULL: there is no answer */
    struct kmes_socket_identity identity;
    __u32 operation; /* of the next request for an attach; 0: not chosen */
};

static _Thread_local struct kmes_pending_attach* used;

struct kmes_pending_attach* kmes_pending_attach_use(struct kmes_pending_attach* pending) {
    struct kmes_pending_attach* previous = used;

    used = pending;
    return previous;
}

struct kmes_pending_attach* kmes_pending_attach_used(void) {
    return used;
}

struct kmes_pending_attach* kmes_pending_attach_make(void) {
    struct kmes_pending_attach* made = (struct kmes_pending_attach*)calloc(1, sizeof(*made));

    if (made) kmes_pending_init(&made->request);
    return made;
}

/* The next attach begins anew. */
static void reset(struct kmes_pending_attach* pending) {
    kmes_pending_end(&pending->request);
    if (pending->mapping.base) kmes_mapping_detach(&pending->mapping);
    pending->mapping.base = NULL;
    pending->operation = 0;
}

void kmes_pending_attach_free(struct kmes_pending_attach* pending) {
    if (!pending) return;
    reset(pending);
    free(pending);
}

static __u64 load_generation(void* base) {
    struct kmes_fields fields;

    kmes_bind_fields(&fields, base, KMES_VERSION_1);
    return __atomic_load_n(fields.generation, __ATOMIC_ACQUIRE);
}

/* Sends the request that is next. */
static int ask(struct kmes_pending_attach* pending, __u16 cpu) {
    if (pending->mapping.base)
        return kmes_pending_begin(&pending->request, kmes_socket_ask_identity(cpu));
    return kmes_pending_begin(&pending->request, kmes_socket_ask_attach(pending->operation, cpu));
}

static int take_mapping(struct kmes_pending_attach* pending, __u16 cpu) {
    struct kmes_socket_attachment attachment;
    const __u32 older = kmes_socket_older_attach(pending->operation);
    int error = kmes_socket_take_attach(kmes_pending_take(&pending->request), pending->operation,
                                        cpu, &attachment);

    if (error == -EPROTO && older) {
        pending->operation = older;
        return 0;
    }
    if (!error) error = kmes_socket_attachment_map(&attachment, &pending->mapping);
    if (error) {
        pending->mapping.base = NULL;
        return error;
    }
    pending->generation = load_generation(pending->mapping.base);
    return 0;
}

/* Receives the answer, and does what follows from it. Returns 1 after the last answer. */
static int take(struct kmes_pending_attach* pending, __u16 cpu) {
    int error;

    if (!pending->mapping.base) return take_mapping(pending, cpu);
    error = kmes_socket_take_identity(kmes_pending_take(&pending->request), &pending->identity);
    return error ? error : 1;
}

/* As long as answers come. Returns 1 after the last one. */
static int go_on(struct kmes_pending_attach* pending, __u16 cpu) {
    for (;;) {
        const bool is_new = pending->request.fd < 0;
        int result = is_new ? ask(pending, cpu) : 0;

        if (!result) result = kmes_pending_check(&pending->request, is_new);
        if (!result) result = take(pending, cpu);
        if (result) return result;
    }
}

int kmes_pending_attach_step(struct kmes_pending_attach* pending, __u16 cpu, bool promises,
                             struct kmes_mapping* mapping) {
    int result;

    pending->answered_base = NULL;
    /* After fork and closefrom. */
    if (!kmes_pending_is_here(&pending->request)) reset(pending);
    if (!pending->operation)
        pending->operation = promises ? KMES_SOCKET_LEASE_WITH_MEMBARRIER : KMES_SOCKET_LEASE;
    result = go_on(pending, cpu);
    if (result < 0) {
        if (pending->request.fd < 0) reset(pending);
        return result;
    }
    *mapping = pending->mapping;
    pending->answered_base = mapping->base;
    pending->mapping.base = NULL;
    pending->operation = 0;
    return 0;
}

void kmes_pending_attach_forget(const void* base) {
    if (used && used->answered_base == base) used->answered_base = NULL;
}

bool kmes_pending_attach_identify(struct kmes_pending_attach* pending,
                                  struct kmes_mapping* mapping) {
    const void* base = pending->answered_base;

    if (!base) return false;
    pending->answered_base = NULL;
    if (load_generation((void*)(__UINTPTR_TYPE__)base) != pending->generation)
        memset(&pending->identity, 0, sizeof(pending->identity)); /* the reader attaches again */
    kmes_mapping_identify(mapping, &pending->identity);
    return true;
}
