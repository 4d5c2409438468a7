// SPDX-License-Identifier: MIT
//
// The chain of inlined functions at an address of a compilation unit, by libdw. Every byte of the
// debug information is untrusted: all walks share one budget. Knows no files and no processes.

#ifndef CONFORMANCE_TRACER_INLINE_CHAIN_H_
#define CONFORMANCE_TRACER_INLINE_CHAIN_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance::tracing {

// A place in the source, and the function that it is in.
struct SourceFrame {
    std::string function;  // its own name: "drain"; empty: not known
    std::string file;      // "ring.cc"
    int line = 0;
    int column = 0;           // 0: not known
    bool is_library = false;  // of a compiler or of a system header
    bool is_short = false;    // its lines are at most kAccessorLines
    bool is_thin = false;     // its lines are at most kWrapperLines
    // It takes a pointer to a number, to an atomic or to bytes, and no pointer to another object.
    bool takes_place = false;

    static constexpr int kAccessorLines = 10;
    static constexpr int kWrapperLines = 6;
};

// Whether the source file is in a folder of a compiler or of a library.
bool is_library_file(std::string_view path);

// The number of items that may still be read from one file. Bounds the work on hostile debug
// information.
class ReadBudget {
  public:
    bool take() { return left_ != 0 && left_-- != 0; }

  private:
    static constexpr uint64_t kItems = 8'000'000;
    uint64_t left_ = kItems;
};

// The functions of one compilation unit.
class UnitFunctions {
  public:
    // `unit` has the line table. Its functions may be in a separate file (split DWARF).
    UnitFunctions(Dwarf_Die unit, ReadBudget& budget);
    // Returns the innermost function first; empty if nothing is known of the address.
    std::vector<SourceFrame> chain_at(Dwarf_Addr address);

  private:
    struct Range {
        Dwarf_Addr begin = 0;
        Dwarf_Addr end = 0;
        Dwarf_Die function = {};
        bool has(Dwarf_Addr address) const { return address - begin < end - begin; }
    };
    void add_functions(Dwarf_Die root);
    void add_ranges(Dwarf_Die function, std::vector<Range>& ranges);
    bool contains(Dwarf_Die scope, Dwarf_Addr address);
    std::optional<Dwarf_Die> inlined_in(Dwarf_Die scope, Dwarf_Addr address);
    std::vector<Range> inlined_ranges(Dwarf_Die function, std::vector<int>& call_lines);
    int count_lines(Dwarf_Die function, const char* file, int line_known);
    bool takes_place(Dwarf_Die function);
    const char* file_of(Dwarf_Word index);
    SourceFrame frame(Dwarf_Die function, const char* file, int line, int column);

    Dwarf_Die unit_;
    Dwarf_Die root_;
    ReadBudget& budget_;
    std::vector<Range> functions_;
    std::map<Dwarf_Off, int> line_counts_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_INLINE_CHAIN_H_
