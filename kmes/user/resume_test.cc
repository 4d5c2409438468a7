// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The end of a producer and the start of the next one (E25), and the file between them.
#include "kmes/user/resume.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>
#include <system_error>

#include "kmes/user/test_support.h"

namespace kmes {
namespace {

ResumeState example() {
    ResumeState state;

    state.session = 77;
    state.cpus = {{1042, 3}, {0, 1}};
    return state;
}

std::string contents(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;

    text << file.rdbuf();
    return text.str();
}

TEST(ResumeTest, TextHasTheFormOfTheHeader) {
    EXPECT_EQ(
        "kmes-resume 1\n"
        "session 77\n"
        "cpu 0 sequence 1042 generation 3\n"
        "cpu 1 sequence 0 generation 1\n"
        "end\n",
        example().to_text());
}

TEST(ResumeTest, FileIsTakenOnce) {
    TemporaryFolder folder;
    std::string path = folder.path("state");

    example().save(path);
    example().save(path);  // replaces the old file
    struct stat status = {};

    ASSERT_EQ(0, stat(path.c_str(), &status));
    EXPECT_EQ(0600u, status.st_mode & 0777);
    ResumeState state = ResumeState::take(path);

    EXPECT_EQ(77u, state.session);
    ASSERT_EQ(2u, state.cpus.size());
    EXPECT_EQ(1042u, state.cpus[0].last_sequence);
    EXPECT_EQ(3u, state.cpus[0].generation);
    EXPECT_EQ(0u, ResumeState::take(path).session);
}

TEST(ResumeTest, WhatIsNoStateIsRefusedAndLeftAlone) {
    const char* const bad[] = {
        "",
        "kmes-resume 2\nsession 1\nend\n",
        "kmes-resume 1\nsession 0\nend\n",
        "kmes-resume 1\nsession 1\n",
        "kmes-resume 1\nsession 1\nend",
        "kmes-resume 1\nsession -1\nend\n",
        "kmes-resume 1\nsession 1 \nend\n",
        "kmes-resume 1\nsession 18446744073709551616\nend\n",
        "kmes-resume 1\nsession 1\ncpu 1 sequence 0 generation 0\nend\n",
        "kmes-resume 1\nsession 1\ncpu 0 sequence x generation 0\nend\n",
        "kmes-resume 1\nsession 1\ncpu 0 sequence 1\nend\n",
        "kmes-resume 1\nsession 1\nend\nmore\n",
    };

    for (const char* text : bad) {
        TemporaryFolder folder;
        std::string path = folder.path("state");

        std::ofstream(path) << text;
        try {
            ResumeState::take(path);
            ADD_FAILURE() << "taken: " << text;
        } catch (const std::system_error& error) {
            EXPECT_EQ(EINVAL, error.code().value()) << text;
            EXPECT_NE(std::string::npos, std::string(error.what()).find("wanted")) << error.what();
        }
        EXPECT_EQ(text, contents(path));
    }
}

TEST(ResumeTest, SaveSaysWhatFailed) {
    TemporaryFolder folder;

    try {
        example().save(folder.path("not/there"));
        FAIL();
    } catch (const std::system_error& error) {
        EXPECT_EQ(ENOENT, error.code().value());
        EXPECT_NE(std::string::npos, std::string(error.what()).find("not/there"));
    }
}

bool is_link(const std::string& path) {
    struct stat status = {};

    return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

// Links of links, to a file that exists and to one that does not exist yet.
TEST(ResumeTest, SaveAndTakeFollowLinks) {
    for (const bool is_there : {true, false}) {
        TemporaryFolder folder;
        std::string link = folder.path("link"), real = folder.path("real");

        if (is_there) std::ofstream(real) << "old\n";
        ASSERT_EQ(0, symlink("real", folder.path("second").c_str()));
        ASSERT_EQ(0, symlink(folder.path("second").c_str(), link.c_str()));
        example().save(link);
        EXPECT_TRUE(is_link(link));
        EXPECT_TRUE(is_link(folder.path("second")));
        EXPECT_EQ(example().to_text(), contents(real));
        EXPECT_EQ(77u, ResumeState::take(link).session);
        EXPECT_TRUE(is_link(link));
        EXPECT_EQ(0u, ResumeState::take(link).session);
    }
}

// Containers count their own process numbers, and two may share the folder of the file.
TEST(ResumeTest, FilesOfAProcessWithTheSameNumberStay) {
    TemporaryFolder folder;
    std::string path = folder.path("state");
    std::string number = std::to_string(getpid());

    std::ofstream(path + ".new." + number) << "of another\n";
    std::ofstream(path + ".taken." + number) << "of another\n";
    example().save(path);
    EXPECT_EQ(77u, ResumeState::take(path).session);
    EXPECT_EQ("of another\n", contents(path + ".new." + number));
    EXPECT_EQ("of another\n", contents(path + ".taken." + number));
}

int error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

TEST(ResumeTest, WhatIsNoRegularFileStays) {
    TemporaryFolder folder;
    std::string fifo = folder.path("fifo"), inside = folder.path("folder");
    const auto mode_of = [](const std::string& path) {
        struct stat status = {};

        return lstat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
    };

    ASSERT_EQ(0, mkfifo(fifo.c_str(), 0600));
    ASSERT_EQ(0, mkdir(inside.c_str(), 0700));
    EXPECT_EQ(ENXIO, error_of([&] { example().save(fifo); }));
    EXPECT_EQ(EISDIR, error_of([&] { example().save(inside); }));
    int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    ASSERT_GE(reader, 0);
    example().save(fifo);
    char text[4096];
    ssize_t got = read(reader, text, sizeof(text));

    close(reader);
    EXPECT_EQ(example().to_text(), std::string(text, got > 0 ? static_cast<size_t>(got) : 0));
    EXPECT_EQ(EINVAL, error_of([&] { ResumeState::take(fifo); }));
    EXPECT_EQ(EINVAL, error_of([&] { ResumeState::take(inside); }));
    EXPECT_EQ(static_cast<mode_t>(S_IFIFO), mode_of(fifo));
    EXPECT_EQ(static_cast<mode_t>(S_IFDIR), mode_of(inside));

    std::string device = folder.path("null");

    if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;  // needs root
    if (error_of([&] { example().save(device); }) == EACCES) return;        // mounted nodev
    EXPECT_EQ(EINVAL, error_of([&] { ResumeState::take(device); }));
    EXPECT_EQ(static_cast<mode_t>(S_IFCHR), mode_of(device));
}

// By its link in /proc, like a shell's process substitution or a removed file.
TEST(ResumeTest, OpenFilesAreWrittenInPlace) {
    TemporaryFolder folder;
    std::string path = folder.path("state");
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, unlink(path.c_str()));
    example().save("/proc/self/fd/" + std::to_string(fd));
    char text[4096];
    ssize_t got = pread(fd, text, sizeof(text), 0);

    close(fd);
    EXPECT_EQ(example().to_text(), std::string(text, got > 0 ? static_cast<size_t>(got) : 0));
}

TEST(ResumeTest, NextProducerGoesOnWithNumbersAndGenerations) {
    ResumeState state;
    uint64_t session;

    {
        Producer producer(test_options(2));

        session = producer.session();
        ASSERT_EQ(0, producer.start_without_registry());
        for (int i = 0; i < 5; i++) ASSERT_EQ(0, producer.emit(1, "t"));
        ASSERT_EQ(0, producer.resize(65536));
        state = producer.retire();
        EXPECT_EQ(-ESHUTDOWN, producer.emit(1, "t"));
        EXPECT_EQ(-ESHUTDOWN, producer.emit_in_kernel(1, "t"));
        EXPECT_EQ(-ESHUTDOWN, producer.resize(65536));
        Attachment attachment;
        Reservation reservation;

        EXPECT_EQ(-ESHUTDOWN, producer.attach(&attachment));
        EXPECT_EQ(-ESHUTDOWN, producer.reserve(0, "t", 1, &reservation));
        EXPECT_EQ(state.to_text(), producer.retire().to_text());
    }
    EXPECT_EQ(session, state.session);
    EXPECT_EQ(5u, state.cpus[1].last_sequence);
    EXPECT_EQ(3u, state.cpus[1].generation);  // 1, a resize, the end
    ProducerOptions options = test_options(2);

    options.resume = ResumeState::from_text(state.to_text(), "state");
    Producer next(options);

    EXPECT_EQ(session, next.session());
    ASSERT_EQ(0, next.emit(1, "boot"));
    ASSERT_EQ(0, next.start_without_registry());
    std::vector<Delivered> events = InProcessReader(next, 1).drain();

    ASSERT_EQ(1u, events.size());
    EXPECT_EQ(6u, events[0].sequence);
    Attachment attachment;

    ASSERT_EQ(0, next.attach(&attachment));
    EXPECT_EQ(3u, *attachment.buffers[1]->buffer()->shared.generation);
}

TEST(ResumeTest, WithoutAStateItIsANewSession) {
    Producer first(test_options());
    Producer second(test_options());

    EXPECT_NE(0u, first.session());
    EXPECT_NE(first.session(), second.session());
}

// A producer that ends in the boot phase loses its boot events, but not their numbers.
TEST(ResumeTest, NumbersThatWouldOverflowAreRefused) {
    for (const auto& [sequence, generation] :
         {std::pair{UINT64_MAX, uint64_t{1}}, std::pair{uint64_t{1}, UINT64_MAX}}) {
        ProducerOptions options = test_options(1);

        options.resume.session = 1;
        options.resume.cpus.resize(1);
        options.resume.cpus[0].last_sequence = sequence;
        options.resume.cpus[0].generation = generation;
        try {
            Producer producer(options);
            ADD_FAILURE() << sequence << " " << generation;
        } catch (const std::system_error& error) {
            EXPECT_EQ(EINVAL, error.code().value());
        }
    }
}

TEST(ResumeTest, EndInTheBootPhaseKeepsTheNumbers) {
    Producer producer(test_options());

    ASSERT_EQ(0, producer.emit(0, "t"));
    ResumeState state = producer.retire();

    EXPECT_EQ(1u, state.cpus[0].last_sequence);
    EXPECT_EQ(1u, state.cpus[0].generation);
    EXPECT_EQ(-ESHUTDOWN, producer.start_without_registry());
}

}  // namespace
}  // namespace kmes
