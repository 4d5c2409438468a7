// SPDX-License-Identifier: MIT
//
// See stop_floor.h.
#include "conformance/tracer/stop_floor.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

namespace {

constexpr int kWarmUps = 200;
constexpr int kLoadBytes = 2;  // of the child's one instruction

// Keeps this thread and its children on one processor.
class OneProcessor {
  public:
    OneProcessor() {
        is_changed_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        is_changed_ = is_changed_ && sched_setaffinity(0, sizeof one, &one) == 0;
    }
    ~OneProcessor() {
        if (is_changed_) sched_setaffinity(0, sizeof before_, &before_);
    }
    OneProcessor(const OneProcessor&) = delete;
    OneProcessor& operator=(const OneProcessor&) = delete;

  private:
    cpu_set_t before_{};
    bool is_changed_ = false;
};

// Loads from the page in an endless loop. A forked child: it makes only system calls.
[[noreturn]] void load_again_and_again(const void* page) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    asm volatile(
        "1: movb (%%rdi), %%al\n"
        "jmp 1b"
        :
        : "D"(page)
        : "rax", "memory");
    __builtin_unreachable();
}

bool has_stopped(pid_t child) {
    int status = 0;
    return waitpid(child, &status, __WALL) == child && WIFSTOPPED(status);
}

// The minimum of any emulation: read the fault, and continue after the instruction.
bool pass_fault(pid_t child) {
    siginfo_t signal{};
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETSIGINFO, child, nullptr, &signal) != 0) return false;
    if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0) return false;
    registers.rip += kLoadBytes;
    return signal.si_signo == SIGSEGV && ptrace(PTRACE_SETREGS, child, nullptr, &registers) == 0 &&
           ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0 && has_stopped(child);
}

bool pass_step(pid_t child) {
    return ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 && has_stopped(child);
}

double median_of(pid_t child, BareStop kind, int count) {
    std::vector<double> samples;
    for (int i = 0; i < count + kWarmUps; ++i) {
        const TimePoint begin = Clock::now();
        if (!(kind == BareStop::fault ? pass_fault(child) : pass_step(child))) return -1;
        if (i < kWarmUps) continue;
        samples.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    }
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

}  // namespace

double bare_stop_ns(BareStop kind, int count) {
    const int may = kind == BareStop::fault ? PROT_NONE : PROT_READ;
    void* const page = mmap(nullptr, kPageBytes, may, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
    const OneProcessor one_processor;
    const pid_t child = fork();
    if (child == 0) load_again_and_again(page);
    double median = -1;
    if (child > 0) {
        // From raise() to the first fault.
        const bool is_ready =
            has_stopped(child) &&
            (kind == BareStop::step ||
             (ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0 && has_stopped(child)));
        if (is_ready) median = median_of(child, kind, count);
        kill(child, SIGKILL);
        while (has_stopped(child)) {
        }
    }
    munmap(page, kPageBytes);
    return median;
}

}  // namespace kmes::conformance
