// SPDX-License-Identifier: MIT
//
// A correct consumer for the patches of this folder: a thread for each CPU copies a window of
// 256 KiB of the ring into a staging buffer and parses it there. It carries a partial event at the
// window's end over to the next window. A state of its own drains the old buffer after a change.
// Up to 4096 records are queued as structs, and formatted when they are flushed. Types are
// interned. It uses only metadata.h of this tree.
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/testees/broken/metadata.h"

namespace {

constexpr uint64_t kPage = 4096, kHeader = 29, kMostCapacity = uint64_t{1} << 40;
constexpr size_t kWindow = 256 << 10, kMostKept = 16 * kWindow;
constexpr unsigned kBatch = 4096, kRecords = 4096;
constexpr unsigned kSlots = 512, kLongestInSlot = 4096;
constexpr size_t kMostArena = 1 << 20, kMostText = 256 << 10;
constexpr uint16_t kInArena = 0xffff;
constexpr unsigned kFewestSpins = 16, kMostSpins = 1024;
constexpr int kAttach = 1091;
constexpr char kEnd[] = "kmes.conformance.end";

struct Identity {
    uint64_t device = 0, inode = 0;
    bool operator==(const Identity&) const = default;
};

struct Ring {
    int fd = -1;  // kept open: no other buffer gets this one's inode number
    Metadata* meta = nullptr;
    uint64_t capacity = 0, generation = 0;
    Identity identity;
    bool replaced = false;
};

struct Record {
    char kind = 0;
    uint8_t origin = 0;
    uint16_t slot = 0, type_len = 0;
    uint32_t type_offset = 0;  // in the arena, where there is no slot
    uint32_t length = 0;
    uint64_t number = 0, timestamp = 0, digest = 0;
};

struct Slot {
    std::string type, hex;
};

struct Queue {
    size_t cpu = 0;
    std::vector<Record> records = std::vector<Record>(kRecords);
    uint32_t head = 0, tail = 0;
    std::vector<Slot> slots = std::vector<Slot>(kSlots);
    std::string arena, text;
};

struct Stage {
    std::shared_ptr<uint8_t[]> bytes;
    size_t capacity = 0, length = 0;
    size_t offset = 0;  // of the next event
    uint64_t base = 0;  // the position of the first byte
};

struct Header {
    uint32_t size = 0, header_size = 0;
    uint16_t type_len = 0;
};

enum State { kRunning, kDraining, kSwitching };
enum Outcome { kEmpty, kLimit, kEnded, kCorrupt, kFilled, kAgain };

struct Cpu {
    State state = kRunning;
    Ring ring;
    Stage stage;
    Queue queue;
    uint64_t published = 0;  // write_pos as it was when the window was filled
    uint64_t last_sequence = 0;
    bool has_last = false;
    unsigned spins = 64;
    const char* fault = nullptr;
};

int report_fd = 1;
size_t cpu_count = 4;  // a guess until the first attach

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

template <class T>
T load(const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// ---- the records ----

void write_all(std::string& text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t wrote = write(report_fd, text.data() + done, text.size() - done);
        if (wrote < 0 && errno != EINTR) die("write");
        if (wrote > 0) done += static_cast<size_t>(wrote);
    }
    text.clear();
}

std::string hex_of(const char* bytes, size_t count) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * count);
    for (size_t i = 0; i < count; i++) {
        hex += kDigits[static_cast<uint8_t>(bytes[i]) >> 4];
        hex += kDigits[bytes[i] & 15];
    }
    return hex;
}

void format(Queue& q, const Record& record) {
    char piece[128];
    std::snprintf(piece, sizeof piece, "%c %zu %" PRIu64, record.kind, q.cpu, record.number);
    q.text += piece;
    if (record.kind == 'E') {
        std::snprintf(piece, sizeof piece, " %" PRIu64 " %u ", record.timestamp,
                      unsigned{record.origin});
        q.text += piece;
        q.text += record.slot != kInArena
                      ? q.slots[record.slot].hex
                      : hex_of(q.arena.data() + record.type_offset, record.type_len);
        std::snprintf(piece, sizeof piece, " %" PRIu32 " %016" PRIx64, record.length,
                      record.digest);
        q.text += piece;
    }
    q.text += '\n';
}

uint32_t count_of(const Queue& q) {
    return q.head - q.tail;
}

void flush(Queue& q) {
    for (uint32_t left = count_of(q); left != 0; left--) {
        format(q, q.records[q.tail++ % kRecords]);
        if (q.text.size() > kMostText) write_all(q.text);
    }
    write_all(q.text);
    q.arena.clear();
}

void make_room(Queue& q) {
    if (count_of(q) == kRecords) flush(q);
}

void put(Queue& q, const Record& record) {
    make_room(q);
    q.records[q.head++ % kRecords] = record;
    if (q.arena.size() > kMostArena) flush(q);
}

void put_number(Queue& q, char kind, uint64_t number) {
    Record record;
    record.kind = kind;
    record.number = number;
    put(q, record);
}

uint16_t intern(Queue& q, const char* type, size_t length) {
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < length; i++) hash = (hash ^ static_cast<uint8_t>(type[i])) * 16777619;
    const uint16_t at = static_cast<uint16_t>((hash ^ hash >> 16) % kSlots);
    Slot& slot = q.slots[at];
    if (slot.type.size() == length && std::memcmp(slot.type.data(), type, length) == 0) return at;
    if (!slot.type.empty()) flush(q);  // queued records still name the slot
    slot.type.assign(type, length);
    slot.hex = hex_of(type, length);
    return at;
}

void keep_type(Queue& q, const char* type, Record& record) {
    if (record.type_len <= kLongestInSlot) {
        record.slot = intern(q, type, record.type_len);
        return;
    }
    record.slot = kInArena;
    record.type_offset = static_cast<uint32_t>(q.arena.size());
    q.arena.append(type, record.type_len);
}

// ---- the buffers ----

// Nothing if it fails for good.
std::vector<int> attach_all(uint64_t& capacity) {
    std::vector<int> fds(cpu_count, -1);
    for (;;) {
        int count = static_cast<int>(fds.size());
        const bool done = syscall(kAttach, fds.data(), &count, &capacity) == 0;
        if (done || errno == ERANGE) fds.resize(static_cast<size_t>(count), -1);
        if (done) return fds;
        if (errno == ERANGE) continue;
        if (errno != EAGAIN && errno != ENOMEM && errno != EMFILE && errno != ENFILE &&
            errno != EPERM && errno != EINTR)
            return {};
        usleep(10000);
    }
}

void close_all(const std::vector<int>& fds, int but) {
    for (int fd : fds)
        if (fd != but) close(fd);
}

Identity identity_of(int fd) {
    struct stat status{};
    if (fstat(fd, &status) != 0) die("fstat");
    return {status.st_dev, status.st_ino};
}

Metadata* map(int fd, uint64_t capacity) {
    for (int tries = 0;; tries++) {
        void* at = mmap(nullptr, kPage + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) return static_cast<Metadata*>(at);
        if ((errno != ENOMEM && errno != EAGAIN) || tries == 200) return nullptr;
        usleep(10000);
    }
}

// Returns the fault of the buffer, or nothing.
const char* open_ring(Ring& ring, int fd, uint64_t capacity) {
    ring.fd = fd;
    ring.capacity = capacity;
    if (capacity < kPage || capacity > kMostCapacity || (capacity & (capacity - 1)) != 0)
        return "capacity";
    ring.identity = identity_of(fd);
    ring.meta = map(fd, capacity);
    if (ring.meta == nullptr) return "cannot be mapped";
    if (std::memcmp(ring.meta->magic, "KMESRING", 8) != 0) return "magic";
    if (ring.meta->version != 1) return "version";
    if (ring.meta->capacity != capacity) return "capacity does not fit the mapping";
    if (ring.meta->data_offset != kPage) return "data_offset";
    ring.generation = ring.meta->generation.load(std::memory_order_acquire);
    return nullptr;
}

void close_ring(Ring& ring) {
    if (ring.meta != nullptr) munmap(ring.meta, kPage + 2 * ring.capacity);
    if (ring.fd >= 0) close(ring.fd);
    ring = {};
}

// A buffer that was replaced before its generation was read shows that of its successor. Only a
// later attach reveals that.
void note_if_replaced(Ring& ring, const std::vector<int>& later, size_t cpu) {
    if (cpu < later.size()) ring.replaced = identity_of(later[cpu]) != ring.identity;
}

uint64_t write_pos(const Cpu& c) {
    return c.ring.meta->write_pos.load(std::memory_order_acquire);
}
uint64_t tail_pos(const Cpu& c) {
    return c.ring.meta->tail_pos.load(std::memory_order_acquire);
}
uint64_t generation(const Cpu& c) {
    return c.ring.meta->generation.load(std::memory_order_acquire);
}

// ---- the staging buffer ----

std::shared_ptr<uint8_t[]> allocate(size_t capacity) {
    return std::shared_ptr<uint8_t[]>(new (std::nothrow) uint8_t[capacity]);
}

bool grow(Stage& s, uint64_t needed) {
    size_t capacity = std::max(s.capacity, kWindow);
    while (capacity < needed) capacity *= 2;
    std::shared_ptr<uint8_t[]> larger = allocate(capacity);
    if (larger == nullptr) return false;
    if (s.length != 0) std::memcpy(larger.get(), s.bytes.get(), s.length);
    s.bytes = std::move(larger);
    s.capacity = capacity;
    return true;
}

void give_back(Stage& s) {
    if (s.capacity <= kMostKept || s.offset != s.length) return;
    std::shared_ptr<uint8_t[]> smaller = allocate(kWindow);
    if (smaller == nullptr) return;
    s.bytes = std::move(smaller);
    s.capacity = kWindow;
    s.base += s.offset;
    s.length = s.offset = 0;
}

void drop_parsed(Stage& s) {
    if (s.offset == 0) return;
    std::memmove(s.bytes.get(), s.bytes.get() + s.offset, s.length - s.offset);
    s.base += s.offset;
    s.length -= s.offset;
    s.offset = 0;
}

template <class T>
void copy_one(uint8_t*& to, const uint8_t*& from, size_t& left) {
    const T value = reinterpret_cast<const std::atomic<T>*>(from)->load(std::memory_order_relaxed);
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
    from += sizeof value;
    left -= sizeof value;
}

void copy_out(const Ring& ring, uint64_t position, uint8_t* to, size_t left) {
    const uint8_t* data = reinterpret_cast<const uint8_t*>(ring.meta) + kPage;
    const uint8_t* from = data + (position & (ring.capacity - 1));
    while (left != 0 && reinterpret_cast<uintptr_t>(from) % 8 != 0)
        copy_one<uint8_t>(to, from, left);
    while (left >= 8) copy_one<uint64_t>(to, from, left);
    while (left != 0) copy_one<uint8_t>(to, from, left);
}

// ---- the reader ----

Outcome corrupt(Cpu& c, const char* fault) {
    c.fault = fault;
    return kCorrupt;
}

// Drops the bytes that were overwritten during the copy. The events after them are whole.
Outcome check_window(Cpu& c) {
    Stage& s = c.stage;
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint64_t tail = c.ring.meta->tail_pos.load(std::memory_order_relaxed);
    if (tail <= s.base) return kFilled;
    const uint64_t overwritten = tail - s.base;
    if (overwritten < s.length) {
        s.offset = overwritten;
        return kFilled;
    }
    s.base = tail;
    s.length = 0;
    return kAgain;
}

Outcome refill(Cpu& c, uint64_t needed) {
    Stage& s = c.stage;
    drop_parsed(s);
    const uint64_t written = write_pos(c);
    if (s.base >= written) return kEmpty;
    const uint64_t tail = tail_pos(c);
    if (s.base < tail) {
        s.base = tail;
        s.length = 0;
        return kAgain;
    }
    c.published = written;
    if (written - s.base > c.ring.capacity)
        return tail_pos(c) > s.base ? kAgain : corrupt(c, "positions");
    const uint64_t from = s.base + s.length;
    if (written < from || (s.length != 0 && written == from))
        return corrupt(c, "partial event at write_pos");
    if (needed > s.capacity && !grow(s, needed)) return corrupt(c, "memory");
    const size_t copied = std::min(written - from, s.capacity - s.length);
    copy_out(c.ring, from, s.bytes.get() + s.length, copied);
    s.length += copied;
    return check_window(c);
}

uint64_t digest_of(const uint8_t* event, const Header& header) {
    uint64_t digest = 0xcbf29ce484222325;
    for (uint32_t i = header.header_size; i < header.size; i++)
        digest = (digest ^ event[i]) * 0x100000001b3;
    return digest;
}

// True if it was the event that ends the CPU.
bool deliver(Cpu& c, const uint8_t* event, const Header& header) {
    const uint64_t sequence = load<uint64_t>(event + 16);
    if (c.has_last && sequence <= c.last_sequence) return false;
    if (c.has_last && sequence != c.last_sequence + 1)
        put_number(c.queue, 'L', sequence - c.last_sequence - 1);
    Record record;
    record.kind = 'E';
    record.number = sequence;
    record.timestamp = load<uint64_t>(event + 8);
    record.origin = event[26];
    record.type_len = header.type_len;
    record.length = header.size - header.header_size;
    record.digest = digest_of(event, header);
    make_room(c.queue);  // first: a flush empties the arena
    const char* type = reinterpret_cast<const char*>(event) + kHeader;
    keep_type(c.queue, type, record);
    put(c.queue, record);
    c.last_sequence = sequence;
    c.has_last = true;
    return header.type_len == sizeof kEnd - 1 && std::memcmp(type, kEnd, sizeof kEnd - 1) == 0;
}

bool can_be_right(const Header& header, uint64_t readable) {
    if (header.size <= kHeader || header.type_len == 0 || header.size > readable) return false;
    return header.header_size >= kHeader + header.type_len && header.header_size <= header.size;
}

// Delivers the next event if all of it is in the window. If not, sets `needed` (0: not known).
Outcome take_event(Cpu& c, uint64_t& needed) {
    Stage& s = c.stage;
    const size_t available = s.length - s.offset;
    needed = 0;
    if (available < kHeader) return kEmpty;
    const uint8_t* event = s.bytes.get() + s.offset;
    const Header header{load<uint32_t>(event), load<uint32_t>(event + 4),
                        load<uint16_t>(event + 27)};
    if (!can_be_right(header, c.published - (s.base + s.offset)))
        return corrupt(c, "corrupt event");
    needed = header.size;
    if (needed > available) return kEmpty;
    s.offset += header.size;
    return deliver(c, event, header) ? kEnded : kAgain;
}

Outcome drain(Cpu& c) {
    for (unsigned taken = 0; taken < kBatch;) {
        uint64_t needed = 0;
        Outcome outcome = take_event(c, needed);
        if (outcome == kAgain) taken++;
        if (outcome == kEmpty) outcome = refill(c, needed);
        if (outcome != kAgain && outcome != kFilled) return outcome;
    }
    return kLimit;
}

bool has_arrived(const Cpu& c) {
    return write_pos(c) > c.stage.base + c.stage.offset;
}

bool arrives_in_spin(Cpu& c) {
    for (unsigned i = 0; i < c.spins; i++) {
        if (has_arrived(c)) {
            if (c.spins < kMostSpins) c.spins *= 2;
            return true;
        }
        _mm_pause();
    }
    if (c.spins > kFewestSpins) c.spins /= 2;
    return false;
}

// The checks between the store of the flag and the sleep.
bool is_called_off(Cpu& c) {
    if (has_arrived(c)) return true;
    if (generation(c) != c.ring.generation) return true;
    return arrives_in_spin(c);
}

void sleep_while(const std::atomic<uint32_t>& counter, uint32_t seen) {
    const timespec limit{30, 0};
    while (syscall(SYS_futex, &counter, FUTEX_WAIT, seen, &limit, nullptr, 0) != 0) {
        if (errno == EINTR) continue;  // with the same number: the kernel compares again
        if (errno != EAGAIN && errno != ETIMEDOUT) usleep(10000);
        return;
    }
}

void sleep_until_woken(Cpu& c) {
    Metadata& meta = *c.ring.meta;
    const uint32_t counter = meta.futex_counter.load(std::memory_order_acquire);
    meta.need_wake.store(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool sleeps = !is_called_off(c);
    if (sleeps) sleep_while(meta.futex_counter, counter);
    meta.need_wake.store(0, std::memory_order_relaxed);
    if (sleeps) give_back(c.stage);
}

bool switch_buffers(Cpu& c) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const size_t cpu = c.queue.cpu;
    uint64_t capacity = 0, ignored = 0;
    const std::vector<int> fds = attach_all(capacity);
    if (fds.size() <= cpu) {
        c.fault = "kmes_attach";
        return false;
    }
    c.state = kRunning;
    if (identity_of(fds[cpu]) == c.ring.identity) {
        close_all(fds, -1);
        c.ring.generation = generation(c);
        c.ring.replaced = false;
        return true;
    }
    close_all(fds, fds[cpu]);
    Ring next;
    c.fault = open_ring(next, fds[cpu], capacity);
    close_ring(c.ring);
    c.ring = next;
    if (c.fault != nullptr) return false;
    const std::vector<int> later = attach_all(ignored);
    note_if_replaced(c.ring, later, cpu);
    close_all(later, -1);
    c.stage.base = tail_pos(c);
    c.stage.length = c.stage.offset = 0;
    put_number(c.queue, 'G', c.ring.generation);
    return true;
}

bool notices_change(const Cpu& c) {
    return c.ring.replaced || generation(c) != c.ring.generation;
}

// False once the CPU has ended.
bool advance(Cpu& c) {
    if (c.state == kSwitching) {
        flush(c.queue);
        return switch_buffers(c);
    }
    const Outcome outcome = drain(c);
    if (outcome == kEnded || outcome == kCorrupt) return false;
    if (c.state == kDraining) {
        if (outcome == kEmpty) c.state = kSwitching;
        return true;
    }
    if (notices_change(c)) {
        c.state = kDraining;
    } else if (outcome == kEmpty) {
        flush(c.queue);
        sleep_until_woken(c);
    }
    return true;
}

void consume(Cpu& c) {
    if (c.fault == nullptr && !grow(c.stage, kWindow)) c.fault = "memory";
    while (c.fault == nullptr && advance(c)) continue;
    flush(c.queue);
    if (c.fault != nullptr) {
        std::string text = "R " + std::to_string(c.queue.cpu) + " " + c.fault + "\n";
        write_all(text);
    }
    close_ring(c.ring);
}

std::vector<Cpu> open_all() {
    uint64_t capacity = 0, ignored = 0;
    const std::vector<int> fds = attach_all(capacity);
    if (fds.empty()) die("kmes_attach");
    cpu_count = fds.size();
    std::vector<Cpu> cpus(cpu_count);
    for (size_t i = 0; i < cpu_count; i++) {
        cpus[i].queue.cpu = i;
        cpus[i].fault = open_ring(cpus[i].ring, fds[i], capacity);
    }
    const std::vector<int> later = attach_all(ignored);
    if (later.empty()) die("kmes_attach");
    for (size_t i = 0; i < cpu_count; i++) {
        note_if_replaced(cpus[i].ring, later, i);
        if (cpus[i].fault == nullptr) cpus[i].stage.base = tail_pos(cpus[i]);
    }
    close_all(later, -1);
    return cpus;
}

}  // namespace

int main() {
    if (const char* fd = std::getenv("KMES_REPORT_FD")) report_fd = std::atoi(fd);
    std::vector<Cpu> cpus = open_all();
    std::vector<std::thread> readers;
    for (Cpu& c : cpus) readers.emplace_back(consume, std::ref(c));
    for (std::thread& reader : readers) reader.join();
    return 0;
}
