// SPDX-License-Identifier: MIT
//
// See stage.h.
#include "conformance/stage/stage.h"

#include <optional>
#include <string>

namespace kmes::conformance {

Stage::Stage(const StageSettings& settings, const Case& the_case,
             const MonitorFactory& make_monitors)
    : parts_(std::make_unique<StageParts>(settings, the_case)) {
    if (settings.debugger != nullptr) parts_->events.set_debugger(*settings.debugger, *this);
    if (make_monitors) parts_->monitors = make_monitors(*this);
}

Stage::~Stage() = default;

std::uint64_t Stage::capacity_bytes() const {
    return parts_->rings ? parts_->rings->capacity_bytes() : parts_->settings.capacity_bytes;
}

RingsSetup Stage::default_setup() const {
    RingsSetup setup;
    setup.cpus = parts_->settings.cpus;
    setup.capacity_bytes = parts_->settings.capacity_bytes;
    return setup;
}

void Stage::set_up(const RingsSetup& setup) {
    StageParts& parts = *parts_;
    if (parts.rings) throw SuiteError("the rings of this case are made already");
    const std::string& device = parts.settings.device;
    parts.rings = std::make_unique<Rings>(
        setup, device.empty() ? nullptr : make_device_backend(device), &parts.recorder.producer());
    parts.rings->events().set_seed(parts.settings.seed);
    parts.recorder.watch(*parts.rings,
                         [&parts](BufferId id) { return parts.buffers.index_of(id); });
    parts.testee.report().watch(parts.rings->history());
    parts.wait_log.watch(*parts.rings);
    parts.reads.watch(*parts.rings);
}

Rings& Stage::rings() {
    if (!parts_->rings) set_up(default_setup());
    return *parts_->rings;
}

void Stage::start() {
    rings();
    parts_->events.start();
}

void Stage::resize(std::uint64_t capacity_bytes, PositionRule rule, std::uint64_t position) {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu)
        rings().swap(cpu, SwapSpec{capacity_bytes, rule, position});
}

bool is_present(const Stage& stage, const Mapped& mapped, std::uint32_t cpu) {
    const std::optional<BufferIndex> index = stage.buffers().index_of(mapped.buffer);
    return index && *index == stage.rings().history().current_buffer(cpu);
}

bool has_mapped_current_buffer(const Stage& stage, std::uint32_t cpu) {
    return stage.buffers().has_mapped(stage.rings().history().current_buffer(cpu));
}

}  // namespace kmes::conformance
