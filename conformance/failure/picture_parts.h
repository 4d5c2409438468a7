// SPDX-License-Identifier: MIT
//
// What the files of the picture share: which steps are shown, and how texts are cut. Knows no
// columns and no colours.
#ifndef KMES_CONFORMANCE_FAILURE_PICTURE_PARTS_H_
#define KMES_CONFORMANCE_FAILURE_PICTURE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/timeline.h"

namespace kmes::conformance::picture {

// A row of the picture, or a mark in the place of steps that are much like their neighbours.
struct Item {
    std::size_t step = 0;        // index in the timeline
    std::uint64_t repeated = 0;  // not 0: stands for so many steps that are not shown
    std::size_t period = 0;      // of which so many come round again and again
};

// What the picture is about: the rest of the run is left out.
struct Subject {
    bool has_several_cpus = false;      // each step says whose it is
    std::vector<std::int32_t> threads;  // a column each
    std::vector<std::size_t> steps;     // indices in the timeline
    std::uint64_t others = 0;           // steps of other CPUs and threads
    std::string others_text;            // which they are: "CPUs 1, 2; thread 4"
};

// `columns`: how many threads there is room for.
Subject find_subject(const Timeline& timeline, std::size_t columns);

// The steps with long repetitions folded. Decisive steps stay.
std::vector<Item> fold(const Timeline& timeline, const std::vector<std::size_t>& steps);

// By index in the timeline: what each of the steps changed of the metadata page, or all of it where
// nothing is known from before: "write_pos 880 -> 910". A step without a state has none.
std::map<std::size_t, std::string> changes_of(const Timeline& timeline,
                                              const std::vector<std::size_t>& steps);

// Which items are shown, if item i takes `heights[i]` lines of `maximum_lines`: the decisive ones
// and the last one in any case, then the nearest to the decisive ones.
std::vector<bool> choose(const Timeline& timeline, const std::vector<Item>& items,
                         const std::vector<std::size_t>& heights, std::size_t maximum_lines);

// Printable ASCII as it is, every other byte as \xNN.
std::string plain(std::string_view text);

// Lines of at most `width` characters of a plain text, cut between words where that can be done.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace kmes::conformance::picture

#endif  // KMES_CONFORMANCE_FAILURE_PICTURE_PARTS_H_
