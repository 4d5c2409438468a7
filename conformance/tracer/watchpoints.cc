// SPDX-License-Identifier: MIT
//
// The processor's watchpoints as a second witness of single steps. Four of them cover words of a
// guarded metadata page. After each step, the processor's report is checked against the predicted
// accesses. Watchpoints trap after an access, and there are only four. So they see no data, no
// access of the kernel, and nothing beforehand. They check the stepper and cannot replace it. Knows
// stops and the offsets of the page (5.1.6).

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

#include "conformance/tracer/engine.h"
#include "conformance/tracer/launch.h"

namespace kmes::conformance {
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
    while (tracing::wait_for(child, &status) == child && WIFSTOPPED(status)) {
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
const std::string& tracing::probe_watchpoints() {
    static const std::string kWhy = try_watchpoint();
    return kWhy;
}

// The first guarded metadata page; 0: none.
uint64_t Tracer::Engine::watched_page() const {
    for (const LiveMapping& live : mappings_) {
        if (!live.live || live.mapping.offset_bytes != 0) continue;
        for (const auto& [offset, length] : live.guards) {
            if (offset == 0 && length != 0) return live.mapping.address;
        }
    }
    return 0;
}

// Watchpoints belong to a thread, and its children do not inherit them.
void Tracer::Engine::arm_watchpoints(Thread& thread) {
    const uint64_t page = watched_page();
    if (!checks_by_watchpoints_ || thread.watched_page == page) return;
    uint64_t control = 0;
    bool all = set_debug_register(thread.tid, kControlRegister, 0);
    for (size_t i = 0; all && page != 0 && i < kWatchedOffsets.size(); ++i) {
        all = set_debug_register(thread.tid, i, page + kWatchedOffsets[i]);
        control |= kEnable << (2 * i) | kReadsAndWritesOf8 << (16 + 4 * i);
    }
    if (all && page != 0) all = set_debug_register(thread.tid, kControlRegister, control);
    if (!all && watch_check_.unavailable.empty() && errno != ESRCH)
        watch_check_.unavailable = refusal();
    thread.watched_page = page;
}

// Checks a step of the thread: `expected` has the accesses that were predicted before the step.
void Tracer::Engine::check_step(Thread& thread, const std::vector<RingOperand>& expected,
                                const CodePlace& place) {
    if (!checks_by_watchpoints_ || thread.watched_page == 0) return;
    errno = 0;
    const long status =
        ptrace(PTRACE_PEEKUSER, thread.tid, debug_register(kStatusRegister), nullptr);
    if (errno != 0) return;
    for (size_t i = 0; i < kWatchedOffsets.size(); ++i) {
        const uint64_t word = thread.watched_page + kWatchedOffsets[i];
        const bool is_expected =
            !options_.simulate_blind_stepper &&
            std::any_of(expected.begin(), expected.end(), [&](const RingOperand& operand) {
                return operand.address < word + kWordBytes &&
                       word < operand.address + std::max(operand.size_bytes, 1u);
            });
        const bool is_seen = (static_cast<unsigned long>(status) >> i & 1) != 0;
        if (is_seen && is_expected) ++watch_check_.confirmed;
        if (!is_seen && is_expected) ++watch_check_.unconfirmed;
        if (is_seen && !is_expected && watch_check_.unseen.empty())
            watch_check_.unseen = fmt::format(
                "the processor saw an access to byte {} of the metadata page that the stepper had "
                "not seen, by the instruction at {:#x}",
                kWatchedOffsets[i], place.instruction_pointer);
    }
}

}  // namespace kmes::conformance
