// SPDX-License-Identifier: MIT
//
// Checks each access of the producer against the plan of the model, and the whole state after each
// operation (machine.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "props/machine/machine.h"
#include "props/script/form.h"

namespace kmes::props {
namespace {

constexpr unsigned kAttachAttempts = 64;        // of the reader, before it gives up (E19)
constexpr std::uint64_t kAlwaysChecked = 4096;  // larger buffers are checked less often

// Returns the kind of access in the index of labels.
enum kmes_order_kind kind_of(enum kmes_order_label label) {
#define KMES_LABEL_KIND(label, access, field) KMES_ORDER_KIND_##access,
    static const enum kmes_order_kind kKinds[] = {KMES_ORDER_LABELS(KMES_LABEL_KIND)};
#undef KMES_LABEL_KIND
    return kKinds[label];
}

// E23, E13: the number of sizes after an entry of the index. A block of the index has 4 KiB, or a
// sixteenth of a small buffer.
unsigned walk_limit(std::uint64_t capacity) {
    const std::uint64_t block = std::min<std::uint64_t>(4096, capacity / 16);
    return static_cast<unsigned>((block + kSmallestEvent - 1) / kSmallestEvent);
}

}  // namespace

const char* Machine::label_name(enum kmes_order_label label) {
#define KMES_LABEL_NAME(label, access, field) #label,
    static const char* const kNames[] = {KMES_ORDER_LABELS(KMES_LABEL_NAME)};
#undef KMES_LABEL_NAME
    return label < KMES_ORDER_LABEL_COUNT ? kNames[label] : "?";
}

// Checks that each access is as strong as kmes/order.h says. On this machine a weaker one would not
// fail.
void Machine::audit_kind(const kmes_order_access& access) {
    if (access.label >= KMES_ORDER_LABEL_COUNT || access.kind != kind_of(access.label))
        if (!(access.label == KMES_ORDER_FRESH))
            fail("order-strength", "5.1.10, E1, E4, E5, E24",
                 std::string("the access ") + label_name(access.label) +
                     " is done in another way than kmes/order.h says");
}

// Checks that this is the next step of the plan. The bytes of an event may take any number of
// accesses, so the first access of another kind ends them.
void Machine::take(Visible kind, const void* address) {
    Plan& plan = task_->plan;
    if (kind != Visible::data && !plan.empty() && plan.front().kind == Visible::data) {
        task_->taken.push_back(plan.front());
        plan.pop_front();
    }
    if (plan.empty())
        fail(property_of(kind), clause_of(kind),
             std::string(text_of(kind)) + ", where nothing more should come");
    if (kind == Visible::generation && plan.front().kind == Visible::successor) {
        check_successor(plan.front());
        task_->taken.push_back(plan.front());
        plan.pop_front();
    }
    const Step step = plan.front();
    if (step.kind != kind)
        fail(property_of(step.kind), clause_of(step.kind),
             std::string(text_of(kind)) + " came before " + text_of(step.kind));
    Ring& ring = *rings_[step.buffer];
    const kmes_fields& shared = ring.buffer.shared;
    const void* right = nullptr;
    switch (kind) {
        case Visible::tail:
            right = shared.tail_pos;
            ring.visible_tail = step.value;
            break;
        case Visible::publish:
            right = shared.write_pos;
            ring.visible_write = step.value;
            break;
        case Visible::load_need_wake:
            right = shared.need_wake;
            break;
        case Visible::counter:
        case Visible::retire_counter:
            right = shared.futex_counter;
            break;
        case Visible::generation:
            right = shared.generation;
            break;
        case Visible::wake:
            right = &ring.buffer;
            break;
        default:
            right = address;
            break;
    }
    if (address != right)
        fail("containment", "5.1.6", std::string(text_of(kind)) + " is in another place");
    if (ring.visible_tail > ring.visible_write)
        fail("tail", "E8", "tail_pos is beyond what is published");
    plan.pop_front();
    task_->taken.push_back(step);
    if (kind == Visible::load_need_wake)
        (*shared.need_wake ? result_.seen.asked : result_.seen.unasked)++;
    if (kind == Visible::publish && !plan.empty() && plan.front().kind == Visible::tail)
        result_.seen.published_early++;
    model_.apply(step, *shared.need_wake, plan);
}

// The core as shipped reports no accesses. The steps are taken after the operation, and only their
// result can be compared.
void Machine::take_all(Task& task) {
    std::size_t wakes = 0;
    while (!task.plan.empty()) {
        const Step step = task.plan.front();
        task.plan.pop_front();
        if (step.kind == Visible::successor) check_successor(step);
        if (step.kind == Visible::wake &&
            (wakes >= task.wakes.size() || task.wakes[wakes++] != &rings_[step.buffer]->buffer))
            fail("wake", clause_of(step.kind), "a wake is missing, or goes to another buffer");
        model_.apply(step, *rings_[step.buffer]->buffer.shared.need_wake, task.plan);
    }
    if (wakes != task.wakes.size()) fail("wake", "5.1.7 step 9", "a wake that nobody asked for");
    for (std::size_t i = 0; i < rings_.size(); i++) {
        rings_[i]->visible_tail = model_.buffers[i].tail;
        rings_[i]->visible_write = model_.buffers[i].published;
    }
}

void Machine::audit_producer(const kmes_order_access& access) {
    if (!task_) fail("order", "5.1.7", "an access outside of any operation");
    switch (access.label) {
        case KMES_ORDER_TAIL:
            return take(Visible::tail, access.address);
        case KMES_ORDER_TAIL_FENCE:
            return take(Visible::tail_fence, access.address);
        case KMES_ORDER_DATA:
            return audit_data(access);
        case KMES_ORDER_WALK_SIZE:
            return audit_walk(access);
        case KMES_ORDER_PUBLISH:
            return take(Visible::publish, access.address);
        case KMES_ORDER_WAKE_FENCE:
            return take(Visible::wake_fence, access.address);
        case KMES_ORDER_NEED_WAKE:
            return take(Visible::load_need_wake, access.address);
        case KMES_ORDER_COUNTER:
            return take(Visible::counter, access.address);
        case KMES_ORDER_GENERATION:
            return take(Visible::generation, access.address);
        case KMES_ORDER_RETIRE_COUNTER:
            return take(Visible::retire_counter, access.address);
        case KMES_ORDER_FRESH:
        case KMES_ORDER_SWAP_DATA:
        case KMES_ORDER_SWAP_TAIL:
        case KMES_ORDER_SWAP_PUBLISH:
            return audit_new_ring(access);
        default:
            fail("order", "5.1.7",
                 std::string("the producer makes the access ") + label_name(access.label));
    }
}

// 5.1.4: the bytes of the event that is being written.
void Machine::audit_data(const kmes_order_access& access) {
    const Plan& plan = task_->plan;
    if (plan.empty() || plan.front().kind != Visible::data)
        fail(plan.empty() ? "publication" : property_of(plan.front().kind),
             plan.empty() ? "5.1.7 step 7" : clause_of(plan.front().kind),
             plan.empty() ? std::string("bytes are written after the last step")
                          : std::string("bytes are written before ") + text_of(plan.front().kind));
    // A piece may go to either of the two mappings, which have the same bytes.
    const Step& step = plan.front();
    const Ring& ring = *rings_[step.buffer];
    const auto* at = static_cast<const std::uint8_t*>(access.address);
    const std::uint64_t capacity = ring.buffer.capacity;
    const bool is_in_data =
        at >= ring.memory.data() && at + access.bytes <= ring.memory.data() + 2 * capacity;
    const std::uint64_t offset =
        (static_cast<std::uint64_t>(at - ring.memory.data()) - step.position) & (capacity - 1);
    if (!is_in_data || access.bytes > step.value || offset > step.value - access.bytes)
        fail("containment", "5.1.4", "bytes are written outside of the event");
}

// The producer reads back a size of a live event. If that size is impossible, the model computes
// the operation again.
void Machine::audit_walk(const kmes_order_access& access) {
    Task& task = *task_;
    const bool is_swap = task.operation.verb == Verb::prepare ||
                         task.operation.verb == Verb::copy || task.changes_buffers;
    const Model& before = task.before ? *task.before : model_;
    std::size_t index;
    const Ring* ring = ring_containing(access.address, &index);
    if (!ring) fail("containment", "5.1.4", "a size is read outside of the buffers");
    // A size of four bytes is read in one or two pieces; the first begins it.
    const std::uint64_t at = static_cast<const std::uint8_t*>(access.address) - ring->memory.data();
    if (at + access.bytes >= ring->buffer.capacity + sizeof(std::uint32_t))
        fail("containment", "5.1.4", "a size is read from where no event begins");
    if (task.before && !task.met_corrupt) {
        for (const ModelEvent& event : before.now().events) {
            if (event.is_corrupt && (event.position & (ring->buffer.capacity - 1)) == at &&
                index == before.current)
                return meet_corrupt(task);
        }
    }
    const unsigned limit =
        walk_limit(ring->buffer.capacity) + (is_swap ? KMES_SWAP_PIECE_EVENTS : 0);
    // If a size crosses a word, two accesses read it.
    task.walked_bytes += access.bytes;
    const std::uint64_t sizes = (task.walked_bytes + 3) / sizeof(std::uint32_t);
    if (!is_swap) result_.seen.sizes = std::max(result_.seen.sizes, sizes);
    if (sizes > limit)
        fail("bounded-walk", "E23, E13", "more sizes are read than there are after an index entry");
}

// Computes everything again from the beginning of the operation; steps already taken stay.
void Machine::meet_corrupt(Task& task) {
    const std::vector<ModelBuffer> seen = model_.buffers;
    Model model = *task.before;
    Plan plan;
    model.meets_corrupt = true;
    task.expected = task.model_call(model, plan, task.is_nested);
    model.meets_corrupt = false;
    model.take_over(model_);
    for (std::size_t i = 0; i < seen.size() && i < task.before->buffers.size(); i++)
        model.buffers[i].page = seen[i].page;
    for (const Step& step : task.taken) {
        if (plan.empty() || plan.front().kind != step.kind)
            fail("corrupt", "E13", "an impossible size was read too late");
        plan.pop_front();
        if (step.kind == Visible::publish) model.apply(step, 0, plan);
    }
    model_ = std::move(model);
    task.plan = std::move(plan);
    task.met_corrupt = true;
}

// A new buffer, to which no consumer can attach yet (E14).
void Machine::audit_new_ring(const kmes_order_access& access) {
    Ring* ring = task_->new_ring ? task_->new_ring.get() : prepared_ring_.get();
    if (!ring) fail("containment", "5.1.8.4", "a new buffer is written where there is none");
    if (access.bytes == 0) return;
    const auto* at = static_cast<const std::uint8_t*>(access.address);
    if (!ring->memory.contains(at) || !ring->memory.contains(at + access.bytes - 1))
        fail("containment", "5.1.8.4", "bytes are copied outside of the new buffer");
}

// The successor must be whole, and known only to the producer, before a retired buffer sends
// consumers to it (E19, E24).
void Machine::check_successor(const Step& step) {
    std::unique_ptr<Ring>& ring = task_->new_ring ? task_->new_ring : prepared_ring_;
    if (!ring || cpu_.buffer != &ring->buffer)
        fail("generation", "E19", "generation is stored before the producer has the new buffer");
    settle(*flow_);
    ring->visible_tail = model_.now().tail;
    ring->visible_write = model_.now().published;
    rings_.push_back(std::move(ring));
    ModelBuffer& model = model_.buffers[step.buffer];
    if (!model_.successor_is_exact) {
        std::string data(reinterpret_cast<const char*>(rings_.back()->memory.data()),
                         model.capacity);
        std::swap(data, model.data);
        for (const ModelEvent& event : model.events)
            for (std::uint64_t i = event.position; i < event.end(); i++)
                model.data[i % model.capacity] = data[i % model.capacity];
    }
    check_page(step.buffer, "newest-suffix", "5.1.8.3, E10, E11");
    check_data(step.buffer, "newest-suffix", "5.1.8.3, E10, E11");
}

// 5.1.7 step 8: at any time, whole events fill the bytes between tail_pos and write_pos.
void Machine::check_visible(const kmes_order_access& access) {
    const bool is_byte = access.label == KMES_ORDER_DATA || access.label == KMES_ORDER_SWAP_DATA ||
                         access.label == KMES_ORDER_WALK_SIZE;
    const ModelBuffer& model = model_.now();
    if (model_.current >= rings_.size()) return;  // the new buffer does not exist yet
    const Ring& ring = *rings_[model_.current];
    if (is_byte && model.capacity > kAlwaysChecked) return;
    if (!is_byte) check_page(model_.current);
    const std::uint64_t from = std::max(ring.visible_tail, model.tail);
    if (from >= ring.visible_write) return;
    const std::uint64_t bytes = ring.visible_write - from;
    const std::uint64_t at = from % model.capacity;
    const std::uint64_t first = std::min(bytes, model.capacity - at);
    const auto* data = reinterpret_cast<const char*>(ring.memory.data());
    if (std::memcmp(data + at, model.data.data() + at, first) != 0 ||
        std::memcmp(data, model.data.data(), bytes - first) != 0)
        fail("publication", "5.1.7 steps 7 and 8",
             "what is published between tail_pos and write_pos is not whole");
}

void Machine::check_page(std::size_t index, const char* property, const char* clause) {
    const Ring& ring = *rings_[index];
    const std::string& page = model_.buffers[index].page;
    const auto* shared = reinterpret_cast<const char*>(ring.memory.base());
    if (std::memcmp(shared, page.data(), page.size()) == 0) return;
    std::size_t at = 0;
    while (shared[at] == page[at]) at++;
    fail(property, clause,
         "byte " + std::to_string(at) + " of the metadata page of buffer " + std::to_string(index) +
             " is " + std::to_string(static_cast<unsigned char>(shared[at])) + ", and must be " +
             std::to_string(static_cast<unsigned char>(page[at])));
}

void Machine::check_data(std::size_t index, const char* property, const char* clause) {
    const Ring& ring = *rings_[index];
    const std::string& data = model_.buffers[index].data;
    for (const char* half : {reinterpret_cast<const char*>(ring.memory.data()),
                             reinterpret_cast<const char*>(ring.memory.data()) + data.size()}) {
        if (std::memcmp(half, data.data(), data.size()) == 0) continue;
        std::size_t at = 0;
        while (half[at] == data[at]) at++;
        fail(property, clause,
             "byte " + std::to_string(at) + " of the data of buffer " + std::to_string(index) +
                 " is " + std::to_string(static_cast<unsigned char>(half[at])) + ", and must be " +
                 std::to_string(static_cast<unsigned char>(data[at])));
    }
}

void Machine::check_counters() {
    const kmes_statistics& core = cpu_.statistics;
    const ModelCounters& model = model_.counters;
    const std::pair<const char*, std::pair<std::uint64_t, std::uint64_t>> figures[] = {
        {"events", {core.events, model.events}},
        {"bytes", {core.bytes, model.bytes}},
        {"dropped", {core.dropped, model.dropped}},
        {"dropped_nested", {core.dropped_nested, model.dropped_nested}},
        {"overwritten", {core.overwritten, model.overwritten}},
        {"wakes", {core.wakes, model.wakes}},
        {"corrupt", {core.corrupt, model.corrupt}},
        {"swaps", {core.swaps, model.swaps}},
        {"left_behind", {core.left_behind, model.left_behind}},
        {"sequence", {cpu_.sequence, model_.sequence}},
        {"clock", {clock_ns_, model_.clock_ns}},
    };
    for (const auto& [name, value] : figures) {
        if (value.first == value.second) continue;
        fail(std::strcmp(name, "sequence") == 0 ? "sequence" : "counters",
             "5.1.7 steps 1, 2 and 5, 5.1.9, E16",
             std::string(name) + " is " + std::to_string(value.first) + ", and must be " +
                 std::to_string(value.second));
    }
}

// Checks the whole state of the model, to the last byte.
void Machine::check_all() {
    settle(main_flow_);
    check_counters();
    for (std::size_t i = 0; i < rings_.size(); i++) {
        check_page(i);
        check_data(i);
    }
    const kmes_buffer& core = rings_[model_.current]->buffer;
    const ModelBuffer& model = model_.now();
    if (cpu_.buffer != &core)
        fail("generation", "5.1.8.4", "the producer writes to another buffer");
    if (core.tail != model.tail || core.published != model.published ||
        core.frontier != model.frontier || core.generation != model.generation ||
        core.futex_counter != model.counter)
        fail("model", "E13", "the producer's own positions are not those of the model");
    const bool must_be_inside = model_.has_reservation;
    if ((depth_ > 0) != must_be_inside || (cpu_.inside != 0) != must_be_inside)
        fail("critical-section", "E16",
             must_be_inside ? "left while a reservation is open" : "not left at the end");
}

// E12: one consumer only, or several consumers that never clear the flag.
bool Machine::wakes_are_sure() const {
    if (consumers_.size() == 1) return true;
    return std::all_of(consumers_.begin(), consumers_.end(),
                       [](const auto& consumer) { return consumer->settings[Key::sharing] == 1; });
}

// E1, E2, E3, E19: while the producer is idle, a sleeping consumer must have everything.
void Machine::check_nobody_sleeps_on_an_event() {
    if (started_ || model_.wake_is_owed || !wakes_are_sure()) return;
    const ModelBuffer& buffer = model_.now();
    const ModelEvent* newest = nullptr;
    for (const ModelEvent& event : buffer.events)
        if (event.end() <= buffer.published) newest = &event;
    for (const auto& consumer : consumers_) {
        if (consumer->state != ConsumerState::asleep || consumer->is_woken) continue;
        if (consumer->is_misled || rings_[consumer->sleeps_on]->is_poked) continue;
        // It has given up its checks whether the buffer is current, and relies on a nudge.
        if (consumer->unsure_attaches >= kAttachAttempts) continue;
        if (newest && consumer->last < newest->sequence && !consumer->is_request_erased)
            fail("sleep", "5.1.8.2, E1, E2, E3",
                 "consumer " + std::to_string(consumer->number) + " sleeps, and event " +
                     std::to_string(newest->sequence) + " is published");
        if (consumer->sleeps_on != model_.current && !model_.buffers[consumer->sleeps_on].is_boot)
            fail("sleep", "5.1.8.3, E3, E19",
                 "consumer " + std::to_string(consumer->number) + " sleeps on a retired buffer");
    }
}

}  // namespace kmes::props
