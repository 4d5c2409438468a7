// SPDX-License-Identifier: MIT
// Tests that kmesctl record writes the events of a producer, for each cause of its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
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
using record::testing::event_of;
using record::testing::Folder;
using record::testing::Read;
using record::testing::read_all;
using testing::address;
using testing::file_limit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Kmesctl;
using testing::memory_limit;
using ::testing::Not;
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
    // The numbers above `last` of the files of a rotation.
    std::vector<unsigned> files_after(unsigned last) const {
        constexpr unsigned kMost = 10'000;
        std::vector<unsigned> numbers;
        for (unsigned number = last + 1; number < kMost; ++number) {
            if (std::filesystem::is_regular_file(fmt::format("{}.{}", file(), number)))
                numbers.push_back(number);
        }
        return numbers;
    }
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

TEST_F(RecordCommand, RefusesADashAsAFile) {
    Kmesctl recorder({"record", "-o", "-", "--socket", address()}, log());
    EXPECT_EQ(recorder.finish(0), 2);
    EXPECT_THAT(recorder.log(), HasSubstr("a recording cannot go to standard output"));
    EXPECT_NE(access("-", F_OK), 0);
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

// The ring is empty when it attaches, and is overwritten several times before it reads.
TEST_F(RecordCommand, RecordsALossBeforeTheFirstEvent) {
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_until([&] { return testing::is_waited_for(producer_, 0); }));
    kill(recorder.pid(), SIGSTOP);
    emit(2000);
    kill(recorder.pid(), SIGCONT);
    ASSERT_TRUE(wait_until([&] {
        const Read now = read();
        return !now.sequences.empty() && now.sequences.back() == 2000;
    })) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    const Read all = read();
    ASSERT_EQ(all.losses.size(), 1u);
    EXPECT_EQ(all.losses[0].first_sequence, 1u);
    EXPECT_EQ(all.losses[0].count + all.sequences.size(), 2000u);
    EXPECT_THAT(recorder.log(), HasSubstr(fmt::format("{} lost", all.losses[0].count)));
}

TEST_F(RecordCommand, EndsWithOneLineAndAReadableFileAtALimit) {
    emit(100);
    Kmesctl recorder(words(), log(), file_limit(4096));
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("File too large; it has everything up to"));
    EXPECT_EQ(read().wrong, "");
}

// The sequence numbers of the second producer restart, and the file has the place.
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

// Serves one CPU, then two, then one.
TEST_F(RecordCommand, RecordsTheCpusThatEachProducerHas) {
    const std::string socket = address() + "-cpus";
    std::unique_ptr<Producer> producer;
    const auto serve = [&](unsigned cpus) {
        producer.reset();
        ProducerOptions options = small_rings();
        options.cpus = cpus;
        producer = testing::serve(options, socket);
        for (unsigned cpu = 0; cpu < cpus; ++cpu) {
            for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(producer->emit(cpu, "t"), 0);
        }
    };
    serve(1);
    Kmesctl recorder({"record", "-o", file(), "--socket", socket, "--sync", "1"}, log());
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    serve(2);
    ASSERT_TRUE(wait_for_events(30)) << recorder.log();
    serve(1);
    ASSERT_TRUE(wait_for_events(40)) << recorder.log();
    ASSERT_TRUE(recorder.says("the producer has 1 CPU now, and had 2")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("the producer has 2 CPUs now, and had 1"));
    EXPECT_THAT(recorder.log(),
                HasSubstr("40 events in 1 file, 0 lost, 0 corrupt places skipped\n"));
    EXPECT_EQ(recorder.log().find("cannot be read"), std::string::npos) << recorder.log();
    record::Reader reader;
    std::string wrong;
    ASSERT_TRUE(reader.open(record::open_file(file(), &wrong), &wrong)) << wrong;
    EXPECT_EQ(reader.header().cpus, 2u);
    EXPECT_EQ(read().sequences.size(), 40u);
    EXPECT_EQ(read().sessions.size(), 3u);
}

TEST_F(RecordCommand, RotatesAndKeepsTheLastFiles) {
    Kmesctl recorder(words({"--rotate-size", "4096", "--keep", "2"}), log());
    ASSERT_TRUE(wait_until([&] {
        emit(20);
        for (unsigned number = 5; number < 1000; ++number) {
            if (std::filesystem::exists(fmt::format("{}.{}", file(), number))) return true;
        }
        return false;
    })) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    unsigned files = 0;
    for (unsigned number = 1; number < 1000; ++number)
        files += std::filesystem::exists(fmt::format("{}.{}", file(), number)) ? 1 : 0;
    EXPECT_EQ(files, 2u);
    EXPECT_FALSE(std::filesystem::exists(file() + ".1"));
}

// As a service that is started again.
TEST_F(RecordCommand, ContinuesTheRotationOfAnEarlierRecording) {
    const auto record_some = [this](unsigned last) {
        Kmesctl recorder(words({"--rotate-size", "4096", "--keep", "2"}), log());
        EXPECT_TRUE(wait_until([&] {
            emit(20);
            return !files_after(last).empty();
        })) << recorder.log();
        EXPECT_EQ(recorder.finish(SIGTERM), 0) << recorder.log();
        return recorder.log();
    };
    EXPECT_THAT(record_some(5), Not(HasSubstr("earlier")));
    const std::vector<unsigned> first = files_after(0);
    ASSERT_EQ(first.size(), 2u);
    const std::string again = record_some(first.back() + 5);
    EXPECT_EQ(files_after(0).size(), 2u);
    EXPECT_EQ(files_after(first.back()).size(), 2u);
    EXPECT_THAT(again, HasSubstr("--keep has removed 2 files of earlier recordings"));
}

TEST_F(RecordCommand, PassesOverFilesThatAreNoRecordings) {
    const std::vector<std::string> others = {".3", ".03", ".4x", ".", ".99999999999", ".-1"};
    for (const std::string& other : others)
        ASSERT_NE(fclose(fopen((file() + other).c_str(), "w")), EOF);
    std::filesystem::create_symlink("nothing", file() + ".6");
    emit(300);
    Kmesctl recorder(words({"--rotate-size", "4096", "--keep", "1"}), log());
    ASSERT_TRUE(wait_until([&] {
        emit(20);
        return !files_after(12).empty();
    })) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    for (const std::string& other : others)
        EXPECT_TRUE(std::filesystem::exists(file() + other)) << other;
    EXPECT_TRUE(std::filesystem::is_symlink(file() + ".6"));
    EXPECT_FALSE(std::filesystem::exists(file() + ".1"));
}

TEST_F(RecordCommand, SkipsANameThatIsTakenMeanwhile) {
    Kmesctl recorder(words({"--rotate-size", "4096"}), log());
    ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(file() + ".1"); }));
    ASSERT_NE(fclose(fopen((file() + ".2").c_str(), "w")), EOF);
    emit(300);
    ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(file() + ".4"); }))
        << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_EQ(std::filesystem::file_size(file() + ".2"), 0u);
}

TEST_F(RecordCommand, RefusesTheRotationOfAnotherRecorder) {
    Kmesctl recorder(words({"--rotate-size", "4096"}), log());
    ASSERT_TRUE(recorder.says("records 1 CPU to")) << recorder.log();
    Kmesctl second(words({"--rotate-size", "4096", "--keep", "1"}), folder_.path("second.log"));
    EXPECT_EQ(second.finish(0), 1);
    EXPECT_THAT(second.log(), HasSubstr("another recorder writes to " + file() + ".1; expected"));
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_TRUE(std::filesystem::exists(file() + ".1"));
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

// As with nohup.
TEST_F(RecordCommand, ContinuesAfterASignalThatIsIgnored) {
    Kmesctl recorder(words(), log(), [] { signal(SIGHUP, SIG_IGN); });
    ASSERT_TRUE(recorder.says("records 1 CPU to")) << recorder.log();
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

// The signal comes before the first event.
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
    EXPECT_EQ(replay.finish(0), -1 - SIGTERM);
    EXPECT_THAT(replay.log(), HasSubstr("0 of 100 events emitted, 0 refused"));
}

// Two events, ten hours apart, and a loss between them.
class ReplayCommand : public ::testing::Test {
  protected:
    ReplayCommand() {
        record::FileHeader header;
        header.cpus = 2;
        record::Writer writer;
        EXPECT_EQ(writer.open(file_, header), 0);
        EXPECT_EQ(writer.add_event(event_of(1, 0, "first", "")), 0);
        EXPECT_EQ(writer.add_loss({0, 2, 36'000'000'000'000 - 2}), 0);
        EXPECT_EQ(writer.add_event(event_of(36'000'000'000'000, 0, "second", "")), 0);
        EXPECT_EQ(writer.close(), 0);
    }
    std::vector<std::string> words(const std::vector<std::string>& more) const {
        std::vector<std::string> words = {"replay", file_, "--socket", address()};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string log() const { return folder_.path("log"); }

    const Folder folder_;
    const std::string file_ = folder_.path("events");
};

TEST_F(ReplayCommand, SaysWhatTheRecordingLost) {
    Kmesctl replay(words({"--as-fast-as-possible"}), log());
    EXPECT_TRUE(replay.says("2 events emitted, 0 refused; not replayed: 35999999999998 events"))
        << replay.log();
    EXPECT_EQ(replay.finish(SIGTERM), 0);
}

TEST_F(ReplayCommand, FailsIfAnEventIsRefused) {
    const std::string large = folder_.path("large");
    record::Writer writer;
    record::FileHeader header;
    header.cpus = 1;
    ASSERT_EQ(writer.open(large, header), 0);
    ASSERT_EQ(writer.add_event(event_of(1, 0, "large", std::string(60'000, 'x'))), 0);
    ASSERT_EQ(writer.add_event(event_of(2, 0, "small", "")), 0);
    ASSERT_EQ(writer.close(), 0);
    Kmesctl replay({"replay", large, "--socket", address() + "-replay", "--capacity", "64K",
                    "--as-fast-as-possible"},
                   folder_.path("replay.log"));
    ASSERT_TRUE(replay.says("1 event emitted, 1 refused")) << replay.log();
    EXPECT_EQ(replay.finish(SIGTERM), 1);
    EXPECT_THAT(replay.log(), HasSubstr("first refused: event 1 of CPU 0, 60"));
    EXPECT_THAT(replay.log(), HasSubstr("larger than half of the buffer"));
    EXPECT_THAT(replay.log(), HasSubstr("--capacity"));
}

TEST_F(ReplayCommand, ASignalBeforeTheLastEventIsItsStatus) {
    Kmesctl replay(words({}), log());
    ASSERT_TRUE(replay.says("replays at")) << replay.log();
    Kmesctl reader({"print", "--count", "1", "--socket", address()}, folder_.path("print.log"),
                   [] { dup2(STDERR_FILENO, STDOUT_FILENO); });
    ASSERT_EQ(reader.finish(0), 0) << reader.log();
    EXPECT_EQ(replay.finish(SIGINT), -1 - SIGINT);
    EXPECT_THAT(replay.log(), HasSubstr("1 of 2 events emitted, 0 refused"));
}

TEST_F(ReplayCommand, WaitsForAReaderOfEveryRing) {
    Kmesctl replay(words({"--wait", "--as-fast-as-possible", "--capacity", "64K"}), log());
    ASSERT_TRUE(replay.says("with 2 rings of 65536 bytes")) << replay.log();
    Kmesctl first({"record", "-o", folder_.path("again"), "--socket", address()},
                  folder_.path("record.log"));
    EXPECT_TRUE(replay.says("2 events emitted")) << replay.log();
    EXPECT_EQ(first.finish(SIGTERM), 0);
    EXPECT_EQ(replay.finish(SIGTERM), 0);
    EXPECT_EQ(read_all(bytes_of_file(folder_.path("again"))).sequences, numbers(1, 2));
    Kmesctl alone(words({"--wait", "--as-fast-as-possible"}), folder_.path("alone"));
    ASSERT_TRUE(alone.says("replays at")) << alone.log();
    EXPECT_EQ(alone.finish(SIGTERM), -1 - SIGTERM);
    EXPECT_THAT(alone.log(), HasSubstr("0 of 2 events emitted"));
}

// The address space has room for the mapping of one CPU.
TEST(RecordOfSeveralCpus, SaysWhichOneCannotBeRead) {
    if (record::testing::is_sanitized()) GTEST_SKIP() << "a sanitizer needs terabytes";
    constexpr std::uint64_t kCapacityBytes = std::uint64_t{64} << 20;
    ProducerOptions options = small_rings();
    options.cpus = 2;
    options.capacity_bytes = kCapacityBytes;
    const std::string socket = address() + "-large";
    const auto producer = testing::serve(options, socket);
    const Folder folder;
    for (const std::string& how : {std::string("--sync=1"), std::string("--snapshot")}) {
        const std::string file = folder.path("events" + how);
        Kmesctl recorder({"record", "-o", file, "--socket", socket, how}, folder.path("log"),
                         memory_limit(3 * kCapacityBytes));
        ASSERT_TRUE(recorder.says("events" + how)) << recorder.log();
        EXPECT_EQ(recorder.finish(how == "--snapshot" ? SIGUSR2 : SIGTERM), 1);
        EXPECT_THAT(recorder.log(), HasSubstr("; 1 CPU could not be read"));
    }
}

// The address space has room for three mappings. A set of the next producer's CPUs needs two in
// addition to those of the earlier set.
TEST(RecordOfSeveralCpus, SaysWhichOfTheNextProducerAreNotRead) {
    if (record::testing::is_sanitized()) GTEST_SKIP() << "a sanitizer needs terabytes";
    constexpr std::uint64_t kCapacityBytes = std::uint64_t{64} << 20;
    const std::string socket = address() + "-more";
    std::unique_ptr<Producer> producer;
    const auto serve = [&](unsigned cpus) {
        producer.reset();
        ProducerOptions options = small_rings();
        options.cpus = cpus;
        options.capacity_bytes = kCapacityBytes;
        producer = testing::serve(options, socket);
    };
    serve(2);
    const Folder folder;
    Kmesctl recorder({"record", "-o", folder.path("events"), "--socket", socket},
                     folder.path("log"), memory_limit(7 * kCapacityBytes));
    ASSERT_TRUE(recorder.says("records 2 CPUs")) << recorder.log();
    serve(3);
    EXPECT_TRUE(recorder.says("the CPUs from 2 to 2 are not read: ")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("; 1 CPU could not be read"));
}

TEST_F(RecordCommand, SaysHowManyEventsAreInTheFileAfterAnErrorOfIt) {
    emit(100);
    Kmesctl recorder({"record", "-o", file(), "--socket", address(), "--sync", "3600000"}, log(),
                     file_limit(4096));
    ASSERT_TRUE(recorder.says("records")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 1);
    EXPECT_EQ(read().sequences.size(), 0u);
    EXPECT_THAT(recorder.log(), HasSubstr("(0 events in 1 file; not written: 100 events that"));
}

// A recorder reads the ring to its end before it ends.
TEST_F(RecordCommand, SaysWhatKeepHasRemoved) {
    emit(300);
    Kmesctl recorder(words({"--rotate-size", "4096", "--keep", "2"}), log());
    ASSERT_TRUE(recorder.says("records 1 CPU to")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    std::size_t kept = 0;
    unsigned last = 0;
    for (unsigned number = 1; number <= 300; ++number) {
        const std::string path = fmt::format("{}.{}", file(), number);
        if (!std::filesystem::exists(path)) continue;
        kept += read_all(bytes_of_file(path)).sequences.size();
        last = number;
    }
    ASSERT_GT(last, 3u) << recorder.log();
    EXPECT_THAT(recorder.log(),
                HasSubstr(fmt::format(
                    "{} events in 2 files; --keep has removed {} files with {} events, 0 lost",
                    kept, last - 2, 300 - kept)));
}

TEST_F(RecordCommand, SaysThatItsFileWasRemoved) {
    emit(10);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    std::filesystem::remove(file());
    EXPECT_EQ(recorder.finish(SIGTERM), 1);
    EXPECT_THAT(recorder.log(),
                HasSubstr("0 events in 0 files; another process has removed 1 file with "
                          "10 events during the recording"));
}

// SIGUSR2 is only for a recorder with --snapshot.
TEST_F(RecordCommand, ContinuesAfterSigusr2) {
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("records 1 CPU to")) << recorder.log();
    kill(recorder.pid(), SIGUSR2);
    emit(10);
    ASSERT_TRUE(wait_for_events(10)) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("10 events in 1 file, 0 lost"));
}

TEST_F(RecordCommand, RefusesAFileThatExists) {
    ASSERT_NE(fclose(fopen(file().c_str(), "w")), EOF);
    Kmesctl recorder(words(), log());
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("exists; expected the name of a new file"));
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
