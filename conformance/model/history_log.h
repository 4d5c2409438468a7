// SPDX-License-Identifier: MIT
//
// The operations that a History was told, in order: enough to make it again (history_from, in
// history.h), and so to judge a run again without a testee. Plain data, small enough to be kept of
// every run; knows no file format.
#ifndef KMES_CONFORMANCE_MODEL_HISTORY_LOG_H_
#define KMES_CONFORMANCE_MODEL_HISTORY_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/event_spec.h"
#include "conformance/model/operations.h"

namespace kmes::conformance {

enum class OperationKind : std::uint8_t {
    emit,
    drop,
    reserve,
    batch_begin,
    batch_add,
    batch_end,
    swap,
    hand_over,
    nudge,
    spurious_wake,
    set_fault,
    tolerate,
    note_attached,
    note_draining,
    checkpoint_idle,
    outrun,
};

// "emit", "batch_add": as they are called in History.
std::string_view operation_name(OperationKind kind);

// Bytes of an event, without a copy where generate_payload() made them.
struct LoggedBytes {
    std::uint64_t where = 0;  // in HistoryLog::bytes; of generated ones: the seed
    std::uint32_t length = 0;
    bool generated = false;
};

// One call. Fields that its kind does not have are as they are here.
struct LoggedOperation {
    OperationKind kind = OperationKind::emit;
    EmitStyle style = EmitStyle::kernel;    // emit, batch_add
    std::uint8_t origin = 0;                // emit, batch_add
    BufferFault fault = BufferFault::none;  // set_fault
    std::uint32_t cpu = 0;                  // all that are about a CPU
    BufferIndex buffer = 0;                 // all that are about a buffer
    std::uint64_t report_bytes = 0;         // what set_report_bytes had said before it
    std::uint64_t timestamp = 0;            // emit, batch_add
    std::uint64_t checkpoint_bytes = 0;     // checkpoint_idle: its report_bytes
    std::uint64_t room_bytes = 0;           // reserve
    Written written = Written::whole;       // reserve, batch_begin
    std::uint32_t written_event = 0;        // batch_begin: see BatchWritten
    std::uint64_t laps = 0;                 // outrun
    std::uint64_t events = 0;               // outrun: 0 says two a lap
    LoggedBytes type = {};                  // emit, batch_add
    LoggedBytes extra_header = {};          // emit, batch_add
    LoggedBytes payload = {};               // emit, batch_add
    LoggedBytes detail = {};                // set_fault
    SwapSpec swap = {};                     // swap, hand_over
};

struct HistoryLog {
    // A run with more operations, or more bytes that are not generated, is not kept: complete
    // becomes false, and the operations and bytes are given back.
    static constexpr std::size_t kMaximumOperations = 500'000;
    static constexpr std::size_t kMaximumBytes = std::size_t{32} << 20;
    static constexpr std::uint64_t kMaximumKeptPayloadBytes = std::uint64_t{128} << 20;

    HistorySettings settings;
    std::uint64_t kept_payload_bytes = kMaximumKeptPayloadBytes;  // set_kept_payload_bytes
    std::uint64_t report_bytes = 0;                               // set_report_bytes, in the end
    std::vector<LoggedOperation> operations;
    std::string bytes;  // what LoggedBytes point into
    bool complete = true;

    void add(const LoggedOperation& operation);
    void add_event(LoggedOperation operation, const EventSpec& spec);
    // `last` is used again where it says the same: most events of a run have the same type.
    LoggedBytes keep(std::string_view text, const LoggedBytes& last = {});

    // The bytes that are meant; std::out_of_range if they are not all there.
    std::string text(const LoggedBytes& logged) const;
    EventSpec event(const LoggedOperation& operation) const;

  private:
    LoggedBytes last_type_;
    LoggedBytes last_extra_header_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_HISTORY_LOG_H_
