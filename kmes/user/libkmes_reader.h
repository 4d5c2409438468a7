/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The attach functions and the platform of kmes/reader.h, implemented by libkmes. C, no exceptions.
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
 * Fills the attach functions and the platform of a reader of `cpu_id`. The rest of `config` is
 * unchanged. Any number of readers, in any threads, may use one `config`.
 *
 * A reader returns the errors of kmes_attach and kmes_map, and -ENODEV for a CPU that does not
 * exist. -ENOSYS, -ESHUTDOWN and -EAGAIN after a generation change mean that the producer has
 * ended, or has no rings yet. Call again later.
 *
 * By the device and the socket a reader attaches to its CPU only. The connection of its lease, and
 * that of a request without an answer, are the only open descriptors (libkmes.h). The system call
 * 1091 has no such form. Each attach then attaches to all CPUs twice (E19) and closes the other
 * descriptors. The same holds for a module without KMES_IOC_ATTACH_CPU.
 *
 * If a producer in userspace is killed, its reader switches to the next one, as kmes_reader_wait
 * says. Its question to a process that does not answer stays on a connection, and a later wait gets
 * the answer. Without a lease the reader waits for it, for at most 1 s. An attach waits for a
 * process for at most 30 s. In a reader set neither waits (reader_set.h).
 */
void kmes_reader_by_libkmes(struct kmes_reader_config* config, __u16 cpu_id);

/*
 * Call it after kmes_reader_by_libkmes. The reader may then also attach to a producer that leaves
 * its full fence to its consumers (Barrier::kAsymmetric in producer.h). If the producer asks for
 * it, the reader calls membarrier(2) before each sleep. This takes some microseconds while the
 * producer runs. Returns 0; -ENOSYS or -EPERM if this process has no such call, without effect.
 * Without this promise such a producer rejects the reader with -EOPNOTSUPP.
 *
 * Linux can leave out the processor of a producer whose threads have ended there. An event that
 * arrives while the reader is about to sleep can then be up to 100 ms late.
 *
 * Do not call it in a process whose system calls another kernel emulates (gVisor, qemu-user): its
 * membarrier does not reach the producer.
 */
int kmes_reader_promise_membarrier(struct kmes_reader_config* config);

/* As kmes_reader_by_libkmes, but only with the system call 1091 and one mmap of each fd. It uses
 * neither the environment nor a socket. */
void kmes_reader_by_system_call(struct kmes_reader_config* config, __u16 cpu_id);

/* Return the number of CPUs, by kmes_attach or by the system call alone, or a negative error
 * number. */
int kmes_cpus_by_libkmes(void);
int kmes_cpus_by_system_call(void);

/* The platform of a reader: sleep and clock. */
struct kmes_platform* kmes_user_platform(void);

KMES_EXTERN_C_END

#endif
