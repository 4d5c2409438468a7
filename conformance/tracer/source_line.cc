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
#include <utility>

namespace kmes::conformance::tracing {
namespace {

constexpr Dwfl_Callbacks kFileCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

// One file with its debug information, wherever libdw finds it.
class DebugFile {
  public:
    explicit DebugFile(const std::string& path) : files_(dwfl_begin(&kFileCallbacks)) {
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
        const auto [path, number] = line_of(file_offset);
        if (path.empty() || number == 0) return "";
        return fmt::format("{}:{}", path.substr(path.rfind('/') + 1), number);
    }

    bool is_library_at(uint64_t file_offset) const {
        return is_library_file(line_of(file_offset).first);
    }

    std::vector<SourceFrame> frames_at(uint64_t file_offset) {
        constexpr size_t kKept = 100'000;
        const auto address = address_of(file_offset);
        if (!address) return {};
        if (const auto known = frames_.find(*address); known != frames_.end()) return known->second;
        std::vector<SourceFrame> frames = find_frames(*address);
        if (frames_.size() < kKept) frames_[*address] = frames;
        return frames;
    }

  private:
    // The address in libdwfl's layout of the file.
    std::optional<GElf_Addr> address_of(uint64_t file_offset) const {
        if (module_ == nullptr) return std::nullopt;
        GElf_Addr bias = 0;
        Elf* elf = dwfl_module_getelf(module_, &bias);
        const auto address = elf == nullptr ? std::nullopt : loaded_at(elf, file_offset);
        return address ? std::optional(*address + bias) : std::nullopt;
    }

    // The file, with its path, and the line in it; an empty path: not known.
    std::pair<std::string, int> line_of(uint64_t file_offset) const {
        const auto address = address_of(file_offset);
        if (!address) return {};
        int number = 0;
        const char* name = nullptr;
        if (Dwfl_Line* line = dwfl_module_getsrc(module_, *address))
            name = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
        if (name == nullptr) name = search_units(*address, number);
        return {name == nullptr ? "" : name, number};
    }

    std::vector<SourceFrame> find_frames(GElf_Addr address) {
        GElf_Addr bias = 0;
        if (Dwarf_Die* unit = dwfl_module_addrdie(module_, address, &bias)) {
            std::vector<SourceFrame> frames = functions_of(*unit).chain_at(address - bias);
            if (!frames.empty()) return frames;
        }
        for (Dwarf_Die* unit = dwfl_module_nextcu(module_, nullptr, &bias); unit != nullptr;
             unit = dwfl_module_nextcu(module_, unit, &bias)) {
            if (dwarf_haspc(unit, address - bias) <= 0) continue;
            std::vector<SourceFrame> frames = functions_of(*unit).chain_at(address - bias);
            if (!frames.empty()) return frames;
        }
        return {};
    }

    UnitFunctions& functions_of(Dwarf_Die unit) {
        return units_.try_emplace(dwarf_dieoffset(&unit), unit, budget_).first->second;
    }

    // Searches unit by unit: clang and rustc write no address table of the units (.debug_aranges),
    // which libdw would use.
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
    ReadBudget budget_;
    std::map<Dwarf_Off, UnitFunctions> units_;
    std::map<GElf_Addr, std::vector<SourceFrame>> frames_;
};

std::mutex reading;

// Call it with `reading` locked. Returns nullptr if there is no such file.
DebugFile* debug_file(const std::string& path) {
    struct stat info{};
    // (Opening anything but a regular file might block.)
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
    // A rebuilt file counts as another file.
    static std::map<std::tuple<dev_t, ino_t, int64_t, long>, std::unique_ptr<DebugFile>> files;
    auto& file = files[{info.st_dev, info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec}];
    if (!file) file = std::make_unique<DebugFile>(path);
    return file.get();
}

}  // namespace

std::string source_line_at(const std::string& path, uint64_t file_offset) {
    const std::lock_guard lock(reading);
    const DebugFile* file = debug_file(path);
    return file == nullptr ? "" : file->line_at(file_offset);
}

bool is_library_at(const std::string& path, uint64_t file_offset) {
    const std::lock_guard lock(reading);
    const DebugFile* file = debug_file(path);
    return file != nullptr && file->is_library_at(file_offset);
}

std::vector<SourceFrame> source_frames_at(const std::string& path, uint64_t file_offset) {
    const std::lock_guard lock(reading);
    DebugFile* file = debug_file(path);
    return file == nullptr ? std::vector<SourceFrame>() : file->frames_at(file_offset);
}

}  // namespace kmes::conformance::tracing
