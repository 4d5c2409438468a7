// SPDX-License-Identifier: GPL-2.0-only
//
// One of the two sides that play the same operations: the producer in this process, or an instance
// of the module. Both take the operations of kmod/uapi/linux/kmes_test.h, whose addresses are those
// of this process. A buffer is identified by its index among those of its CPU, from 0.
#ifndef KMES_KMOD_IDENTITY_SIDE_H_
#define KMES_KMOD_IDENTITY_SIDE_H_

#include <linux/kmes_test.h>

#include <cstdint>
#include <span>

namespace kmes::identity {

struct InstanceOptions {
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
    // Returns the result of the core, also in operation.result. Throws std::system_error if the
    // operation could not be executed at all.
    virtual std::int64_t operate(kmes_test_operation& operation) = 0;
    virtual kmes_test_state state(unsigned cpu) = 0;
    // Returns the whole mapping of a buffer.
    virtual std::span<std::uint8_t> mapping(unsigned cpu, std::size_t buffer) = 0;
    // Call it after a swap, which has given the CPU one more buffer.
    virtual void take_new_buffer(unsigned cpu) = 0;
};

inline std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_SIDE_H_
