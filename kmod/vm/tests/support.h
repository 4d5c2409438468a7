// SPDX-License-Identifier: GPL-2.0-only
//
// Shared by the guest tests: /dev/kmes with its ioctls, a mapping of a buffer, and checks that end
// the program. A test is the only user of the module.
#ifndef KMES_KMOD_VM_TESTS_SUPPORT_H
#define KMES_KMOD_VM_TESTS_SUPPORT_H

#include <linux/kmes.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kmes/abi.h"

namespace kmes::guest {

// Prints a line with `what`, and ends the program with status 1.
[[noreturn]] void fail(const char* file, int line, const std::string& what);
#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition)) ::kmes::guest::fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define EXPECT_EQUAL(left, right) \
    ::kmes::guest::expect_equal(__FILE__, __LINE__, #left, (left), #right, (right))

void expect_equal(const char* file, int line, const char* left_text, std::int64_t left,
                  const char* right_text, std::int64_t right);

// Returns `seconds` times KMES_TIMEOUT_SCALE.
double scaled(double seconds);

// Calls `holds` every few milliseconds until it returns true. Returns false after `seconds`.
bool wait_until(double seconds, const std::function<bool()>& holds);

void pin_to_cpu(int cpu);
int cpus_online();
std::string read_file(const std::string& path);
bool write_file(const std::string& path, const std::string& text);
std::int64_t read_number(const std::string& path);

// Returns the exit status of a command of the guest's shell.
int run(const std::string& command);

// Loads the module in the form of this program, with these parameters. Returns the exit status of
// the guest's command.
int load_module(const std::string& parameters = "");

// Runs `body` in a child process of an ordinary user without capabilities. A failed check there
// also ends this program.
void as_nobody(const std::function<void()>& body);

// Makes the kernel fail allocations of any kind (fail-nth), without messages in its log.
void prepare_failures();

// Makes an ioctl. Returns 0, or errno.
int ioctl_error(int fd, unsigned long request, void* argument);

// One open file of /dev/kmes.
class Device {
  public:
    Device();
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // Returns 0 or errno.
    int call(unsigned long request, void* argument) const;
    int attach(std::vector<int>* fds, std::uint64_t* capacity) const;
    int emit(const std::string& type, const std::string& payload) const;
    int configure(std::uint64_t capacity, std::uint64_t max_event_size) const;
    kmes_ioctl_statistics statistics(int cpu) const;
    std::vector<kmes_buffer_info> buffers() const;

    int fd() const { return fd_; }

  private:
    int fd_;
};

// The fd and one mapping of a CPU's buffer.
class Buffer {
  public:
    Buffer(const Device& device, int cpu);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    // Unmaps, or closes the fd; a second call has no effect.
    void unmap();
    void close_fd();

    kmes_metadata_v1* metadata() const { return static_cast<kmes_metadata_v1*>(base_); }
    std::uint8_t* data() const { return static_cast<std::uint8_t*>(base_) + KMES_METADATA_BYTES; }
    std::uint64_t capacity() const { return capacity_; }
    std::size_t bytes() const { return KMES_METADATA_BYTES + 2 * capacity_; }
    int fd() const { return fd_; }

  private:
    void* base_ = nullptr;
    std::uint64_t capacity_ = 0;
    int fd_ = -1;
};

// A thread that sleeps on a buffer. It can be in memory that two processes share.
struct Sleeper {
    std::atomic<int> process{0};
    std::atomic<int> thread{0};
    std::atomic<bool> is_woken{false};
};

// Sleeps as 5.1.8.2 describes, but without the final check for events, since the test emits later.
// Returns when futex_counter has changed.
void sleep_on(const Buffer& buffer, Sleeper* me);
bool is_in_futex(const Sleeper& sleeper);

// The tests, by name; arguments as in tests.txt.
using Arguments = std::vector<std::string>;
void test_attach(const Arguments& arguments);
void test_permissions(const Arguments& arguments);
void test_references(const Arguments& arguments);
void test_wake(const Arguments& arguments);
void test_load(const Arguments& arguments);
void test_resize(const Arguments& arguments);
void test_hotplug(const Arguments& arguments);
void test_failures(const Arguments& arguments);
void test_failing_loads(const Arguments& arguments);
void test_unload(const Arguments& arguments);
void test_monopolised(const Arguments& arguments);
void test_faults(const Arguments& arguments);
void test_huge_pages(const Arguments& arguments);

}  // namespace kmes::guest

#endif
