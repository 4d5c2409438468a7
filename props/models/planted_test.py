# SPDX-License-Identifier: MIT
"""planted_test.py RECORDER: models_test.py and labels_test.py can fail.

In a copy of this folder, or in the recording of the core, one fault is planted at a time. The
responsible test must fail with the expected words.
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile

import models

SHORT = ["e1-mended"]  # a variant with a very short search

# (test, file of this folder, old text, new text, variants to run, words that the test must say)
PLANTED = [
    ("models", "sleep.pml", "fence(1 + me); /*", "skip; /*", SHORT,
     "found: an_event_is_slept_through"),
    ("models", "sleep.pml", "fence(1 + me); /*", "fence(1 + me /*", SHORT, "found: does not build"),
    ("models", "store_buffers.pml", "    fence(processor);\n    fence(CPU)", "    fence(processor)",
     ["e1-light"], "found: an_event_is_slept_through"),
    ("models", "models.py", "DEPTH = 100000 ", "DEPTH = 20 ", SHORT, "found: cut off"),
    ("models", "futex.pml", "end_asleep:", "asleep:", SHORT, "found: invalid end state"),
    ("models", "variants.txt", "passes 1000                 | EVENTS=2 SWAPS=0 |",
     "passes 9999999              | EVENTS=2 SWAPS=0 |", SHORT, "at least 9999999 were expected"),
    ("models", "variants.txt", "an_event_is_slept_through   | EVENTS=2 SWAPS=0 WITHOUT_W",
     "an_event_is_lost | EVENTS=2 SWAPS=0 WITHOUT_W", ["e1-literal"],
     "found: an_event_is_slept_through"),
    ("models", "sleep_and_swap.pml", ":: events == EVENTS &&", ":: false && events == EVENTS &&",
     SHORT, "invalid end state"),
    ("models", "sleep_and_swap.pml", "proctype monitor() {", "proctype monitor() {\n    false;",
     SHORT, "invalid end state"),
    ("models", "sleep_and_swap.pml", "has_ended_limit = true; asleep_on[me] = AWAKE",
     "has_ended_limit = true; skip", ["e12-time-limit"], "found: an_event_is_slept_through"),
    ("labels", "sleep.pml", "@SLEEP_FENCE sleep.c", "@SLEEP_PAUSE sleep.c", [],
     "SLEEP_PAUSE is no label"),
    ("labels", "sleep.pml", "@SLEEP_FENCE sleep.c", "@SLEEP_FENCE swap.c", [],
     "kmes/swap.c does not use SLEEP_FENCE"),
    ("labels", "sleep.pml", "/* @SLEEP_FENCE sleep.c */", "", [], "does not have SLEEP_FENCE"),
    ("labels", "sleep.pml", "@SLEEP_COUNTER sleep.c", "@SLEEP_GENERATION sleep.c", [],
     "the core does not do SLEEP_GENERATION at that place"),
    ("labels", "ring_producer.pml", "@TAIL_FENCE producer.c", "@WAKE_FENCE producer.c", [],
     "says that it leaves it out"),
    ("labels", "swap.pml", "memory[TAIL_POS(new_buffer)] = tail; ",
     "memory[TAIL_POS(new_buffer)] = 0; ", [], "is not what `labels_test.py --table` says"),
    # The recording of the core without a fence or in another order.
    ("labels", "recorded", "SLEEP_FENCE ", "", [],
     "the core does not do SLEEP_FENCE at that place"),
    ("labels", "recorded", "SLEEP_BARRIER ", "", [],
     "the core does not do SLEEP_BARRIER at that place"),
    ("labels", "recorded", "PUBLISH WAKE_FENCE NEED_WAKE", "WAKE_FENCE NEED_WAKE PUBLISH", [],
     "another order"),
    ("labels", "recorded", "GENERATION RETIRE_COUNTER", "RETIRE_COUNTER GENERATION", [],
     "another order"),
    ("labels", "recorded", "DATA_FENCE RECHECK_TAIL", "RECHECK_TAIL DATA_FENCE", [],
     "another order"),
    ("labels", "recorded", "nudge retired", "nap retired", [], "no path 'nudge' was recorded"),
]


def planted_copy(scratch, name, old, new):
    """A copy of the folder with one text replaced everywhere."""
    folder = os.path.join(scratch, "copy")
    shutil.copytree(models.HERE, folder)
    path = os.path.join(folder, name)
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    with open(path) as file:
        text = file.read()
    if old not in text:
        raise SystemExit("%s: nothing to replace: %s" % (name, old))
    with open(path, "w") as file:
        file.write(text.replace(old, new))
    return folder


def planted_recorder(scratch, recorded, old, new):
    if old not in recorded:
        raise SystemExit("nothing to replace in what was recorded: %s" % old)
    path = os.path.join(scratch, "recorder")
    with open(path, "w") as file:
        file.write("#!/bin/sh\ncat <<'END'\n%sEND\n" % recorded.replace(old, new))
    os.chmod(path, stat.S_IRWXU)
    return path


def fault_of(planted, recorder, recorded):
    """Returns an empty text if the fault was reported; else the output of the test."""
    test, name, old, new, variants, words = planted
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as scratch:
        folder = models.HERE
        if name == "recorded":
            recorder = planted_recorder(scratch, recorded, old, new)
        else:
            folder = planted_copy(scratch, name, old, new)
        script = os.path.join(folder, test + "_test.py")
        arguments = variants if test == "models" else [recorder]
        done = subprocess.run([sys.executable, "-B", script] + arguments, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode and words in done.stdout:
        return ""
    return "status %d:\n%s" % (done.returncode, done.stdout)


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: planted_test.py RECORDER")
    models.need_tools()
    recorder = os.path.abspath(arguments[0])
    recorded = subprocess.run([recorder], check=True, stdout=subprocess.PIPE, text=True).stdout
    failed = 0
    for planted in PLANTED:
        fault = fault_of(planted, recorder, recorded)
        failed += bool(fault)
        judged = "FAIL" if fault else "ok"
        print("%-4s %s: %r -> %r: %s" % (judged, planted[1], planted[2], planted[3], planted[5]))
        if fault:
            print(fault)
        sys.stdout.flush()
    print("%d planted faults, %d not seen" % (len(PLANTED), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
