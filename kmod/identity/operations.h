// SPDX-License-Identifier: GPL-2.0-only
//
// The functions of the core's producer (kmes/ring.h, kmes/call.h). Counts how often each was played
// on both sides, by its result. A run fails if it has not played all of them.
#ifndef KMES_KMOD_IDENTITY_OPERATIONS_H_
#define KMES_KMOD_IDENTITY_OPERATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace kmes::identity {

// X(function of the core); core_operations_test.sh compares the list with the two headers.
#define KMES_IDENTITY_CORE(X)  \
    X(kmes_buffer_init)        \
    X(kmes_cpu_init)           \
    X(kmes_cpu_emit)           \
    X(kmes_cpu_emit_call)      \
    X(kmes_reserve)            \
    X(kmes_reservation_fill)   \
    X(kmes_commit)             \
    X(kmes_abandon)            \
    X(kmes_batch_begin)        \
    X(kmes_batch_emit)         \
    X(kmes_batch_emit_call)    \
    X(kmes_batch_emit_entries) \
    X(kmes_batch_end)          \
    X(kmes_swap_begin)         \
    X(kmes_swap_copy)          \
    X(kmes_swap_finish)        \
    X(kmes_swap_run)           \
    X(kmes_buffer_nudge)       \
    X(kmes_cpu_retire)         \
    X(kmes_call_emit)          \
    X(kmes_call_emit_batch)

#define KMES_IDENTITY_ENUMERATOR(name) name##_called,
enum CoreOperation : std::size_t { KMES_IDENTITY_CORE(KMES_IDENTITY_ENUMERATOR) kCoreOperations };
#undef KMES_IDENTITY_ENUMERATOR

class OperationTable {
  public:
    void count(CoreOperation operation, std::int64_t result) { times_[operation][result]++; }
    std::uint64_t times(CoreOperation operation) const;
    void add(const OperationTable& other);
    // Prints one line for each operation: how often it was played, and how often with each result.
    void print() const;
    // Returns whether each operation was played. Prints a line for each that was not.
    bool is_complete() const;

  private:
    std::array<std::map<std::int64_t, std::uint64_t>, kCoreOperations> times_;
};

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_OPERATIONS_H_
