// SPDX-License-Identifier: MIT
//
// Before a consumer sleeps or exits, all records are written, whole, and the consumer has checked
// again. That holds whichever thread does it, whatever the timeouts of the waits, and whatever ends
// them.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::uint32_t kTwoCpus = 2;

// Blames a thread that has loaded CPU 0's write_pos and enters a long wait with undelivered events.
// Then need_wake is set and the counter is current, but an event published before has no record.
class SleepWatch {
  public:
    SleepWatch(Stage& stage, std::string_view clause, std::string_view message)
        : stage_(stage), clause_(clause), message_(message) {
        stage.hooks().set_on_wait(
            [this](const FutexWait& wait, std::uint32_t cpu) { check(wait, cpu); });
    }
    ~SleepWatch() { stage_.hooks().set_on_wait(nullptr); }
    SleepWatch(const SleepWatch&) = delete;
    SleepWatch& operator=(const SleepWatch&) = delete;

    bool has_blamed() const { return blamed_; }
    // Whether the thread has loaded write_pos since guard().
    bool has_loaded(pid_t tid) const { return loaders_.contains(tid); }
    // Guards the metadata page and calls `act` at the k-th access. Releases a page that is loaded
    // again and again in a spin.
    void guard(std::uint64_t k, const std::function<void()>& act) {
        loaders_.clear();
        accesses_ = 0;
        stage_.guards().guard(0, 0, 1, [this, k, act](const GuardHit& hit) {
            if (hit.place.offset_bytes == kWritePosOffset) loaders_.insert(hit.tid);
            if (++accesses_ == k) act();
            return accesses_ > k + kAccessesAtMost ? AtGuard::release : AtGuard::step;
        });
    }
    std::uint64_t accesses() const { return accesses_; }

  private:
    static constexpr std::uint64_t kAccessesAtMost = 200;

    // If two threads load write_pos, one may sleep while the other still works.
    void check(const FutexWait& wait, std::uint32_t cpu) {
        if (blamed_ || cpu != 0 || loaders_ != std::set<pid_t>{wait.tid}) return;
        if (!is_long(wait) || !sleeps_on_undelivered(stage_, wait)) return;
        blamed_ = true;
        stage_.findings().blame(clause_, std::string(message_));
    }

    Stage& stage_;
    std::string_view clause_;
    std::string_view message_;
    std::set<pid_t> loaders_;
    std::uint64_t accesses_ = 0;
    bool blamed_ = false;
};

// A comment is not a record, so a thread that writes only comments does not count.
bool holds_records(const ReportWrite& write) {
    if (write.begin.size() < write.bytes) return true;
    std::size_t line = 0;
    while (line < write.begin.size() && write.begin[line] == '#') {
        const std::size_t end = write.begin.find('\n', line);
        line = end == std::string::npos ? write.begin.size() : end + 1;
    }
    return line < write.begin.size();
}

// Holds a thread that writes records, but does not access the ring, before its n-th write of an
// iteration.
class WriterHold {
  public:
    WriterHold(Stage& stage, std::function<bool(pid_t)> has_loaded) : stage_(stage) {
        stage.hooks().set_on_report_write([this, has_loaded](const ReportWrite& write) {
            if (left_ == 0 || !holds_records(write) || has_loaded(write.tid) || --left_ > 0)
                return false;
            held_ = write.tid;
            return true;
        });
    }
    ~WriterHold() { stage_.hooks().set_on_report_write(nullptr); }
    WriterHold(const WriterHold&) = delete;
    WriterHold& operator=(const WriterHold&) = delete;

    // Counts the events that are emitted from now on. Returns false if no thread was held, and
    // everything is delivered.
    bool wait_held(int nth) {
        left_ = nth;
        held_ = 0;
        const bool is_held = stage_.waits().until_or_asleep([this] { return held_ != 0; }, 0);
        left_ = 0;
        return is_held;
    }
    // The other threads continue meanwhile.
    void keep_while(const std::function<bool()>& condition, std::chrono::milliseconds at_most) {
        stage_.holding().hold_while(held_, condition, at_most);
    }

  private:
    Stage& stage_;
    int left_ = 0;
    pid_t held_ = 0;
};

// More text at once, from several threads, than most buffers can store. Each system call stops, so
// the monitor of whole lines checks each write.
CaseOutcome whole_lines(Stage& stage) {
    stage.hooks().set_on_report_write([](const ReportWrite&) { return false; });
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = 262144;
    stage.set_up(setup);
    stage.start();
    for (const std::size_t type_bytes : {20, 300, 3000, 40000}) {
        stage.wait_asleep();
        stage.holding().freeze();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            for (std::size_t bytes = 0; bytes < setup.capacity_bytes / 2; bytes += type_bytes + 200)
                stage.rings().emit(
                    cpu, stage.rings().events().make(kHeaderBytesBeforeType + type_bytes + 10,
                                                     std::string(type_bytes, 'w')));
        }
        stage.holding().thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome records_before_it_sleeps(Stage& stage) {
    constexpr std::uint32_t kBurst = 40;
    // The first hold is for a consumer that waits for its writers, but not forever.
    constexpr std::chrono::milliseconds kLong{500};
    constexpr std::chrono::milliseconds kShort{60};
    std::chrono::milliseconds at_most = kLong;
    set_up_cpus(stage, kTwoCpus);
    SleepWatch watch(stage, "contract-3",
                     "CPU 0: the consumer sleeps before it has written all records; expected the "
                     "record of every event that it has read");
    WriterHold hold(stage, [&watch](pid_t tid) { return watch.has_loaded(tid); });
    stage.start();
    // Records of another CPU do not count for this one.
    emit_some(stage, 1, 400, 60);
    // The last write is for a consumer whose threads can be only few events apart. The first one is
    // for a consumer that writes many records at once.
    for (const int nth : {1, 2, 40, 39, 20, 5, 30, 3}) {
        stage.wait_asleep();
        if (stage.testee().has_ended(0) || watch.has_blamed()) break;
        watch.guard(0, nullptr);
        emit_some(stage, 0, kBurst, 1500);
        // Gives the other threads time to go to sleep.
        if (hold.wait_held(nth))
            hold.keep_while([&watch] { return !watch.has_blamed(); },
                            std::exchange(at_most, kShort));
        stage.wait_asleep();
        stage.guards().release();
    }
    return stage.finish();
}

// Adds the threads that access the metadata page of CPU 0 until `events` events are delivered.
void note_loaders(Stage& stage, std::set<pid_t>& loaders, std::uint64_t events) {
    stage.guards().guard(0, 0, 1, [&loaders](const GuardHit& hit) {
        loaders.insert(hit.tid);
        return AtGuard::step;
    });
    emit_some(stage, 0, events, 100);
    stage.wait_asleep();
    stage.guards().release();
}

// Holds the writing thread before its first record while the others read on. More records queue up
// than a count of 8 bits, or of 12, can represent.
CaseOutcome records_pile_up(Stage& stage) {
    constexpr std::uint64_t kCapacity = std::uint64_t{1} << 20;
    constexpr std::uint64_t kSmall = 40;
    constexpr std::chrono::milliseconds kHeld{600};
    std::set<pid_t> loaders;
    WriterHold hold(stage, [&loaders](pid_t tid) { return loaders.contains(tid); });
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    stage.wait_asleep();
    note_loaders(stage, loaders, 2);
    for (const std::uint32_t events : {256, 257, 300, 5000}) {
        if (stage.testee().has_ended(0)) break;
        emit_some(stage, 0, 1, 100);
        if (!hold.wait_held(1)) break;
        stage.holding().freeze();
        emit_some(stage, 0, events, kSmall);
        stage.holding().thaw();
        hold.keep_while([&stage] { return !stage.wait_log().asleep(0); }, kHeld);
        stage.wait_asleep();
    }
    return stage.finish();
}

// The number of G records of CPU 0.
std::size_t reported_changes(const Stage& stage) {
    const std::vector<Record>& records = stage.testee().records().records();
    return static_cast<std::size_t>(
        std::count_if(records.begin(), records.end(), [](const Record& record) {
            return record.kind == RecordKind::generation && record.cpu == 0;
        }));
}

// If every thread is blocked, no record can still come.
bool reports_the_change(Stage& stage, std::size_t reported_before) {
    constexpr int kChecks = 100;
    constexpr int kAgree = 3;
    int blocked = 0;
    for (int check = 0; check < kChecks && blocked < kAgree; ++check) {
        stage.waits().let_run(2);
        if (stage.testee().tracer().inspect().all_blocked && stage.wait_log().asleep(0)) ++blocked;
        stage.rings().spurious_wake(1);  // reads the report
        if (reported_changes(stage) > reported_before || stage.testee().has_ended(0)) return true;
        stage.wait_asleep();
    }
    return blocked < kAgree;
}

// As reports_the_change, while a thread that writes another's records is held: the other must wait
// for it.
bool waits_for_the_record(Stage& stage, WriterHold& hold, std::size_t reported_before,
                          std::uint64_t sleeps_before) {
    constexpr std::chrono::milliseconds kHeld{200};
    const auto sleeps = [&] {
        return stage.wait_log().sleeps(0) > sleeps_before && stage.wait_log().asleep(0);
    };
    const auto is_reported = [&] {
        stage.rings().spurious_wake(1);  // reads the report
        return reported_changes(stage) > reported_before;
    };
    // The reader may sleep before the writer comes to write.
    if (!hold.wait_held(1)) return !sleeps() || is_reported();
    bool waits = true;
    hold.keep_while(
        [&] {
            if (sleeps()) waits = is_reported();
            return waits && !stage.testee().has_ended(0);
        },
        kHeld);
    return waits;
}

CaseOutcome change_is_reported(Stage& stage) {
    constexpr int kChanges = 4;
    std::set<pid_t> loaders;
    WriterHold hold(stage, [&loaders](pid_t tid) { return loaders.contains(tid); });
    set_up_cpus(stage, kTwoCpus);
    stage.start();
    for (int change = 0; change < kChanges; ++change) {
        stage.wait_asleep();
        if (stage.testee().has_ended(0)) break;
        note_loaders(stage, loaders, 1);
        stage.rings().spurious_wake(1);
        stage.wait_asleep();
        const std::size_t reported = reported_changes(stage);
        const std::uint64_t sleeps = stage.wait_log().sleeps(0);
        stage.rings().swap(0, SwapSpec{stage.capacity_bytes()});
        const bool waits =
            change < kChanges / 2 || waits_for_the_record(stage, hold, reported, sleeps);
        stage.wait_asleep();
        if (waits && reports_the_change(stage, reported)) continue;
        stage.findings().blame(
            "contract-3",
            "CPU 0: the consumer sleeps in the next buffer without a G record; expected a "
            "G record before the sleep");
        break;
    }
    return stage.finish();
}

// Holds the thread that is about to write the record of the end event of `cpu`. Meanwhile it emits
// the end events of the later CPUs. The program must not exit.
CaseOutcome exits_with_all_records(Stage& stage, std::uint32_t cpu) {
    constexpr std::chrono::milliseconds kHeld{300};
    struct Hold {
        bool is_armed = false;
        pid_t tid = 0;
    };
    const auto hold = std::make_shared<Hold>();
    stage.hooks().set_on_report_write([hold](const ReportWrite& write) {
        if (!holds_records(write) || !std::exchange(hold->is_armed, false)) return false;
        hold->tid = write.tid;
        return true;
    });
    set_up_cpus(stage, 3);
    stage.start();
    for (std::uint32_t before = 0; before < cpu; ++before) {
        stage.wait_asleep();
        end_cpu(stage, before);
    }
    stage.wait_asleep();
    hold->is_armed = true;
    stage.rings().emit(cpu, stage.rings().events().make_end());
    if (stage.waits().until_or_asleep([hold] { return hold->tid != 0; }, cpu)) {
        for (std::uint32_t later = cpu + 1; later < stage.cpus(); ++later)
            stage.rings().emit(later, stage.rings().events().make_end());
        stage.holding().hold_while(hold->tid, [] { return true; }, kHeld);
    }
    hold->is_armed = false;
    return stage.finish();
}

CaseOutcome no_limit_instead_of_a_load(Stage& stage) {
    constexpr std::uint64_t kStepsAtMost = 40;
    set_up_cpus(stage, kTwoCpus);
    stage.start();
    {
        SleepWatch watch(stage, "E2",
                         "CPU 0: the consumer sleeps for more than 100 ms with a published event "
                         "unread; expected a delivery");
        for (std::uint64_t k = 1; k <= kStepsAtMost && !watch.has_blamed(); ++k) {
            stage.wait_asleep();
            if (stage.testee().has_ended(0)) break;
            watch.guard(k, [&stage] { emit_some(stage, 0, 1, 70); });
            emit_some(stage, 0, 1, 100);
            stage.wait_asleep();
            stage.guards().release();
            if (watch.accesses() < k) break;
        }
    }
    return stage.finish();
}

// A wait with a timeout may end with ETIMEDOUT at any time: the consumer chooses the timeout, and
// may have been held since. Then it checks again and sets need_wake again. The same holds for a
// signal, which may end any wait.
const Steps kSpuriousWakes{
    Times{8,
          {Asleep{}, OnEachCpu{{FutexWake{}, [](Stage& stage) { stage.waits().let_run(1); }}},
           Asleep{}, EmitEverywhere{1, 80}}},
    Asleep{}};

constexpr std::string_view kWritesBeforeExit =
    "The consumer exits only after it has written the records of everything that it has read.";
constexpr std::string_view kChecksAgain =
    "The consumer checks for events and sets need_wake again.";

const Row kRecordRows[] = {
    {{"contract-3/whole-lines", must, "whole lines in each write",
      "Fill half of each CPU's buffer with events of types of 20 to 40,000 bytes. Check each write "
      "to the report.",
      "The consumer ends each write with a newline, if several of its threads write."},
     whole_lines},
    {{"contract-3/records-before-it-sleeps", must, "all records before a sleep",
      "Emit bursts of forty events. Hold a thread that writes records, and does not load write_pos "
      "itself, before one of its writes. Check the report when the thread that loaded write_pos "
      "enters a futex wait.",
      "The consumer has written the record of each of them by then."},
     records_before_it_sleeps},
    {{"contract-3/records-pile-up", must, "many events that wait for their records",
      "Hold a thread that writes records, and does not read the ring itself, before one of its "
      "writes. Emit 256, 257, 300 and 5000 events meanwhile.",
      "The consumer delivers every event once, however many its threads hand over."},
     records_pile_up},
    {{"contract-4/exits-with-all-records", must, "records of all threads at the end",
      "Emit the end event on CPU 0, and hold the thread that writes its record before it does. "
      "Emit the end event of the other CPUs meanwhile.",
      kWritesBeforeExit},
     [](Stage& stage) { return exits_with_all_records(stage, 0); }},
    {{"contract-4/exits-after-its-last-record", must, "the last record at the end",
      "Emit the end event on the last of three CPUs, and hold the thread that writes its record "
      "before it does.",
      kWritesBeforeExit},
     [](Stage& stage) { return exits_with_all_records(stage, 2); }},
    {{"contract-3/a-change-is-reported-before-it-sleeps", must, "G record before a sleep",
      "Replace the buffer and emit nothing. Check the report when the consumer sleeps in the next "
      "buffer and none of its threads runs.",
      "The consumer has written the G record by then."},
     change_is_reported},
    {{"E2/no-limit-instead-of-a-second-load", erratum,
      "a long time limit in place of a second check",
      "Emit an event at each access to the metadata page in turn, as in E2/event-at-every-step. "
      "Check the time limit of the sleep that follows.",
      "The consumer never sleeps for more than 100 ms while an event is unread."},
     no_limit_instead_of_a_load},
    {{"5.1.8.2-5/waits-that-time-out", must, "ETIMEDOUT from futex_wait",
      "Wake the consumer without an event, with ETIMEDOUT where the wait has a time limit.",
      kChecksAgain},
     kSpuriousWakes,
     {.wake_result = -ETIMEDOUT}},
    {{"5.1.8.2-5/interrupted-without-an-event", must, "EINTR from futex_wait, without an event",
      "Wake the consumer without an event, with EINTR.", kChecksAgain},
     kSpuriousWakes,
     {.wake_result = -EINTR}},
};

}  // namespace

const std::vector<Case> kRecordCases = cases_of(kRecordRows);

}  // namespace kmes::conformance
