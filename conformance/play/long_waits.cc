// SPDX-License-Identifier: MIT
//
// See long_waits.h.
#include "conformance/play/long_waits.h"

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>

namespace kmes::conformance {

namespace {

// A live CPU that this wait does not include.
std::optional<std::uint32_t> cpu_left_out(const Stage& stage, const FutexWait& wait) {
    std::set<std::uint32_t> waited_for;
    for (const FutexWord& word : wait.words) {
        const std::optional<BufferIndex> buffer = stage.buffers().buffer_at(word.place);
        if (buffer) waited_for.insert(stage.rings().history().buffer(*buffer).cpu);
    }
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        if (!stage.testee().has_ended(cpu) && !waited_for.contains(cpu)) return cpu;
    }
    return std::nullopt;
}

// A wait that a timer's signal ends is short, whatever its timeout. So a long wait is blamed only
// when its timeout expires.
class LongWaits {
  public:
    explicit LongWaits(Stage& stage) : stage_(stage) {
        stage.hooks().set_on_wait(
            [this](const FutexWait& wait, std::uint32_t cpu) { begins(wait, cpu); });
        stage.hooks().set_on_wait_end([this](const FutexWaitEnd& end) { ends(end); });
    }
    ~LongWaits() {
        stage_.hooks().set_on_wait(nullptr);
        stage_.hooks().set_on_wait_end(nullptr);
    }
    LongWaits(const LongWaits&) = delete;
    LongWaits& operator=(const LongWaits&) = delete;

  private:
    void begins(const FutexWait& wait, std::uint32_t cpu) {
        wait_id_.reset();
        if (!stage_.testee().is_single_thread() || !is_long(wait)) return;
        const std::optional<std::uint32_t> other = cpu_left_out(stage_, wait);
        // A call that also has other words may cover all CPUs.
        if (!other || wait.words_in_call != wait.words.size()) return;
        wait_id_ = wait.wait_id;
        message_ = fmt::format(
            "CPU {0}: the consumer's only thread waits for CPU {1} alone, and its limit of more "
            "than 100 ms expires; expected a check of CPU {0} after 100 ms at most",
            *other, cpu);
    }
    void ends(const FutexWaitEnd& end) {
        if (end.wait_id != wait_id_ || end.result != -ETIMEDOUT || has_blamed_) return;
        has_blamed_ = true;
        stage_.findings().blame("contract-2", message_);
    }

    Stage& stage_;
    std::optional<std::uint64_t> wait_id_;
    std::string message_;
    bool has_blamed_ = false;
};

}  // namespace

Step idle_for(std::uint64_t milliseconds) {
    return [milliseconds](Stage& stage) {
        LongWaits watch(stage);
        if (stage.testee().is_single_thread()) stage.waits().let_run(milliseconds);
    };
}

}  // namespace kmes::conformance
