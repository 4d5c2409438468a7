# SPDX-License-Identifier: MIT
"""A testee of the tracer's own tests: ctypes and mmap, which dups the fd before it maps it."""

import ctypes
import mmap

SYS_FUTEX = 202
SYS_ATTACH = 1091
FUTEX_WAIT = 0
SLOTS = 64
WORD_AT = 128

libc = ctypes.CDLL(None, use_errno=True)
fds = (ctypes.c_int * SLOTS)()
count = ctypes.c_int(SLOTS)
capacity = ctypes.c_uint64()
if libc.syscall(SYS_ATTACH, fds, ctypes.byref(count), ctypes.byref(capacity)) != 0:
    raise OSError(ctypes.get_errno(), "kmes_attach")

maps = [mmap.mmap(fds[i], 4096 + 2 * capacity.value) for i in range(count.value)]
word = ctypes.c_uint32.from_buffer(maps[1], WORD_AT)
libc.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAIT, 0, None, None, 0)
print("attached %d, byte %d, word %d" % (count.value, maps[0][4096 + 65536 + 5], word.value))
