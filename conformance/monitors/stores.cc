// SPDX-License-Identifier: MIT
//
// The monitor of stores to a mapping (5.1.6.2, 5.1.6.3, contract).
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "conformance/monitors/monitors.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/metadata_check.h"
#include "conformance/stage/stage.h"
#include "conformance/tracer/calls.h"

namespace kmes::conformance {
namespace {

class StoreMonitor : public Monitor {
  public:
    explicit StoreMonitor(Stage& stage) : stage_(stage) {}

    // A store that changes nothing does not show in the bytes of the page, so the place of each
    // store that is seen is checked. Only a plain store is certain to write its whole operand: a
    // masked one may write less, and a locked instruction may be a load.
    void accesses(const GuardHit& hit) override {
        for (const BufferAccess& access : hit.accesses) {
            const std::uint64_t offset = access.place.offset_bytes;
            // The data cannot be written: store_refused.
            if (!access.is_write || offset >= kMetadataBytes ||
                is_permitted_store(offset, access.size_bytes) ||
                !hit.code.resolved().text.starts_with("mov ") || blamed_offset_)
                continue;
            blamed_offset_ = offset;
            stage_.findings().blame(write_outside(cpu_at(access.place), offset, access.size_bytes,
                                                  instruction_text(hit.code, hit.stack)));
        }
    }

    void store_refused(const WriteFault& event) override {
        const BufferAccess& access = event.access;
        const std::uint64_t offset = access.place.offset_bytes;
        // In forms B to D a store to the first page is seen before it is refused.
        if (blamed_offset_ == offset) return;
        Finding finding = write_outside(cpu_at(access.place), offset, access.size_bytes,
                                        instruction_text(event.code, event.stack));
        constexpr std::string_view kUnnamed = "(data)";
        const std::size_t at = finding.message.find(kUnnamed);
        const auto buffer = stage_.buffers().buffer_at(access.place);
        if (buffer && offset >= kMetadataBytes && at != std::string::npos)
            finding.message.replace(
                at, kUnnamed.size(),
                fmt::format("({})", name_of_bytes(stage_.rings().history(), *buffer, offset,
                                                  access.size_bytes)));
        stage_.findings().blame(std::move(finding));
    }

    // Checks the bytes of the metadata pages, because accesses to them are usually not stopped.
    std::optional<Finding> fault() const override {
        const Rings& rings = stage_.rings();
        for (BufferIndex index = 0; index < rings.backend().buffers(); ++index) {
            if (std::optional<Finding> finding = check_metadata(rings, index)) return finding;
        }
        return std::nullopt;
    }

  private:
    std::uint32_t cpu_at(const BufferPlace& place) const {
        const auto buffer = stage_.buffers().buffer_at(place);
        return buffer ? stage_.rings().history().buffer(*buffer).cpu : 0;
    }

    Stage& stage_;
    std::optional<std::uint64_t> blamed_offset_;  // of a store that accesses() has seen
};

}  // namespace

std::unique_ptr<Monitor> make_store_monitor(Stage& stage) {
    return std::make_unique<StoreMonitor>(stage);
}

}  // namespace kmes::conformance
