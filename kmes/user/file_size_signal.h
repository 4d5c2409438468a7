/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * RLIMIT_FSIZE without the signal. A file that would grow past the limit is EFBIG and SIGXFSZ,
 * whose default action ends the process. Memory files (memfd_create) count as files. A library must
 * not change the disposition of a signal, which belongs to the program, so it blocks SIGXFSZ in the
 * calling thread for the time of the calls that can raise it, and removes the one that it caused.
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
    bool was_pending; /* the program's own, which stays */
};

/*
 * Blocks SIGXFSZ in this thread. Each call is followed by a restore in the same thread. Both keep
 * errno, never fail, may be nested, and may be called in a signal handler.
 */
void kmes_file_size_signal_block(struct kmes_file_size_signal* saved);

/* Removes a SIGXFSZ that was not pending before, and sets the signal mask as it was. */
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
