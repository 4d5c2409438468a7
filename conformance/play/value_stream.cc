// SPDX-License-Identifier: MIT
//
// See value_stream.h.
#include "conformance/play/value_stream.h"

#include <cstddef>
#include <utility>

#include "conformance/model/layout.h"
#include "conformance/oracle/event.h"
#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

void put_identities(Stage& stage, std::uint32_t cpu, const Emitted& emitted) {
    constexpr std::uint64_t kIdentityBytes = 16;
    std::vector<std::uint8_t> bytes(layout().identities * kIdentityBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(0xff - emitted.sequence * 7 - i);
    stage.rings().forged().write_data(stage.rings().history().current_buffer(cpu),
                                      emitted.position + layout().identities_offset, bytes);
}

}  // namespace

void EmitEvent::operator()(Stage& stage, std::uint32_t cpu) const {
    const std::uint64_t header = kHeaderBytesBeforeType + type.size() + extra_header_bytes;
    EventSpec spec = stage.rings().events().make(header + (payload ? 0 : payload_bytes), type,
                                                 extra_header_bytes);
    if (payload) {
        spec.payload = *payload;
        spec.payload_seed = std::nullopt;
    }
    spec.origin = origin;
    spec.timestamp = timestamp;
    const Emitted emitted = stage.rings().emit(cpu, std::move(spec));
    if (has_own_identities && layout().identities != 0) put_identities(stage, cpu, emitted);
}

void EmitTypes::operator()(Stage& stage, std::uint32_t cpu) const {
    for (const std::string& type : types()) EmitEvent{.type = type}(stage, cpu);
}

void EmitSizes::operator()(Stage& stage) const {
    std::uint64_t out = 0;
    std::uint32_t cpu = 0;
    for (const std::uint64_t bytes : sizes(stage.capacity_bytes())) {
        if (out + bytes > stage.capacity_bytes() / 2) {
            stage.waits().delivered();
            out = 0;
        }
        emit_some(stage, cpu, 1, bytes);
        out += bytes;
        cpu = (cpu + 1) % stage.cpus();
    }
}

std::vector<std::uint64_t> around_powers_of_two(std::uint64_t least, std::uint64_t most) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t power = 1; power <= most; power *= 2) {
        for (const std::uint64_t size : {power - 1, power, power + 1}) {
            const bool is_new = sizes.empty() || size > sizes.back();
            if (size >= least && size <= most && is_new) sizes.push_back(size);
        }
    }
    return sizes;
}

std::string image_of_event(std::uint64_t bytes, std::uint64_t sequence) {
    EventSpec spec;
    spec.type = "t";
    spec.payload.assign(bytes - kLeastEventBytes, 'i');
    return encode_event(spec, sequence, 0);
}

}  // namespace kmes::conformance
