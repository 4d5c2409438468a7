// SPDX-License-Identifier: MIT
//
// Reads a script. Any bytes give a script, or one line with the mistake and its remedy. Follows the
// table of script.cc. Besides, it knows only `start`, and the verbs that
// must come first.
#include <algorithm>
#include <charconv>

#include "props/script/script.h"

namespace kmes::props {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
}

bool is_bare(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

// Makes foreign text fit for a message: short, on one line, and printable.
std::string shown(std::string_view text) {
    constexpr std::size_t kMost = 40;
    static const char digits[] = "0123456789abcdef";
    std::string result = "'";
    for (char c : text.substr(0, kMost)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7F) {
            result += c;
        } else {
            result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return result + (text.size() > kMost ? "'..." : "'");
}

std::string joined(const std::vector<std::string_view>& words) {
    std::string result;
    for (std::string_view word : words) {
        if (!result.empty()) result += ' ';
        result += word;
    }
    return result;
}

std::string all_verbs() {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < kVerbCount; i++) {
        names.push_back(rule_of(static_cast<Verb>(i)).name);
    }
    return joined(names);
}

std::string keys_that(const VerbRule& rule) {
    std::vector<std::string_view> names;
    for (const KeyRule& key : rule.keys) names.push_back(name_of(key.key));
    if (rule.has_type) names.push_back("type");
    return names.empty() ? "it takes none" : "it takes: " + joined(names);
}

// One line, read from the left. On an error a function sets `error` and returns false.
class Line {
  public:
    explicit Line(std::string_view text) : text_(text) {}

    const std::string& error() const { return error_; }

    // Whether only blanks and a comment are left.
    bool at_end() {
        while (at_ < text_.size() && is_blank(text_[at_])) at_++;
        return at_ == text_.size() || text_[at_] == '#';
    }

    // Returns the text up to a blank, a comment, the end, or `until`.
    std::string_view word(char until = ' ') {
        const std::size_t start = at_;
        while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '#' &&
               text_[at_] != until) {
            at_++;
        }
        return text_.substr(start, at_ - start);
    }

    bool take(char c) {
        if (at_ == text_.size() || text_[at_] != c) return false;
        at_++;
        return true;
    }

    bool fail(std::string message) {
        error_ = std::move(message);
        return false;
    }

    bool number(std::string_view digits, std::uint64_t& value) {
        int base = 10;
        if (digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
            digits.remove_prefix(2);
            base = 16;
        }
        const char* last = digits.data() + digits.size();
        const auto [end, problem] = std::from_chars(digits.data(), last, value, base);
        return problem != std::errc::invalid_argument && end == last &&
               (problem == std::errc() || fail("is over 2^64 - 1"));
    }

    bool value_of(const VerbRule& verb, const KeyRule& rule, std::uint64_t& value);
    bool type(std::string& type);
    bool type_is_bounded(const std::string& type) {
        return type.size() <= kMaxTypeBytes ||
               fail("type is longer than 64 bytes; type_len= repeats a shorter one");
    }
    bool quoted(std::string& type);
    bool escape(std::string& type);

  private:
    std::string_view text_;
    std::size_t at_ = 0;
    std::string error_;
};

std::string range_of(const KeyRule& rule) {
    if (rule.key == Key::capacity) {
        return "a power of two from " + std::to_string(rule.minimum) + " to " +
               std::to_string(rule.maximum);
    }
    return std::to_string(rule.minimum) + " to " + std::to_string(rule.maximum);
}

bool Line::value_of(const VerbRule& verb, const KeyRule& rule, std::uint64_t& value) {
    const std::string_view text = word();
    const std::string what = std::string(name_of(rule.key)) + "=" + shown(text);
    const std::vector<std::string_view>& words = words_of(rule.key);
    if (!words.empty()) {
        const auto found = std::find(words.begin(), words.end(), text);
        if (found == words.end()) return fail(what + " is none of: " + joined(words));
        value = static_cast<std::uint64_t>(found - words.begin());
        return true;
    }
    if (!number(text, value)) {
        if (!error_.empty()) {
            return fail(what + " " + error_ + "; " + std::string(verb.name) + " takes " +
                        range_of(rule));
        }
        return fail(what + " is no number; right is " + range_of(rule) +
                    ", decimal or 0x and hexadecimal digits");
    }
    const bool is_power = (value & (value - 1)) == 0;
    if (value < rule.minimum || value > rule.maximum || (rule.key == Key::capacity && !is_power)) {
        return fail(what + " is out of range; " + std::string(verb.name) + " takes " +
                    range_of(rule));
    }
    return true;
}

bool Line::escape(std::string& type) {
    if (take('"')) {
        type += '"';
        return true;
    }
    if (take('\\')) {
        type += '\\';
        return true;
    }
    unsigned byte = 0;
    if (take('x') && at_ + 2 <= text_.size()) {
        const char* digits = text_.data() + at_;
        const auto [end, problem] = std::from_chars(digits, digits + 2, byte, 16);
        if (problem == std::errc() && end == digits + 2) {
            at_ += 2;
            type += static_cast<char>(byte);
            return true;
        }
    }
    return fail("an escape in a type is \\xNN (two hexadecimal digits), \\\" or \\\\");
}

bool Line::quoted(std::string& type) {
    while (at_ < text_.size()) {
        const char c = text_[at_++];
        if (c == '"') {
            if (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '#') {
                return fail("after the \" that ends a type comes a blank; a \" inside is \\\"");
            }
            return type_is_bounded(type);
        }
        if (c == '\\') {
            if (!escape(type)) return false;
        } else if (is_control(c)) {
            return fail("a control character in a type; write it as \\xNN");
        } else {
            type += c;
        }
    }
    return fail("a type that is not ended; \" ends it on the same line");
}

bool Line::type(std::string& type) {
    type.clear();
    if (take('"')) return quoted(type);
    const std::string_view text = word();
    if (text.empty()) return fail("type= has no value; an empty type is written type=\"\"");
    if (!std::all_of(text.begin(), text.end(), is_bare)) {
        return fail("type=" + shown(text) +
                    " has more than letters, digits, _ . and -; put it between \" and \"");
    }
    type = text;
    return type_is_bounded(type);
}

bool read_keys(Line& line, const VerbRule& rule, Operation& operation) {
    std::array<bool, kKeyCount> seen{};
    bool type_seen = false;
    while (!line.at_end()) {
        const std::string_view name = line.word('=');
        if (!line.take('=')) return line.fail(shown(name) + " has no value; right is KEY=VALUE");
        const auto key =
            std::find_if(rule.keys.begin(), rule.keys.end(),
                         [name](const KeyRule& one) { return name_of(one.key) == name; });
        const bool is_type = rule.has_type && name == "type";
        if (key == rule.keys.end() && !is_type) {
            return line.fail(std::string(rule.name) + " takes no key " + shown(name) + "; " +
                             keys_that(rule));
        }
        bool& again = is_type ? type_seen : seen[static_cast<std::size_t>(key->key)];
        if (again) return line.fail(shown(name) + " occurs twice; expected once");
        again = true;
        std::uint64_t value = 0;
        if (is_type ? !line.type(operation.type) : !line.value_of(rule, *key, value)) return false;
        if (!is_type) operation.set(key->key, value);
    }
    return true;
}

const VerbRule* rule_named(std::string_view name) {
    for (std::size_t i = 0; i < kVerbCount; i++) {
        const VerbRule& rule = rule_of(static_cast<Verb>(i));
        if (rule.name == name) return &rule;
    }
    return nullptr;
}

bool read_operation(Line& line, Operation& operation) {
    std::string_view name = line.word();
    const bool is_started = name == "start";
    if (is_started) {
        if (line.at_end()) return line.fail("start has no verb; right is: start VERB KEY=VALUE...");
        name = line.word();
    }
    const VerbRule* rule = rule_named(name);
    if (is_started && (rule == nullptr || rule->actor != Actor::producer)) {
        return line.fail("start " + shown(name) +
                         ": only what the producer does is started (emit, resize, ...)");
    }
    if (rule == nullptr) {
        return line.fail("unknown verb " + shown(name) + "; one of: " + all_verbs());
    }
    operation = Operation(rule->verb);
    operation.is_started = is_started;
    return read_keys(line, *rule, operation);
}

bool read_header(Line& line) {
    constexpr std::string_view kName = "kmes-script";
    const std::string right = "; the first line is: " + std::string(kScriptHeader);
    const std::string_view name = line.word();
    if (name != kName) return line.fail(shown(name) + " where the script should begin" + right);
    if (line.at_end()) return line.fail("kmes-script without a version" + right);
    const std::string_view version = line.word();
    if (version != kScriptHeader.substr(kName.size() + 1)) {
        return line.fail("version " + shown(version) + " of the format is not known here" + right);
    }
    return line.at_end() || line.fail("more than the version in the first line" + right);
}

// Whether the script permits `operation` after its last line.
bool may_stand(Line& line, const Operation& operation, const Script& script) {
    if (script.operations.size() == kMaxOperations) {
        return line.fail("more than " + std::to_string(kMaxOperations) +
                         " lines that do something; split the script");
    }
    if (operation.verb == Verb::settings && !script.operations.empty()) {
        return line.fail("settings stands once, before all but the first line");
    }
    if (operation.verb != Verb::reader) return true;
    for (const Operation& other : script.operations) {
        if (rule_of(other.verb).actor != Actor::setting) {
            return line.fail("a reader after the first operation; readers stand before it");
        }
        if (other.verb == Verb::reader && other[Key::consumer] == operation[Key::consumer]) {
            return line.fail("consumer=" + std::to_string(operation[Key::consumer]) +
                             " has a reader already; each consumer has one");
        }
    }
    return true;
}

}  // namespace

std::variant<Script, ScriptError> parse_script(std::string_view text) {
    Script script;
    std::size_t number = 0;
    bool has_header = false;
    while (!text.empty()) {
        number++;
        const std::size_t end = std::min(text.find('\n'), text.size());
        Line line(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.at_end()) continue;
        Operation operation;
        if (!has_header) {
            has_header = read_header(line);
            if (!has_header) return ScriptError{number, line.error()};
        } else if (!read_operation(line, operation) || !may_stand(line, operation, script)) {
            return ScriptError{number, line.error()};
        } else {
            script.operations.push_back(std::move(operation));
        }
    }
    if (!has_header) {
        return ScriptError{number + 1,
                           "an empty script; the first line is: " + std::string(kScriptHeader)};
    }
    return script;
}

}  // namespace kmes::props
