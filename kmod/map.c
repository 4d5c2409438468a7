// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of buffers, and their mappings in processes (5.1.5). It knows no producer.
 *
 *   metadata pages    one, or two in the later forms (docs/layouts.md). The one with need_wake is
 *                     writable, since consumers set it
 *   data pages        the data, twice: never writable (E13), whatever a process requests
 *
 * The protection of the other pages: the area is writable and shared, and has page_mkwrite. The
 * kernel therefore enters every page read-only, at mmap, at a fault and after any mprotect. It
 * calls page_mkwrite before the first write, also for a write by a debugger or /proc/self/mem.
 * page_mkwrite rejects all pages but that of need_wake with SIGBUS.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>

#include "instance.h"

void kmes_memory_count(struct kmes_memory* memory, int mappings, int descriptors) {
    spin_lock(&memory->users_lock);
    memory->mappings += (u32)mappings;
    memory->descriptors += (u32)descriptors;
    /* E12: a consumer that was killed in its sleep leaves the flag set, and every event would cost
     * a wake. The next mapping of the buffer is made after this. */
    if (mappings < 0 && memory->mappings == 0)
        kmes_store_relaxed_u8(memory->buffer.shared.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
    spin_unlock(&memory->users_lock);
}

static int release(struct inode* inode, struct file* file) {
    struct kmes_memory* memory = file->private_data;

    kmes_memory_count(memory, 0, -1);
    kmes_memory_put(memory);
    return 0;
}

/* An area was copied (fork), moved, or split. The file holds the memory for all of them. */
static void area_open(struct vm_area_struct* area) {
    kmes_memory_count(area->vm_private_data, 1, 0);
}

static void area_close(struct vm_area_struct* area) {
    kmes_memory_count(area->vm_private_data, -1, 0);
}

/* Restores pages that a process has given up (MADV_DONTNEED). */
static vm_fault_t area_fault(struct vm_fault* fault) {
    struct kmes_memory* memory = fault->vma->vm_private_data;

    if (fault->pgoff >= kmes_memory_mapped_pages(memory)) return VM_FAULT_SIGBUS;
    fault->page = memory->pages[fault->pgoff];
    get_page(fault->page);
    return 0;
}

/* After 0 the caller has the page locked, and entered writable. */
static vm_fault_t area_page_mkwrite(struct vm_fault* fault) {
    return fault->pgoff == KMES_NEED_WAKE_OFFSET / KMES_PAGE_BYTES ? 0 : VM_FAULT_SIGBUS;
}

static vm_fault_t area_pfn_mkwrite(struct vm_fault* fault) {
    return VM_FAULT_SIGBUS; /* the area has no PFN pages, and none may be written */
}

static const struct vm_operations_struct area_operations = {
    .open = area_open,
    .close = area_close,
    .fault = area_fault,
    .page_mkwrite = area_page_mkwrite,
    .pfn_mkwrite = area_pfn_mkwrite,
};

static void set_area_flags(struct vm_area_struct* area) {
    const vm_flags_t flags = VM_DONTEXPAND | VM_DONTDUMP | VM_MIXEDMAP;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
    vm_flags_set(area, flags);
#else
    area->vm_flags |= flags;
#endif
}

/* Maps the whole buffer at once, and shared: a consumer has no other way to map it (5.1.5). */
static int map(struct file* file, struct vm_area_struct* area) {
    struct kmes_memory* memory = file->private_data;
    unsigned long pages = kmes_memory_mapped_pages(memory);
    int error;

    if (area->vm_pgoff != 0 || vma_pages(area) != pages) return -EINVAL;
    if (!(area->vm_flags & VM_SHARED)) return -EINVAL;
    set_area_flags(area);
    area->vm_private_data = memory;
    area->vm_ops = &area_operations;
    /* Without VM_SHARED: the protection of a page of a private area, which is read-only. */
    area->vm_page_prot = vm_get_page_prot(area->vm_flags & ~VM_SHARED);
    error = vm_insert_pages(area, area->vm_start, memory->pages, &pages);
    if (error) return error;
    kmes_memory_count(memory, 1, 0);
    return 0;
}

const struct file_operations kmes_buffer_file_operations = {
    .owner = THIS_MODULE,
    .release = release,
    .mmap = map,
    .llseek = noop_llseek,
};
