// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test huge-pages: configures shmem to always use huge pages, and then loads the module. The
// metadata page of each buffer must still be a small page, and a wake on it must work.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "support.h"

namespace kmes::guest {
namespace {

constexpr char ENABLED[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
// Bits of /proc/kpageflags: part of a compound page (head or tail), part of a huge page.
constexpr std::uint64_t COMPOUND = 1ull << 15 | 1ull << 16 | 1ull << 22;

std::uint64_t read_word(const char* path, std::uint64_t index) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    std::uint64_t word = 0;
    EXPECT(fd >= 0);
    EXPECT(pread(fd, &word, sizeof word, off_t(index * sizeof word)) == sizeof word);
    close(fd);
    return word;
}

// Checks the page of these bytes. The caller has read them, so the page exists.
void expect_small_page(const void* bytes) {
    const std::uint64_t entry =
        read_word("/proc/self/pagemap", reinterpret_cast<std::uintptr_t>(bytes) / KMES_PAGE_BYTES);
    const std::uint64_t frame = entry & ((1ull << 55) - 1);
    EXPECT(frame != 0);
    EXPECT_EQUAL(read_word("/proc/kpageflags", frame) & COMPOUND, 0);
}

void expect_small(const Buffer& buffer) {
    EXPECT(buffer.metadata()->futex_counter == 0);
    EXPECT(buffer.metadata()->need_wake == 0);
    expect_small_page(&buffer.metadata()->futex_counter);
    expect_small_page(&buffer.metadata()->need_wake);
}

void expect_woken(const Device& device, const Buffer& buffer) {
    kmes_metadata_v1* page = buffer.metadata();
    __atomic_store_n(&page->need_wake, 1, __ATOMIC_SEQ_CST);
    std::thread sleeper([&] {
        while (__atomic_load_n(&page->futex_counter, __ATOMIC_ACQUIRE) == 0)
            syscall(SYS_futex, &page->futex_counter, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    });
    usleep(100000);
    EXPECT_EQUAL(device.emit("huge", "up"), 0);
    sleeper.join();
}

}  // namespace

void test_huge_pages(const Arguments&) {
    if (access(ENABLED, W_OK) != 0) {
        std::printf("skipped: this kernel has no huge pages of shmem\n");
        return;
    }
    for (const char* when : {"always", "force"}) {
        EXPECT_EQUAL(run("rmmod kmes"), 0);
        EXPECT(write_file(ENABLED, when));
        EXPECT_EQUAL(load_module("buffer_capacity=65536"), 0);
        pin_to_cpu(0);
        const Device device;
        const Buffer first(device, 0);
        const Buffer second(device, 1);
        expect_small(first);
        expect_small(second);
        expect_woken(device, first);
    }
    EXPECT(write_file(ENABLED, "never"));
}

}  // namespace kmes::guest
