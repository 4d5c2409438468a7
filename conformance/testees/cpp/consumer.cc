// SPDX-License-Identifier: MIT
//
// A KMES consumer in C++20 on the reader of this project (kmes/reader.h): the reference testee, and
// an example of the reader's use. The reader has the drain loop, the sleep and the change of
// buffers; this file has the attach and the mapping (5.1.5), a thread for each CPU, and the records
// of the testee contract. It must not know how it is tested.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kmes/reader.h"

namespace {

constexpr long kAttachCall = 1091;
constexpr int kAttachRetries = 5000;
constexpr std::size_t kReportChunkBytes = 65536;
constexpr std::string_view kEndType = "kmes.conformance.end";

int report_fd = 1;

[[noreturn]] void die(const char* what, int error) {
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(error));
    std::exit(1);
}

// An error that may pass: there are no rings yet, or memory, files or a right are missing.
bool may_pass(int error) {
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
           error == EPERM;
}

// Calls kmes_attach, again after a pause on an error that may pass, and with more slots after
// ERANGE. The caller closes the fds.
std::vector<int> attach_all(std::uint64_t* capacity_bytes) {
    std::vector<int> fds(1);
    for (int tries = 0;; tries++) {
        int count = static_cast<int>(fds.size());
        if (syscall(kAttachCall, fds.data(), &count, capacity_bytes) == 0) {
            fds.resize(static_cast<std::size_t>(count));
            return fds;
        }
        if ((!may_pass(errno) && errno != ERANGE) || tries == kAttachRetries)
            die("kmes_attach", errno);
        if (errno == ERANGE)
            fds.resize(static_cast<std::size_t>(count));
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

// The fd of the buffer that this CPU writes to now, and its identity. The lock allows only one
// thread at a time to hold fds for all CPUs.
int attach_cpu(std::uint16_t cpu, std::uint64_t* capacity_bytes, kmes_mapping* mapping) {
    static std::mutex lock;
    const std::lock_guard guard(lock);
    const std::vector<int> fds = attach_all(capacity_bytes);
    for (std::size_t i = 0; i < fds.size(); i++) {
        if (i != cpu) close(fds[i]);
    }
    struct stat status;
    if (fstat(fds.at(cpu), &status) != 0) die("fstat", errno);
    *mapping = {};
    mapping->device = status.st_dev;
    mapping->inode = status.st_ino;
    return fds[cpu];
}

int attach(void*, __u16 cpu_id, kmes_mapping* mapping) {
    std::uint64_t capacity_bytes = 0;
    const int fd = attach_cpu(cpu_id, &capacity_bytes, mapping);
    mapping->mapped_bytes = kmes_mapping_bytes(KMES_VERSION_1, capacity_bytes);
    mapping->base = mmap(nullptr, mapping->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int error = mapping->base == MAP_FAILED ? errno : 0;
    close(fd);  // the mapping stays
    return -error;
}

int identify(void*, __u16 cpu_id, kmes_mapping* mapping) {
    std::uint64_t capacity_bytes = 0;
    close(attach_cpu(cpu_id, &capacity_bytes, mapping));
    return 0;
}

void detach(void*, kmes_mapping* mapping) {
    munmap(mapping->base, mapping->mapped_bytes);
}

// E17: a shared futex, since the producer is in another process, or in the kernel.
int sleep_on(void*, __u32* word, __u32 expected, __u64 timeout_ns) {
    timespec limit = {};
    limit.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    const timespec* timeout = timeout_ns == KMES_NO_TIMEOUT ? nullptr : &limit;
    if (syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout, nullptr, 0) == 0) return 0;
    return errno == EAGAIN ? 0 : -errno;
}

std::uint64_t fnv_1a(const std::uint8_t* bytes, std::size_t length) {
    std::uint64_t digest = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < length; i++) digest = (digest ^ bytes[i]) * 0x100000001b3;
    return digest;
}

// The reason why the reader refuses a buffer.
const char* reason(int error) {
    switch (error) {
        case -EPROTO:
            return "bad magic";
        case -EPROTONOSUPPORT:
            return "unknown version";
        case -EINVAL:
            return "bad capacity or data_offset";
        case -EBADMSG:
            return "corrupt event";
        default:
            return std::strerror(-error);
    }
}

class Consumer {
  public:
    explicit Consumer(std::uint16_t cpu) : cpu_(cpu) {}

    void run() {
        kmes_reader_config config = {};
        config.attach_functions = {attach, identify, detach, nullptr};
        config.platform = &platform_;
        platform_.sleep = sleep_on;  // the only function of a platform that a reader needs
        config.sharing = KMES_EXCLUSIVE;
        config.stop_on_corrupt = true;
        config.cpu_id = cpu_;
        int error = kmes_reader_open(&reader_, &config);
        if (error == 0) {
            report_generation();
            error = consume();
        }
        if (error < 0) add("R " + std::to_string(cpu_) + " " + reason(error) + "\n");
        flush();
        kmes_reader_close(&reader_);
    }

  private:
    // Runs until the last event, or an error.
    int consume() {
        for (;;) {
            kmes_event_view view;
            int found = kmes_reader_next(&reader_, event_.data(), event_.size(), &view);
            if (found == -EMSGSIZE) {  // nothing is consumed; the next call may find another event
                event_.resize(view.event_size);
                continue;
            }
            if (reader_.statistics.switches != switches_) report_generation();
            if (found < 0) return found;
            if (found == KMES_READ_EVENT) {
                report_event(view);
                if (std::string_view(as_text(view.type), view.type_len) == kEndType) return 0;
                continue;
            }
            flush();
            found = kmes_reader_wait(&reader_, KMES_NO_TIMEOUT);
            if (found < 0 && found != -EINTR) return found;
        }
    }

    static const char* as_text(const std::uint8_t* bytes) {
        return reinterpret_cast<const char*>(bytes);
    }

    void report_generation() {
        switches_ = reader_.statistics.switches;
        add("G " + std::to_string(cpu_) + " " + std::to_string(reader_.generation) + "\n");
    }

    void report_event(const kmes_event_view& view) {
        const std::string cpu = std::to_string(cpu_);
        // The contract counts from the first delivered event on, the reader from the attach on.
        if (view.lost_before > 0 && reader_.statistics.delivered > 1) {
            add("L " + cpu + " " + std::to_string(view.lost_before) + "\n");
        }
        std::string line = "E " + cpu + " " + std::to_string(view.sequence) + " " +
                           std::to_string(view.timestamp) + " " +
                           std::to_string(view.origin_class) + " ";
        char text[32];
        for (std::size_t i = 0; i < view.type_len; i++) {
            std::snprintf(text, sizeof text, "%02x", view.type[i]);
            line += text;
        }
        const auto digest = static_cast<unsigned long long>(fnv_1a(view.payload, view.payload_len));
        std::snprintf(text, sizeof text, "%016llx\n", digest);
        add(line + " " + std::to_string(view.payload_len) + " " + text);
    }

    void add(const std::string& line) {
        report_ += line;
        if (report_.size() >= kReportChunkBytes) flush();
    }

    void flush() {  // whole lines in one write: the threads do not mix
        std::string_view rest = report_;
        while (!rest.empty()) {
            const ssize_t written = write(report_fd, rest.data(), rest.size());
            if (written < 0 && errno != EINTR) die("cannot write the report", errno);
            if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
        }
        report_.clear();
    }

    const std::uint16_t cpu_;
    kmes_platform platform_ = {};
    kmes_reader reader_ = {};
    std::uint64_t switches_ = 0;  // reported so far
    std::vector<std::uint8_t> event_ = std::vector<std::uint8_t>(4096);
    std::string report_;
};

}  // namespace

int main() {
    if (const char* fd = std::getenv("KMES_REPORT_FD")) report_fd = std::atoi(fd);
    std::uint64_t capacity_bytes = 0;
    const std::vector<int> fds = attach_all(&capacity_bytes);
    for (const int fd : fds) close(fd);
    std::vector<std::thread> threads;
    for (std::size_t cpu = 0; cpu < fds.size(); cpu++) {
        threads.emplace_back([cpu] { Consumer(static_cast<std::uint16_t>(cpu)).run(); });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
}
