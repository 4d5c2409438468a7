// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A reader on libkmes whose producer is killed, and the next producer (E25). This program is also
// the producers (main, at the end).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/reader_set.h"
#include "kmes/user/test_support.h"

namespace kmes {

// produce <type> <events>: serves at KMES_SOCKET, emits, and waits until it is killed.
int produce(const std::string& type, int events) {
    Producer producer(test_options());

    if (producer.start_without_registry() != 0) return 1;
    for (int i = 0; i < events; i++) {
        if (producer.emit(0, type) != 0) return 2;
    }
    producer.serve(getenv("KMES_SOCKET"));
    printf("ready\n");
    fflush(stdout);
    for (;;) pause();
}

int run_role(int argc, char** argv) {
    if (argc == 4 && std::string(argv[1]) == "produce") return produce(argv[2], atoi(argv[3]));
    return 125;
}

namespace {

constexpr uint64_t kLimitNs = 20000000;

class RestartTest : public testing::Test {
  protected:
    void SetUp() override { setenv("KMES_SOCKET", address_.c_str(), 1); }
    void TearDown() override {
        kmes_reader_close(&reader_);
        unsetenv("KMES_SOCKET");
    }

    void start(const std::string& type, int events) {
        producer_ = std::make_unique<Child>(
            std::vector<std::string>{"produce", type, std::to_string(events)}, address_);
        ASSERT_EQ("ready", producer_->line());
    }

    void kill_producer() {
        ASSERT_EQ(0, kill(producer_->pid(), SIGKILL));
        ASSERT_EQ(-1 - SIGKILL, producer_->finish());
    }

    int open() {
        kmes_reader_by_libkmes(&config_, 0);
        return kmes_reader_open(&reader_, &config_);
    }

    // Returns the types of the events that can be read now, one letter each.
    std::string drain() {
        std::string types;
        uint8_t copy[4096];
        struct kmes_event_view view;

        while (kmes_reader_next(&reader_, copy, sizeof(copy), &view) == KMES_READ_EVENT)
            types.append(reinterpret_cast<const char*>(view.type), view.type_len);
        return types;
    }

    TemporaryFolder folder_;
    std::string address_ = folder_.path("socket");
    std::unique_ptr<Child> producer_;
    struct kmes_reader_config config_ = {};
    struct kmes_reader reader_ = {};
};

TEST_F(RestartTest, ReaderComesOverToTheNextProducer) {
    start("a", 3);
    ASSERT_EQ(0, open());
    EXPECT_EQ("aaa", drain());
    EXPECT_EQ(-ETIMEDOUT, kmes_reader_wait(&reader_, kLimitNs));
    EXPECT_EQ(0, reader_.producer_error);
    kill_producer();
    EXPECT_TRUE(comes_true([this] {
        EXPECT_EQ(-ETIMEDOUT, kmes_reader_wait(&reader_, kLimitNs));
        return reader_.producer_error == -ENOSYS;
    }));
    EXPECT_EQ("", drain());
    for (int round = 0; round < 3; round++) {
        std::string seen;

        start("b", 2);
        EXPECT_TRUE(comes_true([&] {
            kmes_reader_wait(&reader_, kLimitNs);
            seen += drain();
            return !seen.empty();
        }));
        EXPECT_EQ("bb", seen);
        EXPECT_EQ(0u, reader_.statistics.lost);
        kill_producer();
    }
    EXPECT_EQ(3u, reader_.statistics.switches);
}

// A new session numbers its events from 1 on.
TEST_F(RestartTest, ReaderThatComesOverLateCountsWhatItMissed) {
    constexpr uint64_t kEvents = 5000;  // more than a ring holds

    start("a", 3);
    ASSERT_EQ(0, open());
    EXPECT_EQ("aaa", drain());
    kill_producer();
    start("b", kEvents);
    std::string seen;

    EXPECT_TRUE(comes_true([&] {
        kmes_reader_wait(&reader_, kLimitNs);
        seen += drain();
        return !seen.empty();
    }));
    EXPECT_LT(seen.size(), kEvents);
    EXPECT_EQ(kEvents, seen.size() + reader_.statistics.lost);
    // A reader that opens with a place of the first session has missed as much.
    const auto lost = reader_.statistics.lost;
    const struct kmes_reader_place place = {1, 3, true};
    kmes_reader_close(&reader_);
    config_.place = place;
    ASSERT_EQ(0, open());
    EXPECT_EQ(seen, drain());
    EXPECT_EQ(lost, reader_.statistics.lost);
    // One without a place begins here.
    kmes_reader_close(&reader_);
    config_.place = {};
    ASSERT_EQ(0, open());
    EXPECT_EQ(seen, drain());
    EXPECT_EQ(0u, reader_.statistics.lost);
}

TEST_F(RestartTest, SetTellsThatItsProducerWasKilled) {
    struct kmes_reader_set* set = nullptr;

    start("a", 1);
    ASSERT_EQ(0, kmes_reader_set_open(&set, nullptr));
    EXPECT_EQ(0, kmes_reader_set_error(set, 0));
    kill_producer();
    EXPECT_TRUE(comes_true([&] {
        kmes_reader_set_wait(set, kLimitNs);
        struct kmes_event_view view;
        while (kmes_reader_set_next(set, &view) == KMES_READ_EVENT) continue;
        return kmes_reader_set_error(set, 0) == -ENOSYS;
    }));
    start("b", 1);
    EXPECT_TRUE(comes_true([&] {
        kmes_reader_set_wait(set, kLimitNs);
        struct kmes_event_view view;
        return kmes_reader_set_next(set, &view) == KMES_READ_EVENT;
    }));
    EXPECT_EQ(0, kmes_reader_set_error(set, 0));
    kmes_reader_set_close(set);
}

// -- A producer that does not answer -----------------------------------------------------------

class StoppedTest : public RestartTest {
  protected:
    void SetUp() override {
        RestartTest::SetUp();
        start("a", 1);
        ASSERT_EQ(0, open());
        ASSERT_EQ("a", drain());
        open_before_ = open_descriptors();
    }

    void stop_producer() {
        ASSERT_EQ(0, kill(producer_->pid(), SIGSTOP));
        ASSERT_TRUE(comes_true([this] {
            std::ifstream file("/proc/" + std::to_string(producer_->pid()) + "/stat");
            const std::string text(std::istreambuf_iterator<char>(file), {});

            return text.find(") T ") != std::string::npos;
        }));
    }
    void continue_producer() { ASSERT_EQ(0, kill(producer_->pid(), SIGCONT)); }

    // The question of a reader after its sleep.
    int ask() { return config_.is_current(nullptr, 0, &reader_.mapping); }
    // The last answer holds, or the producer is late on a slow machine.
    void expect_no_news() {
        const int answer = ask();

        EXPECT_TRUE(answer == 1 || answer == -ETIMEDOUT) << answer;
    }
    bool is_asking() const { return open_descriptors() > open_before_; }

    // Returns the number of the descriptor of a question without an answer.
    int ask_without_answer() {
        stop_producer();
        EXPECT_TRUE(comes_true([this] {
            expect_no_news();
            return is_asking();
        }));
        // The kernel gives the lowest free number.
        const int next = dup(0);

        close(next);
        for (int fd = next - 1; fd >= 0; fd--) {
            if (is_connection(fd)) return fd;
        }
        return -1;
    }

    size_t open_before_ = 0;

  private:
    static bool is_connection(int fd) {
        struct sockaddr_un peer = {};
        socklen_t length = sizeof(peer);

        return getpeername(fd, reinterpret_cast<struct sockaddr*>(&peer), &length) == 0;
    }
};

TEST_F(StoppedTest, DoesNotDelayItsReader) {
    ask_without_answer();
    continue_producer();
    EXPECT_TRUE(comes_true([this] {
        expect_no_news();
        return !is_asking();
    }));
}

TEST_F(StoppedTest, IsReportedUntilItAnswers) {
    ask_without_answer();
    EXPECT_TRUE(comes_true([this] { return ask() == -ETIMEDOUT; }));
    EXPECT_EQ(-ETIMEDOUT, ask());
    EXPECT_EQ(open_before_ + 1, open_descriptors()) << "one question at a time";
    continue_producer();
    EXPECT_TRUE(comes_true([this] { return ask() == 1; }));
    EXPECT_EQ(open_before_, open_descriptors());
}

TEST_F(StoppedTest, LeavesNoDescriptorOfItsReader) {
    ask_without_answer();
    kmes_reader_close(&reader_);
    EXPECT_EQ(open_before_ - 1, open_descriptors()) << "the lease is closed, too";
    continue_producer();
}

// The question counts as one without an answer if its producer is then killed.
TEST_F(StoppedTest, IsReportedIfItIsKilled) {
    ask_without_answer();
    kill_producer();
    EXPECT_TRUE(comes_true([this] { return ask() == -ENOSYS; }));
    EXPECT_EQ(open_before_, open_descriptors());
}

TEST_F(StoppedTest, AnswersTheParentAndNotItsChild) {
    ask_without_answer();
    const pid_t child = fork();

    if (child == 0) {
        ask();
        kmes_reader_close(&reader_);
        _exit(is_asking());
    }
    int status = -1;

    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    continue_producer();
    EXPECT_TRUE(comes_true([this] {
        expect_no_news();
        return !is_asking();
    }));
}

// As after closefrom: the number of the question is another file of the program.
TEST_F(StoppedTest, QuestionLeavesANumberAloneThatIsAnotherFile) {
    const int question = ask_without_answer();
    const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);

    ASSERT_GE(question, 0);
    ASSERT_EQ(question, dup2(other, question));
    close(other);
    continue_producer();
    EXPECT_TRUE(comes_true([this] {
        expect_no_news();
        return open_descriptors() == open_before_ + 1;
    }));
    EXPECT_EQ(0, close(question));
}

TEST_F(RestartTest, BadAddressIsNoMissingCpu) {
    setenv("KMES_SOCKET", "@", 1);
    EXPECT_EQ(-EINVAL, open());
    setenv("KMES_SOCKET", std::string(200, 'x').c_str(), 1);
    EXPECT_EQ(-ENAMETOOLONG, open());
}

TEST_F(RestartTest, ReaderWithoutATimeLimitComesOverToo) {
    start("a", 1);
    ASSERT_EQ(0, open());
    EXPECT_EQ("a", drain());
    kill_producer();
    start("b", 1);
    std::string seen;

    while (seen.empty()) {
        ASSERT_EQ(1, kmes_reader_wait(&reader_, KMES_NO_TIMEOUT));
        seen += drain();
    }
    EXPECT_EQ("b", seen);
}

// A set whose caller never sleeps.
TEST_F(RestartTest, SetThatPollsComesOverToo) {
    struct kmes_reader_set* set = nullptr;
    std::string seen;
    const auto append = [](void* context, const struct kmes_event_view* view) {
        static_cast<std::string*>(context)->append(reinterpret_cast<const char*>(view->type),
                                                   view->type_len);
        return 0;
    };

    start("a", 1);
    ASSERT_EQ(0, kmes_reader_set_open(&set, nullptr));
    EXPECT_EQ(1, kmes_reader_set_poll(set, 0, append, &seen));
    kill_producer();
    start("b", 1);
    EXPECT_TRUE(comes_true([&] {
        kmes_reader_set_poll(set, 0, append, &seen);
        return seen == "ab";
    }));
    kill_producer();
    start("c", 1);
    EXPECT_TRUE(comes_true([&] {
        if (kmes_reader_set_wait(set, 0) == 1) kmes_reader_set_consume(set, 0, append, &seen);
        return seen == "abc";
    }));
    kmes_reader_set_close(set);
}

TEST_F(RestartTest, ReopenedReaderGoesOnWhereTheFirstOneWas) {
    start("a", 3);
    ASSERT_EQ(0, open());
    EXPECT_EQ("aaa", drain());
    kmes_reader_close(&reader_);
    config_.place = kmes_reader_get_place(&reader_);
    ASSERT_EQ(0, open());
    EXPECT_EQ("", drain());
    kmes_reader_close(&reader_);
    kill_producer();
    start("b", 2);
    ASSERT_EQ(0, open());
    EXPECT_EQ("bb", drain()) << "the numbers of another session";
}

}  // namespace
}  // namespace kmes

int main(int argc, char** argv) {
    if (std::string(argv[0]) == "kmes_child") return kmes::run_role(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
