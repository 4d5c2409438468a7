// SPDX-License-Identifier: MIT
//
// Shared by the parts of the judge: the records of one CPU together with the history. Not for users
// of the oracle.
#ifndef KMES_CONFORMANCE_ORACLE_JUDGE_INTERNAL_H_
#define KMES_CONFORMANCE_ORACLE_JUDGE_INTERNAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/judge.h"

namespace kmes::conformance::internal {

// One E record of this CPU.
struct Delivery {
    const Record* record = nullptr;
    const Event* event = nullptr;  // found by its sequence number; nullptr: this CPU never wrote it
    bool in_order = false;         // a new event, newer than all delivered before
};

// The records of one CPU in the order of the file, and the judge's conclusions so far.
struct CpuView {
    std::uint32_t cpu = 0;
    std::vector<const Record*> records;
    std::vector<Delivery> deliveries;
    // For each event of the history: the end offset of the first E record with its number, or
    // kNever.
    std::vector<std::uint64_t> delivered_at;
    bool reordered = false;
    std::optional<std::uint64_t> end_sequence;    // of the end event, if it was delivered
    std::optional<std::uint64_t> refusal_offset;  // of the first R record
    bool ended() const { return end_sequence.has_value() || refusal_offset.has_value(); }
};

// For a finding about no CPU of the run: its message does not begin with a CPU.
inline constexpr std::uint32_t kNoCpu = UINT32_MAX;

// Collects findings, a few of each kind.
class FindingList {
  public:
    explicit FindingList(std::size_t maximum_per_code) : maximum_per_code_(maximum_per_code) {}

    // Calls `message` only for a finding that will be shown, so that a flood of faulty records
    // costs little.
    template <typename Message>
    void add(FindingCode code, std::string_view clause, std::uint32_t cpu, Message&& message,
             std::uint64_t sequence = 0, std::uint64_t line = 0) {
        add_explained(
            code, cpu, [&] { return Explanation{std::string(clause), message()}; }, sequence, line);
    }
    // For findings whose clause costs as much as the message.
    struct Explanation {
        std::string clause;
        std::string message;
    };
    template <typename Explain>
    void add_explained(FindingCode code, std::uint32_t cpu, Explain&& explain,
                       std::uint64_t sequence, std::uint64_t line) {
        if (wants(code)) {
            show(code, cpu, explain(), sequence, line);
        } else {
            ++kind(code).more;
        }
    }
    // Whether a finding of this kind is still shown, and not only counted.
    bool wants(FindingCode code) const;
    std::vector<Finding> take();

  private:
    struct Kind {
        std::vector<Finding> shown;
        std::uint64_t more = 0;
    };
    void show(FindingCode code, std::uint32_t cpu, Explanation explanation, std::uint64_t sequence,
              std::uint64_t line);
    Kind& kind(FindingCode code);
    std::size_t maximum_per_code_;
    std::vector<Kind> kinds_;
};

struct Context {
    const History& history;
    const JudgeOptions& options;
    bool writes_loss_records = false;
    FindingList& findings;
};

// judge_delivery.cc: events that are torn, doubled, reordered, invented, early, on a wrong CPU, or
// after the end.
void judge_deliveries(Context& context, CpuView& view);
// judge_missing.cc: events that are owed and not delivered, or delivered too late.
void judge_missing(Context& context, const CpuView& view);
// judge_counts.cc: L, G and R records.
void judge_losses(Context& context, const CpuView& view);
void judge_generations(Context& context, const CpuView& view);
void judge_refusals(Context& context, const CpuView& view);

// torn.cc: whether the consumer took the payload from 29 + type_len; and which event's bytes a torn
// payload was mixed with (empty if that is not visible).
bool is_header_misread(const Event& event, const Record& record);
std::string explain_torn(const History& history, std::uint32_t cpu, const Event& event,
                         const Record& record);

// torn.cc: describes bytes of the record's payload that the ring held only before the event was
// published. Empty: there are none.
std::string explain_in_flight(const History& history, std::uint32_t cpu, const Event& event,
                              const Record& record);

// Whether `record` of this event can come from that buffer. The testee must have had the buffer,
// and the buffer the event. The buffer must have existed before the record was written.
bool can_come_from(const History& history, BufferIndex buffer, std::uint64_t sequence,
                   std::uint64_t record_end_offset);
// The only buffer that the record can come from; nothing if there are several.
std::optional<BufferIndex> certain_source(const History& history, std::uint32_t cpu,
                                          std::uint64_t sequence, std::uint64_t record_end_offset);

// The buffers of this CPU that the testee had attached when the report had `report_bytes` bytes, in
// the order of their creation. A swap that the testee did not notice does not count.
std::vector<BufferIndex> attached_buffers(const History& history, std::uint32_t cpu,
                                          std::uint64_t report_bytes);

// "event 17 (type 'x', 64 bytes, position 4294967280)". The position is the one in its last buffer,
// or in buffer `in`, which the text then names.
std::string describe_event(const History& history, std::uint32_t cpu, const Event& event,
                           std::optional<BufferIndex> in = std::nullopt);
// Messages quote at most this many bytes.
inline constexpr std::size_t kQuotedBytes = 40;
std::string quote_type(std::string_view type);
std::string plural(std::uint64_t count, std::string_view word);
// " (line 12 of the report)".
std::string said_in(const Record& record);

}  // namespace kmes::conformance::internal

#endif  // KMES_CONFORMANCE_ORACLE_JUDGE_INTERNAL_H_
