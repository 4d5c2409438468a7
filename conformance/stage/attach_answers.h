// SPDX-License-Identifier: MIT
//
// What kmes_attach answers: the current buffers of the rings, or what the case says instead.
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

    // Answers of the first attach calls: errors, in this order.
    void set_errors(std::vector<int> errors) { errors_.assign(errors.begin(), errors.end()); }
    // What *capacity says instead of the truth. Throws Stop where the module answers.
    void set_reported_capacity(std::uint64_t bytes);
    bool reports_other_capacity() const { return reported_capacity_bytes_.has_value(); }
    // See Tracer::set_least_fd. Throws Stop where the module answers.
    void set_least_fd(int fd);
    int least_fd() const { return least_fd_; }

    // The answer to one call.
    AttachAnswer next(const Rings& rings);
    // How the tracer serves this buffer.
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
