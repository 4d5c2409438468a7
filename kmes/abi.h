/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The binary interface: the mapped region (5.1.5, 5.1.6) and the event header
 * (docs/event-model.md). Only this file contains offsets. The assertions below check every row of
 * the specification.
 *
 * Protocol code never dereferences the metadata structure. It binds a `struct kmes_fields` to a
 * mapping once (`kmes_bind_fields`) and uses its pointers. Another form may move need_wake to its
 * own page or lengthen the header. Such a form is one more layout here; no other file changes.
 *
 * Form A:
 *
 *   offset 0           4096                       4096 + capacity            4096 + 2 x capacity
 *          | metadata  | data, first mapping      | data, second mapping     |
 *                        same physical pages ---->  (5.1.4)
 */
#ifndef KMES_ABI_H
#define KMES_ABI_H

#include "kmes/types.h"

/* 5.1.6.1: KMESRING, compared byte by byte. */
#define KMES_MAGIC_BYTES 8
#define KMES_MAGIC_INITIALIZER {0x4B, 0x4D, 0x45, 0x53, 0x52, 0x49, 0x4E, 0x47}

#define KMES_VERSION_1 1u
#define KMES_PAGE_BYTES 4096u /* E22: version 1 can be mapped only with pages of 4 KiB. */

/*
 * The forms of version 1 (docs/layouts.md). The version field does not distinguish them. A build
 * supports one form, KMES_LAYOUT. The default is form A.
 */
#define KMES_LAYOUT_A 1
#define KMES_LAYOUT_B 2
#define KMES_LAYOUT_C 3
#define KMES_LAYOUT_D 4
#ifndef KMES_LAYOUT
#define KMES_LAYOUT KMES_LAYOUT_A
#endif
#if KMES_LAYOUT < KMES_LAYOUT_A || KMES_LAYOUT > KMES_LAYOUT_D
#error "KMES_LAYOUT must be 1 (form A), 2 (B), 3 (C) or 4 (D)"
#endif

#if KMES_LAYOUT == KMES_LAYOUT_A
#define KMES_METADATA_BYTES 4096u /* also the value of data_offset */
#define KMES_NEED_WAKE_OFFSET 132u
#else
#define KMES_METADATA_BYTES 8192u /* the page of the producer and the page of the consumer */
#define KMES_NEED_WAKE_OFFSET 4096u
#endif

/* 5.1.2: of the first ring of a CPU. Its positions begin at 0 in a kernel. */
#define KMES_FIRST_GENERATION 1ull

/* Limits of the core. 5.1.3 leaves them to the implementation; both must be powers of two. */
#define KMES_CAPACITY_MIN_BYTES 256ull
#define KMES_CAPACITY_MAX_BYTES (1ull << 31)

/* Limits of the configuration above the core (docs/event-model.md, Configuration). */
#define KMES_CONFIG_CAPACITY_MIN_BYTES (64ull << 10)
#define KMES_CONFIG_CAPACITY_MAX_BYTES (256ull << 20)
#define KMES_CONFIG_CAPACITY_DEFAULT_BYTES (4ull << 20)
#define KMES_CONFIG_EVENT_MIN_BYTES (1ull << 10)
#define KMES_CONFIG_EVENT_MAX_BYTES (4ull << 20)
#define KMES_CONFIG_EVENT_DEFAULT_BYTES (64ull << 10)

/* docs/event-model.md, Event header. */
#define KMES_EVENT_HAS_GUIDS (KMES_LAYOUT >= KMES_LAYOUT_C)
#if KMES_EVENT_HAS_GUIDS
#define KMES_EVENT_FIXED_BYTES 77u
#define KMES_EVENT_FIXED_TEXT "77"
#define KMES_EVENT_MIN_TEXT "78"
#else
#define KMES_EVENT_FIXED_BYTES 29u
#define KMES_EVENT_FIXED_TEXT "29"
#define KMES_EVENT_MIN_TEXT "30"
#endif
#define KMES_EVENT_MIN_BYTES (KMES_EVENT_FIXED_BYTES + 1u) /* plus a type of one byte */
#define KMES_GUID_BYTES 16

#define KMES_ORIGIN_USERSPACE 0u
#define KMES_ORIGIN_KMES 1u
#define KMES_ORIGIN_KACS 2u
#define KMES_ORIGIN_LCS 3u

/* docs/event-model.md, Calls. */
#define KMES_SYSCALL_EMIT 1090
#define KMES_SYSCALL_ATTACH 1091
#define KMES_SYSCALL_EMIT_BATCH 1092
#define KMES_BATCH_MAX_ENTRIES 256u

/* 5.1.6: the metadata of version 1. In form B and later forms need_wake has its own page. */
struct kmes_metadata_v1 {
    __u8 magic[KMES_MAGIC_BYTES];
    __u32 version;
    __u16 cpu_id;
    __u16 reserved0;
    __u64 capacity;
    __u64 data_offset;
    __u64 generation;
    __u8 reserved1[24];
    __u64 write_pos;
    __u64 tail_pos;
    __u8 reserved2[48];
    __u32 futex_counter;
#if KMES_LAYOUT == KMES_LAYOUT_A
    __u8 need_wake;
    __u8 reserved3[59];
    __u8 unused[KMES_METADATA_BYTES - 192];
#else
    __u8 reserved3[60];
    __u8 unused[KMES_PAGE_BYTES - 192];
    __u8 need_wake;
    __u8 reserved4[KMES_PAGE_BYTES - 1];
#endif
};

/* The fixed part of an event header. The type follows it; the payload begins at header_size. */
struct kmes_event_header {
    __u32 event_size;
    __u32 header_size;
    __u64 timestamp;
    __u64 sequence;
    __u16 cpu_id;
    __u8 origin_class;
#if KMES_EVENT_HAS_GUIDS
    __u8 effective_token_guid[KMES_GUID_BYTES];
    __u8 true_token_guid[KMES_GUID_BYTES];
    __u8 process_guid[KMES_GUID_BYTES];
#endif
    __u16 type_len;
} KMES_PACKED;

/* An entry of kmes_emit_batch (1092). */
struct kmes_emit_entry {
    const void* type;
    __u16 type_len;
    const void* payload;
    __u32 payload_len;
};

#define KMES_ASSERT_FIELD(structure, field, offset, bytes)                            \
    KMES_STATIC_ASSERT(offsetof(struct structure, field) == (offset),                 \
                       #structure "." #field " is not where the specification says"); \
    KMES_STATIC_ASSERT(sizeof(((struct structure*)0)->field) == (bytes),              \
                       #structure "." #field " has not the size that the specification says")

/* A row of a form other than A. */
#define KMES_ASSERT_LATER_FIELD KMES_ASSERT_FIELD

/* clang-format off */
/* 5.1.6.1 Cache line 0 -- static fields */
KMES_ASSERT_FIELD(kmes_metadata_v1, magic,           0,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, version,         8,  4);
KMES_ASSERT_FIELD(kmes_metadata_v1, cpu_id,         12,  2);
KMES_ASSERT_FIELD(kmes_metadata_v1, reserved0,      14,  2);
KMES_ASSERT_FIELD(kmes_metadata_v1, capacity,       16,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, data_offset,    24,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, generation,     32,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, reserved1,      40, 24);
/* 5.1.6.2 Cache line 1 -- producer fields */
KMES_ASSERT_FIELD(kmes_metadata_v1, write_pos,      64,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, tail_pos,       72,  8);
KMES_ASSERT_FIELD(kmes_metadata_v1, reserved2,      80, 48);
/* 5.1.6.3 Cache line 2 -- notification fields */
KMES_ASSERT_FIELD(kmes_metadata_v1, futex_counter, 128,  4);
#if KMES_LAYOUT == KMES_LAYOUT_A
KMES_ASSERT_FIELD(kmes_metadata_v1, need_wake,     132,  1);
KMES_ASSERT_FIELD(kmes_metadata_v1, reserved3,     133, 59);
KMES_STATIC_ASSERT(sizeof(struct kmes_metadata_v1) == 4096, "5.1.5: one page of 4096 bytes");
#else
KMES_ASSERT_LATER_FIELD(kmes_metadata_v1, reserved3,     132, 60);
KMES_ASSERT_LATER_FIELD(kmes_metadata_v1, need_wake,    4096,  1);
KMES_ASSERT_LATER_FIELD(kmes_metadata_v1, reserved4,    4097, 4095);
KMES_STATIC_ASSERT(sizeof(struct kmes_metadata_v1) == 8192, "docs/layouts.md: two pages");
#endif
KMES_STATIC_ASSERT(offsetof(struct kmes_metadata_v1, need_wake) == KMES_NEED_WAKE_OFFSET &&
                   sizeof(struct kmes_metadata_v1) == KMES_METADATA_BYTES, "docs/layouts.md");
/* docs/event-model.md, Event header */
KMES_ASSERT_FIELD(kmes_event_header, event_size,     0,  4);
KMES_ASSERT_FIELD(kmes_event_header, header_size,    4,  4);
KMES_ASSERT_FIELD(kmes_event_header, timestamp,      8,  8);
KMES_ASSERT_FIELD(kmes_event_header, sequence,      16,  8);
KMES_ASSERT_FIELD(kmes_event_header, cpu_id,        24,  2);
KMES_ASSERT_FIELD(kmes_event_header, origin_class,  26,  1);
#if KMES_EVENT_HAS_GUIDS
KMES_ASSERT_LATER_FIELD(kmes_event_header, effective_token_guid, 27, 16);
KMES_ASSERT_LATER_FIELD(kmes_event_header, true_token_guid, 43, 16);
KMES_ASSERT_LATER_FIELD(kmes_event_header, process_guid,  59, 16);
KMES_ASSERT_LATER_FIELD(kmes_event_header, type_len,      75,  2);
KMES_STATIC_ASSERT(sizeof(struct kmes_event_header) == 77, "the type begins at byte 77");
#else
KMES_ASSERT_FIELD(kmes_event_header, type_len,      27,  2);
KMES_STATIC_ASSERT(sizeof(struct kmes_event_header) == 29, "the type begins at byte 29");
#endif
/* docs/event-model.md, Calls */
KMES_ASSERT_FIELD(kmes_emit_entry, type,             0,  8);
KMES_ASSERT_FIELD(kmes_emit_entry, type_len,         8,  2);
KMES_ASSERT_FIELD(kmes_emit_entry, payload,         16,  8);
KMES_ASSERT_FIELD(kmes_emit_entry, payload_len,     24,  4);
KMES_STATIC_ASSERT(sizeof(struct kmes_emit_entry) == 32, "an entry has 32 bytes");
/* clang-format on */

/*
 * The fixed part of a header as 64-bit words, with 3 bytes of padding. In each form type_len is in
 * bits 24 to 39 of the last word. The GUIDs are between origin_class and type_len.
 */
#define KMES_EVENT_WORDS ((KMES_EVENT_FIXED_BYTES + 3u) / 8u)
#define KMES_EVENT_TYPE_LEN_WORD (KMES_EVENT_WORDS - 1u)
KMES_STATIC_ASSERT(offsetof(struct kmes_event_header, type_len) ==
                       KMES_EVENT_TYPE_LEN_WORD * 8u + 3u,
                   "type_len is not at byte 3 of the last word");
KMES_STATIC_ASSERT(KMES_EVENT_WORDS == KMES_HEADER_WORDS_MAX, "types.h: words of a header");

/* Fills the words from word 3 on. The core knows no identities, so all GUIDs are zero, which means
 * unknown. */
static inline void kmes_put_origin_words(__u64* words, __u16 cpu_id, __u8 origin_class,
                                         __u16 type_len) {
    unsigned i;

    words[3] = cpu_id | (__u64)origin_class << 16;
    for (i = 4; i < KMES_EVENT_WORDS; i++) words[i] = 0;
    words[KMES_EVENT_TYPE_LEN_WORD] |= (__u64)type_len << 24;
}

/* The addresses of the shared fields of one mapping. Protocol code reaches the fields only by
 * them. */
struct kmes_fields {
    __u8* magic; /* KMES_MAGIC_BYTES of them */
    __u32* version;
    __u16* cpu_id;
    __u64* capacity;
    __u64* data_offset;
    __u64* generation;
    __u64* write_pos;
    __u64* tail_pos;
    __u32* futex_counter;
    __u8* need_wake;
    __u8* data; /* 2 x capacity bytes; the second half is an alias of the first (5.1.4) */
};

/* Returns the bytes from the start of a mapping to its data, and 0 for an unknown version. */
static inline __u64 kmes_data_offset_bytes(__u32 version) {
    return version == KMES_VERSION_1 ? KMES_METADATA_BYTES : 0;
}

/* 5.1.5: returns the bytes that one buffer takes in an address space, and 0 for an unknown
 * version. */
static inline __u64 kmes_mapping_bytes(__u32 version, __u64 capacity_bytes) {
    __u64 offset = kmes_data_offset_bytes(version);

    return offset ? offset + 2 * capacity_bytes : 0;
}

/* 5.1.3: true if the capacity is a power of two within the limits of the core. */
static inline bool kmes_capacity_is_valid(__u64 capacity_bytes) {
    return capacity_bytes >= KMES_CAPACITY_MIN_BYTES && capacity_bytes <= KMES_CAPACITY_MAX_BYTES &&
           (capacity_bytes & (capacity_bytes - 1)) == 0;
}

/*
 * Points `fields` into the mapping at `base`, which has the layout of format `version`. Accesses no
 * shared memory. Returns false for an unknown version and leaves `fields` unchanged.
 */
static inline bool kmes_bind_fields(struct kmes_fields* fields, void* base, __u32 version) {
    struct kmes_metadata_v1* page = (struct kmes_metadata_v1*)base;

    if (version != KMES_VERSION_1) return false;
    fields->magic = page->magic;
    fields->version = &page->version;
    fields->cpu_id = &page->cpu_id;
    fields->capacity = &page->capacity;
    fields->data_offset = &page->data_offset;
    fields->generation = &page->generation;
    fields->write_pos = &page->write_pos;
    fields->tail_pos = &page->tail_pos;
    fields->futex_counter = &page->futex_counter;
    fields->need_wake = &page->need_wake;
    fields->data = (__u8*)base + KMES_METADATA_BYTES;
    return true;
}

#endif
