// SPDX-License-Identifier: MIT
//
// Prints the dictionary of the script targets from the grammar's table (props/script/script.h).
// With a file, compares the file instead. If it differs, prints the command that writes it, and
// exits with 1.
//
//   make_dictionary [FILE]
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "props/script/script.h"

namespace {

using namespace kmes::props;

std::set<std::string> words() {
    std::set<std::string> words = {std::string(kScriptHeader) + "\\x0A", "start ", "\\x0A", "#"};
    for (std::size_t v = 0; v < kVerbCount; ++v) {
        const VerbRule& rule = rule_of(static_cast<Verb>(v));
        words.insert(std::string(rule.name));
        if (rule.has_type) words.insert(" type=\\\"\\\\x00\\\"");
        for (const KeyRule& key : rule.keys) {
            words.insert(" " + std::string(name_of(key.key)) + "=");
            for (const std::string_view word : words_of(key.key))
                words.insert(" " + std::string(name_of(key.key)) + "=" + std::string(word));
            if (key.maximum > 0xffff) words.insert("=" + std::to_string(key.maximum));
        }
    }
    return words;
}

std::string dictionary() {
    std::string text =
        "# SPDX-License-Identifier: MIT\n"
        "# Made by `bazel run //fuzz:make_dictionary` from the grammar of scripts.\n";
    for (const std::string& word : words()) text += "\"" + word + "\"\n";
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) {
        std::fprintf(stderr, "usage: make_dictionary [FILE]\n");
        return 2;
    }
    const std::string expected = dictionary();
    if (argc == 1) {
        std::fputs(expected.c_str(), stdout);
        return 0;
    }
    std::ifstream stream(argv[1], std::ios::binary);
    const std::string found((std::istreambuf_iterator<char>(stream)),
                            std::istreambuf_iterator<char>());
    if (found == expected) return 0;
    std::fprintf(stderr, "%s does not match the grammar; bazel run //fuzz:make_dictionary >%s\n",
                 argv[1], argv[1]);
    return 1;
}
