/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One event: the input of an emitter, the event header, and the check of bytes that came out of a
 * buffer (event-model.md, Event header; E7). Uses no ring, no memory order and no platform: it
 * accesses private bytes only.
 */
#ifndef KMES_EVENT_H
#define KMES_EVENT_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

#define KMES_EVENT_TYPE_MAX_BYTES 65535u /* type_len has 16 bits */

/* The event that an emitter publishes. The memory belongs to the caller for the time of the
 * call. */
struct kmes_event_input {
    const void* type;
    const void* payload; /* may be NULL where payload_len is 0 */
    __u32 payload_len;   /* bytes */
    __u16 type_len;      /* bytes, 1..65535 */
    __u8 origin_class;   /* KMES_ORIGIN_... */
    __u32
        header_extra_len; /* bytes of zeros after the type: 0 in v0.20, more imitates a later one */
};

/* One event as a consumer sees it. `type` and `payload` point into the bytes of the event. */
struct kmes_event_view {
    __u64 timestamp; /* ns since the Unix epoch; may jump in either direction */
    __u64 sequence;
    __u64 lost_before; /* events lost between the previous delivered event of this CPU, or the
                          attach, and this one */
    const __u8* type;
    const __u8* payload;
    __u32 event_size;
    __u32 header_size;
    __u32 payload_len;
    __u16 type_len;
    __u16 cpu_id; /* from a reader: the CPU of the ring (kmes_reader_config), which may differ from
                     the header of a hostile producer's event. Otherwise that of the header */
    __u8 origin_class;
};

/* The result of the check whether the bytes at a position can be an event (E7). */
enum kmes_event_check {
    KMES_EVENT_IS_SOUND,
    KMES_EVENT_IS_SHORT,        /* fewer bytes than the smallest event */
    KMES_EVENT_HAS_NO_TYPE,     /* type_len 0 */
    KMES_EVENT_TYPE_TOO_LONG,   /* KMES_EVENT_FIXED_BYTES + type_len > header_size */
    KMES_EVENT_HEADER_TOO_LONG, /* header_size > event_size */
    KMES_EVENT_TOO_LONG,        /* event_size > the bytes available */
};

/* Returns the bytes of the header that kmes_event_header_build makes for `input`. */
static inline __u64 kmes_event_header_bytes(const struct kmes_event_input* input) {
    return (__u64)KMES_EVENT_FIXED_BYTES + input->type_len + input->header_extra_len;
}

/* Returns the bytes of the whole event. 64 bits wide, so that the check sees the full value. */
static inline __u64 kmes_event_bytes(const struct kmes_event_input* input) {
    return kmes_event_header_bytes(input) + input->payload_len;
}

/* The fixed part of a header as little-endian words, with 3 bytes of padding. */
struct kmes_event_words {
    __u64 word[KMES_EVENT_WORDS];
};

/* Builds the fixed part of the header (5.1.7 step 3) in registers. The size of the event must fit
 * into 32 bits. */
static inline void kmes_event_words_build(struct kmes_event_words* words,
                                          const struct kmes_event_input* input, __u64 timestamp_ns,
                                          __u64 sequence, __u16 cpu_id) {
    words->word[0] = kmes_event_bytes(input) | kmes_event_header_bytes(input) << 32;
    words->word[1] = timestamp_ns;
    words->word[2] = sequence;
    kmes_put_origin_words(words->word, cpu_id, input->origin_class, input->type_len);
}

/*
 * Fills the fixed part of the header (5.1.7 step 3). The size of the event must fit into 32 bits.
 * The caller copies the type and the payload.
 */
void kmes_event_header_build(struct kmes_event_header* header, const struct kmes_event_input* input,
                             __u64 timestamp_ns, __u64 sequence, __u16 cpu_id);

/*
 * E7: fixed bytes + type_len <= header_size <= event_size <= available_bytes, and type_len > 0.
 * Returns the first rule that is broken. `header` may contain any bytes.
 */
static inline enum kmes_event_check kmes_event_check(const struct kmes_event_header* header,
                                                     __u64 available_bytes) {
    if (available_bytes < KMES_EVENT_MIN_BYTES) return KMES_EVENT_IS_SHORT;
    if (header->type_len == 0) return KMES_EVENT_HAS_NO_TYPE;
    if (header->header_size < KMES_EVENT_FIXED_BYTES + (__u32)header->type_len)
        return KMES_EVENT_TYPE_TOO_LONG;
    if (header->event_size < header->header_size) return KMES_EVENT_HEADER_TOO_LONG;
    if (header->event_size > available_bytes) return KMES_EVENT_TOO_LONG;
    return KMES_EVENT_IS_SOUND;
}

/* Returns the result of a check in words, for a report. Never NULL. */
const char* kmes_event_check_text(enum kmes_event_check check);

/*
 * Points `view` at the event that starts at `body`. `header` is a private copy of its header that
 * passed kmes_event_check. The payload begins at header_size, never at the end of the type. Sets
 * lost_before to 0.
 */
static inline void kmes_event_view_from(struct kmes_event_view* view,
                                        const struct kmes_event_header* header, const __u8* body) {
    view->timestamp = header->timestamp;
    view->sequence = header->sequence;
    view->lost_before = 0;
    view->type = body + KMES_EVENT_FIXED_BYTES;
    view->payload = body + header->header_size;
    view->event_size = header->event_size;
    view->header_size = header->header_size;
    view->payload_len = header->event_size - header->header_size;
    view->type_len = header->type_len;
    view->cpu_id = header->cpu_id;
    view->origin_class = header->origin_class;
}

/* Unpacks the header whose fixed part is in `words`, without its GUIDs: the reader needs none. */
static inline void kmes_event_header_from(struct kmes_event_header* header,
                                          const struct kmes_event_words* words) {
    header->event_size = (__u32)words->word[0];
    header->header_size = (__u32)(words->word[0] >> 32);
    header->timestamp = words->word[1];
    header->sequence = words->word[2];
    header->cpu_id = (__u16)words->word[3];
    header->origin_class = (__u8)(words->word[3] >> 16);
    header->type_len = (__u16)(words->word[KMES_EVENT_TYPE_LEN_WORD] >> 24);
}

/* Loads the header at the start of private bytes. At least KMES_EVENT_FIXED_BYTES bytes must be
 * there. */
static inline void kmes_event_header_load(struct kmes_event_header* header, const void* bytes) {
    struct kmes_event_words words;

    kmes_load_words(words.word, bytes, sizeof(*header));
    kmes_event_header_from(header, &words);
}

/* kmes_event_view_from for an event whose bytes are private: its header is at its start. */
static inline void kmes_event_view_make(struct kmes_event_view* view, const void* bytes) {
    struct kmes_event_header header;

    kmes_event_header_load(&header, bytes);
    kmes_event_view_from(view, &header, (const __u8*)bytes);
}

/* kmes_utf8_is_valid for a text that contains a byte above 0x7F. */
bool kmes_utf8_check(const void* text, __u64 bytes);

/* The highest bit of each byte of a word. In ASCII text none of them is set. */
#define KMES_NOT_ASCII 0x8080808080808080ull

/* Returns true if the `bytes` bytes at `text` are well-formed UTF-8 (RFC 3629: no surrogates, no
 * overlong forms, nothing above U+10FFFF), and for an empty text. Nearly every type is short and
 * ASCII. These are checked in line, a word at a time, and up to two words without a loop. */
static inline bool kmes_utf8_is_valid(const void* text, __u64 bytes) {
    const __u8* at = (const __u8*)text;
    __u64 word, all = 0;
    __u64 i = 0;

    if (KMES_LIKELY(bytes >= sizeof(word))) {
        for (i = sizeof(word); KMES_UNLIKELY(i + sizeof(word) < bytes); i += sizeof(word)) {
            kmes_copy_private(&word, at + i, sizeof(word));
            all |= word;
        }
        kmes_copy_private(&word, at, sizeof(word));
        all |= word;
        /* The rest as a whole word that ends with the text. */
        kmes_copy_private(&word, at + bytes - sizeof(word), sizeof(word));
        all |= word;
    } else {
        for (; i < bytes; i++) all |= at[i];
    }
    return KMES_LIKELY(!(all & KMES_NOT_ASCII)) || kmes_utf8_check(text, bytes);
}

KMES_EXTERN_C_END

#endif
