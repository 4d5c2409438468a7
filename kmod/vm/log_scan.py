# SPDX-License-Identifier: GPL-2.0-only
"""What in a kernel's log is a report of something wrong. Every kind has a planted bug that must be
seen (kmod/bugs); silence of the log says nothing without them."""

import re

# In the order in which they are looked for; the first that fits names the report.
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

# Bits of /proc/sys/kernel/tainted: a proprietary or an out-of-tree module, one without signature,
# and a staging driver say nothing of a mistake. (Documentation/admin-guide/tainted-kernels.rst)
HARMLESS_TAINT = 1 << 12 | 1 << 13


# A report of KCSAN: two stacks at most, and a line of these at its end.
RACE_END = "=" * 40
RACE_LINES = 80
INTERRUPT_ENTRY = re.compile(r"\basm_(?:sysvec_\w+|common_interrupt|exc_nmi)\b")
# What these do is the kernel's own affair, whoever has called them: they count struct page, also
# when two processes map one buffer; the fast readers of the clock see its writer at work, and
# read again; who sleeps for a time looks whether the timer has ended that while it does; all who
# open a file write the same 0 to the credentials that they share; and who has unmapped a page asks
# which processors have that process loaded while it changes.
OWN_AFFAIRS = re.compile(
    r"\b(?:vm_insert_pages|ktime_get_(?:real|mono)_fast_ns|schedule_hrtimeout_range_clock|"
    r"alloc_file_pseudo|flush_tlb_mm_range)\+")


class Report:
    """One report: its kind, the test during which it came (None: outside of all), its lines."""

    def __init__(self, kind, test, line_number):
        self.kind = kind
        self.test = test
        self.line_number = line_number


def kind_of(line):
    """The kind of report that this line of a log begins or belongs to, or None."""
    text = _TIMESTAMP.sub("", line)
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return kind
    return None


def is_foreign_race(lines, number):
    """Whether the KCSAN report that begins in this line is of the kernel's own code alone: strict
    KCSAN finds races there, also before any module is loaded. A report that has a function of a
    module of ours in either stack is none of those; but what an interrupt has only interrupted,
    below its entry, has no part in it, nor who has called OWN_AFFAIRS."""
    is_interrupted = False
    for line in lines[number:number + RACE_LINES]:
        if RACE_END in line:
            return True
        if " bytes by " in line:
            is_interrupted = False
        elif INTERRUPT_ENTRY.search(line) or OWN_AFFAIRS.search(line):
            is_interrupted = True
        elif "[kmes" in line and not is_interrupted:
            return False
    return True


def scan(lines):
    """All reports in a log. A line that a report has besides its first (a trace, "cut here") counts
    as a report too: one too many is no harm, one too few is."""
    test = None
    reports = []
    for number, line in enumerate(lines):
        mark = _MARK.search(line)
        if mark:
            test = mark.group(2) if mark.group(1) == "begin" else None
            continue
        kind = kind_of(line)
        if kind == "kcsan" and is_foreign_race(lines, number):
            continue
        if kind:
            reports.append(Report(kind, test, number))
    return reports


def excerpt(lines, report, before=2, after=25):
    """The lines of the log around a report."""
    return lines[max(0, report.line_number - before):report.line_number + after]
