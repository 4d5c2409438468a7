// SPDX-License-Identifier: MIT
//
// The findings of the driver. (The judge makes those that follow from the records.) These functions
// make them, so that all messages are formatted in one place. Knows no process and no memory.
#ifndef KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_
#define KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/model/finding.h"

namespace kmes::conformance {

// The clause of a fault that may have any reason: that of what the case stages (`of_case`). It is
// `otherwise` where no case is known ("contract"), or where the case is about mapping or falling
// asleep, which this fault is not about.
std::string_view clause_by_situation(std::string_view of_case, std::string_view otherwise);

// The last event of a CPU that was delivered.
struct LastDelivery {
    std::uint64_t sequence = 0;  // 0: none was
    std::string type;
};

// The text for a buffer that had to be refused and was not; `fault` names the reason.
std::string not_refused_text(std::string_view fault);

// The last delivery of a CPU: the consumer may have left the CPU after an event that it took for
// the end event.
std::string last_delivery_text(const LastDelivery& last);

// What a thread that sleeps for ever waits on.
struct WaitDescription {
    std::int32_t thread = 0;
    bool on_futex = false;             // false: blocked in something else, which `where` names
    std::string where;                 // "futex", "read", ...
    std::optional<std::uint32_t> cpu;  // of the buffer that the word lies in; none: not in a buffer
    std::uint64_t mapping_offset = 0;  // of the word in that buffer
    std::uint32_t expected = 0;
    std::uint32_t present = 0;    // in the word now
    bool is_private = false;      // E17
    bool retired_buffer = false;  // E3, E19: it sleeps on a buffer that was swapped out
    bool counted_before = false;  // E2: `expected` was read after the event that it sleeps through
    // All loads of the word were seen, and none returned `expected`: the value of the last one.
    std::optional<std::uint32_t> read_instead;
    // The event was in the buffer when the thread's last iteration began, after the wait before
    // this one or after the mmap: no race, it was not read.
    bool was_there = false;
    // The thread's wait before this one was refused by the kernel (EAGAIN).
    bool was_refused = false;
    bool was_seen = false;            // write_pos was read after the publication
    bool asked = true;                // need_wake of that buffer is 1 now (5.1.8.2 step 1)
    bool others_wait = false;         // not on_futex: threads do wait, on the words of other CPUs
    LastDelivery delivered;           // of this CPU
    std::string clause = "contract";  // of what the case stages
};

// "thread 12 waits for a change of futex_counter from 2 (now 2)".
std::string wait_text(const WaitDescription& wait);

// 5.1.8.2, E1, E2, E3, E17, E19: asleep although `sequence` is published and not delivered. The
// clause is picked by what the thread waits on. If the thread had a whole iteration for the event,
// it is that of the case, because the thread may have missed the event for any reason.
Finding lost_wake_up(std::uint32_t cpu, std::uint64_t sequence, const WaitDescription& wait);

// 5.1.8.3, E3: everything is delivered, and the consumer sleeps on a retired buffer, where no event
// of the new one will wake it. `wait.was_there`: the swap was before its last iteration.
Finding asleep_on_retired(std::uint32_t cpu, const WaitDescription& wait);

// The end event was delivered everywhere (or nothing is left to deliver), and the consumer runs on.
// `evidence` says how long it had, or that it is blocked.
Finding never_ended(std::string_view evidence);

// It exited although CPUs had not ended. `missing` names them.
Finding ended_too_early(int exit_status, std::string_view missing);
Finding wrong_exit_status(int exit_status);

// Killed by a signal that the suite did not send. `where`: instruction or address, may be empty.
Finding crash(int signal, std::string_view signal_name, std::string_view where);

// A store outside byte 132 (contract). `instruction` may be empty; `bytes` 0: only what came of it
// was seen, and begins here.
Finding write_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                      std::string_view instruction);

// A load outside the mapping, or from its hidden part.
Finding read_outside(std::uint32_t cpu, std::uint64_t mapping_offset, std::uint32_t bytes,
                     std::string_view instruction);

// A store of `bytes` bytes to `mapping_offset` with this value, checked against the contract: 0 or
// 1 at byte 132, a 32-bit one writes zeros to bytes 133 to 135. Nothing: it is right.
std::optional<Finding> judge_store(std::uint32_t cpu, std::uint64_t mapping_offset,
                                   std::uint32_t bytes, std::uint64_t value,
                                   std::string_view instruction);

// Bytes 132 to 135 as found in memory, where single stores are not seen. Nothing: right.
std::optional<Finding> judge_need_wake_bytes(std::uint32_t cpu, const std::uint8_t bytes[4]);

// mmap of a ring fd in another way than the contract says. `what` says which, and what is right.
Finding wrong_mapping(std::uint32_t cpu, std::string_view what);

// Anything else that the contract forbids.
Finding contract_finding(std::string_view message);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_DRIVER_FINDINGS_H_
