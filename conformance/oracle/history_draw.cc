// SPDX-License-Identifier: MIT
//
// See history_draw.h. Test only.
#include "conformance/oracle/history_draw.h"

#include <algorithm>

namespace kmes::conformance::simulation {
namespace {

constexpr std::uint32_t kOperationKinds = 16;

HistorySettings draw_settings(Tape& tape) {
    constexpr std::uint64_t kStarts[] = {0, 1, 250, 0xfffffff0, 0x7ffffffffffffff0};
    HistorySettings settings;
    settings.cpus = 1 + tape.choose(3);
    settings.capacity_bytes = std::uint64_t{256} << tape.choose(4);
    for (std::uint32_t i = tape.choose(4); i > 0; --i)
        settings.start_positions.push_back(kStarts[tape.choose(5)]);
    settings.first_sequence = 1 + tape.choose(3) * 1'000'000'000'000;
    settings.first_generation = 1 + tape.choose(4);
    settings.first_futex_counter = 0u - tape.choose(3);
    if (tape.one_in(3)) settings.maximum_call_event_bytes = 100;
    if (tape.one_in(3)) settings.boot_capacity_bytes = std::uint64_t{128} << tape.choose(2);
    return settings;
}

class Driver {
  public:
    explicit Driver(Tape tape) : tape_(std::move(tape)), history_(draw_settings(tape_)) {}

    History play() {
        if (tape_.one_in(4)) history_.set_kept_payload_bytes(tape_.choose(300));
        while (!tape_.empty()) {
            report_bytes_ += tape_.choose(50);
            if (!tape_.one_in(3)) history_.set_report_bytes(report_bytes_);
            operate(tape_.choose(history_.cpus()), tape_.choose(kOperationKinds));
        }
        return std::move(history_);
    }

  private:
    void operate(std::uint32_t cpu, std::uint32_t what) {
        const bool pending = history_.batch_pending(cpu);
        if (what < 5) {
            history_.emit(cpu, event(), what == 4 ? EmitStyle::call : EmitStyle::kernel);
        } else if (what == 5) {
            history_.drop(cpu);
        } else if (what == 6 && !pending && tape_.one_in(2)) {
            // Make room, and then emit the event for it.
            const EventSpec spec = event();
            const Buffer& buffer = history_.buffer(history_.current_buffer(cpu));
            if (encoded_bytes(spec) > buffer.capacity / 2) return;
            history_.reserve(cpu, encoded_bytes(spec), written());
            history_.emit(cpu, spec);
        } else if (what == 6 && pending) {
            history_.batch_end(cpu);
        } else if (what == 6) {
            history_.batch_begin(cpu, {written(), tape_.choose(3)});
        } else if (what < 9 && pending) {
            history_.batch_add(cpu, event(), what == 8 ? EmitStyle::call : EmitStyle::kernel);
        } else if (what == 8) {
            outrun(cpu);
        } else if (what == 9 && history_.buffer(history_.current_buffer(cpu)).boot) {
            history_.hand_over(cpu, swap());
        } else if (what == 9) {
            history_.swap(cpu, swap());
        } else if (what > 9) {
            touch(cpu, what);
        }
    }

    Written written() { return static_cast<Written>(tape_.choose(std::size(kWrittenNames))); }

    // Occasionally with more events than are ever listed.
    void outrun(std::uint32_t cpu) {
        constexpr std::uint64_t kMany = std::uint64_t{1} << 31;
        const std::uint64_t laps = 1 + tape_.choose(3);
        if (tape_.choose(4) != 3) return history_.outrun(cpu, laps);
        history_.outrun(cpu, kMany, kMany + laps);
    }

    void touch(std::uint32_t cpu, std::uint32_t what) {
        const std::vector<BufferIndex>& buffers = history_.buffers_of(cpu);
        const BufferIndex index = buffers[tape_.choose(static_cast<std::uint32_t>(buffers.size()))];
        const Buffer& buffer = history_.buffer(index);
        if (what == 10 && !buffer.boot) history_.nudge(index);
        if (what == 11) history_.spurious_wake(index);
        if (what == 12 && !buffer.boot) history_.note_attached(index);
        if (what == 13 && buffer.attached()) history_.note_draining(index);
        if (what == 14 && buffer.attached()) history_.checkpoint_idle(cpu, index, report_bytes_);
        if (what != 15) return;
        if (tape_.one_in(8)) return history_.tolerate(cpu);
        const std::string detail(tape_.choose(5), 'd');
        history_.set_fault(index, static_cast<BufferFault>(tape_.choose(7)), detail);
    }

    EventSpec event() {
        EventSpec spec;
        spec.type = tape_.one_in(3) ? std::string(1 + tape_.choose(40), '\xff') : "t";
        if (tape_.one_in(5)) spec.extra_header.assign(tape_.choose(9), '\0');
        spec.origin = static_cast<std::uint8_t>(tape_.choose(256));
        spec.timestamp = tape_.choose(1'000'000) * 1'000'000'000'000ull;
        const std::uint64_t bytes = tape_.choose(150);
        if (tape_.one_in(3)) {
            spec.payload.assign(bytes, static_cast<char>(tape_.choose(256)));
            return spec;
        }
        std::uint64_t seed = tape_.choose(1u << 20);
        spec.payload_seed = seed;
        spec.payload = generate_payload(seed, bytes);
        // The seed is wrong if a case changes a generated payload.
        if (bytes > 0 && tape_.one_in(4)) spec.payload[tape_.choose(bytes)] ^= 1;
        return spec;
    }

    SwapSpec swap() {
        SwapSpec spec;
        spec.capacity_bytes = std::uint64_t{128} << tape_.choose(4);
        spec.rule = static_cast<PositionRule>(tape_.choose(3));
        spec.position = tape_.choose(1000);
        return spec;
    }

    Tape tape_;
    History history_;
    std::uint64_t report_bytes_ = 0;
};

class Dump {
  public:
    template <typename... Figures>
    void line(const char* what, const Figures&... figures) {
        text_ += what;
        (add(figures), ...);
        text_ += '\n';
    }
    std::string take() { return std::move(text_); }

  private:
    void add(const std::string& text) { text_ += ' ' + quote_bytes(text, 1 << 20); }
    void add(std::uint64_t figure) { text_ += ' ' + std::to_string(figure); }

    std::string text_;
};

void dump_buffer(Dump& out, const History& history, BufferIndex index) {
    const Buffer& buffer = history.buffer(index);
    out.line("buffer", index, buffer.cpu, buffer.capacity, buffer.start_position, buffer.write_pos,
             buffer.write_frontier, buffer.tail_pos, buffer.boot, buffer.retired,
             buffer.retired_after, buffer.retired_operation,
             static_cast<std::uint64_t>(buffer.fault), buffer.fault_detail, buffer.tail_index,
             buffer.published_count, buffer.owed_count, buffer.futex_counter_lowest,
             buffer.futex_counter_highest, buffer.attached_operation, buffer.draining_operation);
    for (const GenerationValue& value : buffer.generations)
        out.line(" generation", value.value, value.from_operation, value.from_report_bytes);
    for (const Placement& place : buffer.placements)
        out.line(" placement", place.sequence, place.position, place.bytes,
                 place.overwritten_after);
}

}  // namespace

History draw_history(Tape tape) {
    return Driver(std::move(tape)).play();
}

std::string dump(const History& history) {
    Dump out;
    out.line("history", history.cpus(), history.report_bytes(), history.operations());
    for (BufferIndex index = 0; index < history.buffer_count(); ++index)
        dump_buffer(out, history, index);
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        out.line("cpu", cpu, history.current_buffer(cpu), history.tolerated(cpu),
                 history.batch_pending(cpu));
        for (const Checkpoint& checkpoint : history.checkpoints_of(cpu))
            out.line(" checkpoint", checkpoint.buffer, checkpoint.report_bytes);
        for (const Event& event : history.events_of(cpu))
            out.line(" event", event.sequence, event.timestamp, event.origin, event.type,
                     event.extra_header, event.payload, event.payload_kept, event.length,
                     event.digest(), event.bytes, event.dropped, event.published,
                     event.published_after, event.owed_by, event.owed_buffer);
    }
    return out.take();
}

}  // namespace kmes::conformance::simulation
