// SPDX-License-Identifier: MIT
//
// See writer_hold.h.
#include "conformance/play/writer_hold.h"

#include <string>
#include <utility>

namespace kmes::conformance {

namespace {

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

}  // namespace

WriterHold::WriterHold(Stage& stage, std::function<bool(pid_t)> is_reader) : stage_(stage) {
    stage.hooks().set_on_report_write(
        [this, is_reader = std::move(is_reader)](const ReportWrite& write) {
            if (left_ == 0 || !holds_records(write) || is_reader(write.tid) || --left_ > 0)
                return false;
            held_ = write.tid;
            return true;
        });
}

bool WriterHold::wait_held(std::uint64_t nth, std::uint32_t cpu) {
    left_ = nth;
    held_ = 0;
    const bool is_held = stage_.waits().until_or_asleep([this] { return held_ != 0; }, cpu);
    left_ = 0;
    return is_held;
}

void WriterHold::keep_while(const std::function<bool()>& condition,
                            std::chrono::milliseconds at_most) {
    stage_.holding().hold_while(held_, condition, at_most);
}

void note_readers(Stage& stage, std::set<pid_t>& readers, std::uint64_t events) {
    stage.guards().guard(0, 0, 1, [&readers](const GuardHit& hit) {
        readers.insert(hit.tid);
        return AtGuard::step;
    });
    emit_some(stage, 0, events, 100);
    stage.wait_asleep();
    stage.guards().release();
}

PlayAt at_write(std::uint32_t cpu) {
    return [cpu](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
                 const std::function<void(pid_t)>& act) {
        WriterHold hold(stage, [](pid_t) { return false; });
        wake();
        if (!hold.wait_held(number, cpu)) return false;
        act(hold.thread());
        return true;
    };
}

PlayAt at_write_of_a_writer() {
    return [](Stage& stage, std::uint64_t number, const std::function<void()>& wake,
              const std::function<void(pid_t)>& act) {
        std::set<pid_t> readers;
        note_readers(stage, readers, 2);
        WriterHold hold(stage, [&readers](pid_t thread) { return readers.contains(thread); });
        wake();
        const bool is_held = hold.wait_held(number);
        if (is_held) act(hold.thread());
        stage.wait_asleep();
        return is_held;
    };
}

}  // namespace kmes::conformance
