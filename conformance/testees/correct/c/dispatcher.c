// SPDX-License-Identifier: MIT
//
// A dispatcher and two workers. Only the dispatcher sleeps on the rings (futex_waitv). It puts the
// CPUs that have events into a queue; a free worker takes one and drains it. The workers sleep on a
// condition variable. They write their records at the end of each drain, before they tell the
// dispatcher.
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 2 };

struct channel {
    int index, fd;
    unsigned char* ring;
    uint64_t capacity, generation, position, last;
    bool over;
    struct report report;
};

static int channel_count, busy, queued;
static struct channel *channels, **queue;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

static uint64_t peek(struct channel* channel, int at) {
    return atomic_load((_Atomic uint64_t*)(channel->ring + at));
}

static void open_channel(struct channel* channel) {
    static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;
    int fds[channel_count];
    struct stat mine, now;
    bool alive = false;
    while (!alive) {
        pthread_mutex_lock(&attaching);
        attach_again(fds, channel_count, &channel->capacity);
        channel->fd = dup(fds[channel->index]);
        for (int i = 0; i < channel_count; i++) close(fds[i]);
        channel->ring = map_ring(channel->fd, channel->capacity);
        channel->generation = peek(channel, AT_GENERATION);
        // E19: if the same buffer is handed out again, it was alive when its generation was read.
        uint64_t capacity;
        attach_again(fds, channel_count, &capacity);
        if (fstat(channel->fd, &mine) != 0 || fstat(fds[channel->index], &now) != 0)
            err(1, "fstat");
        alive = mine.st_dev == now.st_dev && mine.st_ino == now.st_ino;
        for (int i = 0; i < channel_count; i++) close(fds[i]);
        pthread_mutex_unlock(&attaching);
        if (alive) break;
        unmap_ring(channel->ring, channel->capacity);
        close(channel->fd);
    }
    const char* reason = refusal_of(channel->ring, channel->capacity);
    if (reason != NULL) report_refusal(&channel->report, channel->index, reason);
    channel->over = reason != NULL;
    channel->position = peek(channel, AT_TAIL_POS);
}

static void drain(struct channel* channel) {
    unsigned char fixed[4096], *large = NULL;
    uint64_t end;
    while (!channel->over && channel->position < (end = peek(channel, AT_WRITE_POS))) {
        uint64_t tail = peek(channel, AT_TAIL_POS);
        if (tail > channel->position) {
            channel->position = tail;
            continue;
        }
        unsigned char* event = channel->ring + 4096 + (channel->position & (channel->capacity - 1));
        uint64_t limit = room_within(end - channel->position, channel->capacity);
        struct shape shape;
        bool fits = shape_of(event, limit, &shape);
        unsigned char* copy = fixed;
        if (fits && shape.event_size > sizeof fixed)
            copy = large = realloc(large, shape.event_size);
        if (fits) memcpy(copy, event, shape.event_size);
        atomic_thread_fence(memory_order_seq_cst);
        tail = peek(channel, AT_TAIL_POS);
        if (tail > channel->position) {
            channel->position = tail;
            continue;
        }
        if (!fits) {
            report_refusal(&channel->report, channel->index, "corrupt");
            channel->over = true;
            break;
        }
        channel->position += shape.event_size;
        if (shape.sequence <= channel->last) continue;
        channel->last = shape.sequence;
        report_event(&channel->report, channel->index, copy, &shape);
        channel->over = is_the_end(copy, &shape);
    }
    free(large);
}

static void serve(struct channel* channel) {
    bool retired = peek(channel, AT_GENERATION) != channel->generation;
    drain(channel);
    if (retired && !channel->over) {
        unmap_ring(channel->ring, channel->capacity);
        close(channel->fd);
        open_channel(channel);
        if (!channel->over) report_line(&channel->report, 'G', channel->index, channel->generation);
        drain(channel);
    }
    report_flush(&channel->report);
}

static void* worker(void* unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (queued == 0) pthread_cond_wait(&work, &mutex);
        struct channel* channel = queue[--queued];
        pthread_mutex_unlock(&mutex);
        serve(channel);
        pthread_mutex_lock(&mutex);
        if (--busy == 0) pthread_cond_signal(&done);
    }
    return NULL;
}

static bool has_something(struct channel* channel) {
    return peek(channel, AT_WRITE_POS) > channel->position ||
           peek(channel, AT_GENERATION) != channel->generation;
}

// Sleeps until a channel may have events.
static void rest(void) {
    struct futex_waitv waits[channel_count];
    unsigned count = 0;
    bool nothing = true;
    for (int i = 0; i < channel_count; i++) {
        struct channel* channel = &channels[i];
        if (channel->over) continue;
        atomic_exchange((_Atomic uint8_t*)(channel->ring + AT_NEED_WAKE), 1);
        _Atomic uint32_t* counter = (_Atomic uint32_t*)(channel->ring + AT_FUTEX_COUNTER);
        waits[count++] = (struct futex_waitv){
            .val = atomic_load(counter), .uaddr = (uintptr_t)counter, .flags = FUTEX_32};
        nothing = nothing && !has_something(channel);
    }
    if (nothing) syscall(SYS_futex_waitv, waits, count, 0, NULL, 0);
    for (int i = 0; i < channel_count; i++)
        if (!channels[i].over) channels[i].ring[AT_NEED_WAKE] = 0;
}

int main(void) {
    channel_count = count_cpus();
    channels = calloc((size_t)channel_count, sizeof *channels);
    queue = calloc((size_t)channel_count, sizeof *queue);
    if (channels == NULL || queue == NULL) err(1, "calloc");
    for (int i = 0; i < channel_count; i++) {
        channels[i].index = i;
        open_channel(&channels[i]);
        report_flush(&channels[i].report);
    }
    pthread_t thread;
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&thread, NULL, worker, NULL) != 0) errx(1, "pthread_create");
    for (;;) {
        pthread_mutex_lock(&mutex);
        int left = 0;
        for (int i = 0; i < channel_count; i++) {
            if (channels[i].over) continue;
            left++;
            if (has_something(&channels[i])) queue[queued++] = &channels[i];
        }
        busy = queued;
        bool handed_out = busy > 0;
        if (handed_out) pthread_cond_broadcast(&work);
        while (busy > 0) pthread_cond_wait(&done, &mutex);
        pthread_mutex_unlock(&mutex);
        if (left == 0) return 0;  // the workers end with the process
        if (!handed_out) rest();
    }
}
