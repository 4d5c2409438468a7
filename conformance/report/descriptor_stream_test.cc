// SPDX-License-Identifier: MIT
//
// Tests of output to a descriptor.
#include "conformance/report/descriptor_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ostream>
#include <string>
#include <thread>

namespace kmes::conformance {
namespace {

TEST(WriteAll, GoesOnAfterAShortWriteAndAFullPipe) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const std::string text(std::size_t{1} << 20, 'x');
    std::string got;
    std::thread reader([&] {
        char piece[4096];
        while (got.size() < text.size()) {
            pollfd ready{ends[0], POLLIN, 0};
            ::poll(&ready, 1, -1);
            const ssize_t count = ::read(ends[0], piece, sizeof piece);
            if (count > 0) got.append(piece, static_cast<std::size_t>(count));
        }
    });
    EXPECT_EQ(write_all(ends[1], text), 0);
    reader.join();
    EXPECT_EQ(got, text);
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(write_all(-1, "x"), EBADF);
}

TEST(DescriptorBuffer, WritesThroughAndShowsAFailure) {
    DescriptorBuffer full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    std::ostream out(&full);
    out << "text" << std::flush;
    EXPECT_FALSE(out.good());
}

TEST(DescriptorBuffer, NoticesThatTheReaderHasGoneWithoutAByteToWrite) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    DescriptorBuffer pipe(ends[1]);
    std::ostream out(&pipe);
    out << std::flush;
    EXPECT_TRUE(out.good());
    ::close(ends[0]);
    out << std::flush;
    EXPECT_FALSE(out.good());
    ::close(ends[1]);
}

}  // namespace
}  // namespace kmes::conformance
