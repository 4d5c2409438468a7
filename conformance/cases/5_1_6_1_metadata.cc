// SPDX-License-Identifier: MIT
//
// Buffers that a consumer must refuse, and a valid buffer that it must not refuse (5.1.3, 5.1.6.1,
// E14; contract, record R).
#include "conformance/cases/play.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

const ForgedField kLastByteOfMagic = magic_field(7, 'H', "KMESRINH");
// No power of two. kmes_attach and every page have it.
const Amount kNoPowerOfTwo = usual() - 4096;
// The data_offset of another form of the layout, and one whose low half is correct.
const std::uint64_t kOtherDataOffset = of_layout({8192, 4096, 4096, 4096});
const std::uint64_t kDataOffsetOf33Bits = (std::uint64_t{1} << 32) + kMetadataBytes;

// Two sound CPUs, and four with a fault of their own each, one of them on the last CPU. A consumer
// that checks only the first buffer, or a set of them in too few bits, sees none of these faults.
const std::vector<std::uint32_t> kSound{0, 1};
const std::vector<std::uint32_t> kFaulty{2, 3, 4, 5};

// Two refused CPUs of forty, and the CPUs whose numbers are 32 higher and 32 lower.
const std::vector<std::uint32_t> kRefusedOfForty{0, 33};
const Steps kDrainTheRestOfForty{OnEachCpu{{Emit{2}}, kRefusedOfForty},
                                 OnEachCpu{{DeliveredHere{}}, kRefusedOfForty}};

// The other CPUs than CPU 0 continue.
const Step kDrainOthers = OnEachCpu{{DeliveredHere{}, Emit{3}, DeliveredHere{}}, {0}};
const Step kEmitToOthers = OnEachCpu{{Emit{}, DeliveredHere{}}, {0}};

// `fault` makes the first buffer of CPU 0 malformed.
Row first_buffer(const CaseText& text, const Step& fault) {
    return {
        text, {AllMapped{}, kDrainOthers, Refused{}}, {.before_start = {EmitEverywhere{3}, fault}}};
}

// `fault` makes the next buffer of CPU 0 malformed, after some sound ones. The buffer after it is
// valid, but the consumer has left CPU 0 for good.
Row next_buffer(const CaseText& text, const Step& fault, std::uint64_t sound_buffers = 0) {
    Steps steps{Asleep{}};
    for (std::uint64_t i = 0; i < sound_buffers; ++i)
        steps.append({Resize{}, EmitEverywhere{}, Asleep{}});
    steps.append(
        {AtOnce{{Resize{}, fault}}, Refused{}, kEmitToOthers, Resize{}, Emit{}, kEmitToOthers});
    return {text, steps};
}

constexpr std::string_view kRefuses =
    "The consumer refuses the buffer with an R record, delivers nothing from it, and drains the "
    "other CPUs.";

const Row kFirstBufferRows[] = {
    first_buffer({"5.1.6.1/bad-magic-first-byte", must, "magic with a wrong first byte",
                  "Set CPU 0's magic to \"XMESRING\".", kRefuses},
                 BreakField{magic_field(0, 'X', "XMESRING")}),
    first_buffer({"5.1.6.1/bad-magic-last-byte", must, "magic with a wrong last byte",
                  "Set CPU 0's magic to \"KMESRINH\", so that only a comparison of all eight bytes "
                  "finds it.",
                  kRefuses},
                 BreakField{kLastByteOfMagic}),
    first_buffer({"5.1.6.1/unknown-version", must, "version 2", "Set CPU 0's format version to 2.",
                  kRefuses},
                 BreakField{version_field(2)}),
    first_buffer({"5.1.6.1/version-in-all-its-bytes", must, "version with low bytes of 1",
                  "Set CPU 0's format version to 0x10001, so that only a comparison of all 32 bits "
                  "finds it.",
                  kRefuses},
                 BreakField{version_field(0x10001)}),
    first_buffer(
        {"5.1.6.1/version-all-ones", must, "version 4294967295",
         "Set CPU 0's format version to 2^32 - 1, which is not a negative number.", kRefuses},
        BreakField{version_field(0xffffffff)}),
    first_buffer(
        {"5.1.6.1/version-zero", must, "version 0", "Set CPU 0's format version to 0.", kRefuses},
        BreakField{version_field(0)}),
    first_buffer({"5.1.3/capacity-no-power-of-two", must, "capacity that is not a power of two",
                  "Set CPU 0's capacity to 4096 more than a power of two.", kRefuses},
                 BreakCapacity{current() + 4096}),
    first_buffer(
        {"E14/capacity-larger-than-the-mapping", must, "capacity larger than the mapping",
         "Set CPU 0's capacity to twice the value that kmes_attach returned and that is mapped.",
         kRefuses},
        BreakCapacity{current(2)}),
    first_buffer(
        {"E14/capacity-smaller-than-the-mapping", must, "capacity smaller than the mapping",
         "Set CPU 0's capacity to half the value that kmes_attach returned and that is mapped.",
         kRefuses},
        BreakCapacity{current(1, 2)}),
    first_buffer(
        {"5.1.3/capacity-zero", must, "capacity 0", "Set CPU 0's capacity to 0.", kRefuses},
        BreakCapacity{0}),
    {{"5.1.6.1/reserved-bytes-set", must, "reserved bytes other than zero",
      "Set all reserved bytes of CPU 0's metadata and the end of its page, except those that a "
      "32-bit store to need_wake clears.",
      "The consumer ignores reserved bytes and drains the buffer."},
     {AllMapped{}, kDrainOthers, DeliveredHere{}},
     {.before_start = {EmitEverywhere{3}, SetReservedBytes{}}}},
    {{"5.1.6.1/other-data-offset", robust, in_layout("data_offset other than {}", kMetadataBytes),
      in_layout("Set CPU 0's data_offset to {}, and the last CPU's to 2^32 + {}.", kOtherDataOffset,
                kMetadataBytes),
      "The consumer refuses these buffers and drains the other CPUs."},
     {Refused{}, OnCpu{kLastCpu, {Refused{}}},
      OnEachCpu{{Emit{3}, DeliveredHere{}}, {0, kLastCpu}}},
     {.before_start = {EmitEverywhere{3}, BreakField{data_offset_field(kOtherDataOffset)},
                       OnCpu{kLastCpu, {BreakField{data_offset_field(kDataOffsetOf33Bits)}}}}}},
    {{"5.1.6.1/faults-on-later-cpus", must, "malformed buffers after sound ones",
      "Serve six CPUs, of which the first two are sound. Give the others a wrong magic, version 2, "
      "half the capacity, and twice the capacity.",
      "The consumer refuses each of the four and drains the others."},
     {OnEachCpu{{Refused{}}, kSound}, OnEachCpu{{Emit{3}, DeliveredHere{}}, kFaulty}},
     {.cpus = 6,
      .before_start = {EmitEverywhere{3}, OnCpu{2, {BreakField{kLastByteOfMagic}}},
                       OnCpu{3, {BreakField{version_field(2)}}},
                       OnCpu{4, {BreakCapacity{current(1, 2)}}},
                       OnCpu{5, {BreakCapacity{current(2)}}}}}},
    {{"5.1.6.1/two-refused-of-forty", must, "two refused CPUs of forty",
      "Give CPUs 0 and 33 of forty version 2. Emit events on all others, before and after a "
      "resize.",
      "The consumer drains every other CPU, including 1 and 32."},
     {Refused{}, OnCpu{33, {Refused{}}}, InOrder{kDrainTheRestOfForty}, Resize{current(2)},
      InOrder{kDrainTheRestOfForty}},
     {.cpus = 40,
      .before_start = {EmitEverywhere{2}, BreakField{version_field(2)},
                       OnCpu{33, {BreakField{version_field(2)}}}}}},
    {{"5.1.3/attach-says-no-power-of-two", must,
      "kmes_attach with a capacity that is not a power of two",
      "Report the same capacity in kmes_attach and in every buffer's metadata. It is not a power "
      "of two.",
      "The consumer refuses every buffer, or exits with a non-zero status. It delivers nothing."},
     Steps{},
     {.before_start = {EmitEverywhere{2}, SayCapacityEverywhere{kNoPowerOfTwo}},
      .end = RowEnd::refused}},
};

const Row kNextBufferRows[] = {
    {{"5.1.3/a-later-attach-says-no-power-of-two", must,
      "a later kmes_attach with a capacity that is not a power of two",
      "Replace all buffers. Report the same capacity in kmes_attach and in their metadata. It is "
      "not a power of two.",
      "The consumer refuses every new buffer, or exits with a non-zero status. It delivers nothing "
      "from them."},
     {Asleep{}, AtOnce{{Resize{}, SayCapacityEverywhere{kNoPowerOfTwo}}}},
     {.before_start = {EmitEverywhere{2}}, .end = RowEnd::refused}},
    next_buffer({"5.1.6.1/version-of-the-next-buffer", must, "next buffer with version 2",
                 "Replace CPU 0's buffer by one with format version 2.", kRefuses},
                BreakField{version_field(2)}),
    next_buffer({"5.1.6.1/version-after-sound-buffers", must, "version 2 after five sound buffers",
                 "Replace CPU 0's buffer five times by sound ones, then by one with format version "
                 "2.",
                 kRefuses},
                BreakField{version_field(2)}, 5),
    next_buffer({"5.1.6.1/magic-of-the-next-buffer", must, "next buffer with a wrong magic",
                 "Replace CPU 0's buffer by one with magic \"KMESRINH\".", kRefuses},
                BreakField{kLastByteOfMagic}),
    next_buffer({"E14/capacity-of-the-next-buffer", must,
                 "next buffer with a capacity larger than the mapping",
                 "Replace CPU 0's buffer by one whose metadata has twice the capacity that is "
                 "mapped.",
                 kRefuses},
                BreakCapacity{current(2)}),
    next_buffer({"E14/smaller-capacity-of-the-next-buffer", must,
                 "next buffer with a capacity smaller than the mapping",
                 "Replace CPU 0's buffer by one whose metadata has half the capacity that is "
                 "mapped.",
                 kRefuses},
                BreakCapacity{current(1, 2)}),
    next_buffer({"5.1.6.1/next-version-in-all-its-bytes", must,
                 "next buffer with a version with low bytes of 1",
                 "Replace CPU 0's buffer by one with format version 0x10001.", kRefuses},
                BreakField{version_field(0x10001)}),
};

}  // namespace

const std::vector<Case> kFirstBufferCases = cases_of(kFirstBufferRows);
const std::vector<Case> kNextBufferCases = cases_of(kNextBufferRows);

}  // namespace kmes::conformance
