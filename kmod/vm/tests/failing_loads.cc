// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test failing-loads N: loads the module N times. Each load fails another one of the last N
// allocations (the kernel's fail-nth). Earlier allocations are in the kernel's own loader. A failed
// load leaves no module, and returns ENOMEM or ENFILE. Run it in guest/log_later: kmemleak reports
// its own failed allocations, some of them where a console write is forbidden.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char MODULE[] = "/kmes/modules/kmes.ko";
constexpr char NTH[] = "/proc/thread-self/fail-nth";
constexpr int MOST_ALLOCATIONS = 1000000;

int load(int file) {
    return syscall(SYS_finit_module, file, "buffer_capacity=65536 buffers_max=64", 0) ? errno : 0;
}

bool is_loaded() {
    return access("/sys/module/kmes", F_OK) == 0;
}

void unload() {
    EXPECT(wait_until(20, [] { return syscall(SYS_delete_module, "kmes", O_NONBLOCK) == 0; }));
}

// Loads, and fails the `nth` allocation. Returns 0 or errno. Sets *left to the number of
// allocations that were missing to reach the `nth`, or 0.
int load_failing(int nth, int* left) {
    const int file = open(MODULE, O_RDONLY | O_CLOEXEC);
    const int fd = open(NTH, O_RDWR | O_CLOEXEC);
    EXPECT(file >= 0 && fd >= 0);
    const std::string text = std::to_string(nth);
    EXPECT(write(fd, text.data(), text.size()) == ssize_t(text.size()));
    const int error = load(file);
    char rest[16] = {};
    EXPECT(pread(fd, rest, sizeof rest - 1, 0) > 0);
    EXPECT(pwrite(fd, "0", 1, 0) == 1);
    close(fd);
    close(file);
    *left = std::atoi(rest);
    return error;
}

}  // namespace

void test_failing_loads(const Arguments& arguments) {
    EXPECT_EQUAL(arguments.size(), 1);
    prepare_failures();
    int failed = 0, left = 0;
    EXPECT_EQUAL(load_failing(MOST_ALLOCATIONS, &left), 0);
    EXPECT(left > 0);
    unload();
    const int all = MOST_ALLOCATIONS - left, tried = std::min(std::stoi(arguments[0]), all);
    for (int nth = all - tried + 1; nth <= all; ++nth) {
        const int error = load_failing(nth, &left);
        if (error == 0) {
            unload();
            continue;
        }
        EXPECT(!is_loaded());
        ++failed;
        if (error != ENOMEM && error != ENFILE) {
            errno = error;
            EXPECT(!"an error that a failed allocation does not explain");
        }
    }
    std::printf("load: failed each of the last %d of %d allocations; %d loads failed\n", tried, all,
                failed);
    EXPECT(failed > 0);
}

}  // namespace kmes::guest
