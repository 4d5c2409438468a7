// SPDX-License-Identifier: MIT
//
// A reader for the symbol tables of 64-bit ELF files. Every byte of the file is untrusted. Knows no
// processes.

#include "conformance/tracer/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace kmes::conformance::tracing {
namespace {

// The symbol table of a large binary has a few MiB. A larger one is not read.
constexpr uint64_t kLargestTableBytes = 64u << 20;

class ElfFile {
  public:
    explicit ElfFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~ElfFile() {
        if (fd_ >= 0) close(fd_);
    }
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    // Reads `count` structures at `offset`; returns nothing if it cannot.
    template <typename T>
    std::vector<T> read_array(uint64_t offset, uint64_t count) const {
        if (fd_ < 0 || count > kLargestTableBytes / sizeof(T)) return {};
        std::vector<T> result(count);
        const size_t size_bytes = count * sizeof(T);
        if (pread(fd_, result.data(), size_bytes, static_cast<off_t>(offset)) !=
            static_cast<ssize_t>(size_bytes)) {
            return {};
        }
        return result;
    }

  private:
    int fd_;
};

std::optional<uint64_t> virtual_address(const ElfFile& file, const Elf64_Ehdr& header,
                                        uint64_t file_offset) {
    for (const Elf64_Phdr& segment : file.read_array<Elf64_Phdr>(header.e_phoff, header.e_phnum)) {
        if (segment.p_type == PT_LOAD && file_offset - segment.p_offset < segment.p_filesz) {
            return file_offset - segment.p_offset + segment.p_vaddr;
        }
    }
    return std::nullopt;
}

std::string find_in_table(const ElfFile& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                          uint64_t address) {
    for (const Elf64_Sym& symbol :
         file.read_array<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
            address - symbol.st_value >= symbol.st_size)
            continue;
        const std::vector<char> text = file.read_array<char>(names.sh_offset, names.sh_size);
        if (symbol.st_name >= text.size()) return "";
        const char* name = text.data() + symbol.st_name;
        const std::string own(name, strnlen(name, text.size() - symbol.st_name));
        return fmt::format("{}+{:#x}", as_written(own), address - symbol.st_value);
    }
    return "";
}

// Returns `FPSYSCALL` of `SYSTEM_$$_FPSYSCALL$INT64$$INT64`, and `NEXT` of
// `RING$_$TRING_$__$$_NEXT$$BOOLEAN`: Free Pascal adds unit, class and types to a name. Empty:
// another name.
std::string name_of_pascal(std::string_view symbol) {
    constexpr std::string_view kBeforeName = "_$$_";
    const std::size_t at = symbol.rfind(kBeforeName);
    if (at == std::string_view::npos || at == 0) return "";
    const std::string_view name = symbol.substr(at + kBeforeName.size());
    return std::string(name.substr(0, name.find('$')));
}

}  // namespace

std::string as_written(const std::string& symbol) {
    // A demangled name can be far longer than its symbol. Longer names are cut.
    constexpr size_t kLongestName = 1024;
    constexpr size_t kLongestText = 160;
    if (!symbol.starts_with("_Z")) {
        const std::string pascal = name_of_pascal(symbol);
        return pascal.empty() ? symbol : pascal;
    }
    if (symbol.size() > kLongestName) return symbol;
    int status = -1;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
    if (status != 0 || text == nullptr || strlen(text.get()) > kLongestText) return symbol;
    std::string written = text.get();
    // Rust's own names end in a hash.
    constexpr std::string_view kHash = "::h0123456789abcdef";
    if (written.size() <= kHash.size()) return written;
    const std::string_view end = std::string_view(written).substr(written.size() - kHash.size());
    const bool is_hash = end.starts_with("::h") &&
                         end.find_first_not_of("0123456789abcdef", 3) == std::string_view::npos;
    if (is_hash) written.resize(written.size() - kHash.size());
    return written;
}

std::string symbol_at(const std::string& path, uint64_t file_offset) {
    const ElfFile file(path);
    const auto headers = file.read_array<Elf64_Ehdr>(0, 1);
    if (headers.empty() || memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        headers[0].e_ident[EI_CLASS] != ELFCLASS64) {
        return "";
    }
    const auto address = virtual_address(file, headers[0], file_offset);
    if (!address) return "";
    const auto sections = file.read_array<Elf64_Shdr>(headers[0].e_shoff, headers[0].e_shnum);
    for (const Elf64_Shdr& section : sections) {
        const bool is_table = section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
        if (!is_table || section.sh_link >= sections.size()) continue;
        std::string found = find_in_table(file, section, sections[section.sh_link], *address);
        if (!found.empty()) return found;
    }
    return "";
}

}  // namespace kmes::conformance::tracing
