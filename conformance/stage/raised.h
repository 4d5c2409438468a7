// SPDX-License-Identifier: MIT
//
// Sets a flag for the lifetime of an object. Then restores the former value.
#ifndef KMES_CONFORMANCE_STAGE_RAISED_H_
#define KMES_CONFORMANCE_STAGE_RAISED_H_

#include <utility>

namespace kmes::conformance {

class Raised {
  public:
    explicit Raised(bool& flag) : flag_(flag), before_(std::exchange(flag, true)) {}
    ~Raised() { flag_ = before_; }
    Raised(const Raised&) = delete;
    Raised& operator=(const Raised&) = delete;

  private:
    bool& flag_;
    bool before_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RAISED_H_
