// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The emit calls: from the caller's memory to private memory, from there to the writer. See call.h.
 */
#include "kmes/call.h"

#include "kmes/order.h"
#include "kmes/ring.h"

/* What the lengths alone forbid, at this moment. The capacity belongs to a buffer that a resize on
 * another thread may replace and free: it is read with everybody kept out who may do so. Not with
 * kmes_guard_enter, though: who cannot be kept out (an NMI) emits here undisturbed. */
static int check_lengths(const struct kmes_call* call, const struct kmes_event_input* input) {
    struct kmes_cpu* cpu = call->cpu;
    __u64 event_bytes = kmes_event_bytes(input);
    __u64 capacity;
    bool is_nested;

    if (input->type_len == 0) return -EINVAL;
    if (event_bytes > call->max_event_bytes) return -ENOSPC;
    if (!kmes_platform_enter(cpu->platform)) return -EBUSY;
    is_nested = kmes_local_load(&cpu->inside) != 0;
    capacity = cpu->buffer->capacity;
    kmes_platform_exit(cpu->platform);
    if (is_nested) return -EBUSY;
    return event_bytes > capacity / 2 ? -ENOSPC : 0;
}

/*
 * Makes `input` of what the caller says: type and payload, one behind the other, in the staging
 * memory, each byte fetched once. They fit: an event has 29 bytes more than the two.
 */
static int stage(const struct kmes_call* call, const struct kmes_emit_entry* entry,
                 struct kmes_event_input* input) {
    int error;

    kmes_zero_private(input, sizeof(*input));
    input->type = call->staging;
    input->type_len = entry->type_len;
    input->payload = call->staging + entry->type_len;
    input->payload_len = entry->payload_len;
    input->origin_class = call->origin_class;
    error = check_lengths(call, input);
    if (error) return error;
    error = call->fetch(call->context, call->staging, entry->type, entry->type_len);
    if (error) return error;
    if (!kmes_utf8_is_valid(call->staging, entry->type_len)) return -EINVAL;
    if (entry->payload_len == 0) return 0;
    return call->fetch(call->context, call->staging + entry->type_len, entry->payload,
                       entry->payload_len);
}

int kmes_call_emit(const struct kmes_call* call, const void* type, __u16 type_len,
                   const void* payload, __u32 payload_len) {
    struct kmes_emit_entry entry;
    struct kmes_event_input input;
    int error;

    entry.type = type;
    entry.type_len = type_len;
    entry.payload = payload;
    entry.payload_len = payload_len;
    error = stage(call, &entry, &input);
    return error ? error : kmes_cpu_emit_call(call->cpu, &input);
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

    if (!error) error = stage(call, &entry, &input);
    return error ? error : kmes_batch_emit_call(call->cpu, batch, &input);
}

int kmes_call_emit_batch(const struct kmes_call* call, const struct kmes_emit_entry* entries,
                         __u32 count, __u32* emitted) {
    struct kmes_batch batch;
    __u32 i = 0;
    int error;

    *emitted = 0;
    if (count == 0 || count > KMES_BATCH_MAX_ENTRIES) return -EINVAL;
    kmes_batch_begin(call->cpu, &batch);
    do {
        error = emit_entry(call, &batch, entry_address(entries, i));
    } while (!error && ++i < count);
    kmes_batch_end(call->cpu, &batch);
    *emitted = i;
    return error;
}
