# SPDX-License-Identifier: MIT
"""Builds every mutant of the core, runs the killers on it in the order of their cost, and prints
the table: mutant, its killer, the shortest script. The run fails if a mutant survives that
equivalent.txt does not list, or if a listed one is caught.

Exit status: 0 every mutant is caught or listed; 1 not so; 2 bad usage; 3 the core or a killer
does not work by itself."""

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import core_build
import csource
import equivalent
import killers as killing
import mutate

# The programs of tests that run the hooked core, the cheap ones first.
TEST_PROGRAMS = [
    ("kmes/tests", "bytes_test", {}),
    ("kmes/tests", "writer_test", {}),
    ("kmes/tests", "batch_entries_test", {}),
    ("kmes/tests", "reader_test", {}),
    ("kmes/tests", "first_loss_test", {}),
    ("kmes/tests", "bulk_test", {}),
    ("kmes/tests", "swap_bytes_test", {}),
    ("kmes/tests", "attach_test", {}),
    ("kmes/tests", "torn_test", {}),
    ("kmes/tests", "sleep_test", {}),
    ("kmes/tests", "reader_switch_test", {}),
    ("kmes/tests", "reader_restart_test", {}),
    ("kmes/tests", "literal_writer_test", {}),
    ("kmes/tests", "vectors_test", {}),
    ("kmes/tests", "property_test", {"RC_PARAMS": "max_success=2000 seed=1"}),
    ("kmes/tests", "call_test", {}),
    ("kmes/tests", "call_batch_test", {}),
    ("kmes/tests", "call_migration_test", {}),
    ("kmes/tests", "labels_test", {}),
    ("kmes/tests", "abi_test", {}),
    ("kmes/tests", "event_test", {}),
    ("kmes/tests", "overwrite_test", {}),
]
# All schedules of small worlds; takes seconds for each mutant.
INTERLEAVINGS = [("kmes/tests", "interleaving_test", {})]
# Those that also run the sanitised core: quick ones that access memory in many ways.
SANITISED_PROGRAMS = ["attach_test", "bulk_test", "bytes_test", "event_test", "reader_test"]
SANITISED_PROGRAMS += ["torn_test", "batch_entries_test"]
FUZZ_TARGETS = ["header", "reader", "batch", "script", "hostile", "resize", "schedule"]
DRIVER = "props/mutants/driver"
FLAGS = ["--gtest_fail_fast", "--gtest_color=no"]
HEADERS = ["event.h", "guard.h", "index.h"]
KINDS = ["scripts", "tests", "interleavings", "sanitizer"]
STANDARD_KINDS = "scripts,tests,sanitizer"


@dataclass
class Case:
    """A mutant during its run."""

    mutant: mutate.Mutant
    diff: str
    verdict: str = ""  # caught, listed, survived, stillborn, same-code
    what: str = ""
    script: str = ""
    killer: str = ""
    digest: str = ""
    objects: dict = None
    twin: "Case" = None  # the first mutant with the same code, which runs for both

    @property
    def id(self):
        return self.mutant.id

    def row(self):
        columns = [self.verdict, self.id, f"line {self.mutant.line}: {self.diff}", self.what]
        return " | ".join(columns + [self.script])


class Progress:
    def __init__(self, total, what):
        self.total, self.what, self.done = total, what, 0
        self.lock = threading.Lock()
        self.is_shown = sys.stderr.isatty()

    def step(self, extra=""):
        with self.lock:
            self.done += 1
            if self.is_shown:
                end = "\n" if self.done == self.total else ""
                print(
                    f"\r{self.what} {self.done}/{self.total}{extra}\033[K", end=end, file=sys.stderr
                )


def parse(arguments):
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(prog="tools/kmes mutants", description=__doc__)
    parser.add_argument("--file", action="append", default=[], help="only of this file")
    parser.add_argument("--only", action="append", default=[], help="only IDs that begin so")
    parser.add_argument("--sample", type=int, default=0, help="only so many, spread by --seed")
    parser.add_argument("--seed", type=int, default=1, help="of the sample and of random scripts")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that run at a time")
    parser.add_argument("--scripts", type=int, default=2000, help="random scripts for a mutant")
    parser.add_argument(
        "--seconds-per-mutant",
        type=float,
        default=0,
        help="processor time after which no more random scripts begin (0: all of --scripts)",
    )
    parser.add_argument(
        "--killers",
        default=STANDARD_KINDS,
        help=f"of {', '.join(KINDS)}; the standard is {STANDARD_KINDS}",
    )
    parser.add_argument("--without", action="append", default=[], help="leave this killer out")
    parser.add_argument(
        "--as-found", action="store_true", help="scripts as they were found, not made shorter"
    )
    parser.add_argument("--built", action="store_true", help="leave out tests that are not built")
    parser.add_argument("--root", type=Path, default=here.parent.parent, help=argparse.SUPPRESS)
    parser.add_argument("--bin", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--equivalent", type=Path, default=here / "equivalent.txt")
    options = parser.parse_args(arguments)
    for name in ("jobs", "scripts"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} takes a number from 1")
    for kind in options.killers.split(","):
        if kind not in KINDS:
            parser.error(f"--killers: '{kind}' is none of {', '.join(KINDS)}")
    return parser, options


def all_mutants(root):
    """[(mutant, its file's text)] of the whole core."""
    folder = root / "kmes"
    context = mutate.read_context(folder)
    found = []
    for path in sorted(folder.glob("*.c")) + [folder / name for name in HEADERS]:
        text = path.read_text()
        found.extend((mutant, text) for mutant in mutate.mutants_of(path.name, text, context))
    return found


def selected(mutants, options, parser):
    files = {mutant.file for mutant, _ in mutants}
    for name in options.file:
        if name not in files:
            parser.error(f"--file {name}: no such file; one of: {' '.join(sorted(files))}")
    chosen = [pair for pair in mutants if not options.file or pair[0].file in options.file]
    for prefix in options.only:
        if not any(pair[0].id.startswith(prefix) for pair in chosen):
            parser.error(f"--only {prefix}: no mutant's ID begins so (props/mutants/mutate.py)")
    if options.only:
        chosen = [p for p in chosen if any(p[0].id.startswith(o) for o in options.only)]
    if options.sample:

        def order(pair):
            return hashlib.sha256(f"{options.seed} {pair[0].id}".encode()).digest()

        chosen = sorted(chosen, key=order)[: options.sample]
    return chosen


def test_programs(table, options, is_sanitised=False):
    found = []
    for folder, name, environment in table:
        program = options.bin / folder / name
        if not program.is_file() and options.built:
            continue
        said = name + (" under a sanitizer" if is_sanitised else "")
        command = [str(program)] + FLAGS
        found.append(
            killing.TestProgram(said, command, environment, is_sanitised=is_sanitised)
        )
    return found


def make_killers(options):
    made = []
    kinds = options.killers.split(",")
    driver = [str(options.bin / DRIVER), f"--seed={options.seed}"]
    driver.append(f"--seconds={options.seconds_per_mutant}")
    if options.as_found:
        driver.append("--as-found")
    corpus = [str(path) for path in sorted((options.root / "props/corpus").glob("*.kmes"))]
    if "scripts" in kinds:
        command = driver + [f"--scripts={options.scripts}"] + corpus
        made.append(killing.ScriptDriver("scripts", command, least_seconds=60))
    if "tests" in kinds:
        for name in FUZZ_TARGETS:
            program = options.bin / "fuzz" / f"{name}_corpus_test"
            folder = options.root / "fuzz/corpora" / name
            if options.built and not program.is_file():
                continue
            made.append(killing.CorpusProgram(f"{name}_corpus_test", [str(program), str(folder)]))
        made.extend(test_programs(TEST_PROGRAMS, options))
    if "interleavings" in kinds:
        made.extend(test_programs(INTERLEAVINGS, options))
    if "sanitizer" in kinds:  # last: builds the core again only for survivors
        command = driver + [f"--scripts={max(1, options.scripts // 4)}"] + corpus
        made.append(
            killing.ScriptDriver("sanitizer", command, least_seconds=60, is_sanitised=True)
        )
        table = [row for row in TEST_PROGRAMS if row[1] in SANITISED_PROGRAMS]
        made.extend(test_programs(table, options, is_sanitised=True))
    return [killer for killer in made if killer.name not in options.without]


def error_of(log):
    """Returns the compiler's first error, without its place."""
    errors = [line.split("error: ", 1)[1] for line in log.splitlines() if "error: " in line]
    return errors[0] if errors else "the compiler refuses it"


def compile_all(core, cases, texts, jobs):
    progress = Progress(len(cases), "compiling")
    firsts = {}

    def compile_one(pair):
        index, case = pair
        mutant = case.mutant
        text = mutant.apply(texts[mutant.file])
        case.objects, error = core.compile_mutant(mutant.file, text, f"m{index}")
        if error:
            case.verdict, case.what = "stillborn", error_of(error)
        else:
            case.digest = core.digest(case.objects)
            if case.digest == core.original_digest(case.objects):
                case.verdict, case.what = "same-code", "the compiler makes the same of both"
        progress.step()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, enumerate(cases)))
    for case in cases:
        if not case.verdict:
            case.twin = firsts.setdefault(case.digest, case)


class Preloads:
    """The preloaded objects of one mutant, built on demand."""

    def __init__(self, cores, case, text):
        self.cores, self.case, self.text = cores, case, text
        self.made = {}

    def of(self, is_sanitised):
        if is_sanitised not in self.made:
            core, objects = self.cores[is_sanitised], self.case.objects
            name = f"{self.case.digest}{'s' if is_sanitised else ''}"
            if is_sanitised:
                mutant = self.case.mutant
                objects, error = core.compile_mutant(mutant.file, mutant.apply(self.text), name)
                if error:
                    raise core_build.BuildError(f"{mutant.id} compiles, but not sanitised: {error}")
            self.made[is_sanitised] = core.link(objects, core.scratch / f"{name}.so")
        runtimes = core_build.sanitiser_runtimes() if is_sanitised else []
        return runtimes + [self.made[is_sanitised]]

    def remove(self):
        for library in self.made.values():
            library.unlink()


def run_all(cores, cases, texts, killers, reasons, options):
    todo = [case for case in cases if case.twin is case]
    progress = Progress(len(todo), "running")
    for case in cases:
        if not case.twin:
            print(case.row())

    def run_one(case):
        preloads = Preloads(cores, case, texts[case.mutant.file])
        try:
            killer, finding = killing.first_finding(killers, preloads.of, options.root)
        finally:
            preloads.remove()
        case.verdict = "caught" if finding else "survived"
        if finding:
            case.killer, case.what, case.script = killer.name, finding.what, finding.script
        elif case.id in reasons:
            case.verdict, case.what = "listed", reasons[case.id]
        with progress.lock:
            print(case.row(), flush=True)
        progress.step(f" {case.id}")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run_one, todo))
    for case in cases:
        if case.twin and case.twin is not case:
            case.verdict, case.killer, case.script = (
                case.twin.verdict,
                case.twin.killer,
                case.twin.script,
            )
            case.what = f"{case.twin.what} (same code as {case.twin.id})".strip()
            print(case.row())


def reasons_of(cases, listed):
    """A list entry covers all mutants with the same code, one of which runs for all."""
    reasons = {}
    for case in cases:
        if case.id in listed and case.twin:
            reasons.setdefault(case.twin.id, listed[case.id].reason)
    return reasons


def judge(cases, listed):
    """Returns lines; if there are any, the run fails."""
    complaints = []
    for case in cases:
        if case.verdict == "survived":
            digest = equivalent.digest_of(case.diff)
            complaints.append(
                f"survived: {case.id} {digest} (line {case.mutant.line}: {case.diff})"
            )
        elif case.id in listed and case.verdict not in ("listed", ""):
            why = {"caught": f"caught by {case.what}"}.get(case.verdict, case.verdict)
            complaints.append(f"stale: {case.id} is listed as equivalent, and is {why}")
    return complaints


def print_summary(cases, killers, seconds):
    counts = Counter(case.verdict for case in cases)
    names = ["caught", "listed", "survived", "stillborn", "same-code"]
    said = ", ".join(f"{counts[name]} {name}" for name in names)
    print(f"{len(cases)} mutants: {said}; {seconds:.0f} s")
    by_killer = Counter(case.killer for case in cases if case.verdict == "caught")
    for killer in killers:
        print(f"  {by_killer[killer.name]:5} first caught by {killer.name}")


def work(parser, options, scratch):
    began = killing.now()
    mutants = all_mutants(options.root)
    listed = equivalent.read_list(options.equivalent)
    diffs = {mutant.id: mutant.diff(text) for mutant, text in mutants}
    # The reason of an entry does not hold for another edit.
    current = {i: entry for i, entry in listed.items()
               if i in diffs and entry.digest == equivalent.digest_of(diffs[i])}
    chosen = selected(mutants, options, parser)
    texts = {mutant.file: text for mutant, text in mutants}
    core = core_build.Core(options.root, scratch)
    killers = make_killers(options)
    cores = {False: core}
    originals = {False: [core.link({}, scratch / "original.so")]}
    if any(killer.is_sanitised for killer in killers):
        cores[True] = core_build.Core(options.root, scratch / "sanitised", core_build.SANITISE)
        library = cores[True].link({}, scratch / "sanitised.so")
        originals[True] = core_build.sanitiser_runtimes() + [library]
    traps = core.link_traps(scratch / "traps.so")
    killing.try_killers(killers, originals, traps, options.root)
    cases = [Case(mutant, mutant.diff(text)) for mutant, text in chosen]
    extra = []
    if options.only or options.sample:
        # A listed mutant covers those with the same code: they are compiled, not run.
        chosen_ids = {case.id for case in cases}
        files = {case.mutant.file for case in cases}
        extra = [
            Case(mutant, mutant.diff(text))
            for mutant, text in mutants
            if mutant.id in current and mutant.id not in chosen_ids and mutant.file in files
        ]
    compile_all(core, cases + extra, texts, options.jobs)
    reasons = reasons_of(cases + extra, current)
    run_all(cores, cases, texts, killers, reasons, options)
    complaints = judge(cases + extra, current)
    complaints += equivalent.outdated(listed, diffs)
    for complaint in complaints:
        print(complaint)
    print_summary(cases, killers, killing.now() - began)
    return 1 if complaints else 0


def main(arguments):
    parser, options = parse(arguments)
    options.bin = options.bin.absolute()
    # A run that is ended from outside cleans up, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = Path(tempfile.mkdtemp(prefix="kmes-mutants.", dir=os.environ.get("TEST_TMPDIR")))
    try:
        return work(parser, options, scratch)
    except (core_build.BuildError, csource.SourceError, equivalent.ListError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 3
    except killing.KillerError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 3
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
