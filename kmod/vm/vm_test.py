# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the parts that need no virtual machine: the log's reports, the table, the archive."""

import os
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import guest_tests
import initramfs
import log_scan
import machine
import planted
import suite


class LogScan(unittest.TestCase):
    def test_each_report_has_its_kind(self):
        lines = {
            "[    3.1] BUG: KASAN: use-after-free in f+0x1/0x2 [kmes]": "kasan",
            "[    3.1] BUG: KCSAN: data-race in f / g": "kcsan",
            "[    3.1] BUG: sleeping function called from invalid context at a.c:1": "atomic-sleep",
            "[    3.1] BUG: scheduling while atomic: insmod/44/0x00000002": "atomic-sleep",
            "[    3.1] WARNING: suspicious RCU usage": "rcu",
            "[    3.1] WARNING: possible circular locking dependency detected": "lockdep",
            "[    3.1] WARNING: inconsistent lock state": "lockdep",
            "[    3.1] [ BUG: Invalid wait context ]": "lockdep",
            "[    3.1] kmemleak: 3 new suspected memory leaks": "leak",
            "[    3.1] unreferenced object 0xffff888003 (size 512):": "leak",
            "[    3.1] INFO: task a:1 blocked for more than 120 seconds.": "hung",
            "[    3.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!": "hung",
            "[    3.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:": "hung",
            "[    3.1] Kernel panic - not syncing: Fatal exception": "panic",
            "[    3.1] BUG: Bad page state in process a  pfn:1": "memory",
            "[    3.1] refcount_t: underflow; use-after-free.": "memory",
            "[    3.1] Out of memory: Killed process 1 (a)": "memory",
            "[    3.1] Oops: 0000 [#1] PREEMPT SMP": "oops",
            "[    3.1] BUG: kernel NULL pointer dereference, address: 00": "other",
            "[    3.1] general protection fault, probably for": "oops",
            "[    3.1][  T12] WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2": "warning",
        }
        for line, kind in lines.items():
            self.assertEqual(log_scan.kind_of(line), kind, line)

    def test_lines_of_a_kernel_without_errors_are_no_reports(self):
        for line in ("[    0.1] kasan: KernelAddressSanitizer initialized (generic)",
                     "[    0.1] kcsan: enabled early",
                     "[    0.1] rcu: Preemptible hierarchical RCU implementation.",
                     "[    0.1] kmemleak: Kernel memory leak detector initialized",
                     "[    0.1] INFO: NMI handler (on_nmi [kmes_load]) took too long to run",
                     "[    0.1] kmes: loading out-of-tree module taints kernel.",
                     "[    0.1] Spectre V2 : Mitigation: Retpolines", ""):
            self.assertIsNone(log_scan.kind_of(line), line)

    def test_a_report_between_the_marks_of_a_test_belongs_to_it(self):
        reports = log_scan.scan(["[1] kmes-vm: begin one", "[2] Oops: 0", "[3] kmes-vm: end one",
                                 "[4] Kernel panic"])
        self.assertEqual([(r.kind, r.test, r.line_number) for r in reports],
                         [("oops", "one", 1), ("panic", None, 3)])

    def test_races_of_the_kernel_alone_are_no_reports(self):
        end = "[1] " + "=" * 66
        own = ["[1] BUG: KCSAN: data-race in tick_a / tick_b", "[1]  tick_a+0x1/0x2", end]
        ours = ["[1] BUG: KCSAN: data-race in memcpy / memcpy", "[1]  memcpy+0x1/0x2",
                "[1]  emit+0x1/0x2 [kmes]", end]
        self.assertEqual(log_scan.scan(own), [])
        interrupted = ["[1] BUG: KCSAN: data-race in a / b", "[1] write to 0x1 of 8 bytes by x",
                       "[1]  a+0x1/0x2", "[1]  asm_sysvec_apic_timer_interrupt+0x1b/0x20",
                       "[1]  emit+0x1/0x2 [kmes]", "[1] read to 0x1 of 8 bytes by y"]
        self.assertEqual(log_scan.scan(interrupted + own[1:]), [])
        self.assertEqual(len(log_scan.scan(interrupted + ours[1:])), 1)
        self.assertEqual([r.line_number for r in log_scan.scan(own + ours)], [len(own)])
        for affair in ("vm_insert_pages", "ktime_get_real_fast_ns", "ktime_get_mono_fast_ns",
                       "schedule_hrtimeout_range_clock", "alloc_file_pseudo",
                       "flush_tlb_mm_range", "capable"):
            called = ["[1] BUG: KCSAN: data-race in a / b", "[1] write to 0x1 of 4 bytes by x",
                      "[1]  a+0x1/0x2", f"[1]  {affair}+0x22e/0x410",
                      "[1]  map+0x128/0x1a0 [kmes]", "[1] read to 0x1 of 4 bytes by y"]
            self.assertEqual(log_scan.scan(called + own[1:]), [], affair)
            self.assertEqual(len(log_scan.scan(called + ours[1:])), 1, affair)

    def test_taint_without_a_known_line_is_wrong(self):
        sound = machine.Ended(0, log_scan.HARMLESS_TAINT, "")
        self.assertEqual(machine.what_is_wrong(sound, ["[1] hello"]), [])
        self.assertTrue(machine.what_is_wrong(machine.Ended(0, 512, ""), ["[1] hello"]))
        self.assertTrue(machine.what_is_wrong(machine.Ended(None, 0, "over"), ["[1] hello"]))
        self.assertTrue(machine.what_is_wrong(sound, ["[1] Oops: 0"]))


class Table(unittest.TestCase):
    def read(self, *lines):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            return guest_tests.read_table(file.name)

    def test_rows_are_read(self):
        tests = self.read("# words", "", "one | all | default | 5 | - | //a:b c/d | x | y",
                          "two|6.1 kasan|named|7|no|-|z")
        self.assertEqual(tests[0].command, "x | y")
        self.assertEqual(tests[0].needs, ("//a:b", "c/d"))
        self.assertEqual(tests[1].kernels, ("6.1", "kasan"))
        self.assertEqual(tests[1].limit("kasan", 2), 7 * 2 * guest_tests.SLOW_FACTOR)
        self.assertEqual([t.name for t in guest_tests.choose(tests, "6.1", [])], ["one"])
        self.assertEqual([t.name for t in guest_tests.choose(tests, "6.1", ["t*"])], ["two"])
        for patterns, names in ((["!one", "t*"], ["two"]), (["!t*"], ["one"]),
                                (["*", "!t*"], ["one"]), (["!one"], [])):
            chosen = guest_tests.choose(tests, "6.1", patterns)
            self.assertEqual([t.name for t in chosen], names)
        for kernel, pattern in (("6.12", "two"), ("6.1", "three"), ("6.1", "!three")):
            with self.assertRaises(guest_tests.TableError):
                guest_tests.choose(tests, kernel, [pattern])

    def test_bad_rows_are_refused(self):
        good = "one | all | default | 5 | - | - | x"
        for bad in ("one | all | default", good.replace("all", "5.10"),
                    good.replace("default", "never"), good.replace("5", "soon"),
                    good.replace("one", "One"), good[:-1]):
            with self.assertRaises(guest_tests.TableError, msg=bad):
                self.read(bad)
        with self.assertRaises(guest_tests.TableError):
            self.read(good, good)

    def test_the_tables_of_this_repository_can_be_read(self):
        here = os.path.dirname(os.path.abspath(__file__))
        tests = guest_tests.read_table(os.path.join(here, "tests.txt"))
        bugs = planted.read_planted(os.path.join(here, "..", "bugs", "planted.txt"))
        for kernel in guest_tests.KERNELS:
            self.assertTrue(guest_tests.choose(tests, kernel, []))
            self.assertTrue([bug for bug in bugs if kernel in bug.kernels])

    def test_every_kind_of_report_is_planted(self):
        here = os.path.dirname(os.path.abspath(__file__))
        bugs = planted.read_planted(os.path.join(here, "..", "bugs", "planted.txt"))
        seen_as = {bug.seen_as for bug in bugs}
        kinds = {kind for kind, _ in log_scan.KINDS}
        self.assertEqual(kinds - seen_as, {"hung", "panic", "other"})


class FakeMachine:
    """Prints the given lines, and has a log."""

    def __init__(self, said, log, ended):
        self._said, self._log, self._ended = said, log, ended

    def run(self, seconds, on_line):
        for line in self._said:
            on_line(line.encode())
        return self._ended

    def allow(self, seconds):
        pass

    def log(self):
        return self._log


class SuiteOfTests(unittest.TestCase):
    def run_suite(self, names, *machines):
        tests = [guest_tests.GuestTest([name, "all", "default", "5", "-", "-", "x"], "") for name in
                 names]
        boots = []

        def boot(rest, number):
            boots.append([test.name for test in rest])
            return machines[len(boots) - 1]

        runner = suite.Suite("6.1", 1, boot, False)
        passed = runner.run(tests)
        return passed, runner.passed, runner.failed, boots

    def test_all_pass(self):
        said = ["@kmes-vm begin a", "words", "@kmes-vm end a 0", "@kmes-vm begin b",
                "@kmes-vm end b 0"]
        log = [f"[1] kmes-vm: {mark}" for mark in ("begin a", "end a", "begin b", "end b")]
        result = self.run_suite(["a", "b"], FakeMachine(said, log, machine.Ended(0, 0, "")))
        self.assertEqual(result, (True, 3, 0, [["a", "b"]]))

    def test_status_and_reports_fail_their_test(self):
        said = ["@kmes-vm begin a", "@kmes-vm end a 1", "@kmes-vm begin b", "@kmes-vm end b 0"]
        log = ["[1] kmes-vm: begin a", "[1] kmes-vm: end a", "[1] kmes-vm: begin b", "[1] Oops: 0",
               "[1] kmes-vm: end b"]
        result = self.run_suite(["a", "b"], FakeMachine(said, log, machine.Ended(0, 0, "")))
        self.assertFalse(result[0])
        self.assertGreaterEqual(result[2], 2)

    def test_the_tests_after_a_dead_machine_run_in_another(self):
        dead = FakeMachine(["@kmes-vm begin a"], ["[1] kmes-vm: begin a", "[1] Kernel panic"],
                           machine.Ended(None, 0, "it stopped"))
        good = FakeMachine(["@kmes-vm begin b", "@kmes-vm end b 0"],
                           ["[1] kmes-vm: begin b", "[1] kmes-vm: end b"],
                           machine.Ended(0, 0, ""))
        result = self.run_suite(["a", "b"], dead, good)
        self.assertEqual(result, (False, 2, 1, [["a", "b"], ["b"]]))

    def test_the_tests_are_divided_by_their_limits(self):
        rows = [("a", "default", 5), ("b", "default", 90), ("c", "default", 80),
                ("d", "default", 10), ("e", "each", 7)]
        tests = [guest_tests.GuestTest([name, "all", when, str(seconds), "-", "-", "x"], "")
                 for name, when, seconds in rows]
        for machines, expected in ((1, ["abcde"]), (2, ["abe", "cde"]),
                                   (9, ["be", "ce", "de", "ae"])):
            parts = ["".join(test.name for test in part) for part in suite.divide(tests, machines)]
            self.assertEqual(parts, expected)
        self.assertEqual([len(part) for part in suite.divide(tests[-1:], 2)], [1])

    def run_on_two(self, boot):
        tests = [guest_tests.GuestTest([name, "all", "default", "5", "-", "-", "x"], "") for name in
                 ("a", "b")]
        runner = suite.Suite("6.1", 1, boot, False)
        return runner.run(tests, 2), runner.passed, runner.failed

    def test_machines_that_run_at_once_are_counted_together(self):
        both = threading.Barrier(2, timeout=60)

        def boot(rest, number):
            name = rest[0].name
            vm = FakeMachine([f"@kmes-vm begin {name}", f"@kmes-vm end {name} {number}"],
                             [f"[1] kmes-vm: begin {name}", f"[1] kmes-vm: end {name}"],
                             machine.Ended(0, 0, ""))
            both.wait()
            return vm

        self.assertEqual(self.run_on_two(boot), (False, 3, 1))

    def test_a_machine_that_cannot_be_packed_ends_the_others(self):
        up, ended = threading.Event(), threading.Event()

        class Endless(FakeMachine):
            def run(self, seconds, on_line):
                up.set()
                ended.wait(60)
                return machine.Ended(None, 0, "it stopped")

            def end(self):
                ended.set()

        def boot(rest, number):
            if number == 0:
                return Endless([], [], None)
            up.wait(60)
            raise OSError("no space")

        with self.assertRaises(OSError):
            self.run_on_two(boot)
        self.assertTrue(ended.is_set())

    def test_a_machine_that_does_not_boot_is_a_failure(self):
        dead = FakeMachine([], ["[1] hello"], machine.Ended(None, 0, "it stopped"))
        self.assertEqual(self.run_suite(["a"], dead)[:3], (False, 0, 1))


class Archive(unittest.TestCase):
    def test_entries_have_the_format_of_newc(self):
        image = initramfs.Initramfs()
        image.add_bytes("/a/b", b"words", 0o755)
        image.add_link("/c", "a/b")
        with tempfile.NamedTemporaryFile() as file:
            image.write(file.name)
            archive = initramfs.read_file(file.name)
        self.assertEqual(archive[:6], b"070701")
        self.assertEqual(len(archive) % 4, 0)
        at = archive.index(b"a/b\0") - 110
        self.assertEqual(int(archive[at + 14:at + 22], 16), 0o100755)
        self.assertEqual(int(archive[at + 54:at + 62], 16), 5)
        self.assertIn(b"words\0\0\0", archive)
        self.assertTrue(archive.index(b"TRAILER!!!") > at)


if __name__ == "__main__":
    unittest.main()
