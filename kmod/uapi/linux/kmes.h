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
 * kmes_attach (1091). Needs CAP_AUDIT_READ (EPERM). On entry, `fds_address` has `count` slots. On
 * return, `count` is the number of CPUs, also after ERANGE (too few slots; no fd is made). Returns
 * all fds or none, close-on-exec; index i is CPU i. EAGAIN: the boot phase. Further errors: EFAULT,
 * EMFILE, ENFILE, ENOMEM.
 */
struct kmes_ioctl_attach {
    __u64 fds_address; /* of int[count] */
    __u64 capacity;    /* out: bytes, of each buffer */
    __u32 count;       /* in and out */
    __u32 reserved;
};

/*
 * Attaches to one CPU. Needs CAP_AUDIT_READ (EPERM). EINVAL: there is no such CPU. Other errors are
 * those of KMES_IOC_ATTACH. The fd is close-on-exec. A resize can come between two calls; then the
 * capacities differ. ENOTTY: an older module, which has only KMES_IOC_ATTACH.
 */
struct kmes_ioctl_attach_cpu {
    __u64 capacity; /* out: bytes */
    __u32 cpu;      /* in */
    __s32 fd;       /* out */
};

/*
 * Identifies the buffer that a CPU writes to now, without a descriptor. Device and inode are those
 * that fstat reports for the buffer's fds (E19). Capability and errors are those of
 * KMES_IOC_ATTACH_CPU, without EMFILE, ENFILE and ENOMEM.
 */
struct kmes_ioctl_identify {
    __u64 device;   /* out */
    __u64 inode;    /* out */
    __u64 capacity; /* out: bytes */
    __u32 cpu;      /* in */
    __u32 cpus;     /* out: the number of CPUs with a buffer */
};

/*
 * kmes_emit (1090). Needs CAP_AUDIT_WRITE (EPERM). EINVAL: type_len is 0, or the type is not UTF-8.
 * ENOSPC: the event is over 50 % of the capacity, or over MaxEventSize. EBUSY: this CPU has no
 * producer, because it came online after the module was loaded. ENOMEM: no memory to stage the
 * event. EFAULT.
 */
struct kmes_ioctl_emit {
    __u64 type_address;
    __u64 payload_address;
    __u32 payload_len; /* bytes */
    __u16 type_len;    /* bytes, from 1 on */
    __u16 reserved;
};

/*
 * kmes_emit_batch (1092). Takes 1 to 256 entries (EINVAL) of struct kmes_emit_entry. By
 * docs/event-model.md, an entry has 32 bytes: type pointer at 0, type_len u16 at 8, payload pointer
 * at 16, payload_len u32 at 24. Stops at the first bad entry, with its error; `emitted` is the
 * number of events before it.
 */
struct kmes_ioctl_emit_batch {
    __u64 entries_address;
    __u32 count;
    __u32 emitted; /* out */
};

/*
 * Configuration. Needs CAP_SYS_ADMIN (EPERM). 0 leaves a value unchanged. EINVAL: a value is not
 * valid. ENOMEM: no memory for the new buffers. EINTR: the caller was killed while it allocated
 * memory, or while it waited for a CPU that comes or goes, or for another configuration. After one
 * of these errors nothing has changed, and an event of origin class 1 reports it.
 *
 * KMES_IOC_REGISTRY_AVAILABLE also ends the boot phase (5.1.2). EALREADY: the boot phase is over.
 */
struct kmes_ioctl_configure {
    __u64 buffer_capacity; /* bytes: a power of two, 64 KiB .. 256 MiB */
    __u64 max_event_size;  /* bytes: 1 KiB .. 4 MiB */
};

/*
 * The counts of one CPU's producer since the module was loaded. Needs CAP_AUDIT_READ (EPERM).
 * EINVAL: there is no such CPU. The call neither waits for the CPU nor disturbs it. While the CPU
 * emits, each counter is correct, but two counters may be of different moments.
 */
struct kmes_ioctl_statistics {
    __u32 cpu;   /* in */
    __u32 phase; /* 0 boot, 1 rings */
    __u64 events;
    __u64 bytes;
    __u64 dropped;        /* over 50 % of the capacity, in the kernel (5.1.7 step 5) */
    __u64 dropped_nested; /* from inside an emission (E16) */
    __u64 dropped_no_cpu; /* on CPUs that came online after the module; the sum of all */
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
 * The existing buffers: the current one of each CPU, and the retired ones that are still mapped or
 * open. On entry, `buffers_address` has `count` slots. On return, `count` is the number of buffers.
 * ERANGE: there are more buffers than slots, and the first ones were written. Needs CAP_AUDIT_READ
 * (EPERM).
 */
struct kmes_buffer_info {
    __u64 inode; /* as fstat reports it for its fds (E19) */
    __u64 capacity;
    __u64 generation; /* the producer's private copy */
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
