// SPDX-License-Identifier: MIT
//
// Saves failed scripts (save.h).
#include "props/script/save.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace kmes::props {
namespace {

// FNV-1a, 64 bits: the content determines the name of the file.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325ull;
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
    return hash;
}

}  // namespace

std::string save_failed_script(const Script& script, std::string_view name) {
    const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    if (folder == nullptr || *folder == '\0') return "";
    const std::string text = print_script(script);
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx",
                  static_cast<unsigned long long>(hash_of(text)));
    const std::string path = std::string(folder) + "/" + std::string(name) + "-" + digits + ".kmes";
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file ? path : "";
}

std::string failed_script_text(const Script& script, std::string_view name) {
    const std::string path = save_failed_script(script, name);
    std::string text = print_script(script);
    if (path.empty()) {
        return text + "replay it: tools/kmes replay FILE, with the lines above in FILE\n";
    }
    return text + "replay it: tools/kmes replay " + path +
           "\n(or with the lines above in a file; Bazel moves that one to the test's "
           "test.outputs)\n";
}

}  // namespace kmes::props
