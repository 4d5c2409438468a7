// SPDX-License-Identifier: MIT
//
// The log of a History, stored compactly.
#include "conformance/model/history_log.h"

#include <stdexcept>

namespace kmes::conformance {

std::string_view operation_name(OperationKind kind) {
    switch (kind) {
        case OperationKind::emit:
            return "emit";
        case OperationKind::drop:
            return "drop";
        case OperationKind::reserve:
            return "reserve";
        case OperationKind::batch_begin:
            return "batch_begin";
        case OperationKind::batch_add:
            return "batch_add";
        case OperationKind::batch_end:
            return "batch_end";
        case OperationKind::swap:
            return "swap";
        case OperationKind::hand_over:
            return "hand_over";
        case OperationKind::nudge:
            return "nudge";
        case OperationKind::spurious_wake:
            return "spurious_wake";
        case OperationKind::set_fault:
            return "set_fault";
        case OperationKind::tolerate:
            return "tolerate";
        case OperationKind::note_attached:
            return "note_attached";
        case OperationKind::note_draining:
            return "note_draining";
        case OperationKind::checkpoint_idle:
            return "checkpoint_idle";
        case OperationKind::outrun:
            return "outrun";
    }
    return "";
}

void HistoryLog::add(const LoggedOperation& operation) {
    if (!complete) return;
    if (operations.size() >= kMaximumOperations) {
        give_up();
        return;
    }
    operations.push_back(operation);
    operations.back().report_bytes = report_bytes;
}

void HistoryLog::add_event(LoggedOperation operation, const EventSpec& spec) {
    if (!complete) return;
    operation.timestamp = spec.timestamp;
    operation.origin = spec.origin;
    operation.type = last_type_ = keep(spec.type, last_type_);
    operation.extra_header = last_extra_header_ = keep(spec.extra_header, last_extra_header_);
    if (spec.payload_seed && is_generated(spec.payload, *spec.payload_seed)) {
        operation.payload = {*spec.payload_seed, static_cast<std::uint32_t>(spec.payload.size()),
                             true};
    } else {
        operation.payload = keep(spec.payload);
    }
    add(operation);
}

LoggedBytes HistoryLog::keep(std::string_view text, const LoggedBytes& last) {
    if (!complete || text.empty()) return {};
    const std::string_view kept = bytes;
    if (last.where <= kept.size() && kept.substr(last.where, last.length) == text) return last;
    const std::uint64_t where = bytes.size();
    if (where + text.size() > kMaximumBytes) {
        give_up();
        return {};
    }
    bytes.append(text);
    return {where, static_cast<std::uint32_t>(text.size()), false};
}

void HistoryLog::give_up() {
    complete = false;
    operations = {};
    bytes = {};
}

std::string HistoryLog::text(const LoggedBytes& logged) const {
    if (logged.generated) {
        std::uint64_t seed = logged.where;
        return generate_payload(seed, logged.length);
    }
    if (logged.where > bytes.size() || bytes.size() - logged.where < logged.length)
        throw std::out_of_range("bytes that the log does not have");
    return bytes.substr(logged.where, logged.length);
}

EventSpec HistoryLog::event(const LoggedOperation& operation) const {
    EventSpec spec;
    spec.type = text(operation.type);
    spec.extra_header = text(operation.extra_header);
    spec.payload = text(operation.payload);
    spec.timestamp = operation.timestamp;
    spec.origin = operation.origin;
    if (operation.payload.generated) spec.payload_seed = operation.payload.where;
    return spec;
}

}  // namespace kmes::conformance
