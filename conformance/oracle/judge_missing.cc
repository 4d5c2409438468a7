// SPDX-License-Identifier: MIT
//
// Judges events that were not delivered, or too late. A correct consumer is never blamed: an event
// is owed only if one of the rules below proves that a correct consumer has delivered it.
// Everything else is excused.
//
// The order of records proves what could be read. `overwritten_after` of an event is the size of
// the report just before the operation that overwrote it. A record that ends there or earlier was
// written while the event was still whole.
//
// Owed:
//   A. At an idle checkpoint: an event that is published and not overwritten in the buffer on which
//      the consumer was seen asleep. It sleeps only on an empty buffer (5.1.8.1 step 1, 5.1.8.2
//      step 2), and has written all its records by then (contract 3). A later delivery is wrong as
//      well, because the consumer slept on the event.
//   B. By a delivered newer event f: an event that was whole, until f's record was written, in
//      every buffer from which f can have been read. Events are read in order of position, from
//      tail_pos on (contract 2), and tail_pos had not passed this one.
//   C. In a retired buffer that the consumer is proven to have read: an event that survived there.
//      It is frozen, not lost (5.1.8.3, E10). The proof is a delivered event that no other buffer
//      can have given, a sleep on the buffer, or an observation of the driver. The event is due
//      when the consumer has continued: it delivered a newer event, was seen asleep on a newer
//      buffer, or refused a newer one that must be refused.
//
// Excused, with the reason:
//   - An event that was overwritten before any of these moments: the consumer may have been slow,
//     or stopped by the driver.
//   - An event overwritten before the consumer's first load of a buffer, or in a buffer that it
//     never got: for the consumer it did not exist.
//   - An event only in a retired buffer that the consumer is not proven to have read: it may leave
//     the buffer unread if E19's identity check says that it is dead already.
//   - By rule B, an event that a buffer without it excuses: f can have been read from that buffer
//     (after a shrink, for instance).
//   - An event after the end event or a refusal of this CPU: the consumer has ended there.
//   - An event in a buffer whose content or static fields the suite broke: it may be refused.
//   - An event that was dropped, refused or never published: there is nothing to deliver.
#include <algorithm>

#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance::internal {
namespace {

enum class Reason { none, asleep, asleep_late, skipped, frozen };

struct Judgement {
    Reason reason = Reason::none;
    std::string_view clause;

    bool operator==(const Judgement&) const = default;
};

// Processes the events of one CPU, from the oldest to the newest.
class MissingJudge {
  public:
    MissingJudge(Context& context, const CpuView& view)
        : context_(context),
          view_(view),
          history_(context.history),
          events_(context.history.events_of(view.cpu)) {
        find_next_delivered();
        find_drained_buffers();
    }

    void run() {
        for (std::size_t i = 0; i < events_.size(); ++i) {
            const Judgement judgement = judge_event(i);
            if (run_.reason != Reason::none && judgement == run_) continue;
            report_run(i);
            run_ = judgement;
            run_begin_ = i;
        }
        report_run(events_.size());
    }

  private:
    static constexpr std::size_t kNone = SIZE_MAX;

    // Finds for each event the next newer delivered one.
    void find_next_delivered() {
        next_delivered_.assign(events_.size(), kNone);
        std::size_t next = kNone;
        for (std::size_t i = events_.size(); i > 0; --i) {
            next_delivered_[i - 1] = next;
            if (view_.delivered_at[i - 1] != kNever) next = i - 1;
        }
        first_delivered_ = next;
    }

    // Rule C: the retired buffers that the consumer is proven to have read.
    void find_drained_buffers() {
        const std::vector<BufferIndex>& buffers = history_.buffers_of(view_.cpu);
        if (buffers.size() < 2) return;
        std::vector<bool> drained(history_.buffer_count(), false);
        for (const BufferIndex index : buffers) {
            drained[index] = history_.buffer(index).draining_operation != kNever;
        }
        for (const Delivery& delivery : view_.deliveries) {
            if (!delivery.in_order) continue;
            const auto source = certain_source(history_, view_.cpu, delivery.record->sequence,
                                               delivery.record->end_offset);
            if (source) drained[*source] = true;
        }
        for (const BufferIndex index : buffers) {
            if (drained[index] && history_.buffer(index).retired) drained_.push_back(index);
        }
    }

    Judgement judge_event(std::size_t i) const {
        const Event& event = events_[i];
        if (!event.published) return {};  // a dropped event never is
        if (view_.end_sequence && event.sequence > *view_.end_sequence) return {};
        const bool delivered = view_.delivered_at[i] != kNever;
        if (is_owed_asleep(i)) {
            if (!delivered)
                return {Reason::asleep, by_situation(is_first(i) ? "contract-2" : "5.1.8.1-6")};
            if (!view_.reordered) return {Reason::asleep_late, "5.1.8.2"};
            return {};
        }
        if (delivered) return {};
        if (is_skipped(i)) return {Reason::skipped, by_situation(clause_of_skip(i))};
        if (frozen_buffer(i)) {
            const BufferIndex current = history_.current_buffer(view_.cpu);
            const bool kept = history_.find_placement(current, event.sequence) != nullptr;
            return {Reason::frozen, kept ? "5.1.8.3-5" : "E10"};
        }
        return {};
    }

    // Rule A.
    bool is_owed_asleep(std::size_t i) const {
        const Event& event = events_[i];
        if (event.owed_by == kNever || view_.delivered_at[i] <= event.owed_by) return false;
        if (view_.refusal_offset && *view_.refusal_offset <= event.owed_by) return false;
        return !may_refuse(history_.buffer(event.owed_buffer).fault);
    }

    // Rule B.
    bool is_skipped(std::size_t i) const {
        const std::size_t next = next_delivered_[i];
        if (next == kNone) return false;
        const std::uint64_t written_at = view_.delivered_at[next];
        const std::uint64_t next_sequence = events_[next].sequence;
        bool any = false;
        for (const BufferIndex index : history_.buffers_of(view_.cpu)) {
            if (!can_come_from(history_, index, next_sequence, written_at)) continue;
            if (may_refuse(history_.buffer(index).fault)) return false;
            const Placement* placement = history_.find_placement(index, events_[i].sequence);
            if (placement == nullptr || placement->overwritten_after < written_at) return false;
            any = true;
        }
        return any;
    }

    // Rule C: returns the retired buffer that the consumer has left although the event is in it.
    std::optional<BufferIndex> frozen_buffer(std::size_t i) const {
        for (const BufferIndex index : drained_) {
            if (may_refuse(history_.buffer(index).fault)) continue;
            const Placement* placement = history_.find_placement(index, events_[i].sequence);
            if (placement == nullptr || placement->overwritten_after != kNever) continue;
            if (next_delivered_[i] != kNone || has_left(index) || refuses_after(index))
                return index;
        }
        return std::nullopt;
    }

    bool has_left(BufferIndex index) const {
        const std::vector<Checkpoint>& checkpoints = history_.checkpoints_of(view_.cpu);
        return std::any_of(checkpoints.begin(), checkpoints.end(),
                           [index](const Checkpoint& seen) { return seen.buffer > index; });
    }

    // The contract: unread events of the old buffer are owed before the R record of the next one.
    bool refuses_after(BufferIndex index) const {
        if (!view_.refusal_offset) return false;
        const std::vector<BufferIndex>& buffers = history_.buffers_of(view_.cpu);
        return std::any_of(buffers.begin(), buffers.end(), [&](BufferIndex other) {
            return other > index && must_refuse(history_.buffer(other).fault);
        });
    }

    bool is_first(std::size_t i) const { return first_delivered_ == kNone || i < first_delivered_; }

    // An event may be passed over for any reason. Clauses that follow from the gap itself stay.
    std::string_view by_situation(std::string_view clause) const {
        const bool is_any = clause == "contract-2" || clause == "5.1.8.1-6";
        return is_any ? clause_by_situation(context_.options.clause, clause) : clause;
    }

    std::string_view clause_of_skip(std::size_t i) const {
        if (is_first(i)) return "contract-2";
        const std::vector<BufferIndex> attached =
            attached_buffers(history_, view_.cpu, view_.delivered_at[next_delivered_[i]]);
        if (attached.empty()) return "5.1.8.1-6";  // the record is older than the attach
        const BufferIndex last = attached.back();
        if (history_.find_placement(last, events_[i].sequence) == nullptr) return "5.1.8.1-6";
        // The gap begins with overwritten events: the consumer was lapped, and continued after
        // tail_pos.
        std::size_t before = i;
        while (before > 0 && view_.delivered_at[before - 1] == kNever) {
            --before;
            const Placement* placement = history_.find_placement(last, events_[before].sequence);
            if (placement != nullptr && placement->overwritten_after != kNever) return "5.1.8.1-2";
            if (i - before > 16) break;
        }
        return attached.size() > 1 ? "5.1.8.3-5" : "5.1.8.1-6";
    }

    void report_run(std::size_t end) {
        if (run_.reason == Reason::none) return;
        const FindingCode code = run_.reason == Reason::asleep_late ? FindingCode::late_event
                                                                    : FindingCode::missing_event;
        context_.findings.add(
            code, run_.clause, view_.cpu, [&] { return describe_run(end); },
            events_[run_begin_].sequence);
    }

    std::string describe_run(std::size_t end) const {
        const Event& first = events_[run_begin_];
        const bool one = end - run_begin_ == 1;
        std::string text;
        if (one) {
            // The event may have other positions in later buffers.
            const auto in = run_.reason == Reason::frozen ? frozen_buffer(run_begin_)
                                                          : std::optional<BufferIndex>();
            text = describe_event(history_, view_.cpu, first, in);
        } else {
            text = "events " + std::to_string(first.sequence) + " to " +
                   std::to_string(events_[end - 1].sequence) + " (the first: type " +
                   quote_type(first.type) + ", " + plural(first.bytes, "byte") + ")";
        }
        const std::string they = one ? "it was" : "they were";
        const std::string never = "the consumer never delivered " + text + "; expected a delivery ";
        switch (run_.reason) {
            case Reason::asleep:
                return never + "before its sleep, when " + they + " still in the buffer";
            case Reason::asleep_late:
                return "the consumer delivered " + text +
                       " late; expected a delivery before its sleep, when " + they +
                       " in the buffer";
            case Reason::skipped:
                return never + "before event " +
                       std::to_string(events_[next_delivered_[run_begin_]].sequence) + ", when " +
                       they + " still in the buffer";
            case Reason::frozen:
                return never + "from the retired buffer, which stays readable";
            case Reason::none:
                break;
        }
        return text;
    }

    Context& context_;
    const CpuView& view_;
    const History& history_;
    const std::deque<Event>& events_;
    std::vector<std::size_t> next_delivered_;
    std::size_t first_delivered_ = kNone;
    std::vector<BufferIndex> drained_;
    Judgement run_;
    std::size_t run_begin_ = 0;
};

}  // namespace

void judge_missing(Context& context, const CpuView& view) {
    MissingJudge(context, view).run();
}

}  // namespace kmes::conformance::internal
