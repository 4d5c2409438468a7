// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// Shared parts of the tests. See test_support.h.
#include "kmes/user/test_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "kmes/user/futex.h"
#include "kmes/user/libkmes_reader.h"

namespace kmes {

uint64_t patience_ns() {
    const char* scale = getenv("KMES_TIMEOUT_SCALE");
    double factor = scale && *scale ? strtod(scale, nullptr) : 1;

    return static_cast<uint64_t>(60e9 * (factor > 0 ? factor : 1));
}

bool comes_true(const std::function<bool()>& condition) {
    const uint64_t begin = kmes_clock_monotonic_ns();

    while (!condition()) {
        if (kmes_clock_monotonic_ns() - begin > patience_ns()) return false;
        usleep(1000);
    }
    return true;
}

// The state in /proc comes after the name, which is in brackets.
bool other_threads_sleep() {
    const std::string own = std::to_string(gettid());

    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "stat");
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        const size_t name_end = text.rfind(") ");

        if (task.path().filename() == own || name_end == std::string::npos) continue;
        if (text[name_end + 2] != 'S') return false;
    }
    return true;
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

ProducerOptions test_options(unsigned cpus) {
    ProducerOptions options;

    options.cpus = cpus;
    options.boot_capacity_bytes = 64 << 10;
    options.capacity_bytes = 64 << 10;
    options.nudges.in_background = false;
    return options;
}

unsigned asking_cpus(const Producer& producer) {
    unsigned asking = 0;

    for (unsigned cpu = 0; cpu < producer.cpus(); cpu++) {
        Attachment attachment;

        if (producer.inspect(cpu, &attachment) != 0) return 0;
        asking += __atomic_load_n(attachment.buffers[0]->buffer()->shared.need_wake,
                                  __ATOMIC_SEQ_CST) != 0;
    }
    return asking;
}

TemporaryFolder::TemporaryFolder() {
    const char* base = getenv("TEST_TMPDIR");
    std::string pattern = std::string(base ? base : P_tmpdir) + "/kmesXXXXXX";

    // Bazel's folders may have longer names than a socket allows.
    if (pattern.size() > 70) pattern = P_tmpdir "/kmesXXXXXX";
    if (!mkdtemp(pattern.data()))
        throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
    folder_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;

    std::filesystem::remove_all(folder_, ignored);
}

InProcessReader::InProcessReader(const Producer& producer, uint16_t cpu) : producer_(producer) {
    struct kmes_reader_config config = {};

    config.attach_functions = {attach, identify, detach, this};
    config.platform = kmes_user_platform();
    config.cpu_id = cpu;
    open_error_ = kmes_reader_open(&reader_, &config);
}

InProcessReader::~InProcessReader() {
    if (!open_error_) kmes_reader_close(&reader_);
}

int InProcessReader::identify(void* context, __u16 cpu, struct kmes_mapping* mapping) {
    Attachment attachment;
    int error = static_cast<InProcessReader*>(context)->producer_.attach(cpu, &attachment);

    if (error) return error;
    mapping->device = attachment.buffers[0]->device();
    mapping->inode = attachment.buffers[0]->inode();
    mapping->session = attachment.session;
    return 0;
}

int InProcessReader::attach(void* context, __u16 cpu, struct kmes_mapping* mapping) {
    Attachment attachment;
    int error = static_cast<InProcessReader*>(context)->producer_.attach(cpu, &attachment);

    if (error) return error;
    const BufferHandle& memory = attachment.buffers[0];

    mapping->base = memory->base();
    mapping->mapped_bytes = memory->mapped_bytes();
    mapping->device = memory->device();
    mapping->inode = memory->inode();
    mapping->session = attachment.session;
    mapping->owner = new BufferHandle(memory);
    return 0;
}

void InProcessReader::detach(void*, struct kmes_mapping* mapping) {
    delete static_cast<BufferHandle*>(mapping->owner);
}

std::vector<Delivered> InProcessReader::drain() {
    std::vector<Delivered> events;
    std::vector<uint8_t> copy(1 << 20);
    struct kmes_event_view view;

    while (kmes_reader_next(&reader_, copy.data(), copy.size(), &view) == KMES_READ_EVENT) {
        events.push_back(
            {view.sequence, view.timestamp, view.lost_before, view.origin_class,
             std::string(reinterpret_cast<const char*>(view.type), view.type_len),
             std::string(reinterpret_cast<const char*>(view.payload), view.payload_len)});
    }
    return events;
}

// posix_spawn, because the parent may have threads. `inherited` keep their numbers.
Child::Child(const std::vector<std::string>& arguments, const std::string& socket,
             const std::vector<int>& inherited) {
    int ends[2];
    std::string socket_variable = "KMES_SOCKET=" + socket;
    std::vector<char*> argv, environment;
    posix_spawn_file_actions_t actions;

    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
    argv.push_back(const_cast<char*>("kmes_child"));
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (char** variable = environ; *variable; variable++) {
        if (strncmp(*variable, "KMES_SOCKET=", 12) != 0) environment.push_back(*variable);
    }
    environment.push_back(socket_variable.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    for (int fd : inherited) posix_spawn_file_actions_adddup2(&actions, fd, fd);
    int error =
        posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environment.data());

    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
    if (error) throw std::system_error(error, std::generic_category(), "posix_spawn");
}

Child::~Child() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        finish();
    }
    close(output_);
}

std::string Child::line() {
    for (;;) {
        size_t end = pending_.find('\n');
        char piece[4096];

        if (end != std::string::npos) {
            std::string result = pending_.substr(0, end);

            pending_.erase(0, end + 1);
            return result;
        }
        ssize_t got = read(output_, piece, sizeof(piece));

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return "";
        pending_.append(piece, static_cast<size_t>(got));
    }
}

std::string Child::rest() {
    char piece[4096];

    for (;;) {
        ssize_t got = read(output_, piece, sizeof(piece));

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return std::exchange(pending_, "");
        pending_.append(piece, static_cast<size_t>(got));
    }
}

int Child::finish() {
    int status = 0;

    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
}

bool Child::is_asleep() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/syscall");
    std::string number;

    file >> number;
    return number == "202";  // futex, on x86-64
}

size_t open_descriptors() {
    size_t count = 0;

    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        count++;
    return count;
}

size_t mappings_named(std::string_view name) {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;

    for (std::string line; std::getline(maps, line);) {
        if (line.find(name) != std::string::npos) count++;
    }
    return count;
}

}  // namespace kmes
