// SPDX-License-Identifier: MIT
//
// A correct consumer for the patches of this folder. A reader thread for each CPU copies the events
// into a queue of 64 slots for the one writer thread, which writes all of them before the reader
// sleeps. The header of the next event is read ahead. It uses only metadata.h of this tree.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/testees/broken/metadata.h"

namespace {

constexpr uint64_t kPage = 4096, kHeader = 29, kSlots = 64;
constexpr int kAttach = 1091, kMostCpus = 256;
constexpr char kEnd[] = "kmes.conformance.end";
using Header = std::array<uint8_t, kHeader>;

struct Item {
    std::vector<uint8_t> bytes;  // the copy of an event,
    std::string record;          // or a line to write as it is
};

struct Cpu {
    int cpu = 0;
    Metadata* meta = nullptr;
    uint64_t capacity = 0, generation = 0, read_pos = 0;
    bool replaced = false;
    std::optional<Header> ahead;  // the header of the event at read_pos
    std::vector<uint8_t> copy;
    std::array<Item, kSlots> slots;
    std::atomic<uint64_t> pushed{0}, popped{0};  // the reader's, the writer's
    uint64_t claimed = 0;                        // the writer's
    uint64_t last_sequence = 0;                  // the writer's
};

int report_fd = 1;
std::mutex bell_mutex;
std::condition_variable bell;
std::atomic<uint64_t> rung{0};  // changes whenever something was pushed
std::atomic<bool> over{false};

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

uint64_t number(const uint8_t* from, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
}

// ---- the writer ----

void write_all(const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t wrote = write(report_fd, text.data() + done, text.size() - done);
        if (wrote < 0 && errno != EINTR) die("write");
        if (wrote > 0) done += static_cast<size_t>(wrote);
    }
}

std::string format(Cpu& c, const uint8_t* event) {
    const uint64_t sequence = number(event + 16, 8);
    if (sequence <= c.last_sequence) return {};
    std::string text;
    if (c.last_sequence != 0 && sequence > c.last_sequence + 1)
        text = "L " + std::to_string(c.cpu) + " " + std::to_string(sequence - c.last_sequence - 1) +
               "\n";
    c.last_sequence = sequence;
    text += "E " + std::to_string(c.cpu) + " " + std::to_string(sequence) + " " +
            std::to_string(number(event + 8, 8)) + " " + std::to_string(event[26]) + " ";
    const size_t type_len = number(event + 27, 2);
    char piece[40];
    for (size_t i = 0; i < type_len; i++) {
        std::snprintf(piece, sizeof piece, "%02x", event[kHeader + i]);
        text += piece;
    }
    const uint64_t size = number(event, 4), header = number(event + 4, 4);
    uint64_t digest = 0xcbf29ce484222325;
    for (uint64_t i = header; i < size; i++) digest = (digest ^ event[i]) * 0x100000001b3;
    std::snprintf(piece, sizeof piece, " %lu %016lx\n", size - header, digest);
    return text + piece;
}

// Returns the text to write for an item.
std::string text_of(Cpu& c, const Item& item) {
    if (!item.record.empty()) return item.record;
    return format(c, item.bytes.data());
}

bool write_one(Cpu& c, std::mutex& claims) {
    Item item;
    {
        const std::lock_guard lock(claims);
        if (c.claimed == c.pushed.load(std::memory_order_acquire)) return false;
        item = std::move(c.slots[c.claimed++ % kSlots]);
    }
    write_all(text_of(c, item));
    c.popped.fetch_add(1, std::memory_order_release);
    return true;
}

void run_writer(std::vector<Cpu>& cpus) {
    static std::mutex claims;
    for (;;) {
        const uint64_t seen = rung.load();
        bool some = false;
        for (Cpu& c : cpus)
            while (write_one(c, claims)) some = true;
        if (some) continue;
        if (over.load()) return;
        std::unique_lock lock(bell_mutex);
        bell.wait(lock, [seen] { return rung.load() != seen || over.load(); });
    }
}

void ring_bell() {
    {
        const std::lock_guard lock(bell_mutex);
        rung.fetch_add(1);
    }
    bell.notify_all();
}

// ---- the readers ----

void wait_until_written(const Cpu& c) {
    while (c.popped.load(std::memory_order_acquire) != c.pushed.load()) std::this_thread::yield();
}

void push(Cpu& c, Item&& item) {
    const uint64_t at = c.pushed.load();
    while (at - c.popped.load(std::memory_order_acquire) >= kSlots) std::this_thread::yield();
    c.slots[at % kSlots] = std::move(item);
    c.pushed.store(at + 1, std::memory_order_release);
    ring_bell();
}

bool refuse(Cpu& c, const char* reason) {
    Item item;
    item.record = "R " + std::to_string(c.cpu) + " " + reason + "\n";
    push(c, std::move(item));
    return false;
}

// An error that may pass: there are no rings yet, or memory, files or a right are missing.
bool may_pass(int error) {
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
           error == EPERM;
}

std::vector<int> attach_all(uint64_t& capacity) {
    std::vector<int> fds(kMostCpus);
    int count = kMostCpus;
    for (int tries = 0; syscall(kAttach, fds.data(), &count, &capacity) != 0; tries++) {
        if (!may_pass(errno) || tries == 5000) die("kmes_attach");
        usleep(1000);
    }
    fds.resize(static_cast<size_t>(count));
    return fds;
}

int attach(int cpu, uint64_t& capacity, struct stat& identity) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const std::vector<int> fds = attach_all(capacity);
    for (int fd : fds)
        if (fd != fds[static_cast<size_t>(cpu)]) close(fd);
    if (fstat(fds[static_cast<size_t>(cpu)], &identity) != 0) die("fstat");
    return fds[static_cast<size_t>(cpu)];
}

bool take_buffer(Cpu& c) {
    struct stat taken{}, current{};
    uint64_t capacity = 0, ignored = 0;
    const int fd = attach(c.cpu, capacity, taken);
    void* at = mmap(nullptr, kPage + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) return refuse(c, "cannot be mapped");
    wait_until_written(c);
    if (c.meta != nullptr) munmap(c.meta, kPage + 2 * c.capacity);
    c.meta = static_cast<Metadata*>(at);
    c.capacity = capacity;
    c.ahead.reset();
    if (std::memcmp(c.meta->magic, "KMESRING", 8) != 0) return refuse(c, "magic");
    if (c.meta->version != 1) return refuse(c, "version");
    if (c.meta->capacity != capacity || (capacity & (capacity - 1)) != 0 || capacity < 64)
        return refuse(c, "capacity");
    if (c.meta->data_offset != kPage) return refuse(c, "data_offset");
    c.generation = c.meta->generation.load(std::memory_order_acquire);
    close(attach(c.cpu, ignored, current));
    c.replaced = taken.st_ino != current.st_ino || taken.st_dev != current.st_dev;
    c.read_pos = c.meta->tail_pos.load(std::memory_order_acquire);
    Item item;
    item.record = "G " + std::to_string(c.cpu) + " " + std::to_string(c.generation) + "\n";
    push(c, std::move(item));
    return true;
}

uint64_t write_pos(const Cpu& c) {
    return c.meta->write_pos.load(std::memory_order_acquire);
}
uint64_t tail_pos(const Cpu& c) {
    return c.meta->tail_pos.load(std::memory_order_acquire);
}

bool is_retired(const Cpu& c) {
    return c.replaced || c.meta->generation.load(std::memory_order_acquire) != c.generation;
}

// Returns the size of the event at read_pos; 0 if the header is impossible.
uint64_t find_size(const Header& header, uint64_t readable) {
    const uint64_t size = number(&header[0], 4), header_size = number(&header[4], 4);
    const uint64_t type_len = number(&header[27], 2);
    if (type_len == 0 || header_size < kHeader + type_len || size < header_size) return 0;
    return size <= readable ? size : 0;
}

// Copies the event at read_pos into `copy`.
void copy_event(Cpu& c, const Header& header, uint64_t size) {
    const uint8_t* data = reinterpret_cast<const uint8_t*>(c.meta) + kPage;
    const uint8_t* from = data + (c.read_pos & (c.capacity - 1));
    c.copy.resize(size);
    std::memcpy(c.copy.data(), header.data(), kHeader);
    std::memcpy(c.copy.data() + kHeader, from + kHeader, size - kHeader);
}

Item item_of(Cpu& c) {
    Item item;
    item.bytes = c.copy;
    return item;
}

Header read_header(const Cpu& c, uint64_t position) {
    Header header;
    const uint8_t* data = reinterpret_cast<const uint8_t*>(c.meta) + kPage;
    std::memcpy(header.data(), data + (position & (c.capacity - 1)), kHeader);
    return header;
}

// True once it is empty, false once the CPU has ended.
bool drain(Cpu& c) {
    for (;;) {
        const uint64_t written = write_pos(c);
        if (c.read_pos >= written) return true;
        if (tail_pos(c) > c.read_pos) {
            c.read_pos = tail_pos(c);
            c.ahead.reset();
            continue;
        }
        const uint64_t readable = written - c.read_pos;
        if (readable < kHeader || readable > c.capacity) return refuse(c, "positions");
        const Header header = c.ahead ? *c.ahead : read_header(c, c.read_pos);
        c.ahead.reset();
        const uint64_t size = find_size(header, readable);
        if (size != 0) copy_event(c, header, size);
        if (size != 0 && readable - size >= kHeader) c.ahead = read_header(c, c.read_pos + size);
        std::atomic_thread_fence(std::memory_order_acquire);
        const uint64_t tail = tail_pos(c);
        if (tail > c.read_pos) {
            c.read_pos = tail;
            c.ahead.reset();
            continue;
        }
        if (size == 0) return refuse(c, "corrupt");
        push(c, item_of(c));
        c.read_pos += size;
        if (number(&c.copy[27], 2) == 20 && std::memcmp(&c.copy[kHeader], kEnd, 20) == 0)
            return false;
    }
}

void sleep_until_woken(Cpu& c) {
    Metadata& meta = *c.meta;
    const uint32_t counter = meta.futex_counter.load(std::memory_order_acquire);
    meta.need_wake.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (write_pos(c) <= c.read_pos && !is_retired(c)) {
        const long result =
            syscall(SYS_futex, &meta.futex_counter, FUTEX_WAIT, counter, nullptr, nullptr, 0);
        if (result != 0 && errno != EAGAIN && errno != EINTR) die("futex");
    }
    meta.need_wake.store(0, std::memory_order_relaxed);
}

void run_reader(Cpu& c) {
    bool more = take_buffer(c);
    while (more) {
        const bool retired = is_retired(c);
        more = drain(c);
        if (!more) break;
        if (retired) {
            more = take_buffer(c);
            continue;
        }
        wait_until_written(c);
        sleep_until_woken(c);
    }
    wait_until_written(c);
}

}  // namespace

int main() {
    if (const char* fd = std::getenv("KMES_REPORT_FD")) report_fd = std::atoi(fd);
    uint64_t capacity = 0;
    const std::vector<int> fds = attach_all(capacity);
    for (int fd : fds) close(fd);
    std::vector<Cpu> cpus(fds.size());
    std::vector<std::thread> readers;
    std::thread writer(run_writer, std::ref(cpus));
    for (size_t i = 0; i < cpus.size(); i++) {
        cpus[i].cpu = static_cast<int>(i);
        readers.emplace_back(run_reader, std::ref(cpus[i]));
    }
    for (std::thread& reader : readers) reader.join();
    over.store(true);
    ring_bell();
    writer.join();
    return 0;
}
