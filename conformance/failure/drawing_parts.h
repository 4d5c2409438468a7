// SPDX-License-Identifier: MIT
//
// What the files of the trace share: the choice of steps, and the cutting of texts. Knows no
// columns and no colours.
#ifndef KMES_CONFORMANCE_FAILURE_DRAWING_PARTS_H_
#define KMES_CONFORMANCE_FAILURE_DRAWING_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/timeline.h"

namespace kmes::conformance::drawing {

// A row of the trace, or a mark that replaces steps much like their neighbours.
struct Item {
    std::size_t step = 0;        // index in the timeline
    std::uint64_t repeated = 0;  // if not 0, the item replaces this many steps
    std::size_t period = 0;      // the number of steps in the repeated group
};

// The part of the run that the trace shows.
struct Subject {
    bool has_several_cpus = false;      // each step names its CPU
    std::vector<std::int32_t> threads;  // one column each
    std::vector<std::size_t> steps;     // indices in the timeline
    std::uint64_t others = 0;           // steps of other CPUs and threads
    std::string others_text;            // their names: "CPUs 1, 2; thread 4"
};

// `columns`: the maximum number of threads.
Subject find_subject(const Timeline& timeline, std::size_t columns);

// Folds long repetitions of the steps. Decisive steps stay, and so does the step whose place a
// report names if no decisive one has a place (named_row).
std::vector<Item> fold(const Timeline& timeline, const std::vector<std::size_t>& steps);

// Whether steps are left out immediately before this one (Timeline::left_out).
bool follows_left_out(const Timeline& timeline, std::size_t step);

// Returns, by index in the timeline, how each step changed the metadata page: "write_pos 880 ->
// 910". If the state before the step is not known, the text is the whole state. A step without a
// state has no entry.
std::map<std::size_t, std::string> changes_of(const Timeline& timeline);

// Chooses the items to show, if item i takes `heights[i]` of `maximum_lines` lines. The
// decisive items, the step of named_row and the last one are always chosen, then the nearest.
std::vector<bool> choose(const Timeline& timeline, const std::vector<Item>& items,
                         const std::vector<std::size_t>& heights, std::size_t maximum_lines);

// Keeps printable ASCII, and replaces every other byte with \xNN.
std::string plain(std::string_view text);

// Breaks a plain text into lines of at most `width` characters, between words if possible.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace kmes::conformance::drawing

#endif  // KMES_CONFORMANCE_FAILURE_DRAWING_PARTS_H_
