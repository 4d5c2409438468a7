// SPDX-License-Identifier: MIT
//
// Changes of buffers on several CPUs: one that a consumer meets on its way to another's (5.1.8.3,
// E14), and much that is unread in several old buffers at once (E10). What one CPU's change is done
// with is owed to each.
#include <utility>
#include <vector>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// The buffers are made smaller one CPU after the other (5.1.8.4). The first change is seen; before
// the attach that it leads to is answered, each other CPU has had more than the next buffer holds,
// and has been changed too.
void change_on_the_way(Stage& stage, std::uint32_t seen, std::uint64_t next_bytes) {
    constexpr std::uint64_t kUnread = 24;
    const SwapSpec next{next_bytes};
    bool is_done = false;
    const auto change_others = [&stage, &is_done, seen, next] {
        if (std::exchange(is_done, true)) return;
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            if (cpu == seen) continue;
            emit_some(stage, cpu, kUnread, next.capacity_bytes / 8);
            stage.rings().swap(cpu, next);
        }
    };
    stage.set_on_attach(change_others);
    stage.rings().swap(seen, next);
    stage.wait_until_or_asleep([&is_done] { return is_done; }, seen);
    stage.set_on_attach(nullptr);
    change_others();  // nobody has attached: that CPU has ended
    stage.wait_asleep();
}

CaseOutcome changed_on_the_way_to_another(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    set_up_cpus(stage, 3, 4 * small);
    stage.start();
    for (std::uint32_t seen = 0; seen < stage.cpus(); ++seen) {
        // It is proven to read these buffers, and not only to have them.
        stage.wait_asleep();
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
        change_on_the_way(stage, seen, small);
        stage.resize(4 * small);
    }
    stage.wait_asleep();
    return stage.finish();
}

// In rings of 256 KiB, of which the next hold a quarter.
void leave_unread(Stage& stage, const std::vector<std::uint32_t>& cpus) {
    constexpr std::uint64_t kUnread = 6000;
    constexpr std::uint64_t kSmallBytes = 40;
    const std::uint64_t large = stage.capacity_bytes();
    emit_everywhere(stage, 1, 100);
    stage.wait_asleep();
    stage.freeze();
    for (const std::uint32_t cpu : cpus) emit_some(stage, cpu, kUnread, kSmallBytes);
    stage.resize(large / 4);
    stage.thaw();
    stage.wait_asleep();
    stage.resize(large);
}

CaseOutcome thousands_unread_on_any_cpu(Stage& stage) {
    set_up_cpus(stage, 3, std::uint64_t{256} << 10);
    stage.start();
    leave_unread(stage, {1});
    leave_unread(stage, {0, 2});
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_several_change_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("E10/changed-on-the-way-to-another", Level::erratum, "E10",
        "changes of the other CPUs' buffers before the attach",
        "Replace the buffer of one of three CPUs by a smaller one. Before the attach that follows, "
        "emit more on each of the others than its next buffer holds, and replace those as well.",
        "The consumer drains each old buffer to its frozen write_pos before it leaves it, "
        "whichever CPU's change caused the attach.",
        changed_on_the_way_to_another);
    add("E10/thousands-unread-on-any-cpu", Level::erratum, "E10",
        "thousands of unread events on one CPU, then on two",
        "Emit 6000 events on the second of three CPUs, then on the first and the last. While they "
        "are unread, replace the buffers by some that hold a quarter of them.",
        "The consumer delivers all of them on each CPU, from the old buffers first.",
        thousands_unread_on_any_cpu);
}

}  // namespace kmes::conformance
