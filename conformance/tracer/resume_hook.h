// SPDX-License-Identifier: MIT
//
// A hook that tests set: the tracer calls it each time before it resumes a thread.

#ifndef CONFORMANCE_TRACER_RESUME_HOOK_H_
#define CONFORMANCE_TRACER_RESUME_HOOK_H_

#include <sys/types.h>

#include <functional>

namespace kmes::conformance {

inline std::function<void(pid_t tid)> resume_hook;

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_RESUME_HOOK_H_
