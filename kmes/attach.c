// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The attach of a reader: opening, checking a mapping, and changing to a newer one (5.1.8.3 with
 * E11, E14, E15, E19, E21, E25). This file reads no events: consumer.c finds the first number.
 */
#include "kmes/order.h"
#include "kmes/reader_parts.h"

/* The limit of attempts against a producer that swaps at every attach. After the last attempt the
 * reader keeps the buffer that it has, and relies on the nudge (E19). */
#define KMES_ATTACH_ATTEMPTS 64u

/* A mapping that has passed check_mapping. */
struct found {
    struct kmes_mapping mapping;
    struct kmes_fields shared;
    __u64 capacity;
    __u64 generation;
    __u64 next_sequence; /* of identify, after the attach */
};

static bool magic_is_right(const struct kmes_fields* shared) {
    static const __u8 magic[KMES_MAGIC_BYTES] = KMES_MAGIC_INITIALIZER;
    unsigned i;

    for (i = 0; i < KMES_MAGIC_BYTES; i++) {
        if (kmes_load_relaxed_u8(shared->magic + i, KMES_ORDER_STATIC_FIELD) != magic[i])
            return false;
    }
    return true;
}

/* 5.1.6.1, and E14 for the capacity. The reader loads these values once and never again (E9). Magic
 * and version are at the same offset in every version. */
static int check_mapping(struct found* found) {
    struct kmes_fields* shared = &found->shared;
    __u32 version;

    if (found->mapping.mapped_bytes < kmes_mapping_bytes(KMES_VERSION_1, KMES_CAPACITY_MIN_BYTES))
        return -EINVAL;
    kmes_bind_fields(shared, found->mapping.base, KMES_VERSION_1);
    if (!magic_is_right(shared)) return -EPROTO;
    version = kmes_load_relaxed_u32(shared->version, KMES_ORDER_STATIC_FIELD);
    if (!kmes_bind_fields(shared, found->mapping.base, version)) return -EPROTONOSUPPORT;
    found->capacity = kmes_load_relaxed_u64(shared->capacity, KMES_ORDER_STATIC_FIELD);
    if (!kmes_capacity_is_valid(found->capacity) ||
        kmes_mapping_bytes(version, found->capacity) != found->mapping.mapped_bytes)
        return -EINVAL;
    if (kmes_load_relaxed_u64(shared->data_offset, KMES_ORDER_STATIC_FIELD) !=
        kmes_data_offset_bytes(version))
        return -EINVAL;
    return 0;
}

bool kmes_mapping_is_same(const struct kmes_mapping* a, const struct kmes_mapping* b) {
    return a->device == b->device && a->inode == b->inode && a->session == b->session;
}

/* One attach. Returns 1 if the buffer may have been retired before the reader loaded its
 * generation. */
static int attach_once(const struct kmes_reader_config* config, struct found* found) {
    const struct kmes_attach_functions* functions = &config->attach_functions;
    struct kmes_mapping now = {.next_sequence = 0}; /* an identify may not set it */
    int error = functions->attach(functions->context, config->cpu_id, &found->mapping);

    if (error) return error;
    error = check_mapping(found);
    if (!error) {
        found->generation =
            kmes_load_acquire_u64(found->shared.generation, KMES_ORDER_LOAD_GENERATION);
        error = functions->identify(functions->context, config->cpu_id, &now);
    }
    if (error) {
        functions->detach(functions->context, &found->mapping);
        return error;
    }
    if (!kmes_mapping_is_same(&found->mapping, &now)) return 1;
    found->next_sequence = now.next_sequence;
    return 0;
}

/* E19: the buffer is alive if the producer still writes to it after the load of its generation.
 * Then the value is the buffer's own generation, and not one that a swap stored when it retired the
 * buffer. */
static int attach_alive(const struct kmes_reader_config* config, struct found* found) {
    unsigned attempt;

    for (attempt = 1;; attempt++) {
        int error = attach_once(config, found);

        if (error <= 0) return error;
        if (attempt == KMES_ATTACH_ATTEMPTS) return 0;
        config->attach_functions.detach(config->attach_functions.context, &found->mapping);
    }
}

/* E25: numbers of two sessions are unrelated. A process numbers the events of a new session from 1
 * on, so a reader that continues there knows which ones it has missed. A kernel may have emitted
 * for long: the count begins with the attach. */
static void continue_in_session(struct kmes_reader* reader) {
    reader->last_sequence = 0;
    reader->has_sequence = true;
}

/* E11: the reader assumes nothing about the positions. Reading begins at the tail, and the sequence
 * numbers identify new events (E21). At the first attach there is no mapping to continue from. */
static void adopt(struct kmes_reader* reader, const struct found* found) {
    const bool is_first = !reader->mapping.base;
    const bool is_other = is_first || reader->mapping.session != found->mapping.session;

    reader->mapping = found->mapping;
    reader->shared = found->shared;
    reader->capacity = found->capacity;
    reader->generation = found->generation;
    reader->read_pos = kmes_load_acquire_u64(found->shared.tail_pos, KMES_ORDER_LOAD_TAIL);
    reader->peeked_bytes = 0;
    reader->producer_error = 0;
    reader->is_replaced = false;
    if (is_other && !is_first && reader->mapping.session)
        continue_in_session(reader);
    else if (is_other)
        kmes_reader_begin_count(reader, found->next_sequence);
}

/* Skips events that another reader has delivered: they are not newer (E21). */
static void go_on_from(struct kmes_reader* reader, const struct kmes_reader_place* place) {
    if (!place->is_known) return;
    if (place->session != reader->mapping.session) {
        if (reader->mapping.session) continue_in_session(reader);
        return;
    }
    reader->last_sequence = place->last_sequence;
    reader->has_sequence = true;
}

int kmes_reader_open(struct kmes_reader* reader, const struct kmes_reader_config* config) {
    struct found found;
    int error;

    kmes_zero_private(reader, sizeof(*reader));
    kmes_zero_private(&found, sizeof(found));
    reader->stopped = true; /* no mapping to read from yet */
    error = attach_alive(config, &found);
    if (error) return error;
    reader->stopped = false;
    reader->config = *config;
    adopt(reader, &found);
    go_on_from(reader, &config->place);
    return 0;
}

void kmes_reader_close(struct kmes_reader* reader) {
    const struct kmes_attach_functions* functions = &reader->config.attach_functions;

    if (!reader->mapping.base) return;
    functions->detach(functions->context, &reader->mapping);
    reader->mapping.base = NULL;
    reader->peeked_bytes = 0;
    reader->stopped = true;
}

struct kmes_reader_place kmes_reader_get_place(const struct kmes_reader* reader) {
    struct kmes_reader_place place = {reader->mapping.session, reader->last_sequence,
                                      reader->has_sequence};

    return place;
}

int kmes_reader_switch(struct kmes_reader* reader, __u64 generation) {
    const struct kmes_attach_functions* functions = &reader->config.attach_functions;
    struct found found;
    int error;

    kmes_zero_private(&found, sizeof(found));
    error = attach_alive(&reader->config, &found);
    if (error) return error;
    if (kmes_mapping_is_same(&found.mapping, &reader->mapping)) {
        /* A change without a successor: store the value, or every check would come here again
         * (E15). */
        functions->detach(functions->context, &found.mapping);
        reader->generation = generation;
        reader->is_replaced = false;
        return 0;
    }
    functions->detach(functions->context, &reader->mapping);
    adopt(reader, &found);
    reader->statistics.switches++;
    return 0;
}
