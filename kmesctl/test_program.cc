// SPDX-License-Identifier: MIT
//
// See test_program.h.
#include "kmesctl/test_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "record/test_support.h"

namespace kmes::kmesctl::testing {
namespace {

const char* program = nullptr;

}  // namespace

int run_all_tests(int count, char** arguments) {
    ::testing::InitGoogleMock(&count, arguments);
    if (count != 2) {
        fmt::print(stderr, "usage: {} KMESCTL\n", arguments[0]);
        return 2;
    }
    program = arguments[1];
    return RUN_ALL_TESTS();
}

std::string address() {
    static const std::string name = fmt::format("@kmesctl-test-{}", std::random_device()());
    return name;
}

ProducerOptions small_rings() {
    ProducerOptions options;
    options.cpus = 1;
    options.capacity_bytes = 64 << 10;
    return options;
}

void emit(Producer* producer, unsigned count) {
    const std::string payload(100, 'p');
    for (unsigned i = 0; i < count; ++i)
        EXPECT_EQ(producer->emit(0, "test.type", std::as_bytes(std::span(payload))), 0);
}

bool wait_until(const std::function<bool()>& condition) {
    const char* scale = getenv("KMES_TIMEOUT_SCALE");
    const double limit_ms = 30'000 * (scale != nullptr ? atof(scale) : 1);
    for (double waited_ms = 0; waited_ms < limit_ms; waited_ms += 10) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

bool is_waited_for(const Producer& producer, unsigned cpu) {
    Attachment now;
    return producer.is_attended(cpu) && producer.inspect(cpu, &now) == 0 &&
           __atomic_load_n(now.buffers[0]->buffer()->shared.need_wake, __ATOMIC_RELAXED) != 0;
}

std::vector<std::uint64_t> numbers(std::uint64_t first, std::size_t count) {
    std::vector<std::uint64_t> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
}

std::unique_ptr<Producer> serve(const ProducerOptions& options, const std::string& socket) {
    auto producer = std::make_unique<Producer>(options);
    EXPECT_EQ(producer->start_without_registry(), 0);
    producer->serve(socket);
    return producer;
}

static std::function<void()> limit_of(decltype(RLIMIT_AS) resource, rlim_t bytes) {
    return [resource, bytes] {
        const rlimit limit = {bytes, bytes};
        if (setrlimit(resource, &limit) != 0) _exit(98);
    };
}

std::function<void()> file_limit(rlim_t bytes) {
    return limit_of(RLIMIT_FSIZE, bytes);
}

std::function<void()> memory_limit(rlim_t bytes) {
    return limit_of(RLIMIT_AS, bytes);
}

Kmesctl::Kmesctl(std::vector<std::string> arguments, std::string log,
                 const std::function<void()>& prepare)
    : log_(std::move(log)) {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    if (freopen(log_.c_str(), "w", stderr) == nullptr) _exit(99);
    if (prepare) prepare();
    execv(program, words.data());
    _exit(97);
}

Kmesctl::~Kmesctl() {
    if (pid_ > 0) finish(SIGKILL);
}

int Kmesctl::finish(int signal) {
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
}

bool Kmesctl::has_ended() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
}

std::string Kmesctl::log() const {
    const auto bytes = record::testing::bytes_of_file(log_);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool Kmesctl::says(const std::string& text) const {
    return wait_until([&] { return log().find(text) != std::string::npos; });
}

}  // namespace kmes::kmesctl::testing
