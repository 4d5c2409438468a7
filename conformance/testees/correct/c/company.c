// SPDX-License-Identifier: MIT
//
// A consumer in a program with other work. A daemon's other activities must not matter.
//
//   WITH_TIMERS     interval timers whose handlers restart nothing: any wait may end with EINTR
//   WITH_HEARTBEAT  comments in the report, from a thread that does nothing else (contract.h)
//   WITH_MONITOR    a thread that attaches every 100 ms, maps, loads positions, and unmaps
//   WITH_GRACE      old buffers are unmapped 100 ms later, by threads that wait for that
//   WITH_EXEC       asks for the number of CPUs, and executes another program with it
//   WITH_SAMPLER    the handlers read positions of the buffer that their thread consumes
//   WITH_CHILDREN   helper processes by fork, vfork, posix_spawn, before and while it consumes
//   WITH_LOCKED     mlock where allowed, madvise, and mincore of every page
//   WITH_MEMORY     a large static array and huge pages
//   WITH_HANDLERS   all threads block all signals, and one takes them by sigwait
//   WITH_LAZY       consumer threads block all signals; another thread uses pages that its SIGSEGV
//                   handler makes accessible
//   WITH_COLLECTOR  the first thread handles faults in its own pages, as a garbage collector does
//   WITH_COMPILER   after 200 events of a CPU, a thread works for 2 s once, and then rests
//   WITH_PAUSES     yields and sleeps in the middle of reading
//   WITH_FILTER     a seccomp filter of its own, and no way to dump or trace it for others
//   WITH_STACKS     consumer threads run on stacks that swapcontext has entered
#include "contract.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

struct consumer {
    int cpu, fd;
    unsigned char* ring;
    uint64_t capacity, generation, position, last;
    struct report report;
    unsigned char* copy;
    bool over;
};

static int cpus;
// The ring of this thread, while it is mapped.
static _Thread_local const unsigned char* volatile sampled;
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

static uint64_t see_at(const unsigned char* ring, int at) {
    return atomic_load_explicit((const _Atomic uint64_t*)(ring + at), memory_order_acquire);
}

#ifdef WITH_TIMERS
static atomic_int ticks;

// Samples the fill of the ring, as a statistics thread would, but in the consumer's own thread.
static void take_sample(void) {
#ifdef WITH_SAMPLER
    static _Atomic uint64_t most_fill;
    const unsigned char* ring = sampled;
    if (ring == NULL) return;
    uint64_t fill = see_at(ring, AT_WRITE_POS) - see_at(ring, AT_TAIL_POS);
    if (fill > atomic_load(&most_fill)) atomic_store(&most_fill, fill);
#endif
}

static void tick(int number) {
    (void)number;
    atomic_fetch_add(&ticks, 1);
    take_sample();
}

static void start_timers(void) {
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) err(1, "timer_create");
    struct itimerspec time = {{0, 7000000}, {0, 7000000}};
    timer_settime(timer, 0, &time, NULL);
}
#else
static void start_timers(void) {}
#endif

#ifdef WITH_MONITOR
static void* monitor(void* total) {
    int* fds = calloc((size_t)cpus, sizeof *fds);
    if (fds == NULL) err(1, "calloc");
    for (;;) {
        struct timespec time = {0, 100000000};
        nanosleep(&time, NULL);
        uint64_t capacity, fill = 0;
        attach_again(fds, cpus, &capacity);
        for (int i = 0; i < cpus; i++) {
            unsigned char* ring = map_ring(fds[i], capacity);
            close(fds[i]);
            fill += see_at(ring, AT_WRITE_POS) - see_at(ring, AT_TAIL_POS);
            unmap_ring(ring, capacity);
        }
        *(volatile uint64_t*)total = fill;
    }
    return NULL;
}

static void start_monitor(void) {
    static uint64_t total;
    pthread_t thread;
    if (pthread_create(&thread, NULL, monitor, &total) != 0) errx(1, "pthread_create");
}
#else
static void start_monitor(void) {}
#endif

#ifdef WITH_GRACE
static void* give_back_later(void* argument) {
    struct consumer* old = argument;
    struct timespec time = {0, 100000000};
    nanosleep(&time, NULL);
    unmap_ring(old->ring, old->capacity);
    close(old->fd);
    free(old);
    return NULL;
}
#endif

static void give_back(const struct consumer* consumer) {
#ifdef WITH_GRACE
    struct consumer* old = malloc(sizeof *old);
    if (old == NULL) err(1, "malloc");
    *old = *consumer;
    pthread_t thread;
    if (pthread_create(&thread, NULL, give_back_later, old) != 0) errx(1, "pthread_create");
    pthread_detach(thread);
#else
    unmap_ring(consumer->ring, consumer->capacity);
    close(consumer->fd);
#endif
}

static int know_cpus(int argc, char** argv) {
    if (argc > 1) return atoi(argv[1]);
    int number = count_cpus();
#ifdef WITH_EXEC
    char text[16];
    sprintf(text, "%d", number);
    execl("/proc/self/exe", argv[0], text, (char*)NULL);
    err(1, "execl");
#endif
    return number;
}

static void have_children(void) {
#ifdef WITH_CHILDREN
    extern char** environ;
    char* arguments[] = {"true", NULL};
    int status;
    pid_t child;
    if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ) != 0) errx(1, "posix_spawnp");
    if (waitpid(child, &status, 0) != child || status != 0) errx(1, "the child `true` failed");
    child = fork();
    if (child == 0) _exit(3);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) errx(1, "fork");
    if (system("exit 5") != 5 << 8) errx(1, "system");
#endif
}

static void hold_memory(struct consumer* consumer) {
    (void)consumer;
#ifdef WITH_LOCKED
    size_t size = METADATA_BYTES + 2 * consumer->capacity;
    if (mlock(consumer->ring, size) != 0) warn("mlock");
    if (madvise(consumer->ring, size, MADV_DONTFORK) != 0) err(1, "madvise: DONTFORK");
    if (madvise(consumer->ring, size, MADV_DONTDUMP) != 0) err(1, "madvise: DONTDUMP");
    if (madvise(consumer->ring, size, MADV_WILLNEED) != 0) err(1, "madvise: WILLNEED");
    unsigned char* there = malloc(size / 4096);
    if (there == NULL || mincore(consumer->ring, size, there) != 0) err(1, "mincore");
    free(there);
#endif
}

static void take_memory(void) {
#ifdef WITH_MEMORY
    static unsigned char large[1u << 30];
    for (size_t i = 0; i < sizeof large; i += sizeof large / 16)
        ((volatile unsigned char*)large)[i] = 1;
    void* huge;
    if (posix_memalign(&huge, 2 << 20, 32 << 20) != 0) errx(1, "posix_memalign");
    madvise(huge, 32 << 20, MADV_HUGEPAGE);
    memset(huge, 1, 32 << 20);
#endif
}

#ifdef WITH_HANDLERS
static void* wait_for_signals(void* set) {
    int number;
    for (;;) sigwait(set, &number);
    return NULL;
}
#endif

#if defined WITH_LAZY || defined WITH_COLLECTOR
enum { LAZY_PAGES = 16, PAGE_BYTES = 4096 };

static unsigned char* lazy;
static atomic_int opened;

static void open_page(int number, siginfo_t* info, void* unused) {
    (void)number;
    (void)unused;
    size_t offset = (size_t)((unsigned char*)info->si_addr - lazy);
    if (offset >= LAZY_PAGES * PAGE_BYTES) _exit(77);
    atomic_fetch_add(&opened, 1);
    mprotect(lazy + offset / PAGE_BYTES * PAGE_BYTES, PAGE_BYTES, PROT_READ | PROT_WRITE);
}

static void touch_lazy_memory(void) {
    for (int i = 0; i < LAZY_PAGES; i++) {
        int before = atomic_load(&opened);
        ((volatile unsigned char*)lazy)[i * PAGE_BYTES]++;
        if (atomic_load(&opened) != before + 1) _exit(78);
    }
    mprotect(lazy, LAZY_PAGES * PAGE_BYTES, PROT_NONE);
}

static void take_lazy_memory(void) {
    lazy = mmap(NULL, LAZY_PAGES * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lazy == MAP_FAILED) err(1, "mmap");
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}
#endif

#ifdef WITH_LAZY
static void* work_in_lazy_memory(void* unused) {
    for (;;) {
        touch_lazy_memory();
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return unused;
}
#endif

#ifdef WITH_COLLECTOR
enum { ROUNDS_TO_A_CHILD = 64 };

static void open_page_too(int number, siginfo_t* info, void* context) {
    open_page(number, info, context);
}

// A child inherits the handler.
static void read_from_a_child(void) {
    pid_t child = fork();
    if (child == 0) {
        touch_lazy_memory();
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(79);
}

// Alternates between two SIGSEGV handlers, which run on the alternate stack.
static void collect(void) {
    static bool is_other;
    static unsigned long rounds;
    touch_lazy_memory();
    is_other = !is_other;
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, there;
    action.sa_sigaction = is_other ? open_page_too : open_page;
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGSEGV, NULL, &there);
    if (there.sa_sigaction != action.sa_sigaction) _exit(80);
    if (++rounds % ROUNDS_TO_A_CHILD == 0) read_from_a_child();
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}
#endif

static void join(pthread_t thread) {
#ifdef WITH_COLLECTOR
    static bool is_ready;
    if (!is_ready) {
        static unsigned char stack[65536];
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
        sigset_t fault;
        sigemptyset(&fault);
        sigaddset(&fault, SIGSEGV);
        pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
        is_ready = true;
    }
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) collect();
#else
    pthread_join(thread, NULL);
#endif
}

static void set_up_signals(void) {
#if defined WITH_LAZY || defined WITH_COLLECTOR
    take_lazy_memory();
#ifdef WITH_LAZY
    pthread_t worker;
    if (pthread_create(&worker, NULL, work_in_lazy_memory, NULL) != 0) errx(1, "pthread_create");
#endif
    // Threads that are created later inherit the mask.
    sigset_t every;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, NULL);
#endif
#ifdef WITH_HANDLERS
    static sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_signals, &all) != 0) errx(1, "pthread_create");
#endif
}

// Works once, as a compiler of a language does when a function has run often.
#ifdef WITH_COMPILER
enum { EVENTS_TO_COMPILE = 200, SECONDS_TO_COMPILE = 2 };

static double processor_time(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) err(1, "clock_gettime");
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void* compile(void* unused) {
    while (processor_time() < SECONDS_TO_COMPILE) continue;
    for (;;) pause();
    return unused;
}

static void compile_if_hot(uint64_t sequence) {
    static atomic_bool begun;
    if (sequence < EVENTS_TO_COMPILE || atomic_exchange(&begun, true)) return;
    pthread_t thread;
    if (pthread_create(&thread, NULL, compile, NULL) != 0) errx(1, "pthread_create");
}
#else
static void compile_if_hot(uint64_t sequence) {
    (void)sequence;
}
#endif

static void pause_a_little(uint64_t sequence) {
    (void)sequence;
#ifdef WITH_PAUSES
    if (sequence % 3 == 0) sched_yield();
    if (sequence % 64 == 0) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
#endif
}

static uint64_t see(struct consumer* consumer, int at) {
    return see_at(consumer->ring, at);
}

static void open_buffer(struct consumer* consumer) {
    int fds[cpus];
    pthread_mutex_lock(&attaching);
    attach_again(fds, cpus, &consumer->capacity);
    for (int i = 0; i < cpus; i++)
        if (i != consumer->cpu) close(fds[i]);
    pthread_mutex_unlock(&attaching);
    consumer->fd = fds[consumer->cpu];
    consumer->ring = map_ring(consumer->fd, consumer->capacity);
    hold_memory(consumer);
    const char* reason = refusal_of(consumer->ring, consumer->capacity);
    if (reason != NULL) {
        report_refusal(&consumer->report, consumer->cpu, reason);
        consumer->over = true;
        return;
    }
    consumer->copy = realloc(consumer->copy, consumer->capacity);
    if (consumer->copy == NULL) err(1, "realloc");
    consumer->generation = see(consumer, AT_GENERATION);
    consumer->position = see(consumer, AT_TAIL_POS);
    sampled = consumer->ring;
}

static void drain(struct consumer* consumer) {
    uint64_t end;
    while (!consumer->over && (end = see(consumer, AT_WRITE_POS)) > consumer->position) {
        uint64_t before = see(consumer, AT_TAIL_POS);
        uint64_t room = room_within(end - consumer->position, consumer->capacity);
        const unsigned char* event =
            consumer->ring + METADATA_BYTES + (consumer->position & (consumer->capacity - 1));
        struct shape shape;
        bool fits = before <= consumer->position && shape_of(event, room, &shape);
        if (fits) memcpy(consumer->copy, event, shape.event_size);
        atomic_thread_fence(memory_order_acquire);
        uint64_t tail = see(consumer, AT_TAIL_POS);
        if (tail > consumer->position) {
            consumer->position = tail;
            continue;
        }
        if (!fits) {
            report_refusal(&consumer->report, consumer->cpu, "corrupt content");
            consumer->over = true;
            break;
        }
        consumer->position += shape.event_size;
        pause_a_little(shape.sequence);
        if (shape.sequence <= consumer->last) continue;
        consumer->last = shape.sequence;
        report_event(&consumer->report, consumer->cpu, consumer->copy, &shape);
        compile_if_hot(shape.sequence);
        consumer->over = is_the_end(consumer->copy, &shape);
    }
    report_flush(&consumer->report);
}

static void* run(void* argument) {
    struct consumer* consumer = argument;
    open_buffer(consumer);
    while (!consumer->over) {
        drain(consumer);
        if (consumer->over) break;
        _Atomic uint32_t* counter = (_Atomic uint32_t*)(consumer->ring + AT_FUTEX_COUNTER);
        uint32_t seen = atomic_load(counter);
        atomic_store((_Atomic uint8_t*)(consumer->ring + AT_NEED_WAKE), 1);
        bool retired = see(consumer, AT_GENERATION) != consumer->generation;
        if (!retired && see(consumer, AT_WRITE_POS) <= consumer->position)
            syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
        consumer->ring[AT_NEED_WAKE] = 0;
        if (!retired) continue;
        drain(consumer);
        if (consumer->over) break;
        have_children();
        sampled = NULL;
        give_back(consumer);
        open_buffer(consumer);
        if (!consumer->over)
            report_line(&consumer->report, 'G', consumer->cpu, consumer->generation);
    }
    report_flush(&consumer->report);
    return NULL;
}

// The filter denies one call, which must still be denied after it is installed for all threads.
static void install_filter(void) {
#ifdef WITH_FILTER
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        err(1, "prctl");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        err(1, "seccomp");
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) != -1 || errno != EXDEV) errx(1, "no filter");
#endif
}

#ifdef WITH_STACKS
static _Thread_local void* own_argument;

static void run_here(void) {
    run(own_argument);
}

static void* run_in_thread(void* argument) {
    static const size_t stack_bytes = 1 << 20;
    ucontext_t here, there;
    own_argument = argument;
    if (getcontext(&there) != 0) err(1, "getcontext");
    there.uc_stack.ss_size = stack_bytes;
    there.uc_stack.ss_sp = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (there.uc_stack.ss_sp == MAP_FAILED) err(1, "mmap");
    there.uc_link = &here;
    makecontext(&there, run_here, 0);
    if (swapcontext(&here, &there) != 0) err(1, "swapcontext");
    return NULL;
}
#else
static void* run_in_thread(void* argument) {
    return run(argument);
}
#endif

int main(int argc, char** argv) {
    start_timers();
    start_heartbeat();
    have_children();
    take_memory();
    set_up_signals();
    install_filter();
    cpus = know_cpus(argc, argv);
    start_monitor();
    struct consumer* consumers = calloc((size_t)cpus, sizeof *consumers);
    pthread_t* threads = calloc((size_t)cpus, sizeof *threads);
    if (consumers == NULL || threads == NULL) err(1, "calloc");
    for (int i = 0; i < cpus; i++) {
        consumers[i].cpu = i;
        if (pthread_create(&threads[i], NULL, run_in_thread, &consumers[i]) != 0)
            errx(1, "pthread_create");
    }
    for (int i = 0; i < cpus; i++) join(threads[i]);
    return 0;
}
