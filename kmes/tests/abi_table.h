/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The offsets and sizes of kmes/abi.h: the same table, compiled as C11, C++20 and kernel C.
 */
#ifndef KMES_TESTS_ABI_TABLE_H
#define KMES_TESTS_ABI_TABLE_H

#include "kmes/abi.h"
#include "kmes/event.h"

#define ABI_FIELD(structure, field) \
    offsetof(struct structure, field), sizeof(((struct structure*)0)->field)

#define ABI_TABLE                                                                            \
    {ABI_FIELD(kmes_metadata_v1, magic),         ABI_FIELD(kmes_metadata_v1, version),       \
     ABI_FIELD(kmes_metadata_v1, cpu_id),        ABI_FIELD(kmes_metadata_v1, capacity),      \
     ABI_FIELD(kmes_metadata_v1, data_offset),   ABI_FIELD(kmes_metadata_v1, generation),    \
     ABI_FIELD(kmes_metadata_v1, write_pos),     ABI_FIELD(kmes_metadata_v1, tail_pos),      \
     ABI_FIELD(kmes_metadata_v1, futex_counter), ABI_FIELD(kmes_metadata_v1, need_wake),     \
     ABI_FIELD(kmes_event_header, event_size),   ABI_FIELD(kmes_event_header, header_size),  \
     ABI_FIELD(kmes_event_header, timestamp),    ABI_FIELD(kmes_event_header, sequence),     \
     ABI_FIELD(kmes_event_header, cpu_id),       ABI_FIELD(kmes_event_header, origin_class), \
     ABI_FIELD(kmes_event_header, type_len),     ABI_FIELD(kmes_emit_entry, type),           \
     ABI_FIELD(kmes_emit_entry, type_len),       ABI_FIELD(kmes_emit_entry, payload),        \
     ABI_FIELD(kmes_emit_entry, payload_len),    sizeof(struct kmes_metadata_v1),            \
     sizeof(struct kmes_event_header),           sizeof(struct kmes_emit_entry)}
#define ABI_TABLE_ENTRIES 45

KMES_EXTERN_C_BEGIN

extern const unsigned abi_table_c11[ABI_TABLE_ENTRIES];
extern const unsigned abi_table_kernel[ABI_TABLE_ENTRIES];

KMES_EXTERN_C_END

#endif
