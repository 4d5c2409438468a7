/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One CPU's producer in a test: its buffers in memory, a clock that the test sets, and the queued
 * wakes. Also the attach functions of a reader in the same process. Hooked build only.
 */
#ifndef KMES_TESTS_WORLD_H
#define KMES_TESTS_WORLD_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/tests/hooks.h"
#include "kmes/tests/ring_memory.h"
#include "kmes/tests/sizes.h"

namespace kmes::tests {

/* A buffer with the memory that belongs to it. */
struct TestBuffer {
    RingMemory memory;
    std::vector<kmes_boundary> index;
    kmes_buffer buffer;
    std::uint64_t inode;

    TestBuffer(std::uint64_t capacity_bytes, std::uint64_t generation, std::uint64_t start_pos,
               std::uint16_t cpu_id, std::uint64_t inode_number);
    ~TestBuffer();

    std::vector<std::uint8_t> page() const { return memory.page_bytes(); }

    /* The data from the tail to the frontier, in order. */
    std::vector<std::uint8_t> survivors() const;

    std::uint64_t shared_write_pos() const { return *buffer.shared.write_pos; }
    std::uint64_t shared_tail_pos() const { return *buffer.shared.tail_pos; }
};

struct WorldSetup {
    std::uint64_t capacity_bytes = 256_b;
    std::uint64_t start_pos = 0;
    std::uint64_t generation = 1;
    std::uint64_t last_sequence = 0;
    std::uint16_t cpu_id = 0;
};

class World {
  public:
    explicit World(const WorldSetup& setup);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    /* -- The producer -- */

    int emit(const std::string& type, const std::string& payload,
             std::uint8_t origin_class = KMES_ORIGIN_USERSPACE);

    /* Emits an event of exactly `event_bytes` with a type of one byte. Each byte of its payload
     * is the low byte of its sequence number. */
    int emit_sized(std::uint64_t event_bytes);
    int batch_emit_sized(const kmes_batch& batch, std::uint64_t event_bytes);

    /* A fresh buffer that nothing uses yet. */
    TestBuffer& make_buffer(std::uint64_t capacity_bytes);

    int swap(std::uint64_t capacity_bytes, enum kmes_swap_positions positions = KMES_SWAP_KEEP,
             std::uint64_t shift_bytes = 0);

    TestBuffer& current();
    TestBuffer& first() { return *buffers.front(); }
    TestBuffer& buffer_of(const kmes_buffer* buffer);

    /* The number of queued wakes for `buffer`. */
    std::size_t wakes_of(const TestBuffer& buffer) const;

    /* -- A reader -- */

    kmes_reader_config reader_config();

    kmes_platform platform{};
    kmes_cpu cpu{};
    std::uint64_t now_ns = 1000;
    std::vector<const kmes_buffer*> wakes;
    std::vector<std::unique_ptr<TestBuffer>> buffers;

    /* Called when the core reads the time, before it gets it. */
    std::function<void()> on_clock;
    /* The effect of a sleep; without it a sleep is interrupted at once. */
    std::function<int(std::uint32_t* word, std::uint32_t expected, std::uint64_t timeout_ns)>
        on_sleep;
    /* The answers of attach and identify; if empty, the default answers. */
    std::function<int(kmes_mapping*)> on_attach;
    std::function<int(kmes_mapping*)> on_identify;
    int attaches = 0;
    int detaches = 0;
    std::uint64_t session = 0;

    /* The default answer of attach and identify. */
    void describe_current(kmes_mapping* mapping);

  private:
    std::uint64_t next_inode_ = 100;
};

/* A copied delivery of a reader. */
struct Delivered {
    std::uint64_t sequence;
    std::uint64_t timestamp;
    std::uint64_t lost_before;
    std::uint16_t cpu_id;
    std::uint8_t origin_class;
    std::string type;
    std::string payload;

    static Delivered from(const kmes_event_view& view);
};

/* Whether the payload is that of emit_sized for this sequence number. */
bool is_self_describing(const Delivered& event);

}  // namespace kmes::tests

#endif
