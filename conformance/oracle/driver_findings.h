// SPDX-License-Identifier: MIT
//
// Makes the findings of the driver, so that all messages have one format. (The judge makes the
// findings that follow from the records.) Knows no process and no memory.
#ifndef KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_
#define KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/model/finding.h"

namespace kmes::conformance {

// The clause of a fault that may have any reason: that of the case (`of_case`). Returns `otherwise`
// for an unknown case ("contract"), and for a case about mapping or falling asleep, which cannot be
// the reason.
std::string_view clause_by_situation(std::string_view of_case, std::string_view otherwise);

// The last delivered event of a CPU.
struct LastDelivery {
    std::uint64_t sequence = 0;  // 0: none was
    std::string type;
};

// The text for a buffer that the consumer should have refused but did not; `fault` names the
// reason.
std::string not_refused_text(std::string_view fault);

// Describes the last delivery of a CPU: the consumer may have left the CPU because it took this
// event for the end event.
std::string last_delivery_text(const LastDelivery& last);

// The wait of a thread that sleeps forever.
struct WaitDescription {
    std::int32_t thread = 0;
    bool on_futex = false;  // false: blocked in the call that `where` names
    std::string where;      // "futex", "read", ...
    // The CPU of the buffer with the word; none: the word is in no buffer.
    std::optional<std::uint32_t> cpu;
    std::uint64_t mapping_offset = 0;  // of the word in that buffer
    std::uint32_t expected = 0;
    std::uint32_t current_value = 0;  // of the word
    bool is_private = false;          // E17
    bool retired_buffer = false;      // E3, E19: the thread sleeps on a buffer that was swapped out
    // E2: `expected` was read after the event that the thread missed. On a retired buffer: after
    // the last load of generation, which was a part of the re-check.
    bool counted_before = false;
    // Set if all loads of the word were seen, and none returned `expected`: the value of the last
    // load.
    std::optional<std::uint32_t> read_instead;
    // The event was in the buffer when the thread's last iteration began, after the wait before
    // this one or after the mmap. So no race explains why the thread did not read it.
    bool was_there = false;
    // The kernel refused the thread's wait before this one (EAGAIN).
    bool was_refused = false;
    bool was_seen = false;            // write_pos was read after the publication
    bool asked = true;                // need_wake of that buffer is 1 now (5.1.8.2 step 1)
    bool others_wait = false;         // if not on_futex: threads wait on the words of other CPUs
    LastDelivery delivered;           // of this CPU
    std::string clause = "contract";  // of the case
};

// "thread 12 waits for a change of futex_counter from 2 (now 2)".
std::string wait_text(const WaitDescription& wait);

// 5.1.8.2, E1, E2, E3, E17, E19: the consumer sleeps although `sequence` is published and not
// delivered. The word that the thread waits on determines the clause. If the thread had a whole
// iteration for the event, the clause is that of the case. It may have missed the event for any
// reason.
Finding lost_wake_up(std::uint32_t cpu, std::uint64_t sequence, const WaitDescription& wait);

// 5.1.8.3, E3: everything is delivered, and the consumer sleeps on a retired buffer, where no event
// of the new one will wake it. `wait.was_there`: the swap happened before the thread's last
// iteration.
Finding asleep_on_retired(std::uint32_t cpu, const WaitDescription& wait);

// The consumer does not exit although the end event was delivered everywhere, or nothing is left to
// deliver. `evidence` says how long it had, or what blocks it.
Finding never_ended(std::string_view evidence);

// The consumer exited before all CPUs had ended. `missing` names the others.
Finding ended_too_early(int exit_status, std::string_view missing);
Finding wrong_exit_status(int exit_status);

// A signal that the suite did not send killed the consumer. `where` is an instruction or address;
// may be empty.
Finding crash(int signal, std::string_view signal_name, std::string_view where);

// A store outside byte 132 (contract). `instruction` may be empty. `bytes` 0: only the changed
// bytes were seen, from `mapping_offset` on.
Finding write_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                      std::string_view instruction);

// A load outside of the mapping, or from its hidden part.
Finding read_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                     std::string_view instruction);

// Whether the contract permits a store of `bytes` bytes there: one byte or 32 bits at need_wake.
// Its value is seen in memory only, after the store.
bool is_permitted_store(std::uint64_t mapping_offset, std::uint32_t bytes);

// Checks bytes 132 to 135 in memory: 0 or 1 in need_wake, and zeros after it. Returns nothing if
// they are correct.
std::optional<Finding> judge_need_wake_bytes(std::uint32_t cpu, const std::uint8_t bytes[4]);

// An mmap of a ring fd that differs from the contract. `what` names the difference and what is
// correct.
Finding wrong_mapping(std::uint32_t cpu, std::string_view what);

// Any other violation of the contract.
Finding contract_finding(std::string_view message);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_
