// SPDX-License-Identifier: MIT
//
// See attach_answers.h.
#include "conformance/stage/attach_answers.h"

#include "conformance/model/layout.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/stop.h"

namespace kmes::conformance {

void AttachAnswers::set_reported_capacity(std::uint64_t bytes) {
    if (!settings_.device.empty())
        stop_unsupported("the module says the capacity that its buffers have, and maps no other");
    reported_capacity_bytes_ = bytes;
}

void AttachAnswers::set_least_fd(int fd) {
    if (!settings_.device.empty()) stop_unsupported("the module takes the lowest fd that is free");
    least_fd_ = fd;
}

AttachAnswer AttachAnswers::next(const Rings& rings) {
    AttachAnswer answer;
    if (!errors_.empty()) {
        answer.error = errors_.front();
        errors_.pop_front();
        return answer;
    }
    answer.device = rings.backend().attach_device();
    if (answer.device) {
        answer.buffers.resize(rings.cpus());
        return answer;
    }
    const History& history = rings.history();
    for (std::uint32_t cpu = 0; cpu < rings.cpus(); ++cpu) {
        const BufferIndex index = history.current_buffer(cpu);
        if (history.buffer(index).boot) return AttachAnswer{layout().error_before_rings, {}, 0};
        answer.buffers.push_back(buffers_.id_of(index));
    }
    answer.capacity_bytes = reported_capacity_bytes_.value_or(rings.capacity_bytes());
    return answer;
}

ServedBuffer AttachAnswers::served(const Rings& rings, BufferIndex buffer) const {
    ServedBuffer served = rings.backend().served(buffer);
    if (reported_capacity_bytes_)
        served.expected_mapping_bytes = kMetadataBytes + 2 * *reported_capacity_bytes_;
    return served;
}

}  // namespace kmes::conformance
