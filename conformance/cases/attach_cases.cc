// SPDX-License-Identifier: MIT
//
// Attaching, mapping, and the number of CPUs (5.1.1, 5.1.2, 5.1.5; contract 1, 2 and 4).
#include <cerrno>
#include <string>
#include <vector>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kByIndex =
    "The consumer delivers every event under the index of its fd.";

CaseOutcome attach_and_map(Stage& stage) {
    stage.start();
    stage.wait_mapped();
    return stage.finish();
}

// The whole life of a consumer on `cpus` CPUs.
CaseOutcome life_on(Stage& stage, std::uint32_t cpus) {
    set_up_cpus(stage, cpus);
    emit_everywhere(stage, 3, 100);
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 3, 200);
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome eagain(Stage& stage) {
    emit_everywhere(stage, 2, 64);
    stage.answer_attach_with({EAGAIN, EAGAIN, EAGAIN});
    stage.start();
    if (!stage.wait_mapped_or_exit()) return stage.finish_any_exit();
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome boot_phase(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.boot_capacity_bytes = 65536;
    stage.set_up(setup);
    emit_everywhere(stage, 5, 300);
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().hand_over(cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 5, 300);
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome ends_cpu_by_cpu(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    if (setup.cpus < 2) setup.cpus = 2;
    stage.set_up(setup);
    stage.start();
    stage.wait_mapped();
    for (std::uint32_t cpu = 0; cpu + 1 < stage.cpus(); ++cpu) {
        end_cpu(stage, cpu);
        emit_some(stage, stage.cpus() - 1, 4, 80);
        stage.wait_delivered(stage.cpus() - 1);
    }
    return stage.finish();
}

CaseOutcome nothing_after_the_end(Stage& stage) {
    stage.start();
    stage.wait_mapped();
    stage.freeze();
    stage.rings().emit(0, stage.rings().make_end());
    emit_some(stage, 0, 5, 80);
    stage.thaw();
    return stage.finish();
}

CaseOutcome almost_the_end(Stage& stage) {
    const std::string end(kEndEventType);
    std::vector<std::string> types = {end + "s", end.substr(0, end.size() - 1), "x" + end,
                                      end + std::string(1, '\0'), "KMES.CONFORMANCE.END"};
    for (std::size_t i = 0; i < end.size(); ++i) {
        types.push_back(end);
        types.back()[i] ^= 1;
    }
    stage.start();
    stage.wait_mapped();
    for (const std::string& type : types)
        stage.rings().emit(0, stage.rings().make(29 + type.size() + 8, type));
    // One whose payload goes on where its type breaks off.
    EventSpec in_two_parts = stage.rings().make(kLeastEventBytes + 60, end.substr(0, 16));
    in_two_parts.payload.replace(0, end.size() - 16, end.substr(16));
    stage.rings().emit(0, in_two_parts);
    emit_some(stage, 0, 2, 80);
    stage.wait_delivered();
    return stage.finish();
}

// The contract gives the minimum length of the file of an fd. The capacity is the one in
// kmes_attach and in the page.
CaseOutcome longer_files(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.least_file_bytes = 2 * kPageBytes + 2 * setup.capacity_bytes;
    stage.set_up(setup);
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    // Most of the next events are beyond the mapping.
    stage.resize(setup.capacity_bytes / 4);
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

// As in a process that has many files open already.
CaseOutcome high_fds(Stage& stage) {
    constexpr int kBeyondAByte = 300;
    stage.set_least_fd(kBeyondAByte);
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    stage.resize(2 * stage.capacity_bytes());
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_attach_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.5/attach-and-map", Level::must, "5.1.5", "attach, mapping and end",
                     "Serve kmes_attach and one mmap a CPU. Emit the end event on each CPU.",
                     "The consumer maps each fd with one shared mmap of 4096 + 2 x capacity bytes "
                     "from offset 0. It exits with status 0.",
                     attach_and_map});
    cases.push_back(
        {"5.1.5/files-longer-than-the-mapping", Level::must, "5.1.5",
         "files longer than the mapping",
         "Serve files that are one page longer than 4096 + 2 x capacity bytes. Resize to a quarter "
         "of the capacity, with files of about four times the length of the mapping.",
         "The consumer takes the capacity from kmes_attach, not from the length of a file.",
         longer_files});
    cases.push_back({"5.1.5/fds-from-300-on", Level::must, "5.1.5", "fds above 255",
                     "Hand out fds of 300 and more, as in a process with many open files. Resize.",
                     "The consumer maps these fds as any others.", high_fds});
    cases.push_back({"5.1.1/one-cpu", Level::must, "5.1.1", "one CPU",
                     "Serve one buffer, with events before and after the attach.",
                     "The consumer delivers every event.",
                     [](Stage& stage) { return life_on(stage, 1); }});
    cases.push_back({"5.1.1/four-cpus", Level::must, "5.1.1", "four CPUs",
                     "Serve four buffers, with events before and after the attach.", kByIndex,
                     [](Stage& stage) { return life_on(stage, 4); }});
    cases.push_back({"5.1.1/sixteen-cpus", Level::must, "5.1.1", "sixteen CPUs",
                     "Serve sixteen buffers, with events before and after the attach.", kByIndex,
                     [](Stage& stage) { return life_on(stage, 16); }});
    cases.push_back({"contract-1/more-cpus-than-slots", Level::must, "contract-1",
                     "ERANGE with sixty-four CPUs",
                     "Serve sixty-four buffers. Answer a kmes_attach with fewer slots with ERANGE "
                     "and the required number in *count.",
                     "The consumer calls again with enough slots and drains every CPU.",
                     [](Stage& stage) { return life_on(stage, 64); }});
    cases.push_back(
        {"contract-1/eagain", Level::must, "contract-1", "EAGAIN at the first attach",
         "Answer the first three calls of kmes_attach with EAGAIN (the rings do not exist yet), "
         "and the fourth with the buffers.",
         "The consumer calls again until the attach succeeds, or exits with a non-zero status.",
         eagain});
    cases.push_back({"5.1.2/events-of-the-boot-phase", Level::must, "5.1.2",
                     "events of the boot phase",
                     "Emit events into boot buffers and hand them over to the rings before the "
                     "consumer attaches.",
                     "The consumer delivers these events, then those that follow with the next "
                     "sequence numbers.",
                     boot_phase});
    cases.push_back(
        {"contract-4/cpu-by-cpu", Level::must, "contract-4", "end of one CPU after another",
         "Emit the end event on one CPU, then events on the last CPU. Repeat with the next CPU.",
         "The consumer ends only the CPU of the end event, and exits when all CPUs have ended.",
         ends_cpu_by_cpu});
    cases.push_back(
        {"contract-4/nothing-after-the-end", Level::must, "contract-4",
         "events after the end event",
         "Emit the end event and five more events on CPU 0 while the consumer is stopped.",
         "The consumer delivers nothing after the end event.", nothing_after_the_end});
    cases.push_back({"contract-4/almost-the-end", Level::must, "contract-4",
                     "types similar to the end event's",
                     "Emit events whose type differs from kmes.conformance.end by one byte more, "
                     "one byte less, one other byte, or by its case.",
                     "The consumer delivers these events as ordinary ones.", almost_the_end});
}

}  // namespace kmes::conformance
