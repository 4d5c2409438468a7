// SPDX-License-Identifier: MIT
//
// The interface through which Rings calls its owner. A stage reads the report there, and serves new
// buffers to the testee.
#ifndef KMES_CONFORMANCE_STAGE_RINGS_OBSERVER_H_
#define KMES_CONFORMANCE_STAGE_RINGS_OBSERVER_H_

#include "conformance/oracle/history.h"

namespace kmes::conformance {

class RingsObserver {
  public:
    RingsObserver() = default;
    virtual ~RingsObserver() = default;
    RingsObserver(const RingsObserver&) = delete;
    RingsObserver& operator=(const RingsObserver&) = delete;

    // Called before each operation of the producer. May do other operations. If it reserves an
    // event on the CPU of the operation, Rings publishes that event before the operation begins.
    virtual void before_operation() = 0;
    // Called for each new buffer that consumers may attach to, before any consumer attaches to it.
    virtual void on_buffer(BufferIndex buffer) = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RINGS_OBSERVER_H_
