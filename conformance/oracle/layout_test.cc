// SPDX-License-Identifier: MIT
//
// The numbers of the oracle are those of the other table of forms, and its fields leave no gap.
// Built once, and run in each form of the layout.
#include "conformance/oracle/layout.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/oracle/event.h"

namespace kmes::conformance {
namespace {

TEST(Layout, IsTheOneOfTheEnvironment) {
    const char* name = std::getenv(kLayoutVariable);
    EXPECT_EQ(layout().name, name == nullptr ? "A" : name);
    EXPECT_EQ(other_layout(), is_default_layout() ? "" : layout().name);
}

TEST(Layout, HasTheNumbersOfTheOtherTable) {
    EXPECT_EQ(kMetadataBytes, layout().metadata_bytes);
    EXPECT_EQ(kNeedWakeOffset, layout().need_wake_offset);
    EXPECT_EQ(kHeaderBytesBeforeType, layout().header_bytes);
    EXPECT_EQ(kTypeLengthAt, layout().type_length_offset);
    EXPECT_EQ(kLeastEventBytes, layout().header_bytes + 1);
}

TEST(Layout, HasAFieldForEachByte) {
    std::uint64_t end = 0;
    for (const Field& field : metadata_fields()) {
        EXPECT_EQ(field.offset, end) << field.name;
        end = field.offset + field.bytes;
    }
    EXPECT_EQ(end, kMetadataBytes);
    end = 0;
    for (const Field& field : header_fields()) {
        EXPECT_EQ(field.offset, end) << field.name;
        end = field.offset + field.bytes;
    }
    EXPECT_EQ(end, kHeaderBytesBeforeType);
    EXPECT_EQ(field_at(kNeedWakeOffset).name, "need_wake");
}

TEST(Layout, IsFoundByEitherName) {
    for (const Layout& each : all_layouts()) {
        EXPECT_EQ(find_layout(each.name), &each);
        EXPECT_EQ(find_layout(each.other_name), &each);
    }
    EXPECT_EQ(find_layout("d"), &all_layouts().back());
    for (const char* name : {"", "E", "AB", "0.2", "auto"}) EXPECT_EQ(find_layout(name), nullptr);
    EXPECT_EQ(layout_names(), "A, B, C or D");
}

TEST(Layout, HasTheEventOfTheForm) {
    EventSpec spec;
    spec.type = "type";
    spec.payload = "payload";
    spec.origin = 2;
    const std::string bytes = encode_event(spec, 7, 3);
    EXPECT_EQ(bytes.size(), kHeaderBytesBeforeType + 11);
    EXPECT_EQ(bytes.substr(kHeaderBytesBeforeType), "typepayload");
    EXPECT_EQ(bytes[kTypeLengthAt], 4);
    for (std::uint64_t at = 27; at < kTypeLengthAt; ++at) EXPECT_EQ(bytes[at], 0);
}

}  // namespace
}  // namespace kmes::conformance
