// SPDX-License-Identifier: MIT
//
// See calls.h.

#include "conformance/tracer/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "conformance/tracer/backtrace.h"
#include "conformance/tracer/code.h"
#include "conformance/tracer/source_line.h"
#include "conformance/tracer/symbols.h"

namespace kmes::conformance {

using namespace tracing;

namespace {

constexpr std::size_t kMostCallers = 16;

// Whether the file is a shared object in a system folder.
bool is_system_library(std::string_view path) {
    constexpr std::string_view kFolders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
    if (path == "[vdso]") return true;
    return path.substr(path.rfind('/') + 1).find(".so") != path.npos &&
           std::any_of(std::begin(kFolders), std::end(kFolders),
                       [&](std::string_view folder) { return path.starts_with(folder); });
}

CodeFrame from_source(SourceFrame&& source, bool is_library) {
    CodeFrame frame;
    frame.function = std::move(source.function);
    frame.place = fmt::format("{}:{}", source.file, source.line);
    frame.id = fmt::format("{}\n{}:{}", frame.function, frame.place, source.column);
    frame.body = fmt::format("{}\n{}", frame.function, source.file);
    frame.has_source = true;
    frame.is_library = is_library || source.is_library;
    frame.is_short = source.is_short;
    frame.is_thin = source.is_thin;
    frame.takes_place = source.takes_place;
    return frame;
}

// A frame without debug information.
CodeFrame from_symbol(const MapsEntry& entry, const std::string& file, uint64_t offset) {
    CodeFrame frame;
    frame.place = symbol_at(file, offset);
    frame.function = frame.place.substr(0, frame.place.rfind('+'));
    if (frame.place.empty())
        frame.place = fmt::format("{}+{:#x}", entry.path.substr(entry.path.rfind('/') + 1), offset);
    frame.id = frame.place;
    frame.is_library = is_system_library(entry.path);
    return frame;
}

// Returns false if the address is in no file.
bool add_frames(const ModuleTable& modules, uint64_t address, std::vector<CodeFrame>& frames) {
    const MapsEntry* entry = modules.find(address);
    if (entry == nullptr || !entry->executable || entry->file.inode == 0) return false;
    const std::string file = modules.file_of(*entry);
    if (file.empty()) return false;
    const uint64_t offset = address - entry->start + entry->offset_bytes;
    std::vector<SourceFrame> chain = source_frames_at(file, offset);
    for (SourceFrame& each : chain)
        frames.push_back(from_source(std::move(each), is_system_library(entry->path)));
    if (!chain.empty()) return true;
    frames.push_back(from_symbol(*entry, file, offset));
    const std::string line = source_line_at(file, offset);
    if (line.empty()) return true;
    frames.back().place = frames.back().id = line;
    frames.back().has_source = true;
    frames.back().is_library |= is_library_at(file, offset);
    return true;
}

// Whether the frame can be an accessor, so that its caller matters.
bool may_be_accessor(const CodeFrame& frame) {
    return frame.is_library || frame.is_short || !frame.has_source;
}

}  // namespace

CallReader::CallReader() = default;
CallReader::~CallReader() = default;

std::vector<CodeFrame> CallReader::frames(const CodePlace& code,
                                          const std::shared_ptr<const StackSnapshot>& stack) {
    std::vector<CodeFrame> frames;
    const auto modules = code.details ? code.details->modules() : nullptr;
    if (!modules || !add_frames(*modules, code.instruction_pointer, frames)) {
        frames.emplace_back();
        if (!code.resolved().module.empty())
            frames.back().place = fmt::format(
                "{}+{:#x}", code.resolved().module.substr(code.resolved().module.rfind('/') + 1),
                code.module_offset);
        return frames;
    }
    if (!stack || !may_be_accessor(frames.back())) return frames;
    if (!unwinder_ || unwinder_->modules() != modules.get())
        unwinder_ = std::make_unique<SnapshotUnwinder>(modules);
    for (const uint64_t address : unwinder_->callers(*stack, kMostCallers)) {
        // Go back into the call, which may be the last instruction of its function.
        if (!add_frames(*modules, address - 1, frames) || !may_be_accessor(frames.back())) break;
    }
    return frames;
}

void AuthorsFrames::add_access(const std::vector<CodeFrame>& frames, const std::string& field) {
    for (const CodeFrame& frame : frames) {
        if (!field.empty()) fields_of_[frame.id].insert(field);
        if (!frame.body.empty()) bodies_.insert(frame.body);
    }
}

std::size_t AuthorsFrames::of_access(const std::vector<CodeFrame>& frames) const {
    return index_of(frames, false);
}

std::size_t AuthorsFrames::of_call(const std::vector<CodeFrame>& frames) const {
    return index_of(frames, true);
}

std::size_t AuthorsFrames::index_of(const std::vector<CodeFrame>& frames, bool is_call) const {
    const auto is_of_several_places = [&](const CodeFrame& frame) {
        const auto fields = fields_of_.find(frame.id);
        return fields != fields_of_.end() && fields->second.size() > 1;
    };
    std::size_t first_own = frames.size();
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const CodeFrame& frame = frames[i];
        if (frame.is_library) continue;
        const bool makes_call = is_call && first_own == frames.size();
        // A source line of the program is better than a symbol.
        if (first_own == frames.size() || (frame.has_source && !frames[first_own].has_source))
            first_own = i;
        if (!frame.has_source) continue;
        const bool is_accessor =
            frame.is_short && (frame.takes_place || is_of_several_places(frame));
        const bool is_wrapper = makes_call && frame.is_thin && !bodies_.contains(frame.body);
        if (!is_accessor && !is_wrapper) return i;
    }
    return first_own == frames.size() ? 0 : first_own;
}

std::string caller_text(const CodePlace& code, const std::shared_ptr<const StackSnapshot>& stack) {
    const std::vector<CodeFrame> frames = CallReader().frames(code, stack);
    const std::size_t index = AuthorsFrames().of_access(frames);
    return index == 0 ? "" : ", for " + frame_text(frames, index);
}

std::string instruction_text(const CodePlace& code,
                             const std::shared_ptr<const StackSnapshot>& stack) {
    return code.describe() + caller_text(code, stack);
}

std::string frame_text(const std::vector<CodeFrame>& frames, std::size_t index) {
    const CodeFrame& frame = frames[index];
    std::string text = frame.place;
    if (frame.has_source && !frame.function.empty())
        text = fmt::format("{}() {}", frame.function, frame.place);
    if (index != 0 && !frames[index - 1].function.empty())
        text += fmt::format(" (via {})", frames[index - 1].function);
    return text;
}

}  // namespace kmes::conformance
