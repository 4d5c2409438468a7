// SPDX-License-Identifier: MIT
// Tests that kmesctl record --snapshot writes nothing without a reason. With a reason it writes the
// content of the rings, even if the producer has ended.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

class Snapshot : public ::testing::Test {
  protected:
    Snapshot() { serve(); }

    // Called after the end of the previous producer.
    void serve(unsigned cpus = 1) {
        ProducerOptions options = small_rings();
        options.cpus = cpus;
        producer_.reset();
        producer_ = testing::serve(options, address());
    }
    void emit(unsigned count) { testing::emit(producer_.get(), count); }
    void emit_type(const std::string& type) { EXPECT_EQ(producer_->emit(0, type, {}), 0); }

    std::string file() const { return folder_.path("events"); }
    std::string log() const { return folder_.path("log"); }
    std::vector<std::string> words(const std::vector<std::string>& more = {},
                                   const std::string& socket = address()) const {
        std::vector<std::string> words = {"record", "--snapshot", "-o", file(), "--socket", socket};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    // Call it after the program has ended: the file then exists.
    Read read() const {
        EXPECT_TRUE(std::filesystem::exists(file()));
        const Read read = read_all(bytes_of_file(file()));
        EXPECT_EQ(read.wrong, "");
        return read;
    }

    const Folder folder_;
    std::unique_ptr<Producer> producer_;
};

TEST_F(Snapshot, HasWhatTheRingsHoldWhenASignalComes) {
    emit(10);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("waits for SIGUSR2,")) << recorder.log();
    emit(2000);  // several times the ring
    EXPECT_FALSE(std::filesystem::exists(file()));
    EXPECT_EQ(recorder.finish(SIGUSR2), 0);
    const Read all = read();
    ASSERT_FALSE(all.sequences.empty());
    EXPECT_GT(all.sequences.front(), 10u);
    EXPECT_EQ(all.sequences, numbers(all.sequences.front(), all.sequences.size()));
    EXPECT_EQ(all.sequences.back(), 2010u);
    EXPECT_THAT(all.losses, IsEmpty());
    EXPECT_THAT(recorder.log(), HasSubstr(fmt::format("SIGUSR2 has come: {} events in {}, 0 lost",
                                                      all.sequences.size(), file())));
}

TEST_F(Snapshot, IsWrittenForAnEventThatMatches) {
    emit_type("app.crash");  // older than the recorder, so not a reason
    Kmesctl recorder(words({"--on-type", "app.cr*", "--on-type", "other"}), log());
    ASSERT_TRUE(recorder.says("an event that matches")) << recorder.log();
    emit(10);
    emit_type("app.crash");
    EXPECT_EQ(recorder.finish(0), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("event 12 of CPU 0 matches"));
    EXPECT_EQ(read().sequences, numbers(1, 12));
}

TEST_F(Snapshot, IsWrittenForAnEventWithAField) {
    Kmesctl recorder(words({"--on-field", "user=eve", "--on-type", "login"}), log());
    ASSERT_TRUE(recorder.says("an event that matches")) << recorder.log();
    const auto emit_user = [this](const std::string& type, const std::string& name) {
        const std::string payload = "\x81\xa4user\xa3" + name;  // MessagePack
        EXPECT_EQ(producer_->emit(0, type, std::as_bytes(std::span(payload))), 0);
    };
    emit_user("login", "bob");
    emit_user("logout", "eve");
    emit_user("login", "eve");
    EXPECT_EQ(recorder.finish(0), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("event 3 of CPU 0 matches"));
}

TEST_F(Snapshot, IsWrittenWhenAProcessEnds) {
    const pid_t process = fork();
    if (process == 0) {
        pause();
        _exit(0);
    }
    emit(10);
    Kmesctl recorder(words({"--on-exit", fmt::format("{}", process)}), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    kill(process, SIGKILL);
    EXPECT_EQ(recorder.finish(0), 0);
    waitpid(process, nullptr, 0);
    EXPECT_THAT(recorder.log(), HasSubstr(fmt::format("process {} has ended", process)));
    EXPECT_EQ(read().sequences, numbers(1, 10));
}

// Simulates a slow disk: the recorder is stopped for more than a second while it writes.
TEST_F(Snapshot, HasAllEventsHoweverLongTheWritingTakes) {
    constexpr std::uint64_t kEvents = 200'000;
    const std::string other = address() + "-large";
    ProducerOptions options = small_rings();
    options.capacity_bytes = 32 << 20;
    Producer large(options);
    ASSERT_EQ(large.start_without_registry(), 0);
    large.serve(other);
    testing::emit(&large, kEvents);
    Kmesctl recorder(words({}, other), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    kill(recorder.pid(), SIGUSR2);
    while (!std::filesystem::exists(file())) usleep(100);
    kill(recorder.pid(), SIGSTOP);
    sleep(2);
    kill(recorder.pid(), SIGCONT);
    EXPECT_EQ(recorder.finish(0), 0) << recorder.log();
    EXPECT_EQ(read().sequences, numbers(1, kEvents));
}

TEST_F(Snapshot, SaysThatASignalHasCutIt) {
    emit(100);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    kill(recorder.pid(), SIGSTOP);
    kill(recorder.pid(), SIGUSR2);
    kill(recorder.pid(), SIGTERM);
    EXPECT_EQ(recorder.finish(SIGCONT), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("a signal ended it before all events were written"));
    read();
}

// The rings outlive the process that wrote them.
TEST_F(Snapshot, HasTheEventsOfAProducerThatIsKilled) {
    const std::string other = address() + "-served";
    Kmesctl server({"serve", "--socket", other, "--cpus", "1"}, folder_.path("serve.log"));
    ASSERT_TRUE(server.says("serves")) << server.log();
    Kmesctl recorder(words({"--on-exit", fmt::format("{}", server.pid())}, other), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    Kmesctl emitter({"emit", "t", "--count", "5", "--socket", other}, folder_.path("emit.log"));
    ASSERT_EQ(emitter.finish(0), 0) << emitter.log();
    EXPECT_EQ(server.finish(SIGKILL), -1 - SIGKILL);
    EXPECT_EQ(recorder.finish(0), 0) << recorder.log();
    EXPECT_EQ(read().sequences, numbers(1, 5));
}

TEST_F(Snapshot, HasTheEventsOfTheProducerBeforeAndOfTheCurrentOne) {
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    emit(10);
    serve();
    emit(3);
    EXPECT_EQ(recorder.finish(SIGUSR2), 0);
    const Read all = read();
    auto expected = numbers(1, 10);
    for (const std::uint64_t number : numbers(1, 3)) expected.push_back(number);
    EXPECT_EQ(all.sequences, expected);
    EXPECT_EQ(all.sessions.size(), 1u);
    EXPECT_THAT(all.losses, IsEmpty());
}

TEST_F(Snapshot, AnEventOfACpuThatTheNextProducerHasMoreIsAReason) {
    Kmesctl recorder(words({"--on-type", "app.crash"}), log());
    ASSERT_TRUE(recorder.says("an event that matches")) << recorder.log();
    serve(2);
    ASSERT_TRUE(recorder.says("the producer has 2 CPUs now, and had 1")) << recorder.log();
    EXPECT_EQ(producer_->emit(1, "app.crash", {}), 0);
    ASSERT_TRUE(wait_until([&] { return recorder.has_ended(); })) << recorder.log();
    EXPECT_EQ(recorder.finish(0), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("event 1 of CPU 1 matches"));
}

TEST_F(Snapshot, CountsTheCpusOfTheProducerBefore) {
    serve(2);
    EXPECT_EQ(producer_->emit(1, "earlier", {}), 0);
    Kmesctl recorder(words({"--on-type", "app.crash"}), log());
    ASSERT_TRUE(recorder.says("an event that matches")) << recorder.log();
    serve(1);
    ASSERT_TRUE(recorder.says("the producer has 1 CPU now, and had 2")) << recorder.log();
    emit_type("app.crash");
    EXPECT_EQ(recorder.finish(0), 0);
    EXPECT_EQ(read().sequences.size(), 2u);
    record::Reader reader;
    std::string wrong;
    ASSERT_TRUE(reader.open(record::open_file(file(), &wrong), &wrong)) << wrong;
    EXPECT_EQ(reader.header().cpus, 2u);
}

TEST_F(Snapshot, HasTheEventsOfAllBuffersOfAResize) {
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    emit(10);
    ASSERT_EQ(producer_->resize(128 << 10), 0);
    emit(10);
    ASSERT_EQ(producer_->resize(256 << 10), 0);
    emit(10);
    EXPECT_EQ(recorder.finish(SIGUSR2), 0);
    EXPECT_EQ(read().sequences, numbers(1, 30));
}

TEST_F(Snapshot, IsNotWrittenWhenASignalEndsTheWait) {
    emit(10);
    Kmesctl recorder(words(), log());
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGTERM), 0);
    EXPECT_THAT(recorder.log(), HasSubstr("no snapshot was written"));
    EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Snapshot, IsWholeWhereTheFileMayNotGrow) {
    emit(400);
    Kmesctl recorder(words(), log(), file_limit(4096));
    ASSERT_TRUE(recorder.says("waits for")) << recorder.log();
    EXPECT_EQ(recorder.finish(SIGUSR2), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("File too large; it has everything up to"));
    read();
}

TEST_F(Snapshot, RefusesWhatCannotWork) {
    const auto refuses = [this](const std::vector<std::string>& more, int status,
                                const std::string& line) {
        Kmesctl recorder(words(more), log());
        EXPECT_EQ(recorder.finish(0), status);
        EXPECT_THAT(recorder.log(), HasSubstr(line));
    };
    refuses({"--keep", "2"}, 2, "--snapshot excludes --keep");
    refuses({"--on-exit", "0"}, 2, "a whole number from 1 to");
    refuses({"--on-exit", "2147483647"}, 1, "expected the number of a process");
    refuses({"--on-field", "x"}, 2, "expected PATH=VALUE");
    ASSERT_NE(fclose(fopen(file().c_str(), "w")), EOF);
    refuses({}, 1, "exists; expected the name of a new file");
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
