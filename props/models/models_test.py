# SPDX-License-Identifier: MIT
"""models_test.py [--trail] [NAME...]: runs the variants of variants.txt, or the named ones.

Fails if a variant ends differently from the table. A passing one also fails if it has fewer
states than the table demands, if a process never reaches its end, or if the monitor has an
unreached statement. Over all passing variants of a model, every statement must be reached. Each
assertion of a model must be the outcome of some variant, which shows that it can fail. --trail
prints a short violating run, step by step, and judges nothing.
"""
import concurrent.futures
import os
import re
import sys
import tempfile

import models

WORKERS = 2


def text_of(model):
    with open(os.path.join(models.HERE, model + ".pml")) as main_file:
        text = main_file.read()
    for part in re.findall(r'^#include "(.*)"', text, re.MULTILINE):
        with open(os.path.join(models.HERE, part)) as part_file:
            text += part_file.read()
    return text


def endless_processes(model):
    return set(re.findall(r"^proctype (\w+).*/\* endless \*/$", text_of(model), re.MULTILINE))


def unviolated_assertions(variants):
    """Returns the assertions that no variant of their model violates: can they fail at all?"""
    violated = {(variant.model, variant.outcome) for variant in variants}
    return ["%s: violated by no variant: %s" % (model, name)
            for model in sorted({variant.model for variant in variants})
            for name in sorted(set(re.findall(r"assert\(!(\w+)\)", text_of(model))))
            if (model, name) not in violated]


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
    """Returns the statements that no process of any passing variant of its model ever reached."""
    faults = []
    for model in sorted({variant.model for variant in variants}):
        own = [found[variant] for variant in variants if variant.model == model]
        reached = {statement for run in own for _, statement in run.reached}
        unreached = {statement for run in own for _, statement in run.unreached}
        for statement in sorted(unreached - reached):
            faults.append("%s: reached in no passing variant: %s" % (model, statement))
    return faults


def check(variants, scratch, is_all, unviolated):
    width = max(len(variant.name) for variant in variants)
    line = "%-4s %-14s %-*s  %-27s %-27s %9d states  %s"
    found, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        # The longest first, so that nothing is waited for at the end.
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
    for fault in unviolated + idle:
        print("FAIL " + fault)
    print("%d variants, %d failed; %d idle statements" % (len(variants), failed, len(idle)))
    return 1 if failed or unviolated or idle else 0


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
            return check(chosen, scratch, not names, unviolated_assertions(variants))
        for variant in chosen:
            print(models.short_trail(variant, os.path.join(scratch, variant.name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
