// SPDX-License-Identifier: MIT
//
// Compares two implementations of the producer's half of the specification, made by different
// people for different purposes. One is the history of the conformance oracle, which judges
// testees. The other is the plain model, against which the core is checked. Both get the same
// random scripts. After each operation they must have the same positions, events, bytes, gaps and
// generations. Neither sees the other, nor the core.
//
// Only a script's producer operations are played, each as a whole, because the history knows no
// steps. It knows no reservation either (the stage commits each before any other emission), so an
// abandoned one is committed here. It knows nothing corrupt.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "conformance/oracle/history.h"
#include "props/machine/model.h"
#include "props/script/arbitrary.h"

namespace kmes::props {
namespace {

using conformance::BufferIndex;
using conformance::EmitOutcome;
using conformance::EmitStyle;
using conformance::Emitted;
using conformance::EventSpec;
using conformance::History;
using conformance::HistorySettings;
using conformance::PositionRule;
using conformance::SwapSpec;

constexpr int kRuns = 3000;
constexpr int kLongestScript = 120;
// The history has a lane for each CPU below the played one.
constexpr std::uint64_t kMostCpus = 4;
// E11: positions never cross 2^64.
constexpr std::uint64_t kHighestPosition = ~0ull - (1ull << 41);

HistorySettings history_settings(const Operation& settings, std::uint32_t cpu) {
    HistorySettings made;
    made.cpus = cpu + 1;
    made.capacity_bytes = settings[Key::capacity];
    made.start_positions.assign(cpu + 1, settings[Key::position]);
    made.first_sequence = settings[Key::sequence] + 1;
    if (settings[Key::phase] == 1) made.boot_capacity_bytes = settings[Key::capacity];
    return made;
}

ModelSettings model_settings(const Operation& settings, std::uint32_t cpu) {
    ModelSettings made;
    made.capacity = settings[Key::capacity];
    made.position = settings[Key::position];
    made.sequence = settings[Key::sequence];
    made.clock_ns = settings[Key::clock];
    made.cpu = static_cast<std::uint16_t>(cpu);
    made.is_boot = settings[Key::phase] == 1;
    return made;
}

// Makes an event that is far too large just too large. The history keeps its bytes, and both would
// refuse a payload of 4 GiB in the same way.
ModelInput input_of(const Operation& operation, std::uint64_t capacity) {
    return {full_type(operation), std::min(operation[Key::payload], capacity), operation[Key::seed],
            static_cast<std::uint8_t>(operation[Key::origin]),
            std::min(operation[Key::extra], capacity)};
}

// The history and the model, with the same operations.
class Pair {
  public:
    explicit Pair(const Script& script)
        : cpu_(static_cast<std::uint32_t>(script.settings()[Key::cpu] % kMostCpus)),
          history_(history_settings(script.settings(), cpu_)),
          model_(model_settings(script.settings(), cpu_)),
          clock_ns_(script.settings()[Key::clock]),
          has_wakes_(script.operations.size() % 2 == 0) {}

    // Returns false if the operation does not apply here.
    bool play(const Operation& operation);
    // Returns the first difference, or an empty text.
    std::string difference() const;
    std::string difference_of_old_buffers() const;
    std::uint64_t events() const { return model_.counters.events; }
    std::uint64_t swaps() const { return model_.counters.swaps; }

  private:
    bool play_event(const Operation& operation);
    bool play_reservation(const Operation& operation);
    bool play_swap(const Operation& operation);
    bool play_other(const Operation& operation);

    // The clock of both: every read advances it by a nanosecond (docs/script-format.md).
    std::uint64_t take_time() { return clock_ns_++; }
    EventSpec spec_of(const ModelInput& input, std::uint64_t timestamp) const;
    void use_missed_numbers();
    void count(const Emitted& emitted);
    void take_steps(Plan& plan);
    SwapSpec swap_spec(const Operation& operation) const;
    std::uint64_t oldest_that_fits(std::uint64_t capacity) const;
    std::string compare(const conformance::Buffer& theirs, const ModelBuffer& ours) const;
    std::string compare_numbers() const;
    std::string compare_page(BufferIndex index, const ModelBuffer& ours) const;

    const std::uint32_t cpu_;
    History history_;
    Model model_;
    std::uint64_t clock_ns_;
    std::uint64_t batch_time_ns_ = 0;
    const bool has_wakes_;
    std::uint64_t missed_ = 0;  // nested emissions whose numbers are not used yet (E16)
    std::uint64_t dropped_ = 0;
    std::uint64_t overwritten_ = 0;
    std::optional<ModelInput> reserved_;
    std::uint64_t reserved_time_ns_ = 0;
    std::optional<SwapSpec> prepared_;
};

EventSpec Pair::spec_of(const ModelInput& input, std::uint64_t timestamp) const {
    EventSpec spec;
    spec.type = input.type;
    spec.payload = payload_bytes(input.seed, input.payload_bytes);
    spec.timestamp = timestamp;
    spec.origin = input.origin;
    spec.extra_header.assign(input.extra_bytes, '\0');
    return spec;
}

// need_wake has any value, or is never set.
void Pair::take_steps(Plan& plan) {
    while (!plan.empty()) {
        const Step step = plan.front();
        plan.pop_front();
        model_.apply(step, has_wakes_ ? 1 : 0, plan);
    }
}

// E16: use them before the next number is assigned.
void Pair::use_missed_numbers() {
    for (; missed_ > 0; --missed_) history_.drop(cpu_);
}

void Pair::count(const Emitted& emitted) {
    overwritten_ += emitted.overwritten;
    if (emitted.outcome == EmitOutcome::dropped) ++dropped_;
}

bool Pair::play_event(const Operation& operation) {
    const ModelInput input = input_of(operation, model_.now().capacity);
    const bool is_add = operation.verb == Verb::add;
    const bool is_call = operation[Key::style] == 1;
    if (input.type.empty() || (is_add && !model_.has_batch)) return false;
    const ModelStyle model_style = is_call ? ModelStyle::call : ModelStyle::kernel;
    const EmitStyle style = is_call ? EmitStyle::call : EmitStyle::kernel;
    Plan plan;
    if (reserved_) {
        // An interrupt inside of the reservation, which is turned away (E16).
        if (!is_call) ++missed_;
        is_add ? model_.add(input, model_style, true, plan)
               : model_.emit(input, model_style, true, plan);
        return true;
    }
    use_missed_numbers();
    const EventSpec spec = spec_of(input, is_add ? batch_time_ns_ : take_time());
    count(is_add ? history_.batch_add(cpu_, spec, style) : history_.emit(cpu_, spec, style));
    is_add ? model_.add(input, model_style, false, plan)
           : model_.emit(input, model_style, false, plan);
    take_steps(plan);
    return true;
}

bool Pair::play_reservation(const Operation& operation) {
    Plan plan;
    if (operation.verb == Verb::reserve) {
        const ModelInput input = input_of(operation, model_.now().capacity);
        if (reserved_ || input.type.empty()) return false;
        use_missed_numbers();
        reserved_time_ns_ = take_time();
        if (model_.reserve(input, false, plan) == 0)
            reserved_ = input;
        else
            count(history_.emit(cpu_, spec_of(input, reserved_time_ns_)));
        take_steps(plan);
        return true;
    }
    if (!reserved_) return false;
    if (operation.verb == Verb::fill) {
        model_.fill(operation[Key::offset], operation[Key::bytes], plan);
        take_steps(plan);
        return true;
    }
    count(history_.emit(cpu_, spec_of(*reserved_, reserved_time_ns_)));
    model_.fill(0, reserved_->payload_bytes, plan);
    model_.commit(plan);
    take_steps(plan);
    reserved_.reset();
    return true;
}

// The position of the oldest event that fits into a buffer of this capacity (E10).
std::uint64_t Pair::oldest_that_fits(std::uint64_t capacity) const {
    const conformance::Buffer& buffer = history_.buffer(history_.current_buffer(cpu_));
    std::uint64_t oldest = buffer.write_frontier;
    for (std::size_t i = buffer.placements.size(); i > buffer.tail_index; --i) {
        const std::uint64_t position = buffer.placements[i - 1].position;
        if (buffer.write_frontier - position > capacity) break;
        oldest = position;
    }
    return oldest;
}

// The shift of positions is computed when the swap begins.
SwapSpec Pair::swap_spec(const Operation& operation) const {
    SwapSpec spec;
    spec.capacity_bytes = operation[Key::capacity];
    if (operation[Key::positions] == 0) return spec;
    spec.rule = PositionRule::shift;
    spec.position = operation[Key::positions] == 2 ? operation[Key::shift]
                                                   : 0 - oldest_that_fits(spec.capacity_bytes);
    if (operation[Key::positions] == 1 && operation.verb != Verb::prepare)
        spec = {spec.capacity_bytes, PositionRule::tail_at, 0};
    return spec;
}

bool Pair::play_swap(const Operation& operation) {
    if (reserved_) return false;
    Plan plan;
    const bool is_boot = model_.now().is_boot;
    if (operation.verb == Verb::copy) return prepared_ && model_.copy(false, plan) == 0;
    if (operation.verb != Verb::change) {
        const bool is_possible = operation[Key::positions] != 2 ||
                                 operation[Key::shift] <= kHighestPosition - model_.now().frontier;
        if (prepared_ || !is_possible || is_boot != (operation.verb == Verb::handover))
            return false;
        prepared_ = swap_spec(operation);
        model_.prepare(operation[Key::capacity],
                       static_cast<ModelPositions>(operation[Key::positions]),
                       operation[Key::shift], false, plan);
        if (operation.verb == Verb::prepare) return true;
    }
    if (!prepared_) return false;
    is_boot ? history_.hand_over(cpu_, *prepared_) : history_.swap(cpu_, *prepared_);
    prepared_.reset();
    model_.change(false, plan);
    take_steps(plan);
    return true;
}

bool Pair::play_other(const Operation& operation) {
    Plan plan;
    if (operation.verb == Verb::jump) {
        model_.jump(operation[Key::forward], operation[Key::back]);
        clock_ns_ += operation[Key::forward];
        clock_ns_ -= std::min(clock_ns_, operation[Key::back]);
        return true;
    }
    if (reserved_) return false;
    if (operation.verb == Verb::batch) {
        if (model_.has_batch) return false;
        batch_time_ns_ = take_time();
        history_.batch_begin(cpu_);
        model_.batch();
    } else if (operation.verb == Verb::end) {
        if (!model_.has_batch) return false;
        history_.batch_end(cpu_);
        model_.end(false, plan);
    } else if (operation.verb == Verb::nudge) {
        const std::uint64_t buffer = operation[Key::buffer];
        if (buffer >= model_.current) return false;
        history_.nudge(history_.buffers_of(cpu_)[buffer]);
        model_.nudge(buffer, false, plan);
    } else {  // retire
        if (model_.now().is_boot) return false;
        use_missed_numbers();
        if (history_.batch_pending(cpu_)) history_.batch_end(cpu_);
        history_.nudge(history_.current_buffer(cpu_));
        model_.retire(false, plan);
    }
    take_steps(plan);
    return true;
}

bool Pair::play(const Operation& operation) {
    if (model_.is_over) return false;
    switch (operation.verb) {
        case Verb::emit:
        case Verb::add:
            return play_event(operation);
        case Verb::reserve:
        case Verb::fill:
        case Verb::commit:
        case Verb::abandon:
            return play_reservation(operation);
        case Verb::handover:
        case Verb::resize:
        case Verb::prepare:
        case Verb::copy:
        case Verb::change:
            return play_swap(operation);
        case Verb::batch:
        case Verb::end:
        case Verb::nudge:
        case Verb::retire:
        case Verb::jump:
            return play_other(operation);
        default:  // consumers, schedules, and operations that only one of the two has
            return false;
    }
}

std::string differs(const std::string& what, std::uint64_t theirs, std::uint64_t ours) {
    if (theirs == ours) return {};
    return what + ": " + std::to_string(theirs) + " in the oracle, " + std::to_string(ours) +
           " in the model; ";
}

std::string Pair::compare(const conformance::Buffer& theirs, const ModelBuffer& ours) const {
    std::string text = differs("capacity", theirs.capacity, ours.capacity) +
                       differs("write_pos", theirs.write_pos, ours.published) +
                       differs("the write frontier", theirs.write_frontier, ours.frontier) +
                       differs("tail_pos", theirs.tail_pos, ours.tail) +
                       differs("generation", theirs.generation(), ours.generation) +
                       differs("surviving events", theirs.placements.size() - theirs.tail_index,
                               ours.events.size());
    for (std::size_t i = 0; text.empty() && i < ours.events.size(); ++i) {
        const conformance::Placement& placement = theirs.placements[theirs.tail_index + i];
        text = differs("sequence", placement.sequence, ours.events[i].sequence) +
               differs("position", placement.position, ours.events[i].position) +
               differs("event bytes", placement.bytes, ours.events[i].bytes);
    }
    // The history has bounds for the counter, because it does not know the requests of consumers.
    const std::uint32_t above_lowest = ours.counter - theirs.futex_counter_lowest;
    if (above_lowest > theirs.futex_counter_highest - theirs.futex_counter_lowest)
        text += "futex_counter " + std::to_string(ours.counter) + " is outside of " +
                std::to_string(theirs.futex_counter_lowest) + " to " +
                std::to_string(theirs.futex_counter_highest);
    return text;
}

// The fields of the page, by the offsets of 5.1.6.
std::string Pair::compare_page(BufferIndex index, const ModelBuffer& ours) const {
    const conformance::ExpectedMetadata theirs = history_.expected_metadata(index);
    const auto field = [&ours](std::size_t offset, int bytes) {
        std::uint64_t value = 0;
        for (int i = bytes; i-- > 0;)
            value = value << 8 | static_cast<std::uint8_t>(ours.page[offset + i]);
        return value;
    };
    return differs("cpu_id of the page", theirs.cpu_id, field(12, 2)) +
           differs("capacity of the page", theirs.capacity, field(16, 8)) +
           differs("generation of the page", theirs.generation, field(32, 8)) +
           differs("write_pos of the page", theirs.write_pos, field(64, 8)) +
           differs("tail_pos of the page", theirs.tail_pos, field(72, 8));
}

std::string Pair::compare_numbers() const {
    const auto& events = history_.events_of(cpu_);
    std::string text =
        differs("the last sequence number", model_.first_sequence + events.size() - 1 + missed_,
                model_.sequence + model_.missed) +
        differs("dropped events", dropped_, model_.counters.dropped) +
        differs("overwritten events", overwritten_, model_.counters.overwritten);
    // Only the newest events: earlier ones have been compared before.
    const std::size_t first = events.size() > 8 ? events.size() - 8 : 0;
    for (std::size_t i = first; text.empty() && i < events.size(); ++i) {
        const ModelRecord* record = model_.record(events[i].sequence);
        const bool has_event = record != nullptr && record->bytes != nullptr;
        const std::string which = " of event " + std::to_string(events[i].sequence);
        text = differs("existence" + which, !events[i].dropped, has_event);
        if (has_event)
            text += differs("publication" + which, events[i].published, record->is_published);
    }
    return text;
}

std::string Pair::difference() const {
    // Between reserve and commit only the model has made room; the history does so at the commit.
    if (reserved_) return {};
    const BufferIndex index = history_.current_buffer(cpu_);
    const ModelBuffer& ours = model_.now();
    std::string text =
        compare(history_.buffer(index), ours) + compare_numbers() + compare_page(index, ours);
    if (!text.empty()) return text;
    return history_.compare_data(
        index, {reinterpret_cast<const std::uint8_t*>(ours.data.data()), ours.data.size()});
}

std::string Pair::difference_of_old_buffers() const {
    const std::vector<BufferIndex>& indexes = history_.buffers_of(cpu_);
    std::string text = differs("buffers", indexes.size(), model_.buffers.size());
    if (reserved_) return text;
    for (std::size_t i = 0; text.empty() && i < indexes.size(); ++i) {
        const ModelBuffer& ours = model_.buffers[i];
        text = compare(history_.buffer(indexes[i]), ours) + compare_page(indexes[i], ours);
    }
    return text;
}

// The sums over all scripts of a test: a test that played nothing would prove nothing.
struct Played {
    std::uint64_t events = 0;
    std::uint64_t swaps = 0;
};

constexpr char kRepeat[] =
    "tools/kmes replay has no oracle: repeat this test with the RC_PARAMS below\n";

void expect_agreement(const Script& script, Played& played) {
    Pair pair(script);
    for (std::size_t i = script.first_operation(); i < script.operations.size(); ++i) {
        Operation operation = script.operations[i];
        operation.is_started = false;
        if (!pair.play(operation)) continue;
        const std::string difference = pair.difference();
        RC_LOG() << "after operation " << i << ", " << print_operation(operation) << ": "
                 << difference << "\n"
                 << kRepeat;
        RC_ASSERT(difference == "");
    }
    const std::string difference = pair.difference_of_old_buffers();
    RC_LOG() << "at the end: " << difference << "\n" << kRepeat;
    RC_ASSERT(difference == "");
    played.events += pair.events();
    played.swaps += pair.swaps();
}

void expect_agreement(Profile profile) {
    Played played;
    rc::detail::TestParams parameters = rc::detail::configuration().testParams;
    if (std::getenv("RC_PARAMS") == nullptr) parameters.maxSuccess = kRuns;
    parameters.maxSize = kLongestScript;
    rc::detail::TestMetadata metadata;
    metadata.id = metadata.description = "oracle and model agree";
    const auto result = rc::detail::checkTestable(
        [&] { expect_agreement(*scripts(profile), played); }, metadata, parameters);
    rc::detail::printResultMessage(result, std::cerr);
    std::cerr << "\n" << played.events << " events, " << played.swaps << " swaps\n";
    EXPECT_TRUE(result.template is<rc::detail::SuccessResult>());
    EXPECT_GT(played.events, static_cast<std::uint64_t>(parameters.maxSuccess));
    EXPECT_GT(played.swaps, static_cast<std::uint64_t>(parameters.maxSuccess) / 20);
}

TEST(OracleAndModel, AgreeOnAnything) {
    expect_agreement(Profile::anything);
}

TEST(OracleAndModel, AgreeOnResizes) {
    expect_agreement(Profile::resizes);
}

TEST(OracleAndModel, AgreeOnBatches) {
    expect_agreement(Profile::batches);
}

}  // namespace
}  // namespace kmes::props
