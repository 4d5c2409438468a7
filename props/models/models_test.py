# SPDX-License-Identifier: MIT
"""models_test.py [--trail] [NAME...]: runs the variants of variants.txt, or those named.

Fails where one ends otherwise than the table says; where a passing one has fewer states than the
table wants, a process that should come to its end never does, or the monitor has a statement that
was never come to; and, over all passing ones of a model, where a statement was reached in none.
--trail shows a short run that violates something, step by step, and judges nothing.
"""
import concurrent.futures
import os
import re
import sys
import tempfile

import models

WORKERS = 2


def endless_processes(model):
    with open(os.path.join(models.HERE, model + ".pml")) as main_file:
        text = main_file.read()
    for part in re.findall(r'^#include "(.*)"', text, re.MULTILINE):
        with open(os.path.join(models.HERE, part)) as part_file:
            text += part_file.read()
    return set(re.findall(r"^proctype (\w+).*/\* endless \*/$", text, re.MULTILINE))


def faults_of(variant, found):
    if found.outcome != variant.outcome:
        log = ["    " + line for line in found.log.splitlines()[-40:]]
        return ["expected: %s; found: %s" % (variant.outcome, found.outcome)] + log
    faults = []
    if found.states < variant.least:
        faults.append("only %d states; at least %d were expected" % (found.states, variant.least))
    endless = endless_processes(variant.model)
    for process, statement in sorted(found.unreached):
        if process == "monitor" or (statement == "-end-" and process not in endless):
            faults.append("never reached: %s in %s" % (statement, process))
    return faults


def idle_statements(variants, found):
    """What no process of any passing variant of its model ever came to."""
    faults = []
    for model in sorted({variant.model for variant in variants}):
        own = [found[variant] for variant in variants if variant.model == model]
        reached = {statement for run in own for _, statement in run.reached}
        unreached = {statement for run in own for _, statement in run.unreached}
        for statement in sorted(unreached - reached):
            faults.append("%s: reached in no passing variant: %s" % (model, statement))
    return faults


def check(variants, scratch, is_all):
    width = max(len(variant.name) for variant in variants)
    line = "%-4s %-14s %-*s  %-27s %-27s %9d states  %s"
    found, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        # The longest first: nothing is waited for at the end.
        order = sorted(variants, key=lambda variant: -variant.least)
        runs = {v: pool.submit(models.run, v, os.path.join(scratch, v.name)) for v in order}
        print("     model          %-*s  %-27s found" % (width, "variant", "expected"))
        for variant in variants:
            found[variant] = runs[variant].result()
            faults = faults_of(variant, found[variant])
            failed += bool(faults)
            print(line % ("FAIL" if faults else "ok", variant.model, width, variant.name,
                          variant.outcome, found[variant].outcome, found[variant].states,
                          variant.shows))
            for fault in faults:
                print("     " + fault)
            sys.stdout.flush()
    idle = idle_statements(variants, found) if is_all else []
    for fault in idle:
        print("FAIL " + fault)
    print("%d variants, %d failed; %d idle statements" % (len(variants), failed, len(idle)))
    return 1 if failed or idle else 0


def main(arguments):
    models.need_tools()
    variants = models.read_variants()
    names = [argument for argument in arguments if argument != "--trail"]
    for name in names:
        if name not in [variant.name for variant in variants]:
            raise SystemExit("no variant is called '%s'; variants.txt has them all" % name)
    chosen = [variant for variant in variants if not names or variant.name in names]
    if not chosen:
        raise SystemExit("variants.txt has no variant")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as scratch:
        if "--trail" not in arguments:
            return check(chosen, scratch, not names)
        for variant in chosen:
            print(models.short_trail(variant, os.path.join(scratch, variant.name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
