// SPDX-License-Identifier: GPL-2.0-only
//
// The module stays while anything refers to it: the device, a buffer's fd, or a mapping alone. No
// page may be left after the last reference has gone.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char PAGES[] = "/sys/module/kmes/parameters/pages_live";
constexpr char BUFFERS[] = "/sys/module/kmes/parameters/buffers_live";

// Returns 0, or errno.
int unload() {
    return syscall(SYS_delete_module, "kmes", O_NONBLOCK) == 0 ? 0 : errno;
}

// The command reports EBUSY; the system call returns EWOULDBLOCK for a module in use.
bool is_refused() {
    const int error = unload();
    return error == EWOULDBLOCK || error == EBUSY;
}

}  // namespace

void test_references(const Arguments&) {
    const std::int64_t pages = read_number(PAGES), buffers = read_number(BUFFERS);
    EXPECT(pages > 0 && buffers > 0);
    auto device = std::make_unique<Device>();
    EXPECT(is_refused());
    Buffer buffer(*device, 0);
    Buffer other(*device, 0);
    device.reset();
    EXPECT(is_refused());
    buffer.close_fd();
    other.unmap();
    // `other` is an fd without a mapping, `buffer` a mapping without an fd.
    EXPECT(is_refused());
    other.close_fd();
    usleep(300000);
    EXPECT(is_refused());
    EXPECT_EQUAL(buffer.data()[0], 0);
    buffer.unmap();
    EXPECT(wait_until(20, [] { return unload() == 0; }));

    // Old buffers live exactly as long as their mappings.
    EXPECT_EQUAL(run("kmes_load"), 0);
    {
        const Device again;
        const Buffer kept(again, 0);
        for (int i = 0; i < 20; ++i) EXPECT_EQUAL(again.configure(i % 2 ? 1 << 16 : 1 << 17, 0), 0);
        EXPECT_EQUAL(kept.data()[0], 0);
        EXPECT_EQUAL(again.configure(kept.capacity(), 0), 0);
        EXPECT(read_number(BUFFERS) > buffers);
    }
    EXPECT(wait_until(
        20, [&] { return read_number(PAGES) == pages && read_number(BUFFERS) == buffers; }));
}

}  // namespace kmes::guest
