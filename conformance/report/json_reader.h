// SPDX-License-Identifier: MIT
//
// Strict reading of JSON that may come from anybody: what is missing, unknown, of another kind or
// too large is one line that names the field, what it is, and what would be right. Knows no file.
#ifndef KMES_CONFORMANCE_REPORT_JSON_READER_H_
#define KMES_CONFORMANCE_REPORT_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kmes::conformance {

struct FormatError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One value and its place. A child refers to its parent for its name, and must not outlive it.
class JsonReader {
  public:
    explicit JsonReader(const nlohmann::json& json) : json_(json) {}

    // A member of an object; FormatError if there is none.
    JsonReader at(const char* name) const&;
    JsonReader at(const char* name) const&& = delete;
    bool has(const char* name) const;
    // Every member has one of these names.
    void expect_names(std::initializer_list<std::string_view> names) const;

    // The length of a list, which has at most `most` items.
    std::size_t count(std::size_t most) const;
    JsonReader item(std::size_t index) const&;
    JsonReader item(std::size_t index) const&& = delete;

    std::uint64_t number(std::uint64_t least, std::uint64_t most) const;
    double real(double least, double most) const;
    bool truth() const;
    // A string, or {"hex": "..."}.
    std::string bytes(std::size_t most) const;
    // One of these words; its index.
    std::size_t word(std::span<const std::string_view> words) const;
    bool is_object() const { return json_.is_object(); }

    // "history.operations[3].cpu is 9; a whole number from 0 to 3 is right".
    [[noreturn]] void fail(const std::string& right) const;

  private:
    JsonReader(const nlohmann::json& json, const JsonReader& parent, const char* name,
               std::size_t index)
        : json_(json), parent_(&parent), name_(name), index_(index) {}

    std::string path() const;
    std::string shown() const;

    const nlohmann::json& json_;
    const JsonReader* parent_ = nullptr;
    const char* name_ = nullptr;  // null: item `index_` of a list
    std::size_t index_ = 0;
};

// Parses; FormatError where the text is no JSON. `writer` is the option that writes such files:
// "--save".
nlohmann::json parse_json(std::string_view text, std::string_view writer);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_READER_H_
