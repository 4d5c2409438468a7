// SPDX-License-Identifier: MIT
//
// Tests of the report file: it is there only when it is whole, and special files stay what they
// are.
#include "conformance/report/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

// A folder of the test's own.
class Folder {
  public:
    Folder() {
        const char* base = std::getenv("TEST_TMPDIR");
        path_ = std::string(base != nullptr ? base : "/tmp") + "/output_file_test.XXXXXX";
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::size_t entries() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                      std::filesystem::directory_iterator()));
    }

  private:
    std::string path_;
};

std::string read_file(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OutputFile, IsThereOnlyWhenItIsWhole) {
    const Folder folder;
    {
        OutputFile file;
        ASSERT_EQ(file.open(folder.file("report.json")), OutputFile::Status::ok);
        // A killed run leaves nothing.
        EXPECT_EQ(folder.entries(), 0u);
    }
    EXPECT_EQ(folder.entries(), 0u);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report.json")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("{}\n"));
    EXPECT_EQ(read_file(folder.file("report.json")), "{}\n");
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, ReplacesAnOlderReport) {
    const Folder folder;
    std::ofstream(folder.file("report")) << "old";
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_EQ(read_file(folder.file("report")), "old");
    EXPECT_TRUE(file.commit("new"));
    EXPECT_EQ(read_file(folder.file("report")), "new");
}

TEST(OutputFile, HasTheRightsOfAnyFile) {
    const Folder folder;
    const mode_t mask = ::umask(022);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit(""));
    ::umask(mask);
    struct stat status;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST(OutputFile, NamesAFolderThatIsNotThere) {
    const Folder folder;
    OutputFile missing;
    EXPECT_EQ(missing.open(folder.file("no/report")), OutputFile::Status::bad_path);
    EXPECT_THAT(missing.error(), HasSubstr("/no\" of the report file is not there"));
    OutputFile is_folder;
    EXPECT_EQ(is_folder.open(folder.file("")), OutputFile::Status::bad_path);
    OutputFile empty;
    EXPECT_EQ(empty.open(""), OutputFile::Status::bad_path);
}

TEST(OutputFile, SaysWhyItCannotBeWritten) {
    OutputFile file;
    EXPECT_EQ(file.open("/proc/kmes-report"), OutputFile::Status::unwritable);
    EXPECT_THAT(file.error(), HasSubstr("cannot write the report file \"/proc/kmes-report\": "));
    EXPECT_FALSE(file.commit("x"));
}

TEST(OutputFile, LeavesTheOldReportWhenTheRenameFails) {
    const Folder folder;
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    // Meanwhile something appears at its place that a file cannot replace.
    std::filesystem::create_directory(folder.file("report"));
    EXPECT_FALSE(file.commit("x"));
    EXPECT_THAT(file.error(), HasSubstr("cannot replace the report file"));
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, FollowsLinksAndKeepsThem) {
    const Folder folder;
    std::ofstream(folder.file("real")) << "old";
    std::filesystem::create_symlink("real", folder.file("link"));
    std::filesystem::create_symlink("link", folder.file("link-to-a-link"));
    std::filesystem::create_symlink("not-there", folder.file("dangling"));
    for (const std::string name : {"link-to-a-link", "dangling"}) {
        OutputFile file;
        ASSERT_EQ(file.open(folder.file(name)), OutputFile::Status::ok) << file.error();
        EXPECT_TRUE(file.commit("new")) << file.error();
        EXPECT_TRUE(std::filesystem::is_symlink(folder.file(name)));
    }
    EXPECT_EQ(read_file(folder.file("real")), "new");
    EXPECT_EQ(read_file(folder.file("not-there")), "new");
    EXPECT_EQ(folder.entries(), 5u);
}

TEST(OutputFile, WritesToAFifo) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
    const int reader = ::open(folder.file("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("fifo")), OutputFile::Status::ok) << file.error();
    EXPECT_TRUE(file.commit("new")) << file.error();
    char piece[8] = {};
    EXPECT_EQ(::read(reader, piece, sizeof piece), 3);
    ::close(reader);
    EXPECT_TRUE(std::filesystem::is_fifo(folder.file("fifo")));
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, WaitsForTheReaderOfAFifoButNotForEver) {
    const Folder folder;
    ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
    StopFlag stop;
    int checks = 0;
    stop.before_each_check = [&] {
        if (++checks == 2) stop.ask(SIGINT);
    };
    OutputFile file;
    EXPECT_EQ(file.open(folder.file("fifo"), &stop), OutputFile::Status::unwritable);
    OutputFile nobody_reads;
    EXPECT_EQ(nobody_reads.open(folder.file("fifo")), OutputFile::Status::unwritable);
    EXPECT_THAT(nobody_reads.error(), HasSubstr("no process reads the FIFO"));
    EXPECT_TRUE(std::filesystem::is_fifo(folder.file("fifo")));
}

TEST(OutputFile, WritesToADeviceAndReportsAFullOne) {
    OutputFile null;
    ASSERT_EQ(null.open("/dev/null"), OutputFile::Status::ok) << null.error();
    EXPECT_TRUE(null.commit("new"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    OutputFile full;
    ASSERT_EQ(full.open("/dev/full"), OutputFile::Status::ok) << full.error();
    EXPECT_FALSE(full.commit("new"));
    EXPECT_THAT(full.error(), HasSubstr("No space left on device"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

// As in a process substitution, and with a file that is open already.
TEST(OutputFile, WritesToADescriptorOfThisProcess) {
    const Folder folder;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    char piece[8];
    for (const auto& [writer, reader] :
         {std::pair(ends[1], ends[0]), std::pair(sockets[1], sockets[0])}) {
        for (const std::string base : {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}) {
            OutputFile file;
            ASSERT_EQ(file.open(base + std::to_string(writer)), OutputFile::Status::ok)
                << file.error();
            EXPECT_TRUE(file.commit("new")) << file.error();
            EXPECT_EQ(::read(reader, piece, sizeof piece), 3);
        }
        ::close(reader);
        ::close(writer);
    }
    const int open = ::open(folder.file("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(::write(open, "old,", 4), 4);
    OutputFile file;
    ASSERT_EQ(file.open("/dev/fd/" + std::to_string(open)), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("new,"));
    ASSERT_EQ(::write(open, "more", 4), 4);
    ::close(open);
    EXPECT_EQ(read_file(folder.file("file")), "old,new,more");
    EXPECT_EQ(folder.entries(), 1u);
}

TEST(OutputFile, RefusesASocketAndADescriptorThatCannotBeWritten) {
    const Folder folder;
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder.file("socket");
    // The folder of a test may have a longer path than a socket address permits.
    const int inside = ::open(folder.file(".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const std::string shorter = "/proc/self/fd/" + std::to_string(inside) + "/socket";
    ASSERT_LT(shorter.size(), sizeof address.sun_path);
    shorter.copy(address.sun_path, shorter.size());
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    OutputFile file;
    EXPECT_EQ(file.open(path), OutputFile::Status::bad_path);
    EXPECT_THAT(file.error(), HasSubstr("is a socket"));
    ::close(socket);
    ::close(inside);
    EXPECT_TRUE(std::filesystem::is_socket(path));
    const int reading = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    OutputFile other;
    EXPECT_EQ(other.open("/dev/fd/" + std::to_string(reading)), OutputFile::Status::unwritable);
    ::close(reading);
}

TEST(OutputFile, KeepsModeAndOwnerOfWhatItReplaces) {
    const Folder folder;
    std::ofstream(folder.file("report")) << "old";
    ASSERT_EQ(::chmod(folder.file("report").c_str(), 0640), 0);
    // Only root may change the owner of a file, and in a user namespace only to its own users.
    const bool is_given_away = ::chown(folder.file("report").c_str(), 12, 34) == 0;
    static_cast<void>(is_given_away);
    struct stat before;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &before), 0);
    OutputFile file;
    ASSERT_EQ(file.open(folder.file("report")), OutputFile::Status::ok);
    EXPECT_TRUE(file.commit("new"));
    struct stat after;
    ASSERT_EQ(::stat(folder.file("report").c_str(), &after), 0);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_uid, before.st_uid);
    EXPECT_EQ(after.st_gid, before.st_gid);
    EXPECT_NE(after.st_ino, before.st_ino);
    EXPECT_EQ(read_file(folder.file("report")), "new");
}

TEST(OutputFile, ANewOneFollowsNoLink) {
    const Folder folder;
    std::filesystem::create_symlink("not-there", folder.file("link"));
    OutputFile file;
    ASSERT_EQ(file.open_new(folder.file("link")), OutputFile::Status::ok);
    EXPECT_FALSE(file.commit_new("new"));
    EXPECT_TRUE(file.is_taken());
    EXPECT_FALSE(std::filesystem::exists(folder.file("not-there")));
}

}  // namespace
}  // namespace kmes::conformance
