// SPDX-License-Identifier: MIT
//
// Which place in a program a person wants to see for an instruction: not that of a library or of a
// mere accessor, but that of its caller. Knows no events and no buffers.

#ifndef CONFORMANCE_TRACER_CALLS_H_
#define CONFORMANCE_TRACER_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// A function on the way to an instruction, and the place in it.
struct CodeFrame {
    std::string function;  // "drain"; empty: not known
    std::string place;     // "ring.cc:110"; without debug information "drain+0x12" or "a.out+0x12"
    std::string id;        // equal for two frames at the same place in the source
    bool has_source = false;   // place is a line
    bool is_library = false;   // of a system library, a system header, a compiler's library
    bool is_short = false;     // its own lines are at most ten
    bool takes_place = false;  // it takes a pointer to a number, to an atomic or to bytes, and no
                               // pointer to another object
};

// Finds the frames of instructions. It keeps files open, and may outlive the program.
class CallReader {
  public:
    CallReader();
    ~CallReader();
    CallReader(const CallReader&) = delete;
    CallReader& operator=(const CallReader&) = delete;

    // The innermost first. Without a stack there are no callers but those by inlining. Callers are
    // left out after a function that no rule takes for an accessor. Never empty.
    std::vector<CodeFrame> frames(const CodePlace& code,
                                  const std::shared_ptr<const tracing::StackSnapshot>& stack);

  private:
    std::unique_ptr<tracing::SnapshotUnwinder> unwinder_;
};

// The frame that the author of the program wants to see: the first of no library and no accessor.
// An accessor is a short function that takes the place of its access from its caller: it takes a
// pointer to it, or `is_of_several_places` is true for the frame's id. If there is no such frame,
// the first of no library.
std::size_t authors_frame(const std::vector<CodeFrame>& frames,
                          const std::function<bool(const std::string& id)>& is_of_several_places);

// "drain() ring.cc:110 (via load)"; without debug information the place alone.
std::string frame_text(const std::vector<CodeFrame>& frames, std::size_t index);

// For the end of a sentence about one instruction: ", for drain() ring.cc:110 (via load)"; empty
// where the instruction is at the place that the author wants to see.
std::string caller_text(const CodePlace& code,
                        const std::shared_ptr<const tracing::StackSnapshot>& stack);

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_CALLS_H_
