// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test permissions: tests the protection of 5.1.5 from a consumer's side. A consumer can
// write to the page of need_wake, and to no other page by any means. No operation on a mapping
// changes the data.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "support.h"

namespace kmes::guest {
namespace {

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

constexpr std::size_t kPage = KMES_PAGE_BYTES;

sigjmp_buf after_fault;

void on_fault(int) {
    siglongjmp(after_fault, 1);
}

void catch_faults() {
    struct sigaction action = {};
    action.sa_handler = on_fault;
    EXPECT(sigaction(SIGSEGV, &action, nullptr) == 0);
    EXPECT(sigaction(SIGBUS, &action, nullptr) == 0);
}

bool write_faults(volatile std::uint8_t* byte) {
    if (sigsetjmp(after_fault, 1) != 0) return true;
    *byte = static_cast<std::uint8_t>(*byte + 1);
    return false;
}

bool read_faults(volatile std::uint8_t* byte) {
    if (sigsetjmp(after_fault, 1) != 0) return true;
    static_cast<void>(*byte);
    return false;
}

// A copy of a buffer's data, which must not change.
class Kept {
  public:
    explicit Kept(const Buffer& buffer)
        : buffer_(buffer), bytes_(buffer.data(), buffer.data() + 2 * buffer.capacity()) {}

    bool is_whole() const { return std::memcmp(bytes_.data(), buffer_.data(), bytes_.size()) == 0; }

  private:
    const Buffer& buffer_;
    std::vector<std::uint8_t> bytes_;
};

// Returns bytes of read-only pages: the first and the last byte of the data, and those where its
// two mappings meet. In the later forms also bytes of the producer's page (docs/layouts.md).
std::vector<std::uint8_t*> read_only_bytes(const Buffer& buffer) {
    std::uint8_t* data = buffer.data();
    const std::uint64_t capacity = buffer.capacity();
    std::vector<std::uint8_t*> bytes = {data, data + kPage - 1, data + capacity - 1,
                                        data + capacity, data + 2 * capacity - 1};
    if (KMES_NEED_WAKE_OFFSET >= kPage) {
        auto* page = reinterpret_cast<std::uint8_t*>(buffer.metadata());
        bytes.insert(bytes.end(),
                     {page, page + offsetof(kmes_metadata_v1, write_pos),
                      page + offsetof(kmes_metadata_v1, futex_counter), page + kPage - 1});
    }
    return bytes;
}

void expect_closed(const Buffer& buffer) {
    for (std::uint8_t* byte : read_only_bytes(buffer)) {
        EXPECT(write_faults(byte));
        EXPECT(!read_faults(byte));
    }
}

void expect_need_wake_writable(const Buffer& buffer) {
    EXPECT(!write_faults(&buffer.metadata()->need_wake));
    buffer.metadata()->need_wake = 0;
}

void by_system_calls(const Buffer& buffer) {
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    EXPECT(memory >= 0);
    std::uint8_t junk[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (std::uint8_t* byte : read_only_bytes(buffer)) {
        EXPECT(pwrite(memory, junk, 1, off_t(reinterpret_cast<std::uintptr_t>(byte))) < 0);
        iovec local = {junk, 1};
        iovec remote = {byte, 1};
        EXPECT(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) < 0);
        int ends[2];
        EXPECT(pipe(ends) == 0 && write(ends[1], junk, 1) == 1);
        EXPECT(read(ends[0], byte, 1) < 0);
        close(ends[0]);
        close(ends[1]);
    }
    close(memory);
    EXPECT(madvise(buffer.data(), kPage, MADV_POPULATE_WRITE) < 0);
    EXPECT(write(buffer.fd(), junk, sizeof junk) < 0);
    EXPECT(pwrite(buffer.fd(), junk, sizeof junk, kPage) < 0);
    EXPECT(ftruncate(buffer.fd(), 0) < 0);
}

void by_mprotect(const Buffer& buffer) {
    void* base = buffer.metadata();
    mprotect(base, buffer.bytes(), PROT_READ);
    EXPECT(write_faults(&buffer.metadata()->need_wake));
    mprotect(base, buffer.bytes(), PROT_READ | PROT_WRITE);
    expect_need_wake_writable(buffer);
    expect_closed(buffer);
    // Protects one page alone, like a guard of a debugger.
    for (std::uint8_t* byte : read_only_bytes(buffer)) {
        void* page = byte - (reinterpret_cast<std::uintptr_t>(byte) & (kPage - 1));
        EXPECT(mprotect(page, kPage, PROT_NONE) == 0);
        EXPECT(read_faults(byte));
        mprotect(page, kPage, PROT_READ | PROT_WRITE);
        EXPECT(!read_faults(byte));
        EXPECT(write_faults(byte));
    }
    EXPECT(mprotect(base, KMES_METADATA_BYTES, PROT_NONE) == 0);
    EXPECT(read_faults(&buffer.metadata()->need_wake));
    EXPECT(mprotect(base, KMES_METADATA_BYTES, PROT_READ | PROT_WRITE) == 0);
    expect_need_wake_writable(buffer);
}

void by_madvise(const Buffer& buffer) {
    buffer.metadata()->need_wake = 1;
    for (int advice : {MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_COLD, MADV_PAGEOUT,
                       MADV_WILLNEED, MADV_HUGEPAGE, MADV_MERGEABLE, MADV_SEQUENTIAL}) {
        madvise(buffer.data(), 2 * buffer.capacity(), advice);
        // The first access after mprotect is a write.
        EXPECT(write_faults(buffer.data()));
        expect_closed(buffer);
    }
    EXPECT(madvise(buffer.metadata(), KMES_METADATA_BYTES, MADV_DONTNEED) == 0);
    EXPECT_EQUAL(buffer.metadata()->need_wake, 1);
    expect_need_wake_writable(buffer);
}

void by_mremap(const Buffer& buffer) {
    const std::size_t bytes = buffer.bytes();
    EXPECT(mremap(buffer.metadata(), bytes, bytes + kPage, MREMAP_MAYMOVE) == MAP_FAILED);
    void* other = mmap(nullptr, buffer.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd(), 0);
    EXPECT(other != MAP_FAILED);
    void* moved = mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                         static_cast<std::uint8_t*>(other) - 4 * bytes);
    if (moved == MAP_FAILED) moved = other;
    EXPECT(write_faults(static_cast<std::uint8_t*>(moved) + KMES_METADATA_BYTES));
    EXPECT(!read_faults(static_cast<std::uint8_t*>(moved) + bytes - 1));
    EXPECT(std::memcmp(static_cast<std::uint8_t*>(moved) + KMES_METADATA_BYTES, buffer.data(),
                       kPage) == 0);
    EXPECT(munmap(moved, bytes) == 0);
}

// mmap only succeeds for the whole buffer, shared, from offset 0 (5.1.5).
void invalid_mappings(const Buffer& buffer) {
    const int fd = buffer.fd();
    const std::size_t bytes = buffer.bytes();
    const int both = PROT_READ | PROT_WRITE;
    EXPECT(mmap(nullptr, bytes, both, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    EXPECT(mmap(nullptr, bytes, both, MAP_SHARED, fd, kPage) == MAP_FAILED);
    EXPECT(mmap(nullptr, bytes + kPage, both, MAP_SHARED, fd, 0) == MAP_FAILED);
    EXPECT(mmap(nullptr, bytes, both, MAP_SHARED, fd, off_t(1) << 40) == MAP_FAILED);
    EXPECT(mmap(nullptr, kPage, both, MAP_SHARED, fd, kPage) == MAP_FAILED);
}

void in_child(const Buffer& buffer, const Kept& kept) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        expect_closed(buffer);
        by_system_calls(buffer);
        _exit(kept.is_whole() ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void partial_munmap(const Device& device) {
    Buffer buffer(device, 0);
    const Kept kept(buffer);
    EXPECT(munmap(buffer.data() + kPage, kPage) == 0);
    EXPECT(read_faults(buffer.data() + kPage));
    EXPECT(!read_faults(buffer.data() + 2 * kPage));
    EXPECT(write_faults(buffer.data() + 2 * kPage));
    EXPECT(munmap(buffer.metadata(), KMES_METADATA_BYTES) == 0);
    EXPECT(!read_faults(buffer.data()));
    EXPECT(munmap(buffer.data() + buffer.capacity(), buffer.capacity()) == 0);
    EXPECT(!read_faults(buffer.data()));
}

}  // namespace

void test_permissions(const Arguments&) {
    const Device device;
    pin_to_cpu(0);
    for (int i = 0; i < 100; ++i)
        EXPECT_EQUAL(device.emit("permissions", std::string(std::size_t(i), 'x')), 0);
    catch_faults();
    Buffer buffer(device, 0);
    const Kept kept(buffer);
    EXPECT(std::memcmp(buffer.data(), buffer.data() + buffer.capacity(), buffer.capacity()) == 0);
    EXPECT(buffer.data()[0] != 0);

    expect_need_wake_writable(buffer);
    expect_closed(buffer);
    by_system_calls(buffer);
    EXPECT(kept.is_whole());
    by_mprotect(buffer);
    EXPECT(kept.is_whole());
    by_madvise(buffer);
    EXPECT(kept.is_whole());
    by_mremap(buffer);
    invalid_mappings(buffer);
    in_child(buffer, kept);
    partial_munmap(device);
    EXPECT(kept.is_whole());
    EXPECT_EQUAL(device.emit("permissions", "after"), 0);
    EXPECT(!kept.is_whole());
}

}  // namespace kmes::guest
