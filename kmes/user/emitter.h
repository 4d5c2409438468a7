/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A handle for emitting that opens its connection to the producer once. kmes_emit (libkmes.h) opens
 * it for each call. C, no exceptions.
 *
 *   struct kmes_emitter* emitter;
 *   int error = kmes_emitter_open(&emitter);
 *   if (!error) error = kmes_emitter_emit(emitter, "door.opened", 11, NULL, 0);
 *   kmes_emitter_close(emitter);
 *
 * Each function returns 0 or a negative error number. kmes_emitter_open selects the server by the
 * rule of libkmes.h, and the emitter keeps that server: it holds /dev/kmes, or one connection to
 * the socket. If the connection has ended, for example because the producer was restarted, the next
 * call connects again to the same address. An open /dev/kmes keeps the module loaded.
 *
 * Threads: any number of threads may emit by one emitter. Close it when no other thread uses it. By
 * the socket the threads take turns. A signal handler may call no function of it.
 *
 * fork: parent and child may both continue with an emitter, whatever other threads of the parent
 * did. The child has its own connection from its first call on. A connection that another thread
 * was just making stays open in the child. _Fork, clone and vfork: as in libkmes.h.
 *
 * closefrom: an emitter whose descriptor the program has closed opens another one. It leaves a
 * number alone that has become another file.
 */
#ifndef KMES_USER_EMITTER_H
#define KMES_USER_EMITTER_H

#include "kmes/abi.h"

KMES_EXTERN_C_BEGIN

struct kmes_emitter;

/* -ENOSYS: no server of KMES exists here. Others: -EPERM, -EMFILE, -ENFILE, -ENOMEM, and by the
 * socket -ETIMEDOUT. *emitter is NULL after an error. */
int kmes_emitter_open(struct kmes_emitter** emitter);

/* NULL has no effect. */
void kmes_emitter_close(struct kmes_emitter* emitter);

/*
 * As kmes_emit and kmes_emit_batch, with their errors as negative numbers. -ENOSYS: the producer
 * has ended, and no other one serves now. After -ECONNRESET and -ETIMEDOUT the result of the call
 * is unknown. After these three errors the next call connects again.
 */
int kmes_emitter_emit(struct kmes_emitter* emitter, const char* type, __u16 type_len,
                      const void* payload, __u32 payload_len);
int kmes_emitter_emit_batch(struct kmes_emitter* emitter, const struct kmes_emit_entry* entries,
                            __u32 count, __u32* emitted);

KMES_EXTERN_C_END

#endif
