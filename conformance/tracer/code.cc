// SPDX-License-Identifier: MIT
//
// The table of instructions, and their descriptions. Knows /proc and ELF files, no stops and no
// buffers.

#include "conformance/tracer/code.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "conformance/tracer/memory.h"
#include "conformance/tracer/source_line.h"
#include "conformance/tracer/symbols.h"

namespace kmes::conformance {

const CodeText& CodePlace::resolved() const {
    static const CodeText kNothing;
    return details ? details->resolved() : kNothing;
}

std::string CodePlace::where() const {
    const CodeText& words = resolved();
    std::string text =
        words.module.empty()
            ? fmt::format("{:#x}", instruction_pointer)
            : fmt::format("{}+{:#x}", words.module.substr(words.module.rfind('/') + 1),
                          module_offset);
    if (!words.symbol.empty() && !words.source.empty()) {
        text += fmt::format(" ({}, {})", words.symbol, words.source);
    } else if (!words.symbol.empty() || !words.source.empty()) {
        text += fmt::format(" ({}{})", words.symbol, words.source);
    }
    return text;
}

std::string CodePlace::describe() const {
    const CodeText& words = resolved();
    if (words.text.empty() && words.module.empty()) return where() + ", where no code is";
    return fmt::format("`{}` at {}", words.text.empty() ? "?" : words.text, where());
}

namespace tracing {
namespace {

std::shared_ptr<const ModuleTable> read_modules(pid_t tid) {
    auto modules = std::make_shared<ModuleTable>();
    modules->entries = read_maps(tid);
    modules->root = "/proc/" + std::to_string(tid) + "/root";
    struct stat theirs{};
    struct stat ours{};
    modules->root_is_ours = stat(modules->root.c_str(), &theirs) == 0 && stat("/", &ours) == 0 &&
                            theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
    return modules;
}

bool is_still(const Instruction& known, const uint8_t* bytes, size_t readable_bytes) {
    return known.is_valid && readable_bytes >= known.length_bytes &&
           memcmp(known.bytes, bytes, known.length_bytes) == 0;
}

}  // namespace

const MapsEntry* ModuleTable::find(uint64_t address) const {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [address](const MapsEntry& entry) {
            return address - entry.start < entry.end - entry.start;
        });
    return found == entries.end() ? nullptr : &*found;
}

std::string ModuleTable::file_of(const MapsEntry& entry) const {
    const auto is_there = [](const std::string& path) {
        struct stat info{};
        return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
               access(path.c_str(), R_OK) == 0;
    };
    std::string path = root + entry.path;
    if (is_there(path)) return path;
    return root_is_ours && is_there(entry.path) ? entry.path : "";
}

const CodeText& CodeDetails::resolved() const {
    std::call_once(once_, [this] {
        text_.text = text_of(instruction_, address_);
        const MapsEntry* entry = modules_ ? modules_->find(address_) : nullptr;
        if (entry == nullptr) return;
        text_.module = entry->path;
        if (entry->file.inode == 0) return;
        const std::string file = modules_->file_of(*entry);
        if (file.empty()) return;
        const uint64_t offset = address_ - entry->start + entry->offset_bytes;
        text_.symbol = symbol_at(file, offset);
        text_.source = source_line_at(file, offset);
    });
    return text_;
}

Routine Code::routine(RoutinePages& pages) const {
    if (!is_asked_) routine_ = pages.routine_for(instruction());
    is_asked_ = true;
    return routine_;
}

std::shared_ptr<const Code> CodeTable::at(pid_t tid, uint64_t address) {
    uint8_t bytes[kLongestInstruction];
    const size_t got = read_memory_prefix(tid, address, bytes, sizeof bytes);
    std::shared_ptr<const Code>& known = entries_[address];
    if (known && is_still(known->instruction(), bytes, got)) return known;
    if (!modules_ || modules_->find(address) == nullptr) {
        modules_ = read_modules(tid);
    }
    auto code = std::make_shared<Code>();
    const MapsEntry* module = modules_->find(address);
    code->place.instruction_pointer = address;
    if (module != nullptr)
        code->place.module_offset = address - module->start + module->offset_bytes;
    code->place.details =
        std::make_shared<CodeDetails>(decode_instruction(bytes, got), address, modules_);
    code->place.length_bytes = code->instruction().length_bytes;
    known = std::move(code);
    return known;
}

void CodeTable::forget() {
    entries_.clear();
    modules_.reset();
}

}  // namespace tracing
}  // namespace kmes::conformance
