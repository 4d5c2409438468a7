// SPDX-License-Identifier: MIT
//
// See forged_image.h.
#include "conformance/play/forged_image.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

constexpr std::uint32_t kSoundCpus = 2;
// Far from 0: positions can go back, and a wrong capacity changes every address.
constexpr std::uint64_t kStartPosition = (1ull << 40) + 1000;

BufferIndex current_index(const Stage& stage, std::uint32_t cpu) {
    return stage.rings().history().current_buffer(cpu);
}

void write_page(Stage& stage, std::uint32_t cpu, std::uint64_t offset,
                const std::vector<std::uint8_t>& bytes) {
    stage.rings().forged().write_metadata(current_index(stage, cpu), offset, bytes);
}

std::string named(std::string_view field, std::uint64_t number, std::string_view name) {
    return name.empty() ? fmt::format("{} {}", field, number) : fmt::format("{} {}", field, name);
}

bool is_reserved(const Field& field) {
    return field.name.starts_with("reserved") || field.name == "unused bytes";
}

}  // namespace

ForgedField magic_field(std::uint64_t at, std::uint8_t byte, std::string_view whole) {
    return {BufferFault::magic, at, {byte}, fmt::format("magic {}", whole)};
}

ForgedField version_field(std::uint32_t version) {
    return {BufferFault::version, 8, bytes_of(version), fmt::format("version {}", version)};
}

ForgedField capacity_field(std::uint64_t bytes, std::string_view name) {
    return {BufferFault::capacity, 16, bytes_of(bytes), named("capacity", bytes, name)};
}

ForgedField data_offset_field(std::uint64_t bytes, std::string_view name) {
    return {BufferFault::data_offset, 24, bytes_of(bytes), named("data_offset", bytes, name)};
}

void break_field(Stage& stage, std::uint32_t cpu, const ForgedField& field) {
    write_page(stage, cpu, field.offset, field.bytes);
    stage.rings().history().set_fault(current_index(stage, cpu), field.fault, field.what);
}

void BreakCapacity::operator()(Stage& stage, std::uint32_t cpu) const {
    break_field(stage, cpu, capacity_field(bytes_in(stage, cpu, says)));
}

void SayCapacityEverywhere::operator()(Stage& stage) const {
    const std::uint64_t bytes = bytes_in(stage, 0, says);
    ForgedField field = capacity_field(bytes);
    field.what += fmt::format(" where kmes_attach said {}", bytes);
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) break_field(stage, cpu, field);
    stage.attach_answers().set_reported_capacity(bytes);
}

Step break_fields(const std::vector<ForgedField>& fields) {
    return each_in_turn(fields, [](const ForgedField& field) { return Steps{BreakField{field}}; });
}

void Refused::operator()(Stage& stage, std::uint32_t cpu) const {
    const std::string& fault =
        stage.rings().history().buffer(current_index(stage, cpu)).fault_detail;
    stage.waits().until([&stage, cpu] { return stage.testee().has_refused(cpu); },
                        fmt::format("a refusal of CPU {} ({})", cpu, fault));
}

void Tolerate::operator()(Stage& stage, std::uint32_t cpu) const {
    History& history = stage.rings().history();
    history.set_fault(current_index(stage, cpu), BufferFault::corrupt_content, what);
    history.tolerate(cpu);
}

void ForgePage::operator()(Stage& stage, std::uint32_t cpu) const {
    for (const BytesAt& each : bytes) write_page(stage, cpu, each.offset, each.bytes);
}

void SetReservedBytes::operator()(Stage& stage, std::uint32_t cpu) const {
    for (const Field& field : metadata_fields()) {
        if (!is_reserved(field)) continue;
        const std::uint64_t cleared = field.offset == kNeedWakeOffset + 1 ? 3 : 0;
        write_page(stage, cpu, field.offset + cleared,
                   std::vector<std::uint8_t>(field.bytes - cleared, 0xff));
    }
    stage.rings().history().set_fault(current_index(stage, cpu), BufferFault::reserved_not_zero,
                                      "reserved bytes");
}

void ForgePositions::operator()(Stage& stage, std::uint32_t cpu) const {
    const Buffer& buffer = stage.rings().history().buffer(current_index(stage, cpu));
    const auto value_of = [&](const ForgedPosition& position) {
        const std::uint64_t ahead = bytes_in(stage, cpu, position.ahead);
        switch (position.of) {
            case ForgedPosition::Of::write_pos:
                return buffer.write_pos + ahead;
            case ForgedPosition::Of::tail_pos:
                return buffer.tail_pos + ahead;
            case ForgedPosition::Of::nothing:
                break;
        }
        return ahead;
    };
    write_page(stage, cpu, kTailPosOffset, bytes_of(value_of(tail_pos)));
    write_page(stage, cpu, kWritePosOffset, bytes_of(value_of(write_pos)));
}

void ForgeEvent::operator()(Stage& stage, std::uint32_t cpu) const {
    const History& history = stage.rings().history();
    const std::vector<BufferIndex>& buffers = history.buffers_of(cpu);
    // A schedule may leave out the swap or the event.
    if (swaps_ago >= buffers.size()) return;
    const BufferIndex buffer = buffers.at(buffers.size() - 1 - swaps_ago);
    const std::vector<Placement>& events = history.buffer(buffer).placements;
    if (back >= events.size()) return;
    const std::uint64_t position = events.at(events.size() - 1 - back).position;
    for (const BytesAt& each : bytes)
        stage.rings().forged().write_data(buffer, position + each.offset, each.bytes);
}

std::vector<BytesAt> lengths(const EventLengths& forged) {
    return {{kEventSizeAt, bytes_of(forged.event_size)},
            {kHeaderSizeAt, bytes_of(forged.header_size)},
            {kTypeLengthAt, bytes_of(forged.type_len)}};
}

std::vector<BytesAt> sequence_number(std::uint64_t forged) {
    return {{kSequenceAt, bytes_of(forged)}};
}

std::vector<Image> images_of(const std::vector<EventLengths>& forged,
                             const std::function<Steps(const std::vector<BytesAt>&)>& forge,
                             const Steps& before) {
    std::vector<Image> images;
    for (const EventLengths& each : forged)
        images.push_back({fmt::format("event_size {}, header_size {}, type_len {}", each.event_size,
                                      each.header_size, each.type_len),
                          forge(lengths(each)), before});
    return images;
}

Row row_of(const CaseText& text, const Images& images) {
    const auto forged_cpus = static_cast<std::uint32_t>(images.images.size());
    Steps forge_all;
    for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu) {
        const Image& image = images.images[cpu];
        Steps steps = image.before;
        steps.push_back(Tolerate{image.what});
        steps.append(image.forge);
        forge_all.push_back(OnCpu{cpu, std::move(steps)});
    }
    Steps before_start = images.before_start;
    before_start.push_back(EmitEverywhere{3});
    Steps steps{AllMapped{}};
    if (images.moment == Moment::after_a_change)
        steps.append({Asleep{}, Resize{}, EmitEverywhere{}});
    if (images.moment == Moment::before_the_attach) {
        before_start.append(forge_all);
    } else {
        steps.append({Asleep{}, AtOnce{forge_all}});
        for (std::uint32_t cpu = 0; cpu < forged_cpus; ++cpu)
            steps.push_back(OnCpu{cpu, {FutexWake{}}});
    }
    for (std::uint32_t cpu = forged_cpus; cpu < forged_cpus + kSoundCpus; ++cpu)
        steps.push_back(OnCpu{cpu, {Emit{2}, DeliveredHere{}}});
    return {text,
            steps,
            {.cpus = forged_cpus + kSoundCpus,
             .capacity = images.capacity,
             .position = kStartPosition,
             .before_start = before_start,
             .end = RowEnd::tolerant}};
}

void FailEndlessWalk::operator()(Stage& stage) const {
    static constexpr std::chrono::seconds kWalks{5};
    static constexpr std::size_t kRecords = 50'000;
    stage.hooks().set_on_iteration([&stage, *this](bool) {
        const std::optional<Clock::duration> used = stage.testee().processor_time();
        if ((used && *used > kWalks) || stage.testee().records().records().size() > kRecords)
            stop_failed(clause, message);
        return false;
    });
}

}  // namespace kmes::conformance
