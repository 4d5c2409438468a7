/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What a test build of the module (KMES_TEST=1) answers besides, on the same /dev/kmes: worlds. A
 * world has CPUs of its own, which are no processors of the machine, with the same core, the same
 * buffers and the same ways of mapping and waking as the real ones, an injected clock, and
 * positions and contents as a test wants them. Needs CAP_SYS_ADMIN; ENOTTY in any other build.
 *
 * KMES_TEST_IOC_CREATE makes a world on this open file; it ends with the file, its buffers when
 * nobody maps them any more. KMES_TEST_IOC_JOIN, on another open file, makes KMES_IOC_ATTACH there
 * answer with that world's buffers.
 */
#ifndef _UAPI_LINUX_KMES_TEST_H
#define _UAPI_LINUX_KMES_TEST_H

#include <linux/kmes.h>

/* EINVAL: out of range; EEXIST: this open file has a world. Capacities: any power of two from 4096
 * to 256 MiB. */
struct kmes_test_world {
    __u64 capacity; /* of the first rings; of the boot buffers where is_boot is set */
    __u64 start_positions_address; /* of __u64[cpus]; 0: all begin at 0 (E11) */
    __u64 last_sequence;           /* the first event has one more */
    __u64 first_generation;        /* of rings; 0: 1 (a boot buffer has 0) */
    __u64 clock_ns;
    __u64 clock_step_ns;  /* each look at the clock moves it on by so much */
    __u64 max_event_size; /* of the emit calls */
    __u32 cpus;           /* 1..1024 */
    __u32 first_cpu_id;   /* CPU i has cpu_id first_cpu_id + i */
    __u32 is_boot;        /* attach answers EAGAIN until the hand-over */
    __u32 first_futex_counter;
    __u32 id; /* out: for KMES_TEST_IOC_JOIN */
    __u32 reserved;
};

/* What an operation does; the verbs of docs/script-format.md, and what the runner's stage needs. */
enum kmes_test_verb {
    KMES_TEST_EMIT,  /* style 0: as in the kernel, 1: as the call */
    KMES_TEST_BATCH, /* opens a batch on the CPU */
    KMES_TEST_ADD,   /* one event of it; style 2: by kmes_batch_emit_entries */
    KMES_TEST_END,
    KMES_TEST_RESERVE, /* the critical section stays open; what emits meanwhile gets EBUSY (E16) */
    KMES_TEST_FILL,    /* `bytes` bytes at payload_address go to byte `offset` of the payload */
    KMES_TEST_COMMIT,
    KMES_TEST_ABANDON,
    KMES_TEST_SWAP,    /* whole: capacity, positions, shift; from the boot phase: the hand-over */
    KMES_TEST_PREPARE, /* begins one */
    KMES_TEST_COPY,    /* one piece; result 1: there is more */
    KMES_TEST_CHANGE,  /* finishes it */
    KMES_TEST_NUDGE,   /* of `buffer` */
    KMES_TEST_RETIRE,
    KMES_TEST_CLOCK,  /* value: clock_ns; offset: clock_step_ns */
    KMES_TEST_WAKE,   /* FUTEX_WAKE on `buffer`, synchronously; the counter stays. result: woken */
    KMES_TEST_WRITE,  /* `bytes` bytes at payload_address to byte `offset` of `buffer`'s mapping */
    KMES_TEST_SETTLE, /* waits until every wake that was queued has been issued */
    KMES_TEST_OPEN,   /* result: a new fd of `buffer`, O_RDWR, close-on-exec */
    KMES_TEST_STATE,  /* fills `state` */
    KMES_TEST_CALL,   /* an event by kmes_call_emit, as KMES_IOC_EMIT does it: fetched, checked */
    KMES_TEST_CALL_BATCH, /* by kmes_call_emit_batch: payload_len entries (struct kmes_emit_entry)
                             at payload_address; out: `value`, how many were emitted */
    KMES_TEST_CANARY,     /* does nothing. result: how much of `value` a fuzzer has found, 0..4 */
};

/* Buffers of a world are numbered in the order in which they were made, from 0, all CPUs together.
 */
struct kmes_test_operation {
    __u32 verb;
    __u32 cpu;
    __u64 type_address;
    __u64 payload_address;
    __u64 payload_len; /* more than 32 bits is 2^32-1; only read where the event is written */
    __u32 type_len;
    __u32 header_extra; /* bytes of zeros between type and payload */
    __u32 origin_class;
    __u32 style;
    __u64 capacity;
    __u64 shift;
    __u64 offset;
    __u64 bytes;
    __u64 value;
    __u32 positions; /* enum kmes_swap_positions */
    __u32 buffer;
    __u64 state_address; /* KMES_TEST_STATE: of a struct kmes_test_state */
    __s64 result;        /* out: what the core returned (0, -ENOSPC, ...), or as above */
};

/* What the producer of a CPU knows of its present buffer: private copies, not the page. */
struct kmes_test_state {
    __u64 capacity;
    __u64 tail;
    __u64 published;
    __u64 frontier;
    __u64 generation;
    __u64 sequence;
    __u64 wakes_issued;  /* of the world */
    __u64 threads_woken; /* by those, of the world */
    __u32 futex_counter;
    __u32 buffer;  /* its number */
    __u32 buffers; /* of the world, ever */
    __u32 is_boot;
    struct kmes_ioctl_statistics statistics;
};

#define KMES_TEST_IOC_CREATE _IOWR(KMES_IOC_MAGIC, 0xa0, struct kmes_test_world)
#define KMES_TEST_IOC_JOIN _IOW(KMES_IOC_MAGIC, 0xa1, __u32)
/* 0 where the operation was done, whatever `result` says; EINVAL, EFAULT, ENOMEM where it was not.
 */
#define KMES_TEST_IOC_OPERATE _IOWR(KMES_IOC_MAGIC, 0xa2, struct kmes_test_operation)

#endif
