// SPDX-License-Identifier: MIT
//
// The descriptor that is kept for /proc: a process that has used up its descriptors can still be
// read, again and again.

#include "conformance/tracer/spare_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {
namespace {

constexpr rlim_t kFewFiles = 64;

// Uses up the descriptors of this process. Gives them back at its end.
class NoDescriptors {
  public:
    NoDescriptors() {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit few = before_;
        few.rlim_cur = kFewFiles;
        setrlimit(RLIMIT_NOFILE, &few);
        for (int fd = 0; fd >= 0;) {
            fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
            if (fd >= 0) fds_.push_back(fd);
        }
        error_ = errno;
    }
    ~NoDescriptors() {
        for (const int fd : fds_) close(fd);
        setrlimit(RLIMIT_NOFILE, &before_);
    }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

    int error() const { return error_; }

  private:
    rlimit before_{};
    std::vector<int> fds_;
    int error_ = 0;
};

TEST(SpareFileTest, ReadsAProcessWithoutAFreeDescriptor) {
    keep_spare_file();
    const NoDescriptors none;
    ASSERT_EQ(none.error(), EMFILE);
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(read_maps(getpid()).empty()) << i;
        EXPECT_EQ(list_fds(getpid()).size(), kFewFiles) << i;
        ASSERT_TRUE(read_status(getpid())) << i;
        EXPECT_EQ(read_status(getpid())->process, getpid());
        EXPECT_LT(open("/dev/null", O_RDONLY | O_CLOEXEC), 0) << "the descriptor is still kept";
    }
}

TEST(SpareFileTest, ListsTheNamesInAFolder) {
    const std::vector<std::string> names = names_in("/proc/self");
    EXPECT_NE(std::find(names.begin(), names.end(), "maps"), names.end());
    EXPECT_EQ(std::find(names.begin(), names.end(), "."), names.end());
    EXPECT_TRUE(names_in("/proc/none").empty());
}

}  // namespace
}  // namespace kmes::conformance::tracing
