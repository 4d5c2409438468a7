// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// A producer without a free descriptor. It is no part of limits_test, because a sanitizer opens
// files for its checks, and takes an error for a fault of the program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "kmes/user/producer.h"
#include "kmes/user/serve_fixture.h"
#include "kmes/user/soft_limit.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

// A server that could accept nobody would let every client wait.
TEST(NoDescriptorTest, AServerHasOneForAClient) {
    Producer producer(test_options());
    TemporaryFolder folder;
    const std::string address = folder.path("socket");
    const int lowest = dup(STDERR_FILENO);
    int error = EMFILE;

    ASSERT_EQ(0, producer.start_without_registry());
    close(lowest);
    for (rlim_t count = 0; error == EMFILE && count < 64; count++) {
        SoftLimit limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest) + count);

        error = serve_error(producer, address);
        if (error != 0) continue;
        const int left = dup(STDERR_FILENO);

        EXPECT_GE(left, 0) << errno;
        close(left);
    }
    EXPECT_EQ(0, error);
}

}  // namespace
}  // namespace kmes
