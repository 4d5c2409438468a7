/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kmes.ko exports: emission from another module, from any context (process, softirq, hard
 * interrupt, NMI: E16). Include with the repository's kmod/ on the include path.
 *
 * An event goes to the buffer of the processor on which it is emitted. Nothing waits and nothing is
 * allocated; interrupts are off for as long as it takes to copy the event.
 */
#ifndef KMES_KERNEL_H
#define KMES_KERNEL_H

#include <linux/types.h>

/*
 * `type`: UTF-8, which is not looked at here, `type_len` bytes; `payload` may be NULL where
 * payload_len is 0. `origin_class`: event-model.md; 1 is KMES itself.
 *
 *   0        emitted
 *   -EINVAL  type_len is 0
 *   -ENOSPC  over 50 % of the capacity: dropped and counted, its sequence number is used
 *   -EBUSY   from inside an emission on this processor (an NMI): likewise (E16)
 *   -ENXIO   this processor came after the module: dropped and counted
 */
int kmes_emit_kernel(const char* type, u16 type_len, const void* payload, u32 payload_len,
                     u8 origin_class);

/*
 * Several events with one timestamp, published and woken for once (5.1.7, last rule). From begin to
 * end preemption is off: do not sleep. What interrupts emit meanwhile comes in between. Errors of
 * kmes_kernel_batch_add are those of kmes_emit_kernel; the batch goes on after one.
 */
struct kmes_kernel_batch {
    void* cpu;
    u64 timestamp_ns;
};

void kmes_kernel_batch_begin(struct kmes_kernel_batch* batch);
int kmes_kernel_batch_add(struct kmes_kernel_batch* batch, const char* type, u16 type_len,
                          const void* payload, u32 payload_len, u8 origin_class);
void kmes_kernel_batch_end(struct kmes_kernel_batch* batch);

#endif
