// SPDX-License-Identifier: MIT
//
// See descriptor_stream.h.
#include "conformance/report/descriptor_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace kmes::conformance {

int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
            continue;
        }
        if (written == 0) return EIO;  // no error, and no progress
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return errno;
        pollfd room{fd, POLLOUT, 0};
        if (::poll(&room, 1, -1) < 0 && errno != EINTR) return errno;
    }
    return 0;
}

DescriptorBuffer::DescriptorBuffer(int fd) : fd_(fd) {
    setp(bytes_.data(), bytes_.data() + bytes_.size());
}

DescriptorBuffer::~DescriptorBuffer() {
    DescriptorBuffer::sync();
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type byte) {
    if (DescriptorBuffer::sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(byte, traits_type::eof())) sputc(traits_type::to_char_type(byte));
    return traits_type::not_eof(byte);
}

int DescriptorBuffer::sync() {
    const std::string_view held(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    // Without a byte to write, only poll(2) tells that a pipe has no reader any more.
    pollfd pipe{fd_, 0, 0};
    if (held.empty() && ::poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0) return -1;
    const int error = write_all(fd_, held);
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return error == 0 ? 0 : -1;
}

}  // namespace kmes::conformance
