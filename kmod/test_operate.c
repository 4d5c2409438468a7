// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs of <linux/kmes_test.h>. Each verb is one call of the core on a CPU of a test instance,
 * under the instance's lock. A verb in an invalid state (a commit without a reservation) returns
 * -EINVAL, without effect.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "test.h"

#define TEST_TYPE_BYTES_MAX 65535u

/* The objects of one operation. */
struct operation {
    struct kmes_test* test;
    struct kmes_instance* instance;
    struct kmes_instance_cpu* cpu;
    struct kmes_test_cpu* open;
    struct kmes_test_operation* wanted;
};

/* -- Memory of the process, copied before the lock is taken ---------------------------------- */

/* Copies the bytes at an address; NULL for none, without an error. */
static void* copy_bytes(u64 address, u64 bytes, int* error) {
    void* copy;

    if (bytes == 0 || address == 0) return NULL;
    if (!kmes_test_memory_is_there(bytes)) {
        *error = -ENOMEM;
        return NULL;
    }
    copy = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
    if (!copy) {
        *error = -ENOMEM;
        return NULL;
    }
    if (!copy_from_user(copy, u64_to_user_ptr(address), bytes)) return copy;
    kvfree(copy);
    *error = -EFAULT;
    return NULL;
}

static u64 capacity_now(const struct operation* at) {
    u64 capacity;

    mutex_lock(&at->instance->lock);
    capacity = at->cpu->core.buffer->capacity;
    mutex_unlock(&at->instance->lock);
    return capacity;
}

/* Makes an event for the core; type and payload are copies. A payload that is too large for the
 * buffer has no copy: the core does not access it. */
static int make_input(const struct operation* at, struct kmes_event_input* input) {
    const struct kmes_test_operation* wanted = at->wanted;
    int error = 0;

    memset(input, 0, sizeof(*input));
    if (wanted->type_len > TEST_TYPE_BYTES_MAX || wanted->origin_class > 255) return -EINVAL;
    input->type_len = (u16)wanted->type_len;
    input->payload_len = (u32)min_t(u64, wanted->payload_len, U32_MAX);
    input->origin_class = (u8)wanted->origin_class;
    input->header_extra_len = wanted->header_extra;
    if (input->type_len && !wanted->type_address) return -EFAULT;
    input->type = copy_bytes(wanted->type_address, input->type_len, &error);
    if (!error && wanted->verb != KMES_TEST_RESERVE &&
        kmes_event_bytes(input) <= capacity_now(at) / 2)
        input->payload = copy_bytes(wanted->payload_address, input->payload_len, &error);
    return error;
}

static void free_input(const struct kmes_event_input* input) {
    kvfree(input->type);
    kvfree(input->payload);
}

/* Called under the lock. True if all memory that the core will read is present. */
static bool is_whole(const struct operation* at, const struct kmes_event_input* input) {
    if (input->payload || input->payload_len == 0) return true;
    if (at->wanted->verb == KMES_TEST_RESERVE || at->open->has_reservation) return true;
    return kmes_event_bytes(input) > at->cpu->core.buffer->capacity / 2;
}

/* -- Events ---------------------------------------------------------------------------------- */

/* E11: positions never wrap at 2^64. An event is smaller than a capacity. A call has many events,
 * and releases the lock for others in between. */
#define TEST_CALL_EVENTS_MAX 512u

static bool has_room(const struct operation* at, u64 events) {
    const struct kmes_buffer* buffer = at->cpu->core.buffer;

    return ~0ull - buffer->frontier >= events * buffer->capacity;
}

static int add(const struct operation* at, const struct kmes_event_input* input) {
    const struct kmes_batch* batch = &at->open->batch;
    struct kmes_cpu* core = &at->cpu->core;
    struct kmes_batch_entry entry = {
        .type = input->type,
        .payload = input->payload,
        .type_len = input->type_len,
        .payload_len = input->payload_len,
    };
    struct kmes_batch_rules rules = {
        .max_event_bytes = U64_MAX / 2,
        .origin_class = input->origin_class,
    };
    u32 emitted;

    if (at->wanted->style == 0) return kmes_batch_emit(core, batch, input);
    if (at->wanted->style == 1) return kmes_batch_emit_call(core, batch, input);
    return kmes_batch_emit_entries(core, batch, &rules, &entry, 1, &emitted);
}

static int emit_locked(const struct operation* at, const struct kmes_event_input* input) {
    struct kmes_test_cpu* open = at->open;
    struct kmes_cpu* core = &at->cpu->core;
    struct kmes_reservation fresh;
    bool is_call = at->wanted->style == 1;
    int result;

    if (open->is_over || !has_room(at, 1)) return -EINVAL;
    if (!is_whole(at, input)) return -EFAULT;
    switch (at->wanted->verb) {
        case KMES_TEST_EMIT:
            result = is_call ? kmes_cpu_emit_call(core, input) : kmes_cpu_emit(core, input);
            break;
        case KMES_TEST_ADD:
            if (!open->has_batch) return -EINVAL;
            result = add(at, input);
            break;
        default:
            /* A nested reservation must not change the fields of the one that it interrupts. */
            result = kmes_reserve(core, input, &fresh);
            if (result) break;
            open->reservation = fresh;
            open->has_reservation = true;
    }
    at->wanted->result = result;
    return 0;
}

static int emit(const struct operation* at) {
    struct kmes_event_input input;
    int error;

    if (at->wanted->style > (at->wanted->verb == KMES_TEST_ADD ? 2 : 1)) return -EINVAL;
    error = make_input(at, &input);
    if (!error) {
        mutex_lock(&at->instance->lock);
        error = emit_locked(at, &input);
        mutex_unlock(&at->instance->lock);
    }
    free_input(&input);
    return error;
}

/* For kmes_call: releases the lock during the copy, so that a resize may come in between
 * (call.h). */
static int fetch(void* context, void* to, const void* from, __u64 bytes) {
    const struct operation* at = context;
    unsigned long left;

    mutex_unlock(&at->instance->lock);
    left = copy_from_user(to, (const void __user*)from, bytes);
    mutex_lock(&at->instance->lock);
    return left || at->open->is_over ? -EFAULT : 0;
}

static int call(struct operation* at) {
    struct kmes_test_operation* wanted = at->wanted;
    struct kmes_call call = {
        .cpu = &at->cpu->core,
        .max_event_bytes = at->instance->max_event_bytes,
        .fetch = fetch,
        .context = at,
        .origin_class = (u8)wanted->origin_class,
    };
    const void* payload = (const void*)(unsigned long)wanted->payload_address;
    u32 emitted = 0;

    if (wanted->type_len > TEST_TYPE_BYTES_MAX || wanted->origin_class > 255) return -EINVAL;
    call.staging = kvmalloc(call.max_event_bytes, GFP_KERNEL_ACCOUNT);
    if (!call.staging) return -ENOMEM;
    mutex_lock(&at->instance->lock);
    if (at->open->is_over || !has_room(at, TEST_CALL_EVENTS_MAX)) {
        mutex_unlock(&at->instance->lock);
        kvfree(call.staging);
        return -EINVAL;
    }
    if (wanted->verb == KMES_TEST_CALL)
        wanted->result = kmes_call_emit(&call, (const void*)(unsigned long)wanted->type_address,
                                        (u16)wanted->type_len, payload,
                                        (u32)min_t(u64, wanted->payload_len, U32_MAX));
    else
        wanted->result = kmes_call_emit_batch(
            &call, payload, (u32)min_t(u64, wanted->payload_len, U32_MAX), &emitted);
    if (wanted->verb == KMES_TEST_CALL_BATCH) wanted->value = emitted;
    mutex_unlock(&at->instance->lock);
    kvfree(call.staging);
    return 0;
}

/* -- Batches and reservations, under the lock ------------------------------------------------ */

static int batch(const struct operation* at) {
    struct kmes_test_cpu* open = at->open;
    bool is_begin = at->wanted->verb == KMES_TEST_BATCH;

    if (open->is_over || open->has_batch == is_begin) return -EINVAL;
    open->has_batch = is_begin;
    if (is_begin)
        kmes_batch_begin(&at->cpu->core, &open->batch);
    else
        kmes_batch_end(&at->cpu->core, &open->batch);
    return 0;
}

static int close_reservation(const struct operation* at) {
    if (!at->open->has_reservation) return -EINVAL;
    at->open->has_reservation = false;
    if (at->wanted->verb == KMES_TEST_COMMIT)
        kmes_commit(&at->cpu->core, &at->open->reservation);
    else
        kmes_abandon(&at->cpu->core, &at->open->reservation);
    return 0;
}

/* Called without the lock. */
static int fill(const struct operation* at) {
    struct kmes_test_operation* wanted = at->wanted;
    u64 bytes = min_t(u64, wanted->bytes, capacity_now(at));
    int error = 0;
    void* copy;

    if (wanted->offset > U32_MAX) return -EINVAL;
    copy = copy_bytes(wanted->payload_address, bytes, &error);
    if (error) return error;
    if (bytes && !copy) return -EFAULT;
    mutex_lock(&at->instance->lock);
    if (at->open->has_reservation)
        kmes_reservation_fill(&at->cpu->core, &at->open->reservation, (u32)wanted->offset, copy,
                              (u32)bytes);
    else
        error = -EINVAL;
    mutex_unlock(&at->instance->lock);
    kvfree(copy);
    return error;
}

/* -- Swaps, under the lock ------------------------------------------------------------------- */

/* The hand-over of an instance is complete when each of its CPUs has changed (5.1.2). */
static void leave_boot(const struct operation* at) {
    u32 i;

    at->open->is_boot = false;
    for (i = 0; i < at->instance->cpus; i++)
        if (at->test->cpu[i].is_boot) return;
    at->instance->is_boot = false;
}

/* In both directions, modulo 2^64. */
static bool is_shift_in_range(const struct kmes_buffer* buffer, u64 shift, u64 capacity) {
    return ~0ull - (buffer->frontier + shift) >= capacity &&
           buffer->tail + shift <= buffer->frontier + shift;
}

static int begin_swap(const struct operation* at) {
    const struct kmes_test_operation* wanted = at->wanted;
    const struct kmes_memory_setup setup = {.capacity = wanted->capacity, .cpu = wanted->cpu};
    struct kmes_cpu* core = &at->cpu->core;
    struct kmes_memory* fresh;
    int result;

    if (at->open->is_over || at->open->next || wanted->positions > KMES_SWAP_SHIFT) return -EINVAL;
    if (wanted->capacity < 4096 || wanted->capacity > (256ull << 20)) return -EINVAL;
    if (wanted->positions == KMES_SWAP_SHIFT &&
        !is_shift_in_range(core->buffer, wanted->shift, wanted->capacity))
        return -EINVAL;
    if (!kmes_test_memory_is_there(wanted->capacity)) return -ENOMEM;
    fresh = kmes_memory_make(at->instance, &setup);
    if (IS_ERR(fresh)) return PTR_ERR(fresh);
    if (wanted->verb == KMES_TEST_SWAP)
        result = kmes_swap_run(core, &fresh->buffer, wanted->positions, wanted->shift);
    else
        result = kmes_swap_begin(&at->open->swap, core, &fresh->buffer, wanted->positions,
                                 wanted->shift);
    at->wanted->result = result;
    if (result) {
        kmes_memory_put(fresh);
    } else if (wanted->verb == KMES_TEST_SWAP) {
        kmes_memory_put(kmes_instance_swapped(at->cpu, fresh));
        leave_boot(at);
    } else {
        at->open->next = fresh;
    }
    return 0;
}

static int go_on_with_swap(const struct operation* at) {
    struct kmes_memory* fresh = at->open->next;
    int result;

    if (!fresh || at->open->is_over) return -EINVAL;
    if (at->wanted->verb == KMES_TEST_COPY) {
        at->wanted->result = kmes_swap_copy(&at->open->swap);
        return 0;
    }
    result = kmes_swap_finish(&at->open->swap);
    at->wanted->result = result;
    if (result) return 0;
    at->open->next = NULL;
    kmes_memory_put(kmes_instance_swapped(at->cpu, fresh));
    leave_boot(at);
    return 0;
}

static int retire(const struct operation* at) {
    int result = kmes_cpu_retire(&at->cpu->core);

    if (!result) at->open->is_over = true;
    at->wanted->result = result;
    return 0;
}

static int set_clock(const struct operation* at) {
    at->instance->clock_ns = at->wanted->value;
    at->instance->clock_step_ns = at->wanted->offset;
    return 0;
}

static int operate_locked(const struct operation* at) {
    int error;

    mutex_lock(&at->instance->lock);
    switch (at->wanted->verb) {
        case KMES_TEST_BATCH:
        case KMES_TEST_END:
            error = batch(at);
            break;
        case KMES_TEST_COMMIT:
        case KMES_TEST_ABANDON:
            error = close_reservation(at);
            break;
        case KMES_TEST_SWAP:
        case KMES_TEST_PREPARE:
            error = begin_swap(at);
            break;
        case KMES_TEST_COPY:
        case KMES_TEST_CHANGE:
            error = go_on_with_swap(at);
            break;
        case KMES_TEST_RETIRE:
            error = retire(at);
            break;
        default:
            error = set_clock(at);
    }
    mutex_unlock(&at->instance->lock);
    return error;
}

/* -- Of one buffer --------------------------------------------------------------------------- */

static int write_bytes(const struct operation* at, struct kmes_memory* memory) {
    const struct kmes_test_operation* wanted = at->wanted;
    u64 room = kmes_memory_bytes(memory);
    int error = 0;
    void* copy;

    if (wanted->bytes > room || wanted->offset > room - wanted->bytes) return -EINVAL;
    copy = copy_bytes(wanted->payload_address, wanted->bytes, &error);
    if (error) return error;
    if (!copy) return wanted->bytes ? -EFAULT : 0;
    mutex_lock(&at->instance->lock);
    /* Like a consumer, concurrently with accesses to the same bytes. */
    data_race(memcpy((u8*)memory->mapping + wanted->offset, copy, wanted->bytes));
    mutex_unlock(&at->instance->lock);
    kvfree(copy);
    return 0;
}

static int nudge(const struct operation* at, struct kmes_memory* memory) {
    if (memory->cpu != at->wanted->cpu) return -EINVAL;
    mutex_lock(&at->instance->lock);
    at->wanted->result = kmes_buffer_nudge(&at->cpu->core, &memory->buffer);
    mutex_unlock(&at->instance->lock);
    return 0;
}

/* The buffer of an unfinished swap is not visible (E14). */
static bool is_seen(const struct operation* at, const struct kmes_memory* memory) {
    bool is_next = false;
    u32 i;

    mutex_lock(&at->instance->lock);
    for (i = 0; i < at->instance->cpus; i++) is_next |= at->test->cpu[i].next == memory;
    mutex_unlock(&at->instance->lock);
    return !is_next;
}

static int operate_on_buffer(const struct operation* at, struct file** file) {
    struct kmes_memory* memory = kmes_memory_find(at->instance, at->wanted->buffer);
    int error = 0;

    if (!memory) return -EINVAL;
    if (!is_seen(at, memory)) {
        error = -EINVAL;
    } else if (at->wanted->verb == KMES_TEST_WAKE) {
        at->wanted->result = kmes_wake_now(memory);
    } else if (at->wanted->verb == KMES_TEST_OPEN) {
        *file = kmes_memory_open(memory);
        error = PTR_ERR_OR_ZERO(*file);
    } else if (at->wanted->verb == KMES_TEST_WRITE) {
        error = write_bytes(at, memory);
    } else {
        error = nudge(at, memory);
    }
    kmes_memory_put(memory);
    return error;
}

/* -- For fuzzers ----------------------------------------------------------------------------- */

/* A coverage-guided fuzzer finds it step by step; by chance it is found once in 65536 times. */
static s64 canary(u64 value) {
    s64 steps = 0;

    if ((value & 15) != 0xb) return steps;
    WRITE_ONCE(steps, 1);
    if ((value >> 4 & 15) != 0x1) return steps;
    WRITE_ONCE(steps, 2);
    if ((value >> 8 & 15) != 0x7) return steps;
    WRITE_ONCE(steps, 3);
    if ((value >> 12 & 15) != 0xd) return steps;
    WRITE_ONCE(steps, 4);
    return steps;
}

/* -- State ----------------------------------------------------------------------------------- */

static int tell_state(const struct operation* at) {
    const struct kmes_cpu* core = &at->cpu->core;
    struct kmes_test_state state = {.statistics.cpu = at->wanted->cpu};
    int error = kmes_instance_statistics(at->instance, &state.statistics);

    if (error) return error;
    mutex_lock(&at->instance->lock);
    state.capacity = core->buffer->capacity;
    state.tail = core->buffer->tail;
    state.published = core->buffer->published;
    state.frontier = core->buffer->frontier;
    state.generation = core->buffer->generation;
    state.futex_counter = core->buffer->futex_counter;
    state.sequence = core->sequence;
    state.wakes_issued = atomic64_read(&at->instance->wakes_issued);
    state.threads_woken = atomic64_read(&at->instance->threads_woken);
    state.buffer = at->cpu->memory->number;
    state.buffers = at->instance->buffers_made;
    state.is_boot = at->open->is_boot;
    mutex_unlock(&at->instance->lock);
    if (copy_to_user(u64_to_user_ptr(at->wanted->state_address), &state, sizeof(state)))
        return -EFAULT;
    return 0;
}

int kmes_test_operate(struct kmes_test* test, struct kmes_test_operation* wanted,
                      struct file** file) {
    struct operation at = {
        .test = test,
        .instance = test->instance,
        .cpu = test->instance->cpu[wanted->cpu],
        .open = &test->cpu[wanted->cpu],
        .wanted = wanted,
    };

    wanted->result = 0;
    switch (wanted->verb) {
        case KMES_TEST_EMIT:
        case KMES_TEST_ADD:
        case KMES_TEST_RESERVE:
            return emit(&at);
        case KMES_TEST_CALL:
        case KMES_TEST_CALL_BATCH:
            return call(&at);
        case KMES_TEST_FILL:
            return fill(&at);
        case KMES_TEST_NUDGE:
        case KMES_TEST_WAKE:
        case KMES_TEST_WRITE:
        case KMES_TEST_OPEN:
            return operate_on_buffer(&at, file);
        case KMES_TEST_SETTLE:
            kmes_wake_settle();
            return 0;
        case KMES_TEST_STATE:
            return tell_state(&at);
        case KMES_TEST_CANARY:
            wanted->result = canary(wanted->value);
            return 0;
        case KMES_TEST_BATCH:
        case KMES_TEST_END:
        case KMES_TEST_COMMIT:
        case KMES_TEST_ABANDON:
        case KMES_TEST_SWAP:
        case KMES_TEST_PREPARE:
        case KMES_TEST_COPY:
        case KMES_TEST_CHANGE:
        case KMES_TEST_RETIRE:
        case KMES_TEST_CLOCK:
            return operate_locked(&at);
        default:
            return -EINVAL;
    }
}

void kmes_test_drop(struct kmes_test* test) {
    u32 i;

    for (i = 0; i < test->instance->cpus; i++)
        if (test->cpu[i].next) kmes_memory_put(test->cpu[i].next);
}
