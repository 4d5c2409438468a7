/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The additional ioctls of a test build of the module (KMES_TEST=1), on the same /dev/kmes:
 * instances. An instance has its own CPUs, which are not processors of the machine. It uses the
 * same core, buffers, mappings and wakes as the real rings. The test injects its clock, positions
 * and contents. Needs CAP_SYS_ADMIN. Other builds return ENOTTY.
 *
 * KMES_TEST_IOC_CREATE makes an instance on this open file. The instance ends with the file; each
 * of its buffers ends with the last mapping. After KMES_TEST_IOC_JOIN on another open file,
 * KMES_IOC_ATTACH there returns that instance's buffers.
 */
#ifndef _UAPI_LINUX_KMES_TEST_H
#define _UAPI_LINUX_KMES_TEST_H

#include <linux/kmes.h>

/* EINVAL: out of range; EEXIST: this open file has an instance. Capacities: any power of two from
 * 4096 to 256 MiB. */
struct kmes_test_instance {
    __u64 capacity; /* of the first rings, or of the boot buffers if is_boot is set */
    __u64 start_positions_address; /* of __u64[cpus]; 0: all begin at 0 (E11) */
    __u64 last_sequence;           /* the first event has one more */
    __u64 first_generation;        /* of rings; 0: 1 (a boot buffer has 0) */
    __u64 clock_ns;
    __u64 clock_step_ns;  /* the step of the clock at each read */
    __u64 max_event_size; /* of the emit calls */
    __u32 cpus;           /* 1..1024 */
    __u32 first_cpu_id;   /* CPU i has cpu_id first_cpu_id + i */
    __u32 is_boot;        /* attach answers EAGAIN until the hand-over */
    __u32 first_futex_counter;
    __u32 id; /* out: for KMES_TEST_IOC_JOIN */
    __u32 reserved;
};

/* The operations: the verbs of docs/script-format.md, and those that the runner's stage needs. */
enum kmes_test_verb {
    KMES_TEST_EMIT,  /* style 0: as in the kernel, 1: as the call */
    KMES_TEST_BATCH, /* opens a batch on the CPU */
    KMES_TEST_ADD,   /* one event of the batch; style 2: by kmes_batch_emit_entries */
    KMES_TEST_END,
    KMES_TEST_RESERVE, /* the critical section stays open; other emissions get EBUSY (E16) */
    KMES_TEST_FILL,    /* writes `bytes` bytes at payload_address to byte `offset` of the payload */
    KMES_TEST_COMMIT,
    KMES_TEST_ABANDON,
    KMES_TEST_SWAP, /* a whole swap: capacity, positions, shift; in the boot phase: the hand-over */
    KMES_TEST_PREPARE, /* begins a swap */
    KMES_TEST_COPY,    /* copies one piece; result 1: more pieces follow */
    KMES_TEST_CHANGE,  /* finishes the swap */
    KMES_TEST_NUDGE,   /* nudges `buffer` */
    KMES_TEST_RETIRE,
    KMES_TEST_CLOCK,  /* value: clock_ns; offset: clock_step_ns */
    KMES_TEST_WAKE,   /* FUTEX_WAKE on `buffer`, synchronously; the counter stays. result: woken */
    KMES_TEST_WRITE,  /* writes `bytes` bytes at payload_address to byte `offset` of `buffer`'s
                         mapping */
    KMES_TEST_SETTLE, /* waits until every wake that was queued has been issued */
    KMES_TEST_OPEN,   /* result: a new fd of `buffer`, O_RDWR, close-on-exec */
    KMES_TEST_STATE,  /* fills `state` */
    KMES_TEST_CALL, /* emits by kmes_call_emit, as KMES_IOC_EMIT does: fetches and checks the event
                     */
    KMES_TEST_CALL_BATCH, /* by kmes_call_emit_batch: payload_len entries (struct kmes_emit_entry)
                             at payload_address; out: `value`, the number of emitted events */
    KMES_TEST_CANARY, /* does nothing. result: the number of correct bytes of `value`, 0..4, for a
                         fuzzer */
};

/* Buffers of an instance have numbers from 0, in the order of their creation, for all CPUs
 * together. */
struct kmes_test_operation {
    __u32 verb;
    __u32 cpu;
    __u64 type_address;
    __u64 payload_address;
    __u64 payload_len; /* above 2^32 - 1: 2^32 - 1; the payload is read only if the event is written
                        */
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
    __s64 result;        /* out: the result of the core (0, -ENOSPC, ...), or as above */
};

/* The producer's private copies of the fields of a CPU's current buffer. */
struct kmes_test_state {
    __u64 capacity;
    __u64 tail;
    __u64 published;
    __u64 frontier;
    __u64 generation;
    __u64 sequence;
    __u64 wakes_issued;  /* of the instance */
    __u64 threads_woken; /* by those wakes, of the instance */
    __u32 futex_counter;
    __u32 buffer;  /* its number */
    __u32 buffers; /* of the instance, including ended ones */
    __u32 is_boot;
    struct kmes_ioctl_statistics statistics;
};

#define KMES_TEST_IOC_CREATE _IOWR(KMES_IOC_MAGIC, 0xa0, struct kmes_test_instance)
#define KMES_TEST_IOC_JOIN _IOW(KMES_IOC_MAGIC, 0xa1, __u32)
/* Returns 0 if the operation was executed, whatever its `result`. Otherwise EINVAL, EFAULT, ENOMEM.
 */
#define KMES_TEST_IOC_OPERATE _IOWR(KMES_IOC_MAGIC, 0xa2, struct kmes_test_operation)

#endif
