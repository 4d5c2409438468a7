/* SPDX-License-Identifier: MIT */
/*
 * Prints the structures that bindings/python/kmes/_library.py repeats: for each field its
 * structure, name, offset and size, and for each structure "-", 0 and its size. For the test.
 */
#include <stddef.h>
#include <stdio.h>

#include "kmes/user/reader_set.h"

#define FIELD(structure, field)                                                      \
    printf("%s %s %zu %zu\n", #structure, #field, offsetof(struct structure, field), \
           sizeof(((struct structure*)0)->field))
#define STRUCTURE(structure) printf("%s - 0 %zu\n", #structure, sizeof(struct structure))

int main(void) {
    STRUCTURE(kmes_event_view);
    FIELD(kmes_event_view, timestamp);
    FIELD(kmes_event_view, sequence);
    FIELD(kmes_event_view, lost_before);
    FIELD(kmes_event_view, type);
    FIELD(kmes_event_view, payload);
    FIELD(kmes_event_view, event_size);
    FIELD(kmes_event_view, header_size);
    FIELD(kmes_event_view, payload_len);
    FIELD(kmes_event_view, type_len);
    FIELD(kmes_event_view, cpu_id);
    FIELD(kmes_event_view, origin_class);
    STRUCTURE(kmes_reader_place);
    FIELD(kmes_reader_place, session);
    FIELD(kmes_reader_place, last_sequence);
    FIELD(kmes_reader_place, is_known);
    STRUCTURE(kmes_reader_statistics);
    FIELD(kmes_reader_statistics, delivered);
    FIELD(kmes_reader_statistics, lost);
    FIELD(kmes_reader_statistics, laps);
    FIELD(kmes_reader_statistics, torn);
    FIELD(kmes_reader_statistics, corrupt);
    FIELD(kmes_reader_statistics, not_newer);
    FIELD(kmes_reader_statistics, switches);
    FIELD(kmes_reader_statistics, sleeps);
    STRUCTURE(kmes_reader_set_options);
    FIELD(kmes_reader_set_options, size);
    FIELD(kmes_reader_set_options, is_exclusive);
    FIELD(kmes_reader_set_options, is_read_only);
    FIELD(kmes_reader_set_options, watermark_bytes);
    FIELD(kmes_reader_set_options, watermark_ns);
    FIELD(kmes_reader_set_options, configure);
    FIELD(kmes_reader_set_options, cpus);
    FIELD(kmes_reader_set_options, context);
    FIELD(kmes_reader_set_options, place);
    FIELD(kmes_reader_set_options, places);
    return 0;
}
