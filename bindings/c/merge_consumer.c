// SPDX-License-Identifier: MIT
//
// A KMES consumer on the merge of libkmes, in one thread for all CPUs, and a testee of the
// conformance suite: what a consumer does, and the records of docs/testee-contract.md.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kmes/user/libkmes_reader.h"
#include "kmes/user/merge.h"

#define FLUSH_BYTES 65536
#define END "kmes.conformance.end"

// The records that were written for a CPU.
struct cpu {
    __u64 switches;
    bool has_begun;
    bool has_ended;
};

struct consumer {
    struct kmes_reader_set* set;
    struct kmes_merge* merge;
    struct cpu* cpu;
    unsigned cpus;
    FILE* lines;  // whole lines, in memory
    char* text;
    size_t text_bytes;
    int report_fd;
};

// -- The report -----------------------------------------------------------------------------------

static void open_report(struct consumer* consumer) {
    const char* fd = getenv("KMES_REPORT_FD");

    consumer->report_fd = fd ? atoi(fd) : 1;
    consumer->lines = open_memstream(&consumer->text, &consumer->text_bytes);
    if (!consumer->lines) err(1, "open_memstream");
}

static void flush_report(struct consumer* consumer) {
    size_t done = 0;

    if (fflush(consumer->lines)) err(1, "no memory for the report");
    while (done < consumer->text_bytes) {
        const ssize_t written =
            write(consumer->report_fd, consumer->text + done, consumer->text_bytes - done);

        if (written < 0 && errno != EINTR) err(1, "cannot write the report");
        if (written > 0) done += (size_t)written;
    }
    rewind(consumer->lines);
}

static void report_buffer(struct consumer* consumer, unsigned cpu, __u64 switches,
                          __u64 generation) {
    consumer->cpu[cpu].switches = switches;
    fprintf(consumer->lines, "G %u %llu\n", cpu, (unsigned long long)generation);
}

static void report_refusal(struct consumer* consumer, unsigned cpu, int error) {
    fprintf(consumer->lines, "R %u %s\n", cpu, strerror(-error));
}

// The contract counts losses from the first delivered event on, the set from the attach on.
static void report_event(struct consumer* consumer, const struct kmes_event_view* view) {
    __u64 digest = 0xcbf29ce484222325;  // 64-bit FNV-1a
    __u32 i;

    if (view->lost_before && consumer->cpu[view->cpu_id].has_begun)
        fprintf(consumer->lines, "L %u %llu\n", view->cpu_id,
                (unsigned long long)view->lost_before);
    fprintf(consumer->lines, "E %u %llu %llu %u ", view->cpu_id, (unsigned long long)view->sequence,
            (unsigned long long)view->timestamp, view->origin_class);
    for (i = 0; i < view->type_len; i++)
        fprintf(consumer->lines, "%02x", ((const unsigned char*)view->type)[i]);
    for (i = 0; i < view->payload_len; i++)
        digest = (digest ^ ((const unsigned char*)view->payload)[i]) * 0x100000001b3;
    fprintf(consumer->lines, " %u %016llx\n", view->payload_len, (unsigned long long)digest);
}

// -- The events -----------------------------------------------------------------------------------

static bool is_end(const struct kmes_event_view* view) {
    return view->type_len == strlen(END) && !memcmp(view->type, END, strlen(END));
}

// The set reads ahead, so only the merge knows the buffer of this event.
static void deliver(struct consumer* consumer, const struct kmes_event_view* view) {
    const struct kmes_reader_buffer* buffer = kmes_merge_buffer(consumer->merge, view->cpu_id);
    struct cpu* cpu = &consumer->cpu[view->cpu_id];

    if (cpu->has_ended) return;
    if (buffer->switches != cpu->switches)
        report_buffer(consumer, view->cpu_id, buffer->switches, buffer->generation);
    report_event(consumer, view);
    cpu->has_begun = true;
    cpu->has_ended = is_end(view);
    if (ftell(consumer->lines) >= FLUSH_BYTES) flush_report(consumer);
}

static void deliver_all(struct consumer* consumer) {
    struct kmes_event_view view;
    int found;

    while ((found = kmes_merge_next(consumer->merge, &view, NULL)) == KMES_READ_EVENT)
        deliver(consumer, &view);
    if (found < 0) errx(1, "kmes_merge_next: %s", strerror(-found));
}

// The buffer itself is at fault: it is not one of KMES, or of an unknown version.
static bool is_refusal(int error) {
    return error == -EPROTO || error == -EPROTONOSUPPORT || error == -EINVAL || error == -EBADMSG;
}

// Reports buffers without an event, and refused ones. The merge holds nothing, so these records
// come after all events of earlier buffers. Returns how many CPUs have not ended.
static unsigned note_cpus(struct consumer* consumer) {
    unsigned cpu, open = 0;

    for (cpu = 0; cpu < consumer->cpus; cpu++) {
        const int error = kmes_reader_set_error(consumer->set, cpu);
        const __u64 switches = kmes_reader_set_statistics(consumer->set, cpu).switches;

        if (consumer->cpu[cpu].has_ended) continue;
        if (!error && switches != consumer->cpu[cpu].switches)
            report_buffer(consumer, cpu, switches, kmes_reader_set_generation(consumer->set, cpu));
        if (is_refusal(error)) {
            report_refusal(consumer, cpu, error);
            consumer->cpu[cpu].has_ended = true;
        }
        open += !consumer->cpu[cpu].has_ended;
    }
    return open;
}

static void run(struct consumer* consumer) {
    int result;

    for (;;) {
        deliver_all(consumer);
        if (note_cpus(consumer) == 0) return;
        flush_report(consumer);
        result = kmes_merge_wait(consumer->merge, KMES_NO_TIMEOUT);
        if (result < 0 && result != -EINTR && !is_refusal(result))
            errx(1, "kmes_merge_wait: %s", strerror(-result));
    }
}

// No CPU has a buffer that can be read.
static void refuse_all(struct consumer* consumer, int error) {
    const int cpus = kmes_cpus_by_libkmes();
    int cpu;

    if (cpus < 0) errx(1, "kmes_cpus_by_libkmes: %s", strerror(-cpus));
    for (cpu = 0; cpu < cpus; cpu++) report_refusal(consumer, (unsigned)cpu, error);
}

static void open_merge(struct consumer* consumer) {
    // The contract wants every record before a sleep, so the merge must not hold an event while it
    // waits for an idle CPU. With a limit of one byte it holds none: each event is due after one
    // check of the empty CPUs. A short hold_ns would depend on the clock. The events that are there
    // at the same time still come in their order.
    const struct kmes_merge_options options = {.most_bytes = 1};
    const int error = kmes_merge_open(&consumer->merge, consumer->set, &options);

    if (error) errx(1, "kmes_merge_open: %s", strerror(-error));
    consumer->cpus = kmes_reader_set_cpus(consumer->set);
    consumer->cpu = (struct cpu*)calloc(consumer->cpus, sizeof(*consumer->cpu));
    if (!consumer->cpu) err(1, "calloc");
}

int main(void) {
    // Nobody else sleeps on these rings (E12).
    const struct kmes_reader_set_options options = {.size = sizeof(options), .is_exclusive = true};
    struct consumer consumer = {0};
    const int error = kmes_reader_set_open(&consumer.set, &options);

    open_report(&consumer);
    if (is_refusal(error)) {
        refuse_all(&consumer, error);
    } else if (error) {
        errx(1, "kmes_reader_set_open: %s", strerror(-error));
    } else {
        open_merge(&consumer);
        run(&consumer);
    }
    flush_report(&consumer);
    kmes_merge_close(consumer.merge);
    kmes_reader_set_close(consumer.set);
    free(consumer.cpu);
    fclose(consumer.lines);
    free(consumer.text);
    return 0;
}
