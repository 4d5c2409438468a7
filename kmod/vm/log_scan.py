# SPDX-License-Identifier: GPL-2.0-only
"""Finds reports of errors in a kernel's log. Every kind has a planted bug that must be reported
(kmod/bugs): otherwise a silent log would prove nothing."""

import re

# Searched in this order; the first match names the report.
KINDS = (
    ("kasan", r"BUG: KASAN: "),
    ("kcsan", r"BUG: KCSAN: "),
    ("atomic-sleep", r"BUG: sleeping function called|BUG: scheduling while atomic|"
                     r"voluntary context switch within RCU"),
    ("rcu", r"WARNING: suspicious RCU usage|Illegal context switch in RCU"),
    ("lockdep", r"WARNING: possible (?:circular|recursive|irq lock)|WARNING: inconsistent lock|"
                r"WARNING: bad unlock|WARNING: .*(?:locks? held|held lock)|"
                r"INFO: trying to register non-static|WARNING: .*-safe -> .*-unsafe|"
                r"Invalid wait context|DEBUG_LOCKS_WARN_ON"),
    ("leak", r"kmemleak: [1-9][0-9]* new suspected|^unreferenced object"),
    ("hung", r"INFO: task .* blocked for more than|soft lockup|hard LOCKUP|detected stalls?|"
             r"self-detected stall|workqueue lockup"),
    ("panic", r"Kernel panic"),
    ("memory", r"Out of memory: Killed|Bad page state|Bad page map|Bad rss-counter|"
               r"ODEBUG: |=+ *BUG |page dumped because|list_(?:add|del) corruption|"
               r"refcount_t: "),
    ("oops", r"Oops|general protection fault|BUG: unable to handle|kernel BUG at|"
             r"double fault|stack segment|invalid opcode|UBSAN|stack-protector"),
    ("warning", r"WARNING: "),
    ("other", r"BUG: |\bBUG\b|Call Trace:|cut here|kernel tried to"),
)

_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in KINDS)
_TIMESTAMP = re.compile(r"^(?:\[[ 0-9.]+\]|\[ *T[0-9]+\]|\[ *C[0-9]+\]|<[0-9]+>| )*")
_MARK = re.compile(r"kmes-vm: (begin|end) (\S+)")

# Bits of /proc/sys/kernel/tainted that do not mean an error: a proprietary, out-of-tree or unsigned
# module, and a staging driver. (Documentation/admin-guide/tainted-kernels.rst)
HARMLESS_TAINT = 1 << 12 | 1 << 13


# A report of KCSAN has at most two stacks, and ends with such a line.
RACE_END = "=" * 40
RACE_LINES = 80
INTERRUPT_ENTRY = re.compile(r"\basm_(?:sysvec_\w+|common_interrupt|exc_nmi)\b")
# Kernel functions that race for every caller. The reasons, in this order:
# - vm_insert_pages changes counts of struct page, also when two processes map one buffer.
# - A fast reader of the clock races with its writer, and retries.
# - A sleeping thread checks its timer while the timer expires.
# - Each thread that opens a file writes the same 0 to shared credentials.
# - An unmap reads which processors use a process while other processors change that.
# - capable sets a bit in the flags of its thread, which an interrupt on that processor reads.
RACING_FUNCTIONS = re.compile(
    r"\b(?:vm_insert_pages|ktime_get_(?:real|mono)_fast_ns|schedule_hrtimeout_range_clock|"
    r"alloc_file_pseudo|flush_tlb_mm_range|capable)\+")


class Report:
    """One report: its kind, the test during which it came (None: outside of tests), its first line.
    """

    def __init__(self, kind, test, line_number):
        self.kind = kind
        self.test = test
        self.line_number = line_number


def kind_of(line):
    """Returns the kind of the report that this log line begins or belongs to, or None."""
    text = _TIMESTAMP.sub("", line)
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return kind
    return None


def is_kernel_race(lines, number):
    """Returns whether the KCSAN report that begins in this line is only about the kernel's code.
    Strict KCSAN finds races there even before a module is loaded. The report is about our modules
    if either stack has a function of them. Two parts of a stack do not count: the functions that
    an interrupt has interrupted, and the callers of RACING_FUNCTIONS."""
    is_ignored = False
    for line in lines[number:number + RACE_LINES]:
        if RACE_END in line:
            return True
        if " bytes by " in line:
            is_ignored = False
        elif INTERRUPT_ENTRY.search(line) or RACING_FUNCTIONS.search(line):
            is_ignored = True
        elif "[kmes" in line and not is_ignored:
            return False
    return True


def scan(lines):
    """Returns all reports in a log. Further lines of a report (a trace, "cut here") count as
    reports too: an additional report is harmless, a missing one is not."""
    test = None
    reports = []
    for number, line in enumerate(lines):
        mark = _MARK.search(line)
        if mark:
            test = mark.group(2) if mark.group(1) == "begin" else None
            continue
        kind = kind_of(line)
        if kind == "kcsan" and is_kernel_race(lines, number):
            continue
        if kind:
            reports.append(Report(kind, test, number))
    return reports


def excerpt(lines, report, before=2, after=25):
    """Returns the lines of the log around a report."""
    return lines[max(0, report.line_number - before):report.line_number + after]
