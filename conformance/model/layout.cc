// SPDX-License-Identifier: MIT
//
// See layout.h.
#include "conformance/model/layout.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace kmes::conformance {
namespace {

constexpr std::array<Layout, kLayouts> kTable{{
    {.name = "A",
     .other_name = "1",
     .document = "the specification of this repository",
     .core_form = "A",
     .metadata_bytes = 4096,
     .need_wake_offset = 132,
     .header_bytes = 29,
     .type_length_offset = 27,
     .header_may_grow = true,
     .identities_offset = 0,
     .identities = 0,
     .attach = AttachArguments::all_cpus,
     .error_before_rings = EAGAIN},
    {.name = "B",
     .other_name = "0.20",
     .document = "the published specification, v0.20",
     .core_form = "B",
     .metadata_bytes = 8192,
     .need_wake_offset = 4096,
     .header_bytes = 29,
     .type_length_offset = 27,
     .header_may_grow = false,
     .identities_offset = 0,
     .identities = 0,
     .attach = AttachArguments::all_cpus,
     .error_before_rings = EAGAIN},
    {.name = "C",
     .other_name = "0.22",
     .document = "the published specification, v0.22",
     .core_form = "D",
     .metadata_bytes = 8192,
     .need_wake_offset = 4096,
     .header_bytes = 77,
     .type_length_offset = 75,
     .header_may_grow = false,
     .identities_offset = 27,
     .identities = 3,
     .attach = AttachArguments::one_cpu,
     .error_before_rings = ENOMEM},
    {.name = "D",
     .other_name = "stream",
     .document = "the published event stream chapter",
     .core_form = "D",
     .metadata_bytes = 8192,
     .need_wake_offset = 4096,
     .header_bytes = 77,
     .type_length_offset = 75,
     .header_may_grow = false,
     .identities_offset = 27,
     .identities = 3,
     .attach = AttachArguments::one_cpu_or_count,
     .error_before_rings = ENOMEM},
}};

bool is_same(std::string_view left, std::string_view right) {
    return left.size() == right.size() && strncasecmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace

std::span<const Layout, kLayouts> all_layouts() {
    return kTable;
}

const Layout* find_layout(std::string_view name) {
    const auto found = std::ranges::find_if(kTable, [name](const Layout& each) {
        return is_same(name, each.name) || is_same(name, each.other_name);
    });
    return found == kTable.end() ? nullptr : &*found;
}

const Layout& layout() {
    static const Layout& chosen = []() -> const Layout& {
        const char* name = std::getenv(kLayoutVariable);
        const Layout* named = name == nullptr ? nullptr : find_layout(name);
        return named == nullptr ? kTable.front() : *named;
    }();
    return chosen;
}

bool is_default_layout() {
    return &layout() == &kTable.front();
}

std::string other_layout() {
    return is_default_layout() ? std::string() : std::string(layout().name);
}

std::string layout_names() {
    std::string names;
    for (const Layout& each : kTable) {
        if (!names.empty()) names += &each == &kTable.back() ? " or " : ", ";
        names += each.name;
    }
    return names;
}

std::uint64_t of_layout(const std::array<std::uint64_t, kLayouts>& numbers) {
    return numbers[static_cast<std::size_t>(&layout() - kTable.data())];
}

}  // namespace kmes::conformance
