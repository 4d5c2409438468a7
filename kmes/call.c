// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The emit calls: from the caller's memory to private memory, from there to the writer. See call.h.
 */
#include "kmes/call.h"

#include "kmes/order.h"
#include "kmes/ring.h"

/* The CPU that the call goes to, until unpin; NULL: it has no producer. */
static struct kmes_cpu* pin(const struct kmes_call* call) {
    return call->cpu ? call->cpu : call->pin(call->context);
}

static void unpin(const struct kmes_call* call) {
    if (!call->cpu) call->unpin(call->context);
}

/* What the lengths alone forbid, at this moment. The capacity belongs to a buffer that a resize on
 * another thread may replace and free: it is read with everybody kept out who may do so. Not with
 * kmes_guard_enter, though: who cannot be kept out (an NMI) emits here undisturbed. */
static int check_capacity(struct kmes_cpu* cpu, __u64 event_bytes) {
    __u64 capacity;
    bool is_nested;

    if (!kmes_platform_enter(cpu->platform)) return -EBUSY;
    is_nested = kmes_local_load(&cpu->inside) != 0;
    capacity = cpu->buffer->capacity;
    kmes_platform_exit(cpu->platform);
    if (is_nested) return -EBUSY;
    return event_bytes > capacity / 2 ? -ENOSPC : 0;
}

static int check_lengths(const struct kmes_call* call, const struct kmes_event_input* input) {
    __u64 event_bytes = kmes_event_bytes(input);
    struct kmes_cpu* cpu;
    int error;

    if (input->type_len == 0) return -EINVAL;
    if (event_bytes > call->max_event_bytes) return -ENOSPC;
    cpu = pin(call);
    if (!cpu) return -EBUSY;
    error = check_capacity(cpu, event_bytes);
    unpin(call);
    return error;
}

/* `input` of an event that is staged at `staging`: type and payload, one behind the other. */
static void make_input(const struct kmes_call* call, __u8* staging, __u16 type_len,
                       __u32 payload_len, struct kmes_event_input* input) {
    kmes_zero_private(input, sizeof(*input));
    input->type = staging;
    input->type_len = type_len;
    input->payload = staging + type_len;
    input->payload_len = payload_len;
    input->origin_class = call->origin_class;
}

/*
 * Fetches what the caller says to `staging`, each byte once, and makes `input` of it. It fits into
 * MaxEventSize bytes: an event has 29 bytes more than type and payload.
 */
static int stage(const struct kmes_call* call, const struct kmes_emit_entry* entry, __u8* staging,
                 struct kmes_event_input* input) {
    int error;

    make_input(call, staging, entry->type_len, entry->payload_len, input);
    error = check_lengths(call, input);
    if (error) return error;
    error = call->fetch(call->context, staging, entry->type, entry->type_len);
    if (error) return error;
    if (!kmes_utf8_is_valid(staging, entry->type_len)) return -EINVAL;
    if (entry->payload_len == 0) return 0;
    return call->fetch(call->context, staging + entry->type_len, entry->payload,
                       entry->payload_len);
}

int kmes_call_emit(const struct kmes_call* call, const void* type, __u16 type_len,
                   const void* payload, __u32 payload_len) {
    struct kmes_emit_entry entry;
    struct kmes_event_input input;
    struct kmes_cpu* cpu;
    int error;

    entry.type = type;
    entry.type_len = type_len;
    entry.payload = payload;
    entry.payload_len = payload_len;
    error = stage(call, &entry, call->staging, &input);
    if (error) return error;
    cpu = pin(call);
    if (!cpu) return -EBUSY;
    error = kmes_cpu_emit_call(cpu, &input);
    unpin(call);
    return error;
}

/* The address of an entry, by arithmetic that may wrap: what the caller calls an array may be
 * anywhere, and is only fetched. */
static const void* entry_address(const struct kmes_emit_entry* entries, __u32 i) {
    return (const void*)((__UINTPTR_TYPE__)entries + i * sizeof(*entries));
}

static int emit_entry(const struct kmes_call* call, const struct kmes_batch* batch,
                      const void* address) {
    struct kmes_emit_entry entry;
    struct kmes_event_input input;
    int error = call->fetch(call->context, &entry, address, sizeof(entry));

    if (!error) error = stage(call, &entry, call->staging, &input);
    return error ? error : kmes_batch_emit_call(call->cpu, batch, &input);
}

/* To one CPU: entry by entry, published at the end. */
static int emit_to_cpu(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                       __u32 count, __u32* emitted) {
    struct kmes_batch batch;
    __u32 i = 0;
    int error;

    kmes_batch_begin(call->cpu, &batch);
    do {
        error = emit_entry(call, &batch, entry_address(entries, i));
    } while (!error && ++i < count);
    kmes_batch_end(call->cpu, &batch);
    *emitted = i;
    return error;
}

/* -- To the CPU that the thread is on -------------------------------------------------------- */

/* An event in the staging memory: this, the type, the payload, and what makes 8 of the rest. With
 * all that, it takes no more bytes than the event itself. */
struct staged {
    __u32 payload_len;
    __u16 type_len;
    __u16 reserved;
};

/* A batch on its way. */
struct parts {
    const struct kmes_call* call;
    struct kmes_batch batch;
    bool has_timestamp;
    __u64 bytes;  /* of the staging memory that this part has */
    __u32 events; /* of this part */
    /* The entry that was fetched last; it is part of the next part where it did not fit. */
    struct kmes_emit_entry entry;
    bool is_entry_left;
};

static __u64 staged_bytes(const struct kmes_emit_entry* entry) {
    return (sizeof(struct staged) + entry->type_len + (__u64)entry->payload_len + 7) & ~7ull;
}

/* Stages one entry. 1: it does not fit any more; otherwise 0 or its error. */
static int stage_one(struct parts* parts, const void* address) {
    const struct kmes_call* call = parts->call;
    struct staged* staged = (struct staged*)(void*)(call->staging + parts->bytes);
    struct kmes_emit_entry* entry = &parts->entry;
    struct kmes_event_input input;
    int error = 0;

    if (!parts->is_entry_left) error = call->fetch(call->context, entry, address, sizeof(*entry));
    parts->is_entry_left = false;
    if (error) return error;
    if (parts->events && staged_bytes(entry) > call->staging_bytes - parts->bytes) {
        parts->is_entry_left = true;
        return 1;
    }
    /* One that is too long for all of it is refused by its length. */
    error = stage(call, entry, (__u8*)(staged + 1), &input);
    if (error) return error;
    staged->payload_len = entry->payload_len;
    staged->type_len = entry->type_len;
    parts->bytes += staged_bytes(entry);
    parts->events++;
    return 0;
}

/* Writes and publishes what is staged. *written: how many events. */
static int write_part(struct parts* parts, __u32* written) {
    const struct kmes_call* call = parts->call;
    struct kmes_cpu* cpu;
    __u64 at = 0;
    int error = 0;
    __u32 i;

    *written = 0;
    if (!parts->events) return 0;
    cpu = pin(call);
    if (!cpu) return -EBUSY;
    if (!parts->has_timestamp) kmes_batch_begin(cpu, &parts->batch);
    parts->has_timestamp = true;
    for (i = 0; i < parts->events; i++) {
        const struct staged* staged = (const struct staged*)(const void*)(call->staging + at);
        struct kmes_event_input input;

        make_input(call, (__u8*)(call->staging + at + sizeof(*staged)), staged->type_len,
                   staged->payload_len, &input);
        error = kmes_batch_emit_call(cpu, &parts->batch, &input);
        if (error) break;
        at += (sizeof(*staged) + staged->type_len + (__u64)staged->payload_len + 7) & ~7ull;
    }
    kmes_batch_end(cpu, &parts->batch);
    unpin(call);
    *written = i;
    return error;
}

static int emit_in_parts(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                         __u32 count, __u32* emitted) {
    struct parts parts;
    __u32 next = 0, written;
    int error, write_error;

    kmes_zero_private(&parts, sizeof(parts));
    parts.call = call;
    do {
        parts.bytes = 0;
        parts.events = 0;
        do {
            error = stage_one(&parts, entry_address(entries, next));
        } while (!error && ++next < count);
        write_error = write_part(&parts, &written);
        *emitted += written;
        if (write_error) return write_error;
    } while (error == 1);
    return error;
}

int kmes_call_emit_batch(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                         __u32 count, __u32* emitted) {
    *emitted = 0;
    if (count == 0 || count > KMES_BATCH_MAX_ENTRIES) return -EINVAL;
    return call->cpu ? emit_to_cpu(call, entries, count, emitted)
                     : emit_in_parts(call, entries, count, emitted);
}
