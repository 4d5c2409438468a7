// SPDX-License-Identifier: MIT
//
// For tests of the program: a folder, and the program as a process. Knows no case.
#ifndef KMES_CONFORMANCE_MAIN_TESTING_H_
#define KMES_CONFORMANCE_MAIN_TESTING_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace kmes::conformance {

inline constexpr const char* kRunner = "conformance/kmes-conformance";

// A folder of the test's own.
class Folder {
  public:
    Folder() {
        path_ = ::testing::TempDir() + "/main_test.XXXXXX";
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    bool empty() const { return std::filesystem::is_empty(path_); }

  private:
    std::string path_;
};

inline std::string read_file(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

// A process of the runner with these words. One pipe gets standard output and standard error.
class Process {
  public:
    // `before_exec` is called in the child.
    explicit Process(std::vector<std::string> words,
                     const std::function<void()>& before_exec = nullptr) {
        words.insert(words.begin(), kRunner);
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        output_ = ends[0];
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::dup2(ends[1], STDERR_FILENO);
            if (before_exec) before_exec();
            ::execv(kRunner, arguments.data());
            ::_exit(127);
        }
        ::close(ends[1]);
    }
    ~Process() { close_output(); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Reads until the output contains this text. Returns false if the process has ended without it.
    bool wait_for(const std::string& text) {
        while (out.find(text) == std::string::npos) {
            char piece[4096];
            const ssize_t got = ::read(output_, piece, sizeof piece);
            if (got <= 0) return false;
            out.append(piece, static_cast<std::size_t>(got));
        }
        return true;
    }
    void send(int signal_number) const { ::kill(pid_, signal_number); }
    void close_output() {
        if (output_ >= 0) ::close(output_);
        output_ = -1;
    }
    // Returns the exit status, or the negated number of the signal that ended the process.
    int end() {
        if (output_ >= 0) wait_for(std::string(1, '\0'));
        int status = 0;
        EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    std::string out;

  private:
    pid_t pid_ = 0;
    int output_ = -1;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_TESTING_H_
