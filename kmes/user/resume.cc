// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The state that outlives a producer, and its file. See resume.h.
#include "kmes/user/resume.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <system_error>

#include "kmes/user/file_size_signal.h"
#include "kmes/user/uncancelled.h"

namespace kmes {
namespace {

constexpr size_t kFileMaxBytes = 1 << 20;  // for 1024 CPUs: about 80 KiB
constexpr size_t kMostCpuIds = 65536;      // cpu_id has 16 bits

[[noreturn]] void fail_state(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(), "KMES resume state: " + what);
}

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

void write_all(int fd, const std::string& text, const std::string& path) {
    size_t done = 0;

    while (done < text.size()) {
        ssize_t written = write(fd, text.data() + done, text.size() - done);

        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_state(errno, "cannot write " + path);
        done += static_cast<size_t>(written);
    }
}

std::string read_all(int fd, const std::string& path) {
    std::string text;
    char piece[4096];

    for (;;) {
        ssize_t got = read(fd, piece, sizeof(piece));

        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_state(errno, "cannot read " + path);
        if (got == 0) return text;
        text.append(piece, static_cast<size_t>(got));
        if (text.size() > kFileMaxBytes) fail_state(EINVAL, path + " is too long to be one");
    }
}

std::string folder_of(const std::string& path) {
    size_t slash = path.rfind('/');

    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes the name durable on the disk, not only the bytes.
void sync_folder(const std::string& path) {
    Descriptor folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    if (folder.get() < 0 || fsync(folder.get()) != 0)
        fail_state(errno, "cannot sync the folder of " + path);
}

// Returns the name at the end of the symbolic links that begin at `path`, or `path` itself if it is
// no link.
std::string end_of_links(const std::string& path) {
    constexpr int kLinksAtMost = 40;  // the limit of the kernel
    std::string end = path;

    for (int i = 0; i < kLinksAtMost; i++) {
        std::array<char, PATH_MAX> text;
        ssize_t length = readlink(end.c_str(), text.data(), text.size());

        if (length < 0) break;
        std::string target(text.data(), static_cast<size_t>(length));

        end = target[0] == '/' ? target : folder_of(end) + "/" + target;
    }
    return end;
}

// True if rename() may replace the file with this name. False: it is no regular file, or has no
// name (an open file that was removed, by its link in /proc).
bool is_replaceable(const std::string& path, const std::string& end) {
    struct stat named = {}, found = {};

    if (stat(path.c_str(), &named) != 0) return true;
    return S_ISREG(named.st_mode) && lstat(end.c_str(), &found) == 0 &&
           found.st_dev == named.st_dev && found.st_ino == named.st_ino;
}

// Writes into a device, a FIFO or an open file, which are not replaced. A FIFO without a reader is
// ENXIO.
void write_in_place(const std::string& path, const std::string& text) {
    const int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    Descriptor file(open(path.c_str(), flags));

    if (file.get() < 0) fail_state(errno, "cannot write " + path);
    fcntl(file.get(), F_SETFL, fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
    write_all(file.get(), text, path);
}

// Parses the lines of a state, word by word.
class Parser {
  public:
    Parser(const std::string& text, const std::string& name) : rest_(text), name_(name) {}

    // The next line must be exactly these words.
    void expect(std::string_view words) {
        if (next_line() != words) refuse(std::string(words));
    }

    // True if the next line begins with `prefix`; number() then reads the rest of it.
    bool begins(std::string_view prefix) {
        std::string_view line = peek_line();

        if (line.substr(0, prefix.size()) != prefix) return false;
        line_ = next_line().substr(prefix.size());
        return true;
    }

    uint64_t number(std::string_view wanted) {
        uint64_t value = 0;
        auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), value);

        if (error != std::errc() || line_.empty()) refuse(std::string(wanted));
        line_.remove_prefix(static_cast<size_t>(end - line_.data()));
        return value;
    }

    void word(std::string_view wanted) {
        if (line_.substr(0, wanted.size()) != wanted) refuse(std::string(wanted));
        line_.remove_prefix(wanted.size());
    }

    void end_of_line() {
        if (!line_.empty()) refuse("the end of the line");
    }

    void end_of_text() {
        if (!rest_.empty()) refuse("nothing after `end`");
    }

    [[noreturn]] void refuse(const std::string& wanted) {
        fail_state(EINVAL, name_ + " line " + std::to_string(line_number_) + ": wanted " + wanted);
    }

  private:
    std::string_view peek_line() const { return rest_.substr(0, rest_.find('\n')); }

    std::string_view next_line() {
        std::string_view line = peek_line();

        line_number_++;
        if (line.size() == rest_.size()) refuse("a line that ends, the last one being `end`");
        rest_.remove_prefix(line.size() + 1);
        return line;
    }

    std::string_view rest_;
    std::string_view line_;
    std::string name_;
    unsigned line_number_ = 0;
};

// An end of a file name that no other producer uses. A process number is not enough: each container
// counts its own, and two may share a folder.
std::string unique_end() {
    uint64_t number = 0;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        fail_state(errno, "cannot make a file name");
    return std::to_string(number);
}

}  // namespace

std::string ResumeState::to_text() const {
    std::ostringstream text;

    text << "kmes-resume 1\nsession " << session << "\n";
    for (size_t i = 0; i < cpus.size(); i++) {
        text << "cpu " << i << " sequence " << cpus[i].last_sequence << " generation "
             << cpus[i].generation << "\n";
    }
    text << "end\n";
    return text.str();
}

ResumeState ResumeState::from_text(const std::string& text, const std::string& name) {
    Parser parser(text, name);
    ResumeState state;

    parser.expect("kmes-resume 1");
    if (!parser.begins("session ")) parser.refuse("session NUMBER");
    state.session = parser.number("session NUMBER");
    if (state.session == 0) parser.refuse("a session other than 0");
    parser.end_of_line();
    while (parser.begins("cpu ")) {
        Cpu cpu;

        if (parser.number("cpu NUMBER") != state.cpus.size() || state.cpus.size() == kMostCpuIds)
            parser.refuse("cpu " + std::to_string(state.cpus.size()) + ", one after the other");
        parser.word(" sequence ");
        cpu.last_sequence = parser.number("sequence NUMBER");
        parser.word(" generation ");
        cpu.generation = parser.number("generation NUMBER");
        parser.end_of_line();
        state.cpus.push_back(cpu);
    }
    parser.expect("end");
    parser.end_of_text();
    return state;
}

void ResumeState::save(const std::string& path) const {
    const Uncancelled uncancelled;
    FileSizeSignalBlocked blocked;
    std::string end = end_of_links(path);

    if (!is_replaceable(path, end)) return write_in_place(path, to_text());
    std::string temporary = end + ".new." + unique_end();

    try {
        Descriptor file(
            open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));

        if (file.get() < 0) fail_state(errno, "cannot make " + temporary);
        write_all(file.get(), to_text(), temporary);
        if (fsync(file.get()) != 0) fail_state(errno, "cannot sync " + temporary);
        if (rename(temporary.c_str(), end.c_str()) != 0)
            fail_state(errno, "cannot put " + temporary + " in the place of " + end);
    } catch (const std::system_error&) {
        unlink(temporary.c_str());
        throw;
    }
    sync_folder(end);
}

ResumeState ResumeState::take(const std::string& path) {
    const Uncancelled uncancelled;
    std::string end = end_of_links(path);

    if (!is_replaceable(path, end)) fail_state(EINVAL, path + ": wanted a regular file");
    // Renames the file first: two producers that start at the same time do not both resume.
    std::string claimed = end + ".taken." + unique_end();

    if (rename(end.c_str(), claimed.c_str()) != 0) {
        if (errno == ENOENT) return ResumeState();
        fail_state(errno, "cannot take " + path);
    }
    try {
        Descriptor file(open(claimed.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));

        if (file.get() < 0) fail_state(errno, "cannot open " + path);
        ResumeState state = from_text(read_all(file.get(), path), path);

        if (unlink(claimed.c_str()) != 0) fail_state(errno, "cannot remove " + path);
        sync_folder(end);
        return state;
    } catch (const std::system_error&) {
        // The state is not lost: it is again at its old name. link() does not replace a newer file.
        if (link(claimed.c_str(), end.c_str()) == 0) unlink(claimed.c_str());
        throw;
    }
}

}  // namespace kmes
