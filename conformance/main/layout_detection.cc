// SPDX-License-Identifier: MIT
//
// See layout_detection.h. The first run of the program shows the first arguments of its first
// kmes_attach calls, each of which fails with EINVAL: a consumer of form D continues with the next
// CPU. If the argument can be an array, a second run serves the call of forms A and B, which differ
// in the length of the first mapping.
#include "conformance/main/layout_detection.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>

#include "conformance/stage/rings.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

constexpr std::chrono::milliseconds kDetectionLimit{10000};  // of one run
constexpr std::chrono::milliseconds kDetectionPoll{20};
constexpr std::uint64_t kCapacityBytes = 65536;
// The low half of an array's address is hardly ever smaller, and no CPU has a larger number.
constexpr std::uint32_t kMostCpusTried = 4096;
// A program that attaches again and again after an error shows nothing new.
constexpr unsigned kMostAttaches = 64;

const Layout& form(std::string_view name) {
    return *find_layout(name);
}

struct Start {
    const std::vector<std::string>& program;
    double timeout_scale;
    const StopFlag& stop;
};

// Starts the program with this attach call, and passes on its events until `is_over`.
void run(const Start& start, AttachCall call,
         const std::function<AttachAnswer(const AttachRequest&, BufferId)>& answer,
         const std::function<void(const TracerEvent&)>& take,
         const std::function<bool()>& is_over) {
    Rings rings(RingsSetup{1, kCapacityBytes, {}, {}});
    Tracer tracer;
    const BufferId id =
        tracer.add_buffer(rings.backend().served(rings.history().current_buffer(0)));
    tracer.set_attach_call(call);
    tracer.handlers().attach = [&](const AttachRequest& request) { return answer(request, id); };
    const auto limit = std::chrono::duration<double>(kDetectionLimit) * start.timeout_scale;
    const TimePoint end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    tracer.start(start.program);
    while (!is_over() && !start.stop && Clock::now() < end) {
        const TracerEvent event = tracer.wait(Clock::now() + kDetectionPoll);
        take(event);
        if (std::holds_alternative<Ended>(event)) break;
    }
    tracer.kill_all();
}

// What a program asks for when every kmes_attach fails with EINVAL.
struct FirstCalls {
    std::optional<AttachRequest> first;  // nothing: the program does not attach
    bool asks_for_count = false;
    std::optional<std::uint32_t> next_cpu;  // another than the first, after an EINVAL
    bool has_array = false;
    unsigned calls = 0;
    bool is_startable = true;

    bool is_over() const {
        return asks_for_count || next_cpu || has_array || calls > kMostAttaches;
    }
};

void note(FirstCalls& calls, const AttachRequest& request) {
    const std::uint32_t cpu = request.cpu.value_or(0);
    ++calls.calls;
    if (!calls.first) calls.first = request;
    if (request.asks_for_count)
        calls.asks_for_count = true;
    else if (cpu >= kMostCpusTried)
        calls.has_array = true;
    else if (cpu != calls.first->cpu.value_or(0))
        calls.next_cpu = cpu;
}

FirstCalls first_calls(const Start& start) {
    FirstCalls calls;
    run(
        start, AttachCall::kOneCpuOrCount,
        [&](const AttachRequest& request, BufferId) {
            note(calls, request);
            return AttachAnswer{EINVAL, {}, 0};
        },
        [&](const TracerEvent& event) {
            const auto* ended = std::get_if<Ended>(&event);
            if (ended == nullptr) return;
            calls.is_startable =
                ended->kind != EndKind::kNotStarted && ended->kind != EndKind::kNotTraceable;
        },
        [&] { return calls.is_over(); });
    return calls;
}

// A consumer of form D may never ask for the number of slots, and stop at an EINVAL by mistake.
DetectedLayout form_c(std::uint32_t cpu) {
    return {&form("C"),
            fmt::format("kmes_attach asks for CPU {}, and for no other CPU after an EINVAL; for a "
                        "consumer of form D that does so, use --layout D",
                        cpu)};
}

// Handles a null pointer or an array as the first argument. A null pointer can also be CPU 0.
DetectedLayout detect_by_mapping(const Start& start, bool begins_with_array) {
    bool has_array = begins_with_array;
    unsigned attaches = 0;
    DetectedLayout found;
    run(
        start, AttachCall::kAllCpus,
        [&](const AttachRequest&, BufferId id) {
            ++attaches;
            // A null array has too few slots, so the tracer returns ERANGE.
            return AttachAnswer{0, {id}, kCapacityBytes};
        },
        [&](const TracerEvent& event) {
            // The descriptors are in a writable array. (A CPU number is no writable address.)
            if (const auto* attached = std::get_if<Attached>(&event))
                has_array = has_array || attached->error == 0;
            const auto* mapped = std::get_if<Mapped>(&event);
            if (mapped == nullptr) return;
            for (const std::string_view name : {"A", "B"}) {
                const std::uint64_t metadata_bytes = form(name).metadata_bytes;
                if (mapped->request.length_bytes == metadata_bytes + 2 * kCapacityBytes)
                    found = {&form(name), fmt::format("kmes_attach takes an array, and the mapping "
                                                      "has {} bytes before the data",
                                                      metadata_bytes)};
            }
        },
        [&] { return found.layout != nullptr || attaches > kMostAttaches; });
    if (found.layout != nullptr) return found;
    if (has_array) return {&form("A"), "kmes_attach takes an array"};
    return form_c(0);
}

}  // namespace

DetectedLayout detect_layout(const std::vector<std::string>& program, double timeout_scale,
                             const StopFlag& stop) {
    const Start start{program, timeout_scale, stop};
    const FirstCalls calls = first_calls(start);
    if (!calls.first)
        return {&form("A"), "the program does not call kmes_attach", calls.is_startable, false};
    if (calls.asks_for_count) return {&form("D"), "kmes_attach asks for the number of CPUs"};
    const std::uint32_t cpu = calls.first->cpu.value_or(0);
    if (calls.next_cpu)
        return {&form("D"), fmt::format("kmes_attach asks for CPU {} after an EINVAL for CPU {}",
                                        *calls.next_cpu, cpu)};
    if (cpu > 0 && !calls.has_array) return form_c(cpu);
    return detect_by_mapping(start, calls.has_array);
}

std::string other_form_text(const std::vector<std::string>& program, double timeout_scale,
                            const StopFlag& stop) {
    // Without --layout, the messages about the calls name the other forms. Form C is a guess.
    if (&layout() == &form("A")) return "";
    const DetectedLayout found = detect_layout(program, timeout_scale, stop);
    if (found.layout == &form("C") || stop || !found.is_startable || !found.attaches ||
        found.layout == &layout())
        return "";
    return fmt::format(
        "the program attaches as a consumer of form {} does ({}), and this run is for form {}: use "
        "--layout auto, or --layout {}",
        found.layout->name, found.reason, layout().name, found.layout->name);
}

}  // namespace kmes::conformance
