// SPDX-License-Identifier: MIT
//
// See trap_flag.h.

#include "conformance/tracer/trap_flag.h"

#include <cstdint>
#include <utility>

#include "conformance/tracer/memory.h"
#include "conformance/tracer/registers.h"

namespace kmes::conformance::tracing {
namespace {

constexpr uint16_t kTrapFlag = 0x100;

}  // namespace

void TrapFlag::end_step(pid_t tid) {
    if (std::exchange(steps_pushf_, false)) clear_pushed(tid);
}

void TrapFlag::clear_pushed(pid_t tid) const {
    const auto registers = read_registers(tid);
    if (!registers || ((registers->eflags & kTrapFlag) != 0 && !is_shown_)) return;
    auto pushed = read_value<uint16_t>(tid, registers->rsp);
    if (!pushed) return;
    *pushed &= static_cast<uint16_t>(~kTrapFlag);
    write_memory(tid, registers->rsp, &*pushed, sizeof *pushed);
}

void TrapFlag::clear(pid_t tid) {
    auto registers = read_registers(tid);
    if (!std::exchange(is_shown_, false) || !registers) return;
    registers->eflags &= ~static_cast<unsigned long long>(kTrapFlag);
    write_registers(tid, *registers);
}

}  // namespace kmes::conformance::tracing
