// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of a test build, <linux/kmes_test.h>: make, join and operate on instances.
 * test_operate.c implements the verbs.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "test.h"

#define TEST_CAPACITY_MIN 4096ull
#define TEST_CAPACITY_MAX (256ull << 20)
#define TEST_MAX_EVENT_BYTES (256ull << 20)

static DEFINE_MUTEX(tests_lock); /* the list and the ids */
static LIST_HEAD(tests);
static u32 last_id;

bool kmes_test_memory_is_there(u64 bytes) {
    return bytes / PAGE_SIZE <= totalram_pages() / 4;
}

static int check_instance(const struct kmes_test_instance* wanted) {
    if (wanted->reserved || wanted->is_boot > 1) return -EINVAL;
    if (wanted->cpus == 0 || wanted->cpus > KMES_CPUS_MAX) return -EINVAL;
    if (wanted->first_cpu_id > 65536u - wanted->cpus) return -EINVAL;
    if (!is_power_of_2(wanted->capacity)) return -EINVAL;
    if (wanted->capacity < TEST_CAPACITY_MIN || wanted->capacity > TEST_CAPACITY_MAX)
        return -EINVAL;
    if (wanted->max_event_size == 0 || wanted->max_event_size > TEST_MAX_EVENT_BYTES)
        return -EINVAL;
    return kmes_test_memory_is_there(wanted->capacity * wanted->cpus) ? 0 : -ENOMEM;
}

/* Copies the start positions of the CPUs. Returns NULL if all begin at 0, or an ERR_PTR. */
static u64* copy_positions(const struct kmes_test_instance* wanted) {
    u64* positions;
    u32 i;

    if (!wanted->start_positions_address) return NULL;
    positions =
        memdup_user(u64_to_user_ptr(wanted->start_positions_address), wanted->cpus * sizeof(u64));
    if (IS_ERR(positions)) return positions;
    for (i = 0; i < wanted->cpus; i++) {
        /* E11: positions never wrap at 2^64; each operation checks it again. */
        if (positions[i] <= ~0ull - wanted->capacity) continue;
        kfree(positions);
        return ERR_PTR(-EINVAL);
    }
    return positions;
}

static struct kmes_test* make_test(const struct kmes_test_instance* wanted, const u64* positions) {
    const struct kmes_instance_setup setup = {
        .capacity = wanted->capacity,
        .max_event_bytes = wanted->max_event_size,
        .last_sequence = wanted->last_sequence,
        .first_generation = wanted->first_generation,
        .clock_ns = wanted->clock_ns,
        .clock_step_ns = wanted->clock_step_ns,
        .start_positions = positions,
        .cpus = wanted->cpus,
        .first_futex_counter = wanted->first_futex_counter,
        .first_cpu_id = (u16)wanted->first_cpu_id,
        .is_boot = wanted->is_boot,
    };
    struct kmes_test* test = kvzalloc(struct_size(test, cpu, wanted->cpus), GFP_KERNEL_ACCOUNT);
    u32 i;

    if (!test) return ERR_PTR(-ENOMEM);
    test->instance = kmes_instance_make(&setup);
    if (IS_ERR(test->instance)) {
        long error = PTR_ERR(test->instance);

        kvfree(test);
        return ERR_PTR(error);
    }
    for (i = 0; i < wanted->cpus; i++) test->cpu[i].is_boot = wanted->is_boot;
    return test;
}

static void end_test(struct kmes_test* test) {
    mutex_lock(&tests_lock);
    if (!list_empty(&test->in_tests)) list_del(&test->in_tests);
    mutex_unlock(&tests_lock);
    kmes_test_drop(test);
    kmes_instance_end(test->instance);
    kmes_instance_put(test->instance);
    kvfree(test);
}

static long create(struct kmes_open* open, struct kmes_test_instance __user* argument) {
    struct kmes_test_instance wanted;
    struct kmes_test* test;
    u64* positions;
    int error;

    if (copy_from_user(&wanted, argument, sizeof(wanted))) return -EFAULT;
    error = check_instance(&wanted);
    if (error) return error;
    positions = copy_positions(&wanted);
    if (IS_ERR(positions)) return PTR_ERR(positions);
    test = make_test(&wanted, positions);
    kfree(positions);
    if (IS_ERR(test)) return PTR_ERR(test);
    INIT_LIST_HEAD(&test->in_tests);
    mutex_lock(&tests_lock);
    wanted.id = test->id = ++last_id;
    mutex_unlock(&tests_lock);
    if (copy_to_user(argument, &wanted, sizeof(wanted))) {
        end_test(test);
        return -EFAULT;
    }

    mutex_lock(&open->lock);
    error = open->test ? -EEXIST : 0;
    if (!error) open->test = test;
    mutex_unlock(&open->lock);
    if (error) {
        end_test(test);
        return error;
    }
    mutex_lock(&tests_lock);
    list_add(&test->in_tests, &tests);
    mutex_unlock(&tests_lock);
    return 0;
}

static struct kmes_instance* find_instance(u32 id) {
    struct kmes_instance* instance = NULL;
    struct kmes_test* test;

    mutex_lock(&tests_lock);
    list_for_each_entry(test, &tests, in_tests) {
        if (test->id != id) continue;
        instance = test->instance;
        kmes_instance_get(instance);
        break;
    }
    mutex_unlock(&tests_lock);
    return instance;
}

/* A join of another instance leaves the first. */
static long join(struct kmes_open* open, u32 __user* argument) {
    struct kmes_instance* instance;
    struct kmes_instance* before;
    u32 id;

    if (get_user(id, argument)) return -EFAULT;
    instance = find_instance(id);
    if (!instance) return -EINVAL;
    mutex_lock(&open->lock);
    before = open->joined;
    open->joined = instance;
    mutex_unlock(&open->lock);
    if (before) kmes_instance_put(before);
    return 0;
}

/* All or nothing: the process gets no descriptor without its number. */
static long give_file(struct kmes_test_operation __user* argument,
                      struct kmes_test_operation* operation, struct file* file) {
    int fd = get_unused_fd_flags(O_RDWR | O_CLOEXEC);

    operation->result = fd;
    if (fd < 0 || copy_to_user(argument, operation, sizeof(*operation))) {
        if (fd >= 0) put_unused_fd(fd);
        fput(file);
        return fd < 0 ? fd : -EFAULT;
    }
    fd_install(fd, file);
    return 0;
}

static long operate(struct kmes_open* open, struct kmes_test_operation __user* argument) {
    struct kmes_test_operation operation;
    struct file* file = NULL;
    struct kmes_test* test;
    int error;

    if (copy_from_user(&operation, argument, sizeof(operation))) return -EFAULT;
    /* The file remains until this call ends. */
    mutex_lock(&open->lock);
    test = open->test;
    mutex_unlock(&open->lock);
    if (!test || operation.cpu >= test->instance->cpus) return -EINVAL;
    error = kmes_test_operate(test, &operation, &file);
    if (error) return error;
    if (file) return give_file(argument, &operation, file);
    return copy_to_user(argument, &operation, sizeof(operation)) ? -EFAULT : 0;
}

long kmes_test_ioctl(struct kmes_open* open, unsigned int command, unsigned long argument) {
    void __user* user = (void __user*)argument;

    switch (command) {
        case KMES_TEST_IOC_CREATE:
        case KMES_TEST_IOC_JOIN:
        case KMES_TEST_IOC_OPERATE:
            break;
        default:
            return -ENOTTY;
    }
    if (!capable(CAP_SYS_ADMIN)) return -EPERM;
    if (command == KMES_TEST_IOC_CREATE) return create(open, user);
    if (command == KMES_TEST_IOC_JOIN) return join(open, user);
    return operate(open, user);
}

void kmes_test_release(struct kmes_open* open) {
    struct kmes_test* test = open->test;

    open->test = NULL;
    if (test) end_test(test);
}
