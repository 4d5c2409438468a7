// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The emit calls: from the caller's memory to private memory, and from there to the writer. See
 * call.h.
 */
#include "kmes/call.h"

#include "kmes/order.h"
#include "kmes/ring.h"

/* Returns the CPU of the call, valid until unpin, or NULL if it has no producer. */
static struct kmes_cpu* pin(const struct kmes_call* call) {
    return call->cpu ? call->cpu : call->pin(call->context);
}

static void unpin(const struct kmes_call* call) {
    if (!call->cpu) call->unpin(call->context);
}

/* Checks the event's size against the current capacity. A resize on another thread may replace and
 * free the buffer, so kmes_platform_enter excludes it during the load. kmes_guard_enter would also
 * reject the emission of a context that cannot be excluded (an NMI). */
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

/* Fills `input` for an event that is staged at `staging`: the type, then the payload. */
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
 * Fetches type and payload to `staging`, each byte once, and fills `input`. MaxEventSize bytes are
 * enough: an event has a fixed header besides type and payload.
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

/* Returns the address of an entry, by arithmetic that may wrap. The caller's array may be at any
 * address, and the code only fetches from it. */
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

/* For one CPU: writes entry by entry and publishes at the end. */
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

/* An event in the staging memory: this header, the type, the payload, and padding to 8 bytes. With
 * the padding it takes no more bytes than the event itself. */
struct staged {
    __u32 payload_len;
    __u16 type_len;
    __u16 reserved;
};

/* A batch in progress. */
struct parts {
    const struct kmes_call* call;
    struct kmes_batch batch;
    bool has_timestamp;
    __u64 bytes;  /* staging memory that this part uses */
    __u32 events; /* of this part */
    /* The last fetched entry. If it did not fit, it belongs to the next part. */
    struct kmes_emit_entry entry;
    bool is_entry_left;
};

static __u64 staged_bytes(const struct kmes_emit_entry* entry) {
    return (sizeof(struct staged) + entry->type_len + (__u64)entry->payload_len + 7) & ~7ull;
}

/* Stages one entry. Returns 0, 1 if it does not fit any more, or the error of the entry. */
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
    /* The length check rejects an entry that is too long for the whole staging memory. */
    error = stage(call, entry, (__u8*)(staged + 1), &input);
    if (error) return error;
    staged->payload_len = entry->payload_len;
    staged->type_len = entry->type_len;
    parts->bytes += staged_bytes(entry);
    parts->events++;
    return 0;
}

/* Writes and publishes the staged events. *written is their number. */
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
