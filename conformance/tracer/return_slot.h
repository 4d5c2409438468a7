// SPDX-License-Identifier: MIT
//
// Finds the place of a function's return address on its stack from the function's code alone. For
// code without unwind tables, such as assembly. Every byte of code is untrusted, so all work is
// bounded. Knows no files and no processes.

#ifndef CONFORMANCE_TRACER_RETURN_SLOT_H_
#define CONFORMANCE_TRACER_RETURN_SLOT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace kmes::conformance::tracing {

// Copies code at an address, at most `most` bytes. Returns how many bytes are there.
using ReadCode = std::function<size_t(uint64_t address, uint8_t* to, size_t most)>;

// A call instruction that ends at a return address.
struct CallBefore {
    std::optional<uint64_t> target;  // nothing: the call is indirect
};
// Returns nothing if no call instruction ends there.
std::optional<CallBefore> call_before(uint64_t return_address, const ReadCode& read);

// Whether the code at this address only jumps elsewhere, as in a procedure linkage table.
bool is_jump(uint64_t address, const ReadCode& read);

// Places on the stack of a function before one of its instructions.
struct ReturnSlot {
    bool is_from_rbp = false;   // the base of `offset_bytes`: rbp, or rsp
    uint64_t offset_bytes = 0;  // from the base up to the return address
    // From the saved rbp of the caller up to the return address; 0: rbp still has that value.
    uint64_t saved_rbp_bytes = 0;
};

// Follows code from the entry of a function and counts what it pushes.
class ReturnSlotFinder {
  public:
    explicit ReturnSlotFinder(ReadCode read) : read_(std::move(read)) {}
    // `address` is in the instruction that is about to run, or in the call that has not returned.
    // Returns nothing if the code between the two addresses does not determine it.
    std::optional<ReturnSlot> find(uint64_t entry, uint64_t address);

  private:
    std::optional<ReturnSlot> follow(uint64_t entry, uint64_t address);

    // The limit for one program: enough for some thousand places.
    static constexpr uint64_t kMostInstructions = 2'000'000;
    ReadCode read_;
    uint64_t left_ = kMostInstructions;
    std::map<std::pair<uint64_t, uint64_t>, std::optional<ReturnSlot>> known_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_RETURN_SLOT_H_
