// SPDX-License-Identifier: MIT
//
// A testee for calls_test: it accesses a buffer through assembly without unwind tables. A comment
// at the end of a line is the text that the test expects.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kWritePos = 64, kMetadataBytes = 4096 };

uint64_t load_leaf(const void* from);
uint64_t load_pushed(const void* from);
uint64_t load_aligned(const void* from);
uint64_t load_twice(const void* from);
uint64_t load_deep(const void* from);
uint64_t load_by_jump(const void* from);
uint64_t load_in_loop(const void* from);

// load_pushed has the return address of a different call of load_pushed below its own. The caller
// of that call must not be shown.
// load_in_loop begins in the middle of its loop, which follows a jump.
__asm__(
    ".text\n"
    ".macro begin name\n"
    ".globl \\name\n"
    ".type \\name, @function\n"
    "\\name:\n"
    ".endm\n"
    ".macro end name\n"
    ".size \\name, . - \\name\n"
    ".endm\n"
    "begin load_leaf\n"
    "    mov (%rdi), %rax\n"
    "    ret\n"
    "end load_leaf\n"
    "begin load_pushed\n"
    "    push %rbx\n"
    "    sub $24, %rsp\n"
    "    lea .Lelsewhere(%rip), %rax\n"
    "    mov %rax, (%rsp)\n"
    "    mov (%rdi), %rax\n"
    "    add $24, %rsp\n"
    "    pop %rbx\n"
    "    ret\n"
    "    call load_pushed\n"
    ".Lelsewhere:\n"
    "    ret\n"
    "end load_pushed\n"
    "begin load_aligned\n"
    "    push %rbp\n"
    "    mov %rsp, %rbp\n"
    "    and $-64, %rsp\n"
    "    mov (%rdi), %rax\n"
    "    leave\n"
    "    ret\n"
    "end load_aligned\n"
    "begin load_twice\n"
    "    sub $8, %rsp\n"
    "    call load_leaf\n"
    "    call load_leaf\n"
    "    add $8, %rsp\n"
    "    ret\n"
    "end load_twice\n"
    "begin load_deep\n"
    "    push %rbp\n"
    "    xor %ebp, %ebp\n"
    "    call load_twice\n"
    "    pop %rbp\n"
    "    ret\n"
    "end load_deep\n"
    "begin load_by_jump\n"
    "    jmp load_leaf\n"
    "end load_by_jump\n"
    "begin load_in_loop\n"
    "    push %rbx\n"
    "    mov $2, %ebx\n"
    "    jmp 2f\n"
    "1:  mov (%rdi), %rax\n"
    "    dec %ebx\n"
    "2:  test %ebx, %ebx\n"
    "    jne 1b\n"
    "    pop %rbx\n"
    "    ret\n"
    "end load_in_loop\n");

volatile uint64_t sum;
#define add(value) sum = sum + (value)
uint64_t (*volatile by_pointer)(const void*) = load_leaf;

// Its frame pointer, if it has one, leads to main.
__attribute__((noinline)) void drain(const char* base) {
    const char* write_pos = base + kWritePos;
    add(load_leaf(write_pos));     // drain via load_leaf
    add(load_pushed(write_pos));   // drain via load_pushed
    add(load_aligned(write_pos));  // drain via load_aligned
    add(load_twice(write_pos));    // drain via load_twice
    add(load_deep(write_pos));     // drain via load_deep
    add(load_by_jump(write_pos));  // drain via load_leaf
    add(by_pointer(write_pos));    // drain via load_leaf
    add(load_in_loop(write_pos));  // drain via load_in_loop
}

int main(void) {
    int fds[64];
    int count = 64;
    uint64_t capacity = 0;
    if (syscall(1091, fds, &count, &capacity) != 0) return 3;
    void* at =
        mmap(0, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (at == MAP_FAILED) return 4;
    drain(at);
    return 0;
}
