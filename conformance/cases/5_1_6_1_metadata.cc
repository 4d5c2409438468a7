// SPDX-License-Identifier: MIT
//
// Buffers that a consumer must refuse, and a valid buffer that it must not refuse (5.1.3, 5.1.6.1,
// E14; contract, record R).
#include <fmt/format.h>

#include <functional>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

using enum Level;

// -- One malformed buffer of CPU 0 -----------------------------------------------------------

// Returns a field of a page for rings of this capacity.
using FieldOf = std::function<ForgedField(std::uint64_t capacity)>;

FieldOf magic(std::uint64_t at, std::uint8_t byte, std::string_view text) {
    return [=](std::uint64_t) {
        return ForgedField{BufferFault::magic, at, {byte}, fmt::format("magic {}", text)};
    };
}

FieldOf version(std::uint32_t version) {
    return [=](std::uint64_t) {
        return ForgedField{BufferFault::version, 8, bytes_of(version),
                           fmt::format("version {}", version)};
    };
}

ForgedField says_capacity(std::uint64_t bytes) {
    return {BufferFault::capacity, 16, bytes_of(bytes), fmt::format("capacity {}", bytes)};
}

// `factor` times the capacity, plus `more` bytes.
FieldOf capacity_times(double factor, std::uint64_t more = 0) {
    return [=](std::uint64_t capacity) {
        return says_capacity(static_cast<std::uint64_t>(factor * static_cast<double>(capacity)) +
                             more);
    };
}

CaseOutcome play_first(Stage& stage, const ForgedField& field) {
    emit_everywhere(stage, 3, 100);
    break_field(stage, 0, field);
    stage.start();
    stage.waits().mapped();
    for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
        stage.waits().delivered(cpu);
        emit_some(stage, cpu, 3, 100);
        stage.waits().delivered(cpu);
    }
    if (must_refuse(field.fault))
        wait_refused(stage, 0, field.what);
    else
        stage.waits().delivered(0);
    return stage.finish();
}

// The buffer after it is valid, but the consumer has left CPU 0 for good.
CaseOutcome play_later(Stage& stage, const ForgedField& field, int sound_changes) {
    stage.start();
    stage.wait_asleep();
    for (int i = 0; i < sound_changes; ++i) {
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
    }
    stage.holding().freeze();
    stage.resize(stage.capacity_bytes());
    break_field(stage, 0, field);
    stage.holding().thaw();
    wait_refused(stage, 0, field.what);
    for (const bool is_sound_again : {false, true}) {
        if (is_sound_again) {
            stage.resize(stage.capacity_bytes());
            emit_some(stage, 0, 1, 100);
        }
        for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
            emit_some(stage, cpu, 1, 100);
            stage.waits().delivered(cpu);
        }
    }
    return stage.finish();
}

struct Malformed {
    FieldOf field;
    int buffer = 0;  // of CPU 0: 0 is the first

    CaseOutcome operator()(Stage& stage) const {
        const ForgedField forged = field(stage.default_setup().capacity_bytes);
        return buffer == 0 ? play_first(stage, forged) : play_later(stage, forged, buffer - 1);
    }
};

// -- Several malformed buffers ---------------------------------------------------------------

// The data_offset of another form of the layout.
const std::uint64_t kOtherDataOffset = of_layout({8192, 4096, 4096, 4096});

// A data_offset whose low half is correct, on the last CPU.
CaseOutcome other_data_offsets(Stage& stage) {
    const std::uint64_t kBeyond32Bits = (std::uint64_t{1} << 32) + kMetadataBytes;
    const std::uint32_t last = stage.cpus() - 1;
    emit_everywhere(stage, 3, 100);
    for (const auto& [cpu, offset] : {std::pair{0u, kOtherDataOffset}, {last, kBeyond32Bits}})
        break_field(stage, cpu,
                    {BufferFault::data_offset, 24, bytes_of(offset),
                     fmt::format("data_offset {}", offset)});
    stage.start();
    stage.waits().until(
        [=, &stage] { return stage.testee().has_refused(0) && stage.testee().has_refused(last); },
        "a refusal of the first and the last CPU (data_offset)");
    for (std::uint32_t cpu = 1; cpu < last; ++cpu) {
        emit_some(stage, cpu, 3, 100);
        stage.waits().delivered(cpu);
    }
    return stage.finish();
}

// A consumer that checks only the first buffer, or a set of them in too few bits, sees none of
// these faults. Each kind of fault is on its own CPU, one of them on the last.
CaseOutcome malformed_further_on(Stage& stage) {
    constexpr std::uint32_t kSound = 2;
    std::vector<ForgedField> fields;
    for (const FieldOf& each :
         {magic(7, 'H', "KMESRINH"), version(2), capacity_times(0.5), capacity_times(2)})
        fields.push_back(each(stage.default_setup().capacity_bytes));
    const auto cpus = static_cast<std::uint32_t>(kSound + fields.size());
    set_up_cpus(stage, cpus);
    emit_everywhere(stage, 3, 100);
    for (std::uint32_t cpu = kSound; cpu < cpus; ++cpu)
        break_field(stage, cpu, fields[cpu - kSound]);
    stage.start();
    for (std::uint32_t cpu = kSound; cpu < cpus; ++cpu)
        wait_refused(stage, cpu, fields[cpu - kSound].what);
    for (std::uint32_t cpu = 0; cpu < kSound; ++cpu) {
        emit_some(stage, cpu, 3, 100);
        stage.waits().delivered(cpu);
    }
    return stage.finish();
}

// Two refused CPUs, and the CPUs whose numbers are 32 higher and 32 lower.
CaseOutcome refused_among_forty(Stage& stage) {
    constexpr std::uint32_t kCpus = 40;
    const auto is_refused = [](std::uint32_t cpu) { return cpu == 0 || cpu == 33; };
    set_up_cpus(stage, kCpus);
    emit_everywhere(stage, 2, 100);
    for (const std::uint32_t cpu : {0u, 33u}) give_version_2(stage, cpu);
    stage.start();
    stage.waits().until(
        [&stage] { return stage.testee().has_refused(0) && stage.testee().has_refused(33); },
        "a refusal of CPUs 0 and 33 (version 2)");
    for (const bool is_changed : {false, true}) {
        if (is_changed) stage.resize(2 * stage.capacity_bytes());
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            if (!is_refused(cpu)) emit_some(stage, cpu, 2, 100);
        }
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            if (!is_refused(cpu)) stage.waits().delivered(cpu);
        }
    }
    return stage.finish();
}

// -- Every buffer, and kmes_attach -----------------------------------------------------------

void say_capacity(Stage& stage, std::uint64_t bytes, const std::string& what) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        break_field(stage, cpu, {BufferFault::capacity, 16, bytes_of(bytes), what});
    stage.attach_answers().set_reported_capacity(bytes);
}

// The consumer may refuse the answer of kmes_attach without mapping anything, and then exit in any
// way.
CaseOutcome no_power_of_two(Stage& stage) {
    const std::uint64_t says = stage.default_setup().capacity_bytes - 4096;
    emit_everywhere(stage, 2, 100);
    say_capacity(stage, says, fmt::format("capacity {0} where kmes_attach said {0}", says));
    stage.start();
    return stage.ending().finish_refused();
}

// As no_power_of_two, for the next buffers.
CaseOutcome next_no_power_of_two(Stage& stage) {
    const std::uint64_t says = stage.default_setup().capacity_bytes - 4096;
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    stage.holding().freeze();
    stage.resize(stage.capacity_bytes());
    say_capacity(stage, says, fmt::format("capacity {}", says));
    stage.holding().thaw();
    return stage.ending().finish_refused();
}

CaseOutcome reserved_bytes_set(Stage& stage) {
    const BufferIndex buffer = stage.rings().history().current_buffer(0);
    stage.rings().forged().write_metadata(buffer, 14, {{0xff, 0xff}});
    stage.rings().forged().write_metadata(buffer, 80, std::vector<std::uint8_t>(48, 0xff));
    stage.rings().forged().write_metadata(buffer, 136, std::vector<std::uint8_t>(56, 0xff));
    stage.rings().forged().write_metadata(buffer, kMetadataBytes - 96, {{0xff, 0xff}});
    return play_first(stage, {BufferFault::reserved_not_zero, 40,
                              std::vector<std::uint8_t>(24, 0xff), "reserved bytes"});
}

constexpr std::string_view kRefuses =
    "The consumer refuses the buffer with an R record, delivers nothing from it, and drains the "
    "other CPUs.";

}  // namespace

const std::vector<Case> kFirstBufferCases = {
    {"5.1.6.1/bad-magic-first-byte", must, "magic with a wrong first byte",
     "Set CPU 0's magic to \"XMESRING\".", kRefuses, Malformed{magic(0, 'X', "XMESRING")}},
    {"5.1.6.1/bad-magic-last-byte", must, "magic with a wrong last byte",
     "Set CPU 0's magic to \"KMESRINH\", so that only a comparison of all eight bytes finds it.",
     kRefuses, Malformed{magic(7, 'H', "KMESRINH")}},
    {"5.1.6.1/unknown-version", must, "version 2", "Set CPU 0's format version to 2.", kRefuses,
     Malformed{version(2)}},
    {"5.1.6.1/version-in-all-its-bytes", must, "version with low bytes of 1",
     "Set CPU 0's format version to 0x10001, so that only a comparison of all 32 bits finds it.",
     kRefuses, Malformed{version(0x10001)}},
    {"5.1.6.1/version-all-ones", must, "version 4294967295",
     "Set CPU 0's format version to 2^32 - 1, which is not a negative number.", kRefuses,
     Malformed{version(0xffffffff)}},
    {"5.1.6.1/version-zero", must, "version 0", "Set CPU 0's format version to 0.", kRefuses,
     Malformed{version(0)}},
    {"5.1.3/capacity-no-power-of-two", must, "capacity that is not a power of two",
     "Set CPU 0's capacity to 4096 more than a power of two.", kRefuses,
     Malformed{capacity_times(1, 4096)}},
    {"E14/capacity-larger-than-the-mapping", must, "capacity larger than the mapping",
     "Set CPU 0's capacity to twice the value that kmes_attach returned and that is mapped.",
     kRefuses, Malformed{capacity_times(2)}},
    {"E14/capacity-smaller-than-the-mapping", must, "capacity smaller than the mapping",
     "Set CPU 0's capacity to half the value that kmes_attach returned and that is mapped.",
     kRefuses, Malformed{capacity_times(0.5)}},
    {"5.1.3/capacity-zero", must, "capacity 0", "Set CPU 0's capacity to 0.", kRefuses,
     Malformed{capacity_times(0)}},
    {"5.1.6.1/reserved-bytes-set", must, "reserved bytes other than zero",
     "Set all reserved bytes of CPU 0's metadata and the end of its page, except those that a "
     "32-bit store to need_wake clears.",
     "The consumer ignores reserved bytes and drains the buffer.", reserved_bytes_set},
    {"5.1.6.1/other-data-offset", robust, in_layout("data_offset other than {}", kMetadataBytes),
     in_layout("Set CPU 0's data_offset to {}, and the last CPU's to 2^32 + {}.", kOtherDataOffset,
               kMetadataBytes),
     "The consumer refuses these buffers and drains the other CPUs.", other_data_offsets},
    {"5.1.6.1/faults-on-later-cpus", must, "malformed buffers after sound ones",
     "Serve six CPUs, of which the first two are sound. Give the others a wrong magic, version 2, "
     "half the capacity, and twice the capacity.",
     "The consumer refuses each of the four and drains the others.", malformed_further_on},
    {"5.1.6.1/two-refused-of-forty", must, "two refused CPUs of forty",
     "Give CPUs 0 and 33 of forty version 2. Emit events on all others, before and after a resize.",
     "The consumer drains every other CPU, including 1 and 32.", refused_among_forty},
    {"5.1.3/attach-says-no-power-of-two", must,
     "kmes_attach with a capacity that is not a power of two",
     "Report the same capacity in kmes_attach and in every buffer's metadata. It is not a power of "
     "two.",
     "The consumer refuses every buffer, or exits with a non-zero status. It delivers nothing.",
     no_power_of_two},
};

const std::vector<Case> kNextBufferCases = {
    {"5.1.3/a-later-attach-says-no-power-of-two", must,
     "a later kmes_attach with a capacity that is not a power of two",
     "Replace all buffers. Report the same capacity in kmes_attach and in their metadata. It is "
     "not a power of two.",
     "The consumer refuses every new buffer, or exits with a non-zero status. It delivers nothing "
     "from them.",
     next_no_power_of_two},
    {"5.1.6.1/version-of-the-next-buffer", must, "next buffer with version 2",
     "Replace CPU 0's buffer by one with format version 2.", kRefuses, Malformed{version(2), 1}},
    {"5.1.6.1/version-after-sound-buffers", must, "version 2 after five sound buffers",
     "Replace CPU 0's buffer five times by sound ones, then by one with format version 2.",
     kRefuses, Malformed{version(2), 6}},
    {"5.1.6.1/magic-of-the-next-buffer", must, "next buffer with a wrong magic",
     "Replace CPU 0's buffer by one with magic \"KMESRINH\".", kRefuses,
     Malformed{magic(7, 'H', "KMESRINH"), 1}},
    {"E14/capacity-of-the-next-buffer", must, "next buffer with a capacity larger than the mapping",
     "Replace CPU 0's buffer by one whose metadata has twice the capacity that is mapped.",
     kRefuses, Malformed{capacity_times(2), 1}},
    {"E14/smaller-capacity-of-the-next-buffer", must,
     "next buffer with a capacity smaller than the mapping",
     "Replace CPU 0's buffer by one whose metadata has half the capacity that is mapped.", kRefuses,
     Malformed{capacity_times(0.5), 1}},
    {"5.1.6.1/next-version-in-all-its-bytes", must,
     "next buffer with a version with low bytes of 1",
     "Replace CPU 0's buffer by one with format version 0x10001.", kRefuses,
     Malformed{version(0x10001), 1}},
};

}  // namespace kmes::conformance
