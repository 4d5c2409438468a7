/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The attach functions and the platform that kmes/reader.h wants, made of libkmes. C, no
 * exceptions.
 *
 *   struct kmes_reader_config config = {0};
 *   kmes_reader_by_libkmes(&config, cpu);
 *   kmes_reader_open(&reader, &config);
 */
#ifndef KMES_USER_LIBKMES_READER_H
#define KMES_USER_LIBKMES_READER_H

#include "kmes/reader.h"

KMES_EXTERN_C_BEGIN

/*
 * Fills what a reader of `cpu_id` needs to live: its attach functions and its platform. The rest of
 * `config` stays. It may be used for any number of readers, in any thread.
 *
 * Errors that a reader hands on: those of kmes_attach and kmes_map; -ENODEV for a CPU that is not
 * there. -ENOSYS, -ESHUTDOWN and -EAGAIN after a generation change: the producer has ended, or has
 * no rings yet; call again later.
 *
 * By the device and the socket a reader attaches to its one CPU. No descriptor is left open but the
 * connection of its lease (libkmes.h).
 * The system call 1091 has no such form: all CPUs are attached to, and the others closed, at each
 * attach twice (E19). A module that does not know KMES_IOC_ATTACH_CPU is asked likewise.
 *
 * A reader of a producer in userspace comes over to the next one when that is killed, as
 * kmes_reader_wait says. It waits for 1 s at most for the answer to that question.
 */
void kmes_reader_by_libkmes(struct kmes_reader_config* config, __u16 cpu_id);

/*
 * After kmes_reader_by_libkmes: the reader may also attach to a producer that leaves its full fence
 * to its consumers (Barrier::kAsymmetric in producer.h). Where the producer asks for it, the reader
 * calls membarrier(2) before each sleep: some microseconds while the producer runs. 0; -ENOSYS,
 * -EPERM: this process has no such call, and nothing has changed. Without this promise such a
 * producer refuses the reader with -EOPNOTSUPP.
 *
 * Do not call it in a process whose system calls another kernel emulates (gVisor, qemu-user): its
 * membarrier does not reach the producer.
 */
int kmes_reader_promise_membarrier(struct kmes_reader_config* config);

/* The same with the system call 1091 and one mmap of each fd, and nothing else: no environment, no
 * socket. */
void kmes_reader_by_system_call(struct kmes_reader_config* config, __u16 cpu_id);

/* The number of CPUs by kmes_attach, or by the system call alone; else a negative error number. */
int kmes_cpus_by_libkmes(void);
int kmes_cpus_by_system_call(void);

/* For a reader: sleep, and the clock. */
struct kmes_platform* kmes_user_platform(void);

KMES_EXTERN_C_END

#endif
