// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A descriptor that a producer keeps while its program may close it: closefrom(3) after a fork,
// say. The number is then free, and may be another file of the program. So a kept descriptor has
// the identity of its file, device and inode. What is not that file is not closed, polled or passed
// on.
//
// The kernel has no atomic form of this. A thread that closes all descriptors during a call can
// still have the call meet another file.
#ifndef KMES_USER_KEPT_FD_H
#define KMES_USER_KEPT_FD_H

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace kmes {

class KeptFd {
  public:
    struct Identity {
        dev_t device = 0;
        ino_t inode = 0;

        Identity() = default;
        explicit Identity(const struct stat& status)
            : device(status.st_dev), inode(status.st_ino) {}
        bool operator==(const Identity&) const = default;
        bool is_file(const struct stat& status) const { return *this == Identity(status); }
    };

    KeptFd() = default;
    // Takes ownership of `fd`; -1: none.
    explicit KeptFd(int fd) : fd_(fd) {
        struct stat status = {};

        if (fd_ >= 0 && fstat(fd_, &status) == 0) identity_ = Identity(status);
    }
    KeptFd(KeptFd&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), identity_(other.identity_) {}
    KeptFd& operator=(KeptFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(identity_, other.identity_);
        return *this;
    }
    ~KeptFd() { close(); }

    // Returns the descriptor, or -1 if there is none or if the program has closed it.
    int get() const {
        struct stat status = {};

        return fd_ >= 0 && fstat(fd_, &status) == 0 && identity_.is_file(status) ? fd_ : -1;
    }
    // The number, without a check of the file.
    int number() const { return fd_; }
    Identity identity() const { return identity_; }

    // No effect on a number that is another file.
    void close() {
        const int fd = get();

        fd_ = -1;
        if (fd >= 0) ::close(fd);
    }

  private:
    int fd_ = -1;
    Identity identity_;
};

}  // namespace kmes

#endif
