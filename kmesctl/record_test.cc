// SPDX-License-Identifier: MIT
//
// kmesctl record: what a producer emits is in the file, whatever ends the recording.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kmes/user/producer.h"
#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::bytes_of_file;
using record::testing::Folder;
using record::testing::Read;
using record::testing::read_all;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* program = nullptr;

// A process of another sandbox may have the same number, and shares the abstract names.
std::string address() {
    static const std::string name = fmt::format("@kmes-record-test-{}", std::random_device()());
    return name;
}

// kmesctl with these arguments; its standard error is in a file.
class Kmesctl {
  public:
    Kmesctl(std::vector<std::string> arguments, std::string log, rlim_t file_bytes = RLIM_INFINITY)
        : log_(std::move(log)) {
        arguments.insert(arguments.begin(), program);
        std::vector<char*> words;
        for (std::string& argument : arguments) words.push_back(argument.data());
        words.push_back(nullptr);
        pid_ = fork();
        if (pid_ != 0) return;
        if (freopen(log_.c_str(), "w", stderr) == nullptr) _exit(99);
        const rlimit limit = {file_bytes, file_bytes};
        if (file_bytes != RLIM_INFINITY && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(98);
        execv(program, words.data());
        _exit(97);
    }
    ~Kmesctl() {
        if (pid_ > 0) finish(SIGKILL);
    }
    Kmesctl(const Kmesctl&) = delete;
    Kmesctl& operator=(const Kmesctl&) = delete;

    // The exit status, or -1 - the signal that ended it. `signal` 0: it ends by itself.
    int finish(int signal) {
        if (signal != 0) kill(pid_, signal);
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
    }
    pid_t pid() const { return pid_; }
    std::string log() const {
        const auto bytes = bytes_of_file(log_);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

  private:
    const std::string log_;
    pid_t pid_ = -1;
};

bool wait_until(const std::function<bool()>& condition) {
    const char* scale = getenv("KMES_TIMEOUT_SCALE");
    const double limit_ms = 30'000 * (scale != nullptr ? atof(scale) : 1);
    for (double waited_ms = 0; waited_ms < limit_ms; waited_ms += 10) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

class RecordCommand : public ::testing::Test {
  protected:
    RecordCommand() : producer_(options()) {
        EXPECT_EQ(producer_.start_without_registry(), 0);
        producer_.serve(address());
    }

    static ProducerOptions options() {
        ProducerOptions options;
        options.cpus = 1;
        options.capacity_bytes = 64 << 10;
        return options;
    }

    void emit(unsigned count) {
        const std::string payload(100, 'p');
        for (unsigned i = 0; i < count; ++i)
            EXPECT_EQ(producer_.emit(0, "test.type", std::as_bytes(std::span(payload))), 0);
    }

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

std::vector<std::uint64_t> numbers(std::uint64_t first, std::size_t count) {
    std::vector<std::uint64_t> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
}

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
    Kmesctl recorder(words(), log(), 4096);
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("File too large; it has everything up to"));
    EXPECT_EQ(read().wrong, "");
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

TEST_F(RecordCommand, RefusesAFileThatExists) {
    ASSERT_NE(fclose(fopen(file().c_str(), "w")), EOF);
    Kmesctl recorder(words(), log());
    EXPECT_EQ(recorder.finish(0), 1);
    EXPECT_THAT(recorder.log(), HasSubstr("exists; a name that no file has is right"));
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    ::testing::InitGoogleMock(&count, arguments);
    if (count != 2) {
        fmt::print(stderr, "usage: record_test KMESCTL\n");
        return 2;
    }
    kmes::kmesctl::program = arguments[1];
    return RUN_ALL_TESTS();
}
