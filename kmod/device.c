// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/kmes: the ioctls of <linux/kmes.h>, except those that attach (attach.c). This file checks
 * capabilities and copies arguments; other files do the work. No lock is held during a copy to the
 * process (E14).
 */
#include <linux/capability.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "instance.h"

/* The largest event, without its header, that is staged on the stack. */
#define KMES_SMALL_EVENT_BYTES 256

/* The largest batch that is fetched whole before it is written, and published at once. */
#define KMES_BATCH_STAGING_BYTES (256ull << 10)

/* Private memory for the events of an emit call; an open file keeps one. */
struct kmes_staging {
    u64 bytes;
    u8 event[] __aligned(8);
};

/* -- emit ------------------------------------------------------------------------------------ */

static int fetch(void* context, void* to, const void* from, __u64 bytes) {
    return copy_from_user(to, (const void __user*)from, bytes) ? -EFAULT : 0;
}

/* Returns the open file's memory, or new memory if another call uses that, or it is too small. */
static struct kmes_staging* take_staging(struct kmes_open* open, u64 bytes) {
    struct kmes_staging* staging = xchg(&open->staging, NULL);

    if (staging && staging->bytes >= bytes) return staging;
    kvfree(staging);
    staging = kvmalloc(struct_size(staging, event, bytes), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
    if (staging) staging->bytes = bytes;
    return staging;
}

static void give_staging(struct kmes_open* open, struct kmes_staging* staging) {
    kvfree(xchg(&open->staging, staging));
}

/* Keeps the thread on its CPU until unpin. The thread does not sleep meanwhile. */
static struct kmes_cpu* pin(void* context) {
    struct kmes_instance_cpu* cpu;

    preempt_disable_notrace();
    cpu = kmes_emit_cpu();
    if (cpu) return &cpu->core;
    preempt_enable_notrace();
    atomic64_inc(&kmes_dropped_no_cpu);
    return NULL; /* like a producer that has ended */
}

static void unpin(void* context) {
    preempt_enable_notrace();
}

/* Makes the call of a process. Its memory is fetched without locks, and on any processor. */
static struct kmes_call make_call(u8* staging, u64 staging_bytes, u64 max_event_bytes) {
    struct kmes_call call = {
        .pin = pin,
        .unpin = unpin,
        .staging = staging,
        .staging_bytes = staging_bytes,
        .max_event_bytes = max_event_bytes,
        .fetch = fetch,
        .origin_class = KMES_ORIGIN_USERSPACE,
    };

    return call;
}

static int emit(const struct kmes_ioctl_emit* event, u8* staging, u64 max_event_bytes) {
    struct kmes_call call = make_call(staging, max_event_bytes, max_event_bytes);

    return kmes_call_emit(&call, (const void*)(uintptr_t)event->type_address, event->type_len,
                          (const void*)(uintptr_t)event->payload_address, event->payload_len);
}

static int ioctl_emit(struct kmes_open* open, void __user* argument) {
    u64 max_event_bytes = READ_ONCE(kmes_real_instance->max_event_bytes);
    struct kmes_ioctl_emit event;
    struct kmes_staging* staging;
    u64 bytes;
    int error;

    if (!capable(CAP_AUDIT_WRITE)) return -EPERM;
    if (copy_from_user(&event, argument, sizeof(event))) return -EFAULT;
    if (event.reserved) return -EINVAL;
    bytes = (u64)event.type_len + event.payload_len;
    if (bytes <= KMES_SMALL_EVENT_BYTES) {
        u8 small[KMES_SMALL_EVENT_BYTES];

        return emit(&event, small, max_event_bytes);
    }
    /* An event that is too long is rejected before anything is staged. */
    if (bytes > max_event_bytes) return emit(&event, NULL, max_event_bytes);
    staging = take_staging(open, bytes);
    if (!staging) return -ENOMEM;
    error = emit(&event, staging->event, max_event_bytes);
    give_staging(open, staging);
    return error;
}

/* Sets batch->emitted. An invalid count is rejected before anything is staged. */
static int emit_batch(struct kmes_open* open, struct kmes_ioctl_emit_batch* batch) {
    u64 max_event_bytes = READ_ONCE(kmes_real_instance->max_event_bytes);
    u64 bytes = max(max_event_bytes, KMES_BATCH_STAGING_BYTES);
    struct kmes_staging* staging;
    struct kmes_call call;
    int error;

    batch->emitted = 0;
    if (batch->count == 0 || batch->count > KMES_BATCH_MAX_ENTRIES) return -EINVAL;
    staging = take_staging(open, bytes);
    if (!staging) return -ENOMEM;
    call = make_call(staging->event, bytes, max_event_bytes);
    error = kmes_call_emit_batch(&call,
                                 (const struct kmes_emit_entry*)(uintptr_t)batch->entries_address,
                                 batch->count, &batch->emitted);
    give_staging(open, staging);
    return error;
}

static int ioctl_emit_batch(struct kmes_open* open, void __user* argument) {
    struct kmes_ioctl_emit_batch batch;
    int error;

    if (!capable(CAP_AUDIT_WRITE)) return -EPERM;
    if (copy_from_user(&batch, argument, sizeof(batch))) return -EFAULT;
    error = emit_batch(open, &batch);
    if (copy_to_user(argument, &batch, sizeof(batch))) return -EFAULT;
    return error;
}

/* -- the rest -------------------------------------------------------------------------------- */

static int ioctl_configure(void __user* argument,
                           int (*configure)(struct kmes_instance*,
                                            const struct kmes_ioctl_configure*)) {
    struct kmes_ioctl_configure wanted;

    if (!capable(CAP_SYS_ADMIN)) return -EPERM;
    if (copy_from_user(&wanted, argument, sizeof(wanted))) return -EFAULT;
    return configure(kmes_real_instance, &wanted);
}

static int ioctl_statistics(void __user* argument) {
    struct kmes_ioctl_statistics statistics;
    int error;

    if (!capable(CAP_AUDIT_READ)) return -EPERM;
    if (copy_from_user(&statistics, argument, sizeof(statistics))) return -EFAULT;
    error = kmes_instance_statistics(kmes_real_instance, &statistics);
    if (error) return error;
    return copy_to_user(argument, &statistics, sizeof(statistics)) ? -EFAULT : 0;
}

/* Lists as many buffers as exist, up to the number of slots. The number of buffers may change
 * before the second read. */
static int list_buffers(struct kmes_instance* instance, struct kmes_ioctl_buffers* buffers) {
    u32 slots = min(buffers->count, kmes_instance_buffers(instance, NULL, 0));
    struct kmes_buffer_info* infos = kvcalloc(max(slots, 1u), sizeof(*infos), GFP_KERNEL_ACCOUNT);
    u32 written;
    int error = 0;

    if (!infos) return -ENOMEM;
    buffers->count = kmes_instance_buffers(instance, infos, slots);
    written = min(slots, buffers->count);
    if (copy_to_user(u64_to_user_ptr(buffers->buffers_address), infos,
                     array_size(written, sizeof(*infos))))
        error = -EFAULT;
    else if (buffers->count > written)
        error = -ERANGE;
    kvfree(infos);
    return error;
}

static int ioctl_buffers(struct kmes_open* open, void __user* argument) {
    struct kmes_ioctl_buffers buffers;
    struct kmes_instance* instance;
    int error;

    if (!capable(CAP_AUDIT_READ)) return -EPERM;
    if (copy_from_user(&buffers, argument, sizeof(buffers))) return -EFAULT;
    if (buffers.reserved) return -EINVAL;
    instance = kmes_instance_of(open);
    error = list_buffers(instance, &buffers);
    kmes_instance_put(instance);
    if (error && error != -ERANGE) return error;
    return copy_to_user(argument, &buffers, sizeof(buffers)) ? -EFAULT : error;
}

static long device_ioctl(struct file* file, unsigned int command, unsigned long argument) {
    struct kmes_open* open = file->private_data;
    void __user* pointer = (void __user*)argument;

    switch (command) {
        case KMES_IOC_EMIT:
            return ioctl_emit(open, pointer);
        case KMES_IOC_EMIT_BATCH:
            return ioctl_emit_batch(open, pointer);
        case KMES_IOC_ATTACH:
            return kmes_ioctl_attach(open, pointer);
        case KMES_IOC_ATTACH_CPU:
            return kmes_ioctl_attach_cpu(open, pointer);
        case KMES_IOC_IDENTIFY:
            return kmes_ioctl_identify(open, pointer);
        case KMES_IOC_CONFIGURE:
            return ioctl_configure(pointer, kmes_instance_configure);
        case KMES_IOC_REGISTRY_AVAILABLE:
            return ioctl_configure(pointer, kmes_instance_registry_available);
        case KMES_IOC_STATISTICS:
            return ioctl_statistics(pointer);
        case KMES_IOC_BUFFERS:
            return ioctl_buffers(open, pointer);
        default:
            return kmes_test_ioctl(open, command, argument);
    }
}

static int device_open(struct inode* inode, struct file* file) {
    struct kmes_open* open = kzalloc(sizeof(*open), GFP_KERNEL_ACCOUNT);

    if (!open) return -ENOMEM;
    mutex_init(&open->lock);
    file->private_data = open;
    return 0;
}

static int device_release(struct inode* inode, struct file* file) {
    struct kmes_open* open = file->private_data;

    kmes_test_release(open);
    if (open->joined) kmes_instance_put(open->joined);
    kvfree(open->staging);
    kfree(open);
    return 0;
}

static const struct file_operations device_operations = {
    .owner = THIS_MODULE,
    .open = device_open,
    .release = device_release,
    .unlocked_ioctl = device_ioctl,
    .compat_ioctl = compat_ptr_ioctl,
    .llseek = noop_llseek,
};

/* Capabilities control the access, not the mode. */
static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "kmes",
    .fops = &device_operations,
    .mode = 0666,
};

int kmes_device_init(void) {
    return misc_register(&device);
}

void kmes_device_exit(void) {
    misc_deregister(&device);
}
