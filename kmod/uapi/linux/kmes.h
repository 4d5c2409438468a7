/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kmes: the operations of the KMES calls on a kernel that has no such system calls
 * (docs/event-model.md, Calls and Configuration). Plain C, for any program that includes it.
 *
 * Every ioctl returns 0, or -1 with errno set. Addresses are 64 bits wide; fields named reserved
 * must be 0 (EINVAL otherwise). ENOTTY: no such ioctl in this build of the module.
 */
#ifndef _UAPI_LINUX_KMES_H
#define _UAPI_LINUX_KMES_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KMES_DEVICE "/dev/kmes"

/*
 * kmes_attach (1091). CAP_AUDIT_READ, else EPERM. `count` slots at `fds_address` on entry; on
 * return the number of CPUs, also after ERANGE (too few slots; no fd was made). All fds or none,
 * close-on-exec; index i is CPU i. EAGAIN: the boot phase. EFAULT, EMFILE, ENFILE, ENOMEM.
 */
struct kmes_ioctl_attach {
    __u64 fds_address; /* of int[count] */
    __u64 capacity;    /* out: bytes, of each buffer */
    __u32 count;       /* in and out */
    __u32 reserved;
};

/*
 * Attach to one CPU. CAP_AUDIT_READ, else EPERM. EINVAL: there is no such CPU; otherwise the errors
 * of KMES_IOC_ATTACH. The fd is close-on-exec. Two calls of this can have a resize between them:
 * then the capacities differ. ENOTTY: an older module; KMES_IOC_ATTACH does it there.
 */
struct kmes_ioctl_attach_cpu {
    __u64 capacity; /* out: bytes */
    __u32 cpu;      /* in */
    __s32 fd;       /* out */
};

/*
 * Tells which buffer a CPU writes to now, without a descriptor: device and inode are what fstat
 * reports for the buffer's fds (E19). Capability and errors as KMES_IOC_ATTACH_CPU, but no EMFILE,
 * ENFILE or ENOMEM.
 */
struct kmes_ioctl_identify {
    __u64 device;   /* out */
    __u64 inode;    /* out */
    __u64 capacity; /* out: bytes */
    __u32 cpu;      /* in */
    __u32 cpus;     /* out: how many CPUs have a buffer */
};

/*
 * kmes_emit (1090). CAP_AUDIT_WRITE, else EPERM. EINVAL: type_len 0, or no UTF-8; ENOSPC: over 50 %
 * of the capacity, or over MaxEventSize; EFAULT; EBUSY: this CPU has no producer
 * (it came after the module), or its producer has ended; ENOMEM: no memory to stage the event.
 */
struct kmes_ioctl_emit {
    __u64 type_address;
    __u64 payload_address;
    __u32 payload_len; /* bytes */
    __u16 type_len;    /* bytes, from 1 on */
    __u16 reserved;
};

/*
 * kmes_emit_batch (1092): entries of struct kmes_emit_entry (docs/event-model.md: type pointer at
 * 0, type_len u16 at 8, payload pointer at 16, payload_len u32 at 24; 32 bytes). 1..256, else
 * EINVAL. Stops at the first bad entry, with its error; `emitted` says how many are before it.
 */
struct kmes_ioctl_emit_batch {
    __u64 entries_address;
    __u32 count;
    __u32 emitted; /* out */
};

/*
 * Configuration. CAP_SYS_ADMIN, else EPERM. 0 leaves a value as it is. EINVAL: a value that is not
 * valid; ENOMEM: no memory for the new buffers; EINTR: killed while it allocated memory, or while
 * it waited for a CPU that comes or goes, or for another configuration. Nothing changes then, and
 * an event of origin class 1 says so. With KMES_IOC_REGISTRY_AVAILABLE it is also the end of the
 * boot phase (5.1.2); EALREADY when that is over.
 */
struct kmes_ioctl_configure {
    __u64 buffer_capacity; /* bytes: a power of two, 64 KiB .. 256 MiB */
    __u64 max_event_size;  /* bytes: 1 KiB .. 4 MiB */
};

/*
 * What one CPU's producer has counted since the module was loaded. CAP_AUDIT_READ, else EPERM;
 * EINVAL: no such CPU. The CPU is neither waited for nor disturbed: while it emits, each counter is
 * right by itself, and two of them need not belong together.
 */
struct kmes_ioctl_statistics {
    __u32 cpu;   /* in */
    __u32 phase; /* 0 boot, 1 rings */
    __u64 events;
    __u64 bytes;
    __u64 dropped;        /* over 50 % of the capacity, in the kernel (5.1.7 step 5) */
    __u64 dropped_nested; /* from inside an emission (E16) */
    __u64 dropped_no_cpu; /* on a CPU that came after the module, all CPUs together */
    __u64 overwritten;
    __u64 wakes;
    __u64 corrupt; /* impossible sizes in the ring (E13) */
    __u64 swaps;
    __u64 left_behind; /* events that did not fit at a swap (E10) */
    __u64 last_sequence;
    __u64 capacity;
    __u64 max_event_size;
    __u64 longest_pause_ns; /* of emission, by a resize (E18) */
};

/*
 * The buffers that exist, the present one of each CPU and those retired that somebody still has. On
 * entry `count` slots at `buffers_address`; on return how many there are (ERANGE: more than slots;
 * as many as fit were written). CAP_AUDIT_READ.
 */
struct kmes_buffer_info {
    __u64 inode; /* what fstat says of its fds (E19) */
    __u64 capacity;
    __u64 generation; /* as the producer knows it */
    __u64 write_pos;
    __u64 tail_pos;
    __u32 cpu;
    __u32 mappings;
    __u32 descriptors;
    __u32 is_retired;
};

struct kmes_ioctl_buffers {
    __u64 buffers_address;
    __u32 count;
    __u32 reserved;
};

#define KMES_IOC_MAGIC 'K'
#define KMES_IOC_ATTACH _IOWR(KMES_IOC_MAGIC, 0x91, struct kmes_ioctl_attach)
#define KMES_IOC_EMIT _IOW(KMES_IOC_MAGIC, 0x90, struct kmes_ioctl_emit)
#define KMES_IOC_EMIT_BATCH _IOWR(KMES_IOC_MAGIC, 0x92, struct kmes_ioctl_emit_batch)
#define KMES_IOC_CONFIGURE _IOW(KMES_IOC_MAGIC, 0x93, struct kmes_ioctl_configure)
#define KMES_IOC_REGISTRY_AVAILABLE _IOW(KMES_IOC_MAGIC, 0x94, struct kmes_ioctl_configure)
#define KMES_IOC_STATISTICS _IOWR(KMES_IOC_MAGIC, 0x95, struct kmes_ioctl_statistics)
#define KMES_IOC_BUFFERS _IOWR(KMES_IOC_MAGIC, 0x96, struct kmes_ioctl_buffers)
#define KMES_IOC_ATTACH_CPU _IOWR(KMES_IOC_MAGIC, 0x97, struct kmes_ioctl_attach_cpu)
#define KMES_IOC_IDENTIFY _IOWR(KMES_IOC_MAGIC, 0x98, struct kmes_ioctl_identify)

#endif
