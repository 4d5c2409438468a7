// SPDX-License-Identifier: MIT
// Truncates or changes a record file at any place. The reader must return exactly the blocks before
// the damage, and one line. On request it also returns the whole blocks after the damage.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "record/test_support.h"

namespace kmes::record {
namespace {

using testing::file_of;
using testing::Read;
using testing::read_all;

constexpr unsigned kPerBlock = 3;

std::vector<std::uint64_t> sequences(std::uint64_t first, std::uint64_t count) {
    std::vector<std::uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

struct Sample {
    std::vector<std::byte> file;
    std::vector<std::size_t> ends;  // of its blocks

    unsigned blocks_before(std::size_t offset) const {
        return static_cast<unsigned>(std::count_if(ends.begin(), ends.end(),
                                                   [&](std::size_t end) { return end <= offset; }));
    }
};

// One file of five blocks for all properties.
const Sample& sample() {
    static const Sample made = [] {
        Sample sample;
        sample.file = file_of(5, kPerBlock, "some payload");
        sample.ends = read_all(sample.file).block_ends;
        return sample;
    }();
    return made;
}

RC_GTEST_PROP(Damage, CutFileHasTheBlocksBeforeTheCut, ()) {
    const Sample& whole = sample();
    const auto cut = *rc::gen::inRange<std::size_t>(0, whole.file.size());
    const Read read = read_all(std::span(whole.file).first(cut));
    RC_ASSERT(read.sequences == sequences(1, whole.blocks_before(cut) * kPerBlock));
    const bool ends_whole =
        cut == kFileHeaderBytes || std::count(whole.ends.begin(), whole.ends.end(), cut) != 0;
    RC_ASSERT(read.wrong.empty() == ends_whole);
    RC_ASSERT(read.wrong.find('\n') == std::string::npos);
}

RC_GTEST_PROP(Damage, FlippedFileHasTheBlocksBeforeAndAfter, ()) {
    const Sample& whole = sample();
    const auto at = *rc::gen::inRange<std::size_t>(0, whole.file.size());
    const auto bit = *rc::gen::inRange(0, 8);
    auto file = whole.file;
    file[at] ^= std::byte{1} << bit;
    const Read read = read_all(file);
    RC_ASSERT(!read.wrong.empty());
    if (at < kFileHeaderBytes) {
        RC_ASSERT(read.sequences.empty());
        return;
    }
    const unsigned before = whole.blocks_before(at);
    RC_ASSERT(read.sequences == sequences(1, before * kPerBlock));

    auto expected = sequences(1, before * kPerBlock);
    const auto after = sequences((before + 1) * kPerBlock + 1, (4 - before) * kPerBlock);
    expected.insert(expected.end(), after.begin(), after.end());
    RC_ASSERT(read_all(file, true).sequences == expected);
}

RC_GTEST_PROP(Damage, RemovedBytesCostTheirBlocksAlone, ()) {
    const Sample& whole = sample();
    const auto from = *rc::gen::inRange<std::size_t>(kFileHeaderBytes, whole.file.size());
    const auto count = *rc::gen::inRange<std::size_t>(1, whole.file.size() - from + 1);
    auto file = whole.file;
    const auto first = file.begin() + static_cast<std::ptrdiff_t>(from);
    file.erase(first, first + static_cast<std::ptrdiff_t>(count));
    // If two blocks end with the same bytes, the rest of the first can be the end of the second.
    const auto same = std::mismatch(file.begin(), file.end(), whole.file.begin()).first;
    const auto damaged = static_cast<std::size_t>(same - file.begin());
    const auto before = sequences(1, whole.blocks_before(damaged) * kPerBlock);
    const Read read = read_all(file);
    RC_ASSERT(read.sequences == before);
    const Read all = read_all(file, true);
    RC_ASSERT(std::is_sorted(all.sequences.begin(), all.sequences.end()));
    RC_ASSERT(all.sequences.size() % kPerBlock == 0);
}

}  // namespace
}  // namespace kmes::record
