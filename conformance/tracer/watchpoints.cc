// SPDX-License-Identifier: MIT
//
// See watchpoints.h.

#include "conformance/tracer/watchpoints.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "conformance/tracer/launch.h"

namespace kmes::conformance::tracing {
namespace {

constexpr uint64_t kWordBytes = 8;
// generation; write_pos; tail_pos; futex_counter, and need_wake with the three bytes after it.
constexpr std::array<uint64_t, 4> kWatchedOffsets{32, 64, 72, 128};
constexpr size_t kStatusRegister = 6;
constexpr size_t kControlRegister = 7;
// DR7 bits of one watchpoint: enabled for this thread, reads and writes, 8 bytes.
constexpr uint64_t kEnable = 1;
constexpr uint64_t kReadsAndWritesOf8 = 0b1011;

void* debug_register(size_t number) {
    return reinterpret_cast<void*>(offsetof(user, u_debugreg) + number * sizeof(unsigned long));
}

bool set_debug_register(pid_t tid, size_t number, uint64_t value) {
    return ptrace(PTRACE_POKEUSER, tid, debug_register(number), value) == 0;
}

std::string refusal() {
    return fmt::format("the processor's watchpoints cannot be set here: {}", strerror(errno));
}

// A forked child: it makes only system calls, and one write.
[[noreturn]] void write_watched(volatile uint64_t* word) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 && raise(SIGSTOP) == 0) *word = 1;
    _exit(0);
}

// Steps the child to its end. Returns why the watchpoint on the word does not report the write.
std::string try_watchpoint(pid_t child, volatile uint64_t* word) {
    std::string why = "no child can be traced to try the processor's watchpoints";
    bool is_set = false;
    int status = 0;
    while (wait_for(child, &status) == child && WIFSTOPPED(status)) {
        if (!is_set) {
            is_set = true;
            why = set_debug_register(child, 0, reinterpret_cast<uint64_t>(word)) &&
                          set_debug_register(child, kControlRegister,
                                             kEnable | kReadsAndWritesOf8 << 16)
                      ? "the processor's watchpoints report nothing here: the hypervisor may not "
                        "pass them on"
                      : refusal();
        }
        errno = 0;
        const long hits = ptrace(PTRACE_PEEKUSER, child, debug_register(kStatusRegister), nullptr);
        if (errno == 0 && (hits & 1) != 0) why = "";
        if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) kill(child, SIGKILL);
    }
    return why;
}

std::string try_watchpoint() {
    alignas(kWordBytes) volatile uint64_t word = 0;
    const pid_t child = fork();
    if (child == 0) write_watched(&word);
    return try_watchpoint(child, &word);
}

}  // namespace

// Some hypervisors accept the registers and never report an access.
const std::string& probe_watchpoints() {
    static const std::string kWhy = try_watchpoint();
    return kWhy;
}

Watchpoints::Watchpoints(bool is_used, bool is_blind) : is_used_(is_used), is_blind_(is_blind) {
    if (is_used) check_.unavailable = probe_watchpoints();
}

void Watchpoints::arm(pid_t tid, WatchedStep& step, uint64_t page) {
    if (!is_used_ || step.page == page) return;
    uint64_t control = 0;
    bool all = set_debug_register(tid, kControlRegister, 0);
    for (size_t i = 0; all && page != 0 && i < kWatchedOffsets.size(); ++i) {
        all = set_debug_register(tid, i, page + kWatchedOffsets[i]);
        control |= kEnable << (2 * i) | kReadsAndWritesOf8 << (16 + 4 * i);
    }
    if (all && page != 0) all = set_debug_register(tid, kControlRegister, control);
    if (!all && check_.unavailable.empty() && errno != ESRCH) check_.unavailable = refusal();
    step.page = page;
}

void Watchpoints::check_step(pid_t tid, uint64_t page, const std::vector<RingOperand>& expected,
                             const CodePlace& place) {
    if (!is_used_ || page == 0) return;
    errno = 0;
    const long status = ptrace(PTRACE_PEEKUSER, tid, debug_register(kStatusRegister), nullptr);
    if (errno != 0) return;
    for (size_t i = 0; i < kWatchedOffsets.size(); ++i) {
        const uint64_t word = page + kWatchedOffsets[i];
        const bool is_expected =
            !is_blind_ &&
            std::any_of(expected.begin(), expected.end(), [&](const RingOperand& operand) {
                return operand.address < word + kWordBytes &&
                       word < operand.address + std::max(operand.size_bytes, 1u);
            });
        const bool is_seen = (static_cast<unsigned long>(status) >> i & 1) != 0;
        if (is_seen && is_expected) ++check_.confirmed;
        if (!is_seen && is_expected) ++check_.unconfirmed;
        if (is_seen && !is_expected && check_.unseen.empty())
            check_.unseen = fmt::format(
                "the processor saw an access to byte {} of the metadata page that the stepper had "
                "not seen, by the instruction at {:#x}",
                kWatchedOffsets[i], place.instruction_pointer);
    }
}

}  // namespace kmes::conformance::tracing
