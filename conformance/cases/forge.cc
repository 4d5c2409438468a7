// SPDX-License-Identifier: MIT
//
// See forge.h.
#include "conformance/cases/forge.h"

#include <fmt/format.h>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

constexpr std::uint32_t kSoundCpus = 2;
constexpr std::uint64_t kStartPosition = (1ull << 40) + 1000;

BufferIndex current(Stage& stage, std::uint32_t cpu) {
    return stage.rings().history().current_buffer(cpu);
}

}  // namespace

const Buffer& current_buffer(Stage& stage, std::uint32_t cpu) {
    return stage.rings().history().buffer(current(stage, cpu));
}

void forge_header(Stage& stage, std::uint32_t cpu, std::uint64_t position,
                  const ForgedHeader& forged) {
    forge_header_in(stage, current(stage, cpu), position, forged);
}

void forge_header_in(Stage& stage, BufferIndex buffer, std::uint64_t position,
                     const ForgedHeader& forged) {
    Rings& rings = stage.rings();
    rings.forged().write_data(buffer, position, bytes_of(forged.event_size));
    rings.forged().write_data(buffer, position + kHeaderSizeAt, bytes_of(forged.header_size));
    rings.forged().write_data(buffer, position + kTypeLengthAt, bytes_of(forged.type_len));
}

void forge_sequence(Stage& stage, std::uint32_t cpu, std::uint64_t position,
                    std::uint64_t sequence) {
    stage.rings().forged().write_data(current(stage, cpu), position + kSequenceAt,
                                      bytes_of(sequence));
}

void forge_positions(Stage& stage, std::uint32_t cpu, std::uint64_t write_pos,
                     std::uint64_t tail_pos) {
    forge_field(stage, cpu, kTailPosOffset, bytes_of(tail_pos));
    forge_field(stage, cpu, kWritePosOffset, bytes_of(write_pos));
}

void forge_field(Stage& stage, std::uint32_t cpu, std::uint64_t offset,
                 const std::vector<std::uint8_t>& bytes) {
    stage.rings().forged().write_metadata(current(stage, cpu), offset, bytes);
}

void break_field(Stage& stage, std::uint32_t cpu, const ForgedField& field) {
    forge_field(stage, cpu, field.offset, field.bytes);
    stage.rings().history().set_fault(current(stage, cpu), field.fault, field.what);
}

void wait_refused(Stage& stage, std::uint32_t cpu, const std::string& what) {
    stage.waits().until([&stage, cpu] { return stage.testee().has_refused(cpu); },
                        fmt::format("a refusal of CPU {} ({})", cpu, what));
}

void tolerate(Stage& stage, std::uint32_t cpu, std::string_view detail) {
    History& history = stage.rings().history();
    history.set_fault(history.current_buffer(cpu), BufferFault::corrupt_content, detail);
    history.tolerate(cpu);
}

CaseOutcome Forged::operator()(Stage& stage) const {
    const auto forged_cpus = static_cast<std::uint32_t>(cpus);
    RingsSetup setup = stage.default_setup();
    if (capacity_bytes != 0) setup.capacity_bytes = capacity_bytes;
    setup.cpus = forged_cpus + kSoundCpus;
    // Far from 0: positions can go back, and a wrong capacity changes every address.
    setup.start_positions.assign(setup.cpus, kStartPosition);
    stage.set_up(setup);
    const auto forge_all = [&] {
        for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu) forge(stage, cpu);
    };
    emit_everywhere(stage, 3, 100);
    if (moment == Moment::before_the_attach) forge_all();
    stage.start();
    stage.waits().mapped();
    if (moment == Moment::after_a_change) {
        stage.wait_asleep();
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 1, 100);
    }
    if (moment != Moment::before_the_attach) {
        stage.wait_asleep();
        stage.holding().freeze();
        forge_all();
        stage.holding().thaw();
        for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu) stage.rings().spurious_wake(cpu);
    }
    for (std::uint32_t cpu = forged_cpus; cpu < stage.cpus(); ++cpu) {
        emit_some(stage, cpu, 2, 100);
        stage.waits().delivered(cpu);
    }
    stage.waits().tolerated_at_rest();
    return stage.ending().finish_tolerant();
}

}  // namespace kmes::conformance
