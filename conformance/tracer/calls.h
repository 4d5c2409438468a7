// SPDX-License-Identifier: MIT
//
// Chooses the place in a program that a person wants to see for an instruction. If the instruction
// is in a library or in a mere accessor, that is the place of the call. Knows no events and no
// buffers.

#ifndef CONFORMANCE_TRACER_CALLS_H_
#define CONFORMANCE_TRACER_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// A function in the chain of callers, and the place in it.
struct CodeFrame {
    std::string function;  // "drain"; empty: not known
    std::string place;     // "ring.cc:110"; without debug information "drain+0x12" or "a.out+0x12"
    std::string id;        // equal for two frames at the same place in the source
    std::string body;      // equal for two frames in the same function of the source; may be empty
    bool has_source = false;   // place is a line
    bool is_library = false;   // of a system library, a system header, a compiler's library
    bool is_short = false;     // its own lines are at most ten
    bool is_thin = false;      // its own lines are at most six
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

    // Returns the frames of an instruction, innermost first; never empty. Without a stack, only
    // inlined callers are known. Callers are left out after a function that cannot be an accessor.
    std::vector<CodeFrame> frames(const CodePlace& code,
                                  const std::shared_ptr<const tracing::StackSnapshot>& stack);

  private:
    std::unique_ptr<tracing::SnapshotUnwinder> unwinder_;
};

// Chooses the frame that the author of the program wants to see, from the accesses of a run. It is
// the first one outside of libraries that is no accessor, or else the first outside of libraries.
class AuthorsFrames {
  public:
    // Adds an access. `field` names the accessed field, or is empty.
    void add_access(const std::vector<CodeFrame>& frames, const std::string& field);

    // Returns the index for an access. An accessor is a short function whose caller says what to
    // access: it takes a pointer, or its line accesses several fields.
    std::size_t of_access(const std::vector<CodeFrame>& frames) const;
    // Returns the index for a system call. The function that makes the call is also an accessor if
    // it is thin and accesses no buffer: it wraps the call.
    std::size_t of_call(const std::vector<CodeFrame>& frames) const;

  private:
    std::size_t index_of(const std::vector<CodeFrame>& frames, bool is_call) const;

    std::map<std::string, std::set<std::string>> fields_of_;  // key: the id of a frame
    std::set<std::string> bodies_;                            // the functions that access a buffer
};

// Returns "drain() ring.cc:110 (via load)"; without debug information the place alone.
std::string frame_text(const std::vector<CodeFrame>& frames, std::size_t index);

// Returns the end of a sentence about one instruction: ", for drain() ring.cc:110 (via load)".
// Empty if the instruction is at the place that the author wants to see.
std::string caller_text(const CodePlace& code,
                        const std::shared_ptr<const tracing::StackSnapshot>& stack);

// Returns the instruction, and then its caller_text.
std::string instruction_text(const CodePlace& code,
                             const std::shared_ptr<const tracing::StackSnapshot>& stack);

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_CALLS_H_
