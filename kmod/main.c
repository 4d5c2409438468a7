// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: parameters, load, unload. With an invalid parameter the module does not load; no
 * value is clamped.
 */
#include <linux/cpumask.h>
#include <linux/module.h>

#include "instance.h"
#include "module.h"

struct kmes_parameters kmes_parameters = {
    .buffer_capacity = KMES_CONFIG_CAPACITY_DEFAULT_BYTES,
    .max_event_size = KMES_CONFIG_EVENT_DEFAULT_BYTES,
    .buffers_max = 4096,
};

module_param_named(buffer_capacity, kmes_parameters.buffer_capacity, ulong, 0444);
MODULE_PARM_DESC(buffer_capacity,
                 "bytes of each CPU's ring: a power of two, 64 KiB .. 256 MiB (4 MiB)");
module_param_named(max_event_size, kmes_parameters.max_event_size, ulong, 0444);
MODULE_PARM_DESC(max_event_size, "bytes of an event of the emit calls: 1 KiB .. 4 MiB (64 KiB)");
module_param_named(boot_phase, kmes_parameters.boot_phase, bool, 0444);
MODULE_PARM_DESC(boot_phase, "begin without rings, until KMES_IOC_REGISTRY_AVAILABLE (0)");
module_param_named(buffers_max, kmes_parameters.buffers_max, uint, 0444);
MODULE_PARM_DESC(buffers_max,
                 "buffers that can exist at a time, retired ones too: 64 .. 1048576, and at least "
                 "two for each CPU (4096)");

/* Rejects a write to a read-only parameter. */
static int refuse(const char* text, const struct kernel_param* parameter) {
    return -EPERM;
}

static int get_pages_live(char* text, const struct kernel_param* parameter) {
    return sysfs_emit(text, "%ld\n", kmes_memory_pages_live());
}

static int get_buffers_live(char* text, const struct kernel_param* parameter) {
    return sysfs_emit(text, "%ld\n", kmes_memory_buffers_live());
}

static const struct kernel_param_ops pages_live_operations = {.set = refuse, .get = get_pages_live};
static const struct kernel_param_ops buffers_live_operations = {.set = refuse,
                                                                .get = get_buffers_live};
module_param_cb(pages_live, &pages_live_operations, NULL, 0444);
MODULE_PARM_DESC(pages_live, "read only: pages that buffers have now");
module_param_cb(buffers_live, &buffers_live_operations, NULL, 0444);
MODULE_PARM_DESC(buffers_live, "read only: buffers that exist now");

/* event-model.md: the highest id of an online CPU, plus one. */
static u32 cpu_count(void) {
    return cpumask_last(cpu_online_mask) + 1;
}

/* A resize, and the end of the boot phase, need two buffers for each CPU at a time. */
static int check_buffers_max(void) {
    u32 cpus = cpu_count();

    if (kmes_parameters.buffers_max < 64 || kmes_parameters.buffers_max > 1048576) {
        pr_err("not loaded: buffers_max=%u: not 64..1048576\n", kmes_parameters.buffers_max);
        return -EINVAL;
    }
    if (cpus > KMES_CPUS_MAX) {
        pr_err("not loaded: %u CPUs; at most %u\n", cpus, KMES_CPUS_MAX);
        return -EINVAL;
    }
    if (kmes_parameters.buffers_max < 2 * cpus) {
        pr_err("not loaded: buffers_max=%u: a resize of %u CPUs needs at least %u\n",
               kmes_parameters.buffers_max, cpus, 2 * cpus);
        return -EINVAL;
    }
    return 0;
}

static int check_parameters(void) {
    if (PAGE_SIZE != KMES_PAGE_BYTES) {
        pr_err("not loaded: ring format 1 needs pages of 4096 bytes, here they have %lu (E22)\n",
               PAGE_SIZE);
        return -EOPNOTSUPP;
    }
    if (!kmes_capacity_is_configurable(kmes_parameters.buffer_capacity)) {
        pr_err("not loaded: buffer_capacity=%lu: not a power of two, 65536..268435456\n",
               kmes_parameters.buffer_capacity);
        return -EINVAL;
    }
    if (!kmes_event_size_is_configurable(kmes_parameters.max_event_size)) {
        pr_err("not loaded: max_event_size=%lu: not 1024..4194304\n",
               kmes_parameters.max_event_size);
        return -EINVAL;
    }
    return check_buffers_max();
}

static int make_real_instance(void) {
    struct kmes_instance_setup setup = {
        .capacity =
            kmes_parameters.boot_phase ? KMES_BOOT_CAPACITY_BYTES : kmes_parameters.buffer_capacity,
        .max_event_bytes = kmes_parameters.max_event_size,
        .cpus = cpu_count(),
        .is_real = true,
        .is_boot = kmes_parameters.boot_phase,
    };
    struct kmes_instance* instance = kmes_instance_make(&setup);

    if (IS_ERR(instance)) {
        if (PTR_ERR(instance) == -EINTR)
            pr_err("not loaded: a signal ended the load\n");
        else
            pr_err("not loaded: no memory for the buffers of %u CPUs (error %ld)\n", setup.cpus,
                   -PTR_ERR(instance));
        return PTR_ERR(instance);
    }
    instance->capacity = kmes_parameters.buffer_capacity;
    kmes_real_instance = instance;
    return 0;
}

static void end_real_instance(void) {
    kmes_nudge_exit(kmes_real_instance);
    kmes_instance_end(kmes_real_instance);
    kmes_instance_put(kmes_real_instance);
}

static int __init load(void) {
    int error = check_parameters();

    if (error) return error;
    error = kmes_file_system_init();
    if (error) return error;
    error = kmes_memory_init();
    if (error) goto no_memory;
    error = kmes_wake_init();
    if (error) goto no_wake;
    error = make_real_instance();
    if (error) goto no_instance;
    error = kmes_device_init();
    if (error) goto no_device;
    pr_info("%u CPUs, %lu bytes each%s\n", kmes_real_instance->cpus,
            kmes_parameters.buffer_capacity, kmes_parameters.boot_phase ? ", boot phase" : "");
    return 0;

no_device:
    end_real_instance();
no_instance:
    kmes_wake_exit();
no_wake:
    kmes_memory_exit();
no_memory:
    kmes_file_system_exit();
    return error;
}

/* The module's count is zero. So there is no open device, fd or mapping, no reference to the inode
 * of a buffer, and no dependent module. */
static void __exit unload(void) {
    kmes_device_exit();
    end_real_instance();
    kmes_wake_exit();
    kmes_memory_exit();
    kmes_file_system_exit();
    pr_info("unloaded: %ld pages, %ld buffers left\n", kmes_memory_pages_live(),
            kmes_memory_buffers_live());
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("KMES: per-CPU event rings");
MODULE_LICENSE("GPL");
