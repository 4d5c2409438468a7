// SPDX-License-Identifier: MIT
//
// Many consumers in one program, for the suite to judge. Words on the command line choose between
// correct ways of a consumer (`barrier=xchg copy=bulk`), and add mistakes (`bug=no-tail-recheck`).
// Without words it is an ordinary correct consumer. It follows the specification (5.1), its errata
// (E..) and the testee contract, and uses nothing of this tree.
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// -- Switches --------------------------------------------------------------------------------

// KEY(name, first word, ...): the first word is the default.
#define KEYS(KEY)                                                     \
    KEY(order, "counter-first", "flag-first")                         \
    KEY(barrier, "fence", "mfence", "xchg", "lock-add", "membarrier") \
    KEY(flag, "byte", "word")                                         \
    KEY(clear, "yes", "never")                                        \
    KEY(spin, "0", "1", "7", "40")                                    \
    KEY(wait, "wait", "bitset", "waitv")                              \
    KEY(limit, "none", "5", "40", "100")                              \
    KEY(threads, "each", "one")                                       \
    KEY(word, "first", "rotate")                                      \
    KEY(copy, "event", "place", "bulk")                               \
    KEY(copier, "words", "bytes", "memcpy", "movsb")                  \
    KEY(lap, "before", "after")                                       \
    KEY(torn, "text", "simple")                                       \
    KEY(budget, "all", "1", "7")                                      \
    KEY(ask, "before", "after")                                       \
    KEY(inode, "yes", "no")                                           \
    KEY(attach, "each", "together")                                   \
    KEY(fd, "at-once", "held", "late", "first")                       \
    KEY(scan, "drain", "apart")                                       \
    KEY(start, "tail", "zero")                                        \
    KEY(map, "plain", "populate", "validate")                         \
    KEY(losses, "yes", "no")                                          \
    KEY(first, "said", "silent")                                      \
    KEY(write, "drain", "event")                                      \
    KEY(slots, "asks", "guesses")                                     \
    KEY(again, "retries", "ends")

// The mistakes; mistakes.cc lists the clauses that each violates.
#define BUGS(BUG)                                         \
    BUG(no_barrier, "no-barrier")                         \
    BUG(counter_late, "counter-after-recheck")            \
    BUG(counter_once, "counter-read-once")                \
    BUG(no_recheck, "no-write-pos-recheck")               \
    BUG(no_generation_recheck, "no-generation-recheck")   \
    BUG(flag_late, "flag-after-recheck")                  \
    BUG(no_flag, "never-asks")                            \
    BUG(flag_two, "flag-is-two")                          \
    BUG(clears_early, "clears-before-it-sleeps")          \
    BUG(private_futex, "private-futex")                   \
    BUG(eintr_ends, "eintr-is-the-end")                   \
    BUG(eagain_ends, "eagain-is-the-end")                 \
    BUG(polls, "polls")                                   \
    BUG(reports_late, "reports-late")                     \
    BUG(no_tail_recheck, "no-tail-recheck")               \
    BUG(early_tail_check, "tail-check-before-the-copy")   \
    BUG(works_in_place, "works-in-place-after-the-check") \
    BUG(no_bounds, "no-bounds-check")                     \
    BUG(torn_is_corrupt, "torn-is-corrupt")               \
    BUG(reads_on, "reads-on-after-a-lap")                 \
    BUG(no_lap_check, "no-lap-check")                     \
    BUG(lapped_to_end, "lapped-moves-to-write-pos")       \
    BUG(half_at_most, "half-the-capacity-at-most")        \
    BUG(payload_at_29, "payload-after-the-type")          \
    BUG(skips_wrap, "skips-an-event-at-the-wrap")         \
    BUG(short_positions, "positions-of-32-bits")          \
    BUG(one_of_many, "one-event-per-check")               \
    BUG(begins_at_end, "begins-at-write-pos")             \
    BUG(wrong_loss, "loss-count-one-too-high")            \
    BUG(drops_after_gap, "drops-after-a-gap")             \
    BUG(after_end, "goes-on-after-the-end")               \
    BUG(moves_tail, "moves-tail-pos")                     \
    BUG(no_draining, "leaves-the-old-buffer")             \
    BUG(generation_last, "asks-for-generation-last")      \
    BUG(caches_generation, "caches-generation")           \
    BUG(plus_one, "generation-plus-one")                  \
    BUG(delivers_twice, "delivers-survivors-again")       \
    BUG(forgets_sequence, "last-sequence-of-one-buffer")  \
    BUG(skips_new, "skips-the-new-buffer")                \
    BUG(keeps_position, "keeps-its-position")             \
    BUG(leaks, "leaks-buffers")                           \
    BUG(no_record, "silent-about-generations")

#define AS_MEMBER(name, ...) int name;
#define AS_FLAG(name, word) bool name;
static struct {
    KEYS(AS_MEMBER)
    struct {
        BUGS(AS_FLAG)
    } bug;
} the;

#define AS_KEY(name, ...) {#name, {__VA_ARGS__}, &the.name},
static const struct key {
    const char* name;
    const char* words[6];
    int* choice;  // index of the chosen word
} keys[] = {KEYS(AS_KEY)};

#define AS_BUG(name, word) {word, &the.bug.name},
static const struct bug {
    const char* name;
    bool* is_set;
} bugs[] = {BUGS(AS_BUG)};

// The indices of words, in the order of the table above.
enum { kCounterFirst, kFlagFirst };
enum { kFence, kMfence, kXchg, kLockAdd, kMembarrier };
enum { kWait, kBitset, kWaitv };
enum { kCopyEvent, kCopyPlace, kCopyBulk };
enum { kCopyWords, kCopyBytes, kCopyMemcpy, kCopyMovsb };
enum { kFdAtOnce, kFdHeld, kFdLate, kFdFirst };
enum { kMapPlain, kMapPopulate, kMapValidate };

static void take_word(const char* word) {
    const char* value = strchr(word, '=');
    const size_t length = value != NULL ? (size_t)(value - word) : 0;
    for (size_t i = 0; value != NULL && i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, word, length) != 0) continue;
        for (int w = 0; w < 6 && keys[i].words[w] != NULL; w++) {
            if (strcmp(keys[i].words[w], value + 1) != 0) continue;
            *keys[i].choice = w;
            return;
        }
    }
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs && strncmp(word, "bug=", 4) == 0; i++) {
        if (strcmp(bugs[i].name, word + 4) != 0) continue;
        *bugs[i].is_set = true;
        return;
    }
    errx(2, "\"%s\" is no switch; --list names them", word);
}

static void list_switches(void) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        printf("%s", keys[i].name);
        for (int w = 0; w < 6 && keys[i].words[w] != NULL; w++) printf(" %s", keys[i].words[w]);
        printf("\n");
    }
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) printf("bug %s\n", bugs[i].name);
}

static int number_of(const int* choice) {  // of the word that was chosen; "all" and "none" are 0
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].choice == choice) return atoi(keys[i].words[*choice]);
    return 0;
}

// -- Shared with the producer ------------------------------------------------------------------

enum { kAttachCall = 1091, kAttachRetries = 5000, kMetadataBytes = 4096, kChunkBytes = 65536 };
enum { kMostCpus = 64 };  // the most CPUs of a run (contract)

struct metadata {  // 5.1.6
    uint8_t magic[8];
    uint32_t version;
    uint16_t cpu_id, reserved0;
    uint64_t capacity, data_offset;
    _Atomic uint64_t generation;
    uint8_t reserved1[24];
    _Atomic uint64_t write_pos, tail_pos;
    uint8_t reserved2[48];
    _Atomic uint32_t futex_counter;
    union {
        _Atomic uint8_t byte;
        _Atomic uint32_t word;  // also correct, with zeros in the three bytes after it (contract)
    } need_wake;
};
struct __attribute__((packed)) header {
    uint32_t event_size, header_size;
    uint64_t timestamp, sequence;
    uint16_t cpu_id;
    uint8_t origin_class;
    uint16_t type_len;
};
_Static_assert(offsetof(struct metadata, need_wake) == 132 && sizeof(struct header) == 29, "5.1.6");

#define ACQUIRE(field) atomic_load_explicit(field, memory_order_acquire)

struct mapping {
    struct metadata* meta;  // NULL: none
    uint64_t capacity;
    int fd;  // -1: closed
};

struct consumer {  // of one CPU, used by one thread
    int cpu;
    bool more;                 // neither ended nor refused
    int given_fd;              // from one attach for all CPUs; -1: none
    struct mapping now, left;  // `left`: unmapped one change of buffers later
    uint64_t generation;
    bool replaced;  // known to have a successor, whatever generation shows (E19)
    uint64_t read_pos;
    uint32_t counter;
    uint8_t* copy;  // room for capacity bytes
    struct said {   // what a delivery changes
        uint64_t last_sequence;
        uint64_t newest;  // last sequence number from this buffer
        bool has_ended;   // the last event was the end event
        size_t used;
    } said;
    char report[4 * kChunkBytes];
};
static int report_fd = 1, cpu_count, spin_looks, limit_ms, budget;

static struct metadata* meta_of(const struct consumer* c) {
    return c->now.meta;
}

static const uint8_t* data_at(const struct consumer* c, uint64_t position) {  // 5.1.4
    return (const uint8_t*)c->now.meta + kMetadataBytes + (position & (c->now.capacity - 1));
}

static void flush(struct consumer* c) {  // whole lines in one write
    for (size_t done = 0; done < c->said.used;) {
        const ssize_t written = write(report_fd, c->report + done, c->said.used - done);
        if (written < 0 && errno != EINTR) err(1, "cannot write the report");
        if (written > 0) done += (size_t)written;
    }
    c->said.used = 0;
}

#define PRINT(c, ...) ((c)->said.used += (size_t)sprintf((c)->report + (c)->said.used, __VA_ARGS__))

static bool refuse(struct consumer* c, const char* reason) {
    PRINT(c, "R %d %s\n", c->cpu, reason);
    return false;
}

// -- Attaching and mapping ---------------------------------------------------------------------

// Returns 0, or ERANGE if there are too few slots; exits on other errors that last.
static int attach_all(int* fds, int* count, uint64_t* capacity) {
    const int slots = *count;
    for (int tries = 0; syscall(kAttachCall, fds, count, capacity) != 0; tries++) {
        if (errno == ERANGE) return ERANGE;
        if (errno != EAGAIN || tries == kAttachRetries || the.again == 1) err(1, "kmes_attach");
        usleep(1000);
        *count = slots;
    }
    return 0;
}

static int find_cpu_count(void) {
    uint64_t capacity = 0;
    int fds[2], count = the.slots == 0 ? 0 : 2;
    if (attach_all(the.slots == 0 ? NULL : fds, &count, &capacity) == 0)
        for (int i = 0; i < count; i++) close(fds[i]);
    if (count < 1 || count > kMostCpus) errx(1, "kmes_attach: %d CPUs", count);
    return count;
}

// Returns the fd of one CPU's current buffer, and closes the others. Only one thread at a time has
// fds of all CPUs.
static int attach(int cpu, uint64_t* capacity) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int fds[kMostCpus], count = cpu_count;
    pthread_mutex_lock(&lock);
    if (attach_all(fds, &count, capacity) != 0 || count != cpu_count) err(1, "kmes_attach: CPUs");
    for (int i = 0; i < count; i++)
        if (i != cpu) close(fds[i]);
    pthread_mutex_unlock(&lock);
    return fds[cpu];
}

static const char* find_fault(const struct metadata* meta, uint64_t mapped) {
    if (memcmp(meta->magic, "KMESRING", 8) != 0) return "bad magic";
    if (meta->version != 1) return "unknown version";
    if ((mapped & (mapped - 1)) != 0 || mapped < 32 || mapped > SIZE_MAX / 4) return "bad capacity";
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
    return meta->data_offset != kMetadataBytes ? "bad data_offset" : NULL;
}

static struct metadata* map(int fd, uint64_t capacity) {
    static const int flags[] = {MAP_SHARED, MAP_SHARED | MAP_POPULATE, MAP_SHARED_VALIDATE};
    void* at =
        mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, flags[the.map], fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void let_go(struct mapping* mapping) {
    if (mapping->meta == NULL || the.bug.leaks) return;
    munmap(mapping->meta, kMetadataBytes + 2 * mapping->capacity);
    if (mapping->fd >= 0) close(mapping->fd);
    mapping->meta = NULL;
}

// Leaves the old buffer once the new one is mapped.
static void leave_buffer(struct consumer* c) {
    if (the.fd == kFdLate) {
        let_go(&c->left);
        c->left = c->now;
    } else {
        let_go(&c->now);
    }
}

// E19: a buffer that was retired between the attach and the load shows the generation of its
// successor. If it is the CPU's buffer even after the load, it was alive.
static bool is_still_current(struct consumer* c, const struct stat* taken) {
    struct stat current;
    uint64_t ignored;
    const int fd = attach(c->cpu, &ignored);
    if (fstat(fd, &current) != 0) err(1, "fstat");
    close(fd);
    return taken->st_ino == current.st_ino && taken->st_dev == current.st_dev;
}

static uint64_t first_position(struct consumer* c, bool is_first) {
    const struct metadata* meta = meta_of(c);
    if (the.bug.begins_at_end || (the.bug.skips_new && !is_first)) return ACQUIRE(&meta->write_pos);
    if (the.bug.keeps_position && !is_first) return c->read_pos;
    // E11. If it begins at 0, it moves to tail_pos as after a lap.
    return the.start == 0 ? ACQUIRE(&meta->tail_pos) : 0;
}

static void find_place(struct consumer* c);

// 5.1.8.3 steps 2 to 6, for the first and each later buffer. False if it refuses the buffer.
static bool take_buffer(struct consumer* c) {
    const bool is_first = meta_of(c) == NULL;
    if (the.fd == kFdFirst) let_go(&c->now);
    struct stat taken;
    uint64_t capacity = 0;
    int fd = c->given_fd >= 0 ? c->given_fd : attach(c->cpu, &capacity);
    if (c->given_fd >= 0) capacity = c->now.capacity;
    c->given_fd = -1;
    if (fstat(fd, &taken) != 0) err(1, "fstat");
    struct metadata* meta = map(fd, capacity);
    if (the.fd != kFdHeld && !the.bug.leaks) {
        close(fd);  // the mapping stays
        fd = -1;
    }
    if (meta == NULL) return refuse(c, "cannot be mapped");
    leave_buffer(c);
    c->now = (struct mapping){meta, capacity, fd};
    const char* fault = find_fault(meta, capacity);
    if (fault != NULL) return refuse(c, fault);
    if ((c->copy = realloc(c->copy, capacity)) == NULL) err(1, "realloc");
    c->generation = ACQUIRE(&meta->generation);
    c->replaced = the.inode == 0 && !is_still_current(c, &taken);
    c->counter = ACQUIRE(&meta->futex_counter);
    c->read_pos = first_position(c, is_first);
    if (the.bug.forgets_sequence) c->said.last_sequence = c->said.newest;
    c->said.newest = 0;
    if (is_first ? the.first == 0 : !the.bug.no_record)
        PRINT(c, "G %d %lu\n", c->cpu, c->generation);
    if (the.scan == 1) find_place(c);
    return true;
}

static bool is_retired(const struct consumer* c) {  // by any change, not only plus one (E15)
    if (c->replaced) return true;
    if (the.bug.caches_generation) return false;
    const uint64_t now = ACQUIRE(&meta_of(c)->generation);
    return the.bug.plus_one ? now == c->generation + 1 : now != c->generation;
}

// -- Events ------------------------------------------------------------------------------------

static void copy_words(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t step; size > 0; to += step, from += step, size -= step) {
        step = size >= 8 && (uintptr_t)from % 8 == 0 ? 8 : 1;
        const uint64_t piece = step == 8 ? __atomic_load_n((const uint64_t*)from, __ATOMIC_RELAXED)
                                         : __atomic_load_n(from, __ATOMIC_RELAXED);
        memcpy(to, &piece, step);
    }
}

static void copy_bytes(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

// Copies out of the ring, whose bytes may be overwritten meanwhile.
static void copy_out(void* to, const uint8_t* from, size_t size) {
    if (the.copier == kCopyWords) copy_words(to, from, size);
    if (the.copier == kCopyBytes) copy_bytes(to, from, size);
    if (the.copier == kCopyMemcpy) memcpy(to, from, size);
    if (the.copier == kCopyMovsb)
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// An event with checked sizes, in the ring or in a copy.
struct view {
    struct header header;
    const uint8_t* bytes;
};

// E7. An event may have more than half of the capacity if it survived a shrink.
static bool has_sound_sizes(const struct consumer* c, const struct header* header,
                            uint64_t readable) {
    if (the.bug.no_bounds) return true;
    if (the.bug.half_at_most && header->event_size > c->now.capacity / 2) return false;
    return header->type_len != 0 && header->header_size >= sizeof *header + header->type_len &&
           header->event_size >= header->header_size && header->event_size <= readable;
}

static bool is_end(const struct view* event) {
    return event->header.type_len == 20 &&
           memcmp(event->bytes + sizeof event->header, "kmes.conformance.end", 20) == 0;
}

static void print_loss(struct consumer* c, uint64_t sequence) {  // 5.1.9
    uint64_t lost = sequence - c->said.last_sequence - 1;
    if (c->said.last_sequence == 0 || lost == 0 || (the.losses == 1 && !the.bug.wrong_loss)) return;
    if (the.bug.wrong_loss) lost++;
    PRINT(c, "L %d %lu\n", c->cpu, lost);
}

static void print_event(struct consumer* c, const struct view* event) {
    const struct header* header = &event->header;
    const uint8_t* type = event->bytes + sizeof *header;
    const uint32_t begin =
        the.bug.payload_at_29 ? (uint32_t)sizeof *header + header->type_len : header->header_size;
    PRINT(c, "E %d %lu %lu %u ", c->cpu, header->sequence, header->timestamp, header->origin_class);
    for (uint32_t i = 0; i < header->type_len; i++) PRINT(c, "%02x", type[i]);
    uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
    for (uint32_t i = begin; i < header->event_size; i++)
        digest = (digest ^ event->bytes[i]) * 0x100000001b3;
    PRINT(c, " %u %016lx\n", header->event_size - begin, digest);
}

// Reports an event, unless an earlier buffer contained it too. False if it is the last one.
static bool deliver(struct consumer* c, const struct view* event, uint64_t position) {
    const uint64_t sequence = event->header.sequence;
    const bool is_known =
        the.scan == 0 && !the.bug.delivers_twice && sequence <= c->said.last_sequence;
    const uint64_t offset = position & (c->now.capacity - 1);
    if (is_known) return true;
    if (the.bug.skips_wrap && offset + event->header.event_size > c->now.capacity) return true;
    const bool gap = c->said.last_sequence != 0 && sequence > c->said.last_sequence + 1;
    print_loss(c, sequence);
    c->said.last_sequence = c->said.newest = sequence;
    if (the.bug.drops_after_gap && gap && !is_end(event)) return true;
    print_event(c, event);
    if (!is_end(event)) return true;
    c->said.has_ended = true;
    return the.bug.after_end;
}

// -- 5.1.8.1 -----------------------------------------------------------------------------------

enum taken { kWentOn, kRefused, kEnded };

static void move_to(struct consumer* c, uint64_t position) {
    c->read_pos = the.bug.short_positions ? (uint32_t)position : position;
}

static bool is_at_end(const struct consumer* c, uint64_t write_pos) {
    return the.bug.reads_on ? c->read_pos == write_pos : c->read_pos >= write_pos;
}

static void leave_event(struct consumer* c, uint64_t size, uint64_t write_pos) {
    move_to(c, the.bug.one_of_many ? write_pos : c->read_pos + size);
    if (the.bug.moves_tail) atomic_store(&meta_of(c)->tail_pos, c->read_pos);
    if (the.write == 1 || c->said.used >= kChunkBytes) flush(c);
}

// Step 4: reads the header, and finds or copies the event. False if its sizes are impossible.
static bool read_event(struct consumer* c, uint64_t readable, struct view* event) {
    const uint8_t* at = data_at(c, c->read_pos);
    if (readable < sizeof event->header || readable > c->now.capacity) return false;
    copy_out(&event->header, at, sizeof event->header);
    if (!has_sound_sizes(c, &event->header, readable)) return false;
    event->bytes = at;
    if (the.copy == kCopyPlace || the.bug.works_in_place) return true;
    copy_out(c->copy, at, event->header.event_size);
    event->bytes = c->copy;
    return true;
}

// Reads one event, by a copy or in place. In place, it is delivered first and taken back if it was
// overwritten meanwhile (E6).
static enum taken take_one(struct consumer* c, uint64_t write_pos) {
    struct metadata* meta = meta_of(c);
    uint64_t readable = write_pos - c->read_pos;
    const uint64_t saved_tail = ACQUIRE(&meta->tail_pos);  // steps 2 and 3
    if ((the.lap == 0 || the.bug.reads_on) && !the.bug.no_lap_check && saved_tail > c->read_pos) {
        move_to(c, the.bug.lapped_to_end ? write_pos : saved_tail);
        if (!the.bug.reads_on) return kWentOn;
    }
    if (the.bug.reads_on || the.bug.no_lap_check) readable = c->now.capacity;
    struct view event;
    uint64_t tail = the.bug.early_tail_check ? ACQUIRE(&meta->tail_pos) : saved_tail;
    const bool is_sound = read_event(c, readable, &event);
    if (!is_sound && the.bug.torn_is_corrupt) return refuse(c, "corrupt event"), kRefused;
    const struct said before = c->said;
    const bool in_place = the.copy == kCopyPlace && !the.bug.works_in_place;
    bool more = !in_place || !is_sound || deliver(c, &event, c->read_pos);
    atomic_thread_fence(memory_order_acquire);  // E4
    if (!the.bug.no_tail_recheck && !the.bug.early_tail_check) tail = ACQUIRE(&meta->tail_pos);
    const bool by_text = (the.lap == 0 && the.torn == 0) || the.bug.no_lap_check;
    if (tail > c->read_pos && (!by_text || tail > saved_tail)) {
        c->said = before;
        move_to(c, the.bug.lapped_to_end ? write_pos : tail);
        return kWentOn;
    }
    if (!is_sound) return refuse(c, "corrupt event"), kRefused;
    if (!in_place) more = deliver(c, &event, c->read_pos);
    leave_event(c, event.header.event_size, write_pos);
    return more ? kWentOn : kEnded;
}

// Reads all published events by one copy with one check, and drops the events that were overwritten
// meanwhile. The rest is whole: no size in it can be torn.
static enum taken take_many(struct consumer* c, uint64_t write_pos) {
    struct metadata* meta = meta_of(c);
    const uint64_t bytes = write_pos - c->read_pos;
    uint64_t tail = ACQUIRE(&meta->tail_pos);
    if ((the.lap == 0 || bytes > c->now.capacity) && tail > c->read_pos) {
        move_to(c, the.bug.lapped_to_end ? write_pos : tail);
        return kWentOn;
    }
    if (bytes > c->now.capacity) return refuse(c, "corrupt positions"), kRefused;
    const uint64_t begin = c->read_pos;
    copy_out(c->copy, data_at(c, begin), bytes);
    atomic_thread_fence(memory_order_acquire);
    if (!the.bug.no_tail_recheck && !the.bug.early_tail_check) tail = ACQUIRE(&meta->tail_pos);
    if (tail > c->read_pos) move_to(c, the.bug.lapped_to_end ? write_pos : tail);
    for (int n = 0; !is_at_end(c, write_pos) && (budget == 0 || n < budget); n++) {
        struct view event = {.bytes = c->copy + (c->read_pos - begin)};
        const uint64_t readable = write_pos - c->read_pos;
        if (readable < sizeof event.header) return refuse(c, "corrupt event"), kRefused;
        memcpy(&event.header, event.bytes, sizeof event.header);
        if (!has_sound_sizes(c, &event.header, readable))
            return refuse(c, "corrupt event"), kRefused;
        const bool more = deliver(c, &event, c->read_pos);
        leave_event(c, event.header.event_size, write_pos);
        if (!more) return kEnded;
    }
    return kWentOn;
}

// E21 before the drain: moves to the first event newer than all delivered ones.
static void find_place(struct consumer* c) {
    struct metadata* meta = meta_of(c);
    while (!the.bug.delivers_twice && c->said.last_sequence != 0) {
        const uint64_t write_pos = ACQUIRE(&meta->write_pos);
        struct header header;
        const uint64_t readable = write_pos - c->read_pos;
        if (c->read_pos >= write_pos) return;
        const bool has_header = readable >= sizeof header && readable <= c->now.capacity;
        if (has_header) copy_out(&header, data_at(c, c->read_pos), sizeof header);
        atomic_thread_fence(memory_order_acquire);
        const uint64_t tail = ACQUIRE(&meta->tail_pos);
        if (tail > c->read_pos) {
            move_to(c, tail);
        } else {
            if (!has_header || !has_sound_sizes(c, &header, readable)) return;  // drain() refuses
            if (header.sequence > c->said.last_sequence) return;
            move_to(c, c->read_pos + header.event_size);
        }
    }
}

enum drained { kEmpty, kMore, kOver };

// Reads until the buffer is empty or the budget is used up. Loads write_pos again after each move
// of read_pos (E20).
static enum drained drain(struct consumer* c) {
    for (int n = 0; budget == 0 || n < budget; n++) {
        const uint64_t write_pos = ACQUIRE(&meta_of(c)->write_pos);
        if (is_at_end(c, write_pos)) return c->said.has_ended ? kOver : kEmpty;
        const enum taken taken =
            the.copy == kCopyBulk ? take_many(c, write_pos) : take_one(c, write_pos);
        if (taken != kWentOn) return kOver;
    }
    return kMore;
}

// -- Changes of buffers (5.1.8.3) --------------------------------------------------------------

// Drains until the CPU's current buffer is empty. False if this CPU has ended.
static bool work(struct consumer* c) {
    for (;;) {
        // If generation is read before the drain, the drain sees the last write_pos of a retired
        // buffer (E24); if after it, the buffer is drained again.
        bool is_old = the.ask == 0 && is_retired(c);
        enum drained drained = is_old && the.bug.no_draining ? kEmpty : drain(c);
        if (!the.bug.reports_late || drained == kOver) flush(c);
        if (drained == kOver) return false;
        if (drained == kMore) continue;
        if (!is_old && (the.ask == 1 || the.bug.generation_last)) {
            is_old = is_retired(c);
            const bool again = !the.bug.generation_last && !the.bug.no_draining;
            while (is_old && again && drained != kOver && (drained = drain(c)) == kMore) continue;
            if (!the.bug.reports_late || drained == kOver) flush(c);
            if (drained == kOver) return false;
        }
        if (!is_old) return true;
        if (!take_buffer(c)) return flush(c), false;
    }
}

// -- Sleep (5.1.8.2) ---------------------------------------------------------------------------

struct sleeper {  // a thread
    struct consumer* consumers;
    int count;
    int turn;  // the consumer whose counter it waits on, if it can wait on only one
};

#define EACH(sleeper, c)                                                                         \
    for (struct consumer* c = (sleeper)->consumers; c < (sleeper)->consumers + (sleeper)->count; \
         c++)                                                                                    \
        if (c->more)

static void put_flag(struct consumer* c, uint8_t value) {
    struct metadata* meta = meta_of(c);
    const bool exchanges = value != 0 && the.barrier == kXchg && !the.bug.no_barrier;
    if (value != 0 && the.bug.flag_two) value = 2;
    if (the.flag == 0 && exchanges) atomic_exchange(&meta->need_wake.byte, value);
    if (the.flag == 1 && exchanges) atomic_exchange(&meta->need_wake.word, value);
    if (the.flag == 0 && !exchanges)
        atomic_store_explicit(&meta->need_wake.byte, value, memory_order_relaxed);
    if (the.flag == 1 && !exchanges)
        atomic_store_explicit(&meta->need_wake.word, value, memory_order_relaxed);
}

static void full_barrier(void) {  // E1
    if (the.bug.no_barrier) return;
    int word = 0;
    if (the.barrier == kFence) atomic_thread_fence(memory_order_seq_cst);
    if (the.barrier == kMfence) __asm__ volatile("mfence" : : : "memory");
    if (the.barrier == kLockAdd) __asm__ volatile("lock addl $0, %0" : "+m"(word) : : "memory");
    if (the.barrier == kMembarrier && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0)
        err(1, "membarrier");
}

static void read_counters(struct sleeper* sleeper) {
    EACH(sleeper, c) c->counter = ACQUIRE(&meta_of(c)->futex_counter);
}

// Requests a wake. E2: loads the counter before the last check, in one of the two correct orders.
static void ask(struct sleeper* sleeper) {
    const bool reads = !the.bug.counter_late && !the.bug.counter_once;
    if (reads && the.order == kCounterFirst) read_counters(sleeper);
    EACH(sleeper, c) {
        if (!the.bug.no_flag) put_flag(c, 1);
    }
    full_barrier();
    if (reads && the.order == kFlagFirst) read_counters(sleeper);
}

// Whether no CPU has any work. E3: loads write_pos and generation.
static bool is_idle(struct sleeper* sleeper) {
    bool idle = true;
    EACH(sleeper, c) {
        if (!the.bug.no_recheck) idle = idle && is_at_end(c, ACQUIRE(&meta_of(c)->write_pos));
        if (!the.bug.no_generation_recheck) idle = idle && !is_retired(c);
    }
    return idle;
}

static bool stays_idle(struct sleeper* sleeper) {
    bool idle = is_idle(sleeper);
    for (int i = 0; i < spin_looks && idle; i++) {
        __builtin_ia32_pause();
        idle = is_idle(sleeper);
    }
    return idle;
}

static struct timespec after_limit(bool absolute) {
    struct timespec time = {0};
    if (absolute) clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += limit_ms * 1000000L;
    time.tv_sec += time.tv_nsec / 1000000000L;
    time.tv_nsec %= 1000000000L;
    return time;
}

struct futex_word {  // struct futex_waitv, which older headers do not have
    uint64_t value, address;
    uint32_t flags, reserved;
};
enum { kFutexWaitvCall = 449, kFutexOf32Bits = 2 };

static long wait_on_all(struct sleeper* sleeper) {
    struct futex_word words[kMostCpus];
    unsigned count = 0;
    const struct timespec end = after_limit(true);
    const uint32_t flags = kFutexOf32Bits | (the.bug.private_futex ? FUTEX_PRIVATE_FLAG : 0u);
    EACH(sleeper, c)
    words[count++] =
        (struct futex_word){c->counter, (uintptr_t)&meta_of(c)->futex_counter, flags, 0};
    return syscall(kFutexWaitvCall, words, count, 0, limit_ms > 0 ? &end : NULL, CLOCK_MONOTONIC);
}

static long wait_on_one(struct sleeper* sleeper) {
    struct consumer* chosen = NULL;
    int turn = the.word == 1 ? sleeper->turn++ % sleeper->count : 0;
    EACH(sleeper, c) {
        if (chosen == NULL || turn-- > 0) chosen = c;
    }
    const bool bitset = the.wait == kBitset;
    const struct timespec time = after_limit(bitset);
    const int operation = (bitset ? FUTEX_WAIT_BITSET : FUTEX_WAIT) |
                          (the.bug.private_futex ? FUTEX_PRIVATE_FLAG : 0);
    return syscall(SYS_futex, &meta_of(chosen)->futex_counter, operation, chosen->counter,
                   limit_ms > 0 ? &time : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void wait_for_a_wake(struct sleeper* sleeper) {
    if (the.bug.polls) {
        usleep(1000);
        return;
    }
    const long result = the.wait == kWaitv ? wait_on_all(sleeper) : wait_on_one(sleeper);
    const int error = result < 0 ? errno : 0;
    const bool is_wake = error == 0 || error == ETIMEDOUT ||
                         (error == EINTR && !the.bug.eintr_ends) ||
                         (error == EAGAIN && !the.bug.eagain_ends);
    if (!is_wake) err(1, "futex");
}

// Returns when there may be work.
static void sleep_until_woken(struct sleeper* sleeper) {
    const bool was_idle = !the.bug.flag_late || stays_idle(sleeper);
    ask(sleeper);
    const bool idle = the.bug.flag_late ? was_idle : stays_idle(sleeper);
    if (the.bug.counter_late) read_counters(sleeper);
    EACH(sleeper, c) {
        if (the.bug.clears_early) put_flag(c, 0);
    }
    if (idle) wait_for_a_wake(sleeper);
    EACH(sleeper, c) {
        if (the.clear == 0 && !the.bug.no_flag) put_flag(c, 0);
        if (the.bug.reports_late) flush(c);
    }
}

static void* consume(void* argument) {
    struct sleeper* sleeper = argument;
    for (int i = 0; i < sleeper->count; i++) {
        struct consumer* c = &sleeper->consumers[i];
        c->more = take_buffer(c);
        if (!c->more) flush(c);
    }
    for (;;) {
        bool more = false;
        EACH(sleeper, c) {
            c->more = work(c);
            more = more || c->more;
        }
        if (!more) return NULL;
        sleep_until_woken(sleeper);
    }
}

// -- The program -------------------------------------------------------------------------------

static void attach_together(struct consumer* consumers) {
    int fds[kMostCpus], count = cpu_count;
    uint64_t capacity = 0;
    if (attach_all(fds, &count, &capacity) != 0 || count != cpu_count) err(1, "kmes_attach: CPUs");
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        consumers[cpu].given_fd = fds[cpu];
        consumers[cpu].now.capacity = capacity;
    }
}

static void take_words(int count, char** words) {
    for (int i = 0; i < count; i++) take_word(words[i]);
    spin_looks = number_of(&the.spin);
    limit_ms = number_of(&the.limit);
    budget = number_of(&the.budget);
    if (the.threads == 1 && the.wait != kWaitv && limit_ms == 0)
        errx(2, "threads=one takes wait=waitv, or a limit: one thread sleeps on one word else");
}

int main(int count, char** arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0) return list_switches(), 0;
    take_words(count - 1, arguments + 1);
    const char* fd = getenv("KMES_REPORT_FD");
    if (fd != NULL) report_fd = atoi(fd);
    cpu_count = find_cpu_count();
    struct consumer* consumers = calloc((size_t)cpu_count, sizeof *consumers);
    if (consumers == NULL) err(1, "calloc");
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        consumers[cpu].cpu = cpu;
        consumers[cpu].given_fd = -1;
    }
    if (the.attach == 1) attach_together(consumers);
    const int threads = the.threads == 0 ? cpu_count : 1;
    struct sleeper sleepers[kMostCpus];
    pthread_t ids[kMostCpus];
    for (int i = 0; i < threads; i++) {
        sleepers[i] = (struct sleeper){consumers + i, cpu_count / threads, 0};
        if (pthread_create(&ids[i], NULL, consume, &sleepers[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}
