// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The producer under the limits of its process. Each limit causes an error that names it, and the
// rings continue.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "kmes/user/file_size_signal.h"
#include "kmes/user/memory.h"
#include "kmes/user/producer.h"
#include "kmes/user/soft_limit.h"
#include "kmes/user/test_support.h"

namespace kmes {
namespace {

bool is_pending_and_blocked(bool* is_blocked) {
    sigset_t pending, blocked;

    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    *is_blocked = sigismember(&blocked, SIGXFSZ) == 1;
    return sigismember(&pending, SIGXFSZ) == 1;
}

std::string text_of_failed_create(uint64_t capacity_bytes, int error) {
    BufferOptions options;

    options.capacity_bytes = capacity_bytes;
    try {
        BufferMemory::create(options);
    } catch (const std::system_error& failure) {
        EXPECT_EQ(error, failure.code().value());
        return failure.what();
    }
    return "";
}

TEST(LimitsTest, FileSizeLimitIsAnErrorAndNoSignal) {
    SoftLimit limit(RLIMIT_FSIZE, 16 << 10);
    std::string text = text_of_failed_create(64 << 10, EFBIG);
    bool is_blocked = true;

    EXPECT_NE(std::string::npos, text.find("RLIMIT_FSIZE")) << text;
    EXPECT_FALSE(is_pending_and_blocked(&is_blocked));
    EXPECT_FALSE(is_blocked);
}

TEST(LimitsTest, PendingFileSizeSignalOfTheProgramStays) {
    SoftLimit limit(RLIMIT_FSIZE, 16 << 10);
    sigset_t set;
    bool is_blocked = false;
    const struct timespec no_time = {0, 0};

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    ASSERT_EQ(0, pthread_sigmask(SIG_BLOCK, &set, nullptr));
    pthread_kill(pthread_self(), SIGXFSZ);
    EXPECT_NE("", text_of_failed_create(64 << 10, EFBIG));
    EXPECT_TRUE(is_pending_and_blocked(&is_blocked));
    EXPECT_TRUE(is_blocked);
    EXPECT_EQ(SIGXFSZ, sigtimedwait(&set, nullptr, &no_time));
    ASSERT_EQ(0, pthread_sigmask(SIG_UNBLOCK, &set, nullptr));
}

TEST(LimitsTest, FileSizeLimitStopsTheConstructorWithItsName) {
    SoftLimit limit(RLIMIT_FSIZE, 4096);

    try {
        Producer producer(test_options());

        ADD_FAILURE() << "the boot buffer is larger than the limit";
    } catch (const std::system_error& failure) {
        EXPECT_EQ(EFBIG, failure.code().value());
        EXPECT_NE(std::string::npos, std::string(failure.what()).find("RLIMIT_FSIZE"));
    }
}

TEST(LimitsTest, ResizeOverTheFileSizeLimitLeavesTheRings) {
    Producer producer(test_options(2));

    ASSERT_EQ(0, producer.start_without_registry());
    InProcessReader reader(producer, 0);
    {
        SoftLimit limit(RLIMIT_FSIZE, 128 << 10);

        EXPECT_EQ(-EFBIG, producer.resize(256 << 10));
    }
    EXPECT_EQ(0, producer.emit(0, "t"));
    std::vector<Delivered> events = reader.drain();

    ASSERT_EQ(2u, events.size());
    EXPECT_EQ(kResizeFailedType, events[0].type);
    EXPECT_NE(std::string::npos, events[0].payload.find("RLIMIT_FSIZE")) << events[0].payload;
    EXPECT_NE(std::string::npos, events[0].payload.find("65536 stays")) << events[0].payload;
    EXPECT_EQ(0, producer.resize(256 << 10));
}

// Retired buffers hold no descriptors, so resizes do not fail at RLIMIT_NOFILE.
TEST(LimitsTest, ResizesKeepNoDescriptors) {
    Producer producer(test_options(4));

    ASSERT_EQ(0, producer.start_without_registry());
    size_t before = open_descriptors();

    for (int i = 0; i < 6; i++) ASSERT_EQ(0, producer.resize((64 << 10) << (i & 1)));
    EXPECT_EQ(before, open_descriptors());
    EXPECT_EQ(16u, producer.retired_buffers());
}

// An attachment in progress keeps the descriptors and the data of a retired buffer.
TEST(LimitsTest, AttachmentsKeepTheirDescriptorsAndData) {
    Producer producer(test_options());
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    size_t before = open_descriptors();

    ASSERT_EQ(0, producer.attach(&attachment));
    ASSERT_EQ(0, producer.resize(128 << 10));
    EXPECT_EQ(before + 2, open_descriptors());
    EXPECT_NO_THROW(ConsumerMapping(attachment.buffers[0]->metadata_fd(),
                                    attachment.buffers[0]->data_fd(), 64 << 10));
    EXPECT_EQ(0, static_cast<char*>(attachment.buffers[0]->base())[4096]);
    attachment = Attachment();
    EXPECT_EQ(before, open_descriptors());
}

TEST(LimitsTest, DescriptorLimitIsNamed) {
    Producer producer(test_options(4));

    ASSERT_EQ(0, producer.start_without_registry());
    InProcessReader reader(producer, 0);
    {
        int lowest = dup(STDERR_FILENO);
        SoftLimit limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest) + 2);

        close(lowest);

        EXPECT_EQ(-EMFILE, producer.resize(128 << 10));
    }
    std::vector<Delivered> events = reader.drain();

    ASSERT_EQ(1u, events.size());
    EXPECT_NE(std::string::npos, events[0].payload.find("RLIMIT_NOFILE")) << events[0].payload;
    EXPECT_EQ(0, producer.resize(128 << 10));
}

TEST(LimitsTest, ResumeStateOverTheFileSizeLimitIsAnError) {
    TemporaryFolder folder;
    ResumeState state;

    state.session = 1;
    state.cpus.resize(8);
    SoftLimit limit(RLIMIT_FSIZE, 16);

    try {
        state.save(folder.path("state"));
        ADD_FAILURE() << "the file is larger than the limit";
    } catch (const std::system_error& failure) {
        EXPECT_EQ(EFBIG, failure.code().value());
    }
}

}  // namespace
}  // namespace kmes
