// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The address of a producer's socket: its owner, its permissions, its privileges, and its state
// after a crash.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "kmes/user/producer.h"
#include "kmes/user/raw_client.h"
#include "kmes/user/serve_fixture.h"
#include "kmes/user/socket_protocol.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

void leave_stale_socket(const std::string& path) {
    struct sockaddr_un name;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    unlink(path.c_str());
    ASSERT_EQ(0, kmes_socket_address(path.c_str(), &name, &length));
    ASSERT_EQ(0, bind(fd, reinterpret_cast<struct sockaddr*>(&name), length));
    close(fd);
}

// A process that serves until it is killed. On request, a forked child survives the process, or the
// process has descriptors for `clients` clients only.
class OtherProducer {
  public:
    OtherProducer(const std::string& address, bool forks,
                  std::optional<unsigned> clients = std::nullopt) {
        int ends[2];

        EXPECT_EQ(0, pipe2(ends, O_CLOEXEC));
        pid_ = fork();
        if (pid_ == 0) serve(address, forks, clients, ends[1]);
        close(ends[1]);
        EXPECT_EQ(static_cast<ssize_t>(sizeof(child_)), read(ends[0], &child_, sizeof(child_)));
        close(ends[0]);
    }
    ~OtherProducer() {
        kill_producer();
        if (child_ > 0) kill(child_, SIGKILL);
    }
    OtherProducer(const OtherProducer&) = delete;
    OtherProducer& operator=(const OtherProducer&) = delete;

    void kill_producer() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

  private:
    // Leaves the process `count` descriptors.
    static void leave_descriptors(unsigned count) {
        const int lowest = dup(STDERR_FILENO);
        const auto above = static_cast<rlim_t>(lowest) + count;
        const struct rlimit limit = {above, above};

        if (lowest < 0 || close(lowest) != 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
    }
    [[noreturn]] static void serve(const std::string& address, bool forks,
                                   std::optional<unsigned> clients, int report_fd) {
        Producer producer(test_options());
        pid_t child = -1;

        if (serve_error(producer, address) != 0) _exit(1);
        if (clients) leave_descriptors(*clients);
        // The child reports itself: by then it has closed its copy of the listening socket.
        if (forks) {
            child = fork();
            if (child < 0) _exit(1);
            while (child > 0) pause();
            child = getpid();
        }
        if (write(report_fd, &child, sizeof(child)) < 0) _exit(1);
        for (;;) pause();
    }

    pid_t pid_ = -1;
    pid_t child_ = -1;
};

TEST_F(ServeTest, PathHasTheModeWhateverTheUmaskIs) {
    auto producer = started();

    for (mode_t mask : {0000, 0022, 0077, 0777}) {
        for (unsigned mode : {0600u, 0660u, 0666u, 0777u, 0000u}) {
            struct stat status = {};
            mode_t before = umask(mask);
            int error = serve_error(*producer, address_, mode);

            umask(before);
            ASSERT_EQ(0, error);
            ASSERT_EQ(0, stat((address_ + ".lock").c_str(), &status));
            EXPECT_EQ(0600u, status.st_mode & 07777) << mask;
            ASSERT_EQ(0, stat(address_.c_str(), &status));
            EXPECT_EQ(mode, status.st_mode & 07777) << mask;
            producer->stop_serving();
        }
    }
    EXPECT_EQ(EINVAL, serve_error(*producer, address_, 01666));
}

TEST_F(ServeTest, OneOfManyProducersOfAProcessServes) {
    constexpr int kProducers = 4;
    std::vector<std::unique_ptr<Producer>> producers;

    for (int i = 0; i < kProducers; i++) producers.push_back(started());
    for (int round = 0; round < 50; round++) {
        std::atomic<int> ready{0}, serving{0}, in_use{0};
        std::vector<std::thread> threads;

        if (round & 1) leave_stale_socket(address_);
        for (auto& producer : producers) {
            threads.emplace_back([&, &one = *producer] {
                ready++;
                while (ready < kProducers) continue;
                int error = serve_error(one, address_);

                serving += error == 0;
                in_use += error == EADDRINUSE;
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(1, serving) << round;
        EXPECT_EQ(kProducers - 1, in_use) << round;
        EXPECT_EQ(0, attach_error(address_));
        for (auto& producer : producers) producer->stop_serving();
    }
}

TEST_F(ServeTest, OneOfTwoProcessesServes) {
    for (int round = 0; round < 50; round++) {
        int go[2], result[2], errors[2] = {-1, -1};
        pid_t pids[2];

        if (round & 1) leave_stale_socket(address_);
        ASSERT_EQ(0, pipe2(go, O_CLOEXEC));
        ASSERT_EQ(0, pipe2(result, O_CLOEXEC));
        for (pid_t& pid : pids) {
            pid = fork();
            if (pid != 0) continue;
            Producer producer(test_options());
            char byte;

            close(go[1]);
            if (read(go[0], &byte, 1) != 0) _exit(1);  // until the parent closes it
            int error = serve_error(producer, address_);

            if (write(result[1], &error, sizeof(error)) < 0) _exit(1);
            for (;;) pause();
        }
        close(go[0]);
        close(go[1]);
        for (int& error : errors)
            ASSERT_EQ(static_cast<ssize_t>(sizeof(error)), read(result[0], &error, sizeof(error)));
        EXPECT_EQ(EADDRINUSE, errors[0] + errors[1]) << round;
        for (pid_t pid : pids) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        close(result[0]);
        close(result[1]);
    }
}

TEST_F(ServeTest, CrashLeavesTheAddressToTheNextProducer) {
    // Concurrent sandboxes share the abstract names.
    std::string name = "@kmes-test-" + std::to_string(std::random_device()());

    for (const std::string& address : {address_, name}) {
        for (bool forks : {false, true}) {
            OtherProducer other(address, forks);
            auto producer = started();

            EXPECT_EQ(EADDRINUSE, serve_error(*producer, address));
            other.kill_producer();
            EXPECT_EQ(0, serve_error(*producer, address)) << address << forks;
            EXPECT_EQ(0, attach_error(address));
        }
    }
}

TEST_F(ServeTest, WithoutADescriptorANewClientReplacesTheLongestIdleOne) {
    constexpr unsigned kClients = 2;
    OtherProducer other(address_, false, kClients);
    std::vector<std::unique_ptr<RawClient>> clients;

    for (unsigned i = 0; i < 3 * kClients; i++) {
        clients.push_back(std::make_unique<RawClient>(address_));
        EXPECT_TRUE(clients.back()->ask(KMES_SOCKET_IDENTIFY, 0)) << i;
        // The producer serves, and has not left its boot phase.
        EXPECT_EQ(-EAGAIN, clients.back()->reply()) << i;
    }
    EXPECT_EQ(1, clients.front()->reply()) << "the connection is over";
}

TEST_F(ServeTest, StopLeavesNoAddress) {
    auto producer = started();

    ASSERT_EQ(0, serve_error(*producer, address_));
    EXPECT_TRUE(exists(address_ + ".lock"));
    producer->stop_serving();
    EXPECT_FALSE(exists(address_));
    EXPECT_FALSE(exists(address_ + ".lock"));
}

TEST_F(ServeTest, RefusedAddressesStayAsTheyAre) {
    auto producer = started();
    auto second = started();

    std::ofstream(address_) << "precious";
    EXPECT_EQ(EADDRINUSE, serve_error(*producer, address_));
    EXPECT_FALSE(exists(address_ + ".lock"));
    std::string text;

    std::getline(std::ifstream(address_), text);
    EXPECT_EQ("precious", text);
    // A path that is no lock file is not followed, opened without end, or removed.
    std::string other = folder_.path("other");

    ASSERT_EQ(0, mkfifo((other + ".lock").c_str(), 0600));
    EXPECT_EQ(EADDRINUSE, serve_error(*producer, other));
    EXPECT_TRUE(exists(other + ".lock"));
    ASSERT_EQ(0, unlink((other + ".lock").c_str()));
    ASSERT_EQ(0, symlink("elsewhere", (other + ".lock").c_str()));
    EXPECT_EQ(ELOOP, serve_error(*producer, other));
    EXPECT_FALSE(exists(folder_.path("elsewhere")));
    ASSERT_EQ(0, unlink((other + ".lock").c_str()));
    // If the lock was removed by hand, only the socket shows the owner of the path.
    ASSERT_EQ(0, serve_error(*producer, other));
    ASSERT_EQ(0, unlink((other + ".lock").c_str()));
    EXPECT_EQ(EADDRINUSE, serve_error(*second, other));
    EXPECT_EQ(0, attach_error(other));
}

TEST_F(ServeTest, BoundSocketThatDoesNotListenYetIsInUse) {
    struct sockaddr_un name;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    auto producer = started();

    ASSERT_EQ(0, kmes_socket_address(address_.c_str(), &name, &length));
    ASSERT_EQ(0, bind(fd, reinterpret_cast<struct sockaddr*>(&name), length));
    EXPECT_EQ(EADDRINUSE, serve_error(*producer, address_));
    close(fd);
    EXPECT_EQ(0, serve_error(*producer, address_));
}

// -- A program that closes all its descriptors ------------------------------------------------

int highest_descriptor() {
    int fd = 1023;

    while (fcntl(fd, F_GETFD) < 0) fd--;
    return fd;
}

// ThreadSanitizer does not see the file, whose number another thread uses for its own.
int open_unseen(const std::string& path) {
    return static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

// Opens files until they have the numbers of all descriptors that were closed.
std::vector<int> reopened(const std::string& path, int highest) {
    std::vector<int> files;

    do {
        files.push_back(open_unseen(path));
    } while (files.back() < highest);
    return files;
}

bool all_are_open(const std::vector<int>& files, const std::string& path) {
    struct stat status = {}, wanted = {};

    if (stat(path.c_str(), &wanted) != 0) return false;
    return std::ranges::all_of(
        files, [&](int fd) { return fstat(fd, &status) == 0 && status.st_ino == wanted.st_ino; });
}

enum class Server { kStarts, kPolls };  // when the program closes all its descriptors

// A client attaches before and after the program has closed everything. `path`: a file of the
// program. Returns 0, or the line that failed.
int serve_across_closefrom(const std::string& address, const std::string& path, Server server) {
    auto producer = started();

    if (serve_error(*producer, address) != 0) return __LINE__;
    if (server == Server::kPolls) {
        if (attach_error(address) != 0) return __LINE__;
        if (!comes_true(other_threads_sleep)) return __LINE__;
    }
    const int highest = highest_descriptor();

    closefrom(3);
    const std::vector<int> files = reopened(path, highest);
    // The mapping still works. No descriptor can be handed out before the next buffers.
    if (producer->emit(0, "a") != 0) return __LINE__;
    {
        Attachment attachment;

        if (producer->attach(&attachment) != 0) return __LINE__;
        if (attachment.buffers[0]->metadata_fd() != -1) return __LINE__;
        if (attachment.buffers[0]->data_fd() != -1) return __LINE__;
    }
    if (producer->resize(1 << 20) != 0) return __LINE__;
    if (!all_are_open(files, path)) return __LINE__;
    {
        Attachment attachment;

        if (producer->attach(&attachment) != 0) return __LINE__;
        if (attachment.buffers[0]->metadata_fd() < 0) return __LINE__;
    }
    // The socket is gone.
    producer->stop_serving();
    if (!all_are_open(files, path)) return __LINE__;
    if (serve_error(*producer, address) != 0) return __LINE__;
    if (attach_error(address) != 0) return __LINE__;
    producer.reset();
    return all_are_open(files, path) ? 0 : __LINE__;
}

// Runs serve_across_closefrom in a child.
void expect_serves_across_closefrom(const std::string& address, const std::string& path,
                                    Server server) {
    const pid_t child = fork();

    if (child == 0) _exit(serve_across_closefrom(address, path, server) % 256);
    int status = -1;

    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, WEXITSTATUS(status)) << "a line of serve_across_closefrom, modulo 256";
    EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(ServeTest, FilesOfAProgramThatClosesAllDescriptorsStayOpen) {
    expect_serves_across_closefrom(address_, folder_.path("file"), Server::kStarts);
    expect_serves_across_closefrom(address_, folder_.path("file"), Server::kPolls);
}

// A poll in progress keeps the socket, and with it the name.
TEST_F(ServeTest, NameOfAProgramThatClosesAllDescriptorsIsFreeAfterTheStop) {
    expect_serves_across_closefrom("@" + folder_.path("name"), folder_.path("file"),
                                   Server::kPolls);
}

// Root may connect whatever the mode says.
void drop_capabilities() {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {};

    if (syscall(SYS_capset, &header, none) != 0) _exit(100);
}

// `mode` forbids the owner to connect. Returns the errors for a socket that is bound, and for one
// that its process has left, as 1000 * bound + left.
int serve_errors_of_mode(Producer& producer, const std::string& address, mode_t mode) {
    struct sockaddr_un name;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    EXPECT_EQ(0, kmes_socket_address(address.c_str(), &name, &length));
    EXPECT_EQ(0, bind(fd, reinterpret_cast<struct sockaddr*>(&name), length));
    EXPECT_EQ(0, chmod(address.c_str(), mode));
    const int bound = serve_error(producer, address);

    close(fd);
    return 1000 * bound + serve_error(producer, address);
}

TEST_F(ServeTest, SocketThatItsOwnerMayNotConnectToIsTakenAfterACrash) {
    for (const mode_t mode : {060, 0}) {
        const std::string address = folder_.path("mode" + std::to_string(mode));
        const pid_t child = fork();

        if (child == 0) {
            drop_capabilities();
            auto producer = started();

            _exit(serve_errors_of_mode(*producer, address, mode) == 1000 * EADDRINUSE ? 0 : 1);
        }
        int status = -1;

        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << mode;
    }
}

// -- Two privileges ----------------------------------------------------------------------------

TEST_F(ServeTest, AttachAndEmitAreTwoPrivileges) {
    auto producer = started();
    std::string emit_address = folder_.path("emit");
    struct stat status = {};

    ASSERT_EQ(0, serve_error(*producer, address_, 0640, Serves::kAttach));
    ASSERT_EQ(0, serve_error(*producer, emit_address, 0622, Serves::kEmit));
    EXPECT_EQ(0, attach_error(address_));
    EXPECT_EQ(-EPERM, emit_error(address_));
    EXPECT_EQ(-EPERM, attach_error(emit_address));
    EXPECT_EQ(0, emit_error(emit_address));
    EXPECT_EQ(1u, producer->statistics().events);
    ASSERT_EQ(0, stat(emit_address.c_str(), &status));
    EXPECT_EQ(0622u, status.st_mode & 0777);
    for (Serves serves : {Serves::kAttach, Serves::kEmit, Serves::kAttachAndEmit})
        EXPECT_EQ(EALREADY, serve_error(*producer, folder_.path("third"), 0600, serves));
    producer->stop_serving();
    EXPECT_FALSE(exists(address_));
    EXPECT_FALSE(exists(emit_address));
    EXPECT_EQ(0, serve_error(*producer, address_));
    EXPECT_EQ(EALREADY, serve_error(*producer, emit_address, 0600, Serves::kEmit));
}

// A newer client tries an older operation after this reply, so the reply is the same with every
// privilege.
TEST_F(ServeTest, UnknownOperationIsAProtocolErrorWithEveryPrivilege) {
    for (Serves serves : {Serves::kAttach, Serves::kEmit, Serves::kAttachAndEmit}) {
        auto producer = started();

        ASSERT_EQ(0, serve_error(*producer, address_, 0600, serves));
        for (uint32_t operation : {0u, KMES_SOCKET_EMITTERS + 1u}) {
            RawClient client(address_);

            ASSERT_TRUE(client.ask(operation, 0));
            EXPECT_EQ(-EPROTO, client.reply());
            EXPECT_EQ(1, client.reply());  // closed
        }
    }
}

TEST_F(ServeTest, RetiredProducerDoesNotServe) {
    auto producer = started();

    producer->retire();
    EXPECT_EQ(ESHUTDOWN, serve_error(*producer, address_));
    EXPECT_FALSE(exists(address_));
}

}  // namespace
}  // namespace kmes
