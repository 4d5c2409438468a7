// SPDX-License-Identifier: MIT
#include "conformance/stage/nudges.h"

#include <gtest/gtest.h>

#include <vector>

#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

class NudgesTest : public ServedRingsTest {
  protected:
    bool nudge() { return nudges_.nudge_retired(rings_, buffers_, {mapping_}); }

    void map(BufferId id) {
        mapping_.id = 1;
        mapping_.buffer = id;
    }

    Nudges nudges_;
    Mapping mapping_;
};

TEST_F(NudgesTest, AreOnlyForRetiredBuffers) {
    map(id(0));
    EXPECT_FALSE(nudge());
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    EXPECT_TRUE(nudge());
    EXPECT_EQ(nudges_.count(), 1u);
    map(1000);
    EXPECT_FALSE(nudge());
}

TEST_F(NudgesTest, EndAfterAFewForOneBuffer) {
    map(id(0));
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    int nudges = 0;
    while (nudge()) ++nudges;
    EXPECT_GT(nudges, 1);
    EXPECT_EQ(nudges_.count(), static_cast<std::uint64_t>(nudges));
}

TEST_F(NudgesTest, DoNotHappenDuringAnEmission) {
    map(id(0));
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    rings_.emissions().reserve(0, rings_.events().make(100), Written::header);
    EXPECT_FALSE(nudge());
    rings_.emissions().commit(0);
    EXPECT_TRUE(nudge());
}

}  // namespace
}  // namespace kmes::conformance
