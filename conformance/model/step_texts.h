// SPDX-License-Identifier: MIT
//
// Parts of texts in steps and messages that other code searches for.
#ifndef KMES_CONFORMANCE_MODEL_STEP_TEXTS_H_
#define KMES_CONFORMANCE_MODEL_STEP_TEXTS_H_

#include <string_view>

namespace kmes::conformance {

// In a step of the timeline: the consumer reads at the offset that another capacity would give. The
// number of that capacity follows.
inline constexpr std::string_view kStaleCapacity = " is where it would be with the capacity of ";

// In a message: the cause that the trace shows follows.
inline constexpr std::string_view kTheCause = "; the cause: the consumer ";

// In a message: what shows the fault follows. Addresses and threads in it differ from run to run.
inline constexpr std::string_view kEvidence = ". Evidence: ";

// In a message: the consumer spins. The processor time comes before it.
inline constexpr std::string_view kSpins = " of processor time without a record or a sleep";

// A step of the timeline: the suite records the accesses of a consumer that spins. Before it, the
// timeline may have none.
inline constexpr std::string_view kLoopRecorded =
    "the consumer spins: from here on the suite records its accesses";

// In a message: the consumer keeps what kmes_attach has returned, or what mmap has, after a swap.
// The name of a file is that of kmes/user/memory.cc.
inline constexpr std::string_view kOpenDescriptors = "open fds of buffers";
inline constexpr std::string_view kFilesOfBuffers = " more on /memfd:kmes-";
inline constexpr std::string_view kMappingsOfBuffers = "mappings of buffers";

// In a step of the timeline: kmes_attach returns descriptors. Their number follows.
inline constexpr std::string_view kAttachGets = "kmes_attach: gets ";

// The reason for the mark on the last step if no step decides the verdict.
inline constexpr std::string_view kWholeRunDecides =
    "The verdict is about the whole run, and no single step decides it.";

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_STEP_TEXTS_H_
