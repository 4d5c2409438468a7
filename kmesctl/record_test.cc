// SPDX-License-Identifier: MIT
// kmesctl record: the events of a producer are in the file, whatever ends the recording.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/producer.h"
#include "kmesctl/test_program.h"
#include "record/reader.h"
#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::bytes_of_file;
using record::testing::Folder;
using record::testing::Read;
using record::testing::read_all;
using testing::address;
using testing::file_limit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Kmesctl;
using testing::numbers;
using testing::small_rings;
using testing::wait_until;

class RecordCommand : public ::testing::Test {
  protected:
    RecordCommand() : producer_(small_rings()) {
        EXPECT_EQ(producer_.start_without_registry(), 0);
        producer_.serve(address());
    }

    void emit(unsigned count) { testing::emit(&producer_, count); }

    std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
        std::vector<std::string> words = {"record",  "-o",     file(), "--socket",
                                          address(), "--sync", "1"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string file() const { return folder_.path("events"); }
    std::string log() const { return folder_.path("log"); }
    Read read() const { return read_all(bytes_of_file(file())); }
    bool wait_for_events(std::size_t count) const {
        return wait_until([&] { return read().sequences.size() >= count; });
    }

    const Folder folder_;
    Producer producer_;
};

TEST_F(RecordCommand, HasAllEventsAndSaysSo) {
    emit(100);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(100)) << recorder.log();
    emit(50);
    ASSERT_TRUE(wait_for_events(150)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("150 events in 1 file, 0 lost"));
    EXPECT_EQ(read().sequences, numbers(1, 150));
    EXPECT_EQ(read().wrong, "");
}

TEST_F(RecordCommand, KeepsWhatWasSyncedWhenItIsKilled) {
    emit(100);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(100)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGKILL), -1 - SIGKILL);
    EXPECT_EQ(read().sequences, numbers(1, 100));
}

TEST_F(RecordCommand, RecordsALossWhereItHappened) {
    emit(10);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    const auto before = read();
    ASSERT_THAT(before.losses, IsEmpty());
    kill(recorder.pid(), SIGSTOP);
    emit(2000);  // several times the ring
    kill(recorder.pid(), SIGCONT);
    ASSERT_TRUE(wait_until([&] {
        const Read now = read();
        return !now.sequences.empty() && now.sequences.back() == 2010;
    })) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    const Read all = read();
    std::uint64_t lost = 0;
    for (const record::Loss& loss : all.losses) lost += loss.count;
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(lost + all.sequences.size(), 2010u);
    EXPECT_THAT(recorder.log(), HasSubstr(fmt::format("{} lost", lost)));
}

TEST_F(RecordCommand, EndsWithOneLineAndAReadableFileAtALimit) {
    emit(100);
    Kmesctl recorder(words(), log(), file_limit(4096));
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("File too large; it has everything up to"));
    EXPECT_EQ(read().wrong, "");
}

// The sequence numbers of the second producer restart; the file says where.
TEST_F(RecordCommand, RecordsWhereAnotherProducerBegins) {
    const std::string next = address() + "-next";
    auto first = std::make_unique<Producer>(small_rings());
    ASSERT_EQ(first->start_without_registry(), 0);
    first->serve(next);
    testing::emit(first.get(), 10);
    Kmesctl recorder({"record", "-o", file(), "--socket", next, "--sync", "1"}, log());
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    first.reset();
    Producer second(small_rings());
    ASSERT_EQ(second.start_without_registry(), 0);
    second.serve(next);
    testing::emit(&second, 5);
    ASSERT_TRUE(wait_for_events(15)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("another producer serves now"));
    const Read all = read();
    auto expected = numbers(1, 10);
    for (const std::uint64_t number : numbers(1, 5)) expected.push_back(number);
    EXPECT_EQ(all.sequences, expected);
    ASSERT_EQ(all.sessions.size(), 1u);
    EXPECT_EQ(all.sessions.front().cpu, 0u);
    EXPECT_THAT(all.losses, IsEmpty());
}

TEST_F(RecordCommand, RotatesAndKeepsTheLastFiles) {
    Kmesctl recorder(words({"--rotate-size", "4096", "--keep", "2"}), log());
    ASSERT_TRUE(wait_until([&] {
        emit(20);
        return std::filesystem::exists(file() + ".5");
    })) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    unsigned files = 0;
    for (unsigned number = 1; number < 1000; ++number)
        files += std::filesystem::exists(fmt::format("{}.{}", file(), number)) ? 1 : 0;
    EXPECT_EQ(files, 2u);
    EXPECT_FALSE(std::filesystem::exists(file() + ".1"));
}

TEST_F(RecordCommand, RecordsAReplayAsTheFirstRecording) {
    emit(100);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(100)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);

    const std::string again = folder_.path("again");
    Kmesctl replay({"replay", file(), "--socket", address() + "-again", "--as-fast-as-possible"},
                   folder_.path("replay.log"));
    ASSERT_TRUE(wait_until([&] {
        return replay.log().find("100 events emitted, 0 refused") != std::string::npos;
    })) << replay.log();
    Kmesctl second({"record", "-o", again, "--socket", address() + "-again", "--sync", "1"}, log());
    ASSERT_TRUE(wait_until([&] { return read_all(bytes_of_file(again)).sequences.size() >= 100; }))
        << second.log();
    EXPECT_EQ(second.finish(SIGTERM), 0);
    EXPECT_EQ(replay.finish(SIGTERM), 0);
    EXPECT_EQ(read_all(bytes_of_file(again)).sequences, numbers(1, 100));
}

// All events are in the ring before the recorder begins, so one read finds them.
TEST_F(RecordCommand, RotatesAtTheSizeHoweverMuchIsUnread) {
    constexpr std::uint64_t kRotateBytes = 4096;
    constexpr std::uint64_t kMostAfterIt = 512;  // one event, and the heads of a block
    emit(300);
    Kmesctl recorder(words({"--rotate-size", std::to_string(kRotateBytes)}), log());
    ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(file() + ".9"); }))
        << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    for (unsigned number = 1; number < 10; ++number) {
        const auto bytes = std::filesystem::file_size(fmt::format("{}.{}", file(), number));
        EXPECT_LE(bytes, kRotateBytes + kMostAfterIt) << number;
    }
}

TEST_F(RecordCommand, HasTheCapacityOfTheRings) {
    emit(1);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(1)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    record::Reader reader;
    std::string wrong;
    ASSERT_TRUE(reader.open(record::open_file(file(), &wrong), &wrong)) << wrong;
    EXPECT_EQ(reader.header().capacity_bytes, small_rings().capacity_bytes);
}

// As nohup starts it.
TEST_F(RecordCommand, ContinuesAfterASignalThatIsIgnored) {
    Kmesctl recorder(words(), log(), [] { signal(SIGHUP, SIG_IGN); });
    ASSERT_TRUE(recorder.says("records 1 CPUs")) << recorder.log();
    kill(recorder.pid(), SIGHUP);
    emit(10);
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
}

TEST_F(RecordCommand, NeedsNoStandardError) {
    const auto full = [] { dup2(open("/dev/full", O_WRONLY), STDERR_FILENO); };
    const auto closed = [] { close(STDERR_FILENO); };
    for (const std::function<void()>& prepare : {std::function<void()>(full), {closed}}) {
        std::filesystem::remove(file());
        Kmesctl recorder(words(), log(), prepare);
        emit(10);
        ASSERT_TRUE(wait_for_events(10));
        EXPECT_EQ(recorder.finish(SIGTERM), 0);
        EXPECT_EQ(Kmesctl(words(), log(), prepare).finish(0), 1);  // the file exists
    }
}

// The signal has come before the first event.
TEST_F(RecordCommand, ASignalEndsAReplayWithoutAPace) {
    emit(100);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(100)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    const auto with_a_signal = [] {
        sigset_t end;
        sigemptyset(&end);
        sigaddset(&end, SIGTERM);
        sigprocmask(SIG_BLOCK, &end, nullptr);
        raise(SIGTERM);
    };
    Kmesctl replay({"replay", file(), "--socket", address() + "-again", "--as-fast-as-possible"},
                   folder_.path("replay.log"), with_a_signal);
    EXPECT_EQ(replay.finish(0), 0);
    EXPECT_THAT(replay.log(), HasSubstr("0 events emitted, 0 refused"));
}

// The address space has room for the mapping of one CPU.
TEST(RecordOfSeveralCpus, SaysWhichOneCannotBeRead) {
    if (record::testing::is_sanitized()) GTEST_SKIP() << "a sanitizer needs terabytes";
    constexpr std::uint64_t kCapacityBytes = std::uint64_t{64} << 20;
    const auto little_memory = [] {
        const rlimit limit = {3 * kCapacityBytes, 3 * kCapacityBytes};
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(98);
    };
    ProducerOptions options = small_rings();
    options.cpus = 2;
    options.capacity_bytes = kCapacityBytes;
    Producer producer(options);
    ASSERT_EQ(producer.start_without_registry(), 0);
    const std::string socket = address() + "-large";
    producer.serve(socket);
    const Folder folder;
    for (const std::string& how : {std::string("--sync=1"), std::string("--snapshot")}) {
        const std::string file = folder.path("events" + how);
        Kmesctl recorder({"record", "-o", file, "--socket", socket, how}, folder.path("log"),
                         little_memory);
        ASSERT_TRUE(recorder.says("events" + how)) << recorder.log();
        EXPECT_EQ(recorder.finish(how == "--snapshot" ? SIGUSR2 : SIGTERM), 1);
        EXPECT_THAT(recorder.log(), HasSubstr("; 1 CPU could not be read"));
    }
}

TEST_F(RecordCommand, RefusesAFileThatExists) {
    ASSERT_NE(fclose(fopen(file().c_str(), "w")), EOF);
    Kmesctl recorder(words(), log());
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("exists; a name that no file has is right"));
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
