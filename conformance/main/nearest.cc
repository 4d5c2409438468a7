// SPDX-License-Identifier: MIT
//
// See nearest.h.
#include "conformance/main/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kmes::conformance {
namespace {

// A longer text is no name; it is compared only up to this length.
constexpr std::size_t kMostBytes = 256;

// The optimal string alignment distance: an insertion, a deletion, a replacement, and a swap of two
// neighbours count as one each.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        before.swap(above);
        above.swap(row);
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = above[j] + (a[i] == b[j] ? 0 : 1);
            row[j + 1] = std::min({replaced, row[j] + 1, above[j + 1] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::vector<std::string_view> nearest_names(const std::vector<std::string_view>& names,
                                            std::string_view text, std::size_t count) {
    // A text that is a part of a name probably means it, however long the rest is.
    constexpr std::size_t kContained = 1;
    std::vector<std::pair<std::size_t, std::size_t>> ranked;  // distance, index
    text = text.substr(0, kMostBytes);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const bool contained = !text.empty() && names[i].find(text) != std::string_view::npos;
        const std::size_t far = contained ? kContained : distance(text, names[i]);
        // A name that differs in most of its letters is not what was meant.
        if (contained || text.empty() || 2 * far <= std::max(text.size(), names[i].size()))
            ranked.emplace_back(far, i);
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<std::string_view> nearest;
    for (std::size_t i = 0; i < ranked.size() && i < count; ++i)
        nearest.push_back(names[ranked[i].second]);
    return nearest;
}

std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view text) {
    const auto nearest = nearest_names(names, text, 1);
    if (nearest.empty() || text.size() > kMostBytes) return "";
    if (3 * distance(text, nearest[0]) > std::max(text.size(), nearest[0].size())) return "";
    return "; did you mean " + std::string(nearest[0]) + "?";
}

std::string list_names(const std::vector<std::string_view>& names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
    return text;
}

}  // namespace kmes::conformance
