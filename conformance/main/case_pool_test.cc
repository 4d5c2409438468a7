// SPDX-License-Identifier: MIT
//
// The order, exclusion and end of cases that several threads play. Nothing here waits for a time: a
// case that needs another one at the same time waits for it.
#include "conformance/main/case_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;

// Threads wait here until another thread has reported something.
class NamedEvents {
  public:
    void say(const std::string& what) {
        {
            const std::lock_guard lock(mutex_);
            said_.insert(what);
        }
        changed_.notify_all();
    }
    void wait(const std::string& what) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return said_.contains(what); });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::string> said_;
};

// Cases "0", "1", ... and a pool that plays them.
class CasePoolTest : public ::testing::Test {
  protected:
    void make(std::size_t count, const std::set<std::size_t>& explored = {}) {
        pointers_.clear();
        ids_.resize(count);
        cases_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            ids_[i] = std::to_string(i);
            cases_[i].id = ids_[i];
            if (explored.contains(i)) cases_[i].demand = Demand::explored;
            pointers_.push_back(&cases_[i]);
        }
        calls_.play = [this](const Case& each, int) -> std::optional<PlayedCase> {
            if (act_) act_(std::stoul(std::string(each.id)));
            if (cut_short_.contains(std::string(each.id))) return std::nullopt;
            PlayedCase played;
            played.outcome.message = each.id;
            return played;
        };
        calls_.take = [this](std::size_t index, PlayedCase&& played) {
            EXPECT_EQ(std::this_thread::get_id(), caller_);
            EXPECT_EQ(played.outcome.message, ids_[index]);
            taken_.push_back(index);
            return index != last_;
        };
        calls_.is_over = [this] { return is_over_.load(); };
        calls_.wait_for = [this](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller_); };
    }
    void play(unsigned jobs) { play_cases(pointers_, jobs, calls_); }

    std::vector<std::size_t> first(std::size_t count) const {
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < count; ++i) all.push_back(i);
        return all;
    }

    std::function<void(std::size_t)> act_;  // what a case does
    std::set<std::string> cut_short_;
    std::size_t last_ = SIZE_MAX;  // `take` of this case ends the run
    std::atomic<bool> is_over_{false};
    std::vector<std::size_t> taken_;
    CasePoolCalls calls_;
    const std::thread::id caller_ = std::this_thread::get_id();

  private:
    std::vector<std::string> ids_;
    std::vector<Case> cases_;
    std::vector<const Case*> pointers_;
};

TEST_F(CasePoolTest, OutcomesComeInTheOrderOfTheCases) {
    NamedEvents events;
    make(100);
    // Each even case ends after the odd one that follows it.
    act_ = [&](std::size_t i) {
        if (i % 2 == 0) events.wait(std::to_string(i + 1));
        events.say(std::to_string(i));
    };
    play(2);
    EXPECT_EQ(taken_, first(100));
}

TEST_F(CasePoolTest, AnExploredCaseRunsAlone) {
    std::atomic<int> running{0};
    std::atomic<bool> had_company{false};
    make(200, {3, 4, 50, 51, 52, 199});
    act_ = [&](std::size_t i) {
        const bool is_explored = i == 3 || i == 4 || (i >= 50 && i <= 52) || i == 199;
        const int others = running++;
        std::this_thread::yield();
        if (is_explored && (others != 0 || running != 1)) had_company = true;
        --running;
    };
    play(4);
    EXPECT_FALSE(had_company);
    EXPECT_EQ(taken_, first(200));
}

TEST_F(CasePoolTest, OneJobPlaysInTheCallersThread) {
    make(3);
    act_ = [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller_); };
    play(1);
    EXPECT_THAT(taken_, ElementsAre(0, 1, 2));
}

TEST_F(CasePoolTest, ACaseThatEndedBesideOneThatWasCutShortIsTaken) {
    NamedEvents events;
    make(10);
    cut_short_ = {"1"};
    act_ = [&](std::size_t i) {
        if (i == 1) events.wait("2");
        if (i == 2) is_over_ = true;
        events.say(std::to_string(i));
    };
    play(2);
    EXPECT_THAT(taken_, ElementsAre(0, 2));
}

TEST_F(CasePoolTest, NoCaseBeginsAfterTheEnd) {
    std::atomic<std::size_t> begun{0};
    make(10);
    act_ = [&](std::size_t i) {
        ++begun;
        if (i == 4) is_over_ = true;
    };
    play(3);
    EXPECT_EQ(taken_, first(begun));
    EXPECT_GE(begun, 5u);
    EXPECT_LE(begun, 7u) << "three cases may run at the moment of the end";
}

TEST_F(CasePoolTest, TakeEndsTheRun) {
    for (const unsigned jobs : {1u, 3u}) {
        taken_.clear();
        make(20);
        last_ = 5;
        play(jobs);
        EXPECT_EQ(taken_, first(6)) << jobs;
    }
}

TEST_F(CasePoolTest, AnExceptionOfTakeLeavesNoCaseBehind) {
    std::atomic<int> running{0};
    make(20);
    act_ = [&](std::size_t) {
        ++running;
        std::this_thread::yield();
        --running;
    };
    calls_.take = [](std::size_t, PlayedCase&&) -> bool { throw std::runtime_error("full"); };
    EXPECT_THROW(play(3), std::runtime_error);
    EXPECT_EQ(running, 0);
}

TEST_F(CasePoolTest, EachThreadHasItsProcessorAndBlocksTheSignalOfChildren) {
    std::mutex mutex;
    std::map<std::thread::id, std::set<int>> processors;
    NamedEvents events;
    make(2);
    const auto play_it = calls_.play;
    calls_.play = [&](const Case& each, int processor) {
        {
            const std::lock_guard lock(mutex);
            processors[std::this_thread::get_id()].insert(processor);
        }
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        EXPECT_TRUE(sigismember(&mask, SIGCHLD));
        struct sigaction action = {};
        sigaction(SIGCHLD, nullptr, &action);
        EXPECT_EQ(action.sa_handler, SIG_DFL);
        // The two run at the same time.
        events.say(std::string(each.id));
        events.wait(each.id == "0" ? "1" : "0");
        return play_it(each, processor);
    };
    play(2);
    EXPECT_EQ(processors.size(), 2u);
    for (const auto& [thread, numbers] : processors) EXPECT_EQ(numbers.size(), 1u);
}

TEST(DefaultJobs, IsWithinItsBounds) {
    EXPECT_GE(default_jobs(), 1u);
    EXPECT_LE(default_jobs(), kMostJobs);
}

}  // namespace
}  // namespace kmes::conformance
