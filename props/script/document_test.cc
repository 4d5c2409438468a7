// SPDX-License-Identifier: MIT
//
// docs/script-format.md cannot go stale: it has each verb and key with its range and its default.
// Its scripts are valid, and its examples are correct.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "props/script/script.h"

namespace kmes::props {
namespace {

using testing::HasSubstr;

std::string document() {
    std::ifstream file("docs/script-format.md");
    EXPECT_TRUE(file);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string quoted(std::string_view word) {
    return "`" + std::string(word) + "`";
}

// Rows of the tables, as their cells.
std::vector<std::vector<std::string>> rows() {
    std::vector<std::vector<std::string>> found;
    std::istringstream lines(document());
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| `")) continue;
        std::vector<std::string> cells;
        std::size_t at = 2;
        for (std::size_t end; (end = line.find(" |", at)) != std::string::npos; at = end + 3) {
            cells.push_back(line.substr(at, end - at));
            if (end + 3 > line.size()) break;
        }
        found.push_back(std::move(cells));
    }
    return found;
}

std::string range_text(const KeyRule& rule) {
    std::string text;
    for (std::string_view word : words_of(rule.key)) {
        text += (text.empty() ? "" : " ") + quoted(word);
    }
    if (!text.empty()) return text;
    if (rule.key == Key::capacity) text = "a power of two from ";
    return text + std::to_string(rule.minimum) + " to " + std::to_string(rule.maximum);
}

std::string standard_text(const KeyRule& rule) {
    const std::vector<std::string_view>& words = words_of(rule.key);
    return words.empty() ? std::to_string(rule.standard) : quoted(words[rule.standard]);
}

std::string keys_text(const VerbRule& verb) {
    std::string text;
    for (const KeyRule& rule : verb.keys) {
        text += (text.empty() ? "" : " ") + quoted(name_of(rule.key));
    }
    if (verb.has_type) text += " `type`";
    return text.empty() ? "none" : text;
}

std::string who_text(Actor actor) {
    switch (actor) {
        case Actor::setting:
            return "setting";
        case Actor::producer:
            return "producer";
        case Actor::schedule:
            return "schedule";
        case Actor::world:
            return "world";
    }
    return "?";
}

TEST(Document, HasEveryVerbWithWhoDoesItAndItsKeys) {
    const auto all = rows();
    for (std::size_t i = 0; i < kVerbCount; i++) {
        const VerbRule& verb = rule_of(static_cast<Verb>(i));
        int found = 0;
        for (const auto& cells : all) {
            if (cells.size() != 4 || cells[0] != quoted(verb.name)) continue;
            found++;
            EXPECT_EQ(cells[1], who_text(verb.actor)) << verb.name;
            EXPECT_EQ(cells[2], keys_text(verb)) << verb.name;
        }
        EXPECT_EQ(found, 1) << verb.name;
    }
}

TEST(Document, HasEveryKeyOfEveryVerbWithItsRangeAndItsDefault) {
    const auto all = rows();
    std::size_t expected = 0, named = 0;
    for (std::size_t i = 0; i < kVerbCount; i++) {
        const VerbRule& verb = rule_of(static_cast<Verb>(i));
        for (const KeyRule& rule : verb.keys) {
            expected++;
            int found = 0;
            for (const auto& cells : all) {
                found += cells.size() == 5 && cells[0] == quoted(name_of(rule.key)) &&
                         cells[1] == range_text(rule) && cells[2] == standard_text(rule) &&
                         cells[3].find(quoted(verb.name)) != std::string::npos;
            }
            EXPECT_EQ(found, 1) << verb.name << " " << name_of(rule.key) << ": " << range_text(rule)
                                << ", default " << standard_text(rule);
        }
    }
    // The document has no verb or key that the grammar lacks.
    for (const auto& cells : all) {
        if (cells.size() == 5) named += std::count(cells[3].begin(), cells[3].end(), '`') / 2;
    }
    EXPECT_EQ(named, expected);
}

TEST(Document, SaysTheLimits) {
    const std::string text = document();
    EXPECT_THAT(text, HasSubstr("At most " + std::to_string(kMaxOperations) + " lines"));
    EXPECT_THAT(text, HasSubstr("At most " + std::to_string(kMaxTypeBytes) + " bytes"));
    EXPECT_THAT(text, HasSubstr("`" + std::string(kScriptHeader) + "`"));
    EXPECT_THAT(text, HasSubstr("the default is `" + std::string(kStandardType) + "`"));
}

TEST(Document, ShowsAScriptThatIsOne) {
    std::istringstream lines(document());
    std::string script;
    for (std::string line; std::getline(lines, line);) {
        const bool is_script = line.starts_with("    ");
        if (is_script && (!script.empty() || line == "    " + std::string(kScriptHeader))) {
            script += line.substr(4) + "\n";
        } else if (!script.empty()) {
            break;
        }
    }
    const auto parsed = parse_script(script);
    const auto* error = std::get_if<ScriptError>(&parsed);
    ASSERT_EQ(error, nullptr) << error->line << ": " << error->message;
    EXPECT_GT(std::get<Script>(parsed).operations.size(), 8u);
}

std::string hexadecimal(const std::string& bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (!text.empty()) text += ' ';
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

TEST(Document, WorksItsPayloadOutRightly) {
    const std::string text = document();
    EXPECT_THAT(text, HasSubstr("a payload of 10 bytes is `" + hexadecimal(payload_bytes(1, 10))));
    EXPECT_THAT(text, HasSubstr(hexadecimal(payload_bytes(Operation(Verb::emit)[Key::seed], 3)) +
                                "                    payload\n"));
    for (std::uint64_t word : {0u, 1u}) {
        std::string bytes = payload_bytes(1, 16).substr(8 * word, 8);
        std::string digits;
        for (char c : hexadecimal(std::string(bytes.rbegin(), bytes.rend()))) {
            if (c != ' ') digits += c;
        }
        EXPECT_THAT(text, HasSubstr("0x" + digits));
    }
}

}  // namespace
}  // namespace kmes::props
