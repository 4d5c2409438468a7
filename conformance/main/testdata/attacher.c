// SPDX-License-Identifier: MIT
//
// attacher FORM: calls kmes_attach as a consumer of that form does when it starts, and maps the
// first buffer. For the test of --layout auto.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTACH 1091
#define SLOTS 64
#define ASK_FOR_COUNT 0xffffffffu

static void map(int fd, uint64_t metadata_bytes, uint64_t capacity) {
    mmap(NULL, metadata_bytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

// (fds, count, capacity); with a null array first where `asks`.
static int attach_all(int asks, uint64_t metadata_bytes) {
    int fds[SLOTS];
    int count = 0;
    uint64_t capacity = 0;

    if (asks && (syscall(ATTACH, NULL, &count, &capacity) == 0 || errno != ERANGE)) return 1;
    if (!asks) count = SLOTS;
    if (syscall(ATTACH, fds, &count, &capacity) != 0) return 1;
    map(fds[0], metadata_bytes, capacity);
    return 0;
}

// (cpu_id, capacity), from `first` on. Up to the first EINVAL, unless it is a hole.
static int attach_each(unsigned first, int has_holes) {
    unsigned cpu;

    for (cpu = first; cpu < first + 4; cpu++) {
        uint64_t capacity = 0;
        long fd = syscall(ATTACH, cpu, &capacity);

        if (fd >= 0) map((int)fd, 8192, capacity);
        if (fd < 0 && !has_holes) return 1;
    }
    return 0;
}

static int ask_for_count(void) {
    uint64_t slots = 0;

    syscall(ATTACH, ASK_FOR_COUNT, &slots);
    return attach_each(0, 1);
}

int main(int argc, char** argv) {
    const char* form = argc > 1 ? argv[1] : "";

    if (!strcmp(form, "A")) return attach_all(0, 4096);
    if (!strcmp(form, "A-asks")) return attach_all(1, 4096);
    if (!strcmp(form, "B")) return attach_all(0, 8192);
    if (!strcmp(form, "B-asks")) return attach_all(1, 8192);
    if (!strcmp(form, "C")) return attach_each(0, 0);
    if (!strcmp(form, "C-gives-up")) {
        uint64_t capacity = UINT64_MAX;

        return syscall(ATTACH, 0, &capacity) < 0;
    }
    if (!strcmp(form, "C-from-2")) return attach_each(2, 0);
    if (!strcmp(form, "D")) return ask_for_count();
    if (!strcmp(form, "D-walks")) return attach_each(0, 1);
    if (!strcmp(form, "D-asks-later")) return attach_each(0, 0) != 1 || ask_for_count();
    if (!strcmp(form, "D-signed")) {
        uint64_t slots = 0;

        syscall(ATTACH, -1l, &slots);
        return 0;
    }
    if (!strcmp(form, "sleeps")) pause();
    return 0;
}
