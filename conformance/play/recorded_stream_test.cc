// SPDX-License-Identifier: MIT
//
// A record file as a stream of the suite: the events read from it, and those that a case leaves
// out. An invalid file gets one line.
#include "conformance/play/recorded_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "conformance/oracle/event.h"
#include "record/test_support.h"

namespace kmes::conformance {
namespace {

using record::testing::bytes_of_file;
using record::testing::event_of;
using record::testing::Folder;
using ::testing::HasSubstr;
using ::testing::Not;

class Stream : public ::testing::Test {
  protected:
    // `fill` adds each event.
    template <typename Fill>
    void write(Fill fill) {
        record::Writer writer;
        record::FileHeader header;
        header.cpus = 200;
        EXPECT_EQ(writer.open(path_, header), 0);
        fill(writer);
        EXPECT_EQ(writer.close(), 0);
    }
    void write_two() {
        write([](record::Writer& writer) {
            EXPECT_EQ(writer.add_event(event_of(7, 3, "app.login", "eve")), 0);
            EXPECT_EQ(writer.add_loss({3, 8, 5}), 0);
            EXPECT_EQ(writer.add_session({3, 99}), 0);
            EXPECT_EQ(writer.add_event(event_of(1, 70, "t", "")), 0);
        });
    }
    void overwrite(const std::vector<std::byte>& bytes) {
        std::ofstream(path_, std::ios::binary | std::ios::trunc)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }
    // Returns the one line, which names the file.
    std::string wrong() const {
        const std::string text = check_stream(path_);
        EXPECT_THAT(text, HasSubstr("--stream " + path_ + ": "));
        EXPECT_THAT(text, Not(HasSubstr("\n")));
        return text;
    }

    Folder folder_;
    std::string path_ = folder_.path("events");
};

TEST_F(Stream, EventsAreThoseOfTheFile) {
    write_two();
    EXPECT_EQ(check_stream(path_), "");
    RecordedStream stream(path_);
    RecordedStream::Recorded recorded;
    ASSERT_TRUE(stream.next(&recorded));
    EXPECT_EQ(recorded.cpu, 3u);
    EXPECT_FALSE(recorded.has_other_cpu);
    EXPECT_EQ(recorded.spec.type, "app.login");
    EXPECT_EQ(recorded.spec.payload, "eve");
    EXPECT_EQ(recorded.spec.timestamp, 1'000'000'007u);
    EXPECT_EQ(recorded.spec.extra_header, "");
    ASSERT_TRUE(stream.next(&recorded));
    EXPECT_EQ(recorded.cpu, 70 % RecordedStream::kMostCpus);
    EXPECT_TRUE(recorded.has_other_cpu);
    EXPECT_FALSE(stream.next(&recorded));
    const StreamPart part = read_stream_part(path_);
    const StreamFacts& facts = part.facts;
    ASSERT_EQ(part.events.size(), 2u);
    EXPECT_EQ(part.events[0].spec.payload, "eve");
    EXPECT_EQ(part.events[1].cpu, 70 % RecordedStream::kMostCpus);
    EXPECT_EQ(facts.events, 2u);
    EXPECT_EQ(facts.bytes, 29u + 9 + 3 + 29 + 1);
    EXPECT_EQ(facts.largest_bytes, 29u + 9 + 3);
    EXPECT_EQ(facts.cpus, 7u);
    EXPECT_TRUE(facts.has_other_cpus);
    EXPECT_FALSE(facts.has_more);
}

TEST_F(Stream, CasePlaysABoundedPart) {
    for (const bool has_one_more : {false, true}) {
        path_ = folder_.path(has_one_more ? "more" : "all");
        write([&](record::Writer& writer) {
            const auto event = event_of(1, 0, "t", "");
            for (std::uint64_t i = 0; i < RecordedStream::kMostEvents + has_one_more; ++i)
                ASSERT_EQ(writer.add_event(event), 0);
        });
        const StreamPart part = read_stream_part(path_);
        const StreamFacts& facts = part.facts;
        EXPECT_EQ(part.events.size(), RecordedStream::kMostEvents);
        EXPECT_EQ(facts.events, RecordedStream::kMostEvents);
        EXPECT_EQ(facts.has_more, has_one_more);
        EXPECT_EQ(check_stream(path_), "");
    }
    path_ = folder_.path("large");
    const std::string half(RecordedStream::kMostBytes / 4, 'x');
    write([&](record::Writer& writer) {
        for (int i = 0; i < 5; ++i) ASSERT_EQ(writer.add_event(event_of(1, 0, "t", half)), 0);
    });
    const StreamPart part = read_stream_part(path_);
    EXPECT_EQ(part.events.size(), 3u);
    EXPECT_TRUE(part.facts.has_more);
}

TEST_F(Stream, FileThatIsNoneGetsOneLine) {
    wrong();  // there is none
    overwrite({});
    wrong();
    overwrite(std::vector<std::byte>(4096));
    wrong();
}

TEST_F(Stream, FileWithoutAnEventGetsOneLine) {
    write([](record::Writer&) {});
    EXPECT_THAT(wrong(), HasSubstr("it has no event"));
    path_ = folder_.path("losses");
    write([](record::Writer& writer) { EXPECT_EQ(writer.add_loss({3, 8, 5}), 0); });
    EXPECT_THAT(wrong(), HasSubstr("it has no event"));
}

// Wherever the file is damaged, none of its events is played.
TEST_F(Stream, DamagedFileGetsOneLine) {
    write_two();
    const auto whole = bytes_of_file(path_);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        overwrite({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
        wrong();
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        auto bytes = whole;
        bytes[at] ^= std::byte{0x40};
        overwrite(bytes);
        wrong();
    }
}

TEST_F(Stream, TypesThatNoProducerWritesGetOneLine) {
    write([](record::Writer& writer) {
        EXPECT_EQ(writer.add_event(event_of(1, 0, "t", "")), 0);
        EXPECT_EQ(writer.add_event(event_of(2, 0, "\xff", "")), 0);
    });
    EXPECT_THAT(wrong(), HasSubstr("the type of event 2 is no UTF-8"));
    path_ = folder_.path("end");
    write([](record::Writer& writer) {
        EXPECT_EQ(writer.add_event(event_of(1, 0, kEndEventType, "")), 0);
    });
    EXPECT_THAT(wrong(), HasSubstr("event 1 has the type kmes.conformance.end"));
}

}  // namespace
}  // namespace kmes::conformance
