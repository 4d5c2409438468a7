// SPDX-License-Identifier: MIT
//
// Plays the script operation by operation, chooses which flow runs, and has the one hook
// (machine.h).
#include "props/machine/machine.h"

#include <algorithm>
#include <utility>

#include "props/script/form.h"
#include "props/script/outline.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kWithoutEnd = ~0ull;
constexpr std::uint64_t kAccessesOfALine = 200;
constexpr std::uint64_t kAccessesOfAnAttach = 20;
// The limit of all flows, in addition to the accesses for the bytes of a script. More is an endless
// loop.
constexpr std::uint64_t kMostAccesses = 2000000;

ModelSettings model_settings(const Operation& settings) {
    ModelSettings model;
    model.capacity = settings[Key::capacity];
    model.position = settings[Key::position];
    model.sequence = settings[Key::sequence];
    model.clock_ns = settings[Key::clock];
    model.cpu = static_cast<std::uint16_t>(settings[Key::cpu]);
    model.is_boot = settings[Key::phase] == 1;
    return model;
}

// Returns how many accesses one flow needs at most for the bytes of a script. An access has up to
// eight bytes, and a small event needs about ten accesses, so one for each byte is ample. Each line
// may let every flow do a little more.
std::uint64_t accesses_for_bytes(const Script& script) {
    std::uint64_t largest = script.settings()[Key::capacity];
    for (const Operation& operation : script.operations)
        if (rule_of(operation.verb, Key::capacity))
            largest = std::max(largest, operation[Key::capacity]);
    std::uint64_t bytes = largest;
    for (const Operation& operation : script.operations) {
        bytes += kAccessesOfALine;
        if (operation.verb == Verb::attach)
            bytes += kAccessesOfAnAttach * (operation[Key::refuse] + operation[Key::foreign]);
        // Readers go over the whole ring again after a swap. They may do so after a poke.
        else if (rule_of(operation.verb, Key::capacity) || operation.verb == Verb::poke ||
                 operation.verb == Verb::corrupt)
            bytes += largest;
        else if (rule_of(operation.verb, Key::payload))
            bytes += std::min(event_bytes(operation), largest / 2);
        else if (operation.verb == Verb::fill)
            bytes += std::min(operation[Key::bytes], largest / 2);
    }
    return bytes;
}

}  // namespace

Machine::Machine(const Script& script, const PlayOptions& options)
    : script_(script),
      options_(options),
      accesses_for_bytes_(accesses_for_bytes(script)),
      settings_(script.settings()),
      model_(model_settings(settings_)),
      clock_ns_(settings_[Key::clock]) {
    kmes_order_hook_context = this;
    kmes_order_hook = nullptr;
    platform_.context = this;
    platform_.clock_ns = clock;
    platform_.enter = enter;
    platform_.exit = exit;
    platform_.queue_wake = queue_wake;
    rings_.push_back(
        make_ring(settings_[Key::capacity], model_.now().generation, settings_[Key::position]));
    kmes_cpu_init(&cpu_, static_cast<__u16>(settings_[Key::cpu]), &rings_[0]->buffer, &platform_,
                  settings_[Key::sequence]);
    make_consumers();
    access_limit_ = options.access_limit
                        ? options.access_limit
                        : kMostAccesses + (1 + consumers_.size()) * accesses_for_bytes_;
    kmes_order_hook = hook;
}

Machine::~Machine() {
    cancel();
    kmes_order_hook = nullptr;
}

void Machine::hook(void* context, const struct kmes_order_access* access) {
    static_cast<Machine*>(context)->on_access(*access);
}

// docs/script-format.md: every read of the clock advances it.
__u64 Machine::clock(void* context) {
    return static_cast<Machine*>(context)->clock_ns_++;
}

// An interrupt can come into a critical section (guard=core), or is turned away at the entry
// (guard=platform). Both happen on real machines (platform.h).
bool Machine::enter(void* context) {
    auto* machine = static_cast<Machine*>(context);
    if (machine->depth_ > 0 && machine->settings_[Key::guard] == 1) return false;
    machine->depth_++;
    if (machine->task_) {
        machine->task_->sections++;
        machine->task_->walked_bytes = 0;
    }
    return true;
}

void Machine::exit(void* context) {
    auto* machine = static_cast<Machine*>(context);
    if (--machine->depth_ < 0)
        machine->fail("critical-section", "E16", "left more often than it was entered");
}

void Machine::queue_wake(void* context, kmes_buffer* buffer) {
    auto* machine = static_cast<Machine*>(context);
    if (machine->depth_ == 0)
        machine->fail("wake", "E16", "queued outside of the critical section");
    if (kIsHooked)
        machine->take(Visible::wake, buffer);
    else
        machine->task_->wakes.push_back(buffer);
    for (const auto& consumer : machine->consumers_) {
        if (consumer->state == ConsumerState::asleep &&
            &machine->rings_[consumer->sleeps_on]->buffer == buffer)
            consumer->is_woken = true, machine->result_.seen.woken++;
    }
}

void Machine::fail(const char* property, const char* clause, const std::string& message) {
    if (!result_.failure) result_.failure = Failure{property, clause, message, operation_index_};
    throw Stop{};
}

// Mirrors the written half of a small buffer to the other half (ring_memory.h).
void Machine::settle(Flow& flow) {
    if (flow.written_memory) flow.written_memory->mirror(flow.written, flow.written_bytes);
    flow.written_memory = nullptr;
}

void Machine::remember_write(Flow& flow, const kmes_order_access& access) {
    if (access.label != KMES_ORDER_DATA && access.label != KMES_ORDER_SWAP_DATA) return;
    std::size_t index;
    Ring* ring = ring_containing(access.address, &index);
    if (!ring || !ring->memory.is_mirrored()) return;
    flow.written_memory = &ring->memory;
    flow.written = access.address;
    flow.written_bytes = access.bytes;
}

// The access happens right after this returns, with nothing in between.
void Machine::on_access(const kmes_order_access& access) {
    Flow& flow = *flow_;
    settle(flow);
    if (is_cancelling_) throw Stop{};
    if (++result_.accesses > access_limit_)
        fail("termination", "5.1.7, 5.1.8", "more accesses than any right run of this script has");
    audit_kind(access);
    if (!consumer_) check_visible(access);
    if (flow.fiber) {
        if (flow.budget == 0) {
            flow.next = label_name(access.label);
            Fiber::pause();
            if (is_cancelling_) throw Stop{};
        }
        flow.budget--;
    }
    if (consumer_)
        audit_consumer(*consumer_, access);
    else
        audit_producer(access);
    remember_write(flow, access);
}

void Machine::resume(Flow& flow, Fiber& fiber, std::uint64_t budget) {
    Flow* const before = std::exchange(flow_, &flow);
    flow.fiber = &fiber;
    flow.budget = budget;
    fiber.resume();
    flow_ = before;
}

std::size_t Machine::ring_index(const kmes_buffer* buffer) const {
    for (std::size_t i = 0; i < rings_.size(); i++)
        if (&rings_[i]->buffer == buffer) return i;
    return rings_.size();
}

Ring* Machine::ring_containing(const void* address, std::size_t* index) {
    for (*index = 0; *index < rings_.size(); ++*index)
        if (rings_[*index]->memory.contains(address)) return rings_[*index].get();
    if (prepared_ring_ && prepared_ring_->memory.contains(address)) return prepared_ring_.get();
    if (task_ && task_->new_ring && task_->new_ring->memory.contains(address))
        return task_->new_ring.get();
    return nullptr;
}

void Machine::perform(const Operation& operation) {
    was_skipped_ = false;
    returned_.reset();
    switch (rule_of(operation.verb).actor) {
        case Actor::setting:
            break;
        case Actor::producer:
            perform_producer(operation);
            break;
        case Actor::schedule:
            perform_schedule(operation);
            break;
        case Actor::world:
            perform_world(operation);
            break;
    }
    check_nobody_sleeps_on_an_event();
}

void Machine::perform_schedule(const Operation& operation) {
    if (operation.verb == Verb::advance || operation.verb == Verb::finish) {
        if (!started_) return skip();
        if (operation.verb == Verb::finish) return finish_started();
        task_ = &*started_;
        resume(started_flow_, *started_fiber_, operation[Key::count]);
        task_ = nullptr;
        leave_if_failed();
        if (started_fiber_->has_ended()) finish_started();
        return;
    }
    Consumer* consumer = consumer_of(operation[Key::consumer]);
    if (!consumer) return skip();
    const bool is_asleep = consumer->state == ConsumerState::asleep;
    switch (operation.verb) {
        case Verb::step:
            return run_consumer(*consumer, operation[Key::count]);
        case Verb::run:
            return run_consumer(*consumer, kWithoutEnd);
        case Verb::restart:
            return stop_fiber(*consumer);
        case Verb::expire:
            if (!is_asleep || consumer->timeout_ns == KMES_NO_TIMEOUT) return skip();
            consumer->is_expired = true;
            break;
        default:
            if (!is_asleep) return skip();
            consumer->is_interrupted = true;
            break;
    }
}

void Machine::perform_world(const Operation& operation) {
    switch (operation.verb) {
        case Verb::jump:
            model_.jump(operation[Key::forward], operation[Key::back]);
            clock_ns_ += operation[Key::forward];
            clock_ns_ -= std::min<std::uint64_t>(clock_ns_, operation[Key::back]);
            break;
        case Verb::poke: {
            const std::uint64_t index = operation[Key::buffer];
            if (index >= rings_.size()) return skip();
            const std::uint64_t offset = operation[Key::offset];
            Ring& ring = *rings_[index];
            ring.memory.base()[offset] = static_cast<std::uint8_t>(operation[Key::value]);
            model_.buffers[index].page[offset] = static_cast<char>(operation[Key::value]);
            if (offset != kNeedWakeAt)
                ring.is_poked = true;
            else if (operation[Key::value] == 0)
                for (const auto& consumer : consumers_)
                    if (consumer->reader.mapping.inode == kInodeOfFirst + index)
                        consumer->is_request_erased = true;
            result_.seen.pokes++;
            break;
        }
        case Verb::corrupt: {
            // Not during an operation of the producer: the bytes that it has read or copied so far
            // are not known.
            if (started_ || model_.has_reservation || model_.has_prepared || !kIsHooked)
                return skip();
            const std::size_t event = operation[Key::event];
            const auto bytes = static_cast<std::uint32_t>(operation[Key::value]);
            if (!model_.corrupt(event, bytes)) return skip();
            Ring& ring = *rings_[model_.current];
            const std::uint64_t at =
                model_.now().events[event].position & (ring.buffer.capacity - 1);
            for (int i = 0; i < 4; i++) {
                ring.memory.data()[at + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
                if (ring.memory.is_mirrored()) ring.memory.mirror(ring.memory.data() + at + i, 1);
            }
            ring.is_poked = true;
            break;
        }
        default:
            refuse_ = operation[Key::refuse];
            foreign_ = operation[Key::foreign];
            break;
    }
}

// Ends the open operations, and lets every consumer that still can read to the end.
void Machine::end_script() {
    if (started_) finish_started();
    if (model_.has_reservation) perform(Operation(Verb::abandon));
    if (model_.has_batch) perform(Operation(Verb::end));
    refuse_ = foreign_ = 0;
    for (const auto& consumer : consumers_) run_consumer(*consumer, kWithoutEnd);
    check_all();
    check_nobody_sleeps_on_an_event();
    for (const auto& consumer : consumers_) stop_fiber(*consumer);
}

PlayResult Machine::run() {
    try {
        for (std::size_t i = 0; i < script_.operations.size(); i++) {
            operation_index_ = i;
            perform(script_.operations[i]);
            if (options_.trace) options_.trace(script_.operations[i], state_text());
        }
        end_script();
    } catch (const Stop&) {
        if (options_.trace && operation_index_ < script_.operations.size())
            options_.trace(script_.operations[operation_index_], state_text());
    }
    sum_up();
    return result_;
}

void Machine::sum_up() {
    Seen& seen = result_.seen;
    const ModelCounters& counters = model_.counters;
    seen.written = result_.events = counters.events;
    seen.dropped = counters.dropped;
    seen.nested = counters.dropped_nested;
    seen.overwritten = counters.overwritten;
    seen.left_behind = counters.left_behind;
    seen.swaps = counters.swaps;
    seen.corrupt = counters.corrupt;
    seen.deliveries = result_.deliveries;
    if (!result_.failure) result_.producer_digest = producer_digest();
}

// FNV-1a; includes retired buffers.
std::uint64_t Machine::producer_digest() const {
    std::uint64_t digest = 0xcbf29ce484222325;
    const auto add = [&digest](const void* bytes, std::size_t length) {
        for (std::size_t i = 0; i < length; i++)
            digest = (digest ^ static_cast<const std::uint8_t*>(bytes)[i]) * 0x100000001b3;
    };
    const auto add_number = [&add](std::uint64_t number) { add(&number, sizeof(number)); };
    for (const auto& ring : rings_) {
        const kmes_buffer& buffer = ring->buffer;
        for (const std::uint64_t number :
             {buffer.capacity, buffer.tail, buffer.published, buffer.frontier, buffer.tail_ordinal,
              buffer.frontier_ordinal, buffer.generation})
            add_number(number);
        add(ring->memory.data(), ring->memory.capacity_bytes());
    }
    kmes_statistics statistics = cpu_.statistics;
    statistics.wakes = 0;
    add(&statistics, sizeof(statistics));
    add_number(cpu_.sequence);
    add_number(clock_ns_);
    return digest;
}

void Machine::cancel() {
    is_cancelling_ = true;
    consumer_ = nullptr;
    if (started_fiber_ && started_fiber_->has_begun() && !started_fiber_->has_ended()) {
        task_ = &*started_;
        resume(started_flow_, *started_fiber_, 0);
    }
    for (const auto& consumer : consumers_) {
        if (!consumer->fiber || !consumer->fiber->has_begun() || consumer->fiber->has_ended())
            continue;
        consumer_ = consumer.get();
        resume(consumer->flow, *consumer->fiber, 0);
    }
}

}  // namespace kmes::props
