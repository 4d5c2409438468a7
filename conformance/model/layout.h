// SPDX-License-Identifier: MIT
//
// The forms of the layout (docs/layouts.md) as data, and the form of this run. A process has one
// form from its start to its end: KMES_CONFORMANCE_LAYOUT in the environment names it. For another
// form, a program executes itself again. Constants and tables of cases are therefore initialised
// with the numbers of the form.
#ifndef KMES_CONFORMANCE_MODEL_LAYOUT_H_
#define KMES_CONFORMANCE_MODEL_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kmes::conformance {

// The arguments of kmes_attach.
enum class AttachArguments {
    all_cpus,          // (fds, count, capacity): all CPUs at once, ERANGE if slots are missing
    one_cpu,           // (cpu_id, capacity): one descriptor, EINVAL after the last CPU
    one_cpu_or_count,  // the same; cpu_id 0xFFFFFFFF asks for the number of slots
};

struct Layout {
    std::string_view name;
    std::string_view other_name;  // the version of the published document
    std::string_view document;
    std::string_view core_form;    // the core that writes it; two forms can have one
    std::uint64_t metadata_bytes;  // also the value of data_offset
    std::uint64_t need_wake_offset;
    std::uint64_t header_bytes;  // of an event, before the type
    std::uint64_t type_length_offset;
    bool header_may_grow;             // header_size may be more than header_bytes + type_len
    std::uint64_t identities_offset;  // of the GUIDs of an event, 16 bytes each
    std::uint64_t identities;         // their number
    AttachArguments attach;
    int error_before_rings;  // of an attach in the boot phase

    // Whether kmes_attach attaches all CPUs at once, and reports too few slots.
    constexpr bool attaches_all_cpus() const { return attach == AttachArguments::all_cpus; }
};

inline constexpr std::size_t kLayouts = 4;
inline constexpr const char* kLayoutVariable = "KMES_CONFORMANCE_LAYOUT";

std::span<const Layout, kLayouts> all_layouts();

// By either name, in capital or small letters. Null: no form has the name.
const Layout* find_layout(std::string_view name);

// The form of this process. It is the first one if the variable is not set or names no form.
const Layout& layout();
bool is_default_layout();
// Its name; empty for the default form. For texts that name the form only if it is another one.
std::string other_layout();

// "A", "B", "C" or "D", for messages.
std::string layout_names();

// The entry for the form of this process. For tables that repeat its numbers.
std::uint64_t of_layout(const std::array<std::uint64_t, kLayouts>& numbers);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_LAYOUT_H_
