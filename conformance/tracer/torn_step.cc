// SPDX-License-Identifier: MIT
//
// One read in two parts: first the current bytes, then an action of the runner, then the bytes
// after it. An instruction that the runner executes itself reads from a composed copy. Others get
// such a copy in the testee's scratch memory. A gather is made to gather its first elements, and
// later the others. Knows decoding, mappings and vector state.

#include <algorithm>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/vector_state.h"

namespace kmes::conformance {
namespace tracing {

void Torn::give_up() {
    split_bytes_ = 0;
    act_after(0);
}

void Torn::act_after(uint64_t bytes) {
    if (is_over_) return;
    is_over_ = true;
    split_bytes_ = bytes;
    between_();
}

void Torn::compose(const uint8_t* from, uint8_t* to, uint64_t size_bytes, bool is_down,
                   uint64_t origin, uint64_t granule) {
    uint64_t first = is_over_ ? 0 : std::min(split_bytes_, size_bytes);
    // A single word is never split.
    const uint64_t beyond = (origin + first) % granule;
    if (first != size_bytes) first -= std::min(first, beyond);
    const uint64_t rest = size_bytes - first;
    const uint64_t first_at = is_down ? rest : 0;
    memcpy(to + first_at, from + first_at, first);
    act_after(first);
    const uint64_t rest_at = is_down ? 0 : first;
    memcpy(to + rest_at, from + rest_at, rest);
}

}  // namespace tracing

namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kTornWordBytes = 8;

}  // namespace

std::optional<GuardStep::Outcome> Tracer::Engine::redirect_to_copy(Thread& thread,
                                                                   const PendingAccess& pending,
                                                                   Torn& torn) {
    const RingOperand& operand = pending.operands[0];
    const uint8_t* from = view_at(mappings_[operand.mapping], operand.address, operand.size_bytes);
    const uint64_t slot = pointers_.slots().find_free(operand.size_bytes + kLineBytes);
    const uint64_t scratch = process_of(thread).scratch;
    if (pending.operands.size() != 1 || from == nullptr || scratch == 0 ||
        slot == ScratchSlots::kNone)
        return std::nullopt;
    std::vector<uint8_t> composed(operand.size_bytes);
    torn.compose(from, composed.data(), composed.size(), false, operand.address, kTornWordBytes);
    // The copy has the same offset in a cache line: some instructions require an alignment.
    const uint64_t copy = scratch + slot + operand.address % kLineBytes;
    if (!write_memory(thread.tid, copy, composed.data(), composed.size())) return std::nullopt;
    return redirect_to(thread, pending, {copy - operand.address});
}

// The mask of a gather says which elements are still to be loaded. The gather may be interrupted
// after any element, and continues with the remaining mask.
std::optional<GuardStep::Outcome> Tracer::Engine::gather_in_parts(
    Thread& thread, const PendingAccess& pending, const std::vector<uint64_t>& distances,
    Torn& torn) {
    if (pending.has_lanes_elsewhere) return std::nullopt;
    const AddressForm& form = pending.code->instruction().memory[pending.operands[0].form];
    const auto before = VectorState::read(thread.tid);
    if (!before) return GuardStep::Outcome::kThreadGone;
    const uint64_t all = pending.operands.size();
    const uint64_t first = std::min(torn.split_bytes() / form.size_bytes, all);
    const auto keep_only = [&](const VectorState& state, uint64_t from, uint64_t to) {
        VectorState changed = state;
        uint64_t number = 0;
        for (uint32_t i = 0; i < form.gather.elements; ++i) {
            if (!before->is_masked_in(form.gather, i)) continue;
            changed.set_mask(form.gather, i, number >= from && number < to);
            ++number;
        }
        return changed.write(thread.tid);
    };
    if (first > 0 && first < all) {
        if (!keep_only(*before, 0, first)) return GuardStep::Outcome::kThreadGone;
        const auto outcome = redirect_to(thread, pending, distances);
        if (outcome != GuardStep::Outcome::kDone) {
            before->write(thread.tid);
            return outcome;
        }
        const auto half = VectorState::read(thread.tid);
        if (!half || !keep_only(*half, first, all)) return GuardStep::Outcome::kThreadGone;
    }
    if (first < all) torn.act_after(first * form.size_bytes);
    const auto outcome = redirect_to(thread, pending, distances);
    if (outcome == GuardStep::Outcome::kDone) torn.act_after(first * form.size_bytes);
    return outcome;
}

}  // namespace kmes::conformance
