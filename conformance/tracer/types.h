// SPDX-License-Identifier: MIT
//
// The plain types of the tracer's interface: buffers that the runner serves, where they are mapped
// in the testee, and the attach question with its answer. No behaviour; knows no events, cases or
// oracle.

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

// Index of a buffer that was handed to Tracer::add_buffer, counted from 0 in the order of the
// calls.
using BufferId = size_t;
// Index of one mapping of a buffer in the testee; never re-used within a run.
using MappingId = size_t;

// A buffer of the runner as the testee gets it. The tracer keeps descriptors of its own, so both
// may be closed after add_buffer.
struct ServedBuffer {
    // A memfd of at least the mapping's length of which only the first `metadata_bytes` are used.
    // It is what the testee's fd refers to, so its inode must not be shared with another buffer
    // (E19).
    int metadata_fd = -1;
    // A memfd of `capacity_bytes`: the data. It is placed twice behind the metadata page,
    // read-only.
    int data_fd = -1;
    // A buffer of the kernel module: one mmap of metadata_fd gives all of 5.1.5; data_fd is none.
    bool is_kernel_buffer = false;
    // The distance of the two copies; a multiple of 4096. (What attach reports may differ:
    // AttachAnswer.)
    uint64_t capacity_bytes = 0;
    // The length that the testee is expected to map; 0: metadata_bytes + 2 * capacity_bytes. For
    // buffers with a capacity that must be refused.
    uint64_t expected_mapping_bytes = 0;
    // Where the data begins in the mapping. The testee may write only the last page before it.
    uint64_t metadata_bytes = kPageBytes;
};

// What a testee asked in a `kmes_attach` call.
struct AttachRequest {
    pid_t pid = 0;
    pid_t tid = 0;
    uint32_t call_index = 0;                     // 0 for the first call that this run has seen
    bool array_given = false;                    // `fds` was not NULL
    int32_t slots_requested = 0;                 // `*count` on entry, as it stood there
    std::optional<uint32_t> cpu = std::nullopt;  // the CPU, where a call attaches one
    bool asks_for_count = false;                 // of CPUs, and attaches none
};

// The arguments of kmes_attach (docs/layouts.md): `(int *fds, int *count, u64 *capacity)` gives all
// CPUs; `(u32 cpu_id, u64 *capacity)` returns the fd of one, and with kAskForCount can write the
// number of slots to *capacity.
enum class AttachCall { kAllCpus, kOneCpu, kOneCpuOrCount };
inline constexpr uint32_t kAskForCount = 0xffffffff;

// A device of the kernel module that answers kmes_attach: the testee is made to open it, to join
// the world (KMES_TEST_IOC_JOIN), and to ask there (KMES_IOC_ATTACH).
struct AttachDevice {
    std::string path;
    uint32_t world = 0;
};

// What the runner answers. `error` 0: the fds of `buffers` in this order and `capacity_bytes` in
// `*capacity`. The tracer itself turns that into ERANGE when there are too few slots (with `*count`
// = the number needed) and into EFAULT when a pointer is bad. Any other `error` (EAGAIN, EPERM,
// EMFILE, ...) is returned and nothing is written.
struct AttachAnswer {
    int error = 0;
    std::vector<BufferId> buffers;
    uint64_t capacity_bytes = 0;
    // Where `error` is 0: the answer is this one's, and nothing of the above counts. Its buffers
    // must all be known to the tracer (add_buffer).
    std::optional<AttachDevice> device = std::nullopt;
};

using AttachHandler = std::function<AttachAnswer(const AttachRequest&)>;

// A write of the testee to its report file, before it is done.
struct ReportWrite {
    pid_t tid = 0;
    uint64_t bytes = 0;
    bool ends_line = false;  // its last byte is a newline
    std::string begin{};     // its first bytes, at most kBeginBytes

    static constexpr size_t kBeginBytes = 1024;
};

using ReportWriteHandler = std::function<void(const ReportWrite&)>;

// A thread of the testee stands before a system call.
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

// Where the request differs from what the testee contract (item 2) demands.
struct MapDeviation {
    bool address = false;     // not NULL, or MAP_FIXED
    bool length = false;      // not metadata + 2 * capacity
    bool protection = false;  // not PROT_READ | PROT_WRITE
    bool shared = false;      // not MAP_SHARED (MAP_SHARED_VALIDATE is the same thing)
    bool offset = false;      // not 0
    bool again = false;       // this fd's buffer is mapped already (one mmap for each fd)

    bool any() const { return address || length || protection || shared || offset || again; }
};

// A buffer at a place in the testee's memory.
struct Mapping {
    MappingId id = 0;
    BufferId buffer = 0;
    uint64_t address = 0;
    uint64_t length_bytes = 0;
    uint64_t offset_bytes =
        0;  // of `address` in the buffer's layout; 0 unless the testee asked otherwise
    uint64_t protection = 0;
    bool shared = true;
};

// A place in a served buffer: `offset_bytes` counts from the metadata's first byte (5.1.5), so the
// data's first copy is at `metadata_bytes`, and its second is a capacity later.
struct BufferPlace {
    BufferId buffer = 0;
    MappingId mapping = 0;
    uint64_t offset_bytes = 0;
};

// An instruction of the testee as people want it told.
struct CodeText {
    std::string text;    // Zydis, Intel syntax; empty if it could not be read
    std::string module;  // the file that is mapped there, or a name like "[vdso]"; may be empty
    std::string symbol;  // "name+0x12" where the file has symbols; may be empty
    std::string source;  // "consumer.c:120" where it has debug information; may be empty
};

namespace tracing {
class CodeDetails;
class SnapshotUnwinder;
struct StackSnapshot;
}  // namespace tracing

// An instruction of the testee and where it is.
struct CodePlace {
    uint64_t instruction_pointer = 0;
    uint32_t length_bytes = 0;   // of the instruction
    uint64_t module_offset = 0;  // offset in its file (or from the start of the region)

    // Looked up at the first call, which may come when the testee is gone; from any thread.
    const CodeText& told() const;
    // For people: `mov byte ptr [rax], 1` at a.out+0x1234 (main+0x10, consumer.c:120).
    std::string describe() const;
    // The same without the instruction.
    std::string where() const;

    // Shared by all that stand at the same instruction.
    std::shared_ptr<const tracing::CodeDetails> details;
};

// One memory access of an instruction into a served buffer.
struct BufferAccess {
    BufferPlace place;
    uint32_t size_bytes = 0;
    bool is_read = false;
    bool is_write = false;
    // In a GuardHit: what stands there before the access, its first 8 bytes at most.
    uint64_t value = 0;

    // One of these bytes of the buffer's layout is part of it. (Of an access of unknown size the
    // first is.)
    bool touches(uint64_t offset_bytes, uint64_t bytes = 1) const {
        return place.offset_bytes < offset_bytes + bytes &&
               offset_bytes < place.offset_bytes + (size_bytes == 0 ? 1 : size_bytes);
    }
};

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_TYPES_H_
