/* SPDX-License-Identifier: MIT
 *
 * The mode that copies from the ring to a page that another thread of the testee serves.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kCopied = 8 };

static int fault_fd;

static void* serve_pages(void* unused) {
    struct uffd_msg fault;
    while (read(fault_fd, &fault, sizeof fault) == (ssize_t)sizeof fault) {
        struct uffdio_zeropage zero = {
            .range = {fault.arg.pagefault.address & ~(uint64_t)(kPage - 1), kPage}};
        ioctl(fault_fd, UFFDIO_ZEROPAGE, &zero);
    }
    return unused;
}

static int mode_served_page(char** argv) {
    (void)argv;
    fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fault_fd < 0) return kNotPossibleHere;
    unsigned char* page =
        mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register served = {.range = {(uint64_t)(uintptr_t)page, kPage},
                                     .mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t server;
    if (page == MAP_FAILED || ioctl(fault_fd, UFFDIO_API, &api) != 0 ||
        ioctl(fault_fd, UFFDIO_REGISTER, &served) != 0 ||
        pthread_create(&server, NULL, serve_pages, NULL) != 0)
        return 36;
    attach_and_map();
    unsigned char* to = page;
    const unsigned char* from = maps[0] + kMetadataBytes;
    size_t left = kCopied;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    say("first byte", page[0]);
    return 0;
}

const struct mode kUserfaultModes[] = {
    {"served-page", mode_served_page},
    {NULL, NULL},
};
