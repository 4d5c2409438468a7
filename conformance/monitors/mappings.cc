// SPDX-License-Identifier: MIT
//
// The monitor of mmap (contract-2).
#include <fmt/format.h>
#include <sys/mman.h>

#include "conformance/monitors/monitors.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {
namespace {

class MappingMonitor : public Monitor {
  public:
    explicit MappingMonitor(Stage& stage) : stage_(stage) {}

    void mapped(const Mapped& event) override {
        const auto index = stage_.buffers().buffer_at({.buffer = event.buffer});
        if (!index || stage_.attach_answers().reports_other_capacity()) return;
        // A consumer that tries another form first sees EINVAL, as from the kernel.
        if (event.is_refused) return;
        const Buffer& buffer = stage_.rings().history().buffer(*index);
        const auto blame = [&](const std::string& what) {
            stage_.findings().blame(wrong_mapping(buffer.cpu, what));
        };
        const MapDeviation& deviation = event.deviation;
        const MapRequest& request = event.request;
        if (deviation.length)
            blame(fmt::format("length {}; expected {} + 2 x capacity, {}", request.length_bytes,
                              kMetadataBytes, kMetadataBytes + 2 * buffer.capacity));
        if (deviation.shared) blame(fmt::format("flags {:#x}; expected MAP_SHARED", request.flags));
        if (deviation.protection)
            blame(fmt::format("protection {:#x}; expected PROT_READ | PROT_WRITE, {:#x}",
                              request.protection, PROT_READ | PROT_WRITE));
        if (deviation.offset) blame(fmt::format("offset {}; expected 0", request.offset_bytes));
    }

  private:
    Stage& stage_;
};

}  // namespace

std::unique_ptr<Monitor> make_mapping_monitor(Stage& stage) {
    return std::make_unique<MappingMonitor>(stage);
}

}  // namespace kmes::conformance
