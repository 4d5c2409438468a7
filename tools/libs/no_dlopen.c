// SPDX-License-Identifier: MIT
//
// The dynamic loader of a static executable: it finds no library. libdw asks for libdebuginfod,
// which it can do without. The dlopen of a static glibc would load the shared libraries of the
// machine, of another glibc than the one in the executable.
#include <dlfcn.h>
#include <stddef.h>

void* dlopen(const char* file, int mode) {
    (void)file;
    (void)mode;
    return NULL;
}

void* dlsym(void* restrict handle, const char* restrict name) {
    (void)handle;
    (void)name;
    return NULL;
}
