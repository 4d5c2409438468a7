// SPDX-License-Identifier: MIT
//
// Writes a script as text. Each script has one spelling, from which parse.cc reads an equal script.
#include <algorithm>

#include "props/script/script.h"

namespace kmes::props {
namespace {

bool prints_bare(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

std::string type_text(const std::string& type) {
    if (!type.empty() && std::all_of(type.begin(), type.end(), prints_bare)) return type;
    static const char digits[] = "0123456789abcdef";
    std::string text = "\"";
    for (char c : type) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            text += {'\\', c};
        } else if (byte >= 0x20 && byte < 0x7F) {
            text += c;
        } else {
            text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return text + '"';
}

}  // namespace

std::string print_operation(const Operation& operation) {
    const VerbRule& rule = rule_of(operation.verb);
    std::string text = operation.is_started ? "start " : "";
    text += rule.name;
    for (const KeyRule& key : rule.keys) {
        const std::uint64_t value = operation[key.key];
        if (value == key.standard) continue;
        const std::vector<std::string_view>& words = words_of(key.key);
        text += ' ';
        text += name_of(key.key);
        text += '=';
        if (value < words.size()) {
            text += words[value];
        } else {
            text += std::to_string(value);
        }
    }
    if (rule.has_type && operation.type != kStandardType)
        text += " type=" + type_text(operation.type);
    return text;
}

std::string print_script(const Script& script) {
    std::string text(kScriptHeader);
    text += '\n';
    for (const Operation& operation : script.operations) text += print_operation(operation) + '\n';
    return text;
}

}  // namespace kmes::props
