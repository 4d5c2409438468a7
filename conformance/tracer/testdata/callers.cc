// SPDX-License-Identifier: MIT
//
// A testee for calls_test: it accesses a buffer through functions of each kind. A comment at the
// end of a line is the text that the test expects. `*` matches any name.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

struct Ring {
    char* base;
    __attribute__((noinline)) uint64_t field(int offset) const;
};

enum { kGeneration = 40, kWritePos = 64, kTailPos = 72, kMetadataBytes = 4096 };

static inline uint64_t load(const uint64_t* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

__attribute__((noinline)) uint64_t load_out_of_line(const uint64_t* from) {
    const uint64_t value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
    return value;
}

// Takes an object, and reads two fields.
uint64_t Ring::field(int offset) const {
    return __atomic_load_n(reinterpret_cast<uint64_t*>(base + offset), __ATOMIC_RELAXED);
}

// As short as an accessor, but for one field only.
__attribute__((noinline)) bool is_replaced(const Ring* ring) {
    const char* generation = ring->base + kGeneration;
    return load(reinterpret_cast<const uint64_t*>(generation)) != 0;  // is_replaced via load
}

volatile uint64_t sum;
#define add(value) sum = sum + (value)
volatile size_t copied_bytes = 200;

__attribute__((noinline)) void drain(const Ring* ring) {
    auto* positions = reinterpret_cast<uint64_t*>(ring->base + kWritePos);
    auto* atomics = reinterpret_cast<std::atomic<uint64_t>*>(positions);
    char copy[256];
    add(atomics->load(std::memory_order_acquire));     // drain via load
    add(load(positions));                              // drain via load
    add(load(positions + 1));                          // drain via load
    add(load_out_of_line(positions));                  // drain via load_out_of_line
    add(load_out_of_line(positions + 1));              // drain via load_out_of_line
    add(ring->field(kWritePos));                       // drain via field
    add(ring->field(kTailPos));                        // drain via field
    add(*static_cast<volatile uint64_t*>(positions));  // drain
    add(is_replaced(ring) ? 1 : 0);
    memcpy(copy, ring->base + kMetadataBytes, copied_bytes);  // drain via *
    add(static_cast<unsigned char>(copy[sum & 0xff]));
}

struct Buffers {
    int fds[64];
    int count;
    uint64_t capacity;
};

// Wraps a system call, and takes an object.
__attribute__((noinline)) bool attach(Buffers* buffers) {
    return syscall(1091, buffers->fds, &buffers->count, &buffers->capacity) == 0;
}

}  // namespace

int main() {
    Buffers buffers = {};
    buffers.count = 64;
    if (!attach(&buffers)) return 3;
    void* at = mmap(nullptr, kMetadataBytes + 2 * buffers.capacity, PROT_READ | PROT_WRITE,
                    MAP_SHARED, buffers.fds[0], 0);
    if (at == MAP_FAILED) return 4;
    const Ring ring = {static_cast<char*>(at)};
    drain(&ring);
    return 0;
}
