// SPDX-License-Identifier: MIT
//
// Called before each time that a tracer lets a thread go: a test holds the runner there. For tests.

#ifndef CONFORMANCE_TRACER_RESUME_HOOK_H_
#define CONFORMANCE_TRACER_RESUME_HOOK_H_

#include <sys/types.h>

#include <functional>

namespace kmes::conformance {

inline std::function<void(pid_t tid)> resume_hook;

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_RESUME_HOOK_H_
