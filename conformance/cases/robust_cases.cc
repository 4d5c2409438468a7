// SPDX-License-Identifier: MIT
//
// Content that no producer writes (level robust, E7): a testee may refuse, or go on with what is
// whole, but not crash, hang, or read outside of its mapping.
#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Two good events on CPU 0, one whose header is overwritten with `forged`, two more.
CaseOutcome forged_header(Stage& stage, const ForgedHeader& forged, const std::string& detail) {
    emit_some(stage, 0, 2, 100);
    const std::uint64_t position = write_pos(stage, 0);
    emit_some(stage, 0, 3, 100);
    forge_header(stage, 0, position, forged);
    tolerate(stage, 0, detail);
    stage.start();
    stage.wait_mapped();
    for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
        emit_some(stage, cpu, 2, 100);
        stage.wait_delivered(cpu);
    }
    stage.wait_tolerated_at_rest();
    return stage.finish_tolerant();
}

CaseOutcome forged_positions(Stage& stage, std::int64_t write_change, std::int64_t tail_change) {
    emit_everywhere(stage, 5, 100);
    const BufferIndex index = stage.rings().history().present_buffer(0);
    const Buffer& buffer = stage.rings().history().buffer(index);
    forge_positions(stage, 0, buffer.write_pos + static_cast<std::uint64_t>(write_change),
                    buffer.tail_pos + static_cast<std::uint64_t>(tail_change));
    tolerate(stage, 0, "positions that contradict each other");
    stage.start();
    stage.wait_mapped();
    // The next emission puts them right.
    stage.wait_tolerated_at_rest();
    return stage.finish_tolerant();
}

}  // namespace

void add_robust_cases(std::vector<Case>& cases) {
    const auto add_header = [&cases](std::string_view id, std::string_view title,
                                     ForgedHeader forged) {
        cases.push_back({id, Level::robust, "E7", title,
                         "Forge the header of an event in the middle of CPU 0's ring.",
                         "The consumer refuses the buffer, or continues with the whole events. It "
                         "neither crashes nor hangs, and drains the other CPUs.",
                         [forged, title](Stage& stage) {
                             return forged_header(stage, forged, std::string(title));
                         }});
    };
    add_header("E7/event-size-zero", "event_size 0", {0, 30, 1});
    add_header("E7/event-size-one", "event_size 1", {1, 30, 1});
    add_header("E7/event-size-29", "event_size 29", {29, 30, 1});
    add_header("E7/event-size-huge", "event_size 2^32 - 1", {0xffffffff, 30, 1});
    add_header("E7/event-size-beyond-write-pos", "event_size beyond write_pos", {60000, 30, 1});
    add_header("E7/header-size-beyond-event", "header_size > event_size", {100, 101, 1});
    add_header("E7/header-size-huge", "header_size 2^32 - 1", {100, 0xffffffff, 1});
    add_header("E7/type-beyond-header", "29 + type_len > header_size", {100, 30, 60});
    add_header("E7/type-empty", "type_len 0", {100, 30, 0});
    const auto add_positions = [&cases](std::string_view id, std::string_view title,
                                        std::int64_t write_change, std::int64_t tail_change) {
        cases.push_back(
            {id, Level::robust, "E7", title,
             "Forge write_pos and tail_pos of CPU 0 before the attach.",
             "The consumer refuses the buffer, or reads nothing. It neither crashes nor hangs.",
             [write_change, tail_change](Stage& stage) {
                 return forged_positions(stage, write_change, tail_change);
             }});
    };
    add_positions("E7/tail-beyond-write-pos", "tail_pos > write_pos", 0, 100000);
    add_positions("E7/write-pos-far-ahead", "write_pos - tail_pos > capacity", 1 << 30, 0);
}

}  // namespace kmes::conformance
