// SPDX-License-Identifier: MIT
//
// The answers to kmes_attach: the current buffers of the rings, or an error or a capacity that the
// case sets.
#ifndef KMES_CONFORMANCE_STAGE_ATTACH_ANSWERS_H_
#define KMES_CONFORMANCE_STAGE_ATTACH_ANSWERS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "conformance/model/settings.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class AttachAnswers {
  public:
    AttachAnswers(const StageSettings& settings, const ServedBuffers& buffers)
        : settings_(settings), buffers_(buffers) {}

    // Sets the errors that the first attach calls return, in this order.
    void set_errors(std::vector<int> errors) { errors_.assign(errors.begin(), errors.end()); }
    // Sets the value, in bytes, that kmes_attach stores in *capacity instead of the true one.
    // Throws Stop if the module answers kmes_attach.
    void set_reported_capacity(std::uint64_t bytes);
    bool reports_other_capacity() const { return reported_capacity_bytes_.has_value(); }
    // Sets the lowest descriptor of the answer: see Tracer::set_attach_call. Throws Stop if the
    // module answers kmes_attach.
    void set_least_fd(int fd);
    int least_fd() const { return least_fd_; }

    // Returns the answer to the next call.
    AttachAnswer next(const Rings& rings);
    // Returns how the tracer serves this buffer.
    ServedBuffer served(const Rings& rings, BufferIndex buffer) const;

  private:
    const StageSettings& settings_;
    const ServedBuffers& buffers_;
    std::deque<int> errors_;
    std::optional<std::uint64_t> reported_capacity_bytes_;
    int least_fd_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ATTACH_ANSWERS_H_
