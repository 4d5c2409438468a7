// SPDX-License-Identifier: MIT
//
// See change_record.h.
#include "conformance/play/change_record.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "conformance/play/writer_hold.h"

namespace kmes::conformance {

namespace {

class ChangeRecords {
  public:
    explicit ChangeRecords(Stage& stage)
        : stage_(stage), hold_(stage, [this](pid_t thread) { return readers_.contains(thread); }) {}

    // Returns false if the consumer sleeps without a G record.
    bool change(bool holds_writer) {
        note_readers(stage_, readers_, 1);
        stage_.rings().spurious_wake(1);
        stage_.wait_asleep();
        reported_before_ = reported_changes(stage_, 0);
        sleeps_before_ = stage_.wait_log().sleeps(0);
        stage_.rings().swap(0, SwapSpec{stage_.capacity_bytes()});
        const bool waits = !holds_writer || waits_for_the_record();
        stage_.wait_asleep();
        return waits && reports_the_change();
    }

  private:
    bool is_reported() const {
        stage_.rings().spurious_wake(1);  // reads the report
        return reported_changes(stage_, 0) > reported_before_;
    }

    // If every thread is blocked, no record can still come.
    bool reports_the_change() {
        constexpr int kChecks = 100;
        constexpr int kAgree = 3;
        int blocked = 0;
        for (int check = 0; check < kChecks && blocked < kAgree; ++check) {
            stage_.waits().let_run(2);
            if (stage_.testee().tracer().inspect().all_blocked && stage_.wait_log().asleep(0))
                ++blocked;
            if (is_reported() || stage_.testee().has_ended(0)) return true;
            stage_.wait_asleep();
        }
        return blocked < kAgree;
    }

    // As reports_the_change, while a thread that writes another's records is held: the other must
    // wait for it.
    bool waits_for_the_record() {
        constexpr std::chrono::milliseconds kHeld{200};
        const auto sleeps = [this] {
            return stage_.wait_log().sleeps(0) > sleeps_before_ && stage_.wait_log().asleep(0);
        };
        // The reader may sleep before the writer comes to write.
        if (!hold_.wait_held(1)) return !sleeps() || is_reported();
        bool waits = true;
        hold_.keep_while(
            [&] {
                if (sleeps()) waits = is_reported();
                return waits && !stage_.testee().has_ended(0);
            },
            kHeld);
        return waits;
    }

    Stage& stage_;
    std::set<pid_t> readers_;
    WriterHold hold_;
    std::size_t reported_before_ = 0;
    std::uint64_t sleeps_before_ = 0;
};

}  // namespace

Step changes_without_events(std::uint64_t changes) {
    return Call{[changes](Stage& stage) {
        ChangeRecords records(stage);
        for (std::uint64_t change = 0; change < changes; ++change) {
            stage.wait_asleep();
            if (stage.testee().has_ended(0)) return;
            if (records.change(change >= changes / 2)) continue;
            stage.findings().blame(
                "contract-3",
                "CPU 0: the consumer sleeps in the next buffer without a G record; expected a "
                "G record before the sleep");
            return;
        }
    }};
}

}  // namespace kmes::conformance
