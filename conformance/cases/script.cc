// SPDX-License-Identifier: MIT
//
// See script.h.
#include "conformance/cases/script.h"

#include <optional>
#include <utility>

#include "conformance/cases/play.h"

namespace kmes::conformance {

CaseOutcome Script::operator()(Stage& stage) const {
    std::optional<Stage::ShortenedWaits> shorter;
    if (shortened_waits) shorter.emplace(stage);
    for (const ScriptStep& each : steps) each(stage);
    return stage.finish();
}

namespace script {

ScriptStep rings(std::function<void(RingsSetup&)> change) {
    return [change = std::move(change)](Stage& stage) {
        RingsSetup setup = stage.default_setup();
        change(setup);
        stage.set_up(setup);
    };
}

ScriptStep cpus(std::uint32_t count, std::uint64_t capacity_bytes) {
    return rings([=](RingsSetup& setup) {
        setup.cpus = count;
        if (capacity_bytes != 0) setup.capacity_bytes = capacity_bytes;
    });
}

ScriptStep emit(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    return [=](Stage& stage) { emit_some(stage, cpu, count, event_bytes); };
}

ScriptStep emit_all(std::uint64_t count, std::uint64_t event_bytes) {
    return [=](Stage& stage) { emit_everywhere(stage, count, event_bytes); };
}

ScriptStep resize(double factor) {
    return [factor](Stage& stage) {
        const double bytes = factor * static_cast<double>(stage.capacity_bytes());
        stage.resize(static_cast<std::uint64_t>(bytes));
    };
}

void hand_over(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().hand_over(cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
}

ScriptStep times(int count, std::vector<ScriptStep> steps) {
    return [count, steps = std::move(steps)](Stage& stage) {
        for (int i = 0; i < count; ++i) {
            for (const ScriptStep& each : steps) each(stage);
        }
    };
}

ScriptStep on_each_cpu(std::function<void(Stage& stage, std::uint32_t cpu)> act) {
    return [act = std::move(act)](Stage& stage) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) act(stage, cpu);
    };
}

}  // namespace script

}  // namespace kmes::conformance
