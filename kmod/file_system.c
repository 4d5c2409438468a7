// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file system of our own, that nobody can mount: each buffer has an inode in it, so that all fds
 * of a buffer show one inode number, and those of different buffers different ones (E19). Anonymous
 * inodes would not do: they share one.
 */
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/rcupdate.h>

#include "world.h"

#define KMES_FILE_SYSTEM_MAGIC 0x4B4D4553 /* KMES */

static struct vfsmount* file_system_mount;
static DECLARE_COMPLETION(file_system_is_gone);
static atomic64_t last_inode_number;

static int init_context(struct fs_context* context) {
    return init_pseudo(context, KMES_FILE_SYSTEM_MAGIC) ? 0 : -ENOMEM;
}

static void kill_super_block(struct super_block* block) {
    kill_anon_super(block);
    complete(&file_system_is_gone);
}

/* No owner: our own mount would hold the module for ever. The files do. */
static struct file_system_type file_system = {
    .name = "kmes",
    .init_fs_context = init_context,
    .kill_sb = kill_super_block,
};

int kmes_file_system_init(void) {
    file_system_mount = kern_mount(&file_system);
    return PTR_ERR_OR_ZERO(file_system_mount);
}

/* An fput drops the module before it drops the mount: who comes here can be faster than it. The
 * last steps of it are in the kernel proper, after `complete`; the grace period is for them. */
void kmes_file_system_exit(void) {
    kern_unmount(file_system_mount);
    wait_for_completion(&file_system_is_gone);
    synchronize_rcu();
}

struct inode* kmes_file_system_inode(struct kmes_memory* memory) {
    struct inode* inode = alloc_anon_inode(file_system_mount->mnt_sb);

    if (IS_ERR(inode)) return inode;
    inode->i_ino = (unsigned long)atomic64_inc_return(&last_inode_number);
    /* Some languages compare the length of a file with what they map (testee contract). */
    i_size_write(inode, (loff_t)(1 + 2 * (u64)memory->data_pages) << PAGE_SHIFT);
    return inode;
}

struct file* kmes_memory_open(struct kmes_memory* memory) {
    struct file* file;

    /* What alloc_file_pseudo leaves to its callers; fput gives it back. */
    __module_get(THIS_MODULE);
    ihold(memory->inode);
    file = alloc_file_pseudo(memory->inode, file_system_mount, "kmes", O_RDWR,
                             &kmes_buffer_file_operations);
    if (IS_ERR(file)) {
        iput(memory->inode);
        module_put(THIS_MODULE);
        return file;
    }
    kmes_memory_get(memory);
    kmes_memory_count(memory, 0, 1);
    file->private_data = memory;
    return file;
}
