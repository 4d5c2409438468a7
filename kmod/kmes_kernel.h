/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exports of kmes.ko: emission from another module, in any context (E16). These are process,
 * softirq, hard interrupt and NMI. Include it with the repository's kmod/ on the include path.
 *
 * An event goes to the buffer of the processor that emits it. The functions neither wait nor
 * allocate. Interrupts are off while the event is copied.
 */
#ifndef KMES_KERNEL_H
#define KMES_KERNEL_H

#include <linux/types.h>

/*
 * `type`: `type_len` bytes of UTF-8, which are not checked here. `payload` may be NULL if
 * payload_len is 0. `origin_class`: event-model.md; 1 is KMES itself.
 *
 *   0        emitted
 *   -EINVAL  type_len is 0
 *   -ENOSPC  over 50 % of the capacity: dropped and counted, its sequence number is used
 *   -EBUSY   from inside an emission on this processor (an NMI): as for -ENOSPC (E16)
 *   -ENXIO   this processor came after the module: dropped and counted
 */
int kmes_emit_kernel(const char* type, u16 type_len, const void* payload, u32 payload_len,
                     u8 origin_class);

/*
 * Several events with one timestamp, one publication and one wake (5.1.7, last rule). Preemption is
 * off from begin to end: do not sleep. Interrupts may emit in between. Errors of
 * kmes_kernel_batch_add are those of kmes_emit_kernel; the batch continues after an error.
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
