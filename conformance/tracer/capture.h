// SPDX-License-Identifier: MIT
//
// Anonymous files that capture what a testee writes. They never block the testee, and free the
// memory of what has been read. Knows no processes.

#ifndef CONFORMANCE_TRACER_CAPTURE_H_
#define CONFORMANCE_TRACER_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {

// One file. The constructor throws std::system_error if it cannot be created.
class CaptureFile {
  public:
    // So many bytes are read without asking for the size of the file, which is one more call.
    static constexpr uint64_t kFewBytes = 4096;

    explicit CaptureFile(const char* name);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;

    // Returns a new descriptor of the file with O_APPEND and close-on-exec set, at least 10, for
    // the child to dup. The caller closes it.
    int open_for_append() const;
    bool is(const FileIdentity& identity) const;
    // Bytes written and not yet read.
    uint64_t unread_bytes() const;
    // Returns the oldest unread bytes, up to `limit_bytes`, and frees their memory.
    std::string read_new(uint64_t limit_bytes = UINT64_MAX);
    // Skips the oldest unread bytes, and frees their memory.
    void skip_new(uint64_t bytes);

  private:
    void free_what_is_read();

    int fd_ = -1;
    uint64_t read_up_to_ = 0;
    uint64_t freed_up_to_ = 0;
};

// The first and the last bytes of a stream, and the length of the middle.
class BoundedText {
  public:
    explicit BoundedText(size_t limit_bytes) : half_bytes_(limit_bytes / 2) {}
    // Takes all new bytes of the file. Skips the bytes that it would drop, without reading them: a
    // testee may write faster than the runner reads.
    void take(CaptureFile& file);
    std::string text() const;

  private:
    void append(const std::string& text);

    size_t half_bytes_;
    std::string first_;
    std::string last_;
    uint64_t left_out_bytes_ = 0;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_CAPTURE_H_
