// SPDX-License-Identifier: MIT
#include "conformance/stage/served_buffers.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace kmes::conformance {
namespace {

constexpr BufferIndex kBuffer = 3;
constexpr BufferId kId = 7;
constexpr pid_t kReader = 100;
constexpr pid_t kOther = 101;

Mapping mapping_of(MappingId id, BufferId buffer, std::uint64_t offset_bytes = 0) {
    Mapping mapping;
    mapping.id = id;
    mapping.buffer = buffer;
    mapping.offset_bytes = offset_bytes;
    return mapping;
}

class AServedBuffer : public testing::Test {
  protected:
    AServedBuffer() { buffers_.serve(kBuffer, kId); }
    ServedBuffers buffers_;
};

TEST_F(AServedBuffer, IsFoundByItsIdAndByItsIndex) {
    EXPECT_EQ(buffers_.id_of(kBuffer), kId);
    EXPECT_EQ(buffers_.index_of(kId), kBuffer);
    EXPECT_EQ(buffers_.index_of(kId + 1), std::nullopt);
}

TEST_F(AServedBuffer, IsMappedForTheFirstTimeOnce) {
    EXPECT_FALSE(buffers_.has_mapped_any());
    EXPECT_TRUE(buffers_.note_mapped(kBuffer, 1, kReader));
    EXPECT_FALSE(buffers_.note_mapped(kBuffer, 2, kOther));
    EXPECT_TRUE(buffers_.has_mapped(kBuffer));
    EXPECT_FALSE(buffers_.has_mapped(kBuffer + 1));
    EXPECT_EQ(buffers_.last_maker_of(kBuffer), kOther);
}

TEST_F(AServedBuffer, IsReadThroughTheReadersOwnMapping) {
    buffers_.note_mapped(kBuffer, 1, kReader);
    buffers_.note_mapped(kBuffer, 2, kOther);
    const std::vector<Mapping> both = {mapping_of(1, kId), mapping_of(2, kId)};
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, both), 1u);
}

TEST_F(AServedBuffer, IsElseReadThroughTheNewestMapping) {
    buffers_.note_mapped(kBuffer, 1, kOther);
    buffers_.note_mapped(kBuffer, 2, kOther);
    const std::vector<Mapping> both = {mapping_of(1, kId), mapping_of(2, kId)};
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, both), 2u);
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, {mapping_of(1, kId)}), 1u);
}

TEST_F(AServedBuffer, IsNotReadThroughAPartOfItOrAnotherBuffer) {
    buffers_.note_mapped(kBuffer, 1, kReader);
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, {mapping_of(1, kId, 4096)}), std::nullopt);
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, {mapping_of(1, kId + 1)}), std::nullopt);
    EXPECT_EQ(buffers_.mapping_of(kBuffer, kReader, {}), std::nullopt);
}

}  // namespace
}  // namespace kmes::conformance
