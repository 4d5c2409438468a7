// SPDX-License-Identifier: MIT
//
// The consumer releases what belongs to a buffer when it leaves the buffer (5.1.8.3 step 6): files,
// mappings and memory, counted over many changes. After three hundred sleeps or changes, byte
// counters have wrapped, and tables that seemed large enough are full.
#include <cerrno>

#include "conformance/cases/play.h"
#include "conformance/monitors/resources.h"
#include "conformance/play/forged_image.h"
#include "conformance/play/growth.h"
#include "conformance/play/many_files.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Resources;

constexpr std::uint64_t kSmallRing = 64 * kKibibyte;

// One of three resizes grows, one shrinks and one keeps the capacity. A leak at each resize of one
// kind on one CPU is 16 pieces in fifty.
InTurn grown_and_shrunk(std::uint64_t capacity_bytes) {
    return {{{Resize{2 * capacity_bytes}}, {Resize{capacity_bytes}}, {Resize{capacity_bytes}}}};
}

const Setup kLargeOnTwo{.cpus = 2, .capacity = kMebibyte, .shortened_waits = true};

// The event is overwritten while it is read. The consumer discards it, and must release the room
// for it. All events begin at the same place.
constexpr std::uint64_t kTornReads = 30;
constexpr std::uint64_t kTornBytes = 150'000;
static_assert(kTornReads * kTornBytes > kOwnGrowthBytes);
const UnderRead kTornRead{.at = kTornBytes / 2,
                          .wake = {Emit{1, kTornBytes}},
                          .actions = {EmitHeaders{4, (2 * kMebibyte - kTornBytes) / 4}}};

constexpr std::string_view kNoGrowth =
    "The consumer gives back what belongs to old buffers, so no count grows in every interval.";
constexpr std::string_view kNoGrowthWithMemory =
    "The consumer gives back what belongs to old buffers, so no count grows in every interval, and "
    "memory not by three mebibytes in each.";

const Row kThreeHundredRows[] = {
    {{"5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps", must,
      "an event at every step after three hundred sleeps",
      "Emit 300 events on one CPU, one whenever its consumer sleeps. Then emit one before each of "
      "its accesses to the metadata page in turn.",
      kDelivers},
     {Times{300, {Asleep{}, EndIfRefused{}, Emit{1, 40}}}, BeforeEachAccess{{Emit{1, 70}}}},
     kOneCpu},
    {{"5.1.8.3/three-hundred-changes", must, "three hundred new buffers on one CPU",
      "Replace the buffer of one CPU 300 times, with an event after each.", kFollows},
     // Four files for a buffer.
     {Asleep{},
      with_many_files(4 * 300, {Times{300, {EndIfRefused{}, Resize{}, Emit{1, 40}, Asleep{}}}})},
     kOneCpu},
};

const Row kLeakRows[] = {
    {{"5.1.8.3-6/two-hundred-resizes", should, "resources after two hundred resizes",
      "Count the consumer's files, mappings and private memory after 50, 100, 150 and 200 resizes.",
      kNoGrowthWithMemory},
     {Asleep{},
      without_growth(50, memory_too, {grown_and_shrunk(kMebibyte), EmitEverywhere{}, Asleep{}})},
     kLargeOnTwo},
    {{"5.1.8.3-6/two-hundred-empty-resizes", should, "resources after 200 changes of empty buffers",
      "Count the consumer's files, mappings and private memory after 50, 100, 150 and 200 resizes "
      "without events.",
      kNoGrowthWithMemory},
     {Asleep{}, without_growth(50, memory_too, {grown_and_shrunk(kMebibyte), Asleep{}})},
     kLargeOnTwo},
    {{"5.1.8.3-6/eighty-resizes-on-the-way", should,
      "resources after 80 buffers replaced before they are mapped",
      "Resize 80 times, and replace the buffers once more after the first attach that follows. "
      "Count the consumer's files, mappings and private memory after 20, 40, 60 and 80 resizes.",
      kNoGrowth},
     {Asleep{},
      without_growth(20, memory_too,
                     {replace_at_the_next_attach, grown_and_shrunk(kMebibyte), Asleep{}})},
     kLargeOnTwo},
    {{"5.1.8.3-6/eighty-resizes-beside-an-ended-cpu", should,
      "resources after 80 changes, with an ended CPU",
      "Emit the end event on one of three CPUs. Each attach returns its buffer all the same. Count "
      "the consumer's files and mappings after 20, 40, 60 and 80 resizes.",
      kNoGrowth},
     {OnCpu{1, {EmitEnd{}}}, Asleep{},
      without_growth(20, files_and_mappings, {grown_and_shrunk(kSmallRing), Asleep{}})},
     {.cpus = 3, .capacity = kSmallRing, .shortened_waits = true}},
    {{"5.1.8.3-6/eighty-changes-of-one-cpu", should, "resources after 80 changes of one CPU",
      "Replace the buffer of one of four CPUs. Each attach returns the other buffers again. Count "
      "the consumer's files and mappings after 20, 40, 60 and 80 changes.",
      kNoGrowth},
     {Asleep{}, without_growth(20, files_and_mappings, {OnCpu{2, {Swap{}}}, Asleep{}})},
     {.cpus = 4, .capacity = kSmallRing, .shortened_waits = true}},
    {{"5.1.8.3-6/eighty-resizes-beside-a-refused-cpu", should,
      "resources after 80 changes, with a refused CPU",
      "Give one of three CPUs version 2 at first. Each attach returns its next buffer all the "
      "same. "
      "Count the consumer's files and mappings after 20, 40, 60 and 80 resizes.",
      kNoGrowth},
     {Asleep{}, without_growth(20, files_and_mappings, {grown_and_shrunk(kSmallRing), Asleep{}})},
     {.cpus = 3,
      .capacity = kSmallRing,
      .before_start = {OnCpu{1, {BreakField{version_field(2)}}}},
      .shortened_waits = true}},
    {{"5.1.8.3-6/forty-changes-with-a-failed-attach", should,
      "resources after 40 changes with a failed attach",
      "Replace the buffer 40 times. After each change, fail one kmes_attach with ENOMEM: the first "
      "and the second one in turn. Count the consumer's files and mappings after 10, 20, 30 and 40 "
      "changes.",
      "The consumer gives back what belongs to old buffers and to failed attempts, so no count "
      "grows in every interval. It tries again after 100 ms at most, and rests between two "
      "attempts "
      "(contract-1). It may also exit with a non-zero status."},
     {Asleep{},
      without_growth(10, files_and_mappings,
                     {InTurn{{{FailAttach{.error = ENOMEM, .passed = 1}}, {FailAttach{ENOMEM}}}},
                      grown_and_shrunk(kSmallRing), Asleep{}})},
     {.cpus = 1, .capacity = kSmallRing, .shortened_waits = true, .failing_attach = true}},
    {{"5.1.8.1-5/torn-reads-are-released", should, "memory after 150 torn reads",
      "Overwrite events of 150,000 bytes during the copy. Count the consumer's private memory "
      "after "
      "30, 60, 90, 120 and 150 of them.",
      "The consumer's memory grows by less than three mebibytes in at least one interval between "
      "two counts."},
     {without_growth_of_memory(kTornReads, kTornBytes, {Asleep{}, EndIfRefused{}, kTornRead})},
     {.cpus = 1, .capacity = kMebibyte}},
};

}  // namespace

const std::vector<Case> kThreeHundredCases = cases_of(kThreeHundredRows);
const std::vector<Case> kLeakCases = cases_of(kLeakRows);

}  // namespace kmes::conformance
