// SPDX-License-Identifier: MIT
// kmesctl convert: each format has every event and every loss, and reports damage in one line.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::bytes_of_file;
using record::testing::event_of;
using record::testing::Folder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

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

// Runs the words under ptrace until the program begins its second write of an output. Sends it the
// signal there, and returns the status of its end.
int end_at_second_write(std::vector<std::string> words, int signal) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        execv(arguments[0], arguments.data());
        _exit(97);
    }
    int status = 0;
    waitpid(pid, &status, 0);  // the trap of exec
    ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD);
    for (int writes = 0; WIFSTOPPED(status) && writes < 2;) {
        ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
        waitpid(pid, &status, 0);
        __ptrace_syscall_info info = {};
        ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
        writes += info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_write;
    }
    EXPECT_TRUE(WIFSTOPPED(status)) << "it has ended before";
    kill(pid, signal);
    ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
    waitpid(pid, &status, 0);
    return status;
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
        // An event with an earlier time.
        EXPECT_EQ(writer.add_event(event_of(7, 0, "c", "")), 0);
        EXPECT_EQ(writer.add_session({1, 0xabcdef}), 0);
        EXPECT_EQ(writer.add_event(event_of(3, 1, "d", "")), 0);
        EXPECT_EQ(writer.close(), 0);
    }

    std::string file() const { return folder_.path("events"); }
    Ran convert(const std::string& more) const {
        return run(fmt::format("{} convert {} {}", program, more, file()));
    }
    // A recording whose output needs several writes. Its last event has this many bytes.
    void make_large(std::size_t last_bytes) const {
        record::Writer writer;
        record::FileHeader header;
        header.cpus = 1;
        EXPECT_EQ(writer.open(large(), header), 0);
        for (unsigned i = 1; i <= 200; ++i)
            EXPECT_EQ(writer.add_event(event_of(i, 0, "t", std::string(100, 'p'))), 0);
        EXPECT_EQ(writer.flush(), 0);
        EXPECT_EQ(writer.add_event(event_of(201, 0, "t", std::string(last_bytes, 'p'))), 0);
        EXPECT_EQ(writer.close(), 0);
    }
    std::string large() const { return folder_.path("large"); }
    std::string out() const { return folder_.path("out"); }
    // All names in the folder, except for those of the recordings.
    std::vector<std::string> outputs() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path(""))) {
            const std::string name = entry.path().filename().string();
            if (name != "events" && name != "large") names.push_back(name);
        }
        return names;
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

TEST_F(Convert, ADashIsStandardOutput) {
    const std::string in_folder = fmt::format("cd {} && {} convert ", folder_.path(""),
                                              std::filesystem::absolute(program).string());
    for (const char* form : {"json", "csv", "perfetto"}) {
        const std::string to = fmt::format("{} --to {} ", file(), form);
        const Ran ran = run(in_folder + to + "-o -");
        EXPECT_EQ(ran.status, 0) << form;
        EXPECT_EQ(ran.output, run(in_folder + to).output) << form;
        EXPECT_NE(access(folder_.path("-").c_str(), F_OK), 0) << form;
    }
    EXPECT_EQ(run(in_folder + file() + " --to ctf -o -").status, 2) << "a trace is a folder";
    EXPECT_NE(access(folder_.path("-").c_str(), F_OK), 0);
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
    EXPECT_THAT(ran.output, HasSubstr("and 1 whole block after it is not (--skip-damage)"));
}

TEST_F(Convert, SaysThatNothingIsAfterTheDamage) {
    std::ofstream(file(), std::ios::binary | std::ios::app) << "x";
    const Ran ran = convert("--to json");
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output,
                HasSubstr("1 byte at its end is not a whole block: the file is truncated"));
    EXPECT_THAT(ran.output, HasSubstr("and no whole block follows"));
    EXPECT_THAT(convert("--to json --skip-damage").output,
                HasSubstr("the output lacks what follows the last whole block"));
}

// The limit of file sizes permits only a part of the output.
TEST_F(Convert, RemovesWhatItCouldNotFinish) {
    make_large(100);
    for (const char* form : {"json", "csv", "perfetto", "ctf"}) {
        const Ran ran = run(
            fmt::format("ulimit -f 8; {} convert --to {} -o {} {}", program, form, out(), large()));
        EXPECT_EQ(ran.status, 1) << form;
        EXPECT_THAT(ran.output,
                    HasSubstr(out() + ": cannot write the output: File too large; the incomplete"));
        EXPECT_THAT(outputs(), IsEmpty()) << form;
    }
}

TEST_F(Convert, RemovesTheOutputAtASignal) {
    make_large(100);
    for (const std::string form : {"json", "csv", "perfetto", "ctf"}) {
        for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
            const int status = end_at_second_write(
                {program, "convert", "--to", form, "-o", out(), large()}, signal);
            EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << form << status;
            EXPECT_THAT(outputs(), IsEmpty()) << form << signal;
        }
    }
}

TEST_F(Convert, HasNoOutputOfTheNameIfKilled) {
    make_large(100);
    for (const std::string form : {"json", "csv", "perfetto", "ctf"}) {
        end_at_second_write({program, "convert", "--to", form, "-o", out(), large()}, SIGKILL);
        EXPECT_THAT(outputs(), ElementsAre(StartsWith(".kmesctl-"))) << form;
        const Ran again =
            run(fmt::format("{} convert --to {} -o {} {}", program, form, out(), large()));
        EXPECT_EQ(again.status, 0) << again.output;
        for (const std::string& name : outputs()) std::filesystem::remove_all(folder_.path(name));
    }
}

// Some of these limits are reached in the middle of the output.
TEST_F(Convert, RemovesTheOutputWithoutMemory) {
    make_large(4 << 20);
    for (const char* form : {"json", "ctf"}) {
        unsigned removed = 0;
        for (unsigned limit_kb = 8'000; limit_kb < 40'000; limit_kb += 4'000) {
            const Ran ran = run(fmt::format("ulimit -v {}; {} convert --to {} -o {} {}", limit_kb,
                                            program, form, out(), large()));
            removed += ran.output.find("no memory is left; the incomplete output was removed") !=
                       std::string::npos;
            if (ran.status == 0)
                std::filesystem::remove_all(out());
            else
                EXPECT_THAT(outputs(), IsEmpty()) << form << ": " << limit_kb << ran.output;
        }
        EXPECT_NE(removed, 0u) << form;
    }
}

// Standard output keeps what was written: there is no output to remove.
TEST_F(Convert, NamesTheCommandThatHasNoMemory) {
    make_large(4 << 20);
    unsigned refused = 0;
    for (unsigned limit_kb = 8'000; limit_kb < 40'000; limit_kb += 4'000) {
        const Ran ran = run(fmt::format("(ulimit -v {}; {} convert --to json {} >/dev/null)",
                                        limit_kb, program, large()));
        EXPECT_EQ(ran.output.find("bad_alloc"), std::string::npos) << limit_kb;
        if (ran.output != "kmesctl: convert failed: no memory is left\n") continue;
        EXPECT_EQ(ran.status, 1) << limit_kb;
        ++refused;
    }
    EXPECT_NE(refused, 0u);
}

TEST_F(Convert, ReplacesNoOutput) {
    const std::string taken = folder_.path("taken");
    for (const char* form : {"json", "ctf"}) {
        std::filesystem::create_symlink("nowhere", taken);
        const Ran ran = convert(fmt::format("--to {} -o {}", form, taken));
        EXPECT_EQ(ran.status, 1) << form;
        EXPECT_THAT(ran.output, HasSubstr("cannot create " + taken + ": File exists"));
        EXPECT_THAT(outputs(), ElementsAre("taken")) << form;
        std::filesystem::remove(taken);
    }
    EXPECT_EQ(convert("--to ctf -o " + out() + "/").status, 0);
    EXPECT_THAT(outputs(), ElementsAre("out"));
}

TEST_F(Convert, SkipsDamageWhenAsked) {
    damage_first_block();
    const Ran ran = convert("--to json --skip-damage 2>/dev/null");
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output, HasSubstr(kSecondBlock));
    EXPECT_THAT(convert("--to json --skip-damage").output,
                HasSubstr("the output lacks the events of 1 damaged block"));
}

TEST_F(Convert, RefusesUnknownFormsAndOtherFiles) {
    EXPECT_EQ(convert("--to xml").status, 2);
    EXPECT_THAT(convert("--to xml").output, HasSubstr("expected ctf, csv, json or perfetto"));
    EXPECT_EQ(convert("--to ctf").status, 2);
    const Ran ran = run(fmt::format("{} convert --to json /dev/null", program));
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.output, HasSubstr("it is not a regular file"));
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
