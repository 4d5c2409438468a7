// SPDX-License-Identifier: MIT
//
// A function with a stack of its own that can stand still in the middle: what makes one access of a
// consumer a step of a script. Knows nothing of rings. One thread only.
#ifndef KMES_PROPS_MACHINE_FIBER_H_
#define KMES_PROPS_MACHINE_FIBER_H_

#include <ucontext.h>

#include <functional>
#include <memory>

namespace kmes::props {

class Fiber {
  public:
    // `body` runs at the first resume(); an exception that leaves it ends it, and is dropped.
    explicit Fiber(std::function<void()> body);
    ~Fiber();  // it must have ended, or never have begun
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Goes on until the next pause() or the end. Not from inside a fiber.
    void resume();
    // From inside: stands still until the next resume().
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
    void* fake_stack_ = nullptr;  // of the address sanitizer, of the side that stands still
    const void* outside_stack_ = nullptr;
    std::size_t outside_bytes_ = 0;
    bool has_begun_ = false;
    bool has_ended_ = false;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_MACHINE_FIBER_H_
