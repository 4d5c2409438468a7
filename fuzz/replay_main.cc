// SPDX-License-Identifier: MIT
//
// The main of a fuzz target without an engine. Runs every named file, and every file of the named
// folders, once each, and names those that fail. The corpus tests run it in every configuration.
// Knows no target.
//
//   TARGET FILE_OR_FOLDER...      exit status: 0 all passed, 1 a file failed, 2 bad usage
//
// A child runs the files, and says in a page of shared memory which one it runs. So a file that
// ends the child is known, however it ends, and the later files still run.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr unsigned kHangSeconds = 60;

// Shared between this process and the child that runs the files.
struct Place {
    std::size_t index;
    bool unreadable;
};

std::vector<std::string> list_files(int count, char** names) {
    std::vector<std::string> files;
    for (int i = 0; i < count; ++i) {
        std::error_code error;
        if (!std::filesystem::is_directory(names[i], error)) {
            files.push_back(names[i]);
            continue;
        }
        const auto folder = files.size();
        for (const auto& entry : std::filesystem::recursive_directory_iterator(names[i]))
            if (!entry.is_directory()) files.push_back(entry.path().string());
        std::sort(files.begin() + static_cast<std::ptrdiff_t>(folder), files.end());
    }
    return files;
}

unsigned hang_seconds() {
    const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
    const double factor = scale ? std::max(1.0, std::atof(scale)) : 1.0;
    return static_cast<unsigned>(kHangSeconds * factor);
}

// The memory has exactly the file's size, so a sanitizer notices a read beyond it.
bool run_file(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return false;
    const std::string text((std::istreambuf_iterator<char>(stream)),
                           std::istreambuf_iterator<char>());
    auto* bytes = new std::uint8_t[text.size()];
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    LLVMFuzzerTestOneInput(bytes, text.size());
    delete[] bytes;
    return true;
}

// Runs in the child.
int run_files(const std::vector<std::string>& files, Place* place) {
    for (; place->index < files.size(); ++place->index) {
        alarm(hang_seconds());
        place->unreadable = !run_file(files[place->index]);
        if (place->unreadable) return 1;
    }
    alarm(0);
    return 0;
}

std::string how_it_ended(int status, const Place& place) {
    if (place.unreadable) return "cannot be read";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return "runs for more than " + std::to_string(hang_seconds()) + " s";
    if (WIFSIGNALED(status)) return "ends with signal " + std::to_string(WTERMSIG(status));
    return "ends with exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "%s: name the files, or folders of files, to run\n", argv[0]);
        return 2;
    }
    const std::vector<std::string> files = list_files(argc - 1, argv + 1);
    if (files.empty()) {
        std::fprintf(stderr, "%s: there is no file in what was named\n", argv[0]);
        return 2;
    }
    auto* place = static_cast<Place*>(
        mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (place == MAP_FAILED) {
        std::perror("mmap");
        return 3;
    }
    std::size_t failed = 0;
    while (place->index < files.size()) {
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child < 0) {
            std::perror("fork");
            return 3;
        }
        if (child == 0) std::exit(run_files(files, place));
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        // After the last file: the failure is in the exit of the child (a leak, say).
        if (place->index >= files.size() && status == 0) break;
        const bool after_all = place->index >= files.size();
        std::fprintf(stderr, "FAILED %s: %s\n",
                     after_all ? "(after the last file)" : files[place->index].c_str(),
                     how_it_ended(status, *place).c_str());
        ++failed;
        ++place->index;
    }
    std::printf("%zu files, %zu failed\n", files.size(), failed);
    return failed == 0 ? 0 : 1;
}
