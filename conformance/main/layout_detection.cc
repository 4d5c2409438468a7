// SPDX-License-Identifier: MIT
//
// See layout_detection.h. The first run of the program shows the first argument of its first
// kmes_attach. If that can be an array, a second run serves the call of forms A and B, and the
// length of the first mapping tells these two apart.
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

constexpr std::chrono::milliseconds kLimit{10000};  // of one run
constexpr std::chrono::milliseconds kPoll{20};
constexpr std::uint64_t kCapacityBytes = 65536;
// The low 32 bits of the address of an array are hardly ever less, and no CPU has a larger number.
constexpr std::uint32_t kMostCpus = 4096;
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

// Starts the program with these answers, and hands over the events, until `is_over`.
void run(const Start& start, AttachCall call,
         const std::function<AttachAnswer(const AttachRequest&, BufferId)>& answer,
         const std::function<void(const TracerEvent&)>& take,
         const std::function<bool()>& is_over) {
    Rings rings(RingsSetup{1, kCapacityBytes, {}, {}});
    Tracer tracer;
    const BufferId id =
        tracer.add_buffer(rings.backend().served(rings.history().present_buffer(0)));
    tracer.set_attach_call(call);
    tracer.set_attach_handler([&](const AttachRequest& request) { return answer(request, id); });
    const auto limit = std::chrono::duration<double>(kLimit) * start.timeout_scale;
    const TimePoint end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    tracer.start(start.program);
    while (!is_over() && !start.stop && Clock::now() < end) {
        const TracerEvent event = tracer.wait(Clock::now() + kPoll);
        take(event);
        if (std::holds_alternative<Ended>(event)) break;
    }
    tracer.kill_all();
}

// Nothing: the program does not attach.
std::optional<AttachRequest> first_attach(const Start& start) {
    std::optional<AttachRequest> first;
    run(
        start, AttachCall::kOneCpuOrCount,
        [&](const AttachRequest& request, BufferId) {
            if (!first) first = request;
            return AttachAnswer{EPERM, {}, 0};
        },
        [](const TracerEvent&) {}, [&] { return first.has_value(); });
    return first;
}

// What follows a null pointer, or an array, as the first argument. The former is CPU 0, too.
DetectedLayout detect_by_mapping(const Start& start, bool begins_with_array) {
    bool has_array = begins_with_array;
    unsigned attaches = 0;
    DetectedLayout found;
    run(
        start, AttachCall::kAllCpus,
        [&](const AttachRequest&, BufferId id) {
            ++attaches;
            // A null array has too few slots: the tracer makes ERANGE of this.
            return AttachAnswer{0, {id}, kCapacityBytes};
        },
        [&](const TracerEvent& event) {
            // Descriptors in an array that can be written to. (The number of a CPU cannot.)
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
    return {&form("C"), "kmes_attach asks for CPU 0"};
}

}  // namespace

DetectedLayout detect_layout(const std::vector<std::string>& program, double timeout_scale,
                             const StopFlag& stop) {
    const Start start{program, timeout_scale, stop};
    const std::optional<AttachRequest> first = first_attach(start);
    if (!first) return {&form("A"), "the program does not call kmes_attach"};
    if (first->asks_for_count) return {&form("D"), "kmes_attach asks for the number of CPUs"};
    const std::uint32_t cpu = first->cpu.value_or(0);
    if (cpu > 0 && cpu < kMostCpus)
        return {&form("C"), fmt::format("kmes_attach asks for CPU {}", cpu)};
    return detect_by_mapping(start, cpu != 0);
}

}  // namespace kmes::conformance
