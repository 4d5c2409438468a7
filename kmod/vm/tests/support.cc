// SPDX-License-Identifier: GPL-2.0-only
#include "support.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace kmes::guest {

void fail(const char* file, int line, const std::string& what) {
    std::printf("%s:%d: failed: %s (errno %d)\n", file, line, what.c_str(), errno);
    std::fflush(stdout);
    _exit(1);
}

void expect_equal(const char* file, int line, const char* left_text, std::int64_t left,
                  const char* right_text, std::int64_t right) {
    if (left == right) return;
    fail(file, line,
         std::string(left_text) + " == " + right_text + ": " + std::to_string(left) + " and " +
             std::to_string(right));
}

double scaled(double seconds) {
    const char* text = std::getenv("KMES_TIMEOUT_SCALE");
    return seconds * std::max(1.0, text ? std::atof(text) : 1.0);
}

bool wait_until(double seconds, const std::function<bool()>& holds) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::duration<double>(scaled(seconds));
    while (!holds()) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

void pin_to_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    EXPECT(sched_setaffinity(0, sizeof set, &set) == 0);
}

int cpus_online() {
    return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool write_file(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_written = write(fd, text.data(), text.size()) == ssize_t(text.size());
    close(fd);
    return is_written;
}

std::int64_t read_number(const std::string& path) {
    std::int64_t number = -1;
    std::istringstream(read_file(path)) >> number;
    return number;
}

int run(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int load_module(const std::string& parameters) {
    static_assert(KMES_LAYOUT != KMES_LAYOUT_C, "build_modules.sh builds no module of form C");
    const std::string command = KMES_LAYOUT == KMES_LAYOUT_A   ? "kmes_load "
                                : KMES_LAYOUT == KMES_LAYOUT_B ? "kmes_load_form-b "
                                                               : "kmes_load_form-d ";
    return run(command + parameters);
}

void as_nobody(const std::function<void()>& body) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
        body();
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail(__FILE__, __LINE__, "the child failed");
}

int ioctl_error(int fd, unsigned long request, void* argument) {
    return ioctl(fd, request, argument) == 0 ? 0 : errno;
}

Device::Device() : fd_(open(KMES_DEVICE, O_RDWR | O_CLOEXEC)) {
    EXPECT(fd_ >= 0);
}
Device::~Device() {
    close(fd_);
}

int Device::call(unsigned long request, void* argument) const {
    return ioctl_error(fd_, request, argument);
}

int Device::attach(std::vector<int>* fds, std::uint64_t* capacity) const {
    fds->assign(1024, -1);
    kmes_ioctl_attach attach = {};
    attach.fds_address = reinterpret_cast<std::uintptr_t>(fds->data());
    attach.count = static_cast<__u32>(fds->size());
    const int error = call(KMES_IOC_ATTACH, &attach);
    fds->resize(error ? 0 : attach.count);
    *capacity = attach.capacity;
    return error;
}

int Device::emit(const std::string& type, const std::string& payload) const {
    kmes_ioctl_emit emit = {};
    emit.type_address = reinterpret_cast<std::uintptr_t>(type.data());
    emit.type_len = static_cast<__u16>(type.size());
    emit.payload_address = reinterpret_cast<std::uintptr_t>(payload.data());
    emit.payload_len = static_cast<__u32>(payload.size());
    return call(KMES_IOC_EMIT, &emit);
}

int Device::configure(std::uint64_t capacity, std::uint64_t max_event_size) const {
    kmes_ioctl_configure wanted = {capacity, max_event_size};
    return call(KMES_IOC_CONFIGURE, &wanted);
}

kmes_ioctl_statistics Device::statistics(int cpu) const {
    kmes_ioctl_statistics statistics = {};
    statistics.cpu = static_cast<__u32>(cpu);
    EXPECT_EQUAL(call(KMES_IOC_STATISTICS, &statistics), 0);
    return statistics;
}

std::vector<kmes_buffer_info> Device::buffers() const {
    std::vector<kmes_buffer_info> infos(4096);
    kmes_ioctl_buffers buffers = {};
    buffers.buffers_address = reinterpret_cast<std::uintptr_t>(infos.data());
    buffers.count = static_cast<__u32>(infos.size());
    EXPECT_EQUAL(call(KMES_IOC_BUFFERS, &buffers), 0);
    infos.resize(buffers.count);
    return infos;
}

Buffer::Buffer(const Device& device, int cpu) {
    std::vector<int> fds;
    EXPECT_EQUAL(device.attach(&fds, &capacity_), 0);
    EXPECT(cpu < int(fds.size()));
    for (int i = 0; i < int(fds.size()); ++i)
        if (i != cpu) close(fds[std::size_t(i)]);
    fd_ = fds[std::size_t(cpu)];
    base_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT(base_ != MAP_FAILED);
}

Buffer::~Buffer() {
    unmap();
    close_fd();
}

void Buffer::unmap() {
    if (base_) munmap(base_, bytes());
    base_ = nullptr;
}

void Buffer::close_fd() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

void prepare_failures() {
    const std::string debug = "/sys/kernel/debug/";
    for (const char* what : {"failslab", "fail_page_alloc"}) {
        EXPECT(write_file(debug + what + "/ignore-gfp-wait", "N"));
        EXPECT(write_file(debug + what + "/verbose", "0"));
    }
    EXPECT(write_file(debug + "fail_page_alloc/min-order", "0"));
    EXPECT(write_file(debug + "fail_page_alloc/ignore-gfp-highmem", "N"));
}

void sleep_on(const Buffer& buffer, Sleeper* me) {
    kmes_metadata_v1* page = buffer.metadata();
    const __u32 counter = __atomic_load_n(&page->futex_counter, __ATOMIC_ACQUIRE);
    __atomic_store_n(&page->need_wake, 1, __ATOMIC_SEQ_CST);
    me->process = getpid();
    me->thread = static_cast<int>(syscall(SYS_gettid));
    while (__atomic_load_n(&page->futex_counter, __ATOMIC_ACQUIRE) == counter)
        syscall(SYS_futex, &page->futex_counter, FUTEX_WAIT, counter, nullptr, nullptr, 0);
    me->is_woken = true;
}

bool is_in_futex(const Sleeper& sleeper) {
    const std::string path = "/proc/" + std::to_string(sleeper.process) + "/task/" +
                             std::to_string(sleeper.thread) + "/syscall";
    return sleeper.thread != 0 && read_file(path).starts_with("202 ");
}

}  // namespace kmes::guest
