/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the tracer's test testee: the calls, the layout of the mapping, and the
 * only state.
 */
#ifndef CONFORMANCE_TRACER_TESTDATA_TESTEE_H_
#define CONFORMANCE_TRACER_TESTDATA_TESTEE_H_

#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The exit status of a mode that this machine does not permit. */
enum { kNotPossibleHere = 77 };
enum { kSlots = 64, kMetadataBytes = 4096, kWord = 128, kNeedWake = 132 };

extern int fds[kSlots];
extern int count;
extern uint64_t capacity;
extern unsigned char* maps[kSlots];
extern int map_flags; /* of attach_and_map, besides MAP_SHARED */

int attach_with(int* array, int* number, uint64_t* bytes); /* 0 or an errno */
void say(const char* text, long value);
size_t mapping_bytes(void);
void attach_all(void);
void attach_and_map(void);
long futex(uint32_t* word, int operation, uint32_t value, const struct timespec* limit);
uint32_t* word_of(int index);
uint32_t load(uint32_t* word);
void on_signal(int number);

/* An action and its name. The list ends with a name that is NULL. */
struct mode {
    const char* name;
    int (*run)(char** argv);
};
extern const struct mode kOtherModes[];      /* of testee_faults.c */
extern const struct mode kProcessModes[];    /* of testee_processes.c */
extern const struct mode kFormModes[];       /* of testee_forms.c */
extern const struct mode kCopyModes[];       /* of testee_copies.c */
extern const struct mode kRegisterModes[];   /* of testee_registers.c */
extern const struct mode kSignalModes[];     /* of testee_signals.c */
extern const struct mode kMaskModes[];       /* of testee_masks.c */
extern const struct mode kOneCpuModes[];     /* of testee_one_cpu.c */
extern const struct mode kStuckModes[];      /* of testee_stuck.c */
extern const struct mode kPatchModes[];      /* of testee_patches.c */
extern const struct mode kArgumentModes[];   /* of testee_arguments.c */
extern const struct mode kProtectionModes[]; /* of testee_protections.c */
extern const struct mode kUserfaultModes[];  /* of testee_userfaultfd.c */

#endif
