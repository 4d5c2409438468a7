/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * RLIMIT_FSIZE without the signal. A file that would grow past the limit causes EFBIG and SIGXFSZ,
 * whose default action ends the process. Memory files (memfd_create) count as files. The
 * disposition of a signal belongs to the program, so a library must not change it. It therefore
 * blocks SIGXFSZ in the calling thread during the calls that can raise it, and removes the signal
 * that it caused.
 *
 *     struct kmes_file_size_signal saved;
 *     kmes_file_size_signal_block(&saved);
 *     ... ftruncate, fallocate, write: EFBIG is an error like others ...
 *     kmes_file_size_signal_restore(&saved);
 */
#ifndef KMES_USER_FILE_SIZE_SIGNAL_H
#define KMES_USER_FILE_SIZE_SIGNAL_H

#include <signal.h>

#include "kmes/types.h"

KMES_EXTERN_C_BEGIN

struct kmes_file_size_signal {
    sigset_t mask_before;
    bool was_pending; /* a signal of the program, which stays pending */
};

/*
 * Blocks SIGXFSZ in this thread. A restore in the same thread follows each call. Both functions
 * preserve errno, never fail, may be nested, and may be called in a signal handler.
 */
void kmes_file_size_signal_block(struct kmes_file_size_signal* saved);

/* Removes a SIGXFSZ that was not pending before, and restores the signal mask. */
void kmes_file_size_signal_restore(const struct kmes_file_size_signal* saved);

KMES_EXTERN_C_END

#ifdef __cplusplus
namespace kmes {

class FileSizeSignalBlocked {
  public:
    FileSizeSignalBlocked() { kmes_file_size_signal_block(&saved_); }
    ~FileSizeSignalBlocked() { kmes_file_size_signal_restore(&saved_); }
    FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
    FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

  private:
    struct kmes_file_size_signal saved_;
};

}  // namespace kmes
#endif

#endif
