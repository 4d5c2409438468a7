// SPDX-License-Identifier: MIT
//
// Buffers that must be refused, and one that must not (5.1.3, 5.1.6.1, E14; contract, record R). In
// each the buffer of CPU 0 is malformed and the others are sound.
#include <fmt/format.h>

#include "conformance/cases/forge.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Writes `bytes` at `offset` of CPU 0's metadata page before the testee starts, and plays a life.
CaseOutcome malformed(Stage& stage, BufferFault fault, std::uint64_t offset,
                      const std::vector<std::uint8_t>& bytes, const std::string& detail) {
    emit_everywhere(stage, 3, 100);
    break_field(stage, 0, fault, offset, bytes, detail);
    stage.start();
    stage.wait_mapped();
    for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
        stage.wait_delivered(cpu);
        emit_some(stage, cpu, 3, 100);
        stage.wait_delivered(cpu);
    }
    if (must_refuse(fault))
        stage.wait_until([&stage] { return stage.has_refused(0); },
                         "a refusal of CPU 0 (" + detail + ")");
    else
        stage.wait_delivered(0);
    return stage.finish();
}

// One whose low half is right, on the last CPU.
CaseOutcome other_data_offsets(Stage& stage) {
    constexpr std::uint64_t kBeyond32Bits = (std::uint64_t{1} << 32) + kMetadataBytes;
    const std::uint32_t last = stage.cpus() - 1;
    emit_everywhere(stage, 3, 100);
    for (const auto& [cpu, offset] : {std::pair{0u, std::uint64_t{8192}}, {last, kBeyond32Bits}})
        break_field(stage, cpu, BufferFault::data_offset, 24, bytes_of(offset),
                    fmt::format("data_offset {}", offset));
    stage.start();
    stage.wait_until([=, &stage] { return stage.has_refused(0) && stage.has_refused(last); },
                     "a refusal of the first and the last CPU (data_offset)");
    for (std::uint32_t cpu = 1; cpu < last; ++cpu) {
        emit_some(stage, cpu, 3, 100);
        stage.wait_delivered(cpu);
    }
    return stage.finish();
}

// CPU 0's next buffer is malformed. The one after it is sound, and CPU 0 is over all the same.
CaseOutcome malformed_next(Stage& stage, BufferFault fault, std::uint64_t offset,
                           const std::vector<std::uint8_t>& bytes, const std::string& detail,
                           int sound_before = 0) {
    stage.start();
    stage.wait_asleep();
    for (int i = 0; i < sound_before; ++i) {
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
    }
    stage.freeze();
    stage.resize(stage.capacity_bytes());
    break_field(stage, 0, fault, offset, bytes, detail);
    stage.thaw();
    stage.wait_until([&stage] { return stage.has_refused(0); },
                     "a refusal of CPU 0 (" + detail + ")");
    for (const bool is_sound_again : {false, true}) {
        if (is_sound_again) {
            stage.resize(stage.capacity_bytes());
            emit_some(stage, 0, 1, 100);
        }
        for (std::uint32_t cpu = 1; cpu < stage.cpus(); ++cpu) {
            emit_some(stage, cpu, 1, 100);
            stage.wait_delivered(cpu);
        }
    }
    return stage.finish();
}

// A consumer that checks only the first buffer, or a set of them in too few bits, sees none of
// these faults. Each kind of fault is on its own CPU, one of them on the last.
CaseOutcome malformed_further_on(Stage& stage) {
    constexpr std::uint32_t kSound = 2;
    struct Fault {
        BufferFault fault;
        std::uint64_t offset;
        std::vector<std::uint8_t> bytes;
        std::string detail;
    };
    const std::uint64_t bytes = stage.default_setup().capacity_bytes;
    const std::vector<Fault> faults{
        {BufferFault::magic, 7, {'H'}, "magic KMESRINH"},
        {BufferFault::version, 8, bytes_of<std::uint32_t>(2), "version 2"},
        {BufferFault::capacity, 16, bytes_of(bytes / 2), fmt::format("capacity {}", bytes / 2)},
        {BufferFault::capacity, 16, bytes_of(2 * bytes), fmt::format("capacity {}", 2 * bytes)},
    };
    const auto cpus = static_cast<std::uint32_t>(kSound + faults.size());
    set_up_cpus(stage, cpus);
    emit_everywhere(stage, 3, 100);
    for (std::uint32_t cpu = kSound; cpu < cpus; ++cpu) {
        const Fault& each = faults[cpu - kSound];
        break_field(stage, cpu, each.fault, each.offset, each.bytes, each.detail);
    }
    stage.start();
    for (std::uint32_t cpu = kSound; cpu < cpus; ++cpu)
        stage.wait_until([&stage, cpu] { return stage.has_refused(cpu); },
                         fmt::format("a refusal of CPU {} ({})", cpu, faults[cpu - kSound].detail));
    for (std::uint32_t cpu = 0; cpu < kSound; ++cpu) {
        emit_some(stage, cpu, 3, 100);
        stage.wait_delivered(cpu);
    }
    return stage.finish();
}

// Two refused CPUs, and those whose numbers are 32 more and 32 less.
CaseOutcome refused_among_forty(Stage& stage) {
    constexpr std::uint32_t kCpus = 40;
    const auto is_refused = [](std::uint32_t cpu) { return cpu == 0 || cpu == 33; };
    set_up_cpus(stage, kCpus);
    emit_everywhere(stage, 2, 100);
    for (const std::uint32_t cpu : {0u, 33u}) give_version_2(stage, cpu);
    stage.start();
    stage.wait_until([&stage] { return stage.has_refused(0) && stage.has_refused(33); },
                     "a refusal of CPUs 0 and 33 (version 2)");
    for (const bool is_changed : {false, true}) {
        if (is_changed) stage.resize(2 * stage.capacity_bytes());
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            if (!is_refused(cpu)) emit_some(stage, cpu, 2, 100);
        }
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            if (!is_refused(cpu)) stage.wait_delivered(cpu);
        }
    }
    return stage.finish();
}

// Every CPU's buffer has this capacity, and kmes_attach says so.
CaseOutcome every_capacity(Stage& stage, std::uint64_t metadata_says, std::uint64_t attach_says) {
    emit_everywhere(stage, 2, 100);
    const std::string detail =
        fmt::format("capacity {} where kmes_attach said {}", metadata_says, attach_says);
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        break_field(stage, cpu, BufferFault::capacity, 16, bytes_of(metadata_says), detail);
    stage.set_reported_capacity(attach_says);
    stage.start();
    // It may refuse what kmes_attach says without mapping anything, and end as it likes then.
    return stage.finish_refused();
}

// The same of the next buffers.
CaseOutcome every_next_capacity(Stage& stage, std::uint64_t says) {
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    stage.freeze();
    stage.resize(stage.capacity_bytes());
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        break_field(stage, cpu, BufferFault::capacity, 16, bytes_of(says),
                    fmt::format("capacity {}", says));
    stage.set_reported_capacity(says);
    stage.thaw();
    return stage.finish_refused();
}

// What is not one malformed field of CPU 0 that must be refused.
void add_other_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.6.1/reserved-bytes-set", Level::must, "5.1.6.1", "reserved bytes other than zero",
         "Set all reserved bytes of CPU 0's metadata and the end of its page, except those that a "
         "32-bit store to need_wake clears.",
         "The consumer ignores reserved bytes and drains the buffer.", [](Stage& stage) {
             const BufferIndex buffer = stage.rings().history().present_buffer(0);
             stage.rings().write_metadata(buffer, 14, {{0xff, 0xff}});
             stage.rings().write_metadata(buffer, 80, std::vector<std::uint8_t>(48, 0xff));
             stage.rings().write_metadata(buffer, 136, std::vector<std::uint8_t>(56, 0xff));
             stage.rings().write_metadata(buffer, 4000, {{0xff, 0xff}});
             return malformed(stage, BufferFault::reserved_not_zero, 40,
                              std::vector<std::uint8_t>(24, 0xff), "reserved bytes");
         }});
    cases.push_back(
        {"5.1.6.1/other-data-offset", Level::robust, "5.1.6.1", "data_offset other than 4096",
         "Set CPU 0's data_offset to 8192, and the last CPU's to 2^32 + 4096.",
         "The consumer refuses these buffers and drains the other CPUs.", other_data_offsets});
    cases.push_back({"5.1.6.1/faults-on-later-cpus", Level::must, "5.1.6.1",
                     "malformed buffers after sound ones",
                     "Serve six CPUs, of which the first two are sound. Give the others a wrong "
                     "magic, version 2, half the capacity, and twice the capacity.",
                     "The consumer refuses each of the four and drains the others.",
                     malformed_further_on});
    cases.push_back(
        {"5.1.6.1/two-refused-of-forty", Level::must, "5.1.6.1", "two refused CPUs of forty",
         "Give CPUs 0 and 33 of forty version 2. Emit events on all others, before and after a "
         "resize.",
         "The consumer drains every other CPU, including 1 and 32.", refused_among_forty});
    cases.push_back(
        {"5.1.3/attach-says-no-power-of-two", Level::must, "5.1.3",
         "kmes_attach with a capacity that is not a power of two",
         "Report the same capacity in kmes_attach and in every buffer's metadata. It is not a "
         "power of two.",
         "The consumer refuses every buffer, or exits with a non-zero status. It delivers nothing.",
         [](Stage& stage) {
             const std::uint64_t says = stage.default_setup().capacity_bytes - 4096;
             return every_capacity(stage, says, says);
         }});
}

using Add = std::function<void(std::string_view id, std::string_view clause, std::string_view title,
                               std::string_view description, CaseFunction run)>;

Add add_refused(std::vector<Case>& cases) {
    return [&cases](std::string_view id, std::string_view clause, std::string_view title,
                    std::string_view description, CaseFunction run) {
        cases.push_back({id, Level::must, clause, title, description,
                         "The consumer refuses the buffer with an R record, delivers nothing from "
                         "it, and drains the other CPUs.",
                         std::move(run)});
    };
}

}  // namespace

void add_buffer_cases(std::vector<Case>& cases) {
    const Add add = add_refused(cases);
    add("5.1.6.1/bad-magic-first-byte", "5.1.6.1", "magic with a wrong first byte",
        "Set CPU 0's magic to \"XMESRING\".", [](Stage& stage) {
            return malformed(stage, BufferFault::magic, 0, {'X'}, "magic XMESRING");
        });
    add("5.1.6.1/bad-magic-last-byte", "5.1.6.1", "magic with a wrong last byte",
        "Set CPU 0's magic to \"KMESRINH\", so that only a comparison of all eight bytes finds it.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::magic, 7, {'H'}, "magic KMESRINH");
        });
    add("5.1.6.1/unknown-version", "5.1.6.1", "version 2", "Set CPU 0's format version to 2.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(2),
                             "version 2");
        });
    add("5.1.6.1/version-in-all-its-bytes", "5.1.6.1", "version with low bytes of 1",
        "Set CPU 0's format version to 0x10001, so that only a comparison of all 32 bits finds it.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(0x10001),
                             "version 65537");
        });
    add("5.1.6.1/version-all-ones", "5.1.6.1", "version 4294967295",
        "Set CPU 0's format version to 2^32 - 1, which is not a negative number.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(0xffffffff),
                             "version 4294967295");
        });
    add("5.1.6.1/version-zero", "5.1.6.1", "version 0", "Set CPU 0's format version to 0.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(0),
                             "version 0");
        });
    add("5.1.3/capacity-no-power-of-two", "5.1.3", "capacity that is not a power of two",
        "Set CPU 0's capacity to 4096 more than a power of two.", [](Stage& stage) {
            const std::uint64_t says = stage.default_setup().capacity_bytes + 4096;
            return malformed(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(says),
                             fmt::format("capacity {}", says));
        });
    add("E14/capacity-larger-than-the-mapping", "E14", "capacity larger than the mapping",
        "Set CPU 0's capacity to twice the value that kmes_attach returned and that is mapped.",
        [](Stage& stage) {
            const std::uint64_t says = 2 * stage.default_setup().capacity_bytes;
            return malformed(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(says),
                             fmt::format("capacity {}", says));
        });
    add("E14/capacity-smaller-than-the-mapping", "E14", "capacity smaller than the mapping",
        "Set CPU 0's capacity to half the value that kmes_attach returned and that is mapped.",
        [](Stage& stage) {
            const std::uint64_t says = stage.default_setup().capacity_bytes / 2;
            return malformed(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(says),
                             fmt::format("capacity {}", says));
        });
    add("5.1.3/capacity-zero", "5.1.3", "capacity 0", "Set CPU 0's capacity to 0.",
        [](Stage& stage) {
            return malformed(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(0),
                             "capacity 0");
        });
    add_other_cases(cases);
}

void add_next_buffer_cases(std::vector<Case>& cases) {
    const Add add = add_refused(cases);
    cases.push_back({"5.1.3/a-later-attach-says-no-power-of-two", Level::must, "5.1.3",
                     "a later kmes_attach with a capacity that is not a power of two",
                     "Replace all buffers. Report the same capacity in kmes_attach and in their "
                     "metadata. It is not a power of two.",
                     "The consumer refuses every new buffer, or exits with a non-zero status. It "
                     "delivers nothing from them.",
                     [](Stage& stage) {
                         return every_next_capacity(stage,
                                                    stage.default_setup().capacity_bytes - 4096);
                     }});
    add("5.1.6.1/version-of-the-next-buffer", "5.1.6.1", "next buffer with version 2",
        "Replace CPU 0's buffer by one with format version 2.", [](Stage& stage) {
            return malformed_next(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(2),
                                  "version 2");
        });
    add("5.1.6.1/version-after-sound-buffers", "5.1.6.1", "version 2 after five sound buffers",
        "Replace CPU 0's buffer five times by sound ones, then by one with format version 2.",
        [](Stage& stage) {
            return malformed_next(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(2),
                                  "version 2", 5);
        });
    add("5.1.6.1/magic-of-the-next-buffer", "5.1.6.1", "next buffer with a wrong magic",
        "Replace CPU 0's buffer by one with magic \"KMESRINH\".", [](Stage& stage) {
            return malformed_next(stage, BufferFault::magic, 7, {'H'}, "magic KMESRINH");
        });
    add("E14/capacity-of-the-next-buffer", "E14",
        "next buffer with a capacity larger than the mapping",
        "Replace CPU 0's buffer by one whose metadata has twice the capacity that is mapped.",
        [](Stage& stage) {
            const std::uint64_t says = 2 * stage.default_setup().capacity_bytes;
            return malformed_next(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(says),
                                  fmt::format("capacity {}", says));
        });
    add("E14/smaller-capacity-of-the-next-buffer", "E14",
        "next buffer with a capacity smaller than the mapping",
        "Replace CPU 0's buffer by one whose metadata has half the capacity that is mapped.",
        [](Stage& stage) {
            const std::uint64_t says = stage.default_setup().capacity_bytes / 2;
            return malformed_next(stage, BufferFault::capacity, 16, bytes_of<std::uint64_t>(says),
                                  fmt::format("capacity {}", says));
        });
    add("5.1.6.1/next-version-in-all-its-bytes", "5.1.6.1",
        "next buffer with a version with low bytes of 1",
        "Replace CPU 0's buffer by one with format version 0x10001.", [](Stage& stage) {
            return malformed_next(stage, BufferFault::version, 8, bytes_of<std::uint32_t>(0x10001),
                                  "version 65537");
        });
}

}  // namespace kmes::conformance
