// SPDX-License-Identifier: MIT
//
// A kmes_attach that fails after a change of generation (contract, decided on 2026-11-25). The
// consumer delivers the unread events of the old buffer. Then it tries again at most 100 ms after
// each failure, or exits with a non-zero status.
#include <cerrno>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/model/layout.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// EAGAIN, if the form of the layout has it.
const int kNotYet = layout().error_before_rings;

struct FailingChange {
    std::uint32_t cpu = 0;
    std::uint64_t unread = 0;  // events that only the old buffer has
    int error = 0;
    int times = 1;
    int passed = 0;
};

// Events, a change, and a lap of the next buffer; the following attaches fail.
Steps change(const FailingChange& what) {
    Steps steps{Emit{what.unread, 200}, FailAttach{what.error, what.times, what.passed}, Swap{}};
    if (what.unread > 0) steps.push_back(Lap{});
    return {OnCpu{what.cpu, steps}};
}

// One change after the other on `cpus` CPUs, each from sleep to sleep.
Steps changes(std::uint32_t cpus, const std::vector<FailingChange>& all) {
    const auto from_sleep_to_sleep = [cpus](const FailingChange& one) {
        // Unread events of the other CPUs are in live buffers.
        Steps others;
        for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
            if (cpu != one.cpu) others.push_back(OnCpu{cpu, {Emit{2}}});
        }
        // The consumer is proven to read this buffer, and not only to have it.
        return Steps{Asleep{}, EmitEverywhere{}, Asleep{},
                     AtOnce{{InOrder{change(one)}, InOrder{others}}}};
    };
    return {each(all, from_sleep_to_sleep), Asleep{}};
}

constexpr std::string_view kGoesOn =
    "The consumer delivers everything in the old buffer. It tries again after 100 ms at most, and "
    "rests between two attempts, or it exits with a non-zero status.";
const Setup kFailsOnOneCpu{.cpus = 1, .failing_attach = true};
const Setup kFailsOnFourCpus{.cpus = 4, .failing_attach = true};

Row fails(std::string_view id, std::string_view title, int error, const Steps& before_start = {}) {
    return {{id, must, title,
             "Replace the buffer. Fail the next kmes_attach, once and six times in a row, with 24 "
             "unread events in the old buffer and with none. Then fail the attach after that.",
             kGoesOn},
            changes(1, {{0, 24, error, 1},
                        {0, 24, error, 6},
                        {0, 0, error, 1},
                        {0, 0, error, 6},
                        {0, 5, error, 1, 1},
                        {0, 5, error, 6, 1}}),
            {.cpus = 1, .before_start = before_start, .failing_attach = true}};
}

void require_eagain(Stage&) {
    if (kNotYet != EAGAIN) stop_not_applicable("kmes_attach does not fail with EAGAIN");
}

const Row kLaterAttachRows[] = {
    fails("contract-1/later-attach-eagain", "EAGAIN at a later attach", EAGAIN, {require_eagain}),
    fails("contract-1/later-attach-enomem", "ENOMEM at a later attach", ENOMEM),
    fails("contract-1/later-attach-emfile", "EMFILE at a later attach", EMFILE),
    fails("contract-1/later-attach-enfile", "ENFILE at a later attach", ENFILE),
    fails("contract-1/later-attach-eperm", "EPERM at a later attach", EPERM),
    {{"contract-1/later-attach-with-nothing-unread", must,
      "a failed later attach with nothing unread",
      "Replace the buffer after every event is delivered. Fail the next kmes_attach twice, with "
      "each error in turn.",
      kGoesOn},
     changes(1, {{0, 0, kNotYet, 2},
                 {0, 0, ENOMEM, 2},
                 {0, 0, EMFILE, 2},
                 {0, 0, ENFILE, 2},
                 {0, 0, EPERM, 2}}),
     kFailsOnOneCpu},
    {{"contract-1/later-attach-beside-others", must, "a failed later attach for one CPU of four",
      "Replace the buffer of one CPU of four. Fail the next kmes_attach, with each error in turn. "
      "Emit events on the other CPUs.",
      kGoesOn},
     changes(4, {{2, 10, kNotYet, 1},
                 {3, 10, ENOMEM, 5},
                 {0, 10, EMFILE, 1},
                 {1, 10, ENFILE, 5},
                 {2, 10, EPERM, 1}}),
     kFailsOnFourCpus},
    {{"contract-1/later-attach-at-every-step", must, "a change at every step, and a failed attach",
      "Before each access of the consumer in turn, emit three events and replace the buffer. Fail "
      "the next kmes_attach once.",
      kGoesOn},
     {Asleep{},
      Limited{{BeforeEachAccess{.actions = {InTurn{{change({0, 3, ENOMEM}), change({0, 3, EMFILE}),
                                                    change({0, 3, ENFILE}), change({0, 3, EPERM}),
                                                    change({0, 3, kNotYet})}}},
                                .last = 39}}},
      Asleep{}},
     kFailsOnOneCpu},
};

}  // namespace

const std::vector<Case> kLaterAttachCases = cases_of(kLaterAttachRows);

}  // namespace kmes::conformance
