// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Building, checking and viewing one event. The bytes are private: the code that copies from a ring
 * does the ordering. See event.h.
 */
#include "kmes/event.h"

void kmes_event_header_build(struct kmes_event_header* header, const struct kmes_event_input* input,
                             __u64 timestamp_ns, __u64 sequence, __u16 cpu_id) {
    struct kmes_event_words words;

    kmes_event_words_build(&words, input, timestamp_ns, sequence, cpu_id);
    kmes_copy_private(header, &words, sizeof(*header));
}

const char* kmes_event_check_text(enum kmes_event_check check) {
    switch (check) {
        case KMES_EVENT_IS_SOUND:
            return "a sound event";
        case KMES_EVENT_IS_SHORT:
            return "fewer than the " KMES_EVENT_MIN_TEXT " bytes that an event has at least";
        case KMES_EVENT_HAS_NO_TYPE:
            return "type_len is 0";
        case KMES_EVENT_TYPE_TOO_LONG:
            return KMES_EVENT_FIXED_TEXT " + type_len is more than header_size";
        case KMES_EVENT_HEADER_TOO_LONG:
            return "header_size is more than event_size";
        case KMES_EVENT_TOO_LONG:
            return "event_size is more than what is published";
    }
    return "no result of kmes_event_check";
}

/* Returns the length of the sequence that begins with `lead`, and the range of its second byte. 0:
 * `lead` begins no sequence. */
static unsigned utf8_sequence(__u8 lead, __u8* second_min, __u8* second_max) {
    *second_min = 0x80;
    *second_max = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) return 2;
    if (lead >= 0xE0 && lead <= 0xEF) {
        if (lead == 0xE0) *second_min = 0xA0; /* overlong below */
        if (lead == 0xED) *second_max = 0x9F; /* surrogates above */
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (lead == 0xF0) *second_min = 0x90; /* overlong below */
        if (lead == 0xF4) *second_max = 0x8F; /* above U+10FFFF */
        return 4;
    }
    return 0;
}

bool kmes_utf8_check(const void* text, __u64 bytes) {
    const __u8* at = (const __u8*)text;
    const __u8* end = at + bytes;

    while (at < end) {
        __u8 second_min, second_max;
        unsigned length, i;

        if (*at < 0x80) {
            at++;
            continue;
        }
        length = utf8_sequence(*at, &second_min, &second_max);
        if (length == 0 || (__u64)(end - at) < length) return false;
        if (at[1] < second_min || at[1] > second_max) return false;
        for (i = 2; i < length; i++) {
            if (at[i] < 0x80 || at[i] > 0xBF) return false;
        }
        at += length;
    }
    return true;
}
