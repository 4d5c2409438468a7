// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/sources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "props/script/generate.h"

namespace kmes::identity {
namespace {

std::vector<std::filesystem::path> files_of(const std::string& path) {
    namespace fs = std::filesystem;
    if (!fs::exists(path)) throw std::runtime_error("no such file or folder: " + path);
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const auto& entry : fs::recursive_directory_iterator(path))
            if (entry.is_regular_file()) files.push_back(entry.path());
        std::sort(files.begin(), files.end());
    } else {
        files.emplace_back(path);
    }
    return files;
}

}  // namespace

std::vector<Named> read_scripts(const std::vector<std::string>& paths, std::uint64_t* others) {
    std::vector<Named> scripts;
    *others = 0;
    for (const std::string& path : paths) {
        for (const auto& file : files_of(path)) {
            std::ifstream stream(file, std::ios::binary);
            const std::string text{std::istreambuf_iterator<char>(stream), {}};
            auto parsed = props::parse_script(text);
            if (auto* script = std::get_if<props::Script>(&parsed))
                scripts.push_back({file.string(), std::move(*script)});
            else
                ++*others;
        }
    }
    return scripts;
}

Named random_script(std::uint64_t seed, std::size_t steps) {
    const auto profile = static_cast<props::Profile>(seed % props::kProfileCount);
    return {"seed " + std::to_string(seed), props::generate(seed, steps, profile)};
}

}  // namespace kmes::identity
