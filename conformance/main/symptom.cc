// SPDX-License-Identifier: MIT
//
// See symptom.h.
#include "conformance/main/symptom.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "conformance/model/step_texts.h"

namespace kmes::conformance {
namespace {

// The part of `text` between the first `begin` and the next `end`; empty: none.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
    const std::size_t at = text.find(begin);
    if (at == std::string_view::npos) return "";
    text.remove_prefix(at + begin.size());
    return std::string(text.substr(0, text.find(end)));
}

// Removes figures, which belong to one buffer or one run.
std::string without_figures(std::string text) {
    std::erase_if(text, [](char byte) { return byte >= '0' && byte <= '9'; });
    return text;
}

// "timestamp, type": the fields for which the message gives another value.
std::string wrong_fields(std::string_view message) {
    constexpr std::array<std::string_view, 5> kFields = {"timestamp", "origin", "type",
                                                         "payload length", "payload digest"};
    const std::string difference = between(message, ") with ", "; expected");
    std::string names;
    for (const std::string_view field : kFields) {
        const std::string name(field);
        const bool is_there =
            difference.starts_with(name) || difference.find(", " + name) != std::string::npos;
        if (is_there) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

// Turns "`mov` at program+0x12 (copy+0x6, c.c:9)" into "in copy": all instructions of a copy have
// one reason. A compiler's part of a function (copy.cold, copy.part.0) is the function. A place
// without the name of a function stays unchanged.
std::string place_of(const std::string& place) {
    std::string name = between(place, " (", "+0x");
    const bool is_file = name.find(')') != std::string::npos;
    name.resize(std::min(name.find('.'), name.size()));
    const auto is_of_a_name = [](unsigned char byte) {
        return std::isalnum(byte) != 0 || byte == '_' || byte == ':';
    };
    if (is_file || name.empty() || !std::ranges::all_of(name, is_of_a_name)) return "at " + place;
    return "in " + name + place.substr(std::min(place.find(';'), place.size()));
}

// In a library the place is that of the program's own call: an abort in the C library says nothing.
std::string place_of_crash(std::string_view message) {
    std::string place = between(message, ", called from ", kEvidence);
    if (place.empty()) place = between(message, ", by ", kEvidence);
    return place_of(place);
}

// The wrong field, or the first word.
std::string field_of(const std::string& fault) {
    for (const char* field : {"magic", "version", "capacity", "data_offset", "cpu_id"}) {
        if (fault.find(field) != std::string::npos) return field;
    }
    return fault.substr(0, fault.find(' '));
}

// The kind of a standstill, without its time.
std::string standstill_of(std::string_view message) {
    return std::string(kStandstillPrefix) + without_figures(between(message, "Evidence: ", ";"));
}

bool is_standstill(std::string_view message) {
    return message.find("no progress") != std::string_view::npos;
}

// The cause, whatever the clause.
std::string cause_of(const Finding& finding) {
    const std::string& message = finding.message;
    switch (finding.code) {
        case FindingCode::crash:
            return std::string(kSignalPrefix) + between(message, "signal ", ";") + " " +
                   place_of_crash(message);
        case FindingCode::ended_too_early:
        case FindingCode::wrong_exit_status:
            return std::string(kExitStatusPrefix) + between(message, "status ", ";");
        case FindingCode::misread_event:
            return std::string(kOtherRecordPrefix) + wrong_fields(message);
        case FindingCode::refused_without_reason:
            return std::string(kRefusalPrefix) +
                   without_figures(between(message, "sound buffer (", ");"));
        case FindingCode::not_refused:
        case FindingCode::delivered_from_refused:
            return std::string(kBufferKeptPrefix) +
                   field_of(between(message, "malformed buffer (", ")"));
        case FindingCode::missing_event:
            if (message.find("Evidence: ") != std::string::npos) return standstill_of(message);
            return std::string(kEventPassedOver);
        case FindingCode::lost_wake_up:
            return std::string(kSleepOnOldEvent);
        case FindingCode::contract:
            return is_standstill(message) ? standstill_of(message) : "";
        case FindingCode::write_outside: {
            const std::string place = between(message, " by `", "; expected");
            return place.empty() ? std::string(finding_name(finding.code))
                                 : std::string(kStorePrefix) + place_of("`" + place);
        }
        // A single action of the consumer is the fault, and it looks the same in every case.
        case FindingCode::malformed_record:
        case FindingCode::unknown_cpu:
        case FindingCode::wrong_cpu:
        case FindingCode::wrong_need_wake:
        case FindingCode::read_outside:
        case FindingCode::wrong_mapping:
            return std::string(finding_name(finding.code));
        default:
            return "";
    }
}

// The clauses that a wait breaks by itself: such a fault has named its clause.
bool is_of_a_wait(std::string_view clause) {
    return clause.starts_with("5.1.8.2") || clause == "E1" || clause == "E2" || clause == "E3" ||
           clause == "E17" || clause == "E19" || clause == "E24";
}

}  // namespace

Symptom symptom_of(const Finding& finding, std::string_view case_clause) {
    Symptom symptom{cause_of(finding), false};
    // A wrongly refused or accepted buffer never names its clause.
    if (finding.code == FindingCode::refused_without_reason ||
        finding.code == FindingCode::not_refused ||
        finding.code == FindingCode::delivered_from_refused) {
        symptom.is_assumed = true;
        return symptom;
    }
    if (finding.clause != case_clause) {
        // A standstill with a clause of its own needs no other name.
        const bool is_gap = finding.code == FindingCode::missing_event;
        if (is_gap && symptom.cause != kEventPassedOver) symptom.cause.clear();
        return symptom;
    }
    switch (finding.code) {
        case FindingCode::crash:
        case FindingCode::misread_event:
        case FindingCode::missing_event:
            symptom.is_assumed = true;
            break;
        case FindingCode::contract:
            symptom.is_assumed = is_standstill(finding.message);
            break;
        case FindingCode::ended_too_early:
        case FindingCode::wrong_exit_status:
            symptom.is_assumed = !finding.clause.starts_with("contract-");
            break;
        case FindingCode::lost_wake_up:
            symptom.is_assumed = !is_of_a_wait(finding.clause);
            break;
        default:
            break;
    }
    return symptom;
}

std::string_view root_of(std::string_view message) {
    return message.find(kStaleCapacity) == std::string_view::npos ? "" : kCapacityOfAnotherBuffer;
}

std::string_view clause_of_root(std::string_view root) {
    return root == kCapacityOfAnotherBuffer ? "5.1.8.3" : "";
}

bool is_same_everywhere(std::string_view cause) {
    return !cause.empty() && cause != kEventPassedOver && cause != kSleepOnOldEvent;
}

std::string_view subject_of_cause(std::string_view cause) {
    // A consumer refuses a sound buffer because of checks that are too strict.
    return cause.starts_with(kRefusalPrefix) ? "E7" : "";
}

std::string_view place_of_access(std::string_view cause) {
    cause = cause.substr(0, cause.find(';'));
    if (cause.starts_with(kStorePrefix)) return cause.substr(kStorePrefix.size());
    if (!cause.starts_with("signal 11 (") && !cause.starts_with("signal 7 (")) return "";
    const std::size_t end = cause.find(") ");
    return end == std::string_view::npos ? "" : cause.substr(end + 2);
}

std::string_view clause_of_cause(std::string_view cause) {
    constexpr std::pair<std::string_view, std::string_view> kClauses[] = {
        {kRefusalPrefix, "contract-records"}, {kOtherRecordPrefix, "event-model"},
        {kExitStatusPrefix, "contract-4"},    {kSignalPrefix, "contract"},
        {kBufferKeptPrefix, "5.1.6.1"},       {kStandstillPrefix, "contract-2"},
    };
    for (const auto& [prefix, clause] : kClauses) {
        if (cause.starts_with(prefix)) return clause;
    }
    return "contract-2";
}

}  // namespace kmes::conformance
