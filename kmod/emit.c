// SPDX-License-Identifier: GPL-2.0-only
/*
 * Emission from inside the kernel, in any context: the calls of other modules (kmes_kernel.h), and
 * the events that KMES emits about itself.
 */
#include <linux/export.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/stdarg.h>

#include "instance.h"
#include "kmes_kernel.h"

atomic64_t kmes_dropped_no_cpu;

struct kmes_instance_cpu* kmes_emit_cpu(void) {
    u32 number = (u32)raw_smp_processor_id();

    if (KMES_LIKELY(number < kmes_real_instance->cpus)) return kmes_real_instance->cpu[number];
    return NULL;
}

static struct kmes_event_input input_of(const char* type, u16 type_len, const void* payload,
                                        u32 payload_len, u8 origin_class) {
    struct kmes_event_input input = {
        .type = type,
        .payload = payload,
        .payload_len = payload_len,
        .type_len = type_len,
        .origin_class = origin_class,
    };

    return input;
}

static int drop_no_cpu(void) {
    atomic64_inc(&kmes_dropped_no_cpu);
    return -ENXIO;
}

int kmes_emit_kernel(const char* type, u16 type_len, const void* payload, u32 payload_len,
                     u8 origin_class) {
    struct kmes_event_input input = input_of(type, type_len, payload, payload_len, origin_class);
    struct kmes_instance_cpu* cpu;
    int error;

    preempt_disable_notrace();
    cpu = kmes_emit_cpu();
    error = cpu ? kmes_cpu_emit(&cpu->core, &input) : drop_no_cpu();
    preempt_enable_notrace();
    return error;
}
EXPORT_SYMBOL_GPL(kmes_emit_kernel);

void kmes_kernel_batch_begin(struct kmes_kernel_batch* batch) {
    struct kmes_instance_cpu* cpu;
    struct kmes_batch core;

    preempt_disable_notrace();
    cpu = kmes_emit_cpu();
    batch->cpu = cpu;
    if (!cpu) return;
    kmes_batch_begin(&cpu->core, &core);
    batch->timestamp_ns = core.timestamp_ns;
}
EXPORT_SYMBOL_GPL(kmes_kernel_batch_begin);

int kmes_kernel_batch_add(struct kmes_kernel_batch* batch, const char* type, u16 type_len,
                          const void* payload, u32 payload_len, u8 origin_class) {
    struct kmes_event_input input = input_of(type, type_len, payload, payload_len, origin_class);
    struct kmes_batch core = {.timestamp_ns = batch->timestamp_ns};
    struct kmes_instance_cpu* cpu = batch->cpu;

    return cpu ? kmes_batch_emit(&cpu->core, &core, &input) : drop_no_cpu();
}
EXPORT_SYMBOL_GPL(kmes_kernel_batch_add);

void kmes_kernel_batch_end(struct kmes_kernel_batch* batch) {
    struct kmes_batch core = {.timestamp_ns = batch->timestamp_ns};
    struct kmes_instance_cpu* cpu = batch->cpu;

    if (cpu) kmes_batch_end(&cpu->core, &core);
    preempt_enable_notrace();
}
EXPORT_SYMBOL_GPL(kmes_kernel_batch_end);

void kmes_say(const char* type, const char* format, ...) {
    char text[128];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vscnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    kmes_emit_kernel(type, (u16)strlen(type), text, (u32)length, KMES_ORIGIN_KMES);
}
