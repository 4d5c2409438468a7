// SPDX-License-Identifier: MIT
//
// See json_reader.h.
#include "conformance/report/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/report/json_extent.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kShownBytes = 40;

using PlainJson = nlohmann::json;

// Returns a value for a message: short, and without control characters.
std::string show(const PlainJson& json) {
    if (json.is_object()) return fmt::format("an object of {} members", json.size());
    if (json.is_array()) return fmt::format("a list of {} items", json.size());
    if (!json.is_string()) return json.dump();
    const auto& text = json.get_ref<const std::string&>();
    const std::string cut = printable(text.substr(0, kShownBytes));
    return "\"" + cut + (text.size() > kShownBytes ? "\"..." : "\"");
}

int hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    return -1;
}

}  // namespace

PlainJson parse_json(std::string_view text, std::string_view writer, std::size_t most_values) {
    const JsonExtent extent = json_extent(text);
    if (extent.depth > kMaximumJsonDepth)
        throw FormatError(
            fmt::format("the file has lists and objects nested in {} levels; at most "
                        "{} are read",
                        extent.depth, kMaximumJsonDepth));
    if (extent.values > most_values)
        throw FormatError(
            fmt::format("the file has {} values; at most {} are read", extent.values, most_values));
    try {
        return PlainJson::parse(text);
    } catch (const PlainJson::parse_error& error) {
        const std::size_t at = std::min<std::size_t>(error.byte, text.size());
        const std::string_view before = text.substr(0, at);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        throw FormatError(
            fmt::format("the file is no JSON from line {} on (byte {} of {}); expected a file as "
                        "{} writes it",
                        line, at, text.size(), writer));
    } catch (const PlainJson::exception& error) {
        throw FormatError("the file is no JSON that can be read: " + printable(error.what()));
    }
}

std::string JsonReader::path() const {
    if (parent_ == nullptr) return "";
    const std::string before = parent_->path();
    if (name_ == nullptr) return before + fmt::format("[{}]", index_);
    return before.empty() ? std::string(name_) : before + "." + name_;
}

std::string JsonReader::shown() const {
    return show(json_);
}

void JsonReader::fail(const std::string& right) const {
    const std::string where = path();
    throw FormatError(
        fmt::format("{} is {}; expected {}", where.empty() ? "the file" : where, shown(), right));
}

bool JsonReader::has(const char* name) const {
    return json_.is_object() && json_.contains(name);
}

JsonReader JsonReader::at(const char* name) const& {
    if (!json_.is_object()) fail("an object");
    const auto found = json_.find(name);
    if (found == json_.end()) {
        const std::string where = path();
        throw FormatError(fmt::format("{}{}{} is missing", where, where.empty() ? "" : ".", name));
    }
    return JsonReader(*found, *this, name, 0);
}

void JsonReader::expect_names(std::initializer_list<std::string_view> names) const {
    if (!json_.is_object()) fail("an object");
    for (auto member = json_.begin(); member != json_.end(); ++member) {
        const std::string& name = member.key();
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        std::string all;
        for (const std::string_view known : names)
            all += (all.empty() ? "" : ", ") + std::string(known);
        const std::string where = path();
        throw FormatError(fmt::format("{} has the unknown member \"{}\"; expected {}",
                                      where.empty() ? "the file" : where,
                                      printable(name.substr(0, kShownBytes)), all));
    }
}

std::size_t JsonReader::count(std::size_t most) const {
    if (!json_.is_array() || json_.size() > most)
        fail(fmt::format("a list of at most {} items", most));
    return json_.size();
}

JsonReader JsonReader::item(std::size_t index) const& {
    return JsonReader(json_.at(index), *this, nullptr, index);
}

std::uint64_t JsonReader::number(std::uint64_t least, std::uint64_t most) const {
    const bool fits = json_.is_number_unsigned() && json_.get<std::uint64_t>() >= least &&
                      json_.get<std::uint64_t>() <= most;
    if (!fits) fail(fmt::format("a whole number from {} to {}", least, most));
    return json_.get<std::uint64_t>();
}

double JsonReader::real(double least, double most) const {
    const double value = json_.is_number() ? json_.get<double>() : std::nan("");
    if (!(value >= least && value <= most))
        fail(fmt::format("a number from {} to {}", least, most));
    return value;
}

bool JsonReader::truth() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
}

std::string JsonReader::bytes(std::size_t most) const {
    if (json_.is_object()) {
        expect_names({"hex"});
        const JsonReader hex = at("hex");
        const std::string right =
            fmt::format("an even number of lower-case hex digits, at most {}", 2 * most);
        if (!hex.json_.is_string()) hex.fail(right);
        const auto& digits = hex.json_.get_ref<const std::string&>();
        if (digits.size() % 2 != 0 || digits.size() / 2 > most) hex.fail(right);
        std::string decoded;
        decoded.reserve(digits.size() / 2);
        for (std::size_t i = 0; i < digits.size(); i += 2) {
            const int high = hex_value(digits[i]);
            const int low = hex_value(digits[i + 1]);
            if (high < 0 || low < 0) hex.fail(right);
            decoded.push_back(static_cast<char>(high * 16 + low));
        }
        return decoded;
    }
    if (!json_.is_string() || json_.get_ref<const std::string&>().size() > most)
        fail(fmt::format("a string of at most {} bytes, or an object with the member hex", most));
    return json_.get<std::string>();
}

std::size_t JsonReader::word(std::span<const std::string_view> words) const {
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (json_.is_string() && json_.get_ref<const std::string&>() == words[i]) return i;
        all += (i == 0 ? "" : ", ") + std::string(words[i]);
    }
    fail("one of " + all);
}

}  // namespace kmes::conformance
