// SPDX-License-Identifier: MIT
//
// Attaching, mapping, and the number of CPUs (5.1.1, 5.1.2, 5.1.5; contract 1).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::string_view kByIndex =
    "The consumer delivers every event under the index of its fd.";

// The whole life of a consumer on `count` CPUs.
const Steps kLife{Delivered{}, EmitEverywhere{3, 200}, Delivered{}};
Setup life_on(std::uint32_t count) {
    return {.cpus = count, .before_start = {EmitEverywhere{3, 100}}};
}

// In a form whose call attaches one CPU, there are no slots.
struct ManyCpusText {
    std::string_view title;
    std::string_view description;
    std::string_view expectation;
};
const ManyCpusText kMoreThanSlots =
    layout().attaches_all_cpus()
        ? ManyCpusText{"ERANGE with sixty-four CPUs",
                       "Serve sixty-four buffers. Answer a kmes_attach with fewer slots with "
                       "ERANGE and the required number in *count.",
                       "The consumer calls again with enough slots and drains every CPU."}
        : ManyCpusText{"sixty-four CPUs", "Serve sixty-four buffers, one for each kmes_attach.",
                       "The consumer attaches to every CPU and drains it."};

void fail_three_attaches(Stage& stage) {
    const int error = layout().error_before_rings;
    stage.attach_answers().set_errors({error, error, error});
}

// A slot without a buffer, with buffers on both sides of it. No event is emitted there, and the
// judge ignores it.
constexpr std::uint32_t kHole = 1;
const Step kEmitBesideTheHole = OnEachCpu{{Emit{3}}, {kHole}};
const Step kAsleepBesideTheHole = OnEachCpu{{AsleepHere{}}, {kHole}};

void make_hole(Stage& stage) {
    if (layout().attach != AttachArguments::one_cpu_or_count)
        stop_not_applicable("the first EINVAL ends the array of CPUs");
    stage.rings().history().tolerate(kHole);
    stage.hooks().set_on_attach([&stage](const AttachRequest& request) {
        if (request.cpu == kHole) stage.attach_answers().set_errors({EINVAL});
    });
}

// A consumer that hangs after the hole without another attach is blamed for that.
void wait_for_attaches_after_the_hole(Stage& stage) {
    const auto is_after = [](const Attached& attached) {
        return attached.request.cpu > kHole && !attached.request.asks_for_count;
    };
    try {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            if (cpu != kHole) stage.wait_asleep(cpu);
        }
    } catch (const Stop& stop) {
        const bool goes_on = std::ranges::any_of(stage.testee().attaches(), is_after);
        if (stop.verdict != Verdict::fail || goes_on) throw;
        stop_failed("contract-1",
                    fmt::format("CPU {}: the consumer makes no kmes_attach for it; expected one "
                                "for each slot. Evidence: it made none after the EINVAL of slot {}",
                                kHole + 1, kHole));
    }
}

// The contract gives only the minimum length of an fd's file. The capacity is in kmes_attach and in
// the page.
void make_files_longer(RingsSetup& setup) {
    setup.least_file_bytes = kMetadataBytes + kPageBytes + 2 * setup.capacity_bytes;
}

const Row kAttachRows[] = {
    {{"5.1.5/attach-and-map", must, "attach, mapping and end",
      "Serve kmes_attach and one mmap a CPU. Emit the end event on each CPU.",
      in_layout(
          "The consumer maps each fd with one shared mmap of {} + 2 x capacity bytes from offset "
          "0. It exits with status 0.",
          kMetadataBytes)},
     {AllMapped{}}},
    {{"5.1.1/one-cpu", must, "one CPU",
      "Serve one buffer, with events before and after the attach.",
      "The consumer delivers every event."},
     kLife,
     life_on(1)},
    {{"5.1.1/four-cpus", must, "four CPUs",
      "Serve four buffers, with events before and after the attach.", kByIndex},
     kLife,
     life_on(4)},
    {{"5.1.1/sixteen-cpus", must, "sixteen CPUs",
      "Serve sixteen buffers, with events before and after the attach.", kByIndex},
     kLife,
     life_on(16)},
    // After the resize most of the next events are beyond the mapping.
    {{"5.1.5/files-longer-than-the-mapping", must, "files longer than the mapping",
      in_layout(
          "Serve files that are one page longer than {} + 2 x capacity bytes. Resize to a quarter "
          "of the capacity, with files of about four times the length of the mapping.",
          kMetadataBytes),
      "The consumer takes the capacity from kmes_attach, not from the length of a file."},
     {Asleep{}, Resize{current(1, 4)}, EmitEverywhere{2}, Asleep{}},
     {.capacity = usual(4), .rings = make_files_longer, .before_start = {EmitEverywhere{2}}}},
    {{"contract-1/more-cpus-than-slots", must, kMoreThanSlots.title, kMoreThanSlots.description,
      kMoreThanSlots.expectation},
     kLife,
     life_on(64)},
    {{"contract-1/eagain", must, in_layout("{} at the first attach", name_of_error_before_rings()),
      in_layout("Answer the first three calls of kmes_attach with {} (the rings do not exist yet), "
                "and the fourth with the buffers.",
                name_of_error_before_rings()),
      "The consumer calls again until the attach succeeds, or exits with a non-zero status."},
     {AllMappedOrExit{}, Delivered{}},
     {.before_start = {EmitEverywhere{2, 64}, fail_three_attaches}}},
    {{"contract-1/hole-in-the-cpus", must, "a hole in the array of CPUs",
      "Serve the slots 0, 2 and 3 of four. Answer each kmes_attach of slot 1 with EINVAL. Emit "
      "events before and after the attach, and resize in between.",
      "The consumer takes EINVAL for a slot without a buffer, and drains every other CPU."},
     {wait_for_attaches_after_the_hole, Resize{current(2)}, kEmitBesideTheHole,
      kAsleepBesideTheHole},
     {.cpus = 4, .before_start = {make_hole, kEmitBesideTheHole}},
     Demand::holes},
    {{"5.1.2/events-of-the-boot-phase", must, "events of the boot phase",
      "Emit events into boot buffers and hand them over to the rings before the consumer attaches.",
      "The consumer delivers these events, then those that follow with the next sequence numbers."},
     {Delivered{}, EmitEverywhere{5, 300}, Delivered{}},
     {.rings = [](RingsSetup& rings) { rings.boot_capacity_bytes = 65536; },
      .before_start = {EmitEverywhere{5, 300}, HandOver{}}}},
};

const Row kManyFdRows[] = {
    {{"5.1.5/fds-from-300-on", must, "fds above 255",
      "Hand out fds of 300 and more, as in a process with many open files. Resize.",
      "The consumer maps these fds as any others."},
     {Asleep{}, Resize{current(2)}, EmitEverywhere{2}, Asleep{}},
     {.before_start = {[](Stage& stage) { stage.attach_answers().set_least_fd(300); },
                       EmitEverywhere{2}}}},
};

}  // namespace

const std::vector<Case> kAttachCases = cases_of(kAttachRows);
const std::vector<Case> kManyFdCases = cases_of(kManyFdRows);

}  // namespace kmes::conformance
