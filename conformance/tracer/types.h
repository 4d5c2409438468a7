// SPDX-License-Identifier: MIT
//
// The plain types of the tracer's interface: served buffers, their mappings in the testee, and the
// arguments and the answer of kmes_attach. No behaviour; knows no events, cases or oracle.

#ifndef CONFORMANCE_TRACER_TYPES_H_
#define CONFORMANCE_TRACER_TYPES_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kmes::conformance {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// The bytes of a page of memory (E22), and of the metadata page of form A (5.1.5).
inline constexpr uint64_t kPageBytes = 4096;
// Offset of the futex word in the mapping: 5.1.6.3.
inline constexpr uint64_t kFutexWordOffset = 128;
// The system call `kmes_attach` (event-model.md, "Calls").
inline constexpr long kAttachCallNumber = 1091;

// Index of a buffer passed to Tracer::add_buffer, from 0 in the order of the calls.
using BufferId = size_t;
// Index of one mapping of a buffer in the testee; never re-used within a run.
using MappingId = size_t;

// A buffer of the runner as the testee gets it. The tracer duplicates the descriptors, so the
// caller may close both after add_buffer.
struct ServedBuffer {
    // A memfd at least as long as the mapping; only its first `metadata_bytes` are used. The
    // testee's fd refers to it, so no other buffer may share its inode (E19).
    int metadata_fd = -1;
    // A memfd of `capacity_bytes` with the data. It is mapped twice after the metadata page,
    // read-only.
    int data_fd = -1;
    // A buffer of the kernel module: one mmap of metadata_fd gives all of 5.1.5, and data_fd is -1.
    bool is_kernel_buffer = false;
    // The distance of the two copies; a multiple of 4096. (The reported capacity may differ:
    // AttachAnswer.)
    uint64_t capacity_bytes = 0;
    // The length that the testee should map; 0: metadata_bytes + 2 * capacity_bytes. Differs for
    // buffers with a capacity that a consumer must refuse.
    uint64_t expected_mapping_bytes = 0;
    // Offset of the data in the mapping. The testee may write only the last page before it.
    uint64_t metadata_bytes = kPageBytes;
    // Only a shared mmap of the whole length from offset 0 succeeds, as in the published forms B to
    // D; any other one is EINVAL. Has no effect after an attach has returned another capacity.
    bool takes_only_whole_mapping = false;
};

// The arguments of one `kmes_attach` call.
struct AttachRequest {
    pid_t pid = 0;
    pid_t tid = 0;
    uint32_t call_index = 0;                     // 0 for the first call that this run has seen
    bool array_given = false;                    // `fds` was not NULL
    int32_t slots_requested = 0;                 // `*count` at the entry
    std::optional<uint32_t> cpu = std::nullopt;  // set if the call attaches one CPU
    bool asks_for_count = false;  // the call asks for the number of CPUs, and attaches none
};

// The forms of kmes_attach (docs/layouts.md). `(int *fds, int *count, u64 *capacity)` attaches all
// CPUs. `(u32 cpu_id, u64 *capacity)` returns the fd of one CPU. kOneCpuOrCount also permits
// kAskForCount as the CPU, which writes the number of slots to *capacity.
enum class AttachCall { kAllCpus, kOneCpu, kOneCpuOrCount };
inline constexpr uint32_t kAskForCount = 0xffffffff;

// A device of the kernel module that answers kmes_attach. The tracer makes the testee open it, join
// the instance (KMES_TEST_IOC_JOIN), and attach there (KMES_IOC_ATTACH, or KMES_IOC_ATTACH_CPU for
// one CPU).
struct AttachDevice {
    std::string path;
    uint32_t instance = 0;
};

// The runner's answer to kmes_attach. If `error` is 0, the testee gets the fds of `buffers` in this
// order, and `capacity_bytes` in `*capacity`. The tracer itself returns ERANGE if there are too few
// slots (`*count` is then the number needed), and EFAULT for a bad pointer. Any other `error`
// (EAGAIN, EPERM, EMFILE, ...) is returned and nothing is written.
struct AttachAnswer {
    int error = 0;
    std::vector<BufferId> buffers;
    uint64_t capacity_bytes = 0;
    // If set and `error` is 0: this device answers. Of the other fields only the number of
    // `buffers` counts, which is that of the CPUs. The tracer must know all its buffers
    // (add_buffer).
    std::optional<AttachDevice> device = std::nullopt;
};

using AttachHandler = std::function<AttachAnswer(const AttachRequest&)>;

// A write of the testee to its report file, before it happens.
struct ReportWrite {
    pid_t tid = 0;
    uint64_t bytes = 0;
    bool ends_line = false;  // its last byte is a newline
    std::string begin{};     // its first bytes, at most kBeginBytes

    static constexpr size_t kBeginBytes = 1024;
};

using ReportWriteHandler = std::function<void(const ReportWrite&)>;

// Called when a thread of the testee is stopped before a system call.
using CallHandler = std::function<void(pid_t tid, long number)>;

// An mmap as the testee asked for it.
struct MapRequest {
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    uint64_t protection = 0;
    uint64_t flags = 0;
    int fd = -1;
    uint64_t offset_bytes = 0;
};

// The arguments of an mmap that differ from the testee contract (item 2).
struct MapDeviation {
    bool address = false;     // not NULL, or MAP_FIXED
    bool length = false;      // not metadata + 2 * capacity
    bool protection = false;  // not PROT_READ | PROT_WRITE
    bool shared = false;      // not MAP_SHARED (MAP_SHARED_VALIDATE is the same thing)
    bool offset = false;      // not 0
    bool again = false;  // the testee has mapped this fd's buffer already (one mmap for each fd)

    bool any() const { return address || length || protection || shared || offset || again; }
};

// A mapping of a buffer in the testee.
struct Mapping {
    MappingId id = 0;
    BufferId buffer = 0;
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    // The offset of `address` in the buffer's layout; 0 unless the testee asked otherwise.
    uint64_t offset_bytes = 0;
    uint64_t protection = 0;
    bool shared = true;
};

// A place in a served buffer. `offset_bytes` counts from the metadata's first byte (5.1.5). So the
// data's first copy is at `metadata_bytes`, and its second is a capacity later.
struct BufferPlace {
    BufferId buffer = 0;
    MappingId mapping = 0;
    uint64_t offset_bytes = 0;
};

// The description of an instruction for people.
struct CodeText {
    std::string text;    // Zydis, Intel syntax; empty if it could not be read
    std::string module;  // the file that is mapped there, or a name like "[vdso]"; may be empty
    std::string symbol;  // "name+0x12" if the file has symbols; may be empty
    std::string source;  // "consumer.c:120" if it has debug information; may be empty
};

namespace tracing {
class CodeDetails;
class SnapshotUnwinder;
struct StackSnapshot;
}  // namespace tracing

// An instruction of the testee and its place.
struct CodePlace {
    uint64_t instruction_pointer = 0;
    uint32_t length_bytes = 0;   // of the instruction
    uint64_t module_offset = 0;  // offset in its file (or from the start of the region)

    // Computed at the first call, which may come after the end of the testee. Thread-safe.
    const CodeText& resolved() const;
    // For people: `mov byte ptr [rax], 1` at a.out+0x1234 (main+0x10, consumer.c:120).
    std::string describe() const;
    // As describe(), without the instruction.
    std::string where() const;

    // Shared by all CodePlaces of one instruction.
    std::shared_ptr<const tracing::CodeDetails> details;
};

// One memory access of an instruction into a served buffer.
struct BufferAccess {
    BufferPlace place;
    uint32_t size_bytes = 0;
    bool is_read = false;
    bool is_write = false;
    // In a GuardHit: the bytes before the access, at most the first 8.
    uint64_t value = 0;

    // Whether the access includes one of these bytes of the buffer's layout. An access of unknown
    // size includes its first byte.
    bool touches(uint64_t offset_bytes, uint64_t bytes = 1) const {
        return place.offset_bytes < offset_bytes + bytes &&
               offset_bytes < place.offset_bytes + (size_bytes == 0 ? 1 : size_bytes);
    }
};

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_TYPES_H_
