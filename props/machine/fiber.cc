// SPDX-License-Identifier: MIT
//
// Fibers on ucontext. The address sanitizer, which keeps a record of the stack, is notified
// (fiber.h).
#include "props/machine/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define KMES_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KMES_FIBER_ASAN 1
#endif
#endif
#ifdef KMES_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kmes::props {
namespace {

constexpr std::size_t kStackBytes = 256 << 10;  // a sanitizer's frames are large
constexpr std::size_t kPageBytes = 4096;

thread_local Fiber* current_fiber = nullptr;

// Stacks are reused, because a fuzzer makes several for each input.
std::vector<char*>& free_stacks() {
    static thread_local std::vector<char*> stacks;
    return stacks;
}

void begin_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* to,
                  [[maybe_unused]] std::size_t bytes) {
#ifdef KMES_FIBER_ASAN
    __sanitizer_start_switch_fiber(save, to, bytes);
#endif
}

void end_switch([[maybe_unused]] void* save, [[maybe_unused]] const void** from,
                [[maybe_unused]] std::size_t* bytes) {
#ifdef KMES_FIBER_ASAN
    __sanitizer_finish_switch_fiber(save, from, bytes);
#endif
}

}  // namespace

struct Fiber::Stack {
    Stack() {
        if (free_stacks().empty()) {
            void* range = mmap(nullptr, kStackBytes + kPageBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            // The lowest page faults, so that a stack overflow is noticed.
            if (range == MAP_FAILED || mprotect(range, kPageBytes, PROT_NONE) != 0) std::abort();
            base = static_cast<char*>(range) + kPageBytes;
        } else {
            base = free_stacks().back();
            free_stacks().pop_back();
        }
    }
    ~Stack() {
#ifdef KMES_FIBER_ASAN
        __asan_unpoison_memory_region(base, kStackBytes);
#endif
        free_stacks().push_back(base);
    }
    char* base;
};

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {}

Fiber::~Fiber() {
    if (has_begun_ && !has_ended_) std::abort();
}

Fiber* Fiber::current() {
    return current_fiber;
}

// The first function on the new stack.
void Fiber::enter() {
    Fiber* self = current_fiber;
    end_switch(nullptr, &self->outside_stack_, &self->outside_bytes_);
    try {
        self->body_();
    } catch (...) {
        self->exception_ = std::current_exception();
    }
    self->has_ended_ = true;
    current_fiber = nullptr;
    begin_switch(nullptr, self->outside_stack_, self->outside_bytes_);
    setcontext(&self->outside_);
    std::abort();
}

void Fiber::resume() {
    if (has_ended_) return;
    if (!has_begun_) {
        has_begun_ = true;
        stack_ = std::make_unique<Stack>();
        if (getcontext(&inside_) != 0) std::abort();
        inside_.uc_stack.ss_sp = stack_->base;
        inside_.uc_stack.ss_size = kStackBytes;
        inside_.uc_link = nullptr;
        makecontext(&inside_, &Fiber::enter, 0);
    }
    current_fiber = this;
    void* fake_stack = nullptr;
    begin_switch(&fake_stack, stack_->base, kStackBytes);
    if (swapcontext(&outside_, &inside_) != 0) std::abort();
    end_switch(fake_stack, nullptr, nullptr);
    if (has_ended_) stack_.reset();
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
}

void Fiber::pause() {
    Fiber* self = current_fiber;
    current_fiber = nullptr;
    begin_switch(&self->fake_stack_, self->outside_stack_, self->outside_bytes_);
    if (swapcontext(&self->inside_, &self->outside_) != 0) std::abort();
    end_switch(self->fake_stack_, &self->outside_stack_, &self->outside_bytes_);
}

}  // namespace kmes::props
