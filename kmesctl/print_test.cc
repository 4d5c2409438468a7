// SPDX-License-Identifier: MIT
// kmesctl print: the order of the events of several CPUs, and what comes between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
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
    auto producer = std::make_unique<Producer>(options);
    EXPECT_EQ(producer->start_without_registry(), 0);
    producer->serve(address());
    return producer;
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

// The digits after 10 MiB of white space are part of the payload, or the file is refused.
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
    EXPECT_LT(log.find("the producer has ended"), log.find("another producer serves"));
    EXPECT_LT(log.find("another producer serves"), log.find("first.of.other"));
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
