// SPDX-License-Identifier: MIT
//
// A main loop on epoll, as daemons have, does all the reading. In addition, each CPU has a sentry,
// a thread that sleeps on the ring's futex. It notifies the loop by an eventfd when there are
// events. The loop tells the sentry by a semaphore when to sleep again, and on which ring.
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct post {
    int cpu, event_fd, ring_fd;
    unsigned char* ring;
    uint64_t capacity, generation, position, last;
    bool over;
    sem_t on_guard;
    pthread_t sentry;
};

static int post_count;
static struct post* posts;
static struct report report;

static uint64_t load(const struct post* post, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(post->ring + at), memory_order_acquire);
}

static bool quiet(const struct post* post) {
    return load(post, AT_WRITE_POS) <= post->position &&
           load(post, AT_GENERATION) == post->generation;
}

// The sentry reads `position` and the mapping only between the two semaphores' turns.
static void* stand_guard(void* argument) {
    struct post* post = argument;
    for (;;) {
        while (sem_wait(&post->on_guard) != 0) continue;
        if (post->over) return NULL;
        uint32_t* counter = (uint32_t*)(post->ring + AT_FUTEX_COUNTER);
        for (;;) {
            uint32_t seen = atomic_load((_Atomic uint32_t*)counter);
            atomic_exchange((_Atomic uint8_t*)(post->ring + AT_NEED_WAKE), 1);
            if (!quiet(post)) break;
            syscall(SYS_futex, counter, FUTEX_WAIT_BITSET, seen, NULL, NULL,
                    FUTEX_BITSET_MATCH_ANY);
        }
        post->ring[AT_NEED_WAKE] = 0;
        uint64_t one = 1;
        if (write(post->event_fd, &one, sizeof one) != sizeof one) err(1, "eventfd");
    }
}

static void open_post(struct post* post) {
    int fds[post_count];
    attach_again(fds, post_count, &post->capacity);
    for (int i = 0; i < post_count; i++)
        if (i != post->cpu) close(fds[i]);
    post->ring_fd = fds[post->cpu];
    post->ring = map_ring(post->ring_fd, post->capacity);
    const char* reason = refusal_of(post->ring, post->capacity);
    if (reason != NULL) report_refusal(&report, post->cpu, reason);
    post->over = reason != NULL;
    post->generation = load(post, AT_GENERATION);
    post->position = load(post, AT_TAIL_POS);
}

static void drain(struct post* post) {
    static unsigned char* copy;
    static uint64_t room;
    while (!post->over) {
        uint64_t end = load(post, AT_WRITE_POS);
        if (post->position >= end) return;
        uint64_t tail = load(post, AT_TAIL_POS);
        uint64_t most = room_within(end - post->position, post->capacity);
        const unsigned char* event =
            post->ring + METADATA_BYTES + (post->position & (post->capacity - 1));
        struct shape shape;
        bool right = tail <= post->position && shape_of(event, most, &shape);
        if (right) {
            if (room < shape.event_size && (copy = realloc(copy, room = shape.event_size)) == NULL)
                err(1, "realloc");
            memcpy(copy, event, shape.event_size);
            atomic_thread_fence(memory_order_acquire);
        }
        tail = load(post, AT_TAIL_POS);
        if (tail > post->position) {
            post->position = tail;
        } else if (!right) {
            report_refusal(&report, post->cpu, "corrupt");
            post->over = true;
        } else {
            post->position += shape.event_size;
            if (shape.sequence <= post->last) continue;
            if (post->last != 0 && shape.sequence != post->last + 1)
                report_line(&report, 'L', post->cpu, shape.sequence - post->last - 1);
            post->last = shape.sequence;
            report_event(&report, post->cpu, copy, &shape);
            post->over = is_the_end(copy, &shape);
        }
    }
}

static void serve(struct post* post) {
    bool retired;
    do {
        retired = load(post, AT_GENERATION) != post->generation;
        drain(post);
        if (!retired || post->over) continue;
        unmap_ring(post->ring, post->capacity);
        close(post->ring_fd);
        open_post(post);
        if (!post->over) report_line(&report, 'G', post->cpu, post->generation);
    } while (retired && !post->over);
    report_flush(&report);
}

int main(void) {
    post_count = count_cpus();
    posts = calloc((size_t)post_count, sizeof *posts);
    int epoll = epoll_create1(EPOLL_CLOEXEC), left = 0;
    if (posts == NULL || epoll < 0) err(1, "epoll");
    for (int i = 0; i < post_count; i++) {
        struct post* post = &posts[i];
        post->cpu = i;
        open_post(post);
        report_flush(&report);
        sem_init(&post->on_guard, 0, 1);
        post->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = post};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, post->event_fd, &event) != 0) err(1, "epoll_ctl");
        if (post->over) continue;
        left++;
        if (pthread_create(&post->sentry, NULL, stand_guard, post) != 0) errx(1, "pthread_create");
    }
    while (left > 0) {
        struct epoll_event events[8];
        int count = epoll_wait(epoll, events, 8, -1);
        for (int i = 0; i < count; i++) {
            struct post* post = events[i].data.ptr;
            uint64_t times;
            if (read(post->event_fd, &times, sizeof times) != sizeof times) continue;
            serve(post);
            sem_post(&post->on_guard);
            if (!post->over) continue;
            pthread_join(post->sentry, NULL);
            left--;
        }
    }
    return 0;
}
