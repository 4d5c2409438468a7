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
        access(offset_bytes, size_bytes, true);
    }
    void store_need_wake() { access(kNeedWakeOffset, 1, false); }
    void access(std::uint64_t offset_bytes, std::uint32_t size_bytes, bool is_read) {
        BufferAccess access;
        access.is_read = is_read;
        access.is_write = !is_read;
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

TEST_F(MetadataReadsTest, KnowACounterThatIsReadAfterTheRecheckOfGeneration) {
    const auto is_late = [this] { return reads_.is_counter_read_after_recheck(buffer(0)); };
    load(kGenerationOffset, 8);
    load(kFutexWordOffset, 4);
    EXPECT_FALSE(is_late()) << "no re-check without a request";
    store_need_wake();
    load(kFutexWordOffset, 4);
    EXPECT_FALSE(is_late()) << "the load of generation came before the request";
    load(kGenerationOffset, 8);
    EXPECT_FALSE(is_late()) << "as E2 wants it";
    load(kFutexWordOffset, 4);
    EXPECT_TRUE(is_late());
    EXPECT_FALSE(reads_.is_counter_read_after_recheck(buffer(1)));
    load(kGenerationOffset, 8);
    EXPECT_FALSE(is_late()) << "another re-check";
    load(kFutexWordOffset, 4);
    store_need_wake();
    EXPECT_FALSE(is_late()) << "another request";
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
