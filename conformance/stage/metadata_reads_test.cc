// SPDX-License-Identifier: MIT
#include "conformance/stage/metadata_reads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

class MetadataReadsTest : public ServedRingsTest {
  protected:
    MetadataReadsTest() { reads_.watch(rings_); }

    void load(std::uint64_t offset_bytes, std::uint32_t size_bytes) {
        BufferAccess access;
        access.is_read = true;
        access.size_bytes = size_bytes;
        access.place.buffer = id(0);
        access.place.offset_bytes = offset_bytes;
        GuardHit hit;
        hit.accesses = {access};
        reads_.note(hit);
        reads_.note_counters(hit);
    }
    std::uint32_t counter() const { return rings_.counters().of(buffer(0)); }

    MetadataReads reads_{buffers_};
};

TEST_F(MetadataReadsTest, TellWhichFieldWasReadLast) {
    EXPECT_FALSE(reads_.is_counter_read_last(buffer(0)));
    EXPECT_EQ(reads_.operations_at_write_pos(buffer(0)), std::nullopt);
    load(kFutexWordOffset, 4);
    EXPECT_TRUE(reads_.is_counter_read_last(buffer(0)));
    EXPECT_FALSE(reads_.is_counter_read_last(buffer(1)));
    emit(0);
    load(kWritePosOffset, 8);
    EXPECT_FALSE(reads_.is_counter_read_last(buffer(0)));
    EXPECT_EQ(reads_.operations_at_write_pos(buffer(0)), rings_.history().operations());
}

TEST_F(MetadataReadsTest, KnowTheValuesOfTheCounter) {
    load(kFutexWordOffset, 4);
    EXPECT_EQ(reads_.counter_read_instead(buffer(0), counter()), std::nullopt);
    EXPECT_EQ(reads_.counter_read_instead(buffer(0), counter() + 1), counter());
}

TEST_F(MetadataReadsTest, ProveNothingAfterALoadOfAnotherSize) {
    load(kFutexWordOffset, 4);
    load(kFutexWordOffset, 8);
    EXPECT_EQ(reads_.counter_read_instead(buffer(0), counter() + 1), std::nullopt);
}

TEST_F(MetadataReadsTest, ProveNothingAfterAnUnseenAccess) {
    load(kFutexWordOffset, 4);
    reads_.forget();
    EXPECT_FALSE(reads_.is_counter_read_last(buffer(0)));
    EXPECT_EQ(reads_.counter_read_instead(buffer(0), counter() + 1), std::nullopt);
}

}  // namespace
}  // namespace kmes::conformance
