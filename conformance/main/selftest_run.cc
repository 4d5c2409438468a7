// SPDX-License-Identifier: MIT
//
// Runs this program in a process of its own, and reads its JSON report.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "conformance/main/selftest.h"
#include "conformance/main/shard.h"
#include "conformance/model/verdict.h"
#include "conformance/report/result.h"

namespace kmes::conformance {
namespace {

// A temporary file that is removed with this object.
class TemporaryFile {
  public:
    TemporaryFile() {
        const char* folder = std::getenv("TMPDIR");
        path_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") +
                "/kmes-selftest.XXXXXX";
        const int fd = ::mkostemp(path_.data(), O_CLOEXEC);
        if (fd < 0) {
            path_.clear();
        } else {
            ::close(fd);
        }
    }
    ~TemporaryFile() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }
    std::string read() const {
        std::ifstream in(path_);
        return {std::istreambuf_iterator<char>(in), {}};
    }

  private:
    std::string path_;
};

constexpr int kWaitMs = 20;

// Returns the exit status as of a shell, or -errno. A signal may have been sent only to this
// process, and any thread may have handled it, so no wait here blocks.
int wait_for(pid_t pid, const StopFlag& stop) {
    bool is_reported = false;
    for (;;) {
        if (!is_reported && stop) {
            ::kill(pid, stop.signal());
            is_reported = true;
        }
        int status = 0;
        const pid_t ended = ::waitpid(pid, &status, WNOHANG);
        if (ended < 0 && errno != EINTR) return -errno;
        if (ended == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status)
                                     : StopFlag::kSignalledStatus + WTERMSIG(status);
        }
        ::poll(nullptr, 0, kWaitMs);
    }
}

// Returns the exit status; -errno if there is no process.
int spawn_and_wait(const std::vector<std::string>& words, const std::string& output,
                   const StopFlag& stop) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_TRUNC,
                                       0);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    // Its runs have all their cases, whatever part of a test has called `selftest`.
    std::vector<char*> environment = without_shard(environ);
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(),
                                    environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return -error;
    return wait_for(pid, stop);
}

bool is_interrupted(int status) {
    constexpr std::array kSignals{SIGHUP, SIGINT, SIGTERM};
    return std::ranges::any_of(kSignals, [status](int signal_number) {
        return status == StopFlag::kSignalledStatus + signal_number;
    });
}

}  // namespace

SelftestRun run_myself(const std::vector<std::string>& arguments, const StopFlag& stop) {
    SelftestRun run;
    const TemporaryFile report;
    const TemporaryFile output;
    if (report.path().empty() || output.path().empty()) {
        run.trouble = "no temporary file can be made";
        return run;
    }
    std::vector<std::string> words{"kmes-conformance", "--report", "json", "--report-file",
                                   report.path()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    run.status = spawn_and_wait(words, output.path(), stop);
    run.interrupted = is_interrupted(run.status);
    if (run.status < 0) {
        run.trouble = std::string("the runner cannot be started: ") + std::strerror(-run.status);
        run.status = kExitSuite;
        return run;
    }
    const auto parsed = nlohmann::json::parse(report.read(), nullptr, false);
    if (parsed.is_discarded() || !parsed.contains("cases")) {
        const std::string said = output.read();
        run.trouble = "no report: " + said.substr(0, said.find('\n'));
        return run;
    }
    for (const auto& each : parsed["cases"]) {
        if (each["verdict"] == "fail") run.failed.push_back(each["id"]);
        const std::string message = each["message"];
        if (each["verdict"] == "pass" && message.starts_with(kInPart))
            run.in_part.push_back(each["id"]);
    }
    return run;
}

}  // namespace kmes::conformance
