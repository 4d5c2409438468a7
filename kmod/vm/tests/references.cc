// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test references: an open device, an fd of a buffer, or only a mapping keeps the module
// loaded. After the last reference no page may be left.
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

// Tries to unload, and returns whether that fails because the module is in use.
bool is_in_use() {
    const int error = unload();
    return error == EWOULDBLOCK || error == EBUSY;
}

}  // namespace

void test_references(const Arguments&) {
    const std::int64_t pages = read_number(PAGES), buffers = read_number(BUFFERS);
    EXPECT(pages > 0 && buffers > 0);
    auto device = std::make_unique<Device>();
    EXPECT(is_in_use());
    Buffer buffer(*device, 0);
    Buffer other(*device, 0);
    device.reset();
    EXPECT(is_in_use());
    buffer.close_fd();
    other.unmap();
    // `other` is an fd without a mapping, `buffer` a mapping without an fd.
    EXPECT(is_in_use());
    other.close_fd();
    usleep(300000);
    EXPECT(is_in_use());
    EXPECT_EQUAL(buffer.data()[0], 0);
    buffer.unmap();
    EXPECT(wait_until(20, [] { return unload() == 0; }));

    // The last mapping frees a retired buffer.
    EXPECT_EQUAL(load_module(), 0);
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
