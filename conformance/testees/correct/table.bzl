# SPDX-License-Identifier: MIT
"""Correct consumers: designs of their own, none of which the suite may ever fail.

A correct consumer blamed is worse than a broken one missed, so these differ in all that a consumer
is free to choose. An entry:

  name      the target //conformance/testees/correct:<name>
  special   what is special about it, in one line
  language  asm, c, c++, go, python or rust
  source    the file
  build     the compiler and its flags; empty where the program is run as it is
  run       the command line; {program} stands for what was built
  clauses   what it exercises beyond what every consumer does

The file is Starlark for Bazel, and Python for the tests that read it.
"""

_WARN = ["-Wall", "-Wextra", "-Werror"]
_GCC = ["gcc", "-std=gnu11"] + _WARN
_CLANG = ["clang-19", "-std=gnu11"] + _WARN
_RUST = ["rustc", "--edition", "2021", "-O", "-D", "warnings"]
_NATIVE = ["-O3", "-march=native"]

def _entry(name, special, language, source, build, clauses, run = None):
    return dict(
        name = name,
        special = special,
        language = language,
        source = source,
        build = build,
        run = run or ["{program}"],
        clauses = clauses,
    )

def _choice(name, special, clauses, choices, compiler = _GCC, flags = ["-O2"]):
    return _entry(
        name,
        special,
        "c",
        "c/one_per_cpu.c",
        compiler + flags + ["-D" + choice for choice in choices],
        clauses,
    )

def _c(name, special, source, clauses, choices = [], compiler = _GCC, flags = ["-O2"], run = None):
    build = compiler + flags + ["-D" + choice for choice in choices]
    return _entry(name, special, "c", "c/" + source + ".c", build, clauses, run)

CORRECT = [
    # One thread for each CPU, with choices for the wake request, the last checks, and the sleep.
    _choice(
        "seq-cst",
        "Every access of the handshake is sequentially consistent.",
        ["E1", "E2"],
        [],
    ),
    _choice(
        "spin-count",
        "Spins a counted number of loads with the flag up.",
        ["5.1.8.2-4", "contract-3"],
        ["SPIN=SPIN_COUNT", "STORE=BYTE_FENCE", "LOSS=1"],
    ),
    _choice(
        "spin-six-thousand",
        "Spins for six thousand loads with the flag up: most of what it does.",
        ["5.1.8.2-4"],
        ["SPIN=SPIN_COUNT", "TURNS=6000", "STORE=BYTE_FENCE"],
    ),
    _choice(
        "spin-tsc",
        "Spins for a time by rdtsc; xchg raises the flag, a release store lowers it.",
        ["5.1.8.2-4", "E1"],
        ["SPIN=SPIN_TSC", "STORE=BYTE_EXCHANGE", "CLEAR=CLEAR_RELEASE"],
    ),
    _choice(
        "spin-clock",
        "Spins for a time by clock_gettime; a lock or on the stack is the barrier.",
        ["5.1.8.2-4", "E1"],
        ["SPIN=SPIN_CLOCK", "STORE=BYTE_LOCK_OR_STACK"],
    ),
    _choice(
        "spin-before-flag",
        "Spins before it raises the flag.",
        ["5.1.8.2-4"],
        ["SPIN=SPIN_BEFORE_FLAG", "LOSS=1"],
    ),
    _choice(
        "wait-relative",
        "FUTEX_WAIT with a relative limit; mfence is the barrier.",
        ["5.1.8.2-5", "E1"],
        ["WAIT=WAIT_RELATIVE", "STORE=BYTE_MFENCE"],
    ),
    _choice(
        "wait-bitset",
        "FUTEX_WAIT_BITSET without a limit; loads generation before write_pos.",
        ["5.1.8.2-5", "E3"],
        ["WAIT=WAIT_BITSET", "RECHECK=RECHECK_GENERATION_FIRST"],
    ),
    _choice(
        "wait-bitset-monotonic",
        "FUTEX_WAIT_BITSET with an absolute limit by the monotonic clock; counter after the flag.",
        ["5.1.8.2-5", "E2"],
        ["WAIT=WAIT_BITSET_MONOTONIC", "COUNTER=COUNTER_AFTER"],
    ),
    _choice(
        "wait-bitset-realtime",
        "FUTEX_WAIT_BITSET with an absolute limit by the wall clock, and a mask of one bit.",
        ["5.1.8.2-5"],
        ["WAIT=WAIT_BITSET_REALTIME"],
    ),
    _choice(
        "wait-futex2",
        "The call futex_wait of Linux 6.7 where the kernel has it; loads tail_pos, too.",
        ["5.1.8.2-5"],
        ["WAIT=WAIT_FUTEX2", "RECHECK=RECHECK_WITH_TAIL"],
    ),
    _choice(
        "wait-while-same",
        "Waits on while the counter stays; lock bts; leaves the flag up until there is something.",
        ["5.1.8.2-6", "E12"],
        [
            "WAIT=WAIT_WHILE_SAME",
            "STORE=WORD_BIT_TEST_SET",
            "CLEAR=CLEAR_LAZILY",
            "COUNTER=COUNTER_BOTH",
        ],
    ),
    _choice(
        "membarrier",
        "membarrier is the barrier.",
        ["E1"],
        ["STORE=BYTE_MEMBARRIER"],
    ),
    _choice(
        "word-flag",
        "Raises and lowers the flag by 32-bit stores.",
        ["contract-4"],
        ["STORE=WORD_SEQ_CST", "CLEAR=CLEAR_WORD"],
    ),
    _choice(
        "word-exchange",
        "Raises the flag by a 32-bit exchange, then reads the counter.",
        ["E1", "E2"],
        ["STORE=WORD_EXCHANGE", "COUNTER=COUNTER_AFTER"],
    ),
    _choice(
        "word-mfence",
        "A 32-bit release store and mfence.",
        ["E1"],
        ["STORE=WORD_RELEASE_MFENCE", "CLEAR=CLEAR_WORD", "LOSS=1"],
    ),
    _choice(
        "compare-exchange",
        "lock cmpxchg raises the flag, lock and lowers it.",
        ["E1"],
        ["STORE=BYTE_COMPARE_EXCHANGE", "CLEAR=CLEAR_LOCK_AND"],
    ),
    _choice(
        "mutex-as-barrier",
        "A mutex that it takes for another reason is the barrier.",
        ["E1"],
        ["STORE=BYTE_MUTEX"],
    ),
    _choice(
        "flag-lock-or",
        "lock or raises the flag, a sequentially consistent store lowers it.",
        ["E1"],
        ["STORE=BYTE_LOCK_OR", "CLEAR=CLEAR_SEQ_CST", "RECHECK=RECHECK_WITH_TAIL"],
    ),
    _choice(
        "flag-never-cleared",
        "Leaves the flag up for good, as the reference does in its shared mode.",
        ["E12"],
        ["CLEAR=CLEAR_NEVER"],
    ),
    _choice(
        "counter-after-flag",
        "Flag, fence, counter, second check.",
        ["E2"],
        ["COUNTER=COUNTER_AFTER", "STORE=BYTE_FENCE", "LOSS=1"],
    ),

    # The same with other build options.
    _choice("built-static", "Static.", ["contract-1"], [], flags = ["-O2", "-static"]),
    _choice(
        "built-static-pie",
        "Static, at any address.",
        ["contract-1"],
        [],
        flags = ["-O2", "-static-pie"],
    ),
    _choice(
        "built-stripped",
        "Without symbols.",
        ["contract-1"],
        ["SPIN=SPIN_COUNT"],
        flags = ["-O2", "-s"],
    ),
    _choice(
        "built-no-pie",
        "At a fixed address.",
        ["contract-1"],
        [],
        flags = ["-O2", "-no-pie", "-fno-pie"],
    ),
    _choice("built-O0", "Not optimised.", ["contract-1"], ["LOSS=1"], flags = ["-O0"]),
    _choice("built-Os", "Optimised for size.", ["contract-1"], [], flags = ["-Os"]),
    _choice(
        "built-lto",
        "Optimised when it is linked.",
        ["contract-1"],
        [],
        flags = ["-O2", "-flto"],
    ),
    _choice("built-O3-native", "-O3 -march=native.", ["contract-1"], [], flags = _NATIVE),
    _choice("clang", "By clang.", ["contract-1"], ["LOSS=1"], compiler = _CLANG),
    _choice(
        "clang-O0",
        "By clang, not optimised.",
        ["contract-1"],
        [],
        compiler = _CLANG,
        flags = ["-O0"],
    ),
    _choice(
        "clang-O3-native",
        "By clang, -O3 -march=native.",
        ["contract-1"],
        ["STORE=BYTE_FENCE"],
        compiler = _CLANG,
        flags = _NATIVE + ["-Wno-invalid-feature-combination"],
    ),

    # Other designs.
    _c(
        "all-by-waitv",
        "One thread, futex_waitv; maps all new buffers at once, keeps an fd each; writev.",
        "all_by_waitv",
        ["contract-2", "E19", "5.1.8.3"],
    ),
    _c(
        "round-robin",
        "One thread, one event a check, a wait of 20 ms at one CPU after the other.",
        "round_robin",
        ["contract-5", "5.1.8.1"],
    ),
    _c(
        "round-robin-first-cpu",
        "One thread, waits of 90 ms, always at the first CPU, even if that has ended.",
        "round_robin",
        ["contract-5"],
        ["PLACE=1", "BUDGET=8", "MILLISECONDS=90"],
    ),
    _c(
        "round-robin-all-flags",
        "One thread, three events a check, asks all CPUs to wake it and waits at one.",
        "round_robin",
        ["contract-5"],
        ["FLAGS=1", "BUDGET=3"],
        flags = ["-O3"],
    ),
    _c(
        "round-robin-often",
        "One thread, waits of 2 ms at one CPU after the other.",
        "round_robin",
        ["contract-5"],
        ["MILLISECONDS=2", "BUDGET=4"],
    ),
    _c(
        "dispatcher",
        "A dispatcher sleeps for all CPUs; two workers drain what it hands them.",
        "dispatcher",
        ["contract-2", "E19"],
    ),
    _c(
        "event-loop",
        "A main loop on epoll reads; sentries sleep on the futexes and tell it by eventfd.",
        "event_loop",
        ["contract-2", "5.1.8.2"],
    ),
    _c(
        "pipeline",
        "A thread copies ahead and prefetches, another makes the records.",
        "pipeline",
        ["5.1.8.1", "contract-3"],
    ),
    _c(
        "merge",
        "Maps the new buffer first and merges both by sequence until the old one is empty.",
        "merge",
        ["E10", "E21", "5.1.8.3"],
    ),
    _c(
        "zero-copy",
        "No copy: loads tail_pos after the last use and takes back what was torn.",
        "zero_copy",
        ["E6", "E7"],
    ),
    _c(
        "zero-copy-scattered",
        "No copy, and a load of tail_pos after each part.",
        "zero_copy",
        ["E6", "E7"],
        ["SCATTERED=1"],
        compiler = _CLANG,
    ),
    _c(
        "bulk",
        "Copies all that is published at once, one load of tail_pos, cuts what was overtaken.",
        "bulk",
        ["E4", "E6", "E20"],
    ),
    _c(
        "bulk-all-rings",
        "One thread copies from all CPUs before it reads any copy; futex_waitv with a limit.",
        "bulk",
        ["E4", "E6", "contract-5"],
        ["ALL_RINGS_FIRST"],
    ),

    # The instructions that copy an event out of the ring.
    _c("copy-bytes", "Copies byte by byte.", "copies", ["E6"], ["COPY=BYTES"]),
    _c(
        "copy-backwards",
        "Copies from the last byte to the first.",
        "copies",
        ["E6"],
        ["COPY=BACKWARDS"],
    ),
    _c("copy-movsb", "Copies by rep movsb.", "copies", ["E6"], ["COPY=REP_MOVSB"]),
    _c("copy-movsq", "Copies by rep movsq and movsb.", "copies", ["E6"], ["COPY=REP_MOVSQ"]),
    _c("copy-words", "Copies by unaligned words.", "copies", ["E6"], ["COPY=PIECES_OF_64"]),
    _c(
        "copy-masked",
        "Copies by masked AVX-512, the last lanes masked out.",
        "copies",
        ["E6"],
        ["COPY=MASKED_512"],
    ),
    _c("copy-gather", "Copies by AVX2 gather.", "copies", ["E6"], ["COPY=GATHER"]),
    _c(
        "copy-aligned",
        "Copies aligned vectors around the event: more than it, never more than the mapping.",
        "copies",
        ["E6"],
        ["COPY=ALIGNED_AROUND"],
    ),
    _c(
        "copy-touching",
        "Reads the bytes after the event, and does not use them.",
        "copies",
        ["E6"],
        ["COPY=TOUCHING_AHEAD"],
    ),
    _c("copy-lodsq", "Copies by lodsq.", "copies", ["E6"], ["COPY=LODSQ"]),
    _c(
        "copy-lodsq-low",
        "Copies by lodsq with addresses of 32 bits, from rings below 2 GiB.",
        "copies",
        ["E6"],
        ["COPY=LODSQ_LOW", "RING_FLAGS=MAP_32BIT"],
    ),
    _c(
        "copy-patched",
        "Copies by an instruction that it changes for each event, in a mapping of a file.",
        "copies",
        ["E6"],
        ["COPY=PATCHED_CODE"],
    ),
    _c(
        "copy-native",
        "The library's copy, by clang -O3 -march=native.",
        "copies",
        ["E6"],
        compiler = _CLANG,
        flags = _NATIVE + ["-Wno-invalid-feature-combination"],
    ),
    _c(
        "positions-together",
        "Loads write_pos and tail_pos by one 16-byte load.",
        "copies",
        ["5.1.8.1"],
        ["POSITIONS_TOGETHER"],
    ),

    # The protection of the data.
    _c(
        "protects-idle",
        "Closes its data by mprotect before it sleeps, and opens them to read.",
        "copies",
        ["5.1.4"],
        ["CLOSES_DATA"],
    ),
    _c(
        "protects-lazily",
        "Closes its data by mprotect before it sleeps, and opens each page when it faults there.",
        "copies",
        ["5.1.4"],
        ["CLOSES_DATA", "FAULTS_OPEN_DATA"],
    ),

    # Not alone in its process.
    _c(
        "with-timers",
        "Timers interrupt every wait and every load.",
        "company",
        ["5.1.8.2-5"],
        ["WITH_TIMERS"],
    ),
    _c(
        "with-sampler",
        "Handlers of timers read its own buffers' positions, wherever they interrupt it.",
        "company",
        ["5.1.8.2-4"],
        ["WITH_TIMERS", "WITH_SAMPLER"],
    ),
    _c(
        "with-heartbeat",
        "A thread beside the others writes a comment every 17 ms.",
        "company",
        ["contract-3"],
        ["WITH_HEARTBEAT"],
    ),
    _c(
        "with-monitor",
        "A thread beside the others attaches every 100 ms, maps, loads, and unmaps.",
        "company",
        ["contract-1"],
        ["WITH_MONITOR"],
    ),
    _c(
        "with-grace",
        "Gives old buffers back 100 ms after it has left them.",
        "company",
        ["5.1.8.3-6"],
        ["WITH_GRACE"],
    ),
    _c(
        "with-exec",
        "Asks for the number of CPUs, and executes itself with it as an argument.",
        "company",
        ["contract-1"],
        ["WITH_EXEC"],
    ),
    _c(
        "round-robin-with-heartbeat",
        "One thread for all CPUs, with waits of 20 ms; another writes a comment every 17 ms.",
        "round_robin",
        ["contract-3", "contract-5"],
        ["WITH_HEARTBEAT"],
    ),
    _c(
        "with-children",
        "Starts helpers by fork, posix_spawn and system, before and while it consumes.",
        "company",
        ["contract-1"],
        ["WITH_CHILDREN"],
    ),
    _c(
        "with-memory",
        "A large static array, huge pages.",
        "company",
        ["contract-1"],
        ["WITH_MEMORY"],
    ),
    _c(
        "with-handlers",
        "All signals blocked in all threads but one, which waits for them.",
        "company",
        ["contract-1"],
        ["WITH_HANDLERS"],
    ),
    _c(
        "with-lazy-memory",
        "Blocks all signals where it reads, and opens memory of another thread by SIGSEGV.",
        "company",
        ["contract-1"],
        ["WITH_LAZY"],
    ),
    _c(
        "with-compiler",
        "After 200 events of a CPU, another thread works for 2 s beside the sleeping readers.",
        "company",
        ["5.1.8.2"],
        ["WITH_COMPILER"],
    ),
    _c(
        "with-collector",
        "Readers block all signals; the first thread handles SIGSEGV in its own pages, and forks.",
        "company",
        ["contract-1"],
        ["WITH_COLLECTOR"],
    ),
    _c("with-pauses", "Yields and sleeps while it reads.", "company", ["5.1.8.1"], ["WITH_PAUSES"]),
    _c(
        "with-filter",
        "Has a seccomp filter of its own, and cannot be dumped or traced by other users.",
        "company",
        ["contract-1"],
        ["WITH_FILTER"],
    ),
    _c(
        "with-own-stacks",
        "Reads on stacks that swapcontext enters, and not on those of its threads.",
        "company",
        ["5.1.8.1"],
        ["WITH_STACKS"],
    ),
    _c(
        "with-locked-ring",
        "Locks the mapping in memory where it may, and advises the kernel about it.",
        "company",
        ["contract-2"],
        ["WITH_LOCKED"],
    ),
    _c(
        "round-robin-by-timer",
        "One thread for all CPUs, with waits that only the signals of setitimer bring to an end.",
        "round_robin",
        ["contract-5"],
        ["TIMER=1"],
    ),

    # Unusual means in place of the usual ones.
    _c(
        "between-fences",
        "Maps between two pages that nothing may touch, and unmaps them together with the ring.",
        "own_ways",
        ["contract-2"],
        ["PLACE=1"],
    ),
    _c(
        "mapped-over",
        "Takes a ring away by a mapping of nothing over it.",
        "own_ways",
        ["contract-2", "5.1.8.3-6"],
        ["PLACE=2"],
    ),
    _c(
        "by-gather",
        "Reads both positions, and two words of its stack, by one instruction.",
        "own_ways",
        ["5.1.8.1"],
        ["LOADS=1"],
    ),
    _c(
        "by-process-vm-readv",
        "The kernel copies each event out of the ring, by the id of the thread.",
        "own_ways",
        ["5.1.8.1"],
        ["COPY=1"],
    ),
    _c(
        "upper-halves",
        "No libc is between: the upper halves of the registers of an int are anything.",
        "own_ways",
        ["contract-2", "5.1.8.2"],
        ["HALVES=1"],
    ),
    _c(
        "relieved",
        "A signal ends each thread in a sleep, and another one goes on in its place.",
        "own_ways",
        ["contract-5"],
        ["RELAY=1"],
    ),
    _c(
        "without-its-first-thread",
        "The first thread has ended, the others sleep with a limit.",
        "own_ways",
        ["contract-2"],
        ["BESIDE=1"],
    ),
    _c(
        "beside-barriers",
        "A thread that touches no ring waits for the kernel most of the time.",
        "own_ways",
        ["contract-2"],
        ["BESIDE=2"],
    ),

    # Started by other programs.
    _c(
        "by-shell",
        "A shell executes it.",
        "bulk",
        ["contract-1"],
        run = ["sh", "-c", "exec \"$0\"", "{program}"],
    ),
    _c(
        "by-shell-in-background",
        "A shell starts it in the background and waits.",
        "zero_copy",
        ["contract-1"],
        run = ["sh", "-c", "\"$0\" & wait $!", "{program}"],
    ),
    _c(
        "by-timeout",
        "timeout(1) starts it.",
        "merge",
        ["contract-1"],
        run = ["timeout", "900", "{program}"],
    ),
    _c(
        "by-taskset",
        "Bound to one core.",
        "pipeline",
        ["contract-1"],
        run = ["taskset", "1", "{program}"],
    ),
    _c(
        "by-env",
        "env -i starts it: without KMES_REPORT_FD, it reports on its standard output.",
        "bulk",
        ["contract-3"],
        run = ["env", "-i", "{program}"],
    ),
    _c(
        "by-nice",
        "With the lowest priority.",
        "bulk",
        ["contract-1"],
        run = ["nice", "-n", "19", "{program}"],
    ),
    _c(
        "by-ulimit",
        "With 1.5 GB of addresses and 96 fds.",
        "all_by_waitv",
        ["contract-1"],
        run = ["sh", "-c", "ulimit -v 1500000; ulimit -n 96; exec \"$0\"", "{program}"],
    ),

    # Other languages.
    _entry(
        "cpp-coroutines",
        "A coroutine for each CPU, one thread, one sleep for all.",
        "c++",
        "cpp/coroutines.cc",
        ["g++", "-std=c++20", "-O2"] + _WARN,
        ["contract-5"],
    ),
    _entry(
        "cpp-threads",
        "std::jthread and std::atomic_ref; copies blocks of 4 KiB, each with many events.",
        "c++",
        "cpp/threads.cc",
        ["clang++-19", "-std=c++20", "-O2"] + _WARN,
        ["E6", "E19"],
    ),
    _entry(
        "rust-threads",
        "Scoped threads, atomics through raw pointers, the inode to make sure.",
        "rust",
        "rust/threads.rs",
        _RUST,
        ["E1", "E19"],
    ),
    _entry(
        "rust-polling",
        "One thread, system calls of its own, volatile reads, waits of 30 ms.",
        "rust",
        "rust/polling.rs",
        _RUST,
        ["contract-5"],
    ),
    _entry(
        "go-locked",
        "A goroutine for each CPU, each locked to a thread.",
        "go",
        "go/goroutines.go",
        ["go"],
        ["contract-4"],
    ),
    _entry(
        "go-moving",
        "Goroutines that move between threads; limits by the clock; the collector always at work.",
        "go",
        "go/goroutines.go",
        ["go", "-ldflags=-X=main.moving=yes"],
        ["contract-4", "5.1.8.2-5"],
    ),
    _entry(
        "python-mmap",
        "Python with mmap and memoryview: one thread, a lock as the barrier, waits of 50 ms.",
        "python",
        "python/by_mmap.py",
        [],
        ["contract-5", "E1"],
        ["python3", "{program}"],
    ),
]
