// SPDX-License-Identifier: MIT
//
// See smoke_calls.h.
#include "conformance/main/smoke_calls.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "conformance/model/layout.h"

namespace kmes::conformance {
namespace {

// In a tree, and in a package.
constexpr std::string_view kAboutLayouts =
    "layouts.md, in docs/ or /usr/share/doc/kmes-conformance";

// Words for a mapping that has the length of another form.
std::string other_form_of(std::uint64_t length_bytes, std::uint64_t capacity_bytes) {
    std::string names;
    for (const Layout& each : all_layouts()) {
        const bool is_same_call = each.attaches_all_cpus() == layout().attaches_all_cpus();
        if (each.metadata_bytes == layout().metadata_bytes || !is_same_call ||
            length_bytes != each.metadata_bytes + 2 * capacity_bytes)
            continue;
        names += fmt::format("{}{}", names.empty() ? "" : " or ", each.name);
    }
    if (names.empty()) return "";
    return fmt::format(
        ". That is the length of form {}: --layout {}, or --layout auto (layouts.md of the "
        "documents)",
        names, names);
}

}  // namespace

std::vector<std::string> mapping_mistakes(const Mapped& event, std::uint64_t capacity_bytes) {
    const MapRequest& request = event.request;
    std::vector<std::string> mistakes;
    if (event.deviation.length)
        mistakes.push_back(fmt::format("mmap of {} bytes; {} + 2 * capacity is {}{}",
                                       request.length_bytes, layout().metadata_bytes,
                                       layout().metadata_bytes + 2 * capacity_bytes,
                                       other_form_of(request.length_bytes, capacity_bytes)));
    if (event.deviation.shared) mistakes.emplace_back("mmap without MAP_SHARED");
    if (event.deviation.protection)
        mistakes.emplace_back("mmap with other than PROT_READ | PROT_WRITE");
    if (event.deviation.offset)
        mistakes.push_back(fmt::format("mmap at offset {}; expected 0", request.offset_bytes));
    return mistakes;
}

std::string attach_mistake(const Attached& last, bool has_attached) {
    const AttachRequest& request = last.request;
    const char* error = strerrorname_np(last.error);
    if (layout().attaches_all_cpus()) {
        const std::string needed =
            last.error == ERANGE
                ? fmt::format(", for it needs {}; expected another call with that many",
                              last.count_written)
                : "";
        std::string mistake = fmt::format(
            "the last kmes_attach, with {} slots, returned {}{}; its arguments are (int* fds, "
            "int* count, u64* capacity)",
            request.slots_requested, error, needed);
        if (!has_attached)
            mistake += fmt::format(
                ". If the consumer attaches to one CPU at a time, it is of another form of the "
                "layout: --layout C, D or auto ({})",
                kAboutLayouts);
        return mistake;
    }
    if (layout().attach == AttachArguments::one_cpu && request.cpu == kAskForCount)
        return fmt::format(
            "kmes_attach with cpu_id 0xFFFFFFFF returned {}; only form D has that question: "
            "--layout D, or --layout auto ({})",
            error, kAboutLayouts);
    if (has_attached) return "";
    return fmt::format(
        "the last kmes_attach, with cpu_id {}, returned {}; its arguments are (unsigned cpu_id, "
        "u64* capacity)",
        request.cpu.value_or(0), error);
}

}  // namespace kmes::conformance
