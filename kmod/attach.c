// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of <linux/kmes.h> that attach: all CPUs, one CPU, and the identification of a CPU's
 * current buffer. Each one checks the capability and copies its argument. No lock is held during an
 * access to memory of the process (E14).
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "instance.h"

struct kmes_instance* kmes_instance_of(struct kmes_open* open) {
    struct kmes_instance* instance;

    mutex_lock(&open->lock);
    instance = open->joined ? open->joined : kmes_real_instance;
    kmes_instance_get(instance);
    mutex_unlock(&open->lock);
    return instance;
}

/* -- all CPUs -------------------------------------------------------------------------------- */

/* One slot of an attach. */
struct attached {
    struct file* file;
    int fd;
};

/* Undoes the completed part of an attach. */
static void detach(struct attached* slots, u32 count) {
    u32 i;

    for (i = 0; i < count; i++) {
        put_unused_fd((unsigned)slots[i].fd);
        fput(slots[i].file);
    }
}

/* Makes files and descriptor numbers for `count` buffers, all or none. No process can see them
 * yet. */
static int make_files(struct kmes_memory** memories, struct attached* slots, u32 count) {
    u32 i;

    for (i = 0; i < count; i++) {
        int error = slots[i].fd = get_unused_fd_flags(O_CLOEXEC);

        if (error >= 0) {
            slots[i].file = kmes_memory_open(memories[i]);
            if (!IS_ERR(slots[i].file)) continue;
            error = PTR_ERR(slots[i].file);
            put_unused_fd((unsigned)slots[i].fd);
        }
        detach(slots, i);
        return error;
    }
    return 0;
}

/* The last step that can fail. After it the process owns the fds. */
static int hand_out(struct attached* slots, struct kmes_ioctl_attach* attach, void __user* argument,
                    u32 count) {
    int __user* fds = u64_to_user_ptr(attach->fds_address);
    bool is_bad = false;
    u32 i;

    for (i = 0; i < count && !is_bad; i++) is_bad = put_user(slots[i].fd, fds + i) != 0;
    if (is_bad || copy_to_user(argument, attach, sizeof(*attach))) {
        detach(slots, count);
        return -EFAULT;
    }
    for (i = 0; i < count; i++) fd_install((unsigned)slots[i].fd, slots[i].file);
    return 0;
}

static int attach_to(struct kmes_instance* instance, struct kmes_ioctl_attach* attach,
                     void __user* argument) {
    struct kmes_memory** memories = kvcalloc(instance->cpus, sizeof(*memories), GFP_KERNEL_ACCOUNT);
    struct attached* slots = kvcalloc(instance->cpus, sizeof(*slots), GFP_KERNEL_ACCOUNT);
    int error = -ENOMEM;
    u32 i;

    if (!memories || !slots) goto out;
    error = kmes_instance_attach(instance, memories, &attach->capacity);
    if (error) goto out;
    error = make_files(memories, slots, instance->cpus);
    if (!error) error = hand_out(slots, attach, argument, instance->cpus);
    for (i = 0; i < instance->cpus; i++) kmes_memory_put(memories[i]);
out:
    kvfree(slots);
    kvfree(memories);
    return error;
}

static bool is_boot(struct kmes_instance* instance) {
    bool answer;

    mutex_lock(&instance->lock);
    answer = instance->is_boot;
    mutex_unlock(&instance->lock);
    return answer;
}

int kmes_ioctl_attach(struct kmes_open* open, void __user* argument) {
    struct kmes_ioctl_attach attach;
    struct kmes_instance* instance;
    u32 slots;
    int error;

    if (!capable(CAP_AUDIT_READ)) return -EPERM;
    if (copy_from_user(&attach, argument, sizeof(attach))) return -EFAULT;
    if (attach.reserved) return -EINVAL;
    instance = kmes_instance_of(open);
    slots = attach.count;
    attach.count = instance->cpus;
    attach.capacity = 0;
    if (is_boot(instance))
        error = -EAGAIN;
    else if (slots < instance->cpus)
        error = copy_to_user(argument, &attach, sizeof(attach)) ? -EFAULT : -ERANGE;
    else
        error = attach_to(instance, &attach, argument);
    kmes_instance_put(instance);
    return error;
}

/* -- one CPU --------------------------------------------------------------------------------- */

/* Returns the current buffer of a CPU of this file's instance, referenced, or an ERR_PTR. */
static struct kmes_memory* find_memory(struct kmes_open* open, u32 cpu) {
    struct kmes_instance* instance = kmes_instance_of(open);
    struct kmes_memory* memory = kmes_instance_attach_cpu(instance, cpu);

    kmes_instance_put(instance);
    return memory;
}

int kmes_ioctl_attach_cpu(struct kmes_open* open, void __user* argument) {
    struct kmes_ioctl_attach_cpu attach;
    struct kmes_memory* memory;
    struct attached slot;
    int error;

    if (!capable(CAP_AUDIT_READ)) return -EPERM;
    if (copy_from_user(&attach, argument, sizeof(attach))) return -EFAULT;
    memory = find_memory(open, attach.cpu);
    if (IS_ERR(memory)) return PTR_ERR(memory);
    error = make_files(&memory, &slot, 1);
    attach.capacity = memory->buffer.capacity;
    kmes_memory_put(memory);
    if (error) return error;
    attach.fd = slot.fd;
    if (copy_to_user(argument, &attach, sizeof(attach))) {
        detach(&slot, 1);
        return -EFAULT;
    }
    fd_install((unsigned)slot.fd, slot.file);
    return 0;
}

int kmes_ioctl_identify(struct kmes_open* open, void __user* argument) {
    struct kmes_ioctl_identify identify;
    struct kmes_memory* memory;

    if (!capable(CAP_AUDIT_READ)) return -EPERM;
    if (copy_from_user(&identify, argument, sizeof(identify))) return -EFAULT;
    memory = find_memory(open, identify.cpu);
    if (IS_ERR(memory)) return PTR_ERR(memory);
    identify.device = kmes_file_system_device();
    identify.inode = memory->inode_number;
    identify.capacity = memory->buffer.capacity;
    identify.cpus = memory->instance->cpus;
    kmes_memory_put(memory);
    return copy_to_user(argument, &identify, sizeof(identify)) ? -EFAULT : 0;
}
