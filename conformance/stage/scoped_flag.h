// SPDX-License-Identifier: MIT
//
// Sets a flag for the lifetime of an object. Then restores the former value.
#ifndef KMES_CONFORMANCE_STAGE_SCOPED_FLAG_H_
#define KMES_CONFORMANCE_STAGE_SCOPED_FLAG_H_

#include <utility>

namespace kmes::conformance {

class ScopedFlag {
  public:
    explicit ScopedFlag(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
    ~ScopedFlag() { flag_ = before_; }
    ScopedFlag(const ScopedFlag&) = delete;
    ScopedFlag& operator=(const ScopedFlag&) = delete;

  private:
    bool& flag_;
    bool before_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SCOPED_FLAG_H_
