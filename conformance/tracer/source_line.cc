// SPDX-License-Identifier: MIT
//
// Source lines by libdw. Knows no processes.

#include "conformance/tracer/source_line.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

namespace kmes::conformance::tracing {
namespace {

constexpr Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

// One file with its debug information, wherever libdw finds that.
class DebugFile {
  public:
    explicit DebugFile(const std::string& path) : files_(dwfl_begin(&kCallbacks)) {
        if (files_ == nullptr) return;
        dwfl_report_begin(files_);
        module_ = dwfl_report_offline(files_, path.c_str(), path.c_str(), -1);
        dwfl_report_end(files_, nullptr, nullptr);
    }
    ~DebugFile() {
        if (files_ != nullptr) dwfl_end(files_);
    }
    DebugFile(const DebugFile&) = delete;
    DebugFile& operator=(const DebugFile&) = delete;

    std::string line_at(uint64_t file_offset) const {
        if (module_ == nullptr) return "";
        GElf_Addr bias = 0;
        Elf* elf = dwfl_module_getelf(module_, &bias);
        const auto address = elf == nullptr ? std::nullopt : loaded_at(elf, file_offset);
        if (!address) return "";
        int number = 0;
        const char* name = nullptr;
        if (Dwfl_Line* line = dwfl_module_getsrc(module_, *address + bias))
            name = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
        if (name == nullptr) name = search_units(*address + bias, number);
        if (name == nullptr || number == 0) return "";
        const std::string file = name;
        return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), number);
    }

  private:
    // Unit by unit: clang and rustc write no table of the addresses that each of them has
    // (.debug_aranges), by which libdw finds the right one.
    const char* search_units(GElf_Addr address, int& number) const {
        GElf_Addr bias = 0;
        for (Dwarf_Die* unit = dwfl_module_nextcu(module_, nullptr, &bias); unit != nullptr;
             unit = dwfl_module_nextcu(module_, unit, &bias)) {
            if (dwarf_haspc(unit, address - bias) <= 0) continue;
            Dwarf_Line* line = dwarf_getsrc_die(unit, address - bias);
            if (line == nullptr || dwarf_lineno(line, &number) != 0) continue;
            return dwarf_linesrc(line, nullptr, nullptr);
        }
        return nullptr;
    }

    static std::optional<uint64_t> loaded_at(Elf* elf, uint64_t file_offset) {
        size_t count = 0;
        if (elf_getphdrnum(elf, &count) != 0) return std::nullopt;
        for (size_t i = 0; i < count; ++i) {
            GElf_Phdr segment;
            if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
            if (segment.p_type == PT_LOAD && file_offset - segment.p_offset < segment.p_filesz)
                return file_offset - segment.p_offset + segment.p_vaddr;
        }
        return std::nullopt;
    }

    Dwfl* files_ = nullptr;
    Dwfl_Module* module_ = nullptr;
};

}  // namespace

std::string source_line_at(const std::string& path, uint64_t file_offset) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) return "";
    static std::mutex mutex;
    // A file that has been built again is another one.
    static std::map<std::tuple<dev_t, ino_t, int64_t, long>, std::unique_ptr<DebugFile>> files;
    const std::lock_guard lock(mutex);
    auto& file = files[{info.st_dev, info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec}];
    if (!file) file = std::make_unique<DebugFile>(path);
    return file->line_at(file_offset);
}

}  // namespace kmes::conformance::tracing
