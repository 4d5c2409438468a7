// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// What the tests of this folder share: limits that scale, folders that go away, readers inside the
// producer's process, and the child that plays a consumer. For tests alone.
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

// A generous limit for what must come, times KMES_TIMEOUT_SCALE.
uint64_t patience_ns();
// Looks again and again; false when the patience is at its end.
bool comes_true(const std::function<bool()>& condition);

// Every other thread of this process is asleep.
bool other_threads_sleep();

std::span<const std::byte> bytes_of(std::string_view text);

// A producer for tests: rings of 64 KiB at once, no thread of its own.
ProducerOptions test_options(unsigned cpus = 1);

// The number of CPUs whose consumers ask for a wake: their need_wake is set.
unsigned asking_cpus(const Producer& producer);

// A folder under the test's, removed at the end with what is in it.
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

// What a reader delivered, copied.
struct Delivered {
    uint64_t sequence = 0;
    uint64_t timestamp = 0;
    uint64_t lost_before = 0;
    uint8_t origin = 0;
    std::string type;
    std::string payload;
};

// A reader in the producer's process, on the producer's own mapping: with ThreadSanitizer another
// mapping of the same pages would be other memory.
class InProcessReader {
  public:
    InProcessReader(const Producer& producer, uint16_t cpu);
    ~InProcessReader();
    InProcessReader(const InProcessReader&) = delete;
    InProcessReader& operator=(const InProcessReader&) = delete;

    // Every event that is there now.
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

// This program again, as `kmes_child ROLE arguments...` (process_test.cc), with KMES_SOCKET set to
// `socket`. Its standard output is read to its end by finish().
class Child {
  public:
    Child(const std::vector<std::string>& arguments, const std::string& socket,
          const std::vector<int>& inherited = {});
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // The next line that it writes, without its end; empty when there is none any more.
    std::string line();
    // Waits for its end. Its exit status, or -1 - the signal that ended it.
    int finish();
    // The rest of what it wrote.
    std::string rest();
    pid_t pid() const { return pid_; }
    // It is asleep in a futex, and nothing else.
    bool is_asleep() const;

  private:
    pid_t pid_ = -1;
    int output_ = -1;
    std::string pending_;
};

// Entries of a folder of /proc/self, or lines of a file of it.
size_t open_descriptors();
size_t mappings_named(std::string_view name);

}  // namespace kmes

#endif
