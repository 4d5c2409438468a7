// SPDX-License-Identifier: MIT
//
// Makes a history again from its log. Knows no file format.
#include <algorithm>
#include <stdexcept>

#include "conformance/oracle/history.h"

namespace kmes::conformance {
namespace {

// The most events that all swaps of one log may copy: more than in any run.
constexpr std::uint64_t kMaximumCopied = 4'000'000;
// The size of all events of one log: more than ten laps of the largest buffer.
constexpr std::uint64_t kMaximumEventBytes = std::uint64_t{4} << 30;
// The number of unseen laps in one log.
constexpr std::uint64_t kMaximumLaps = 400'000;
constexpr int kMaximumOutrunsByNumber = 10'000;

void require_bounded_events(const HistoryLog& log) {
    std::uint64_t bytes = 0;
    std::uint64_t laps = 0;
    int by_number = 0;
    for (const LoggedOperation& operation : log.operations) {
        bytes += operation.payload.length;
        if (operation.events != 0) {  // these are not listed
            ++by_number;
            continue;
        }
        laps = std::max(laps, operation.laps) > kMaximumLaps ? kMaximumLaps + 1
                                                             : laps + operation.laps;
    }
    if (bytes > kMaximumEventBytes)
        throw std::invalid_argument("the events have more bytes than those of any run");
    if (laps > kMaximumLaps || by_number > kMaximumOutrunsByNumber)
        throw std::invalid_argument("a consumer is outrun by more laps than in any run");
}

class HistoryMaker {
  public:
    HistoryMaker(const HistoryLog& log, History& history, std::uint64_t most_payload_bytes)
        : log_(log), history_(history), most_payload_bytes_(most_payload_bytes) {}

    void apply(const LoggedOperation& operation) {
        history_.set_report_bytes(operation.report_bytes);
        switch (operation.kind) {
            case OperationKind::emit:
            case OperationKind::batch_add:
                return emit(operation);
            case OperationKind::drop:
                history_.drop(operation.cpu);
                return;
            case OperationKind::reserve:
                return history_.reserve(operation.cpu, operation.room_bytes, operation.written);
            case OperationKind::batch_begin:
                return history_.batch_begin(operation.cpu,
                                            {operation.written, operation.written_event});
            case OperationKind::batch_end:
                return history_.batch_end(operation.cpu);
            case OperationKind::swap:
            case OperationKind::hand_over:
                return swap(operation);
            case OperationKind::nudge:
                return history_.nudge(operation.buffer);
            case OperationKind::spurious_wake:
                return history_.spurious_wake(operation.buffer);
            case OperationKind::set_fault:
                return history_.set_fault(operation.buffer, operation.fault,
                                          log_.text(operation.detail));
            case OperationKind::tolerate:
                return history_.tolerate(operation.cpu);
            case OperationKind::note_attached:
                return history_.note_attached(operation.buffer);
            case OperationKind::note_draining:
                return history_.note_draining(operation.buffer);
            case OperationKind::checkpoint_idle:
                return history_.checkpoint_idle(operation.cpu, operation.buffer,
                                                operation.checkpoint_bytes);
            case OperationKind::outrun:
                return history_.outrun(operation.cpu, operation.laps, operation.events);
        }
        throw std::invalid_argument("there is no such operation");
    }

  private:
    void emit(const LoggedOperation& operation) {
        if (history_.payload_bytes_in_memory() + operation.payload.length > most_payload_bytes_)
            throw std::invalid_argument("the buffers hold more bytes than those of any run");
        const EventSpec spec = log_.event(operation);
        if (operation.kind == OperationKind::emit)
            history_.emit(operation.cpu, spec, operation.style);
        else
            history_.batch_add(operation.cpu, spec, operation.style);
    }

    void swap(const LoggedOperation& operation) {
        const Buffer& old = history_.buffer(history_.current_buffer(operation.cpu));
        copied_ += old.placements.size() - old.tail_index;
        if (copied_ > kMaximumCopied)
            throw std::invalid_argument("the swaps copy more events than those of any run");
        if (operation.kind == OperationKind::swap)
            history_.swap(operation.cpu, operation.swap);
        else
            history_.hand_over(operation.cpu, operation.swap);
    }

    const HistoryLog& log_;
    History& history_;
    std::uint64_t most_payload_bytes_;  // in memory
    std::uint64_t copied_ = 0;
};

}  // namespace

History history_from(const HistoryLog& log, std::uint64_t most_payload_bytes_in_memory) {
    if (!log.complete)
        throw std::invalid_argument("the log is not complete: the run had too many operations");
    require_bounded_events(log);
    History history(log.settings);
    history.set_kept_payload_bytes(log.kept_payload_bytes);
    HistoryMaker maker(log, history, most_payload_bytes_in_memory);
    for (std::size_t i = 0; i < log.operations.size(); ++i) {
        try {
            maker.apply(log.operations[i]);
        } catch (const std::exception& error) {
            throw std::invalid_argument("operation " + std::to_string(i) + " (" +
                                        std::string(operation_name(log.operations[i].kind)) +
                                        "): " + error.what());
        }
    }
    history.set_report_bytes(log.report_bytes);
    return history;
}

}  // namespace kmes::conformance
