// SPDX-License-Identifier: MIT
//
// The consumer releases what belongs to a buffer when it leaves the buffer (5.1.8.3 step 6): files,
// mappings and memory, counted over many changes. After three hundred sleeps or changes, byte
// counters have wrapped, and tables that seemed large enough are full.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "conformance/cases/play.h"
#include "conformance/monitors/resources.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// Raises the runner's limit of files beyond the default, for the buffers that it keeps. The testee
// has started before, and keeps its own limit.
class ManyFiles {
  public:
    explicit ManyFiles(rlim_t needed) {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit wider = before_;
        wider.rlim_cur = std::max(before_.rlim_cur, needed);
        if (wider.rlim_cur > before_.rlim_max || setrlimit(RLIMIT_NOFILE, &wider) != 0)
            stop_unsupported(fmt::format("the suite needs {} open files; the limit is {}", needed,
                                         before_.rlim_max));
    }
    ~ManyFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
    ManyFiles(const ManyFiles&) = delete;
    ManyFiles& operator=(const ManyFiles&) = delete;

  private:
    rlimit before_{};
};

// The action between two resizes. `ends`, `refused`: before the first one, CPU 1 ends or is
// refused. `swaps`: the buffers are replaced once more, after the following attach. `one_cpu`: only
// the buffer of CPU 2 is replaced, without a resize. `fails`: one kmes_attach that follows fails,
// the first and the second of a change in turn.
enum class Between { events, nothing, swaps, ends, refused, one_cpu, fails };

// Counts the testee's resources four times, `stretch` resizes apart. One of three resizes grows,
// one shrinks and one keeps the capacity. A leak at each resize of one kind on one CPU is 16 pieces
// in fifty.
struct ManyResizes {
    int stretch;
    Between between;
    std::uint32_t cpus = 2;
    std::uint64_t capacity_bytes = 1 << 20;
    bool counts_memory = true;
    static constexpr int kCounts = 4;

    CaseOutcome operator()(Stage& stage) const;
    void start(Stage& stage) const;
    void act_at_attach(Stage& stage, int change) const;
    std::vector<Holdings> play(Stage& stage) const;
};

void ManyResizes::start(Stage& stage) const {
    set_up_cpus(stage, cpus, capacity_bytes);
    if (between == Between::refused) give_version_2(stage, 1);
    stage.start();
    if (between == Between::ends) stage.rings().emit(1, stage.rings().events().make_end());
    stage.wait_asleep();
}

// The action of `between` at an attach that follows the change.
void ManyResizes::act_at_attach(Stage& stage, int change) const {
    if (between == Between::swaps) {
        stage.hooks().set_on_attached([&stage, is_done = false](const Attached& attached) mutable {
            if (attached.error == 0 && !std::exchange(is_done, true))
                stage.resize(stage.capacity_bytes());
        });
    } else if (between == Between::fails) {
        stage.hooks().set_on_attach([&stage, left = change % 2 + 1](const AttachRequest&) mutable {
            if (--left == 0) stage.attach_answers().set_errors({ENOMEM});
        });
    }
}

std::vector<Holdings> ManyResizes::play(Stage& stage) const {
    std::vector<Holdings> counts;
    for (int i = 1; i <= kCounts * stretch; ++i) {
        act_at_attach(stage, i);
        if (between == Between::one_cpu)
            stage.rings().swap(2, SwapSpec{capacity_bytes});
        else
            stage.resize(i % 3 == 1 ? 2 * capacity_bytes : capacity_bytes);
        if (between == Between::events) emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
        if (i % stretch == 0) counts.push_back(count_holdings(stage));
    }
    stage.hooks().set_on_attached(nullptr);
    stage.hooks().set_on_attach(nullptr);
    return counts;
}

CaseOutcome ManyResizes::operator()(Stage& stage) const {
    const ShortenedWaits shortened_waits(stage.waits());
    start(stage);
    const ManyFiles files(8 * cpus * static_cast<rlim_t>(kCounts * stretch + 20));
    const auto changes = static_cast<std::uint64_t>(stretch);
    blame_growth(stage, play(stage), figures_of(changes, counts_memory), changes);
    return stage.finish();
}

// The consumer may also end when a later kmes_attach fails.
CaseOutcome forty_failed_attaches(Stage& stage) {
    stage.waits().set_nudging(false);  // no nudge may replace another attempt
    stage.findings().allow_early_exit();
    try {
        return ManyResizes{10, Between::fails, 1, 1 << 16, false}(stage);
    } catch (const EarlyExit&) {
        return stage.ending().finish_any_exit();
    }
}

// Overwrites an event while it is read. The consumer discards it, and must release the room for it.
// All begin at the same place.
void tear_one(Stage& stage, std::uint64_t ring_bytes, std::uint64_t event_bytes) {
    constexpr std::uint64_t kOver = 4;
    overwrite_under_read(
        stage, event_bytes / 2 / kPageBytes, 1, [&] { emit_some(stage, 0, 1, event_bytes); },
        [&] { emit_headers(stage, 0, kOver, (2 * ring_bytes - event_bytes) / kOver); });
}

CaseOutcome many_torn_reads(Stage& stage) {
    constexpr int kCounts = 5;
    constexpr int kStretch = 30;
    constexpr std::uint64_t kRing = 1 << 20;
    constexpr std::uint64_t kEventBytes = 150'000;
    static_assert(kStretch * kEventBytes > kOwnGrowthBytes);
    set_up_one_cpu(stage, kRing);
    stage.start();
    std::vector<Holdings> counts;
    for (int i = 1; i <= kCounts * kStretch; ++i) {
        stage.wait_asleep();
        if (stage.testee().has_ended(0))
            return stage.finish();  // refused: the judge decides whether that was correct
        tear_one(stage, kRing, kEventBytes);
        if (i % kStretch == 0) counts.push_back(count_holdings(stage));
    }
    const auto is_growing = [&] { return grows(counts, &Holdings::data_bytes, kOwnGrowthBytes); };
    count_again(stage, counts, is_growing);
    if (is_growing()) {
        stage.findings().blame(
            "5.1.8.1-5",
            fmt::format("the consumer has {2} bytes of private memory after every {0} "
                        "discarded events of {1} bytes; expected no growth. Evidence: the "
                        "memory of discarded events is not given back",
                        kStretch, kEventBytes, text_of(counts, &Holdings::data_bytes)));
    }
    return stage.finish();
}

CaseOutcome three_hundred_changes(Stage& stage) {
    constexpr rlim_t kFiles = 4 * 300;  // four for a buffer
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const ManyFiles files(kFiles);
    for (int i = 0; i < 300 && !stage.testee().has_ended(0); ++i) {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 40);
        stage.wait_asleep();
    }
    return stage.finish();
}

constexpr std::string_view kNoGrowth =
    "The consumer gives back what belongs to old buffers, so no count grows in every interval.";
constexpr std::string_view kNoGrowthWithMemory =
    "The consumer gives back what belongs to old buffers, so no count grows in every interval, and "
    "memory not by three mebibytes in each.";

const Row kThreeHundredRows[] = {
    {{"5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps", must,
      "an event at every step after three hundred sleeps",
      "Emit 300 events on one CPU, one whenever its consumer sleeps. Then emit one before each of "
      "its accesses to the metadata page in turn.",
      kDelivers},
     {Times{300, {Asleep{}, EndIfRefused{}, Emit{1, 40}}}, BeforeEachAccess{{Emit{1, 70}}}},
     kOneCpu},
    {{"5.1.8.3/three-hundred-changes", must, "three hundred new buffers on one CPU",
      "Replace the buffer of one CPU 300 times, with an event after each.", kFollows},
     three_hundred_changes},
};

}  // namespace

const std::vector<Case> kThreeHundredCases = cases_of(kThreeHundredRows);

const std::vector<Case> kLeakCases = {
    {"5.1.8.3-6/two-hundred-resizes", should, "resources after two hundred resizes",
     "Count the consumer's files, mappings and private memory after 50, 100, 150 and 200 resizes.",
     kNoGrowthWithMemory, ManyResizes{50, Between::events}},
    {"5.1.8.3-6/two-hundred-empty-resizes", should, "resources after 200 changes of empty buffers",
     "Count the consumer's files, mappings and private memory after 50, 100, 150 and 200 resizes "
     "without events.",
     kNoGrowthWithMemory, ManyResizes{50, Between::nothing}},
    {"5.1.8.3-6/eighty-resizes-on-the-way", should,
     "resources after 80 buffers replaced before they are mapped",
     "Resize 80 times, and replace the buffers once more after the first attach that follows. "
     "Count the consumer's files, mappings and private memory after 20, 40, 60 and 80 resizes.",
     kNoGrowth, ManyResizes{20, Between::swaps}},
    {"5.1.8.3-6/eighty-resizes-beside-an-ended-cpu", should,
     "resources after 80 changes, with an ended CPU",
     "Emit the end event on one of three CPUs. Each attach returns its buffer all the same. Count "
     "the consumer's files and mappings after 20, 40, 60 and 80 resizes.",
     kNoGrowth, ManyResizes{20, Between::ends, 3, 1 << 16, false}},
    {"5.1.8.3-6/eighty-changes-of-one-cpu", should, "resources after 80 changes of one CPU",
     "Replace the buffer of one of four CPUs. Each attach returns the other buffers again. Count "
     "the consumer's files and mappings after 20, 40, 60 and 80 changes.",
     kNoGrowth, ManyResizes{20, Between::one_cpu, 4, 1 << 16, false}},
    {"5.1.8.3-6/eighty-resizes-beside-a-refused-cpu", should,
     "resources after 80 changes, with a refused CPU",
     "Give one of three CPUs version 2 at first. Each attach returns its next buffer all the same. "
     "Count the consumer's files and mappings after 20, 40, 60 and 80 resizes.",
     kNoGrowth, ManyResizes{20, Between::refused, 3, 1 << 16, false}},
    {"5.1.8.3-6/forty-changes-with-a-failed-attach", should,
     "resources after 40 changes with a failed attach",
     "Replace the buffer 40 times. After each change, fail one kmes_attach with ENOMEM: the first "
     "and the second one in turn. Count the consumer's files and mappings after 10, 20, 30 and 40 "
     "changes.",
     "The consumer gives back what belongs to old buffers and to failed attempts, so no count "
     "grows in every interval. It may also exit with a non-zero status.",
     forty_failed_attaches},
    {"5.1.8.1-5/torn-reads-are-released", should, "memory after 150 torn reads",
     "Overwrite events of 150,000 bytes during the copy. Count the consumer's private memory after "
     "30, 60, 90, 120 and 150 of them.",
     "The consumer's memory grows by less than three mebibytes in at least one interval between "
     "two counts.",
     many_torn_reads},
};

}  // namespace kmes::conformance
