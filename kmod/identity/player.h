// SPDX-License-Identifier: GPL-2.0-only
//
// Plays scripts (docs/script-format.md) on both sides, one script on each CPU, and compares both
// sides after each operation. The scripts take turns by operation. A started operation is played as
// a whole at its `start`, because the module cannot stop between two accesses. Operations of a
// consumer only store need_wake: `run` sets it to 1, `expire` and `interrupt` clear it. All others,
// and `attach`, are skipped.
#ifndef KMES_KMOD_IDENTITY_PLAYER_H_
#define KMES_KMOD_IDENTITY_PLAYER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kmod/identity/module.h"
#include "kmod/identity/userspace.h"
#include "props/script/random.h"
#include "props/script/script.h"

namespace kmes::identity {

struct Played {
    std::uint64_t operations = 0;  // played on both sides
    std::uint64_t skipped = 0;     // not applicable in that state, or of a consumer
    std::uint64_t bytes = 0;       // compared
    std::size_t buffers = 0;
    OperationTable table;
    std::optional<std::string> difference;  // the first one
};

// Changes one byte of the module's instance between an operation and the comparison.
struct Plant {
    std::uint64_t at_operation = 0;  // counted over all CPUs, from 0
    std::uint64_t offset = 0;        // in the mapping of the current buffer of CPU 0
};

class Player {
  public:
    // The player refers to `scripts`. The first script has the settings of the instance, but each
    // CPU has the start position of its own script.
    explicit Player(const std::vector<props::Script>& scripts, std::optional<Plant> plant = {});
    Played play();
    // Plays kmes_call_emit and kmes_call_emit_batch, with valid entries and all kinds of invalid
    // ones, drawn from `seed`. Scripts have no invalid entries.
    Played play_calls(std::uint64_t seed, unsigned operations);

  private:
    // The state of one CPU that decides whether an operation applies (docs/script-format.md).
    struct CpuState {
        const props::Script* script = nullptr;
        unsigned cpu = 0;
        std::size_t next = 0;
        std::size_t buffers = 1;
        bool is_boot = false, is_over = false;
        bool has_batch = false, has_reservation = false, has_prepared = false;
        std::string reserved_payload;
        std::map<std::uint64_t, std::uint64_t> true_sizes;  // of corrupt events, by position
    };

    void perform(CpuState& cpu_state, const props::Operation& operation);
    void perform_event(CpuState& cpu_state, const props::Operation& operation);
    void perform_batch(CpuState& cpu_state, const props::Operation& operation);
    void perform_fill(CpuState& cpu_state, const props::Operation& operation);
    void perform_close(CpuState& cpu_state, const props::Operation& operation);
    void perform_swap(CpuState& cpu_state, const props::Operation& operation);
    void perform_piece(CpuState& cpu_state, const props::Operation& operation);
    void perform_nudge(CpuState& cpu_state, const props::Operation& operation);
    void perform_world(CpuState& cpu_state, const props::Operation& operation);
    void corrupt(CpuState& cpu_state, const props::Operation& operation);
    void set_need_wake(CpuState& cpu_state, std::uint8_t need_wake);
    void end(CpuState& cpu_state);

    void call_one(CpuState& cpu_state, props::Random& random);
    void call_batch(CpuState& cpu_state, props::Random& random);

    // Applies the operation to both sides, and compares the results, which it returns.
    std::int64_t operate(CpuState& cpu_state, kmes_test_operation operation);
    void write(CpuState& cpu_state, std::size_t buffer, std::uint64_t offset, const void* bytes,
               std::uint64_t length);
    void set_clock(CpuState& cpu_state);
    void take_new_buffer(CpuState& cpu_state);
    void check_attach();
    void check_all();
    void check_state(unsigned cpu);
    void check_mapping(unsigned cpu, std::size_t buffer);
    void plant();
    void skip() { played_.skipped++; }
    void differ(unsigned cpu, const std::string& what);

    std::vector<CpuState> cpu_states_;
    InstanceOptions options_;
    Userspace userspace_;
    Module module_;
    std::optional<Plant> plant_;
    Played played_;
    std::string where_;  // the last played operation
};

}  // namespace kmes::identity

#endif  // KMES_KMOD_IDENTITY_PLAYER_H_
