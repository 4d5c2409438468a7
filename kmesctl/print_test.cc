// SPDX-License-Identifier: MIT
// kmesctl print: the order of the events of several CPUs, and the lines between them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "kmes/user/producer.h"
#include "kmesctl/test_program.h"
#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::Folder;
using testing::address;
using testing::Kmesctl;
using testing::wait_until;

std::unique_ptr<Producer> serve(unsigned cpus) {
    ProducerOptions options;
    options.cpus = cpus;
    options.capacity_bytes = 4 << 20;
    return testing::serve(options, address());
}

void emit(Producer* producer, unsigned cpu, unsigned count, std::string_view type = "t") {
    for (unsigned i = 0; i < count; ++i) EXPECT_EQ(producer->emit(cpu, type), 0);
}

// Standard output goes to the file of standard error.
class PrintCommand : public ::testing::Test {
  protected:
    std::unique_ptr<Kmesctl> print(const std::vector<std::string>& more) const {
        std::vector<std::string> words = {"print", "--json", "--socket", address()};
        words.insert(words.end(), more.begin(), more.end());
        return std::make_unique<Kmesctl>(words, folder_.path("log"),
                                         [] { dup2(STDERR_FILENO, STDOUT_FILENO); });
    }

    const Folder folder_;
};

// emit must not ignore the digits after 10 MiB of white space: it emits all of them or fails.
TEST_F(PrintCommand, AnEmittedFileIsReadToItsEndOrRefused) {
    const auto producer = serve(1);
    const std::string file = folder_.path("digits");
    const auto emit_file = [&](std::size_t spaces) {
        std::ofstream(file) << "aa" << std::string(spaces, '\n') << "bbccdd";
        Kmesctl emitter({"emit", "t", "--hex", "--file", file, "--socket", address()},
                        folder_.path("emit.log"));
        return emitter.finish(0);
    };
    EXPECT_EQ(emit_file(10'551'300), 0);
    const auto printer = print({"--count", "1"});
    EXPECT_EQ(printer->finish(0), 0);
    EXPECT_NE(printer->log().find("\"aabbccdd\""), std::string::npos) << printer->log();
    EXPECT_EQ(emit_file(20'000'000), 1);
}

std::vector<std::uint64_t> timestamps(const std::string& lines) {
    static const std::regex field("\"timestamp\":([0-9]+)");
    std::vector<std::uint64_t> all;
    for (std::sregex_iterator at(lines.begin(), lines.end(), field), end; at != end; ++at)
        all.push_back(std::stoull((*at)[1]));
    return all;
}

TEST_F(PrintCommand, OrdersEventsOfTwoCpusWhateverTheirNumber) {
    const auto producer = serve(2);
    emit(producer.get(), 1, 6000);
    emit(producer.get(), 0, 6000);
    emit(producer.get(), 1, 1);
    const auto printer = print({"--count", "12001"});
    EXPECT_EQ(printer->finish(0), 0);
    const auto order = timestamps(printer->log());
    EXPECT_EQ(order.size(), 12001u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(PrintCommand, IdleCpusStallNobody) {
    const auto producer = serve(3);
    const auto printer = print({});
    for (unsigned i = 0; i < 3; ++i) {
        const std::string type = "only." + std::to_string(i);
        emit(producer.get(), 1, 1, type);
        EXPECT_TRUE(printer->says(type)) << printer->log();
    }
    EXPECT_EQ(printer->finish(SIGTERM), -1 - SIGTERM);
}

// The ring is empty when it attaches, and is overwritten before it reads.
TEST_F(PrintCommand, TellsOfALossBeforeTheFirstEvent) {
    const auto producer = testing::serve(testing::small_rings(), address());
    const auto printer = print({});
    ASSERT_TRUE(wait_until([&] { return testing::is_waited_for(*producer, 0); }));
    kill(printer->pid(), SIGSTOP);
    testing::emit(producer.get(), 2000);
    emit(producer.get(), 0, 1, "the.last");
    kill(printer->pid(), SIGCONT);
    ASSERT_TRUE(printer->says("the.last")) << printer->log();
    EXPECT_EQ(printer->finish(SIGTERM), -1 - SIGTERM);
    const std::string log = printer->log();
    std::smatch loss;
    ASSERT_TRUE(std::regex_search(
        log, loss, std::regex(R"(\{"lost":([0-9]+),"cpu":0,"before_sequence":([0-9]+)\})")))
        << log;
    EXPECT_EQ(std::stoull(loss[1]) + 1, std::stoull(loss[2])) << "from event 1 on";
    EXPECT_EQ(std::stoull(loss[1]) + timestamps(log).size(), 2001u);
}

TEST_F(PrintCommand, TellsOfTheNextProducerBetweenTheirEvents) {
    auto producer = serve(2);
    emit(producer.get(), 0, 1, "first");
    const auto printer = print({});
    ASSERT_TRUE(printer->says("first")) << printer->log();
    kill(printer->pid(), SIGSTOP);
    emit(producer.get(), 1, 10, "last.of.one");
    producer.reset();
    producer = serve(2);
    emit(producer.get(), 0, 1, "first.of.other");
    kill(printer->pid(), SIGCONT);
    ASSERT_TRUE(printer->says("first.of.other")) << printer->log();
    const std::string log = printer->log();
    EXPECT_LT(log.rfind("last.of.one"), log.find("the producer has ended"));
    const auto session =
        fmt::format("{{\"session\":\"{:016x}\",\"cpu\":0}}\n", producer->session());
    EXPECT_LT(log.find("the producer has ended"), log.find(session));
    EXPECT_LT(log.find(session), log.find("first.of.other"));
    EXPECT_EQ(log.find("\"session\""), log.rfind("\"session\"")) << log;
    EXPECT_LT(log.find("the producer has ended"), log.find("another producer serves"));
    EXPECT_LT(log.find("another producer serves"), log.find("first.of.other"));
}

// Returns the sequence numbers of a CPU's printed events of this type.
std::vector<std::uint64_t> sequences(const std::string& lines, unsigned cpu,
                                     const std::string& type) {
    const std::regex line("\"cpu\":" + std::to_string(cpu) +
                          ",\"sequence\":([0-9]+),[^\n]*\"type\":\"" + type + "\"");
    std::vector<std::uint64_t> all;
    for (std::sregex_iterator at(lines.begin(), lines.end(), line), end; at != end; ++at)
        all.push_back(std::stoull((*at)[1]));
    return all;
}

// The new CPUs have events before they are read. The other CPU gets events meanwhile.
TEST_F(PrintCommand, ReadsTheCpusThatTheNextProducerHasMore) {
    auto producer = serve(1);
    emit(producer.get(), 0, 5, "first");
    const auto printer = print({});
    const auto top =
        std::make_unique<Kmesctl>(std::vector<std::string>{"top", "--socket", address()},
                                  folder_.path("top"), [] { dup2(STDERR_FILENO, STDOUT_FILENO); });
    ASSERT_TRUE(printer->says("first")) << printer->log();
    ASSERT_TRUE(top->says("cpus 1")) << top->log();
    producer.reset();
    producer = serve(3);
    for (unsigned cpu = 0; cpu < 3; ++cpu) emit(producer.get(), cpu, 300, "second");
    std::size_t emitted = 300;
    EXPECT_TRUE(wait_until([&] {
        emit(producer.get(), 0, 1, "second");
        ++emitted;
        return printer->log().find("\"cpu\":2") != std::string::npos;
    })) << printer->log();
    for (unsigned cpu = 0; cpu < 3; ++cpu) emit(producer.get(), cpu, 1, "last");
    for (unsigned cpu = 0; cpu < 3; ++cpu)
        EXPECT_TRUE(wait_until([&] { return sequences(printer->log(), cpu, "last").size() == 1; }));
    EXPECT_TRUE(top->says("cpus 3")) << top->log();
    EXPECT_EQ(printer->finish(SIGTERM), -1 - SIGTERM);
    EXPECT_EQ(sequences(printer->log(), 0, "first"), testing::numbers(1, 5));
    EXPECT_EQ(sequences(printer->log(), 0, "second"), testing::numbers(1, emitted));
    EXPECT_EQ(sequences(printer->log(), 1, "second"), testing::numbers(1, 300));
    EXPECT_EQ(sequences(printer->log(), 2, "second"), testing::numbers(1, 300));
    EXPECT_NE(printer->log().find("the producer has 3 CPUs now, and had 1"), std::string::npos);
}

// Standard output is a full pipe that no process reads.
class BlockedPrintCommand : public ::testing::Test {
  protected:
    BlockedPrintCommand() : producer_(serve(1)) {
        EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
        emit(producer_.get(), 0, 3000);
        printer_ = std::make_unique<Kmesctl>(
            std::vector<std::string>{"print", "--json", "--socket", address()}, folder_.path("log"),
            [this] { dup2(pipe_[1], STDOUT_FILENO); });
        close(pipe_[1]);
        EXPECT_TRUE(wait_until([this] {
            int unread = 0;
            return ioctl(pipe_[0], FIONREAD, &unread) == 0 &&
                   unread == fcntl(pipe_[0], F_GETPIPE_SZ);
        })) << printer_->log();
    }
    ~BlockedPrintCommand() override { close(pipe_[0]); }

    const std::unique_ptr<Producer> producer_;
    const Folder folder_;
    int pipe_[2] = {-1, -1};
    std::unique_ptr<Kmesctl> printer_;
};

TEST_F(BlockedPrintCommand, EndsAtTheFirstSignal) {
    kill(printer_->pid(), SIGTERM);
    ASSERT_TRUE(wait_until([this] { return printer_->has_ended(); }));
    EXPECT_EQ(printer_->finish(0), -1 - SIGTERM);
}

// The printer is stopped when the signal comes and when the reader closes the pipe.
TEST_F(BlockedPrintCommand, EndsByTheSignalIfTheReaderGoesToo) {
    kill(printer_->pid(), SIGSTOP);
    kill(printer_->pid(), SIGINT);
    close(pipe_[0]);
    kill(printer_->pid(), SIGCONT);
    ASSERT_TRUE(wait_until([this] { return printer_->has_ended(); }));
    EXPECT_EQ(printer_->finish(0), -1 - SIGINT);
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
