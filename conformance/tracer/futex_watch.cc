// SPDX-License-Identifier: MIT
//
// Futex calls of the testee on ring words, from their entry to their end. Knows stops, but not the
// layout of the calls' arguments.

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::watch_futex(Thread& thread, const user_regs_struct& registers) {
    const auto number = call_number_of(registers);
    uint64_t arguments[6];
    arguments_of(registers, arguments);
    if (thread.call.wait) {
        const ActiveWait& old = *thread.call.wait;
        const bool is_same =
            number == old.number && std::equal(arguments, arguments + 6, old.arguments);
        if (number == SYS_restart_syscall || is_same) {
            // The kernel restarts the interrupted wait: it has been reported already.
            thread.call.wait->interrupted = false;
            return true;
        }
        // A handler left the call without returning to it.
        end_futex_wait(thread, -EINTR);
    }
    if (auto wait = futex_calls_.read_wait(thread.tid, number, arguments)) {
        wait->wait_id = futex_calls_.take_wait_id();
        wait->site = call_site(thread, registers);
        ActiveWait active;
        active.report = *wait;
        active.number = number;
        active.resume_address = registers.rip;
        std::copy(std::begin(arguments), std::end(arguments), std::begin(active.arguments));
        thread.call.wait = std::move(active);
        unshare_processor();
        push(thread, std::move(*wait));
        return true;
    }
    if (auto other = futex_calls_.read_other(thread.tid, number, arguments)) {
        push(thread, std::move(*other));
        return true;
    }
    return false;
}

void Tracer::Engine::end_futex_wait(Thread& thread, int64_t result) {
    if (!thread.call.wait) return;
    push(thread, FutexWaitEnd{thread.tid, thread.call.wait->report.wait_id, result});
    thread.call.wait.reset();
}

void Tracer::Engine::drop_futex_wait(Thread& thread) {
    if (!thread.call.wait) return;
    push(FutexWaitEnd{thread.tid, thread.call.wait->report.wait_id, 0, true});
    thread.call.wait.reset();
}

bool Tracer::Engine::set_wait_result(pid_t tid, int64_t result) {
    Thread* thread = find(tid);
    if (thread == nullptr || !thread->stopped || thread->now != StopKind::kExit) return false;
    auto registers = read_registers(tid);
    if (!registers) return false;
    registers->rax = static_cast<uint64_t>(result);
    return write_registers(tid, *registers);
}

}  // namespace kmes::conformance
