// SPDX-License-Identifier: GPL-2.0-only
//
// Tests the command line of kmesctl and its output. A virtual machine tests it with the module
// (kmod/vm).
#include "kmod/kmesctl/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "kmod/kmesctl/text.h"

namespace kmes::kmesctl {
namespace {

using ::testing::HasSubstr;

Command right(const std::vector<std::string>& arguments) {
    const ParsedCommand parsed = parse_command(arguments);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.help, "");
    return parsed.command;
}

std::string wrong(const std::vector<std::string>& arguments) {
    const ParsedCommand parsed = parse_command(arguments);
    EXPECT_EQ(parsed.error.find('\n'), std::string::npos);
    EXPECT_NE(parsed.error, "");
    return parsed.error;
}

TEST(Command, Emits) {
    const Command plain = right({"emit", "a.type"});
    EXPECT_EQ(plain.verb, Verb::emit);
    EXPECT_EQ(plain.device, "/dev/kmes");
    EXPECT_EQ(plain.type, "a.type");
    EXPECT_EQ(plain.payload, "");
    EXPECT_FALSE(plain.payload_file);
    EXPECT_EQ(plain.count, 1u);
    const Command all = right({"--device", "other", "emit", "t", "--count", "7", "some bytes"});
    EXPECT_EQ(all.device, "other");
    EXPECT_EQ(all.payload, "some bytes");
    EXPECT_EQ(all.count, 7u);
    EXPECT_EQ(right({"emit", "t", "--file", "-"}).payload_file, "-");
}

TEST(Command, Configures) {
    const Command resize = right({"resize", "--capacity", "128K"});
    EXPECT_EQ(resize.verb, Verb::resize);
    EXPECT_EQ(resize.buffer_capacity, 131072u);
    EXPECT_EQ(resize.max_event_size, 0u);
    EXPECT_EQ(right({"resize", "--max-event-size", "1M"}).max_event_size, 1048576u);
    EXPECT_EQ(right({"resize", "--capacity=268435456"}).buffer_capacity, 268435456u);
    const Command ready = right({"registry-available"});
    EXPECT_EQ(ready.verb, Verb::registry_available);
    EXPECT_EQ(ready.buffer_capacity, 0u);
    EXPECT_EQ(right({"registry-available", "--capacity", "64K"}).buffer_capacity, 65536u);
}

TEST(Command, Prints) {
    EXPECT_EQ(right({"list"}).verb, Verb::list);
    EXPECT_FALSE(right({"list"}).json);
    EXPECT_TRUE(right({"list", "--json"}).json);
    EXPECT_EQ(right({"statistics"}).verb, Verb::statistics);
    EXPECT_EQ(right({"statistics"}).cpu, std::nullopt);
    const Command one = right({"statistics", "--cpu", "3", "--json"});
    EXPECT_EQ(one.cpu, 3u);
    EXPECT_TRUE(one.json);
}

TEST(Command, NamesTheValidValues) {
    EXPECT_THAT(wrong({"resize"}), HasSubstr("resize needs --capacity"));
    for (const char* capacity : {"100000", "32K", "512M", "-1", "64k", "0x10000", "M"})
        EXPECT_THAT(wrong({"resize", std::string("--capacity=") + capacity}),
                    HasSubstr("expected a power of two from 64K to 256M"));
    for (const char* size : {"1000", "5M", "1G"})
        EXPECT_THAT(wrong({"resize", "--max-event-size", size}), HasSubstr("expected 1K to 4M"));
    EXPECT_THAT(wrong({"emit", "t", "--count", "0"}), HasSubstr("expected 1 or more"));
    EXPECT_THAT(wrong({"emit", ""}), HasSubstr("1 to 65535 bytes"));
    EXPECT_THAT(wrong({"emit", std::string(65536, 't')}), HasSubstr("1 to 65535 bytes"));
    EXPECT_THAT(wrong({"statistics", "--cpu", "x"}), HasSubstr("expected the number of a CPU"));
    EXPECT_THAT(wrong({"--device", "", "list"}), HasSubstr("expected the path of a device"));
    wrong({});
    wrong({"emit"});
    wrong({"unknown"});
    wrong({"list", "more"});
    wrong({"emit", "t", "payload", "--file", "f"});
    wrong({"resize", "--json", "--capacity", "64K"});
}

TEST(Command, Helps) {
    EXPECT_THAT(parse_command({"--help"}).help, HasSubstr("registry-available"));
    EXPECT_THAT(parse_command({"emit", "--help"}).help, HasSubstr("--count"));
}

TEST(Bytes, HaveUnits) {
    EXPECT_EQ(parse_bytes("64K"), 65536u);
    EXPECT_EQ(parse_bytes("4M"), 4194304u);
    EXPECT_EQ(parse_bytes("12"), 12u);
    for (const char* text :
         {"", "K", "1KK", " 1", "1 ", "99999999999999999999", "18446744073709551615M"})
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Text, HasARowForEachBuffer) {
    kmes_buffer_info current{};
    current.inode = 17;
    current.capacity = 65536;
    current.generation = 2;
    kmes_buffer_info retired{};
    retired.cpu = 1;
    retired.inode = 9;
    retired.is_retired = 1;
    EXPECT_EQ(buffers_text({current, retired}),
              "cpu  inode  capacity  generation  write_pos  tail_pos  mappings  descriptors  "
              "is_retired\n"
              "  0     17     65536           2          0         0         0            0  "
              "        no\n"
              "  1      9         0           0          0         0         0            0  "
              "       yes\n");
    EXPECT_EQ(buffers_text({}), "none\n");
    EXPECT_EQ(buffers_json({}), "[]\n");
    EXPECT_THAT(buffers_json({retired}), HasSubstr("\"is_retired\": true"));
}

TEST(Text, HasEveryFigureOfTheStatistics) {
    kmes_ioctl_statistics one{};
    one.phase = 1;
    one.last_sequence = UINT64_MAX;
    const std::string json = statistics_json({one});
    for (const char* name :
         {"cpu", "phase", "events", "bytes", "dropped", "dropped_nested", "dropped_no_cpu",
          "overwritten", "wakes", "corrupt", "swaps", "left_behind", "last_sequence", "capacity",
          "max_event_size", "longest_pause_ns"})
        EXPECT_THAT(json, HasSubstr("\"" + std::string(name) + "\":"));
    EXPECT_THAT(json, HasSubstr("\"phase\": \"rings\""));
    EXPECT_THAT(json, HasSubstr("18446744073709551615"));
    EXPECT_THAT(statistics_text({one}), HasSubstr("18446744073709551615"));
}

TEST(Text, ExplainsErrorsByWhatWasAsked) {
    EXPECT_THAT(explain_error(Verb::emit, EPERM), HasSubstr("CAP_AUDIT_WRITE"));
    EXPECT_THAT(explain_error(Verb::resize, EPERM), HasSubstr("CAP_SYS_ADMIN"));
    EXPECT_THAT(explain_error(Verb::list, EPERM), HasSubstr("CAP_AUDIT_READ"));
    EXPECT_THAT(explain_error(Verb::statistics, EPERM), HasSubstr("CAP_AUDIT_READ"));
    EXPECT_THAT(explain_error(Verb::emit, EINVAL), HasSubstr("UTF-8"));
    EXPECT_THAT(explain_error(Verb::emit, EBUSY), HasSubstr("on another CPU"));
    EXPECT_THAT(explain_error(Verb::resize, ENOMEM), HasSubstr("nothing has changed"));
    EXPECT_THAT(explain_error(Verb::registry_available, EALREADY), HasSubstr("boot phase is over"));
    EXPECT_THAT(explain_error(Verb::list, EIO), HasSubstr("error"));
}

}  // namespace
}  // namespace kmes::kmesctl
