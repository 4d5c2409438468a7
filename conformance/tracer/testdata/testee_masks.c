/* SPDX-License-Identifier: MIT
 *
 * The part of the tracer's test testee whose threads read the ring with all signals blocked. The
 * program also has a handler of SIGSEGV for memory of its own.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The test writes these into the data of the ring, and the testee waits for them without a
 * system call. */
enum { kPage = 4096, kWritePos = 64, kReaderGoes = kPage + 100, kMainGoes = kPage + 108 };
/* For the test: the thread numbers of the readers, 4 bytes each, in a free place of the page. */
enum { kReaderNumber = 1024 };
enum { kReaders = 2 };

static unsigned char* own_page;
static volatile int handled[2];

static void open_page(int which, const siginfo_t* info) {
    if ((unsigned char*)info->si_addr != own_page) _exit(80);
    ++handled[which];
    if (mprotect(own_page, kPage, PROT_READ | PROT_WRITE) != 0) _exit(81);
}

static void first_handler(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    open_page(0, info);
}

static void second_handler(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    open_page(1, info);
}

typedef void (*handler)(int, siginfo_t*, void*);

static void set_handler(handler function) {
    struct sigaction action = {.sa_sigaction = function, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSEGV, &action, NULL) != 0) _exit(82);
}

static int has_handler(handler function) {
    struct sigaction there;
    sigaction(SIGSEGV, NULL, &there);
    return there.sa_sigaction == function;
}

/* 0: the handler has run once. */
static int fault_in_own_page(int which) {
    int before = handled[which];
    mprotect(own_page, kPage, PROT_NONE);
    *(volatile unsigned char*)own_page = 1;
    return handled[which] == before + 1 ? 0 : 83;
}

static int status_of(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 84;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 85;
}

static uint64_t read_ring(void) {
    return *(volatile uint64_t*)(maps[0] + kWritePos);
}

static atomic_int ready;
static volatile int over;

static void* read_on_command(void* index) {
    const size_t which = (uintptr_t)index;
    ((volatile int32_t*)(maps[0] + kReaderNumber))[which] = (int32_t)syscall(SYS_gettid);
    ++ready;
    while (*(volatile unsigned char*)(maps[0] + kReaderGoes + which) == 0 && !over) continue;
    read_ring();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGSEGV) || !sigismember(&mask, SIGTRAP)) _exit(86);
    return NULL;
}

/* --- actions of the first thread while another one has faulted at a guard */

static int act_fault(void) {
    *(volatile unsigned char*)own_page = 1;
    return handled[0] == 1 ? 0 : 83;
}

static int act_ask(void) {
    return has_handler(first_handler) ? 0 : 87;
}

static int act_change(void) {
    set_handler(second_handler);
    if (!has_handler(second_handler)) return 87;
    return fault_in_own_page(1);
}

static int act_fork(void) {
    pid_t child = fork();
    if (child == 0) _exit(has_handler(first_handler) ? fault_in_own_page(0) : 87);
    return status_of(child);
}

static int act_vfork(void) {
    pid_t child = vfork();
    if (child == 0) _exit(has_handler(first_handler) ? 0 : 87);
    return status_of(child);
}

static void* fault_in_thread(void* unused) {
    (void)unused;
    if (!has_handler(first_handler) || fault_in_own_page(0) != 0) _exit(87);
    return NULL;
}

static int act_clone(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fault_in_thread, NULL) != 0) return 88;
    pthread_join(thread, NULL);
    return handled[0] == 1 ? 0 : 83;
}

static int act_execute(void) {
    execl("/proc/self/exe", "testee", "nothing", (char*)NULL);
    return 89;
}

static int act_end(void) {
    syscall(SYS_exit_group, 0);
    return 89;
}

static volatile int interrupted;

static void read_in_handler(int number) {
    (void)number;
    read_ring();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!sigismember(&mask, SIGSEGV)) _exit(91);
    ++interrupted;
}

/* The handler reads the ring with all signals blocked, and the old mask comes back. */
static int act_signal(void) {
    struct sigaction action = {.sa_handler = read_in_handler};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    if (interrupted != 1) return 92;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (sigismember(&mask, SIGSEGV)) return 93;
    return fault_in_own_page(0);
}

static const struct {
    const char* name;
    int (*act)(void);
} kActions[] = {
    {"fault", act_fault}, {"ask", act_ask},       {"change", act_change},
    {"fork", act_fork},   {"vfork", act_vfork},   {"clone", act_clone},
    {"end", act_end},     {"signal", act_signal}, {"execute", act_execute},
};

static int act_named(const char* name) {
    for (size_t i = 0; i < sizeof kActions / sizeof *kActions; ++i) {
        if (strcmp(kActions[i].name, name) == 0) return kActions[i].act();
    }
    return 94;
}

static int mode_beside_a_fault(char** argv) {
    own_page = mmap(NULL, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_handler(first_handler);
    attach_and_map();
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before);
    pthread_t readers[kReaders];
    int count_of_readers = argv[3] == NULL ? kReaders : 0;
    for (int i = 0; i < count_of_readers; ++i)
        pthread_create(&readers[i], NULL, read_on_command, (void*)(uintptr_t)i);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (ready < count_of_readers) continue;
    maps[0][kNeedWake] = 1; /* for the test: no thread makes a system call any more */
    while (*(volatile unsigned char*)(maps[0] + kMainGoes) == 0) continue;
    int result = act_named(argv[2]);
    over = 1;
    for (int i = 0; i < count_of_readers; ++i) pthread_join(readers[i], NULL);
    return result;
}

/* --- the permitted actions of a thread that blocks all signals */

static volatile int seen_mask_blocks_fault;

static void note_mask(int number) {
    (void)number;
    read_ring();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen_mask_blocks_fault = sigismember(&mask, SIGSEGV);
    ++interrupted;
}

static void check_context(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)info;
    const ucontext_t* frame = context;
    read_ring();
    seen_mask_blocks_fault = sigismember(&frame->uc_sigmask, SIGSEGV);
    ++interrupted;
}

static void interrupt_by(long result, int is_handled) {
    say("interrupted", result == -1 && errno == EINTR);
    say("handled", interrupted == is_handled);
    read_ring();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    say("blocked again", sigismember(&mask, SIGSEGV) && sigismember(&mask, SIGUSR1));
}

static void wait_with_masks(void) {
    struct sigaction action = {.sa_handler = note_mask};
    sigaction(SIGUSR1, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    raise(SIGUSR1);
    interrupt_by(sigsuspend(&none), 1);
    say("blocks in the handler", seen_mask_blocks_fault);
    raise(SIGUSR1);
    interrupt_by(ppoll(NULL, 0, NULL, &none), 2);
    raise(SIGUSR1);
    interrupt_by(pselect(0, NULL, NULL, NULL, NULL, &none), 3);
    int file = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    raise(SIGUSR1);
    interrupt_by(epoll_pwait(file, &event, 1, -1, &none), 4);
}

static void be_sent_a_fault(void) {
    raise(SIGSEGV);
    read_ring();
    sigset_t set;
    sigpending(&set);
    say("pending", sigismember(&set, SIGSEGV));
    read_ring();
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    siginfo_t info;
    say("taken", sigwaitinfo(&set, &info) == SIGSEGV);
    sigpending(&set);
    say("pending", sigismember(&set, SIGSEGV));
    say("handled", handled[0]);
}

static int mode_all_blocked(char** argv) {
    own_page = mmap(NULL, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_handler(first_handler);
    struct sigaction trap = {.sa_handler = on_signal};
    sigaction(SIGTRAP, &trap, NULL);
    attach_and_map();
    sigset_t every;
    sigfillset(&every);
    sigprocmask(SIG_BLOCK, &every, NULL);
    read_ring();
    wait_with_masks();
    be_sent_a_fault();
    /* A signal that is not blocked finds the mask in its frame. */
    struct sigaction action = {.sa_sigaction = check_context, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &action, NULL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    seen_mask_blocks_fault = 0;
    raise(SIGUSR2);
    say("in the frame", seen_mask_blocks_fault);
    read_ring();
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    say("blocked", sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGUSR2));
    say("its handler", has_handler(first_handler));
    sigaction(SIGTRAP, NULL, &trap);
    say("its trap handler", trap.sa_handler == on_signal);
    if (argv[2] != NULL && strcmp(argv[2], "fault") == 0) return fault_in_own_page(0);
    return 0;
}

const struct mode kMaskModes[] = {
    {"beside-a-fault", mode_beside_a_fault},
    {"all-blocked", mode_all_blocked},
    {NULL, NULL},
};
