// SPDX-License-Identifier: MIT
//
// A function on its own stack that can pause anywhere: so a single access of a consumer can be a
// step of a script. Knows nothing of rings. One thread only.
#ifndef KMES_PROPS_MACHINE_FIBER_H_
#define KMES_PROPS_MACHINE_FIBER_H_

#include <ucontext.h>

#include <exception>
#include <functional>
#include <memory>

namespace kmes::props {

class Fiber {
  public:
    // Runs `body` at the first resume().
    explicit Fiber(std::function<void()> body);
    ~Fiber();  // it must have ended, or never have begun
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Continues until the next pause() or the end. Not from inside a fiber. An exception of the
    // body ends the fiber, and leaves resume().
    void resume();
    // Call it inside a fiber: pauses until the next resume().
    static void pause();
    bool has_begun() const { return has_begun_; }
    bool has_ended() const { return has_ended_; }
    static Fiber* current();

  private:
    struct Stack;
    static void enter();

    std::function<void()> body_;
    std::unique_ptr<Stack> stack_;
    ucontext_t inside_{};
    ucontext_t outside_{};
    void* fake_stack_ = nullptr;  // of the address sanitizer, for the paused side
    const void* outside_stack_ = nullptr;
    std::size_t outside_bytes_ = 0;
    bool has_begun_ = false;
    bool has_ended_ = false;
    std::exception_ptr exception_;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_FIBER_H_
