// SPDX-License-Identifier: MIT
//
// See futex_counters.h.
#include "conformance/stage/futex_counters.h"

#include <cstring>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

std::uint32_t FutexCounters::of(BufferIndex buffer) const {
    const auto found = rewound_.find(buffer);
    return found == rewound_.end() ? backend_.state(buffer).futex_counter : found->second;
}

void FutexCounters::note_emission(std::uint32_t cpu, std::uint64_t sequence) {
    const BufferIndex buffer = history_.current_buffer(cpu);
    const std::uint32_t now = of(buffer);
    if (counted_.size() <= cpu) counted_.resize(cpu + 1);
    Counted& last = counted_[cpu];
    if (last.buffer != buffer) last = {buffer, buffer < history_.cpus() ? first_ : 0, 0};
    if (last.counter != now) last = {buffer, now, sequence};
}

bool FutexCounters::is_counted_before(std::uint32_t cpu, std::uint64_t sequence,
                                      std::uint32_t expected) const {
    if (cpu >= counted_.size()) return false;
    const Counted& last = counted_[cpu];
    return last.buffer == history_.current_buffer(cpu) && last.sequence >= sequence &&
           last.counter == expected;
}

void FutexCounters::rewind(BufferIndex buffer, std::uint32_t value) {
    put(buffer, value);
    rewound_[buffer] = value;
}

bool FutexCounters::catch_up(BufferIndex buffer) {
    if (rewound_.erase(buffer) == 0) return false;
    put(buffer, of(buffer));
    return true;
}

void FutexCounters::put(BufferIndex buffer, std::uint32_t value) {
    std::uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    backend_.write(buffer, kFutexCounterOffset, bytes);
}

}  // namespace kmes::conformance
