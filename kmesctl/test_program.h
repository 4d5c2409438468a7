// SPDX-License-Identifier: MIT
// Shared parts of the tests that start kmesctl: the program, a producer for it, and waits.
#ifndef KMES_KMESCTL_TEST_PROGRAM_H_
#define KMES_KMESCTL_TEST_PROGRAM_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kmes/user/producer.h"

namespace kmes::kmesctl::testing {

// The main of a test, whose only argument is the path of kmesctl.
int run_all_tests(int count, char** arguments);

// An address that no other test uses. A process of another sandbox may have the same process id,
// and shares the abstract names.
std::string address();

// One CPU, and the smallest ring.
ProducerOptions small_rings();

// Emits events of the type "test.type" with 100 bytes of payload, on CPU 0.
void emit(Producer* producer, unsigned count);

bool wait_until(const std::function<bool()>& condition);

// Returns whether a consumer of this CPU has attached, and has set need_wake.
bool is_waited_for(const Producer& producer, unsigned cpu);

std::vector<std::uint64_t> numbers(std::uint64_t first, std::size_t count);

// Starts a producer with these rings, which serves at the socket.
std::unique_ptr<Producer> serve(const ProducerOptions& options, const std::string& socket);

// A limit of the size of files, or of the address space, for a Kmesctl.
std::function<void()> file_limit(rlim_t bytes);
std::function<void()> memory_limit(rlim_t bytes);

// Runs kmesctl with these arguments; its standard error is in a file.
class Kmesctl {
  public:
    // `prepare` is called in the child before the program begins.
    Kmesctl(std::vector<std::string> arguments, std::string log,
            const std::function<void()>& prepare = {});
    ~Kmesctl();
    Kmesctl(const Kmesctl&) = delete;
    Kmesctl& operator=(const Kmesctl&) = delete;

    // Sends `signal` (0: none), and waits for the end. Returns the exit status, or -1 - N if signal
    // N ended it.
    int finish(int signal);
    // True after its end; finish(0) then returns at once.
    bool has_ended() const;
    pid_t pid() const { return pid_; }
    std::string log() const;
    // Waits until the log contains the text.
    bool says(const std::string& text) const;

  private:
    const std::string log_;
    pid_t pid_ = -1;
};

}  // namespace kmes::kmesctl::testing

#endif  // KMES_KMESCTL_TEST_PROGRAM_H_
