// SPDX-License-Identifier: MIT
// kmesctl convert: each format has every event and every loss, and reports damage in one line.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::bytes_of_file;
using record::testing::event_of;
using record::testing::Folder;
using ::testing::HasSubstr;

const char* program = nullptr;
const char* perfetto_reader = nullptr;
const char* perfetto_schema = nullptr;

struct Ran {
    int status;
    std::string output;  // standard output and standard error, in their order of output
};

Ran run(const std::string& command) {
    Ran ran = {};
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    char piece[4096];
    for (size_t got = 0; (got = fread(piece, 1, sizeof(piece), pipe)) != 0;)
        ran.output.append(piece, got);
    const int status = pclose(pipe);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ran;
}

class Convert : public ::testing::Test {
  protected:
    Convert() {
        record::Writer writer;
        record::FileHeader header;
        header.cpus = 2;
        EXPECT_EQ(writer.open(file(), header), 0);
        EXPECT_EQ(writer.add_event(event_of(1, 0, "a.\"type\"\n", "xyz")), 0);
        EXPECT_EQ(writer.add_event(event_of(7, 1, "b", "")), 0);
        EXPECT_EQ(writer.flush(), 0);
        EXPECT_EQ(writer.add_loss({0, 2, 5}), 0);
        // Its clock went back.
        EXPECT_EQ(writer.add_event(event_of(7, 0, "c", "")), 0);
        EXPECT_EQ(writer.add_session({1, 0xabcdef}), 0);
        EXPECT_EQ(writer.add_event(event_of(3, 1, "d", "")), 0);
        EXPECT_EQ(writer.close(), 0);
    }

    std::string file() const { return folder_.path("events"); }
    Ran convert(const std::string& more) const {
        return run(fmt::format("{} convert {} {}", program, more, file()));
    }
    void damage_first_block() const {
        auto bytes = bytes_of_file(file());
        bytes[record::kFileHeaderBytes + record::kBlockHeaderBytes + 20] ^= std::byte{1};
        std::ofstream(file(), std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }

    const Folder folder_;
};

constexpr const char* kSecondBlock =
    R"({"lost":5,"cpu":0,"first_sequence":2}
{"cpu":0,"sequence":7,"timestamp":1000000007,"origin":0,"type":"c","payload_hex":""}
{"session":"0000000000abcdef","cpu":1}
{"cpu":1,"sequence":3,"timestamp":1000000003,"origin":0,"type":"d","payload_hex":""}
)";

TEST_F(Convert, KeepsARecordingPrivate) {
    const auto mode_of = [](const std::string& path) {
        struct stat status = {};
        EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
        return status.st_mode & 0777;
    };
    umask(022);
    const std::string lines = folder_.path("lines"), trace = folder_.path("trace");
    const std::string to = std::string(program) + " convert " + file() + " --to ";
    EXPECT_EQ(run(to + "json -o " + lines).status, 0);
    EXPECT_EQ(run(to + "ctf -o " + trace).status, 0);
    EXPECT_EQ(mode_of(lines), 0600u);
    EXPECT_EQ(mode_of(trace), 0700u);
    EXPECT_EQ(mode_of(trace + "/cpu_0"), 0600u);
}

TEST_F(Convert, WritesAJsonObjectForEachItem) {
    const Ran ran = convert("--to json");
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.output, std::string(R"({"cpu":0,"sequence":1,"timestamp":1000000001,"origin":0,)"
                                      R"("type":"a.\"type\"\u000a","payload_hex":"78797a"})"
                                      "\n"
                                      R"({"cpu":1,"sequence":7,"timestamp":1000000007,"origin":0,)"
                                      R"("type":"b","payload_hex":""})"
                                      "\n") +
                              kSecondBlock);
}

TEST_F(Convert, WritesARowOfCsvForEachItem) {
    const Ran ran = convert("--to csv");
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.output,
              "kind,cpu,sequence,timestamp,origin,type,payload_hex,lost,session\n"
              "event,0,1,1000000001,0,\"a.\"\"type\"\"\\n\",78797a,,\n"
              "event,1,7,1000000007,0,\"b\",,,\n"
              "loss,0,2,,,,,5,\n"
              "event,0,7,1000000007,0,\"c\",,,\n"
              "session,1,,,,,,,0000000000abcdef\n"
              "event,1,3,1000000003,0,\"d\",,,\n");
}

TEST_F(Convert, WritesATraceThatBabeltraceReads) {
    const Ran ran = convert("--to ctf -o " + folder_.path("trace"));
    ASSERT_EQ(ran.status, 0) << ran.output;
    if (run("command -v babeltrace2").status != 0) GTEST_SKIP() << "babeltrace2 is not installed";
    const Ran read = run("babeltrace2 " + folder_.path("trace"));
    EXPECT_EQ(read.status, 0) << read.output;
    EXPECT_EQ(std::count(read.output.begin(), read.output.end(), '\n'), 6) << read.output;
    EXPECT_THAT(read.output, HasSubstr("sequence = 1, emitted = 1000000001"));
    EXPECT_THAT(read.output, HasSubstr("kmes_lost"));
    EXPECT_THAT(read.output, HasSubstr("first_sequence = 2, count = 5"));
    EXPECT_THAT(read.output, HasSubstr("kmes_session"));
    EXPECT_THAT(read.output, HasSubstr("sequence = 3, emitted = 1000000003"));
}

// Checks the trace by a reader that only knows the schema.
TEST_F(Convert, WritesATraceOfPerfetto) {
    const std::string trace = folder_.path("trace");
    const Ran ran = convert("--to perfetto -o " + trace);
    ASSERT_EQ(ran.status, 0) << ran.output;
    const Ran read = run(fmt::format("python3 {} {} {}", perfetto_reader, perfetto_schema, trace));
    EXPECT_EQ(read.status, 0) << read.output;
    const auto event = [](unsigned time, unsigned track, const std::string& rest) {
        return fmt::format(
            "{{timestamp={} timestamp_clock_id=1 track_event={{type=TYPE_INSTANT track_uuid={} "
            "categories={}}} trusted_packet_sequence_id=1}}\n",
            time, track, rest);
    };
    const auto track = [](unsigned uuid, unsigned cpu) {
        return fmt::format(
            "{{track_descriptor={{uuid={} name=\"CPU {}\"}} trusted_packet_sequence_id=1}}\n", uuid,
            cpu);
    };
    const auto field = [](const std::string& name, const std::string& value) {
        return fmt::format(" debug_annotations={{name=\"{}\" {}}}", name, value);
    };
    const auto sequence = [&](unsigned number) {
        return field("sequence", fmt::format("uint_value={}", number));
    };
    EXPECT_EQ(
        read.output,
        "{clock_snapshot={clocks={clock_id=1 timestamp=1000000001} "
        "primary_trace_clock=BUILTIN_CLOCK_REALTIME} trusted_packet_sequence_id=1}\n" +
            track(1, 0) +
            event(1000000001, 1,
                  R"("userspace" name="a."type"\n")" + sequence(1) +
                      field("payload", R"(string_value=""xyz"")")) +
            track(2, 1) + event(1000000007, 2, R"("userspace" name="b")" + sequence(7)) +
            event(1000000007, 1,
                  R"("kmes.lost" name="events lost")" + field("first_sequence", "uint_value=2") +
                      field("count", "uint_value=5")) +
            event(1000000007, 1, R"("userspace" name="c")" + sequence(7)) +
            event(1000000003, 2,
                  R"("kmes.session" name="another producer")" +
                      field("session", R"(string_value="0000000000abcdef")")) +
            event(1000000003, 2, R"("userspace" name="d")" + sequence(3)));
}

TEST_F(Convert, SaysWhereAFileIsDamaged) {
    damage_first_block();
    const Ran ran = convert("--to json");
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output, HasSubstr("is damaged at byte 64: the checksum of the block is wrong"));
    EXPECT_THAT(ran.output, HasSubstr("1 whole blocks after it are not"));
}

TEST_F(Convert, SkipsDamageWhenAsked) {
    damage_first_block();
    const Ran ran = convert("--to json --skip-damage 2>/dev/null");
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output, HasSubstr(kSecondBlock));
}

TEST_F(Convert, RefusesUnknownFormsAndOtherFiles) {
    EXPECT_EQ(convert("--to xml").status, 2);
    EXPECT_THAT(convert("--to xml").output, HasSubstr("ctf, csv, json or perfetto is right"));
    EXPECT_EQ(convert("--to ctf").status, 2);
    const Ran ran = run(fmt::format("{} convert --to json /dev/null", program));
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output, HasSubstr("it is no plain file"));
    EXPECT_THAT(convert("--to json -o " + file()).output, HasSubstr("cannot create"));
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    ::testing::InitGoogleMock(&count, arguments);
    if (count != 4) {
        fmt::print(stderr, "usage: convert_test KMESCTL PERFETTO_READ SCHEMA\n");
        return 2;
    }
    kmes::kmesctl::program = arguments[1];
    kmes::kmesctl::perfetto_reader = arguments[2];
    kmes::kmesctl::perfetto_schema = arguments[3];
    return RUN_ALL_TESTS();
}
