// SPDX-License-Identifier: MIT
//
// Strict reading of hostile JSON. A missing, unknown, mistyped or oversized value is an error. Its
// line names the field, what it is, and what would be correct. Knows no file.
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

// One value and its place. A child refers to its parent for its name, so it must not outlive the
// parent.
class JsonReader {
  public:
    explicit JsonReader(const nlohmann::json& json) : json_(json) {}

    // Returns a member of an object. Throws FormatError if there is none.
    JsonReader at(const char* name) const&;
    JsonReader at(const char* name) const&& = delete;
    bool has(const char* name) const;
    // Checks that every member has one of these names.
    void expect_names(std::initializer_list<std::string_view> names) const;

    // Returns the length of a list of at most `most` items.
    std::size_t count(std::size_t most) const;
    JsonReader item(std::size_t index) const&;
    JsonReader item(std::size_t index) const&& = delete;

    std::uint64_t number(std::uint64_t least, std::uint64_t most) const;
    double real(double least, double most) const;
    bool truth() const;
    // Reads a string, or {"hex": "..."}.
    std::string bytes(std::size_t most) const;
    // Reads one of these words and returns its index.
    std::size_t word(std::span<const std::string_view> words) const;
    bool is_object() const { return json_.is_object(); }

    // Throws "history.operations[3].cpu is 9; expected a whole number from 0 to 3".
    [[noreturn]] void fail(const std::string& right) const;

  private:
    JsonReader(const nlohmann::json& json, const JsonReader& parent, const char* name,
               std::size_t index)
        : json_(json), parent_(&parent), name_(name), index_(index) {}

    std::string path() const;
    std::string shown() const;

    const nlohmann::json& json_;
    const JsonReader* parent_ = nullptr;
    const char* name_ = nullptr;  // null: this is item `index_` of a list
    std::size_t index_ = 0;
};

// A parsed value takes up to about 120 bytes of memory, but the smallest ones take one or two bytes
// of the text. So the length of the text does not limit the memory.
inline constexpr std::size_t kMaximumJsonDepth = 16;

// Parses a text. Throws FormatError if it is no JSON, is deeper than kMaximumJsonDepth, or has more
// than `most_values` values. `writer` is the option that writes such files: "--save".
nlohmann::json parse_json(std::string_view text, std::string_view writer, std::size_t most_values);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_READER_H_
