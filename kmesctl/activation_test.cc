// SPDX-License-Identifier: MIT
// Tests kmesctl serve with socket activation of systemd. The test acts as systemd: it listens,
// passes the socket, receives the notifications, and restarts the service after its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kmes/user/socket_protocol.h"
#include "kmesctl/test_program.h"
#include "record/test_support.h"

namespace kmes::kmesctl {
namespace {

using record::testing::bytes_of_file;
using record::testing::Folder;
using ::testing::HasSubstr;
using testing::Kmesctl;
using ::testing::Not;
using testing::wait_until;

constexpr int kFirstPassed = 3;
constexpr int kAboveThose = 50;  // descriptors of this process, so that a child can use lower ones

std::string random_name() {
    return fmt::format("@kmes-{:016x}",
                       std::uint64_t{std::random_device()()} << 32 | std::random_device()());
}

// Bazel's folders may have longer names than a socket allows.
std::string random_path() {
    return P_tmpdir "/" + random_name().substr(1);
}

int bound_socket(int type, const std::string& address) {
    sockaddr_un name;
    socklen_t length = 0;
    const int low = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    const int fd = fcntl(low, F_DUPFD_CLOEXEC, kAboveThose);
    close(low);
    EXPECT_EQ(kmes_socket_address(address.c_str(), &name, &length), 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&name), length), 0) << address;
    return fd;
}

int listening_socket(const std::string& address, int type = SOCK_SEQPACKET) {
    const int fd = bound_socket(type, address);
    EXPECT_EQ(listen(fd, 64), 0);
    return fd;
}

// The variables of sd_listen_fds(3).
struct Environment {
    std::string process;  // empty: of the service
    std::string count;
    std::string names;  // empty: not set
};

// Runs in the child: sets the descriptors from 3 on, and the variables.
void pass(const std::vector<int>& fds, const Environment& environment) {
    for (std::size_t i = 0; i < fds.size(); ++i) dup2(fds[i], kFirstPassed + static_cast<int>(i));
    const std::string process =
        environment.process.empty() ? fmt::format("{}", getpid()) : environment.process;
    setenv("LISTEN_PID", process.c_str(), 1);
    setenv("LISTEN_FDS", environment.count.c_str(), 1);
    if (!environment.names.empty()) setenv("LISTEN_FDNAMES", environment.names.c_str(), 1);
}

class Activation : public ::testing::Test {
  protected:
    Activation() { unsetenv("NOTIFY_SOCKET"); }
    ~Activation() override {
        for (const int fd : fds_) close(fd);
    }

    int kept(int fd) {
        fds_.push_back(fd);
        return fd;
    }
    std::string log() { return folder_.path(fmt::format("log.{}", ++logs_)); }

    // Starts the service for these sockets.
    std::unique_ptr<Kmesctl> service(const std::vector<int>& fds, const std::string& names = "",
                                     const std::string& notify = "") {
        const Environment environment = {"", fmt::format("{}", fds.size()), names};
        return std::make_unique<Kmesctl>(std::vector<std::string>{"serve", "--cpus", "1"}, log(),
                                         [=] {
                                             pass(fds, environment);
                                             if (!notify.empty())
                                                 setenv("NOTIFY_SOCKET", notify.c_str(), 1);
                                         });
    }

    std::unique_ptr<Kmesctl> command(const std::vector<std::string>& words,
                                     const std::string& output = "/dev/null") {
        return std::make_unique<Kmesctl>(words, log(), [output] {
            if (freopen(output.c_str(), "w", stdout) == nullptr) _exit(96);
        });
    }
    int emit(const std::string& type, const std::string& address) {
        return command({"emit", type, "--socket", address})->finish(0);
    }

    Folder folder_;
    std::vector<int> fds_;
    int logs_ = 0;
};

std::string text_of(const std::string& path) {
    const auto bytes = bytes_of_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string notification(int fd) {
    char text[64];
    const ssize_t bytes = recv(fd, text, sizeof text, 0);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

TEST_F(Activation, ServesAtThePassedSocketAndLeavesIt) {
    const std::string address = random_path();
    const int socket = kept(listening_socket(address));
    // The service does not run yet: the request waits for it.
    auto early = command({"emit", "before.start", "--socket", address});
    bool is_first = true;
    for (const std::string& notify : {random_name(), random_path()}) {
        const int notified = kept(bound_socket(SOCK_DGRAM, notify));
        auto serves = service({socket}, "", notify);
        EXPECT_EQ(notification(notified), "READY=1");
        EXPECT_TRUE(!std::exchange(is_first, false) || early->finish(0) == 0) << early->log();
        EXPECT_EQ(emit("while.it.serves", address), 0);
        EXPECT_EQ(serves->finish(SIGTERM), 0) << serves->log();
        EXPECT_EQ(notification(notified), "STOPPING=1");
        EXPECT_THAT(serves->log(), HasSubstr("at the socket of the service manager"));
        EXPECT_EQ(access(address.c_str(), F_OK), 0);
        EXPECT_NE(access((address + ".lock").c_str(), F_OK), 0);
        unlink(notify.c_str());
    }
    unlink(address.c_str());
}

// A restart makes another producer. A consumer continues with it, as after a killed producer.
TEST_F(Activation, ConsumerContinuesAfterARestart) {
    const std::string address = random_name();
    const std::string out = folder_.path("out");
    const int socket = kept(listening_socket(address));
    auto serves = service({socket});
    auto printer = command({"print", "--json", "--socket", address}, out);
    for (const int end : {SIGKILL, SIGTERM, SIGKILL}) {
        const std::string type = fmt::format("type.{}.{}", end, serves->pid());
        ASSERT_EQ(emit(type, address), 0);
        ASSERT_TRUE(wait_until([&] { return text_of(out).find(type) != std::string::npos; }))
            << printer->log();
        EXPECT_EQ(serves->finish(end), end == SIGKILL ? -1 - SIGKILL : 0);
        // No producer serves now. The next one will serve this emitter.
        auto between = command({"emit", type + ".next", "--socket", address});
        serves = service({socket});
        EXPECT_EQ(between->finish(0), 0) << between->log();
        ASSERT_TRUE(wait_until([&] {
            return text_of(out).find(type + ".next") != std::string::npos;
        })) << printer->log();
    }
    EXPECT_THAT(printer->log(), HasSubstr("another producer serves now"));
    EXPECT_THAT(text_of(out), Not(HasSubstr("\"lost\"")));
}

TEST_F(Activation, NamesOfSocketsArePrivileges) {
    const std::string attach = random_name();
    const std::string emitters = random_name();
    auto serves =
        service({kept(listening_socket(emitters)), kept(listening_socket(attach))}, "emit:attach");
    EXPECT_EQ(emit("t", attach), 1);
    EXPECT_EQ(emit("t", emitters), 0);
    EXPECT_EQ(command({"print", "--count", "1", "--socket", emitters})->finish(0), 1);
    EXPECT_EQ(command({"print", "--count", "1", "--socket", attach})->finish(0), 0);
    EXPECT_EQ(serves->finish(SIGTERM), 0) << serves->log();
}

TEST_F(Activation, VariablesOfAnotherProcessAreIgnored) {
    const std::string passed = random_name();
    const std::string address = random_name();
    const int socket = kept(listening_socket(passed));
    Kmesctl serves({"serve", "--cpus", "1", "--socket", address}, log(),
                   [&] { pass({socket}, {fmt::format("{}", getppid()), "1", ""}); });
    ASSERT_TRUE(serves.says("serves")) << serves.log();
    EXPECT_EQ(emit("t", address), 0);
    EXPECT_EQ(serves.finish(SIGTERM), 0);
}

TEST_F(Activation, OptionsOfTheAddressAreNotForAPassedSocket) {
    const int socket = kept(listening_socket(random_name()));
    for (const auto& option : {std::vector<std::string>{"--socket", "@x"}, {"--mode", "666"}}) {
        std::vector<std::string> words = {"serve"};
        words.insert(words.end(), option.begin(), option.end());
        Kmesctl serves(words, log(), [&] { pass({socket}, {"", "1", ""}); });
        EXPECT_EQ(serves.finish(0), 2) << serves.log();
        EXPECT_THAT(serves.log(), HasSubstr("its unit has the address"));
    }
}

// The process that starts the service controls all of these values.
TEST_F(Activation, MalformedVariablesAndWrongDescriptorsGetOneLine) {
    const int good = kept(listening_socket(random_name()));
    const int stream = kept(listening_socket(random_name(), SOCK_STREAM));
    const int datagram = kept(bound_socket(SOCK_DGRAM, random_name()));
    const int unheard = kept(bound_socket(SOCK_SEQPACKET, random_name()));
    const int inet = kept(fcntl(::socket(AF_INET, SOCK_STREAM, 0), F_DUPFD_CLOEXEC, kAboveThose));
    const int file = kept(fcntl(open("/dev/null", O_RDWR), F_DUPFD_CLOEXEC, kAboveThose));
    const struct {
        std::vector<int> fds;
        Environment environment;
        std::string says;
    } wrongs[] = {
        {{good}, {"", "-1", ""}, "LISTEN_FDS is \"-1\""},
        {{good}, {"", "", ""}, "LISTEN_FDS is \"\""},
        {{good}, {"", "1 ", ""}, "LISTEN_FDS is \"1 \""},
        {{good}, {"", "0x1", ""}, "LISTEN_FDS"},
        {{good}, {"", "99999999999999999999", ""}, "LISTEN_FDS"},
        {{good}, {"", "18446744073709551613", ""}, "LISTEN_FDS is 18446744073709551613"},
        {{good}, {"", "3", ""}, "LISTEN_FDS is 3"},
        {{good}, {"", "2147483647", ""}, "LISTEN_FDS is 2147483647"},
        {{good}, {"x", "1", ""}, "LISTEN_PID is \"x\""},
        {{good}, {"\n\033[31m", "1", ""}, "LISTEN_PID"},
        {{good}, {"", "1", "a:b"}, "LISTEN_FDNAMES is \"a:b\""},
        {{good}, {"", "2", "emit"}, "LISTEN_FDNAMES"},
        {{good, stream}, {"", "2", ""}, "serves already"},
        {{good, good}, {"", "2", "emit:emit"}, "serves already"},
        {{good}, {"", "2", "emit:attach"}, "descriptor 4 is not open"},
        {{}, {"", "1", ""}, "descriptor 3 is not open"},
        {{stream}, {"", "1", ""}, "is not of type SOCK_SEQPACKET"},
        {{datagram}, {"", "1", ""}, "is not of type SOCK_SEQPACKET"},
        {{unheard}, {"", "1", ""}, "does not listen"},
        {{inet}, {"", "1", ""}, "is not a Unix socket"},
        {{file}, {"", "1", ""}, "is not a socket"},
    };
    for (const auto& wrong : wrongs) {
        Kmesctl serves({"serve", "--cpus", "1"}, log(), [&] {
            for (const int fd : {kFirstPassed, kFirstPassed + 1}) close(fd);
            pass(wrong.fds, wrong.environment);
        });
        EXPECT_EQ(serves.finish(0), 1) << wrong.says;
        const std::string said = serves.log();
        EXPECT_THAT(said, HasSubstr(wrong.says));
        EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    }
}

}  // namespace
}  // namespace kmes::kmesctl

int main(int count, char** arguments) {
    return kmes::kmesctl::testing::run_all_tests(count, arguments);
}
