// SPDX-License-Identifier: GPL-2.0-only
//
// One of the two that play the same operations: the producer in this process, or a world of the
// module. Both take the operation of kmod/uapi/linux/kmes_test.h, whose addresses are this
// process's; a buffer is named by its place among those of its CPU, 0 the first.
#ifndef KMES_KMOD_IDENTITY_SIDE_H_
#define KMES_KMOD_IDENTITY_SIDE_H_

#include <linux/kmes_test.h>

#include <cstdint>
#include <span>

namespace kmes::identity {

struct WorldOptions {
    std::uint64_t capacity = 4096;
    std::uint64_t position = 0;
    std::uint64_t sequence = 0;
    std::uint64_t clock_ns = 1000000000;
    std::uint64_t clock_step_ns = 1;
    std::uint64_t max_event_size = 4096;
    unsigned cpus = 1;
    unsigned first_cpu_id = 0;
    bool is_boot = false;
};

class Side {
  public:
    virtual ~Side() = default;
    // std::system_error where the operation could not be done at all. What the core returned, also
    // in operation.result.
    virtual std::int64_t operate(kmes_test_operation& operation) = 0;
    virtual kmes_test_state state(unsigned cpu) = 0;
    // The whole mapping of a buffer: 4096 + 2 x capacity bytes.
    virtual std::span<std::uint8_t> mapping(unsigned cpu, std::size_t buffer) = 0;
    // To be called when a swap has finished: the CPU has one buffer more.
    virtual void take_new_buffer(unsigned cpu) = 0;
};

inline std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_SIDE_H_
