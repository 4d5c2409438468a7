# SPDX-License-Identifier: MIT
"""Broken consumers: the C example with one mistake each, of the kind that people really make.

The case named in `case` has to fail each of them (kill_matrix_test). An entry:

  name    the target //conformance/testees:broken_<name>
  wrong   what it does wrong, in one line
  clause  what it violates
  case    the case that is meant to catch it; or, from `-` on, why none can as yet
  edits   the mistake, as edits of c/consumer.c: each first text stands there exactly once (a test
          sees to it) and is replaced by the second

The file is Starlark for Bazel, and Python for the tests that read it.
"""

# What knows how many CPUs have ended.
COUNTS_ENDED_CPUS = [
    ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Atomic int ended_cpus;
"""),
    ("""
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
""", """
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
    ended_cpus++;
"""),
]

# What sleeps without a second look at write_pos, where that is so (c->sleeps: sleeps before it).
def leaves_out_the_second_look(condition):
    return [
        ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity, generation, sleeps;
"""),
        ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool is_blind = %s;
    const bool idle = (is_blind || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);
""" % condition),
    ]

# One attempt to attach, for the answer alone.
TRIES_TO_ATTACH = [("""
static void* consume(void* argument) {
""", """
static bool can_attach(void) {
    int count = cpu_count, fds[count];
    uint64_t capacity;
    if (syscall(kAttachCall, fds, &count, &capacity) != 0) return false;
    for (int i = 0; i < count; i++) close(fds[i]);
    return true;
}

static void* consume(void* argument) {
""")]

# What looks at the CPU's present buffer for a reason to refuse it.
FINDS_THE_NEXT_FAULT = [("""
static void* consume(void* argument) {
""", """
static const char* next_fault(struct consumer* c) {
    struct stat identity;
    uint64_t capacity = 0;
    const int fd = attach(c->cpu, &capacity, &identity);
    struct metadata* meta =
        mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (meta == MAP_FAILED) return NULL;
    const char* fault = find_fault(meta, capacity);
    munmap(meta, kMetadataBytes + 2 * capacity);
    return fault;
}

static void* consume(void* argument) {
""")]

# What passes over events that were copied whole, where that is so: as where they go through a
# buffer of fixed size.
def skips_events_where(condition):
    return [("""
            if (!deliver(c)) return false;
""", """
            const uint64_t size = c->event->event_size, at = c->read_pos & (c->capacity - 1);
            const bool crosses = at + size > c->capacity;
            (void)crosses;
            if (%s) c->last_sequence = c->event->sequence;
            if (!deliver(c)) return false;
""" % condition)]

# What has its full barrier at those sleeps (sleeps++: of this thread before this one).
def has_a_fence_at(condition):
    return [("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local unsigned sleeps;
    if (%s) atomic_thread_fence(memory_order_seq_cst);
""" % condition)]

# Writes its lines when it is about to call futex_wait, and not after each drain.
FLUSHES_BEFORE_IT_SLEEPS = [
    ("""
        more = drain(c);
        flush(c);
""", """
        more = drain(c);
"""),
    ("""
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
""", """
    if (idle) flush(c);
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
"""),
]

# What knows how many events the last round has delivered: in_round.
COUNTS_THE_ROUND = [
    ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local unsigned in_round;
"""),
    ("""
        more = drain(c);
""", """
        in_round = 0;
        more = drain(c);
"""),
    ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos += c->event->event_size;  // step 6
            in_round++;
"""),
]

# What looks at generation behind the drain, too, where that is so, and then does not drain again.
def leaves_the_buffer_where(condition):
    return [("""
        if (more && !retired) sleep_until_woken(c);
        if (more && retired) more = take_buffer(c);
""", """
        const bool leaves = retired || (%s && is_retired(c));
        if (more && !leaves) sleep_until_woken(c);
        if (more && leaves) more = take_buffer(c);
""" % condition)]

# What reads the type in the ring, behind the check, where that is so.
def reads_type_again(condition):
    return [
        ("""
    const uint8_t* type = (const uint8_t*)(event + 1);
""", """
    const uint8_t* type = (const uint8_t*)(event + 1);
    if (%s)
        type = (const uint8_t*)c->meta + kMetadataBytes + sizeof *event +
               (c->read_pos & (c->capacity - 1));
""" % condition),
    ]

# What keeps each type once, where IS_SAME (a FUNCTION) says which two are one.
KEEPS_TYPES = [
    ("""
    const uint8_t* type = (const uint8_t*)(event + 1);
""", """
    const uint8_t* type = keep_type((const uint8_t*)(event + 1), event->type_len);
"""),
]
KEEP_TYPE = """FUNCTION
static const uint8_t* keep_type(const uint8_t* type, size_t length) {
    enum { kMost = 8192 };
    static struct {
        uint8_t* bytes;
        size_t length;
    } kept[kMost];
    static int count;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < count && (kept[i].length != length || !IS_SAME(kept[i].bytes, type, length))) i++;
    if (i == count && count < kMost) {
        if ((kept[i].bytes = malloc(length)) == NULL) err(1, "malloc");
        memcpy(kept[i].bytes, type, length);
        kept[i].length = length;
        count++;
    }
    const uint8_t* found = i < count ? kept[i].bytes : type;
    pthread_mutex_unlock(&lock);
    return found;
}

// Reports the copied event, unless an earlier buffer held it too. False if it is the last one.
"""

# Of those whose loop over the events has an end: what is behind it is reached.
ENDS_ITS_DRAIN_EARLY = ("""
            c->read_pos += c->event->event_size;  // step 6
        }
    }
""", """
            c->read_pos += c->event->event_size;  // step 6
        }
    }
    return true;
""")

BROKEN = [
    # Attaching, and the number of CPUs.
    dict(
        name = "assumes-four-cpus",
        wrong = "Does not ask how many CPUs there are: it has four slots, as its author's machine.",
        clause = "contract-1",
        case = "contract-1/more-cpus-than-slots",
        edits = [
            ("""
    if (attach_all(NULL, &cpu_count, &capacity) != ERANGE) err(1, "kmes_attach: number of CPUs");
""", """
    cpu_count = 4;
    (void)capacity;
"""),
        ],
    ),
    dict(
        name = "no-more-than-eight-cpus",
        wrong = "Aborts on a machine of more than eight CPUs.",
        clause = "5.1.1",
        case = "5.1.1/sixteen-cpus",
        edits = [
            ("""
    if (consumers == NULL) err(1, "calloc");
""", """
    if (consumers == NULL || cpu_count > 8) abort();
"""),
        ],
    ),
    dict(
        name = "first-buffer-for-all",
        wrong = "Every thread takes the first fd, not the one of its CPU.",
        clause = "5.1.1",
        case = "5.1.1/four-cpus",
        edits = [
            ("""
        if (i != cpu) close(fds[i]);
    pthread_mutex_unlock(&lock);
    if (fstat(fds[cpu], identity) != 0) err(1, "fstat");
    return fds[cpu];
""", """
        if (i != 0) close(fds[i]);
    pthread_mutex_unlock(&lock);
    if (fstat(fds[0], identity) != 0) err(1, "fstat");
    (void)cpu;
    return fds[0];
"""),
        ],
    ),
    dict(
        name = "first-cpu-only",
        wrong = "Drains the first CPU's buffer and leaves the others.",
        clause = "contract-2",
        case = "5.1.1/four-cpus",
        edits = [
            ("""
    for (int cpu = 0; cpu < cpu_count; cpu++) {
""", """
    for (int cpu = 0; cpu < 1; cpu++) {
"""),
            ("""
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
""", """
    pthread_join(consumers[0].thread, NULL);
"""),
        ],
    ),
    dict(
        name = "eagain-is-success",
        wrong = "Takes a kmes_attach that fails with EAGAIN for one that worked.",
        clause = "contract-1",
        case = "contract-1/eagain",
        edits = [
            ("""
        if (errno == ERANGE) return ERANGE;
""", """
        if (errno == ERANGE || errno == EAGAIN) return ERANGE;
"""),
        ],
    ),
    dict(
        name = "maps-the-data-once",
        wrong = "Maps 4096 + capacity bytes: what wraps is behind the end.",
        clause = "5.1.5",
        case = "5.1.4/wrap-at-every-byte",
        edits = [
            ("""
        mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);  // the mapping stays
    if (meta == MAP_FAILED) return refuse(c, "cannot be mapped");
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
        mmap(NULL, kMetadataBytes + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);  // the mapping stays
    if (meta == MAP_FAILED) return refuse(c, "cannot be mapped");
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + c->capacity);
"""),
        ],
    ),
    dict(
        name = "maps-read-only",
        wrong = "Maps the buffer read-only, and stores to need_wake.",
        clause = "contract-2",
        case = "5.1.5/attach-and-map",
        edits = [
            ("""
    struct metadata* meta =
        mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
""", """
    struct metadata* meta = mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ, MAP_SHARED, fd, 0);
"""),
        ],
    ),
    dict(
        name = "hard-coded-capacity",
        wrong = "Takes every capacity for the one that its author saw, 65536.",
        clause = "5.1.3",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
"""),
            ("""
    const int fd = attach(c->cpu, &capacity, &taken);
""", """
    const int fd = attach(c->cpu, &capacity, &taken);
    capacity = 65536;
"""),
        ],
    ),
    dict(
        name = "accepts-any-magic",
        wrong = "Does not look at the magic.",
        clause = "5.1.6.1",
        case = "5.1.6.1/bad-magic-first-byte",
        edits = [
            ("""
    if (memcmp(meta->magic, "KMESRING", 8) != 0) return "bad magic";
""", """
"""),
        ],
    ),
    dict(
        name = "compares-half-the-magic",
        wrong = "Compares four bytes of the magic.",
        clause = "5.1.6.1",
        case = "5.1.6.1/bad-magic-last-byte",
        edits = [
            ("""
    if (memcmp(meta->magic, "KMESRING", 8) != 0) return "bad magic";
""", """
    if (memcmp(meta->magic, "KMESRING", 4) != 0) return "bad magic";
"""),
        ],
    ),
    dict(
        name = "accepts-any-version",
        wrong = "Does not look at the version.",
        clause = "5.1.6.1",
        case = "5.1.6.1/unknown-version",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
"""),
        ],
    ),
    dict(
        name = "accepts-older-versions",
        wrong = "Refuses versions above 1 only.",
        clause = "5.1.6.1",
        case = "5.1.6.1/version-zero",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if (meta->version > 1) return "unknown version";
"""),
        ],
    ),
    dict(
        name = "accepts-any-capacity",
        wrong = "Believes the capacity in the metadata, whatever it is and whatever is mapped.",
        clause = "5.1.3",
        case = "5.1.3/capacity-no-power-of-two",
        edits = [
            ("""
    if ((mapped & (mapped - 1)) != 0 || mapped < 32 || mapped > SIZE_MAX / 4) return "bad capacity";
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    (void)mapped;
"""),
            ("""
    if (fault != NULL) return refuse(c, fault);
""", """
    if (fault != NULL) return refuse(c, fault);
    c->capacity = meta->capacity;
"""),
        ],
    ),
    dict(
        name = "any-power-of-two",
        wrong = "Believes any capacity in the metadata that is a power of two, whatever is mapped.",
        clause = "E14",
        case = "E14/capacity-smaller-than-the-mapping",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    if ((meta->capacity & (meta->capacity - 1)) != 0 || meta->capacity == 0) return "bad capacity";
"""),
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    c->capacity = meta->capacity;
    if ((c->event = realloc(c->event, c->capacity)) == NULL) err(1, "realloc");
"""),
        ],
    ),
    dict(
        name = "refuses-reserved-bytes",
        wrong = "Refuses a buffer whose reserved bytes are not zero.",
        clause = "5.1.6.1",
        case = "5.1.6.1/reserved-bytes-set",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if (meta->version != 1) return "unknown version";
    for (size_t i = 0; i < sizeof meta->reserved1; i++)
        if (meta->reserved1[i] != 0) return "reserved bytes are not zero";
"""),
        ],
    ),
    # Reading events.
    dict(
        name = "begins-at-write-pos",
        wrong = "Begins at write_pos: what is there at its first look is skipped.",
        clause = "contract-2",
        case = "E11/begins-at-tail-pos",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->write_pos);
"""),
        ],
    ),
    dict(
        name = "wraps-by-hand",
        wrong = "Expects that an event never crosses the end, and goes on at the start instead.",
        clause = "5.1.4",
        case = "5.1.4/wrap-at-every-byte",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
""", """
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    if ((c->read_pos & (c->capacity - 1)) + header.event_size > c->capacity)
        from = (const uint8_t*)c->meta + kMetadataBytes;
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    *c->event = header;
"""),
        ],
    ),
    dict(
        name = "payload-behind-the-type",
        wrong = "Takes 29 + type_len for the start of the payload, not header_size.",
        clause = "event-model",
        case = "event-model/longer-header",
        edits = [
            ("""
    const uint8_t* payload = (const uint8_t*)event + event->header_size;
    const uint32_t length = event->event_size - event->header_size;
""", """
    const uint8_t* payload = type + event->type_len;
    const uint32_t length = event->event_size - 29 - event->type_len;
"""),
        ],
    ),
    dict(
        name = "refuses-longer-headers",
        wrong = "Takes a header longer than 29 + type_len for corrupt content.",
        clause = "event-model",
        case = "event-model/longer-header",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
""", """
    if (header.type_len == 0 || header.header_size != sizeof header + header.type_len) return false;
"""),
        ],
    ),
    dict(
        name = "aligns-events",
        wrong = "Expects the next event at a multiple of eight bytes.",
        clause = "event-model",
        case = "event-model/every-small-size",
        edits = [
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos += (c->event->event_size + 7) / 8 * 8;
"""),
        ],
    ),
    dict(
        name = "event-of-a-page-at-most",
        wrong = "Takes an event of more than 4096 bytes for corrupt content.",
        clause = "5.1.7-5",
        case = "5.1.7-5/sizes-up-to-half",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable ||
        header.event_size > 4096)
        return false;
"""),
        ],
    ),
    dict(
        name = "half-the-capacity-at-most",
        wrong = "Takes an event of more than half of the capacity for corrupt content.",
        clause = "E7",
        case = "E7/event-larger-than-half",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable ||
        header.event_size > c->capacity / 2)
        return false;
"""),
        ],
    ),
    dict(
        name = "short-types",
        wrong = "Has room for 63 bytes of a type, and cuts off the rest.",
        clause = "event-model",
        case = "event-model/types",
        edits = [
            ("""
    for (uint32_t i = 0; i < event->type_len; i++) PRINT(c, "%02x", type[i]);
""", """
    for (uint32_t i = 0; i < event->type_len && i < 63; i++) PRINT(c, "%02x", type[i]);
"""),
        ],
    ),
    dict(
        name = "type-is-a-c-string",
        wrong = "Takes the type for text that ends with a zero byte.",
        clause = "event-model",
        case = "event-model/types",
        edits = [
            ("""
    for (uint32_t i = 0; i < event->type_len; i++) PRINT(c, "%02x", type[i]);
""", """
    for (uint32_t i = 0; i < length + event->type_len && type[i] != 0; i++)
        PRINT(c, "%02x", type[i]);
"""),
        ],
    ),
    dict(
        name = "drops-empty-payloads",
        wrong = "Does not deliver an event whose payload has no bytes.",
        clause = "event-model",
        case = "event-model/empty-payload",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->sequence <= c->last_sequence) return true;
    if (length == 0 && (event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0))
        return true;
"""),
        ],
    ),
    dict(
        name = "short-payloads",
        wrong = "Keeps the length of a payload in 16 bits, one of them a sign.",
        clause = "event-model",
        case = "5.1.7-5/sizes-up-to-half",
        edits = [
            ("""
    const uint32_t length = event->event_size - event->header_size;
""", """
    const uint32_t length = (event->event_size - event->header_size) & 0x7fff;
"""),
        ],
    ),
    dict(
        name = "drops-reserved-origins",
        wrong = "Does not deliver events of origin classes above 3.",
        clause = "event-model",
        case = "event-model/origins",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->sequence <= c->last_sequence || event->origin_class > 3) return true;
"""),
        ],
    ),
    dict(
        name = "drops-old-timestamps",
        wrong = "Does not deliver an event whose timestamp is before that of the last one.",
        clause = "event-model",
        case = "event-model/clock-jumps",
        edits = [
            ("""
    struct header* event;    // the private copy, room for capacity bytes
""", """
    struct header* event;    // the private copy, room for capacity bytes
    uint64_t last_timestamp;
"""),
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->sequence <= c->last_sequence) return true;
    if (event->timestamp < c->last_timestamp) return true;
    c->last_timestamp = event->timestamp;
"""),
        ],
    ),
    dict(
        name = "timestamp-in-a-double",
        wrong = "Keeps the timestamp in a double, which has 53 bits for it.",
        clause = "event-model",
        case = "5.1.8.1-6/drain",
        edits = [
            ("""
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, event->origin_class);
""", """
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, (uint64_t)(double)event->timestamp,
          event->origin_class);
"""),
        ],
    ),
    dict(
        name = "one-event-a-look",
        wrong = "Takes the first event of a batch and goes to write_pos.",
        clause = "5.1.8.1-6",
        case = "5.1.7/batches",
        edits = [
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos = write_pos;
"""),
        ],
    ),
    # Positions.
    dict(
        name = "positions-of-32-bits",
        wrong = "Keeps its read position in 32 bits.",
        clause = "5.1.6.2",
        case = "5.1.6.2/positions-beyond-32-bits",
        edits = [
            ("""
    uint64_t read_pos;       // in the current buffer
""", """
    uint32_t read_pos;       // in the current buffer
"""),
        ],
    ),
    dict(
        name = "positions-in-an-int",
        wrong = "Keeps its read position in an int.",
        clause = "5.1.6.2",
        case = "5.1.6.2/positions-beyond-31-bits",
        edits = [
            ("""
    uint64_t read_pos;       // in the current buffer
""", """
    int read_pos;            // in the current buffer
"""),
            ("""
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
""", """
        if ((uint64_t)c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > (uint64_t)c->read_pos;  // step 2
"""),
            ("""
        if (tail_pos > c->read_pos) {
""", """
        if (tail_pos > (uint64_t)c->read_pos) {
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        ACQUIRE(&meta->write_pos) <= (uint64_t)c->read_pos && !is_retired(c);  // E3: both
"""),
        ],
    ),
    dict(
        name = "signed-positions",
        wrong = "Compares positions as signed numbers.",
        clause = "5.1.6.2",
        case = "5.1.6.2/positions-beyond-63-bits",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
""", """
        if ((int64_t)c->read_pos >= (int64_t)write_pos) return true;
        const bool lapped = (int64_t)ACQUIRE(&c->meta->tail_pos) > (int64_t)c->read_pos;  // step 2
"""),
            ("""
        if (tail_pos > c->read_pos) {
""", """
        if ((int64_t)tail_pos > (int64_t)c->read_pos) {
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        (int64_t)ACQUIRE(&meta->write_pos) <= (int64_t)c->read_pos && !is_retired(c);  // E3: both
"""),
        ],
    ),
    # Laps and torn reads.
    dict(
        name = "no-lap-check",
        wrong = "Does not look at tail_pos before it reads, and trusts what it finds.",
        clause = "5.1.8.1-2",
        case = "5.1.8.1-2/lapped-by-one-event",
        edits = [
            ("""
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
        if (tail_pos > c->read_pos) {
""", """
        const uint64_t saved_tail = ACQUIRE(&c->meta->tail_pos);
        const bool sound = copy_event(c, c->capacity);
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
        if (tail_pos > saved_tail && tail_pos > c->read_pos) {
"""),
        ],
    ),
    dict(
        name = "lapped-moves-to-write-pos",
        wrong = "After a lap it goes on at write_pos, not at tail_pos.",
        clause = "5.1.8.1-2",
        case = "5.1.8.1-2/lapped-moves-to-tail",
        edits = [
            ("""
            c->read_pos = tail_pos;  // lapped, or torn
""", """
            c->read_pos = write_pos;
"""),
        ],
    ),
    dict(
        name = "no-tail-recheck",
        wrong = "Does not look at tail_pos again after the copy: delivers torn events.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-in-the-middle",
        edits = [
            ("""
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 2
        const bool lapped = tail_pos > c->read_pos;
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
"""),
        ],
    ),
    dict(
        name = "torn-is-corrupt",
        wrong = "Takes sizes that were torn for corrupt content, without a look at tail_pos.",
        clause = "E7",
        case = "E7/torn-header-of-large-sizes",
        edits = [
            ("""
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
""", """
        if (!lapped && !sound) return refuse(c, "corrupt event");
        atomic_thread_fence(memory_order_acquire);
"""),
        ],
    ),
    dict(
        name = "trusts-sizes",
        wrong = "Uses the sizes of an event before it knows that they are whole.",
        clause = "E7",
        case = "E7/torn-header-of-large-sizes",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
"""),
        ],
    ),
    dict(
        name = "works-in-place",
        wrong = "Delivers from the ring after the check, not from a copy made before it.",
        clause = "E6",
        case = "5.1.8.1-5/torn-in-the-middle",
        edits = [
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
"""),
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
""", """
    c->event = (struct header*)(uintptr_t)from;
"""),
        ],
    ),
    dict(
        name = "reads-on-after-a-lap",
        wrong = "After a lap it reads at tail_pos at once, without another look at write_pos.",
        clause = "E20",
        case = "E20/tail-reaches-write-pos",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
""", """
        if (c->read_pos == write_pos) return true;
        const uint64_t saved_tail = ACQUIRE(&c->meta->tail_pos);  // step 2
        if (saved_tail > c->read_pos) c->read_pos = saved_tail;
        const bool sound = copy_event(c, c->capacity);
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = ACQUIRE(&meta->write_pos) == c->read_pos && !is_retired(c);  // E3: both
"""),
        ],
    ),
    dict(
        name = "goes-on-at-the-tail-in-bounds",
        wrong = "After a lap it reads at tail_pos at once, without another load of write_pos; " +
                "the sizes are checked, and the lines go out when it is about to sleep.",
        clause = "E20",
        case = "E20/tail-reaches-write-pos",
        edits = [
            ("""
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
""", """
        const uint64_t saved_tail = ACQUIRE(&c->meta->tail_pos);  // step 2
        const bool lapped = saved_tail > c->read_pos;
        if (lapped) c->read_pos = saved_tail;
        const bool sound = copy_event(c, lapped ? c->capacity : write_pos - c->read_pos);
"""),
        ] + FLUSHES_BEFORE_IT_SLEEPS,
    ),
    # Losses.
    dict(
        name = "loss-count-one-too-high",
        wrong = "Counts the event behind a gap as lost, too.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-dropped-events",
        edits = [
            ("""
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
""", """
    const uint64_t lost = event->sequence - c->last_sequence;
    if (c->last_sequence != 0 && lost > 1) PRINT(c, "L %d %lu\\n", c->cpu, lost);
"""),
        ],
    ),
    dict(
        name = "counts-before-the-first",
        wrong = "Counts what came before its first event as lost.",
        clause = "contract-records",
        case = "5.1.9/gap-before-the-first",
        edits = [
            ("""
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
""", """
    if (lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
"""),
        ],
    ),
    dict(
        name = "stops-at-a-gap",
        wrong = "Ends a CPU at the first gap of its sequence numbers.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-dropped-events",
        edits = [
            ("""
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
""", """
    if (c->last_sequence != 0 && lost > 0) return false;
"""),
        ],
    ),
    dict(
        name = "drops-behind-a-gap",
        wrong = "Does not deliver the event behind a gap.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-dropped-events",
        edits = [
            ("""
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
    c->last_sequence = event->sequence;
""", """
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
    const bool gap = c->last_sequence != 0 && lost > 0;
    c->last_sequence = event->sequence;
    if (gap && event->type_len != 20) return true;
"""),
        ],
    ),
    # Sleep and wake.
    dict(
        name = "never-asks-for-a-wake",
        wrong = "Sleeps without setting need_wake.",
        clause = "5.1.8.2-1",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
""", """
"""),
        ],
    ),
    dict(
        name = "asks-after-the-recheck",
        wrong = "Looks at write_pos first and sets need_wake then.",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step",
        edits = [
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
""", """
    uint32_t counter = ACQUIRE(&meta->futex_counter);
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
"""),
        ],
    ),
    dict(
        name = "no-recheck",
        wrong = "Does not look at write_pos again after setting need_wake.",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = !is_retired(c);           // E3: both
"""),
        ],
    ),
    dict(
        name = "counter-after-the-recheck",
        wrong = "Reads futex_counter after the second look at write_pos, as the text has it.",
        clause = "E2",
        case = "E2/event-at-every-step",
        edits = [
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
""", """
"""),
            ("""
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
""", """
    const uint32_t counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "counter-read-in-the-call",
        wrong = "Hands futex_wait the value that stands there when it calls it.",
        clause = "E2",
        case = "E2/event-at-every-step",
        edits = [
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
""", """
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
""", """
    if (idle &&
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, meta->futex_counter, NULL, NULL, 0) !=
            0 &&
"""),
        ],
    ),
    dict(
        name = "counter-read-once",
        wrong = "Reads futex_counter only when it takes the buffer: it spins after a wake.",
        clause = "5.1.8.2-3",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    struct header* event;    // the private copy, room for capacity bytes
""", """
    struct header* event;    // the private copy, room for capacity bytes
    uint32_t counter;
"""),
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    c->counter = ACQUIRE(&meta->futex_counter);
"""),
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
""", """
    uint32_t counter = c->counter;
"""),
        ],
    ),
    dict(
        name = "clears-the-flag-before-it-sleeps",
        wrong = "Clears need_wake before futex_wait instead of after it.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
""", """
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
"""),
        ],
    ),
    dict(
        name = "private-futex",
        wrong = "Waits on a private futex, which nobody outside of the process wakes.",
        clause = "E17",
        case = "E17/shared-futex",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
""", """
    if (idle &&
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT_PRIVATE, counter, NULL, NULL, 0) != 0 &&
"""),
        ],
    ),
    dict(
        name = "no-full-barrier",
        wrong = "Has no full barrier between need_wake and the second look at write_pos.",
        clause = "E1",
        case = "E1/full-barrier",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
"""),
        ],
    ),
    dict(
        name = "polls",
        wrong = "Looks every millisecond and never sleeps by futex.",
        clause = "contract-2",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    (void)counter;
    if (idle) usleep(1000);
"""),
        ],
    ),
    dict(
        name = "spins",
        wrong = "Looks again and again and never sleeps by futex.",
        clause = "contract-2",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
""", """
    if (idle && c->meta == NULL &&
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
"""),
        ],
    ),
    dict(
        name = "a-wake-is-an-event",
        wrong = "Takes a wake for a promise that there is an event, and reads one.",
        clause = "5.1.8.2-6",
        case = "E3/asleep-through-a-swap",
        edits = [
            ("""
    struct header* event;    // the private copy, room for capacity bytes
""", """
    struct header* event;    // the private copy, room for capacity bytes
    bool woken;
"""),
            ("""
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
""", """
        if (c->read_pos >= write_pos && !c->woken) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound =
            !lapped && copy_event(c, c->woken ? c->capacity : write_pos - c->read_pos);
        c->woken = false;
"""),
            ("""
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
""", """
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
    c->woken = idle;
"""),
        ],
    ),
    dict(
        name = "eintr-is-the-end",
        wrong = "Takes a futex_wait that was interrupted for an error, and ends.",
        clause = "5.1.8.2-5",
        case = "5.1.8.2-5/waits-that-return-eintr",
        edits = [
            ("""
        errno != EAGAIN && errno != EINTR)
""", """
        errno != EAGAIN)
"""),
        ],
    ),
    dict(
        name = "eagain-of-the-wait-is-an-error",
        wrong = "Takes a futex_wait that says the counter has moved for an error, and ends.",
        clause = "5.1.8.2-5",
        case = "E2/event-at-the-futex-wait",
        edits = [
            ("""
        errno != EAGAIN && errno != EINTR)
""", """
        errno != EINTR)
"""),
        ],
    ),
    dict(
        name = "reports-late",
        wrong = "Writes its records when a buffer of 64 KiB is full, and at the end.",
        clause = "contract-3",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
        flush(c);
""", """
"""),
        ],
    ),
    # Writing where a consumer may not.
    dict(
        name = "resets-the-counter",
        wrong = "Sets futex_counter to 0 after a wake.",
        clause = "5.1.6.3",
        case = "5.1.8.2-5/sleeps-and-wakes",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
""", """
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
    atomic_store_explicit(&meta->futex_counter, 0, memory_order_relaxed);
"""),
        ],
    ),
    dict(
        name = "moves-tail-pos",
        wrong = "Stores its read position to tail_pos, as in rings whose consumer owns the tail.",
        clause = "5.1.6.2",
        case = "5.1.8.1-6/drain",
        edits = [
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos += c->event->event_size;
            atomic_store(&c->meta->tail_pos, c->read_pos);
"""),
        ],
    ),
    dict(
        name = "resets-write-pos",
        wrong = "Stores to write_pos when it has drained the buffer.",
        clause = "5.1.6.2",
        case = "5.1.8.1-6/drain",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
""", """
        if (c->read_pos >= write_pos) return atomic_store(&c->meta->write_pos, write_pos + 8), true;
"""),
        ],
    ),
    dict(
        name = "cursor-in-reserved-bytes",
        wrong = "Keeps its read position in the reserved bytes of the metadata page.",
        clause = "5.1.6.3",
        case = "5.1.8.1-6/drain",
        edits = [
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos += c->event->event_size;
            memcpy((uint8_t*)c->meta + 136, &c->read_pos, sizeof c->read_pos);
"""),
        ],
    ),
    dict(
        name = "marks-events-as-read",
        wrong = "Clears the size of an event in the ring once it has delivered it.",
        clause = "contract",
        case = "5.1.8.1-6/drain",
        edits = [
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            uint8_t* data = (uint8_t*)c->meta + kMetadataBytes;
            memset(data + (c->read_pos & (c->capacity - 1)), 0, 4);
            c->read_pos += c->event->event_size;
"""),
        ],
    ),
    # Resizes.
    dict(
        name = "never-looks-at-generation",
        wrong = "Never looks at generation: it stays in the buffer that it took first.",
        clause = "5.1.8.3",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->replaced;
"""),
        ],
    ),
    dict(
        name = "generation-plus-one",
        wrong = "Takes only a generation of one more for a change.",
        clause = "E15",
        case = "E15/two-swaps-at-once",
        edits = [
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->replaced || ACQUIRE(&c->meta->generation) == c->generation + 1;
"""),
        ],
    ),
    dict(
        name = "sleeps-on-a-dead-buffer",
        wrong = "Looks at generation before it asks for a wake, and not again after that.",
        clause = "E3",
        case = "E3/swap-at-every-step",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos;  // E3: both
"""),
        ],
    ),
    dict(
        name = "leaves-the-old-buffer",
        wrong = "Changes to the new buffer without draining the old one.",
        clause = "E10",
        case = "E10/unread-in-the-old-buffer",
        edits = [
            ("""
        more = drain(c);
""", """
        if (!retired) more = drain(c);
"""),
        ],
    ),
    dict(
        name = "asks-for-generation-last",
        wrong = "Changes buffers by a generation seen after its last look at write_pos.",
        clause = "E24",
        case = "E24/swap-at-every-step",
        edits = [
            ("""
        // all that is in it is delivered, be the next one too small for it (E10).
        const bool retired = is_retired(c);
        more = drain(c);
""", """
        // all that is in it is delivered, be the next one too small for it (E10).
        more = drain(c);
        const bool retired = is_retired(c);
"""),
        ],
    ),
    dict(
        name = "delivers-survivors-again",
        wrong = "Delivers the whole new buffer, with what it had delivered from the old one.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
"""),
        ],
    ),
    dict(
        name = "skips-the-new-buffer",
        wrong = "Starts at write_pos in the new buffer: what came meanwhile is lost.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = c->last_sequence != 0 ? ACQUIRE(&meta->write_pos) : ACQUIRE(&meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "keeps-its-position",
        wrong = "Keeps its read position when it changes buffers.",
        clause = "E11",
        case = "E11/positions-begin-at-zero",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    if (c->last_sequence == 0) c->read_pos = ACQUIRE(&meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "last-sequence-of-one-buffer",
        wrong = "Remembers the last sequence number of a buffer, not of the CPU.",
        clause = "E21",
        case = "E21/swaps-without-events-between",
        edits = [
            ("""
    struct header* event;    // the private copy, room for capacity bytes
""", """
    struct header* event;    // the private copy, room for capacity bytes
    uint64_t newest;         // delivered from the current buffer
"""),
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    c->last_sequence = c->newest;
    c->newest = 0;
"""),
            ("""
    c->last_sequence = event->sequence;
""", """
    c->last_sequence = c->newest = event->sequence;
"""),
        ],
    ),
    dict(
        name = "forgets-the-last-number-if-empty",
        wrong = "Forgets the last sequence number where the new buffer is empty: no L for the " +
                "next gap.",
        clause = "E21",
        case = "E21/nothing-survives",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    if (c->read_pos == ACQUIRE(&meta->write_pos)) c->last_sequence = 0;
"""),
        ],
    ),
    dict(
        name = "numbers-generations-itself",
        wrong = "Counts its buffers from 0 instead of reading generation.",
        clause = "contract-records",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    struct header* event;    // the private copy, room for capacity bytes
""", """
    struct header* event;    // the private copy, room for capacity bytes
    uint64_t buffers;
"""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
    PRINT(c, "G %d %lu\\n", c->cpu, c->buffers++);
"""),
        ],
    ),
    dict(
        name = "says-nothing-of-a-change",
        wrong = "Writes no G record.",
        clause = "contract-records",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
"""),
        ],
    ),
    dict(
        name = "leaks-fds",
        wrong = "Leaves the fds of the other CPUs open at every attach.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/closes-what-it-leaves",
        edits = [
            ("""
    for (int i = 0; i < count; i++)
        if (i != cpu) close(fds[i]);
""", """
"""),
        ],
    ),
    # The end.
    dict(
        name = "exits-at-the-first-end",
        wrong = "Ends the program with the first CPU that ends.",
        clause = "contract-4",
        case = "contract-4/cpu-by-cpu",
        edits = [
            ("""
    flush(c);
""", """
    flush(c);
    exit(0);
"""),
        ],
    ),
    dict(
        name = "never-exits",
        wrong = "Does not exit when all CPUs have ended.",
        clause = "contract-4",
        case = "5.1.5/attach-and-map",
        edits = [
            ("""
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
""", """
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
    pause();
"""),
        ],
    ),
    dict(
        name = "exit-status-one",
        wrong = "Exits with status 1 when all is well.",
        clause = "contract-4",
        case = "5.1.5/attach-and-map",
        edits = [
            ("""
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
    return 0;
""", """
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
    return 1;
"""),
        ],
    ),
    dict(
        name = "goes-on-after-the-end",
        wrong = "Delivers what follows the end event.",
        clause = "contract-4",
        case = "contract-4/nothing-after-the-end",
        edits = [
            ("""
    size_t used;
""", """
    size_t used;
    bool ended;
"""),
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    if (event->type_len == 20 && memcmp(type, "kmes.conformance.end", 20) == 0) c->ended = true;
    return true;
"""),
            ("""
        flush(c);
""", """
        flush(c);
        if (c->ended) return NULL;
"""),
        ],
    ),
    dict(
        name = "end-by-prefix",
        wrong = "Takes every type that begins like the end event for it.",
        clause = "contract-4",
        case = "contract-4/almost-the-end",
        edits = [
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    return event->type_len < 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
"""),
        ],
    ),
    # Content that no producer writes (level robust), and buffers of absurd fields.
    dict(
        name = "believes-any-data-offset",
        wrong = "Does not look at data_offset.",
        clause = "5.1.6.1",
        case = "5.1.6.1/other-data-offset",
        edits = [
            ("""
    return meta->data_offset != kMetadataBytes ? "bad data_offset" : NULL;
""", """
    return NULL;
"""),
        ],
    ),
    dict(
        name = "takes-the-smaller-capacity",
        wrong = "Where capacity and mapping differ it takes the smaller one, 0 included.",
        clause = "E14",
        case = "5.1.6.1/absurd-static-fields",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    if (meta->capacity > mapped) return "capacity is more than what is mapped";
"""),
        ],
    ),
    dict(
        name = "compares-the-ends-of-the-magic",
        wrong = "Compares the first byte of the magic and the last.",
        clause = "5.1.6.1",
        case = "5.1.6.1/each-byte-of-the-magic",
        edits = [
            ("""
    if (memcmp(meta->magic, "KMESRING", 8) != 0) return "bad magic";
""", """
    if (meta->magic[0] != 'K' || meta->magic[7] != 'G') return "bad magic";
"""),
        ],
    ),
    dict(
        name = "reads-the-capacity-each-time",
        wrong = "Takes the capacity from the page at each event, and not what it has mapped.",
        clause = "E14",
        case = "5.1.6.1/static-fields-that-change",
        edits = [
            ("""
    from += c->read_pos & (c->capacity - 1);  // 5.1.4: in one piece from here
""", """
    from += c->read_pos & (c->meta->capacity - 1);
"""),
        ],
    ),
    dict(
        name = "watches-reserved-bytes",
        wrong = "Refuses a buffer as soon as a reserved byte of it is not zero.",
        clause = "5.1.6.1",
        case = "5.1.6.1/reserved-bytes-that-change",
        edits = [
            ("""
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
""", """
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
        if (c->meta->reserved2[0] != 0) return refuse(c, "reserved bytes");
"""),
        ],
    ),
    dict(
        name = "corrupt-content-is-fatal",
        wrong = "Aborts at sizes that cannot be right.",
        clause = "E7",
        case = "E7/event-size-zero",
        edits = [
            ("""
            if (!sound) return refuse(c, "corrupt event");
""", """
            if (!sound) abort();
"""),
        ],
    ),
    dict(
        name = "tries-corrupt-content-again",
        wrong = "Reads an event whose sizes cannot be right again, until they are.",
        clause = "E7",
        case = "E7/event-size-one",
        edits = [
            ("""
            if (!sound) return refuse(c, "corrupt event");
""", """
            if (!sound) continue;
"""),
        ],
    ),
    dict(
        name = "header-longer-than-the-event",
        wrong = "Does not compare header_size with event_size: a payload of 4 GiB.",
        clause = "E7",
        case = "E7/event-size-29",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size > readable) return false;
"""),
        ],
    ),
    dict(
        name = "asserts-the-end-of-an-event",
        wrong = "Asserts that an event ends at write_pos or before.",
        clause = "E7",
        case = "E7/event-size-beyond-write-pos",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size) return false;
    if (header.event_size > readable && ACQUIRE(&c->meta->tail_pos) <= c->read_pos) abort();
    if (header.event_size > readable) return false;
"""),
        ],
    ),
    dict(
        name = "asserts-that-there-is-a-type",
        wrong = "Asserts that an event has a type.",
        clause = "E7",
        case = "E7/type-empty",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
""", """
    if (header.type_len == 0 && ACQUIRE(&c->meta->tail_pos) <= c->read_pos) abort();
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
"""),
        ],
    ),
    dict(
        name = "asserts-the-order-of-positions",
        wrong = "Asserts that tail_pos is not beyond write_pos.",
        clause = "E7",
        case = "E7/tail-beyond-write-pos",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    if (c->read_pos > ACQUIRE(&meta->write_pos)) abort();
"""),
        ],
    ),
    dict(
        name = "clamps-write-pos",
        wrong = "Takes a write_pos that is more than the capacity ahead for one that is the " +
                "capacity ahead.",
        clause = "E26",
        case = "E7/write-pos-laps-ahead",
        edits = [
            ("""
    if (readable < sizeof header || readable > c->capacity) return false;
""", """
    if (readable > c->capacity) readable = c->capacity;
    if (readable < sizeof header) return false;
"""),
        ],
    ),
    dict(
        name = "asserts-no-more-than-the-capacity",
        wrong = "Asserts that write_pos is not more than a capacity ahead.",
        clause = "E7",
        case = "E7/write-pos-laps-ahead",
        edits = [
            ("""
    if (readable < sizeof header || readable > c->capacity) return false;
""", """
    if (readable > c->capacity) abort();
    if (readable < sizeof header) return false;
"""),
        ],
    ),
    dict(
        name = "waits-for-write-pos-to-reach-tail-pos",
        wrong = "Where tail_pos is beyond write_pos, it looks until that is over.",
        clause = "E7",
        case = "E7/positions-forged",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    while (ACQUIRE(&meta->write_pos) < c->read_pos) continue;
"""),
        ],
    ),
    dict(
        name = "asserts-that-positions-grow",
        wrong = "Asserts that write_pos is never lower than it was.",
        clause = "E7",
        case = "E7/positions-forged-while-it-runs",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
""", """
        if (c->read_pos > write_pos && ACQUIRE(&c->meta->tail_pos) < c->read_pos) abort();
        if (c->read_pos >= write_pos) return true;
"""),
        ],
    ),
    dict(
        name = "lists-what-is-lost",
        wrong = "Writes a line for each sequence number that is missing.",
        clause = "E7",
        case = "E7/sequence-goes-back",
        edits = [
            ("""
    c->last_sequence = event->sequence;
""", """
    for (uint64_t i = 1; c->last_sequence != 0 && i <= lost; i++) {
        PRINT(c, "# lost %lu\\n", c->last_sequence + i);
        if (c->used >= kChunkBytes) flush(c);
    }
    c->last_sequence = event->sequence;
"""),
        ],
    ),
    dict(
        name = "asserts-the-cpu-id",
        wrong = "Asserts that cpu_id is the index of the fd.",
        clause = "E7",
        case = "E7/cpu-id-of-another",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->cpu_id != c->cpu) abort();
    if (event->sequence <= c->last_sequence) return true;
"""),
        ],
    ),
    dict(
        name = "waits-for-a-higher-generation",
        wrong = "Attaches again and again until generation is higher than it was.",
        clause = "E15",
        case = "E15/generation-forged",
        edits = [
            ("""
        if (more && retired) more = take_buffer(c);
""", """
        if (more && retired) {
            const uint64_t before = c->generation;
            do more = take_buffer(c);
            while (more && c->generation <= before);
        }
"""),
        ],
    ),
    # Much of everything, and numbers at the ends of their range.
    dict(
        name = "counter-only-grows",
        wrong = "Waits until futex_counter is higher than it was.",
        clause = "5.1.6.3",
        case = "5.1.6.3/counter-wraps",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle && ACQUIRE(&meta->futex_counter) <= counter)
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, ACQUIRE(&meta->futex_counter), NULL,
                NULL, 0);
"""),
        ],
    ),
    dict(
        name = "counter-in-an-int",
        wrong = "Waits until futex_counter, as an int, is higher than it was.",
        clause = "5.1.6.3",
        case = "5.1.6.3/counter-beyond-31-bits",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle && (int32_t)ACQUIRE(&meta->futex_counter) <= (int32_t)counter)
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, ACQUIRE(&meta->futex_counter), NULL,
                NULL, 0);
"""),
        ],
    ),
    dict(
        name = "sequence-in-32-bits",
        wrong = "Keeps the last sequence number in 32 bits.",
        clause = "event-model",
        case = "event-model/sequences-beyond-32-bits",
        edits = [
            ("""
    uint64_t last_sequence;  // over all buffers of this CPU (E21); 0: none delivered yet
""", """
    uint32_t last_sequence;
"""),
        ],
    ),
    dict(
        name = "signed-sequences",
        wrong = "Compares sequence numbers as signed numbers.",
        clause = "event-model",
        case = "event-model/sequences-beyond-63-bits",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if ((int64_t)event->sequence <= (int64_t)c->last_sequence) return true;
"""),
        ],
    ),
    dict(
        name = "losses-in-a-byte",
        wrong = "Counts lost events in eight bits.",
        clause = "5.1.9",
        case = "5.1.9/long-runs-of-drops",
        edits = [
            ("""
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
""", """
    const uint64_t lost = (uint8_t)(event->sequence - c->last_sequence - 1);
"""),
        ],
    ),
    dict(
        name = "timestamp-0-is-no-event",
        wrong = "Takes an event of timestamp 0 for space that is not used.",
        clause = "event-model",
        case = "event-model/timestamps-at-the-ends",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->sequence <= c->last_sequence || event->timestamp == 0) return true;
"""),
        ],
    ),
    dict(
        name = "a-hundred-megabytes-at-most",
        wrong = "Refuses a capacity of more than 100 MB.",
        clause = "5.1.3",
        case = "5.1.3/largest-capacity",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    if (meta->capacity != mapped || mapped > 100000000) return "capacity is not what is mapped";
"""),
        ],
    ),
    dict(
        name = "gives-up-when-far-behind",
        wrong = "Refuses a buffer when it has been lapped more than eight times.",
        clause = "5.1.9",
        case = "5.1.9/paused-for-ten-laps",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
""", """
        if (tail_pos > c->read_pos + 8 * c->capacity) return refuse(c, "too far behind");
        if (tail_pos > c->read_pos) {
"""),
        ],
    ),
    dict(
        name = "eagain-is-no-error",
        wrong = "Ends with status 0 where kmes_attach says EAGAIN: nothing to do as yet.",
        clause = "contract-1",
        case = "5.1.2/attach-in-the-boot-phase",
        edits = [
            ("""
    if (attach_all(NULL, &cpu_count, &capacity) != ERANGE) err(1, "kmes_attach: number of CPUs");
""", """
    if (syscall(kAttachCall, NULL, &cpu_count, &capacity) != 0 && errno == EAGAIN) return 0;
    if (attach_all(NULL, &cpu_count, &capacity) != ERANGE) err(1, "kmes_attach: number of CPUs");
"""),
        ],
    ),
    dict(
        name = "one-resize-at-a-time",
        wrong = "Gives up where the buffer was swapped between its attach and its look at it.",
        clause = "E19",
        case = "E19/resize-at-every-step-of-an-attach",
        edits = [
            ("""
    c->replaced = taken.st_ino != current.st_ino || taken.st_dev != current.st_dev;
""", """
    c->replaced = taken.st_ino != current.st_ino || taken.st_dev != current.st_dev;
    if (c->replaced) errx(1, "the buffer was swapped");
"""),
        ],
    ),
    dict(
        name = "leaks-its-copy",
        wrong = "Gets room for its copy at each change of buffers, and never gives it back.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/two-hundred-resizes",
        edits = [
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    if ((c->event = malloc(capacity)) == NULL) err(1, "malloc");
"""),
        ],
    ),
    dict(
        name = "leaks-a-little-memory",
        wrong = "Keeps another hundred kibibytes at each change of buffers.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/two-hundred-resizes",
        edits = [
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
    static char* volatile kept;
    if ((kept = malloc(100 << 10)) == NULL) err(1, "malloc");
    memset(kept, 1, 100 << 10);
"""),
        ],
    ),
    dict(
        name = "closes-every-second-time",
        wrong = "Closes the fd of the first CPU at every second change of its buffer only.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/two-hundred-resizes",
        edits = [
            ("""
    close(fd);  // the mapping stays
""", """
    static unsigned times;
    if (c->cpu != 0 || times++ % 2 == 0) close(fd);  // the mapping stays
"""),
        ],
    ),
    # Idle honesty.
    dict(
        name = "spins-between-sleeps",
        wrong = "Sleeps for a millisecond at most, and spins for thirty in between.",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-burns-no-cpu",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    struct timespec limit = {0, 1000000}, now, end;
    uint32_t* word = (uint32_t*)&meta->futex_counter;
    if (idle && syscall(SYS_futex, word, FUTEX_WAIT, counter, &limit, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
        err(1, "futex");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    for (now = end; (now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 30000000;
         clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
        if (ACQUIRE(&meta->write_pos) > c->read_pos || is_retired(c)) break;
"""),
            ("""
#include <sys/syscall.h>
""", """
#include <sys/syscall.h>
#include <time.h>
"""),
        ],
    ),
    dict(
        name = "collects-for-a-second",
        wrong = "Waits for a second after each wake, so that more events come together.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2/delivers-when-woken",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
""", """
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
    usleep(1000000);
"""),
        ],
    ),
    # In places that are seldom passed.
    dict(
        name = "waits-on-a-later-value",
        wrong = "After a wake for nothing reads futex_counter once more, and waits on that.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-6/event-after-a-wake-for-nothing",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0 &&
           ACQUIRE(&meta->futex_counter) == counter)
        counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "looks-at-write-pos-alone-after-a-wake",
        wrong = "After a wake looks at write_pos alone, and waits again.",
        clause = "E3",
        case = "E3/swap-after-a-wake-for-nothing",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0) {
        counter = ACQUIRE(&meta->futex_counter);
        if (ACQUIRE(&meta->write_pos) > c->read_pos || is_retired(c)) break;
        counter = ACQUIRE(&meta->futex_counter);
        if (ACQUIRE(&meta->write_pos) > c->read_pos) break;
    }
"""),
        ],
    ),
    dict(
        name = "interrupted-waits-on-a-later-value",
        wrong = "After EINTR reads futex_counter once more, and waits on that.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-6/event-after-an-interruption",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
           errno == EINTR && ACQUIRE(&meta->futex_counter) == counter)
        counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "interrupted-looks-at-write-pos-alone",
        wrong = "After EINTR looks at write_pos alone, and waits again.",
        clause = "E3",
        case = "E3/swap-after-an-interruption",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
           errno == EINTR && !is_retired(c)) {
        counter = ACQUIRE(&meta->futex_counter);
        if (ACQUIRE(&meta->write_pos) > c->read_pos) break;
    }
"""),
        ],
    ),
    dict(
        name = "no-recheck-on-cpu-3",
        wrong = "Does not look at write_pos again before it sleeps on CPU 3.",
        clause = "5.1.8.2-2",
        case = "5.1.8.2-2/event-at-every-step-on-the-last-cpu",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = (c->cpu == 3 || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);
"""),
        ],
    ),
    dict(
        name = "no-generation-on-cpu-3",
        wrong = "Does not look at generation again before it sleeps on CPU 3.",
        clause = "E3",
        case = "E3/swap-at-every-step-on-the-last-cpu",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && (c->cpu == 3 || !is_retired(c));
"""),
        ],
    ),
    dict(
        name = "sleeps-on-beyond-32-cpus",
        wrong = "Leaves need_wake alone from CPU 32 on.",
        clause = "5.1.1",
        case = "5.1.1/some-of-sixty-four",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
""", """
    if (c->cpu < 32) atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
"""),
        ],
    ),
    dict(
        name = "changes-of-16-cpus",
        wrong = "Notices changes of the buffers of 16 CPUs.",
        clause = "5.1.8.3",
        case = "5.1.8.3/change-of-twenty",
        edits = [
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->cpu < 16 && (c->replaced || ACQUIRE(&c->meta->generation) != c->generation);
"""),
        ],
    ),
    dict(
        name = "four-mebibytes-at-most",
        wrong = "Takes an event of more than 4 MiB for a corrupt one.",
        clause = "event-model",
        case = "event-model/five-mebibytes",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    if (header.event_size > 4u << 20) return false;
"""),
        ],
    ),
    dict(
        name = "smaller-than-the-buffer",
        wrong = "Takes an event that fills its buffer for a corrupt one.",
        clause = "E20",
        case = "E20/fills-the-new-buffer",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    if (header.event_size >= c->capacity) return false;
"""),
        ],
    ),
    dict(
        name = "stays-where-it-was-if-empty",
        wrong = "Keeps its position where the new buffer is empty.",
        clause = "E11",
        case = "E11/empty-and-begins-at-zero",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    if (c->read_pos == 0 || ACQUIRE(&meta->tail_pos) != ACQUIRE(&meta->write_pos))
        c->read_pos = ACQUIRE(&meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "refuses-a-set-flag",
        wrong = "Refuses a buffer whose need_wake is set: somebody else must be there.",
        clause = "5.1.6.3",
        case = "5.1.6.3/flag-left-set",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if (meta->version != 1) return "unknown version";
    if (meta->need_wake != 0) return "in use";
"""),
        ],
    ),
    dict(
        name = "version-of-16-bits",
        wrong = "Compares the low half of the version.",
        clause = "5.1.6.1",
        case = "5.1.6.1/version-in-all-its-bytes",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if ((uint16_t)meta->version != 1) return "unknown version";
"""),
        ],
    ),
    dict(
        name = "no-fence-on-cpu-1",
        wrong = "Has no full barrier on CPU 1.",
        clause = "E1",
        case = "E1/full-barrier-in-between",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    if (c->cpu != 1) atomic_thread_fence(memory_order_seq_cst);
"""),
        ],
    ),
    dict(
        name = "fences-that-wear-out",
        wrong = "Has a full barrier at its first eight sleeps.",
        clause = "E1",
        case = "E1/full-barrier-later",
        edits = has_a_fence_at("sleeps++ < 8"),
    ),
    dict(
        name = "first-sleep-has-no-fence",
        wrong = "Has a full barrier from its second sleep on.",
        clause = "E1",
        case = "E1/full-barrier-at-first",
        edits = has_a_fence_at("sleeps++ > 0"),
    ),
    dict(
        name = "first-sleep-of-a-buffer-has-no-fence",
        wrong = "Has no full barrier at the first sleep on the buffer after a resize.",
        clause = "E1",
        case = "E1/full-barrier-at-first",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local uint64_t slept_in;
    if (slept_in == 0 || slept_in == c->generation) atomic_thread_fence(memory_order_seq_cst);
    slept_in = c->generation;
"""),
        ],
    ),
    dict(
        name = "copies-into-the-first-capacity",
        wrong = "Its copy has room for the first capacity; a larger event is refused as corrupt.",
        clause = "5.1.8.3",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    if (c->event == NULL && (c->event = calloc(1, (c->room = capacity))) == NULL) err(1, "calloc");
"""),
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    if (header.event_size > c->room) return false;
"""),
            ("""
    size_t used;
};
""", """
    size_t used;
    uint64_t room;
};
"""),
        ],
    ),
    dict(
        name = "no-loss-before-the-end",
        wrong = "Writes no L where the end event is what follows the gap.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-dropped-events",
        edits = [
            ("""
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
""", """
    const bool ends = event->type_len == 20 && memcmp(type, "kmes.conformance.end", 20) == 0;
    if (c->last_sequence != 0 && lost > 0 && !ends) PRINT(c, "L %d %lu\\n", c->cpu, lost);
"""),
        ],
    ),
    dict(
        name = "end-by-its-bytes-alone",
        wrong = "Takes the end event's type in the first twenty bytes for it, whatever type_len.",
        clause = "contract-4",
        case = "contract-4/almost-the-end",
        edits = [
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    return event->event_size < sizeof *event + 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
"""),
        ],
    ),
    dict(
        name = "drops-what-equals-the-last",
        wrong = "Drops an event whose timestamp and payload are those of the one before it.",
        clause = "5.1.8.1-6",
        case = "5.1.7/batches",
        edits = [
            ("""
    c->last_sequence = event->sequence;
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, event->origin_class);
""", """
    c->last_sequence = event->sequence;
    static _Thread_local uint64_t last_time, last_sum;
    uint64_t sum = length;
    for (uint32_t i = 0; i < length; i++) sum = sum * 31 + payload[i];
    if (event->timestamp == last_time && sum == last_sum) return true;
    last_time = event->timestamp;
    last_sum = sum;
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, event->origin_class);
"""),
        ],
    ),
    dict(
        name = "times-out-to-a-later-value",
        wrong = "After a timeout reads futex_counter once more, and waits on that.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-6/event-after-a-timeout",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const struct timespec limit = {0, 50000000};
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, &limit, NULL, 0) != 0 &&
           errno == ETIMEDOUT && ACQUIRE(&meta->futex_counter) == counter)
        counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "times-out-to-write-pos-alone",
        wrong = "After a timeout looks at write_pos alone, and waits again.",
        clause = "E3",
        case = "E3/swap-after-a-timeout",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const struct timespec limit = {0, 50000000};
    while (idle &&
           syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, &limit, NULL, 0) != 0 &&
           errno == ETIMEDOUT && ACQUIRE(&meta->write_pos) <= c->read_pos)
        counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "no-change-before-an-event",
        wrong = "Looks at generation once it has read an event.",
        clause = "E3",
        case = "E3/swap-before-any-event",
        edits = [
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->replaced || (c->read_pos != 0 && ACQUIRE(&c->meta->generation) != c->generation);
"""),
        ],
    ),
    dict(
        name = "drains-256-at-a-time",
        wrong = "Reads 256 events of an old buffer, and goes on to the next one.",
        clause = "E10",
        case = "E10/a-thousand-unread",
        edits = [
            ("""
    for (;;) {
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
""", """
    for (int i = 0; i < 256; i++) {
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
"""),
            ENDS_ITS_DRAIN_EARLY,
        ],
    ),
    dict(
        name = "keeps-an-empty-mapping",
        wrong = "Keeps the mapping of a buffer in which nothing was.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/two-hundred-empty-resizes",
        edits = [
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    if (c->meta != NULL && c->read_pos > 0) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
        ],
    ),
    dict(
        name = "checks-the-first-buffer",
        wrong = "Checks the fields of the first buffer, and of no later one.",
        clause = "5.1.6.1",
        case = "5.1.6.1/version-of-the-next-buffer",
        edits = [
            ("""
    const char* fault = find_fault(meta, capacity);
""", """
    const char* fault = c->event == NULL ? find_fault(meta, capacity) : NULL;
"""),
        ],
    ),
    dict(
        name = "checks-the-first-two-buffers",
        wrong = "Checks the fields of the first buffer and of the next one, and of no later one.",
        clause = "5.1.6.1",
        case = "5.1.6.1/version-after-sound-buffers",
        edits = [
            ("""
    const char* fault = find_fault(meta, capacity);
""", """
    static _Thread_local int buffers;
    const char* fault = buffers++ < 2 ? find_fault(meta, capacity) : NULL;
"""),
        ],
    ),
    dict(
        name = "version-with-a-sign",
        wrong = "Compares the version as a number with a sign.",
        clause = "5.1.6.1",
        case = "5.1.6.1/version-all-ones",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if ((int32_t)meta->version > 1 || meta->version == 0) return "unknown version";
"""),
        ],
    ),
    dict(
        name = "ends-without-a-payload",
        wrong = "Takes an end event with a payload for an ordinary one.",
        clause = "contract-4",
        case = "contract-4/other-ends",
        edits = [
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    return event->type_len != 20 || length != 0 || memcmp(type, "kmes.conformance.end", 20) != 0;
"""),
        ],
    ),
    dict(
        name = "end-but-for-its-last-byte",
        wrong = "Compares the end event's type up to the byte before its last.",
        clause = "contract-4",
        case = "contract-4/almost-the-end",
        edits = [
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 19) != 0;
"""),
        ],
    ),
    # Two consumers on one buffer (--shared).
    dict(
        name = "shares-without-a-limit",
        wrong = "Leaves need_wake alone for the sake of others, and sleeps without a limit.",
        clause = "E12",
        case = "E12/cleared-while-it-sleeps",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
""", """
"""),
        ],
    ),
    dict(
        name = "asks-only-where-nobody-did",
        wrong = "Sets need_wake only where it is not set, and sleeps without a limit.",
        clause = "E12",
        case = "E12/cleared-at-every-step",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
""", """
    if (atomic_load_explicit(&meta->need_wake, memory_order_relaxed) == 0)
        atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
"""),
            ("""
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
""", """
"""),
        ],
    ),
    dict(
        name = "takes-the-flag-back",
        wrong = "Takes its request back by an exchange, as if nobody else had asked.",
        clause = "E12",
        case = "E12/two-instances",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
""", """
    (void)atomic_exchange(&meta->need_wake, 0);
"""),
        ],
    ),
    dict(
        name = "one-instance-only",
        wrong = "Locks its own program, and does not run beside another instance of it.",
        clause = "E12",
        case = "E12/two-instances-under-load",
        edits = [
            ("""
#include <unistd.h>
""", """
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
"""),
            ("""
int main(void) {
""", """
int main(void) {
    if (flock(open("/proc/self/exe", O_RDONLY), LOCK_EX | LOCK_NB) != 0) return 1;
"""),
        ],
    ),
    dict(
        name = "asserts-its-own-flag",
        wrong = "Asserts that need_wake is 0 when it sets it.",
        clause = "E12",
        case = "E12/set-at-every-step",
        edits = [
            ("""
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
""", """
    if (atomic_exchange(&meta->need_wake, 1) != 0) abort();
"""),
        ],
    ),
    dict(
        name = "second-look-at-write-pos",
        wrong = "Asks write_pos, not tail_pos, whether what it has read was overwritten.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-what-is-not-published",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (lapped || !sound ||
            ACQUIRE(&c->meta->write_pos) - c->read_pos > c->capacity) {
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "no-second-look-at-the-end",
        wrong = "Does not look again behind an event that ends with the data region.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-wherever-it-lies",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (tail_pos > c->read_pos &&
            !(sound && (c->read_pos & (c->capacity - 1)) + c->event->event_size == c->capacity)) {
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "no-second-look-without-payload",
        wrong = "Does not look again behind an event that has no payload.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-wherever-it-lies",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (tail_pos > c->read_pos && !(sound && c->event->event_size == c->event->header_size)) {
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "tails-in-32-bits",
        wrong = "Compares the two tail_pos that it has read in 32 bits.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-where-positions-pass-a-border",
        edits = [
            ("""
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
""", """
        const uint64_t before = ACQUIRE(&c->meta->tail_pos);
        const bool lapped = before > c->read_pos;
"""),
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (lapped || ((uint32_t)tail_pos > (uint32_t)before && tail_pos > c->read_pos)) {
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "torn-by-its-torn-size",
        wrong = "Takes an event for torn only if tail_pos has passed its end, by the size it read.",
        clause = "E7",
        case = "E7/torn-to-a-plausible-header",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (lapped || tail_pos >= c->read_pos + (sound ? c->event->event_size : 1)) {
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "gives-up-a-torn-backlog",
        wrong = "Goes on at write_pos if something of a large backlog was overwritten.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/backlog-torn-in-part",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (tail_pos > c->read_pos) {
            const bool is_large = !lapped && write_pos - c->read_pos > 131072;
            c->read_pos = is_large && write_pos > tail_pos ? write_pos : tail_pos;
"""),
        ],
    ),
    dict(
        name = "generation-in-two-bits",
        wrong = "Compares the lowest two bits of generation.",
        clause = "E15",
        case = "E15/generation-jumps",
        edits = [
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->replaced || ((ACQUIRE(&c->meta->generation) ^ c->generation) & 3) != 0;
"""),
        ],
    ),
    dict(
        name = "skips-behind-an-empty-buffer",
        wrong = "Begins at write_pos if nothing came from the buffer before.",
        clause = "E21",
        case = "E21/event-behind-swaps-without-events",
        edits = [
            ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity, generation, sequence_then;
    unsigned taken;
"""),
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    if (c->taken++ >= 2 && c->last_sequence == c->sequence_then)
        c->read_pos = ACQUIRE(&meta->write_pos);
    c->sequence_then = c->last_sequence;
"""),
        ],
    ),
    dict(
        name = "keeps-a-position-that-is-the-end",
        wrong = "Keeps its position where it is the write_pos of the new buffer, too.",
        clause = "E11",
        case = "E11/positions-fit-by-chance",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    const uint64_t oldest = ACQUIRE(&meta->tail_pos);
    if (c->read_pos < oldest || c->read_pos != ACQUIRE(&meta->write_pos)) c->read_pos = oldest;
"""),
        ],
    ),
    dict(
        name = "second-look-of-32-cpus",
        wrong = "Looks at write_pos again before it sleeps on the first 32 CPUs only.",
        clause = "5.1.8.2-2",
        case = "5.1.8.2-2/event-at-every-step-of-thirty-six",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        (c->cpu >= 32 || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);
"""),
        ],
    ),
    dict(
        name = "generation-of-32-cpus",
        wrong = "Looks at generation again before it sleeps on the first 32 CPUs only.",
        clause = "E3",
        case = "E3/swap-at-every-step-of-thirty-six",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        ACQUIRE(&meta->write_pos) <= c->read_pos && (c->cpu >= 32 || !is_retired(c));
"""),
        ],
    ),
    dict(
        name = "leaves-what-was-replaced",
        wrong = "Does not unmap a buffer that was retired before it was read.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/eighty-resizes-on-the-way",
        edits = [
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    if (c->meta != NULL && !c->replaced) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
        ],
    ),
    dict(
        name = "writes-in-pieces",
        wrong = "Writes its report in pieces of 4096 bytes, wherever they end.",
        clause = "contract-3",
        case = "contract-3/whole-lines",
        edits = [
            ("""
        const ssize_t written = write(report_fd, c->report + done, c->used - done);
""", """
        const size_t left = c->used - done;
        const ssize_t written = write(report_fd, c->report + done, left < 4096 ? left : 4096);
"""),
        ],
    ),
    dict(
        name = "scans-unchecked",
        wrong = "Looks for its place in a new buffer without the checks of the drain.",
        clause = "E21",
        case = "E21/torn-while-it-finds-its-place",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    const uint64_t write_pos = ACQUIRE(&meta->write_pos);
    while (c->last_sequence != 0 && c->read_pos < write_pos) {
        struct header header;
        const uint64_t offset = c->read_pos & (capacity - 1);
        memcpy(&header, (const uint8_t*)meta + kMetadataBytes + offset, sizeof header);
        if (header.sequence > c->last_sequence) break;
        c->read_pos += header.event_size;
    }
"""),
        ],
    ),
    dict(
        name = "tells-by-the-time",
        wrong = "After a change of buffers, takes what is no later than the last event for old.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3-5/clock-set-back-over-a-swap",
        edits = [
            ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity, generation, last_time;
"""),
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (event->sequence <= c->last_sequence) return true;
    if (c->generation > 1 && event->timestamp <= c->last_time) return true;
    c->last_time = event->timestamp;
"""),
        ],
    ),
    dict(
        name = "spins-until-all-have-ended",
        wrong = "A thread whose CPU has ended spins until all others have.",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-beside-an-ended-cpu",
        edits = [
            ("""
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
""", """
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
    static _Atomic int ended;
    for (ended++; ended < cpu_count;) {
    }
"""),
        ],
    ),
    dict(
        name = "spins-after-a-change",
        wrong = "A thread that it starts at the first change of its buffer never comes to rest.",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-after-changes",
        edits = [
            ("""
// 5.1.8.3 steps 2 to 6, for the first buffer as for each later one. False if it is refused.
""", """
static atomic_int to_reclaim;

static void* reclaim(void* argument) {
    while (to_reclaim >= 0) {
        if (to_reclaim > 0) to_reclaim--;
    }
    return argument;
}

// 5.1.8.3 steps 2 to 6, for the first buffer as for each later one. False if it is refused.
"""),
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    static atomic_bool has_reclaimer;
    pthread_t reclaimer;
    if (c->meta != NULL) {
        munmap(c->meta, kMetadataBytes + 2 * c->capacity);
        to_reclaim++;
        if (!atomic_exchange(&has_reclaimer, true)) pthread_create(&reclaimer, NULL, reclaim, NULL);
    }
"""),
        ],
    ),
    dict(
        name = "keeps-the-files-of-ended-cpus",
        wrong = "Leaves each file to the thread of its CPU, also where that thread has ended.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/eighty-resizes-beside-an-ended-cpu",
        edits = [
            ("""
        if (i != cpu) close(fds[i]);
""", """
        if (i != cpu && !has_ended[i]) close(fds[i]);
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static atomic_bool has_ended[4096];
"""),
            ("""
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
""", """
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
    has_ended[c->cpu] = true;
"""),
        ],
    ),
    dict(
        name = "one-capacity-for-all-threads",
        wrong = "Its threads share the variable that kmes_attach writes the capacity to.",
        clause = "E14",
        case = "E14/attaches-of-two-capacities",
        edits = [
            ("""
    uint64_t capacity = 0, ignored;
    const int fd = attach(c->cpu, &capacity, &taken);
""", """
    static uint64_t capacity;
    uint64_t ignored;
    const int fd = attach(c->cpu, &capacity, &taken);
"""),
        ],
    ),
    dict(
        name = "one-counter-for-all-threads",
        wrong = "Its threads share the variable that they keep the counter in to wait with.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-go-to-sleep",
        edits = [
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
""", """
    static _Atomic uint32_t counter;
    counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "revives-what-has-ended",
        wrong = "Takes the next buffer of a CPU that has ended, where others have not.",
        clause = "contract-4",
        case = "contract-4/ended-through-changes",
        edits = [
            ("""
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
""", """
        if (more && retired) more = take_buffer(c);
        if (!more) {
            static _Atomic int ended;
            bool is_back = false;
            flush(c);
            for (ended++; ended < cpu_count; usleep(1000)) {
                if (is_retired(c)) is_back = take_buffer(c);
                if (is_back) drain(c);
                flush(c);
            }
        }
    }
    flush(c);
"""),
        ],
    ),
    dict(
        name = "one-position-for-all-threads",
        wrong = "Its threads share the variable that they compare tail_pos with behind the copy.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle-of-a-lap",
        edits = [
            ("""
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
""", """
        static _Atomic uint64_t begun;
        begun = c->read_pos;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
"""),
            ("""
        if (tail_pos > c->read_pos) {
""", """
        if (tail_pos > begun) {
"""),
        ],
    ),
    dict(
        name = "one-copy-for-large-events",
        wrong = "Its threads share the room that they copy events of more than a page to.",
        clause = "5.1.1",
        case = "5.1.1/explored-two-large",
        edits = [
            ("""
    size_t used;
};
""", """
    size_t used;
    struct header* own;
};
"""),
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    if ((c->own = realloc(c->own, capacity)) == NULL) err(1, "realloc");
"""),
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
""", """
    static uint8_t large[1 << 28];
    c->event = header.event_size > 4096 ? (struct header*)large : c->own;
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
"""),
        ],
    ),
    dict(
        name = "no-barrier-for-the-last-cpu",
        wrong = "Has no full barrier when one CPU is left of several.",
        clause = "E1",
        case = "E1/full-barrier-beside-ended-cpus",
        edits = COUNTS_ENDED_CPUS + [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    if (cpu_count == 1 || ended_cpus < cpu_count - 1) atomic_thread_fence(memory_order_seq_cst);
"""),
        ],
    ),
    dict(
        name = "counter-again-for-the-last-cpu",
        wrong = "Reads the counter behind its second look when one CPU is left of several.",
        clause = "E2",
        case = "E2/event-at-every-step-beside-ended-cpus",
        edits = COUNTS_ENDED_CPUS + [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
    if (cpu_count > 1 && ended_cpus == cpu_count - 1) counter = ACQUIRE(&meta->futex_counter);
"""),
        ],
    ),
    dict(
        name = "no-second-look-at-first",
        wrong = "Does not look at write_pos again before its first sleep.",
        clause = "E2",
        case = "E2/event-at-every-step-of-a-first-sleep",
        edits = leaves_out_the_second_look("c->sleeps++ == 0"),
    ),
    dict(
        name = "no-look-at-generation-for-the-last-cpu",
        wrong = "Does not look at generation before it sleeps when one CPU is left of several.",
        clause = "E3",
        case = "E3/swap-at-every-step-beside-ended-cpus",
        edits = COUNTS_ENDED_CPUS + [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool is_last = cpu_count > 1 && ended_cpus == cpu_count - 1;
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && (is_last || !is_retired(c));
"""),
        ],
    ),
    dict(
        name = "four-mebibytes-and-on",
        wrong = "Leaves the old buffer when it has read 4 MiB of it, whatever is left there.",
        clause = "E10",
        case = "E10/five-mebibytes-unread",
        edits = [
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c) {
    const uint64_t begun = c->read_pos;
    for (;;) {
        if (c->read_pos - begun > 4 << 20) return true;
"""),
        ],
    ),
    dict(
        name = "trusts-the-next-buffer",
        wrong = "Leaves the old buffer unread where the next one holds all of it at a look.",
        clause = "E10",
        case = "E10/next-buffer-overtaken-at-every-step",
        edits = [
            ("""
static void* consume(void* argument) {
""", """
static bool is_in_the_next(struct consumer* c) {
    struct stat ignored;
    uint64_t capacity = 0, sequence;
    const int fd = attach(c->cpu, &capacity, &ignored);
    const size_t bytes = kMetadataBytes + 2 * capacity;
    struct metadata* next = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (next == MAP_FAILED) return false;
    const uint64_t tail_pos = ACQUIRE(&next->tail_pos), at = tail_pos & (capacity - 1);
    const uint8_t* first = (const uint8_t*)next + kMetadataBytes + at;
    copy_relaxed((uint8_t*)&sequence, first + offsetof(struct header, sequence), sizeof sequence);
    const bool is_there = ACQUIRE(&next->write_pos) > tail_pos &&
                          sequence <= c->last_sequence + 1 && ACQUIRE(&next->tail_pos) == tail_pos;
    munmap(next, bytes);
    return is_there;
}

static void* consume(void* argument) {
"""),
            ("""
        more = drain(c);
""", """
        if (!retired || !is_in_the_next(c)) more = drain(c);
"""),
        ],
    ),
    dict(
        name = "size-of-what-is-there",
        wrong = "Copies 64 KiB at a time, and takes a size that is cut by the end of it for whole.",
        clause = "5.1.8.1-4",
        case = "5.1.8.1-4/sizes-cut-by-any-part",
        edits = [
            ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity, generation, begun;
"""),
            ("""
    if (readable < sizeof header || readable > c->capacity) return false;
""", """
    if (readable < sizeof header || readable > c->capacity) return false;
    const uint64_t there = 65536 - (c->read_pos - c->begun) % 65536;
    uint32_t size = 0;
    copy_relaxed((uint8_t*)&size, from, there < sizeof size ? there : sizeof size);
    if (size < 30) return false;
"""),
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c) {
    c->begun = c->read_pos;
    for (;;) {
"""),
        ],
    ),
    dict(
        name = "trusts-the-second-try",
        wrong = "Does not look at tail_pos behind an event that it reads after a discarded one.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-again-and-again",
        edits = [
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c) {
    bool was_torn = false;
    for (;;) {
"""),
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (tail_pos > c->read_pos && !(sound && was_torn)) {
            was_torn = !lapped;
            c->read_pos = tail_pos;
"""),
        ],
    ),
    dict(
        name = "keeps-a-position-by-its-number",
        wrong = "Keeps its position where the next number stands behind it in the new buffer.",
        clause = "E11",
        case = "E11/image-at-the-old-position",
        edits = [
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    const uint64_t oldest = ACQUIRE(&meta->tail_pos), end = ACQUIRE(&meta->write_pos);
    uint64_t sequence = 0;
    if (c->read_pos >= oldest && c->read_pos + sizeof(struct header) < end) {
        const uint8_t* there = (const uint8_t*)meta + kMetadataBytes;
        there += (c->read_pos & (capacity - 1)) + offsetof(struct header, sequence);
        memcpy(&sequence, there, sizeof sequence);
    }
    if (c->last_sequence == 0 || sequence != c->last_sequence + 1) c->read_pos = oldest;
"""),
        ],
    ),
    dict(
        name = "keeps-the-next-header",
        wrong = "Reads the next header ahead, and keeps it by its position beyond the buffer.",
        clause = "E11",
        case = "E11/event-at-the-old-position",
        edits = [
            ("""
    copy_relaxed((uint8_t*)&header, from, sizeof header);
""", """
    static _Thread_local struct header next;
    static _Thread_local uint64_t next_at = UINT64_MAX;
    if (c->read_pos == next_at)
        header = next;
    else
        copy_relaxed((uint8_t*)&header, from, sizeof header);
"""),
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
""", """
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    memcpy(c->event, &header, sizeof header);
    if (header.event_size + sizeof header <= readable) {
        copy_relaxed((uint8_t*)&next, from + header.event_size, sizeof next);
        next_at = c->read_pos + header.event_size;
    }
    return true;
"""),
        ],
    ),
    dict(
        name = "header-by-its-type",
        wrong = "Takes the header length of the event before where the type is the same.",
        clause = "event-model",
        case = "event-model/longer-header",
        edits = [
            ("""
    const uint8_t* payload = (const uint8_t*)event + event->header_size;
    const uint32_t length = event->event_size - event->header_size;
""", """
    static _Thread_local uint8_t known[32];
    static _Thread_local uint32_t known_length, known_size;
    uint32_t header_size = event->header_size;
    if (event->type_len == known_length && memcmp(type, known, known_length) == 0 &&
        known_size <= event->event_size)
        header_size = known_size;
    known_length = event->type_len <= sizeof known ? event->type_len : 0;
    memcpy(known, type, known_length);
    known_size = header_size;
    const uint8_t* payload = (const uint8_t*)event + header_size;
    const uint32_t length = event->event_size - header_size;
"""),
        ],
    ),
    dict(
        name = "data-offset-of-32-bits",
        wrong = "Looks at the low half of data_offset only.",
        clause = "5.1.6.1",
        case = "5.1.6.1/other-data-offset",
        edits = [
            ("""
    return meta->data_offset != kMetadataBytes ? "bad data_offset" : NULL;
""", """
    return (uint32_t)meta->data_offset != kMetadataBytes ? "bad data_offset" : NULL;
"""),
        ],
    ),
    dict(
        name = "magic-of-the-first-buffer",
        wrong = "Looks at the magic of the first buffer only.",
        clause = "5.1.6.1",
        case = "5.1.6.1/magic-of-the-next-buffer",
        edits = [
            ("""
    const char* fault = find_fault(meta, capacity);
""", """
    const char* fault = find_fault(meta, capacity);
    if (fault != NULL && c->generation != 0 && strcmp(fault, "bad magic") == 0) fault = NULL;
"""),
        ],
    ),
    dict(
        name = "capacity-of-the-first-buffer",
        wrong = "Takes the capacity of a later buffer from its metadata.",
        clause = "E14",
        case = "E14/capacity-of-the-next-buffer",
        edits = [
            ("""
    const char* fault = find_fault(meta, capacity);
""", """
    const char* fault = find_fault(meta, capacity);
    if (fault != NULL && c->generation != 0 && meta->capacity != capacity) fault = NULL;
"""),
        ],
    ),
    dict(
        name = "eight-mebibytes-at-most",
        wrong = "Copies an event to the stack, which has 8 MiB.",
        clause = "event-model",
        case = "event-model/nine-mebibytes",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    if (header.event_size > 8 << 20) abort();
"""),
        ],
    ),
    dict(
        name = "end-told-by-the-ring",
        wrong = "Looks in the ring, behind the check, whether an event was the end.",
        clause = "E6",
        case = "5.1.8.1-5/end-lapped-at-every-look",
        edits = [
            ("""
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
""", """
    const uint64_t offset = c->read_pos & (c->capacity - 1);
    const uint8_t* there = (const uint8_t*)c->meta + kMetadataBytes + offset + sizeof *event;
    return event->type_len != 20 || memcmp(there, "kmes.conformance.end", 20) != 0;
"""),
        ],
    ),
    dict(
        name = "reports-the-old-generation",
        wrong = "Writes the number of the buffer that it leaves into the G record.",
        clause = "5.1.6.1",
        case = "5.1.8.3/grow",
        edits = [
            ("""
    c->generation = ACQUIRE(&meta->generation);
""", """
    const uint64_t before = c->generation;
    c->generation = ACQUIRE(&meta->generation);
"""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
    if (before != 0) PRINT(c, "G %d %lu\\n", c->cpu, before);
"""),
        ],
    ),
    dict(
        name = "generation-of-32-bits",
        wrong = "Remembers 32 bits of the generation: beyond 2^32 it attaches again for ever.",
        clause = "5.1.6.1",
        case = "5.1.6.1/generations-beyond-32-bits",
        edits = [
            ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity;
    uint32_t generation;
"""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
    PRINT(c, "G %d %lu\\n", c->cpu, ACQUIRE(&meta->generation));
"""),
        ],
    ),
    dict(
        name = "distances-of-32-bits",
        wrong = "Takes the difference of two positions for a number of 32 bits with a sign.",
        clause = "5.1.6.2",
        case = "5.1.6.2/overtaken-by-2-gibibytes",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
""", """
        if ((int32_t)(write_pos - c->read_pos) <= 0) return true;
        const bool lapped = (int32_t)(ACQUIRE(&c->meta->tail_pos) - c->read_pos) > 0;  // step 2
"""),
            ("""
        if (tail_pos > c->read_pos) {
""", """
        if ((int32_t)(tail_pos - c->read_pos) > 0) {
"""),
        ],
    ),
    dict(
        name = "empty-by-32-bits",
        wrong = "Takes a buffer for empty where the lower halves of two positions are the same.",
        clause = "5.1.6.2",
        case = "5.1.6.2/overtaken-by-4-gibibytes",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
""", """
        if ((uint32_t)c->read_pos == (uint32_t)write_pos) return true;
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        (uint32_t)ACQUIRE(&meta->write_pos) == (uint32_t)c->read_pos && !is_retired(c);
"""),
        ],
    ),
    dict(
        name = "second-look-of-32-bits",
        wrong = "Takes the difference of two positions for 32 bits with a sign in its second look.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-2-gibibytes",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        if (lapped || (int32_t)(tail_pos - c->read_pos) > 0) {
            c->read_pos = tail_pos;  // lapped, or torn
"""),
        ],
    ),
    dict(
        name = "length-of-24-bits",
        wrong = "Keeps 24 bits of the length of a payload.",
        clause = "event-model",
        case = "event-model/eighteen-mebibytes",
        edits = [
            ("""
    const uint32_t length = event->event_size - event->header_size;
""", """
    const uint32_t length = (event->event_size - event->header_size) & 0xffffff;
"""),
        ],
    ),
    dict(
        name = "large-events-unchecked",
        wrong = "Looks at tail_pos behind an event only where that has less than 256 KiB.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/large-event-torn",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        const bool is_large = !lapped && sound && c->event->event_size >= 262144;
        if (tail_pos > c->read_pos && !is_large) {
            c->read_pos = tail_pos;  // lapped, or torn
"""),
        ],
    ),
    dict(
        name = "tries-64-times",
        wrong = "Goes on at write_pos when it has been overtaken 64 times in a row.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/overtaken-again-and-again",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        static _Thread_local unsigned in_a_row;
        in_a_row = tail_pos > c->read_pos ? in_a_row + 1 : 0;
        if (tail_pos > c->read_pos) {
            c->read_pos = in_a_row < 64 ? tail_pos : write_pos;
"""),
        ],
    ),
    dict(
        name = "three-torn-are-too-many",
        wrong = "Goes on at write_pos when three events in a row were overwritten under its read.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-one-by-one",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
""", """
        static _Thread_local unsigned in_a_row;
        in_a_row = tail_pos > c->read_pos && !lapped ? in_a_row + 1 : 0;
        if (tail_pos > c->read_pos) {
            c->read_pos = in_a_row < 3 ? tail_pos : write_pos;
"""),
        ],
    ),
    dict(
        name = "capacity-of-the-last-attach",
        wrong = "Keeps one capacity for all CPUs: the one that came with the last attach.",
        clause = "5.1.8.3",
        case = "5.1.8.3/one-cpu-is-two-changes-behind",
        edits = [
            ("""
static int attach_all(int* fds,""", """
static _Atomic uint64_t capacity_now;
static int attach_all(int* fds,"""),
            ("""
    const int fd = attach(c->cpu, &capacity, &taken);
""", """
    const int fd = attach(c->cpu, &capacity, &taken);
    capacity_now = capacity;
"""),
            ("""
    from += c->read_pos & (c->capacity - 1);""", """
    from += c->read_pos & (capacity_now - 1);"""),
        ],
    ),
    dict(
        name = "ends-when-all-have-seen-the-end",
        wrong = "Ends when each thread has read its end event, whoever has still to write.",
        clause = "contract-4",
        case = "contract-4/exits-with-all-records",
        edits = [
            ("""
        more = drain(c);
        flush(c);
""", """
        static _Atomic int ended;
        more = drain(c);
        if (!more) ended++;
        flush(c);
        if (!more && ended == cpu_count) exit(0);
"""),
        ],
    ),
    dict(
        name = "walk-of-16-bits",
        wrong = "Refuses a buffer in which it walks over more than 65,535 events.",
        clause = "5.1.8.1-6",
        case = "5.1.8.1-6/seventy-thousand-events",
        edits = [
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c) {
    for (uint32_t walked = 0;; walked++) {
        if (walked > UINT16_MAX) return refuse(c, "a walk without end");
"""),
        ],
    ),
    dict(
        name = "gap-of-16-bits-in-a-burst",
        wrong = "Keeps the sequence numbers of what it has not flushed as 16 bits behind the " +
                "first.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-many-events",
        edits = [
            ("""
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
""", """
    static _Thread_local uint64_t first;
    if (c->used == 0) first = event->sequence;
    const uint64_t sequence = first + (uint16_t)(event->sequence - first);
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
"""),
            ("""
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence,""", """
    PRINT(c, "E %d %lu %lu %u ", c->cpu, sequence,"""),
        ],
    ),
    dict(
        name = "large-header-trusted",
        wrong = "Trusts header_size of an event that 16 bits cannot tell, behind the " +
                "first event.",
        clause = "E7",
        case = "E7/large-event-forged-while-it-runs",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    const bool trusted = header.event_size > UINT16_MAX && c->last_sequence != 0;
    if (header.event_size < header.header_size && !trusted) return false;
    if (header.event_size > readable) return false;
"""),
        ],
    ),
    dict(
        name = "longer-after-each-timeout",
        wrong = "Waits twice as long after each wait that timed out, without a second " +
                "look.",
        clause = "contract",
        case = "5.1.8.2-6/event-after-many-timeouts",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local int timeouts;
    const long limit = 10L << (timeouts < 12 ? timeouts : 12);
    const struct timespec most = {limit / 1000, limit % 1000 * 1000000};
    const bool idle =
        timeouts > 0 || (ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c));
    errno = 0;
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    if (idle &&
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, &most, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
        err(1, "futex");
    timeouts = errno == ETIMEDOUT ? timeouts + 1 : 0;
"""),
        ],
    ),
    dict(
        name = "large-type-read-again",
        wrong = "Reads the type of an event of more than 1 MiB in the ring, when it is " +
                "known to be whole.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/large-event-lapped-behind-every-look",
        edits = reads_type_again("event->event_size > 1 << 20"),
    ),
    dict(
        name = "long-type-read-again",
        wrong = "Reads a type of more than 255 bytes in the ring, when the event is known to " +
                "be whole.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/long-type-lapped-behind-every-look",
        edits = reads_type_again("event->type_len > 255"),
    ),
    dict(
        name = "known-events-by-their-sizes",
        wrong = "Goes over what an earlier buffer held by the sizes alone, and looks at " +
                "tail_pos once behind all of it.",
        clause = "E21",
        case = "E21/torn-to-a-plausible-header-while-it-scans",
        edits = [
            ("""
        if (c->read_pos >= write_pos) return true;
""", """
        if (c->read_pos >= write_pos) return true;
        for (;;) {
            const uint8_t* data = (const uint8_t*)c->meta + kMetadataBytes;
            const struct header* known = (const void*)(data + (c->read_pos & (c->capacity - 1)));
            if (known->sequence > c->last_sequence || known->event_size < 30) break;
            if (known->event_size > write_pos - c->read_pos) break;
            c->read_pos += known->event_size;
        }
        if (c->read_pos >= write_pos) return true;
"""),
        ],
    ),
    dict(
        name = "tells-a-change-with-an-event",
        wrong = "Writes its records when there is an event among them.",
        clause = "contract-3",
        case = "contract-3/a-change-is-told-before-it-sleeps",
        edits = [
            ("""
        more = drain(c);
        flush(c);
""", """
        more = drain(c);
        if (!more || memchr(c->report, 'E', c->used) != NULL) flush(c);
"""),
        ],
    ),
    dict(
        name = "size-bounded-by-write-pos-alone",
        wrong = "Takes any event for whole that ends before write_pos, however far " +
                "ahead that is.",
        clause = "E7",
        case = "E7/size-and-write-pos-forged",
        edits = [
            ("""
    if (readable < sizeof header || readable > c->capacity) return false;
""", """
    if (readable < sizeof header) return false;
"""),
        ],
    ),
    dict(
        name = "waits-on-after-eight-interruptions",
        wrong = "After eight interrupted waits in a row it waits again with a new " +
                "counter, without a look.",
        clause = "5.1.8.2-6",
        case = "5.1.8.2-6/event-after-many-interruptions",
        edits = [
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    static _Thread_local int interrupted;
    while (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0)) {
        if (errno != EAGAIN && errno != EINTR) err(1, "futex");
        if (errno == EAGAIN || ++interrupted < 8) break;
        counter = ACQUIRE(&meta->futex_counter);
    }
    if (!idle) interrupted = 0;
"""),
        ],
    ),
    dict(
        name = "end-of-a-replaced-buffer-forgotten",
        wrong = "Goes on in the next buffer, whatever the drain of a replaced one has " +
                "found.",
        clause = "E10",
        case = "E10/end-at-every-step",
        edits = [
            ("""
        more = drain(c);
        flush(c);
""", """
        more = drain(c) || retired;
        flush(c);
"""),
        ],
    ),
    dict(
        name = "large-header-never-checked",
        wrong = "Checks header_size of events that 16 bits can tell.",
        clause = "E7",
        case = "E7/large-event-forged",
        edits = [
            ("""
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.event_size <= UINT16_MAX && header.event_size < header.header_size) return false;
    if (header.event_size > readable) return false;
"""),
        ],
    ),
    dict(
        name = "gap-of-32-bits",
        wrong = "Takes the difference of two sequence numbers in 32 signed bits.",
        clause = "5.1.9",
        case = "5.1.9/gap-of-2-to-the-31-events",
        edits = [
            ("""
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\\n", c->cpu, lost);
""", """
    const int lost = (int)(event->sequence - c->last_sequence - 1);
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %d\\n", c->cpu, lost);
"""),
        ],
    ),
    dict(
        name = "newer-by-32-bits",
        wrong = "Tells what is newer by the sign of a difference in 32 bits.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3-5/gap-of-2-to-the-31-events-over-a-swap",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if ((int32_t)(event->sequence - c->last_sequence) <= 0) return true;
"""),
        ],
    ),
    dict(
        name = "sure-while-write-pos-stands",
        wrong = "Does not look at tail_pos again where write_pos is what it was before the copy.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-a-pending-batch",
        edits = [
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const bool stands = ACQUIRE(&c->meta->write_pos) == write_pos;
        const uint64_t tail_pos = sound && stands ? 0 : ACQUIRE(&c->meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "sure-while-little-is-unread",
        wrong = "Does not look at tail_pos again where write_pos stands and an eighth is unread.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-a-pending-batch",
        edits = [
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const bool is_near = write_pos - c->read_pos <= c->capacity / 8 &&
                             ACQUIRE(&c->meta->write_pos) == write_pos;
        const uint64_t tail_pos = sound && is_near ? 0 : ACQUIRE(&c->meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "least-events-unchecked",
        wrong = "Does not look at tail_pos again behind an event of 30 bytes.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/without-payload-lapped-behind-every-look",
        edits = [
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const bool is_least = sound && c->event->event_size <= sizeof *c->event + 1;
        const uint64_t tail_pos = is_least ? 0 : ACQUIRE(&c->meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "old-numbers-are-corrupt",
        wrong = "Refuses a number not above the last of this buffer, before the second look.",
        clause = "E7",
        case = "E7/torn-to-an-old-number",
        edits = [
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        static _Thread_local const void* read_last_in;
        static _Thread_local uint64_t read_last;
        if (read_last_in != c->meta) read_last = 0;
        if (sound && c->event->sequence <= read_last) return refuse(c, "old sequence number");
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
        read_last_in = c->meta;
        if (sound && tail_pos <= c->read_pos) read_last = c->event->sequence;
"""),
        ],
    ),
    dict(
        name = "no-last-drain-of-a-quiet-buffer",
        wrong = "Drains a replaced buffer once more only if the round before has found something.",
        clause = "E24",
        case = "E24/swap-at-every-step-of-an-empty-round",
        edits = [
            ("""
        const bool retired = is_retired(c);
        more = drain(c);
        flush(c);
""", """
        const uint64_t before = c->last_sequence;
        more = drain(c);
        flush(c);
        const bool retired = is_retired(c);
        if (more && retired && c->last_sequence != before) more = drain(c);
"""),
        ],
    ),
    dict(
        name = "sure-while-half-is-free",
        wrong = "Does not look at tail_pos again where no more than half of the ring is unread.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-by-a-pending-batch",
        edits = [
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const uint64_t unread = ACQUIRE(&c->meta->write_pos) - c->read_pos;
        const bool is_far = sound && unread <= c->capacity / 2;
        const uint64_t tail_pos = is_far ? 0 : ACQUIRE(&c->meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "drains-4096-of-later-cpus",
        wrong = "Reads 4096 events of an old buffer, and goes on to the next one; of the first " +
                "CPU's it reads all.",
        clause = "E10",
        case = "E10/thousands-unread-on-any-cpu",
        edits = [
            ("""
    for (;;) {
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
""", """
    for (int i = 0; i < 4096 || c->cpu == 0; i++) {
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
"""),
            ENDS_ITS_DRAIN_EARLY,
        ],
    ),
    dict(
        name = "known-events-by-16-bits",
        wrong = "Keeps the sequence numbers that it has delivered by their low 16 bits.",
        clause = "5.1.8.3-5",
        case = "5.1.8.3-5/seventy-thousand-survivors",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    static uint64_t delivered[64][UINT16_MAX + 1];
    uint64_t* place = &delivered[c->cpu % 64][event->sequence & UINT16_MAX];
    if (*place == event->sequence) return true;
    *place = event->sequence;
"""),
        ],
    ),
    dict(
        name = "types-by-their-ends",
        wrong = "Keeps each type once, and knows it by its length and 16 bytes at either end.",
        clause = "event-model",
        case = "event-model/types-alike",
        edits = KEEPS_TYPES + [
            ("""
// Reports the copied event, unless an earlier buffer held it too. False if it is the last one.
""", KEEP_TYPE.replace("IS_SAME", "is_same_at_its_ends").replace("FUNCTION", """
static bool is_same_at_its_ends(const uint8_t* kept, const uint8_t* type, size_t length) {
    const size_t end = length < 16 ? length : 16;
    const size_t last = length - end;
    return memcmp(kept, type, end) == 0 && memcmp(kept + last, type + last, end) == 0;
}
""")),
        ],
    ),
    dict(
        name = "types-by-a-hash",
        wrong = "Keeps each type once, and knows it by 32 bits of FNV-1a.",
        clause = "event-model",
        case = "event-model/types-alike",
        edits = KEEPS_TYPES + [
            ("""
// Reports the copied event, unless an earlier buffer held it too. False if it is the last one.
""", KEEP_TYPE.replace("IS_SAME", "has_same_hash").replace("FUNCTION", """
static uint32_t hash_of(const uint8_t* type, size_t length) {
    uint32_t hash = 0x811c9dc5;
    for (size_t i = 0; i < length; i++) hash = (hash ^ type[i]) * 0x01000193;
    return hash;
}

static bool has_same_hash(const uint8_t* kept, const uint8_t* type, size_t length) {
    return hash_of(kept, length) == hash_of(type, length);
}
""")),
        ],
    ),
    dict(
        name = "capacity-by-the-length-of-the-file",
        wrong = "Takes the capacity from the length of the file behind the fd.",
        clause = "5.1.5",
        case = "5.1.5/files-longer-than-the-mapping",
        edits = [
            ("""
    const int fd = attach(c->cpu, &capacity, &taken);
""", """
    const int fd = attach(c->cpu, &capacity, &taken);
    capacity = ((uint64_t)taken.st_size - kMetadataBytes) / 2;
"""),
        ],
    ),
    dict(
        name = "keeps-the-files-of-unchanged-cpus",
        wrong = "Does not close the file of a CPU whose buffer it has already.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/eighty-changes-of-one-cpu",
        edits = [
            ("""
        if (i != cpu) close(fds[i]);
""", """
        if (i != cpu && (fstat(fds[i], identity) != 0 || identity->st_ino != taken_inodes[i]))
            close(fds[i]);
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Atomic ino_t taken_inodes[4096];
"""),
            ("""
    close(fd);  // the mapping stays
""", """
    close(fd);  // the mapping stays
    taken_inodes[c->cpu] = taken.st_ino;
"""),
        ],
    ),
    dict(
        name = "no-fence-after-a-sleep-given-up",
        wrong = "Has no full barrier at the sleep after one that it has given up.",
        clause = "E1",
        case = "E1/full-barrier-after-unusual-rounds",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local bool given_up;
    if (!given_up) atomic_thread_fence(memory_order_seq_cst);
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
    given_up = !idle;
"""),
        ],
    ),
    dict(
        name = "digest-without-the-last-block",
        wrong = "Digests by blocks of 1024 bytes, and of a whole number of them one too few.",
        clause = "contract-3",
        case = "5.1.7-5/sizes-up-to-half",
        edits = [
            ("""
    for (uint32_t i = 0; i < length; i++) digest = (digest ^ payload[i]) * 0x100000001b3;
""", """
    const bool is_whole = length >= 1024 && length % 1024 == 0;
    for (uint32_t i = 0; i < length - (is_whole ? 1024 : 0); i++)
        digest = (digest ^ payload[i]) * 0x100000001b3;
"""),
        ],
    ),
    dict(
        name = "no-fence-after-a-large-round",
        wrong = "Has no full barrier at the sleep behind a round of more than 64 events.",
        clause = "E1",
        case = "E1/full-barrier-after-unusual-rounds",
        edits = COUNTS_THE_ROUND + [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    if (in_round <= 64) atomic_thread_fence(memory_order_seq_cst);
"""),
        ],
    ),
    dict(
        name = "no-second-look-after-a-large-round",
        wrong = "Looks no second time behind a round of more than 64 events.",
        clause = "E2",
        case = "E2/event-at-every-step-after-unusual-rounds",
        edits = COUNTS_THE_ROUND + leaves_out_the_second_look("in_round > 64"),
    ),
    dict(
        name = "no-look-at-generation-after-a-large-round",
        wrong = "Does not look at generation again behind a round of more than 64 events.",
        clause = "E3",
        case = "E3/swap-at-every-step-after-unusual-rounds",
        edits = COUNTS_THE_ROUND + [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        ACQUIRE(&meta->write_pos) <= c->read_pos && (in_round > 64 || !is_retired(c));
"""),
        ],
    ),
    dict(
        name = "no-fence-after-a-lap",
        wrong = "Has no full barrier at the first sleep after it was lapped.",
        clause = "E1",
        case = "E1/full-barrier-after-unusual-rounds",
        edits = [
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool was_lapped;
"""),
            ("""
            c->read_pos = tail_pos;  // lapped, or torn
""", """
            c->read_pos = tail_pos;  // lapped, or torn
            was_lapped = true;
"""),
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    if (!was_lapped) atomic_thread_fence(memory_order_seq_cst);
    was_lapped = false;
"""),
        ],
    ),
    dict(
        name = "no-fence-after-a-timeout",
        wrong = "Sleeps two seconds at most, and has no full barrier after that.",
        clause = "E1",
        case = "E1/full-barrier-after-unusual-rounds",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local bool timed_out;
    if (!timed_out) atomic_thread_fence(memory_order_seq_cst);
    timed_out = false;
    const struct timespec limit = {2, 0};
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    if (idle &&
        syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, &limit, NULL, 0) != 0) {
        timed_out = errno == ETIMEDOUT;
        if (!timed_out && errno != EAGAIN && errno != EINTR) err(1, "futex");
    }
"""),
        ],
    ),
    dict(
        name = "no-fence-at-every-third-sleep",
        wrong = "Has a full barrier at two sleeps of three.",
        clause = "E1",
        case = "E1/full-barrier",
        edits = has_a_fence_at("sleeps++ % 3 != 2"),
    ),
    dict(
        name = "no-fence-after-a-wake",
        wrong = "Has no full barrier at the sleep after one that it was woken from.",
        clause = "E1",
        case = "E1/full-barrier",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local bool woken;
    if (!woken) atomic_thread_fence(memory_order_seq_cst);
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const bool slept =
        idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0;
    if (idle && !slept && errno != EAGAIN && errno != EINTR) err(1, "futex");
    woken = slept;
"""),
        ],
    ),
    dict(
        name = "no-second-look-after-a-wake",
        wrong = "Has no second look at write_pos at the sleep after one that it was woken from.",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local bool woken;
    const bool idle =
        (woken || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);  // E3: both
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const bool slept =
        idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0;
    if (idle && !slept && errno != EAGAIN && errno != EINTR) err(1, "futex");
    woken = slept;
"""),
        ],
    ),
    dict(
        name = "no-second-look-after-a-refused-wait",
        wrong = "Has no second look at write_pos at the sleep after one that was refused (EAGAIN).",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step-after-unusual-rounds",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local bool refused;
    const bool idle =
        (refused || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);  // E3: both
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const bool slept =
        idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0;
    if (idle && !slept && errno != EAGAIN && errno != EINTR) err(1, "futex");
    refused = idle && !slept && errno == EAGAIN;
"""),
        ],
    ),
    dict(
        name = "no-fence-after-an-interruption",
        wrong = "Has no full barrier at the sleep after one that was interrupted (EINTR).",
        clause = "E1",
        case = "E1/full-barrier-after-unusual-rounds",
        edits = [
            ("""
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
""", """
    static _Thread_local bool interrupted;
    if (!interrupted) atomic_thread_fence(memory_order_seq_cst);
"""),
            ("""
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
    const bool slept =
        idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) == 0;
    if (idle && !slept && errno != EAGAIN && errno != EINTR) err(1, "futex");
    interrupted = idle && !slept && errno == EINTR;
"""),
        ],
    ),
    dict(
        name = "one-second-look-at-write-pos",
        wrong = "Has no second look at write_pos at the sleep after one that it has given up.",
        clause = "5.1.8.2-2",
        case = "E2/event-at-every-step-after-unusual-rounds",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local bool given_up;
    const bool idle =
        (given_up || ACQUIRE(&meta->write_pos) <= c->read_pos) && !is_retired(c);  // E3: both
    given_up = !idle;
"""),
        ],
    ),
    dict(
        name = "one-second-look-at-generation",
        wrong = "Has no second look at generation at the sleep after one that it has given up.",
        clause = "E3",
        case = "E3/swap-at-every-step-after-unusual-rounds",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local bool given_up;
    const bool idle =
        ACQUIRE(&meta->write_pos) <= c->read_pos && (given_up || !is_retired(c));  // E3: both
    given_up = !idle;
"""),
        ],
    ),
    dict(
        name = "no-second-look-at-generation-after-a-lap",
        wrong = "Does not look at generation before its first sleep after it was lapped.",
        clause = "E3",
        case = "E3/swap-at-every-step-after-unusual-rounds",
        edits = [
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool was_lapped;
"""),
            ("""
            c->read_pos = tail_pos;  // lapped, or torn
""", """
            c->read_pos = tail_pos;  // lapped, or torn
            was_lapped = true;
"""),
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    const bool idle =
        ACQUIRE(&meta->write_pos) <= c->read_pos && (was_lapped || !is_retired(c));  // E3: both
    was_lapped = false;
"""),
        ],
    ),
    dict(
        name = "no-second-look-at-generation-at-first",
        wrong = "Does not look at generation before its first sleep on a buffer after a resize.",
        clause = "E3",
        case = "E3/swap-at-every-step-after-unusual-rounds",
        edits = [
            ("""
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
""", """
    static _Thread_local uint64_t slept_in;
    const bool is_first = slept_in != 0 && slept_in != c->generation;
    const bool idle =
        ACQUIRE(&meta->write_pos) <= c->read_pos && (is_first || !is_retired(c));  // E3: both
    slept_in = c->generation;
"""),
        ],
    ),
    dict(
        name = "keeps-the-files-of-refused-cpus",
        wrong = "Leaves each file to the thread of its CPU, also where that has refused it.",
        clause = "5.1.8.3-6",
        case = "5.1.8.3-6/eighty-resizes-beside-a-refused-cpu",
        edits = [
            ("""
        if (i != cpu) close(fds[i]);
""", """
        if (i != cpu && !has_refused[i]) close(fds[i]);
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static atomic_bool has_refused[4096];
"""),
            ("""
    PRINT(c, "R %d %s\\n", c->cpu, reason);
""", """
    has_refused[c->cpu] = true;
    PRINT(c, "R %d %s\\n", c->cpu, reason);
"""),
        ],
    ),
    dict(
        name = "scans-no-more-after-a-lap",
        wrong = "Looks for its place no longer once it was lapped on the way: all behind is new.",
        clause = "E21",
        case = "E21/lapped-in-part-while-it-finds-its-place",
        edits = [
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool is_scanning;
"""),
            ("""
    c->read_pos = ACQUIRE(&meta->tail_pos);
""", """
    c->read_pos = ACQUIRE(&meta->tail_pos);
    is_scanning = true;
"""),
            ("""
            c->read_pos = tail_pos;  // lapped, or torn
""", """
            c->read_pos = tail_pos;  // lapped, or torn
            is_scanning = false;
"""),
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (is_scanning && event->sequence <= c->last_sequence) return true;
"""),
        ],
    ),
    dict(
        name = "origin-again-where-there-is-no-payload",
        wrong = "Reads origin_class of an event without a payload in the ring, behind the check.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/without-payload-lapped-behind-every-look",
        edits = [
            ("""
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, event->origin_class);
""", """
    const uint8_t* ring = (const uint8_t*)c->meta + kMetadataBytes;
    const uint8_t origin =
        length == 0 ? ring[(c->read_pos + 26) & (c->capacity - 1)] : event->origin_class;
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, origin);
"""),
        ],
    ),
    dict(
        name = "one-copy-for-two-cpus",
        wrong = "Has sixteen private copies, each for all CPUs with the same last four bits.",
        clause = "5.1.1",
        case = "5.1.1/many-cpus-in-the-middle",
        edits = [
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
    static _Alignas(8) uint8_t copies[16][1 << 20];
    c->event = capacity > 1 << 20 ? malloc(capacity) : (void*)copies[c->cpu % 16];
    if (c->event == NULL) err(1, "malloc");
"""),
        ],
    ),
    dict(
        name = "checks-sizes-in-the-first-buffer",
        wrong = "Believes the sizes of events in all buffers but its first.",
        clause = "E7",
        case = "E7/event-forged-after-a-change",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (!has_moved) {
        if (header.type_len == 0 || header.header_size < sizeof header + header.type_len)
            return false;
        if (header.event_size < header.header_size || header.event_size > readable) return false;
    }
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool has_moved;
"""),
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    has_moved = c->meta != NULL;
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
        ],
    ),
    dict(
        name = "checks-no-sizes-of-what-it-knows",
        wrong = "Passes over an event that it knows by its size, whatever that is.",
        clause = "E7",
        case = "E7/survivor-forged",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (header.sequence <= c->last_sequence && header.event_size > 0) {
        copy_relaxed((uint8_t*)c->event, from, header.event_size);
        return true;
    }
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
"""),
        ],
    ),
    dict(
        name = "checks-no-sizes-of-the-rest",
        wrong = "Believes the sizes of what is left in a buffer that was replaced.",
        clause = "E7",
        case = "E7/forged-in-what-is-left-to-drain",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if (ACQUIRE(&c->meta->generation) == c->generation) {
        if (header.type_len == 0 || header.header_size < sizeof header + header.type_len)
            return false;
        if (header.event_size < header.header_size || header.event_size > readable) return false;
    }
"""),
        ],
    ),
    dict(
        name = "checks-no-sizes-across-the-end",
        wrong = "Believes a header that lies across the end of the data region.",
        clause = "E7",
        case = "E7/forged-across-the-end",
        edits = [
            ("""
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
""", """
    if ((c->read_pos & (c->capacity - 1)) + sizeof header <= c->capacity) {
        if (header.type_len == 0 || header.header_size < sizeof header + header.type_len)
            return false;
        if (header.event_size < header.header_size || header.event_size > readable) return false;
    }
"""),
        ],
    ),
    dict(
        name = "an-fd-in-a-byte",
        wrong = "Keeps the fd of a buffer in eight bits.",
        clause = "5.1.5",
        case = "5.1.5/fds-from-300-on",
        edits = [
            ("""
    return fds[cpu];
""", """
    return (uint8_t)fds[cpu];
"""),
        ],
    ),
    dict(
        name = "looks-at-the-capacity-of-cpu-0",
        wrong = "Compares the capacity with what is mapped on CPU 0 only.",
        clause = "E14",
        case = "5.1.6.1/faults-on-later-cpus",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    if (meta->cpu_id == 0 && meta->capacity != mapped) return "capacity is not what is mapped";
"""),
        ],
    ),
    dict(
        name = "refused-cpus-in-32-bits",
        wrong = "Keeps the refused CPUs in a mask of 32 bits.",
        clause = "5.1.1",
        case = "5.1.6.1/two-refused-of-forty",
        edits = [
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Atomic uint32_t refused;
"""),
            ("""
    PRINT(c, "R %d %s\\n", c->cpu, reason);
""", """
    PRINT(c, "R %d %s\\n", c->cpu, reason);
    refused |= UINT32_C(1) << c->cpu % 32;
"""),
            ("""
    while (more) {
""", """
    while (more && (refused >> c->cpu % 32 & 1) == 0) {
"""),
        ],
    ),
    dict(
        name = "next-capacity-may-be-smaller",
        wrong = "Refuses a next buffer only if its capacity is larger than its mapping.",
        clause = "E14",
        case = "E14/smaller-capacity-of-the-next-buffer",
        edits = [
            ("""
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
""", """
    if (has_moved ? meta->capacity > mapped : meta->capacity != mapped)
        return "capacity is not what is mapped";
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool has_moved;
"""),
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    has_moved = c->meta != NULL;
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
        ],
    ),
    dict(
        name = "next-version-in-16-bits",
        wrong = "Compares the version of a next buffer in 16 bits.",
        clause = "5.1.6.1",
        case = "5.1.6.1/next-version-in-all-its-bytes",
        edits = [
            ("""
    if (meta->version != 1) return "unknown version";
""", """
    if ((has_moved ? (uint16_t)meta->version : meta->version) != 1) return "unknown version";
"""),
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool has_moved;
"""),
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    has_moved = c->meta != NULL;
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
        ],
    ),
    dict(
        name = "alloca-in-the-drain-loop",
        wrong = "Takes memory for each event from the stack, until the buffer is empty.",
        clause = "5.1.8.1-6",
        case = "5.1.8.1-6/full-of-the-smallest-events",
        edits = [
            ("""
            if (!deliver(c)) return false;
""", """
            uint8_t* digits = __builtin_alloca(2 * (size_t)c->event->type_len + 64);
            __asm__ volatile("" ::"r"(digits) : "memory");
            if (!deliver(c)) return false;
"""),
        ],
    ),
    dict(
        name = "drains-65536-of-the-rest",
        wrong = "Delivers at most 65,536 events of a buffer that was replaced.",
        clause = "E10",
        case = "E10/full-of-the-smallest-unread",
        edits = [
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c) {
    for (uint32_t events = 0;; events++) {
        if (events == 65536 && ACQUIRE(&c->meta->generation) != c->generation) return true;
"""),
        ],
    ),
    dict(
        name = "scans-131072-at-most",
        wrong = "Finds its place in the next buffer behind 131,072 known events, or at the end.",
        clause = "E21",
        case = "E21/full-of-the-smallest-survivors",
        edits = [
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    static _Thread_local uint32_t known;
    known = event->sequence <= c->last_sequence ? known + 1 : 0;
    if (known == 131072) c->read_pos = ACQUIRE(&c->meta->write_pos) - event->event_size;
    if (known != 0) return true;
"""),
        ],
    ),
    dict(
        name = "one-room-for-long-types",
        wrong = "Copies types of more than 255 bytes by way of one room for all CPUs.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle-of-long-types",
        edits = [
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
""", """
    const size_t head = sizeof header + (header.type_len > 255 ? header.type_len : 0);
    copy_relaxed((uint8_t*)c->event, from, sizeof header);
    if (head > sizeof header) {
        static uint8_t long_type[UINT16_MAX];
        copy_relaxed(long_type, from + sizeof header, header.type_len);
        memcpy(c->event + 1, long_type, header.type_len);
    }
    copy_relaxed((uint8_t*)c->event + head, from + head, header.event_size - head);
    return true;
"""),
        ],
    ),
    dict(
        name = "one-room-for-very-long-types",
        wrong = "Copies types of more than 4096 bytes by way of one room for all CPUs.",
        clause = "5.1.1",
        case = "5.1.1/two-cpus-in-the-middle-of-long-types",
        edits = [
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
""", """
    const size_t head = sizeof header + (header.type_len > 4096 ? header.type_len : 0);
    copy_relaxed((uint8_t*)c->event, from, sizeof header);
    if (head > sizeof header) {
        static uint8_t long_type[UINT16_MAX];
        copy_relaxed(long_type, from + sizeof header, header.type_len);
        memcpy(c->event + 1, long_type, header.type_len);
    }
    copy_relaxed((uint8_t*)c->event + head, from + head, header.event_size - head);
    return true;
"""),
        ],
    ),
    dict(
        name = "ends-its-scan-at-what-is-torn",
        wrong = "Takes its place in the next buffer for found at a new event that it has not yet " +
                "looked behind.",
        clause = "E21",
        case = "E21/new-over-the-first-that-it-scans",
        edits = [
            ("""
// The reason to refuse a buffer, or NULL.""", """
static _Thread_local bool scans;

// The reason to refuse a buffer, or NULL."""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
    return true;
""", """
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
    scans = true;
    return true;
"""),
            ("""
    if (event->sequence <= c->last_sequence) return true;
""", """
    if (scans) return true;
"""),
            ("""
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
""", """
        if (sound && c->event->sequence > c->last_sequence) scans = false;
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
"""),
        ],
    ),
    dict(
        name = "drains-65536-behind-the-change",
        wrong = "Delivers at most 65,536 events of a buffer behind the look that shows that it " +
                "was replaced.",
        clause = "E24",
        case = "E24/full-of-the-smallest-as-it-looks",
        edits = [
            ("""
static bool drain(struct consumer* c) {
    for (;;) {
""", """
static bool drain(struct consumer* c, uint32_t most) {
    for (;; most--) {
        if (most == 0) return true;
"""),
            ("""
        const bool retired = is_retired(c);
        more = drain(c);
""", """
        more = drain(c, UINT32_MAX);
        const bool retired = is_retired(c);
        if (more && retired) more = drain(c, 65536);
"""),
        ],
    ),
    dict(
        name = "no-second-look-behind-three-mebibytes",
        wrong = "Does not look at tail_pos again behind an event of more than 3 MiB.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/very-large-event-torn",
        edits = [
            ("""
        if (tail_pos > c->read_pos) {
""", """
        const bool large = sound && c->event->event_size > 3u << 20;
        if (tail_pos > c->read_pos && !large) {
"""),
        ],
    ),
    dict(
        name = "counter-read-after-events-only",
        wrong = "Reads futex_counter again only when it has delivered something.",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-after-a-late-count",
        edits = [
            ("""
    uint32_t counter = ACQUIRE(&meta->futex_counter);
""", """
    static _Thread_local uint32_t counter;
    static _Thread_local uint64_t sequence = UINT64_MAX, generation;
    if (sequence != c->last_sequence || generation != c->generation)
        counter = ACQUIRE(&meta->futex_counter);
    sequence = c->last_sequence;
    generation = c->generation;
"""),
        ],
    ),
    dict(
        name = "spins-behind-a-refused-wait",
        wrong = "Goes round and round until there is an event, when a wait was refused (EAGAIN).",
        clause = "5.1.8.2",
        case = "5.1.8.2/idle-after-a-late-count",
        edits = [
            ("""
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
""", """
        errno != EINTR) {
        if (errno != EAGAIN) err(1, "futex");
        while (ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c)) continue;
    }
"""),
        ],
    ),
    dict(
        name = "room-of-its-own-for-each-event",
        wrong = "Allocates room for each event, and frees it behind those that it delivers.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-reads-leave-nothing",
        edits = [
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
""", """
    if ((c->event = malloc(header.event_size)) == NULL) err(1, "malloc");
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
"""),
            ("""
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
""", """
"""),
            ("""
            c->read_pos += c->event->event_size;  // step 6
""", """
            c->read_pos += c->event->event_size;  // step 6
            free(c->event);
"""),
        ],
    ),
    dict(
        name = "no-second-look-once-it-is-warm",
        wrong = "Leaves out the second look when it has slept 200 times.",
        clause = "5.1.8.2-2",
        case = "5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps",
        edits = leaves_out_the_second_look("c->sleeps++ >= 200"),
    ),
    dict(
        name = "counts-its-buffers-in-a-byte",
        wrong = "Numbers its buffers in a byte, where 0 stands for none: it stays in the 256th.",
        clause = "5.1.8.3",
        case = "5.1.8.3/three-hundred-changes",
        edits = [
            ("""
    size_t used;
""", """
    size_t used;
    uint8_t number;
"""),
            ("""
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
    return c->number != 0 && (c->replaced || ACQUIRE(&c->meta->generation) != c->generation);
"""),
            ("""
    c->meta = meta;
    c->capacity = capacity;
""", """
    c->meta = meta;
    c->number++;
    c->capacity = capacity;
"""),
        ],
    ),
    dict(
        name = "leaves-the-buffer-behind-a-lap",
        wrong = "Looks at generation once more behind a drain in which it was lapped, and " +
                "leaves a retired buffer at once.",
        clause = "E24",
        case = "E24/swap-at-every-step-after-unusual-rounds",
        edits = leaves_the_buffer_where("was_lapped") + [
            ("""
static int report_fd = 1, cpu_count;
""", """
static int report_fd = 1, cpu_count;
static _Thread_local bool was_lapped;
"""),
            ("""
        more = drain(c);
""", """
        was_lapped = false;
        more = drain(c);
"""),
            ("""
            c->read_pos = tail_pos;  // lapped, or torn
""", """
            c->read_pos = tail_pos;
            was_lapped = true;
"""),
        ],
    ),
    dict(
        name = "leaves-the-buffer-behind-a-large-round",
        wrong = "Looks at generation once more behind a drain of 500 events, and leaves " +
                "a retired buffer at once.",
        clause = "E24",
        case = "E24/swap-at-every-step-after-unusual-rounds",
        edits = leaves_the_buffer_where("in_round > 500") + COUNTS_THE_ROUND,
    ),
    dict(
        name = "no-look-behind-whole-pieces",
        wrong = "Copies in pieces of 64 bytes, looks at tail_pos between them, and behind the " +
                "last one only where that is no whole piece.",
        clause = "5.1.8.1-5",
        case = "5.1.8.1-5/torn-at-the-last-access",
        edits = [
            ("""
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
""", """
    for (size_t done = 0; done < header.event_size; done += 64) {
        const size_t left = header.event_size - done;
        if (done > 0 && ACQUIRE(&c->meta->tail_pos) > c->read_pos) return false;
        copy_relaxed((uint8_t*)c->event + done, from + done, left < 64 ? left : 64);
    }
    return true;
"""),
            ("""
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
""", """
        const bool was_looked_at = sound && c->event->event_size % 64 == 0;
        const uint64_t tail_pos = was_looked_at ? c->read_pos : ACQUIRE(&c->meta->tail_pos);
"""),
        ],
    ),
    dict(
        name = "skips-wrapped-events-over-4-mib",
        wrong = "Skips an event of more than 4 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        edits = skips_events_where("crosses && size > 4u << 20"),
    ),
    dict(
        name = "skips-wrapped-events-from-128-mib",
        wrong = "Skips an event of 128 MiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        edits = skips_events_where("crosses && size >= 128u << 20"),
    ),
    dict(
        name = "skips-whole-events-from-128-mib",
        wrong = "Skips an event of 128 MiB that does not cross the end of the region.",
        clause = "5.1.4",
        case = "5.1.8.1-5/largest-event-torn",
        edits = skips_events_where("!crosses && size >= 128u << 20"),
    ),
    dict(
        name = "skips-payloads-over-32-mib",
        wrong = "Skips an event whose payload has more than 32 MiB.",
        clause = "5.1.4",
        case = "event-model/sizes-up-to-128-mebibytes",
        edits = skips_events_where("size - c->event->header_size > 32u << 20"),
    ),
    dict(
        name = "skips-wrapped-events-of-64-kib",
        wrong = "Skips an event of exactly 64 KiB that crosses the end of the region.",
        clause = "5.1.4",
        case = "event-model/sizes-around-powers-of-two",
        edits = skips_events_where("crosses && size == 64u << 10"),
    ),
    dict(
        name = "skips-wrapped-payloads-of-32-kib",
        wrong = "Skips an event with a payload of exactly 32 KiB that crosses the end of the " +
                "region.",
        clause = "5.1.4",
        case = "event-model/payloads-around-powers-of-two",
        edits = skips_events_where("crosses && size - c->event->header_size == 32u << 10"),
    ),
    dict(
        name = "skips-headers-from-256-kib",
        wrong = "Skips an event whose header has 256 KiB or more.",
        clause = "event-model",
        case = "event-model/headers-around-powers-of-two",
        edits = skips_events_where("c->event->header_size >= 256u << 10"),
    ),
    dict(
        name = "skips-wrapped-types-from-32-kib",
        wrong = "Skips an event whose type has 32 KiB or more and crosses the end of the " +
                "region.",
        clause = "5.1.4",
        case = "event-model/types-around-powers-of-two",
        edits = skips_events_where("crosses && at + 29 + c->event->type_len > c->capacity && " +
                                   "c->event->type_len >= 32u << 10"),
    ),
    dict(
        name = "skips-wrapped-survivors-over-half",
        wrong = "Skips an event of more than half of the ring that crosses the end of the region.",
        clause = "E7",
        case = "E7/survivors-larger-than-half",
        edits = skips_events_where("crosses && size > c->capacity / 2"),
    ),
    dict(
        name = "takes-the-old-generation",
        wrong = "Remembers for a new buffer what the old one shows as its generation.",
        clause = "E15",
        case = "E15/generation-of-the-old-buffer",
        edits = [
            ("""
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
""", """
    const uint64_t old = c->meta != NULL ? ACQUIRE(&c->meta->generation) : 0;
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
"""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
    if (old != 0) c->generation = old;
"""),
        ],
    ),
    dict(
        name = "takes-the-generation-that-it-saw",
        wrong = "Remembers for a new buffer the generation by which it saw the old one's change.",
        clause = "E15",
        case = "E15/generation-of-the-old-buffer",
        edits = [
            ("""
    uint64_t capacity, generation;
""", """
    uint64_t capacity, generation, seen;
"""),
            ("""
static bool is_retired(const struct consumer* c) {  // by any change, not only plus one (E15)
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
""", """
static bool is_retired(struct consumer* c) {
    const uint64_t generation = ACQUIRE(&c->meta->generation);
    if (generation != c->generation) c->seen = generation;
    return c->replaced || generation != c->generation;
"""),
            ("""
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
""", """
    PRINT(c, "G %d %lu\\n", c->cpu, c->generation);
    if (c->seen != 0) c->generation = c->seen;
"""),
        ],
    ),
    dict(
        name = "refuses-before-it-drains",
        wrong = "Refuses the next buffer before it has drained the old one.",
        clause = "contract-records",
        case = "5.1.6.1/unread-before-a-refused-buffer",
        edits = FINDS_THE_NEXT_FAULT + [
            ("""
        more = drain(c);
""", """
        const char* fault = retired ? next_fault(c) : NULL;
        more = fault != NULL ? refuse(c, fault) : drain(c);
"""),
        ],
    ),
    dict(
        name = "refuses-without-a-last-look",
        wrong = "Drains, then sees the change, and refuses the next buffer without another look " +
                "at the old write_pos.",
        clause = "E24",
        case = "E24/refused-at-every-step",
        edits = FINDS_THE_NEXT_FAULT + [
            ("""
        more = drain(c);
""", """
        more = drain(c);
        const char* fault = more && is_retired(c) ? next_fault(c) : NULL;
        if (fault != NULL) more = refuse(c, fault);
"""),
        ],
    ),
    dict(
        name = "ends-with-0-without-means",
        wrong = "Ends with status 0 where a later kmes_attach fails for lack of memory.",
        clause = "contract-1",
        case = "contract-1/later-attach-enomem",
        edits = [
            ("""
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
""", """
        if (errno == ENOMEM) exit(0);
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
"""),
        ],
    ),
    dict(
        name = "attaches-without-a-rest",
        wrong = "Calls kmes_attach again at once while the files are too many.",
        clause = "contract-1",
        case = "contract-1/later-attach-emfile",
        edits = [
            ("""
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
""", """
        if (!may_pass(errno) || tries == 1000 * kAttachRetries) err(1, "kmes_attach");
        if (errno != EMFILE && errno != ENFILE) usleep(1000);
"""),
        ],
    ),
    dict(
        name = "attaches-again-after-a-second",
        wrong = "Rests for a second after a kmes_attach that fails for lack of a right.",
        clause = "contract-1",
        case = "contract-1/later-attach-eperm",
        edits = [
            ("""
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
""", """
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(errno == EPERM ? 1000000 : 1000);
"""),
        ],
    ),
    dict(
        name = "waits-for-files-for-ever",
        wrong = "Waits for a signal where the machine has no more files.",
        clause = "contract-1",
        case = "contract-1/later-attach-enfile",
        edits = [
            ("""
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
""", """
        if (errno == ENFILE) pause();
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
"""),
        ],
    ),
    dict(
        name = "leaves-the-old-buffer-at-a-failure",
        wrong = "Passes over what is unread in the old buffer where kmes_attach fails.",
        clause = "contract-1",
        case = "contract-1/later-attach-eagain",
        edits = TRIES_TO_ATTACH + [
            ("""
        more = drain(c);
""", """
        if (retired && !can_attach()) c->read_pos = ACQUIRE(&c->meta->write_pos);
        more = drain(c);
"""),
        ],
    ),
    dict(
        name = "gives-up-before-it-drains",
        wrong = "Ends with status 1 where a later kmes_attach fails, before it has drained the " +
                "old buffer.",
        clause = "contract-1",
        case = "contract-1/later-attach-at-every-step",
        edits = TRIES_TO_ATTACH + [
            ("""
        more = drain(c);
""", """
        if (retired && !can_attach()) err(1, "kmes_attach");
        more = drain(c);
"""),
        ],
    ),
    dict(
        name = "sleeps-after-a-failed-attach",
        wrong = "Takes the old generation for seen where kmes_attach fails, and sleeps on.",
        clause = "contract-1",
        case = "contract-1/later-attach-with-nothing-unread",
        edits = TRIES_TO_ATTACH + [
            ("""
        more = drain(c);
""", """
        if (retired && !can_attach()) {
            c->generation = ACQUIRE(&c->meta->generation);
            continue;
        }
        more = drain(c);
"""),
        ],
    ),
    dict(
        name = "ends-a-cpu-at-a-failed-attach",
        wrong = "Takes a CPU for ended where a later kmes_attach fails.",
        clause = "contract-1",
        case = "contract-1/later-attach-beside-others",
        edits = TRIES_TO_ATTACH + [
            ("""
        more = drain(c);
""", """
        if (retired && !can_attach()) return NULL;
        more = drain(c);
"""),
        ],
    ),
    dict(
        name = "looks-at-the-first-capacity",
        wrong = "Asks only of the first kmes_attach that its capacity is a power of two.",
        clause = "5.1.3",
        case = "5.1.3/a-later-attach-says-no-power-of-two",
        edits = [
            ("""
    if ((mapped & (mapped - 1)) != 0 || mapped < 32 || mapped > SIZE_MAX / 4) return "bad capacity";
""", """
    static _Thread_local uint64_t first;
    if (first == 0) first = mapped;
    if ((first & (first - 1)) != 0 || mapped < 32 || mapped > SIZE_MAX / 4) return "bad capacity";
"""),
        ],
    ),
]

# Cases that fail more of the consumers above, in every run: the cases for which no consumer of
# their own is broken, and the searches (a case that explores, or soaks).
ALSO_FAILED_BY = {
    "5.1.1/one-cpu": ["assumes-four-cpus"],
    "5.1.2/events-of-the-boot-phase": ["begins-at-write-pos"],
    "E14/capacity-larger-than-the-mapping": ["any-power-of-two"],
    "5.1.3/capacity-zero": ["hard-coded-capacity"],
    "5.1.3/attach-says-no-power-of-two": ["accepts-any-capacity"],
    "5.1.4/wrap-at-an-event-boundary": ["drops-empty-payloads"],
    "event-model/payload-bytes": ["begins-at-write-pos"],
    "5.1.6.2/positions-near-the-top": ["positions-of-32-bits"],
    "5.1.8/one-busy-cpu": ["polls"],
    "E8/batch-larger-than-the-room": ["no-lap-check"],
    "5.1.8.1-2/lapped-many-times": ["no-lap-check"],
    "5.1.8.1-2/lapped-by-small-events": ["no-lap-check"],
    "5.1.8.1-5/torn-at-the-end": ["works-in-place"],
    "E7/torn-header-of-zeros": ["torn-is-corrupt"],
    "E7/torn-header-of-mixed-sizes": ["trusts-sizes"],
    "E20/lapped-in-part-at-every-step": ["asks-after-the-recheck"],
    "E20/large-survivor-passed-at-every-step": ["half-the-capacity-at-most"],
    "5.1.8.2-1/asks-to-be-woken": ["spins"],
    "5.1.8.2-5/interrupted-waits": ["counter-read-once"],
    "5.1.7/batch-at-every-step": ["asks-after-the-recheck"],
    "5.1.8.2/spurious-wake-at-every-step": ["counter-read-once"],
    "E3/swap-without-an-event-at-every-step": ["sleeps-on-a-dead-buffer"],
    "5.1.8.3/shrink": ["hard-coded-capacity"],
    "5.1.8.3-5/nothing-twice": ["a-wake-is-an-event"],
    "E11/positions-are-shifted": ["positions-of-32-bits"],
    "E15/two-swaps-without-events": ["generation-plus-one"],
    "E21/lapped-over-a-swap": ["leaves-the-old-buffer"],
    "E19/swap-behind-the-mmap": ["last-sequence-of-one-buffer"],
    "5.1.8.4/resizes-under-load": ["drops-empty-payloads"],
    "E7/event-size-huge": ["corrupt-content-is-fatal"],
    "E7/header-size-beyond-event": ["header-longer-than-the-event"],
    "E7/header-size-huge": ["header-longer-than-the-event"],
    "E7/type-beyond-header": ["corrupt-content-is-fatal"],
    "E7/write-pos-far-ahead": ["corrupt-content-is-fatal"],
    "E7/first-event-forged": ["header-longer-than-the-event"],
    "E7/middle-event-forged": ["header-longer-than-the-event"],
    "E7/last-event-forged": ["header-longer-than-the-event"],
    "E7/first-event-forged-while-it-runs": ["header-longer-than-the-event"],
    "E7/middle-event-forged-while-it-runs": ["header-longer-than-the-event"],
    "E7/last-event-forged-while-it-runs": ["header-longer-than-the-event"],
    "E7/sequence-goes-back-while-it-runs": ["lists-what-is-lost"],
    "E15/nudged-between-two-looks": ["takes-the-old-generation"],
    "5.1.6.1/one-unread-before-a-refused-buffer": ["refuses-before-it-drains"],
    "5.1.8.1/explored-drain": ["counter-after-the-recheck", "no-lap-check"],
    "5.1.8.2/explored-sleep": ["no-recheck", "counter-after-the-recheck"],
    "5.1.8.3/explored-resize": ["leaves-the-old-buffer"],
    "E20/explored-full-ring": ["lapped-moves-to-write-pos"],
    "5.1.8.1-5/explored-tear": ["no-tail-recheck", "trusts-sizes"],
    "E20/explored-large-survivor": ["half-the-capacity-at-most", "goes-on-at-the-tail-in-bounds"],
    "5.1.1/explored-two-cpus": ["first-cpu-only"],
    "5.1.8.1-2/explored-burst": ["no-tail-recheck"],
    "5.1.8/explored-turns": ["no-recheck", "delivers-survivors-again"],
    "5.1.8/explored-mixed": ["lapped-moves-to-write-pos"],
    "5.1.8/soak": ["lapped-moves-to-write-pos"],
}
