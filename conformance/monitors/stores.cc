// SPDX-License-Identifier: MIT
//
// The monitor of stores to a mapping (5.1.6.2, 5.1.6.3, contract).
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "conformance/monitors/monitors.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/layout.h"
#include "conformance/stage/data_names.h"
#include "conformance/stage/stage.h"
#include "conformance/tracer/calls.h"

namespace kmes::conformance {
namespace {

class StoreMonitor : public Monitor {
  public:
    explicit StoreMonitor(Stage& stage) : stage_(stage) {}

    // Accepts a plain store of 16 or 64 bits at need_wake: zeros over zero reserved bytes change
    // nothing in this version. (A masked store writes less than its operand.)
    void accesses(const GuardHit& hit) override {
        for (const BufferAccess& access : hit.accesses) {
            const bool is_odd = access.size_bytes == 2 || access.size_bytes == 8;
            if (!access.is_write || access.place.offset_bytes != kNeedWakeOffset || !is_odd ||
                !hit.code.told().text.starts_with("mov ") || std::exchange(has_stored_oddly_, true))
                continue;
            stage_.findings().blame(
                write_outside(cpu_at(access.place), access.place.offset_bytes, access.size_bytes,
                              hit.code.describe() + caller_text(hit.code, hit.stack)));
        }
    }

    void store_refused(const WriteFault& event) override {
        const BufferAccess& access = event.access;
        const std::uint64_t offset = access.place.offset_bytes;
        Finding finding =
            write_outside(cpu_at(access.place), offset, access.size_bytes,
                          event.code.describe() + caller_text(event.code, event.stack));
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
            if (std::optional<Finding> finding = rings.check_metadata(index)) return finding;
        }
        return std::nullopt;
    }

  private:
    std::uint32_t cpu_at(const BufferPlace& place) const {
        const auto buffer = stage_.buffers().buffer_at(place);
        return buffer ? stage_.rings().history().buffer(*buffer).cpu : 0;
    }

    Stage& stage_;
    bool has_stored_oddly_ = false;
};

}  // namespace

std::unique_ptr<Monitor> make_store_monitor(Stage& stage) {
    return std::make_unique<StoreMonitor>(stage);
}

}  // namespace kmes::conformance
