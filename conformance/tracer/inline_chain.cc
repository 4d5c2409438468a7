// SPDX-License-Identifier: MIT
//
// See inline_chain.h.

#include "conformance/tracer/inline_chain.h"

#include <dwarf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

namespace kmes::conformance::tracing {
namespace {

constexpr size_t kDeepest = 64;
constexpr size_t kLongestName = 40;
constexpr size_t kLongestPath = 4096;
constexpr int kMostReferences = 16;

std::string_view text_of(const char* text) {
    return text == nullptr ? std::string_view()
                           : std::string_view(text, strnlen(text, kLongestPath));
}

std::string base_name(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1)).substr(0, kLongestPath / 16);
}

bool is_ada(int language) {
    return language == DW_LANG_Ada83 || language == DW_LANG_Ada95;
}

// In Go a function's name begins with its package.
bool is_library_of_go(std::string_view name) {
    constexpr std::string_view kPackages[] = {"runtime.",  "runtime/", "sync.",    "sync/",
                                              "internal/", "syscall.", "reflect.", "encoding/",
                                              "bytes.",    "unsafe."};
    return std::any_of(std::begin(kPackages), std::end(kPackages),
                       [&](std::string_view package) { return name.starts_with(package); });
}

// Nim is compiled by way of C. Its lines are those of the .nim file, or else of a file of C with
// such a name as `@mring.nim.c`.
bool is_nim_file(std::string_view path) {
    return path.ends_with(".nim") || path.ends_with(".nim.c") || path.ends_with(".nim.cpp");
}

// Returns `next` of `next__consumer_330` (Nim 1.6) and of `next__consumer_u330` (Nim 2).
std::string_view without_module_of_nim(std::string_view name) {
    const size_t module = name.rfind("__");
    const size_t number = name.rfind('_');
    if (module == name.npos || module == 0 || number <= module + 2) return name;
    std::string_view digits = name.substr(number + 1);
    if (digits.starts_with('u')) digits.remove_prefix(1);
    const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == name.npos;
    return is_number ? name.substr(0, module) : name;
}

// Returns the character that Nim has written as the word at the beginning of `text`, and the length
// of the word. Length 0: there is none.
std::pair<char, size_t> character_of_nim(std::string_view text) {
    constexpr std::pair<std::string_view, char> kWords[] = {
        {"amp", '&'},    {"at", '@'},    {"backslash", '\\'}, {"bar", '|'},   {"colon", ':'},
        {"dollar", '$'}, {"dot", '.'},   {"emark", '!'},      {"eq", '='},    {"gt", '>'},
        {"lt", '<'},     {"minus", '-'}, {"percent", '%'},    {"plus", '+'},  {"qmark", '?'},
        {"roof", '^'},   {"slash", '/'}, {"star", '*'},       {"tilde", '~'}, {"X5B", '['},
        {"X5D", ']'}};
    for (const auto& [word, character] : kWords)
        if (text.starts_with(word)) return {character, word.size()};
    return {};
}

// Returns `==` of `eqeq_`, and `tail=` of `taileq_`. Nim writes special characters as words, and
// then a `_` after the name.
std::string with_operators_of_nim(std::string_view name) {
    if (!name.ends_with('_')) return std::string(name);
    const std::string_view words = name.substr(0, name.size() - 1);
    std::string result;
    for (std::string_view rest = words; !rest.empty();) {
        const auto [character, length] = character_of_nim(rest);
        if (length == 0) {
            const bool is_setter = words.size() > 2 && words.ends_with("eq");
            return is_setter ? std::string(words.substr(0, words.size() - 2)) + "="
                             : std::string(name);
        }
        result += character;
        rest.remove_prefix(length);
    }
    return result.empty() ? std::string(name) : result;
}

// The name without package, receiver and template arguments.
std::string short_name(std::string_view name, int language, bool is_nim) {
    if (is_nim) return with_operators_of_nim(without_module_of_nim(name)).substr(0, kLongestName);
    // LDC writes `core.atomic.atomicLoad!(2, ulong).atomicLoad`, GNAT `ring__next`.
    if (language == DW_LANG_Go || language == DW_LANG_D) name = name.substr(name.rfind('.') + 1);
    if (const size_t at = name.rfind("__"); is_ada(language) && at != name.npos)
        name = name.substr(at + 2);
    const bool is_operator = name.starts_with("operator");
    if (const size_t at = name.find('<'); at != name.npos && at != 0 && !is_operator)
        name = name.substr(0, at);
    return std::string(name.substr(0, kLongestName));
}

bool is_block(int tag) {
    return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

// A scope in which functions are nested. Modules are those of D and Fortran.
bool is_scope_of_functions(int tag) {
    return tag == DW_TAG_subprogram || tag == DW_TAG_namespace || tag == DW_TAG_module ||
           tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
           tag == DW_TAG_interface_type || tag == DW_TAG_union_type ||
           tag == DW_TAG_enumeration_type || is_block(tag);
}

std::optional<Dwarf_Die> referred(Dwarf_Die* die, unsigned attribute) {
    Dwarf_Attribute value;
    Dwarf_Die result;
    if (dwarf_attr_integrate(die, attribute, &value) == nullptr ||
        dwarf_formref_die(&value, &result) == nullptr)
        return std::nullopt;
    return result;
}

std::optional<Dwarf_Word> number_of(Dwarf_Die* die, unsigned attribute) {
    Dwarf_Attribute value;
    Dwarf_Word number = 0;
    if (dwarf_attr(die, attribute, &value) == nullptr || dwarf_formudata(&value, &number) != 0)
        return std::nullopt;
    return number;
}

bool is_atomic_name(std::string_view name) {
    return name.starts_with("atomic") || name.starts_with("Atomic") || name.starts_with("__atomic");
}

enum class Parameter { value, place, object };

Parameter kind_of(Dwarf_Die parameter) {
    std::optional<Dwarf_Die> type = referred(&parameter, DW_AT_type);
    bool is_pointer = false;
    for (int i = 0; i < kMostReferences && type; ++i) {
        switch (dwarf_tag(&*type)) {
            case DW_TAG_typedef:
            case DW_TAG_const_type:
            case DW_TAG_volatile_type:
            case DW_TAG_restrict_type:
            case DW_TAG_atomic_type:
                break;
            case DW_TAG_pointer_type:
            case DW_TAG_reference_type:
                if (is_pointer) return Parameter::object;
                is_pointer = true;
                break;
            case DW_TAG_base_type:
            case DW_TAG_enumeration_type:
            case DW_TAG_unspecified_type:
                return is_pointer ? Parameter::place : Parameter::value;
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
                if (!is_pointer) return Parameter::value;
                return is_atomic_name(text_of(dwarf_diename(&*type))) ? Parameter::place
                                                                      : Parameter::object;
            default:
                return is_pointer ? Parameter::object : Parameter::value;
        }
        type = referred(&*type, DW_AT_type);
    }
    return is_pointer && !type ? Parameter::place : Parameter::value;  // void *
}

// Split DWARF has the functions in a separate file. Only regular files are opened, so nothing
// blocks.
Dwarf_Die with_functions(Dwarf_Die unit) {
    Dwarf_Attribute value;
    const auto text = [&](unsigned attribute) {
        return text_of(dwarf_attr(&unit, attribute, &value) == nullptr ? nullptr
                                                                       : dwarf_formstring(&value));
    };
    std::string name(text(DW_AT_dwo_name));
    if (name.empty()) name = text(DW_AT_GNU_dwo_name);
    if (name.empty()) return unit;
    const std::string folder(text(DW_AT_comp_dir));
    for (const std::string& path : {name, folder + "/" + name}) {
        struct stat info{};
        if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return unit;
    }
    Dwarf_Half version = 0;
    uint8_t type = 0;
    Dwarf_Die functions = {};
    if (dwarf_cu_info(unit.cu, &version, &type, nullptr, &functions, nullptr, nullptr, nullptr) !=
            0 ||
        type != DW_UT_skeleton || functions.addr == nullptr)
        return unit;
    return functions;
}

// The index of the first line at or after the address: libdw sorts them by address.
size_t first_line_at(Dwarf_Lines* lines, size_t count, Dwarf_Addr address) {
    size_t first = 0;
    while (first < count) {
        const size_t middle = first + (count - first) / 2;
        Dwarf_Addr there = 0;
        if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &there) != 0) return count;
        if (there < address)
            first = middle + 1;
        else
            count = middle;
    }
    return first;
}

// Calls `each` for the children until it returns false.
void for_children(Dwarf_Die parent, ReadBudget& budget,
                  const std::function<bool(Dwarf_Die)>& each) {
    Dwarf_Die child;
    if (dwarf_child(&parent, &child) != 0) return;
    do {
        if (!budget.take() || !each(child)) return;
    } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

// DWARF does not say which folders are a compiler's system folders. These are the usual ones, and
// those of libraries that are compiled into a consumer.
bool is_library_file(std::string_view path) {
    constexpr std::string_view kBegins[] = {"/usr/include/",       "/usr/lib/", "/usr/lib64/",
                                            "/usr/local/include/", "/rustc/",   "/usr/src/rustc",
                                            "/usr/local/go/src/"};
    constexpr std::string_view kParts[] = {
        "/include/c++/",
        "/lib/gcc/",
        "/lib/clang/",
        "/sysdeps/",
        "/lib/rustlib/src/rust/library/",
        "/.cargo/registry/src/",
        "/go/pkg/mod/",
        "/include/d/",  // D: GCC and LDC, then DMD, then the sources of both
        "/dmd/import/",
        "/druntime/",
        "/libdruntime/",
        "/phobos/",
        "/adainclude/",
        "/libgfortran/",
        "/fpcsrc/",  // Free Pascal
        "/lib/ocaml/",
        "/lib/nim/",
        "/nim/lib/std/",
        "/nim/lib/system/",
        "/lib/zig/",
        "/zig/lib/std/",
    };
    const auto begins = [&](std::string_view with) { return path.starts_with(with); };
    const auto has = [&](std::string_view part) { return path.find(part) != path.npos; };
    return std::any_of(std::begin(kBegins), std::end(kBegins), begins) ||
           std::any_of(std::begin(kParts), std::end(kParts), has);
}

UnitFunctions::UnitFunctions(Dwarf_Die unit, ReadBudget& budget)
    : unit_(unit), root_(with_functions(unit)), budget_(budget) {
    add_functions(root_);
}

void UnitFunctions::add_functions(Dwarf_Die root) {
    std::vector<std::pair<Dwarf_Die, size_t>> parents = {{root, 0}};
    while (!parents.empty()) {
        const auto [parent, depth] = parents.back();
        parents.pop_back();
        for_children(parent, budget_, [&, depth = depth](Dwarf_Die child) {
            const int tag = dwarf_tag(&child);
            if (tag == DW_TAG_subprogram) add_ranges(child, functions_);
            if (is_scope_of_functions(tag) && depth < kDeepest)
                parents.emplace_back(child, depth + 1);
            return true;
        });
    }
}

void UnitFunctions::add_ranges(Dwarf_Die function, std::vector<Range>& ranges) {
    Dwarf_Addr base = 0;
    Range range;
    range.function = function;
    for (ptrdiff_t at = 0;;) {
        at = dwarf_ranges(&function, at, &base, &range.begin, &range.end);
        if (at <= 0 || !budget_.take()) return;
        if (range.begin < range.end) ranges.push_back(range);
    }
}

bool UnitFunctions::contains(Dwarf_Die scope, Dwarf_Addr address) {
    std::vector<Range> ranges;
    add_ranges(scope, ranges);
    return std::any_of(ranges.begin(), ranges.end(),
                       [address](const Range& range) { return range.has(address); });
}

// The next inlined function that contains the address.
std::optional<Dwarf_Die> UnitFunctions::inlined_in(Dwarf_Die scope, Dwarf_Addr address) {
    for (size_t depth = 0; depth < kDeepest; ++depth) {
        std::optional<Dwarf_Die> inner;
        for_children(scope, budget_, [&](Dwarf_Die child) {
            const int tag = dwarf_tag(&child);
            const bool is_scope = tag == DW_TAG_inlined_subroutine || is_block(tag);
            if (is_scope && contains(child, address)) inner = child;
            return !inner;
        });
        if (!inner || dwarf_tag(&*inner) == DW_TAG_inlined_subroutine) return inner;
        scope = *inner;
    }
    return std::nullopt;
}

// The functions inlined into this one, with their line ranges.
std::vector<UnitFunctions::Range> UnitFunctions::inlined_ranges(Dwarf_Die function,
                                                                std::vector<int>& call_lines) {
    std::vector<Range> ranges;
    std::vector<std::pair<Dwarf_Die, size_t>> scopes = {{function, 0}};
    while (!scopes.empty()) {
        const auto [scope, depth] = scopes.back();
        scopes.pop_back();
        for_children(scope, budget_, [&, depth = depth](Dwarf_Die child) {
            const int tag = dwarf_tag(&child);
            if (tag == DW_TAG_inlined_subroutine) {
                add_ranges(child, ranges);
                call_lines.push_back(
                    static_cast<int>(number_of(&child, DW_AT_call_line).value_or(0)));
            } else if (is_block(tag) && depth < kDeepest) {
                scopes.emplace_back(child, depth + 1);
            }
            return true;
        });
    }
    return ranges;
}

// Counts the lines of the function's own code, without inlined code. A large number: not known.
int UnitFunctions::count_lines(Dwarf_Die function, const char* file, int line_known) {
    constexpr int kUnknown = std::numeric_limits<int>::max();
    const Dwarf_Off offset = dwarf_dieoffset(&function);
    if (const auto known = line_counts_.find(offset); known != line_counts_.end())
        return known->second;
    Dwarf_Lines* lines = nullptr;
    size_t count = 0;
    if (file == nullptr || dwarf_getsrclines(&unit_, &lines, &count) != 0) return kUnknown;
    std::vector<int> own = {line_known};  // small inlined functions often begin within a line
    const std::vector<Range> inlined = inlined_ranges(function, own);
    std::vector<Range> ranges;
    add_ranges(function, ranges);
    const auto is_inlined = [&](Dwarf_Addr address) {
        return std::any_of(inlined.begin(), inlined.end(), [&](const Range& range) {
            return budget_.take() && range.has(address);
        });
    };
    for (const Range& range : ranges) {
        // If several lines have one address, the last has the code.
        Dwarf_Addr before = 0;
        int own_before = 0;
        for (size_t i = first_line_at(lines, count, range.begin); i < count; ++i) {
            Dwarf_Line* line = dwarf_onesrcline(lines, i);
            Dwarf_Addr address = 0;
            int number = 0;
            if (!budget_.take() || dwarf_lineaddr(line, &address) != 0 || address >= range.end ||
                dwarf_lineno(line, &number) != 0)
                break;
            if (address != before) own.push_back(own_before);
            before = address;
            const bool is_own = text_of(dwarf_linesrc(line, nullptr, nullptr)) == text_of(file) &&
                                !is_inlined(address);
            own_before = is_own ? number : 0;
        }
        own.push_back(own_before);
    }
    std::erase(own, 0);
    const auto [least, most] = std::minmax_element(own.begin(), own.end());
    const int64_t span = own.empty() ? kUnknown : int64_t{*most} - *least + 1;
    return line_counts_[offset] = static_cast<int>(std::min<int64_t>(span, kUnknown));
}

bool UnitFunctions::takes_place(Dwarf_Die function) {
    bool has_place = false;
    bool has_object = false;
    std::optional<Dwarf_Die> origin = function;
    for (int i = 0; i < kMostReferences && origin; ++i) {
        Dwarf_Attribute value;
        const bool is_instance = dwarf_attr(&*origin, DW_AT_abstract_origin, &value) != nullptr;
        Dwarf_Die next;
        if (!is_instance || dwarf_formref_die(&value, &next) == nullptr) break;
        origin = next;
    }
    for_children(*origin, budget_, [&](Dwarf_Die child) {
        if (dwarf_tag(&child) != DW_TAG_formal_parameter) return true;
        const Parameter kind = kind_of(child);
        has_place |= kind == Parameter::place;
        has_object |= kind == Parameter::object;
        return true;
    });
    return has_place && !has_object;
}

const char* UnitFunctions::file_of(Dwarf_Word index) {
    Dwarf_Files* files = nullptr;
    size_t count = 0;
    if (dwarf_getsrcfiles(&root_, &files, &count) != 0 &&
        dwarf_getsrcfiles(&unit_, &files, &count) != 0)
        return nullptr;
    return index < count ? dwarf_filesrc(files, index, nullptr, nullptr) : nullptr;
}

SourceFrame UnitFunctions::frame(Dwarf_Die function, const char* file, int line, int column) {
    SourceFrame result;
    const std::string_view name = text_of(dwarf_diename(&function));
    // A unit of split DWARF may have its language only in the separate file.
    const int language = std::max(dwarf_srclang(&unit_), dwarf_srclang(&root_));
    const bool is_go = language == DW_LANG_Go;
    result.function = short_name(name, language, is_nim_file(text_of(file)));
    result.file = base_name(text_of(file));
    result.is_library = is_library_file(text_of(file)) || (is_go && is_library_of_go(name));
    result.line = line;
    result.column = column;
    const int own_lines = count_lines(function, file, line);
    result.is_short = own_lines <= SourceFrame::kAccessorLines;
    result.is_thin = own_lines <= SourceFrame::kWrapperLines;
    result.takes_place = takes_place(function);
    return result;
}

std::vector<SourceFrame> UnitFunctions::chain_at(Dwarf_Addr address) {
    const Range* least = nullptr;
    for (const Range& range : functions_) {
        if (range.has(address) &&
            (least == nullptr || range.end - range.begin < least->end - least->begin))
            least = &range;
    }
    if (least == nullptr) return {};
    std::vector<Dwarf_Die> scopes = {least->function};
    while (scopes.size() < kDeepest) {
        const std::optional<Dwarf_Die> inner = inlined_in(scopes.back(), address);
        if (!inner) break;
        scopes.push_back(*inner);
    }
    Dwarf_Line* line = dwarf_getsrc_die(&unit_, address);
    if (line == nullptr) return {};
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    int number = 0;
    int column = 0;
    dwarf_lineno(line, &number);
    dwarf_linecol(line, &column);
    std::vector<SourceFrame> chain;
    for (; !scopes.empty(); scopes.pop_back()) {
        if (file == nullptr || number <= 0) break;
        chain.push_back(frame(scopes.back(), file, number, column));
        file = file_of(number_of(&scopes.back(), DW_AT_call_file).value_or(~Dwarf_Word{0}));
        number = static_cast<int>(number_of(&scopes.back(), DW_AT_call_line).value_or(0));
        column = static_cast<int>(number_of(&scopes.back(), DW_AT_call_column).value_or(0));
    }
    return chain;
}

}  // namespace kmes::conformance::tracing
