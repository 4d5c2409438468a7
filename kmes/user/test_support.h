// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Shared parts of the tests of this folder: limits that scale, temporary folders, readers in the
// producer's process, and the child that acts as consumer. For tests only.
#ifndef KMES_USER_TEST_SUPPORT_H
#define KMES_USER_TEST_SUPPORT_H

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kmes/reader.h"
#include "kmes/user/producer.h"

namespace kmes {

// A generous limit for an expected event, times KMES_TIMEOUT_SCALE.
uint64_t patience_ns();
// Checks repeatedly until the condition is true; false after the patience has run out.
bool comes_true(const std::function<bool()>& condition);

// True if every other thread of this process is asleep.
bool other_threads_sleep();

std::span<const std::byte> bytes_of(std::string_view text);

// A producer for tests: rings of 64 KiB from the start, no background thread.
ProducerOptions test_options(unsigned cpus = 1);

// The number of CPUs whose consumers ask for a wake: their need_wake is set.
unsigned asking_cpus(const Producer& producer);

// A folder below the test's, removed at the end with its content.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

  private:
    std::string folder_;
};

// A copy of an event that a reader delivered.
struct Delivered {
    uint64_t sequence = 0;
    uint64_t timestamp = 0;
    uint64_t lost_before = 0;
    uint8_t origin = 0;
    std::string type;
    std::string payload;
};

// A reader in the producer's process, on the producer's own mapping. For ThreadSanitizer another
// mapping of the same pages would be other memory.
class InProcessReader {
  public:
    InProcessReader(const Producer& producer, uint16_t cpu);
    ~InProcessReader();
    InProcessReader(const InProcessReader&) = delete;
    InProcessReader& operator=(const InProcessReader&) = delete;

    // Returns every event that is available now.
    std::vector<Delivered> drain();
    struct kmes_reader& core() { return reader_; }
    int open_error() const { return open_error_; }

  private:
    static int attach(void* context, __u16 cpu, struct kmes_mapping* mapping);
    static int identify(void* context, __u16 cpu, struct kmes_mapping* mapping);
    static void detach(void* context, struct kmes_mapping* mapping);

    const Producer& producer_;
    struct kmes_reader reader_ = {};
    int open_error_ = 0;
};

// Runs this program as `kmes_child ROLE arguments...` (process_test.cc), with KMES_SOCKET set to
// `socket`. finish() reads its standard output to the end.
class Child {
  public:
    Child(const std::vector<std::string>& arguments, const std::string& socket,
          const std::vector<int>& inherited = {});
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Returns the next line of its output without the newline; empty at the end.
    std::string line();
    // Waits for its end. Returns its exit status, or -1 - the number of the signal that ended it.
    int finish();
    // Returns the rest of its output.
    std::string rest();
    pid_t pid() const { return pid_; }
    // True if it is asleep in a futex.
    bool is_asleep() const;

  private:
    pid_t pid_ = -1;
    int output_ = -1;
    std::string pending_;
};

// Return the entries of a folder of /proc/self, or the lines of a file in it.
size_t open_descriptors();
size_t mappings_named(std::string_view name);

}  // namespace kmes

#endif
