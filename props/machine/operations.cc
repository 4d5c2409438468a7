// SPDX-License-Identifier: MIT
//
// The calls of each operation of the producer, in the core and in the model (machine.h). An
// operation that does not apply in its place has no task, and is skipped (docs/script-format.md).
#include <algorithm>
#include <utility>

#include "props/machine/machine.h"

namespace kmes::props {
namespace {

// A shift moves no position beyond this (E11: positions never cross 2^64).
constexpr std::uint64_t kHighestPosition = ~0ull - (1ull << 41);

ModelStyle style_of(const Operation& operation) {
    return operation[Key::style] == 1 ? ModelStyle::call : ModelStyle::kernel;
}

}  // namespace

std::unique_ptr<Ring> Machine::make_ring(std::uint64_t capacity_bytes, std::uint64_t generation,
                                         std::uint64_t position) {
    auto ring = std::make_unique<Ring>(capacity_bytes);
    kmes_buffer_setup setup{};
    setup.mapping = ring->memory.base();
    setup.index = ring->index.data();
    setup.capacity_bytes = capacity_bytes;
    setup.generation = generation;
    setup.start_pos = position;
    setup.version = KMES_VERSION_1;
    setup.cpu_id = static_cast<__u16>(settings_[Key::cpu]);
    // No consumer sees the buffer yet, so its stores are no steps.
    const auto hook = std::exchange(kmes_order_hook, nullptr);
    const int error = kmes_buffer_init(&ring->buffer, &setup);
    kmes_order_hook = hook;
    if (error) fail("model", "5.1.3", "a buffer of this capacity was refused");
    ring->visible_tail = ring->visible_write = position;
    return ring;
}

ModelInput Machine::input_of(const Operation& operation) const {
    ModelInput input;
    input.type = full_type(operation);
    input.payload_bytes = operation[Key::payload];
    input.seed = operation[Key::seed];
    input.origin = static_cast<std::uint8_t>(operation[Key::origin]);
    input.extra_bytes = operation[Key::extra];
    return input;
}

// The memory belongs to the task. A payload that no buffer can accept has no memory, so a core that
// reads it crashes.
kmes_event_input Machine::core_input(const ModelInput& input) {
    kmes_event_input core{};
    task_->type = input.type;
    if (input.bytes() <= cpu_.buffer->capacity)
        task_->payload = payload_bytes(input.seed, input.payload_bytes);
    core.type = task_->type.data();
    core.type_len = static_cast<__u16>(input.type.size());
    core.payload = task_->payload.empty() ? nullptr : task_->payload.data();
    core.payload_len = static_cast<__u32>(input.payload_bytes);
    core.origin_class = input.origin;
    core.header_extra_len = static_cast<__u32>(input.extra_bytes);
    return core;
}

int Machine::emit_entry(const kmes_event_input& input) {
    const kmes_batch_entry entry{input.type, input.payload, input.type_len, input.payload_len};
    // Larger than every payload: only the capacity limits the written bytes.
    const kmes_batch_rules rules{.max_event_bytes = UINT64_MAX / 2,
                                 .origin_class = input.origin_class};
    __u32 emitted = 0;

    return kmes_batch_emit_entries(&cpu_, &batch_, &rules, &entry, 1, &emitted);
}

std::optional<Task> Machine::event_task(const Operation& operation) {
    if (model_.is_over) return std::nullopt;
    const ModelInput input = input_of(operation);
    const ModelStyle style = style_of(operation);
    Task task;
    if (operation.verb == Verb::emit) {
        task.model_call = [input, style](Model& model, Plan& plan, bool is_nested) {
            return model.emit(input, style, is_nested, plan);
        };
        task.core_call = [this, input, style] {
            const kmes_event_input core = core_input(input);
            return style == ModelStyle::call ? kmes_cpu_emit_call(&cpu_, &core)
                                             : kmes_cpu_emit(&cpu_, &core);
        };
    } else {
        if (!model_.has_batch) return std::nullopt;
        task.model_call = [input, style](Model& model, Plan& plan, bool is_nested) {
            return model.add(input, style, is_nested, plan);
        };
        task.core_call = [this, input, style] {
            const kmes_event_input core = core_input(input);
            if (style != ModelStyle::call) return kmes_batch_emit(&cpu_, &batch_, &core);
            // Every second suitable payload is emitted as a whole list of entries.
            if (core.payload_len % 2 && !core.header_extra_len &&
                kmes_utf8_is_valid(core.type, core.type_len))
                return emit_entry(core);
            return kmes_batch_emit_call(&cpu_, &batch_, &core);
        };
    }
    return task;
}

std::optional<Task> Machine::reservation_task(const Operation& operation) {
    Task task;
    if (operation.verb == Verb::reserve) {
        if (model_.is_over) return std::nullopt;
        const ModelInput input = input_of(operation);
        task.model_call = [input](Model& model, Plan& plan, bool is_nested) {
            return model.reserve(input, is_nested, plan);
        };
        task.core_call = [this, input] {
            const kmes_event_input core = core_input(input);
            // A nested emission must not touch the reservation that it interrupts.
            kmes_reservation reservation{};
            const int error = kmes_reserve(&cpu_, &core, &reservation);
            if (error) return error;
            reservation_ = reservation;
            reserved_payload_ = task_->payload;
            return 0;
        };
        return task;
    }
    if (!model_.has_reservation || started_) return std::nullopt;
    task.goes_on = true;
    if (operation.verb == Verb::fill) {
        const std::uint64_t offset = operation[Key::offset];
        const std::uint64_t bytes = operation[Key::bytes];
        task.model_call = [offset, bytes](Model& model, Plan& plan, bool) {
            model.fill(offset, bytes, plan);
            return 0;
        };
        task.core_call = [this, offset, bytes] {
            const char* from = reserved_payload_.data() +
                               std::min<std::uint64_t>(offset, reserved_payload_.size());
            kmes_reservation_fill(&cpu_, &reservation_, static_cast<__u32>(offset), from,
                                  static_cast<__u32>(bytes));
            return 0;
        };
        return task;
    }
    const bool is_commit = operation.verb == Verb::commit;
    task.model_call = [is_commit](Model& model, Plan& plan, bool) {
        is_commit ? model.commit(plan) : model.abandon(plan);
        return 0;
    };
    task.core_call = [this, is_commit] {
        is_commit ? kmes_commit(&cpu_, &reservation_) : kmes_abandon(&cpu_, &reservation_);
        return 0;
    };
    return task;
}

bool Machine::shift_is_possible(const Operation& operation) const {
    return operation[Key::positions] != 2 ||
           operation[Key::shift] <= kHighestPosition - model_.now().frontier;
}

std::optional<Task> Machine::swap_task(const Operation& operation) {
    const bool is_in_boot = model_.now().is_boot;
    const bool is_whole = operation.verb != Verb::prepare;
    if (model_.is_over || model_.has_prepared || !shift_is_possible(operation)) return std::nullopt;
    if (is_in_boot != (operation.verb == Verb::handover)) return std::nullopt;
    if (started_ && started_->operation.verb == Verb::prepare) return std::nullopt;
    const std::uint64_t capacity = operation[Key::capacity];
    const auto positions = static_cast<ModelPositions>(operation[Key::positions]);
    const std::uint64_t shift = operation[Key::shift];
    Task task;
    task.new_ring = make_ring(capacity, 0, 0);
    task.changes_buffers = is_whole;
    kmes_buffer* const fresh = &task.new_ring->buffer;
    const auto core_positions = static_cast<kmes_swap_positions>(positions);
    // An impossible size is found while the swap begins, or later.
    task.model_call = [=, this](Model& model, Plan& plan, bool is_nested) {
        const bool meets = model.meets_corrupt;
        const bool is_first = task_ && task_->sections <= 1;
        model.meets_corrupt = meets && (is_first || !is_whole);
        int error = model.prepare(capacity, positions, shift, is_nested, plan);
        model.meets_corrupt = meets && !model.meets_corrupt;
        if (!error && is_whole) error = model.change(false, plan);
        return error;
    };
    task.core_call = [=, this] {
        if (!is_whole) return kmes_swap_begin(&swap_, &cpu_, fresh, core_positions, shift);
        return kmes_swap_run(&cpu_, fresh, core_positions, shift);
    };
    return task;
}

// An operation without an event.
std::optional<Task> Machine::task_of(const Operation& operation) {
    Task task;
    switch (operation.verb) {
        case Verb::emit:
        case Verb::add:
            return event_task(operation);
        case Verb::reserve:
        case Verb::fill:
        case Verb::commit:
        case Verb::abandon:
            return reservation_task(operation);
        case Verb::handover:
        case Verb::resize:
        case Verb::prepare:
            return swap_task(operation);
        case Verb::batch:
            if (model_.has_batch || model_.is_over) return std::nullopt;
            task.model_call = [](Model& model, Plan&, bool) { return model.batch(), 0; };
            task.core_call = [this] { return kmes_batch_begin(&cpu_, &batch_), 0; };
            return task;
        case Verb::end:
            if (!model_.has_batch || model_.is_over) return std::nullopt;
            task.model_call = [](Model& model, Plan& plan, bool is_nested) {
                return model.end(is_nested, plan), 0;
            };
            task.core_call = [this] { return kmes_batch_end(&cpu_, &batch_), 0; };
            return task;
        case Verb::copy:
            if (!model_.has_prepared || model_.is_over) return std::nullopt;
            task.model_call = [](Model& model, Plan& plan, bool is_nested) {
                return model.copy(is_nested, plan), 0;
            };
            task.core_call = [this] { return copy_has_more_ = kmes_swap_copy(&swap_), 0; };
            return task;
        case Verb::change:
            if (!model_.has_prepared || model_.is_over) return std::nullopt;
            task.changes_buffers = true;
            task.model_call = [](Model& model, Plan& plan, bool is_nested) {
                return model.change(is_nested, plan);
            };
            task.core_call = [this] { return kmes_swap_finish(&swap_); };
            return task;
        case Verb::nudge: {
            const std::uint64_t buffer = operation[Key::buffer];
            if (buffer >= rings_.size()) return std::nullopt;
            task.model_call = [buffer](Model& model, Plan& plan, bool is_nested) {
                return model.nudge(buffer, is_nested, plan);
            };
            task.core_call = [this, buffer] {
                return kmes_buffer_nudge(&cpu_, &rings_[buffer]->buffer);
            };
            return task;
        }
        default:  // retire
            task.model_call = [](Model& model, Plan& plan, bool is_nested) {
                return model.retire(is_nested, plan);
            };
            task.core_call = [this] { return kmes_cpu_retire(&cpu_); };
            return task;
    }
}

// The model goes first: the core is checked against its plan.
void Machine::begin(Task& task) {
    task.is_nested = is_inside() && !task.goes_on;
    for (const ModelEvent& event : model_.now().events) {
        if (event.is_corrupt && !task.before) task.before = std::make_unique<Model>(model_);
    }
    task.expected = task.model_call(model_, task.plan, task.is_nested);
}

void Machine::run_core(Task& task) {
    task.result = task.core_call();
}

// After the operation: the whole plan must be done, and the state must be that of the model.
void Machine::end(Task& task) {
    settle(*flow_);
    if (!kIsHooked) take_all(task);
    if (task.result != task.expected)
        fail("result", "event model, Calls",
             "returned " + std::to_string(task.result) + ", not " + std::to_string(task.expected));
    while (!task.plan.empty() && task.plan.front().kind == Visible::data) task.plan.pop_front();
    if (!task.plan.empty())
        fail(property_of(task.plan.front().kind), clause_of(task.plan.front().kind),
             std::string("returned without ") + text_of(task.plan.front().kind));
    if (task.operation.verb == Verb::prepare && !task.expected)
        prepared_ring_ = std::move(task.new_ring);
    if (task.operation.verb == Verb::reserve && !task.expected) {
        const ModelBuffer& buffer = model_.now();
        const ModelInput input = input_of(task.operation);
        const std::uint64_t position = buffer.frontier + input.header_bytes();
        if (reservation_.payload !=
                rings_[model_.current]->memory.data() + position % buffer.capacity ||
            reservation_.payload_len != input.payload_bytes ||
            reservation_.event_bytes != input.bytes() ||
            reservation_.sequence != model_.sequence + 1)
            fail("containment", "5.1.4", "the reservation is not where the event will be");
    }
    count(task);
    if (task.operation.verb == Verb::copy && !task.is_nested) check_copied(task);
    if (!started_ || &task == &*started_) check_all();
}

void Machine::count(const Task& task) {
    if (task.expected) return;
    Seen& seen = result_.seen;
    if (task.operation.verb == Verb::handover) seen.handovers++;
    if (task.operation.verb == Verb::nudge) seen.nudges++;
    if (model_.now().events.empty()) return;
    const ModelEvent& newest = model_.now().events.back();
    const std::uint64_t capacity = model_.now().capacity;
    if (newest.position / capacity != (newest.end() - 1) / capacity) seen.crossed_end++;
}

// E18: a piece reported as the last one leaves nothing to copy; a small buffer is one piece.
void Machine::check_copied(const Task& task) {
    const ModelBuffer& buffer = model_.now();
    const bool is_small = buffer.capacity < KMES_SWAP_PIECE_BYTES;
    if (copy_has_more_ && is_small && !task.met_corrupt)
        fail("resize", "E18", "a piece that took all there was says that there is more");
    if (!copy_has_more_ && (swap_.copied < buffer.frontier || swap_.walked < buffer.frontier))
        fail("resize", "E18", "a piece says that it was the last one, and has left something");
}

void Machine::perform_producer(const Operation& operation) {
    if (operation.is_started && started_) finish_started();
    std::optional<Task> task = task_of(operation);
    if (!task) return skip();
    task->operation = operation;
    begin(*task);
    if (operation.is_started && !task->is_nested) {
        started_ = std::move(task);
        started_fiber_ =
            std::make_unique<Fiber>([this] { until_stop([this] { run_core(*started_); }); });
        task_ = &*started_;
        resume(started_flow_, *started_fiber_, 0);
        task_ = nullptr;
        leave_if_failed();
        if (started_fiber_->has_ended()) finish_started();
        return;
    }
    Task* const interrupted = std::exchange(task_, &*task);
    run_core(*task);
    end(*task);
    task_ = interrupted;
    returned_ = task->result;
}

void Machine::finish_started() {
    if (!started_) return;
    task_ = &*started_;
    while (!started_fiber_->has_ended()) {
        resume(started_flow_, *started_fiber_, ~0ull);
        leave_if_failed();
    }
    Flow* const before = std::exchange(flow_, &started_flow_);
    end(*started_);
    flow_ = before;
    task_ = nullptr;
    returned_ = started_->result;
    started_.reset();
    started_fiber_.reset();
}

}  // namespace kmes::props
