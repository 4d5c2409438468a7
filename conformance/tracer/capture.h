// SPDX-License-Identifier: MIT
//
// Anonymous files that take what a testee writes: they never block it, and what has been read gives
// its memory back. Knows no processes.

#ifndef CONFORMANCE_TRACER_CAPTURE_H_
#define CONFORMANCE_TRACER_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {

// One file. Throws std::system_error where it cannot be made.
class CaptureFile {
  public:
    explicit CaptureFile(const char* name);
    ~CaptureFile();
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;

    // A new descriptor of the file with O_APPEND and close-on-exec set, at least 10, for the child
    // to dup from. The caller closes it.
    int open_for_append() const;
    bool is(const FileIdentity& identity) const;
    // Bytes written and not read yet.
    uint64_t unread_bytes() const;
    // The first of them, up to `limit_bytes`; their memory is freed.
    std::string read_new(uint64_t limit_bytes = UINT64_MAX);
    // Passes over the first of them; their memory is freed.
    void skip_new(uint64_t bytes);

  private:
    void free_what_is_read();

    int fd_ = -1;
    uint64_t read_up_to_ = 0;
    uint64_t freed_up_to_ = 0;
};

// The first and the last bytes of a stream, the middle counted only.
class BoundedText {
  public:
    explicit BoundedText(size_t limit_bytes) : half_bytes_(limit_bytes / 2) {}
    // All that is new in the file. What is not kept is not read either: a testee may write faster
    // than anybody reads.
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
