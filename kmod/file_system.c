// SPDX-License-Identifier: GPL-2.0-only
/*
 * An internal file system that no user can mount. Each buffer has an inode number in it. All fds of
 * a buffer show one number, and those of different buffers different numbers (E19). Anonymous
 * inodes would not work, because they share one number.
 *
 * References that keep the module loaded while anything outside refers to a buffer:
 *
 *   an open file   by its file_operations, as usual
 *   an inode       its own reference, from its creation to its eviction. An O_PATH descriptor or
 *                  a watch refers to the inode, and is no open file of this module.
 *
 * An inode therefore exists only while something outside refers to it. The first open file makes
 * it, and the buffer has only a pointer to it. A later inode of the same buffer has the same
 * number.
 *
 * The code and data of the module outlive the last use by the super block. The reason is that the
 * super block also holds a reference to the module (file_system_type.owner). This reference would
 * keep the module loaded forever. It is therefore released after the mount and taken again at
 * unload, which then waits until the kernel has dropped it. The kernel drops it after kill_sb, with
 * its last access to this file system. A thread that evicts an inode still holds the mount, or a
 * count that the end of the super block waits for.
 */
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "instance.h"

#define KMES_FILE_SYSTEM_MAGIC 0x4B4D4553 /* KMES */

static struct vfsmount* file_system_mount;
static atomic64_t last_inode_number;

/* The last reference to an inode is gone. The root inode has no buffer. */
static void evict_inode(struct inode* inode) {
    struct kmes_memory* memory = inode->i_private;

    truncate_inode_pages_final(&inode->i_data);
    clear_inode(inode);
    if (!memory) return;
    spin_lock(&memory->users_lock);
    if (memory->inode == inode) memory->inode = NULL;
    spin_unlock(&memory->users_lock);
    kmes_memory_put(memory);
    module_put(THIS_MODULE);
}

static const struct super_operations super_operations = {
    .statfs = simple_statfs,
    .drop_inode = generic_delete_inode,
    .evict_inode = evict_inode,
};

static int init_context(struct fs_context* context) {
    struct pseudo_fs_context* pseudo = init_pseudo(context, KMES_FILE_SYSTEM_MAGIC);

    if (!pseudo) return -ENOMEM;
    pseudo->ops = &super_operations;
    return 0;
}

static struct file_system_type file_system = {
    .owner = THIS_MODULE,
    .name = "kmes",
    .init_fs_context = init_context,
    .kill_sb = kill_anon_super,
};

int kmes_file_system_init(void) {
    file_system_mount = kern_mount(&file_system);
    if (IS_ERR(file_system_mount)) return PTR_ERR(file_system_mount);
    module_put(THIS_MODULE); /* the reference of the super block, see above */
    return 0;
}

/* The thread that released the last inode may still hold the mount for some instructions. */
void kmes_file_system_exit(void) {
    int others = module_refcount(THIS_MODULE);

    __module_get(THIS_MODULE);
    kern_unmount(file_system_mount);
    while (module_refcount(THIS_MODULE) > others) msleep(1);
}

u64 kmes_file_system_device(void) {
    return huge_encode_dev(file_system_mount->mnt_sb->s_dev);
}

unsigned long kmes_file_system_new_number(void) {
    return (unsigned long)atomic64_inc_return(&last_inode_number);
}

/* Returns the inode of the buffer, referenced, or NULL if it has none. */
static struct inode* find_inode(struct kmes_memory* memory) {
    struct inode* inode = NULL;

    spin_lock(&memory->users_lock);
    if (memory->inode) inode = igrab(memory->inode); /* NULL: evict_inode will run */
    spin_unlock(&memory->users_lock);
    return inode;
}

/* Sets `inode` as the buffer's inode. If another thread was faster, returns that thread's inode,
 * referenced. */
static struct inode* set_inode(struct kmes_memory* memory, struct inode* inode) {
    struct inode* other = NULL;

    spin_lock(&memory->users_lock);
    if (memory->inode) other = igrab(memory->inode);
    if (!other) memory->inode = inode;
    spin_unlock(&memory->users_lock);
    if (!other) return inode;
    iput(inode);
    return other;
}

static struct inode* make_inode(struct kmes_memory* memory) {
    struct inode* inode = alloc_anon_inode(file_system_mount->mnt_sb);

    if (IS_ERR(inode)) return inode;
    __module_get(THIS_MODULE);
    kmes_memory_get(memory);
    inode->i_private = memory;
    inode->i_ino = memory->inode_number;
    /* Some languages compare the length of a file with their mapping (testee contract). */
    i_size_write(inode, (loff_t)kmes_memory_mapped_pages(memory) << PAGE_SHIFT);
    return set_inode(memory, inode);
}

/* A resize may have come since the caller found the buffer. The nudges of this buffer may have
 * ended because it had no user; this starts them again. */
static void nudge_late(struct kmes_memory* memory) {
    if (!memory->instance->is_real) return;
    spin_lock(&memory->instance->list_lock);
    if (memory->is_retired) kmes_nudge_begin(memory);
    spin_unlock(&memory->instance->list_lock);
}

struct file* kmes_memory_open(struct kmes_memory* memory) {
    struct inode* inode = find_inode(memory);
    struct file* file;

    if (!inode) inode = make_inode(memory);
    if (IS_ERR(inode)) return ERR_CAST(inode);
    /* alloc_file_pseudo leaves this to its callers; fput releases it. */
    __module_get(THIS_MODULE);
    file =
        alloc_file_pseudo(inode, file_system_mount, "kmes", O_RDWR, &kmes_buffer_file_operations);
    if (IS_ERR(file)) {
        iput(inode);
        module_put(THIS_MODULE);
        return file;
    }
    kmes_memory_get(memory);
    kmes_memory_count(memory, 0, 1);
    file->private_data = memory;
    nudge_late(memory);
    return file;
}
