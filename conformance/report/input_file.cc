// SPDX-License-Identifier: MIT
//
// See input_file.h.
#include "conformance/report/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "conformance/report/text.h"

namespace kmes::conformance {

InputFile read_input_file(const std::string& path, std::size_t most) {
    InputFile file;
    const auto refuse = [&](const std::string& why) {
        file.error = printable(path) + ": " + why;
        return file;
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        file.is_missing = errno == ENOENT;
        return refuse(std::strerror(errno));
    }
    std::string why;
    struct stat status{};
    if (::fstat(fd, &status) == 0 && !S_ISREG(status.st_mode))
        why = "this is no regular file; expected one";
    char piece[65536];
    while (why.empty()) {
        const ssize_t got = ::read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) why = std::strerror(errno);
        if (got <= 0) break;
        file.text.append(piece, static_cast<std::size_t>(got));
        if (file.text.size() > most) why = fmt::format("the file is longer than {} bytes", most);
    }
    ::close(fd);
    return why.empty() ? file : refuse(why);
}

}  // namespace kmes::conformance
