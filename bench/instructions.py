# SPDX-License-Identifier: MIT
"""Compares the instructions for an event, counted by callgrind, with the allowed numbers.

  instructions.py check PROGRAM FILE   prints a line for each path; status 1 if a path exceeds its
                                       number in FILE by more than 2 %, or FILE has other paths
  instructions.py update PROGRAM FILE  writes the counts to FILE

PROGRAM is kmes-instructions. FILE has a line for each path: instructions, payload bytes, name.
"""
import os
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.02
# glibc chooses its memcpy by the processor. All processors have this one, so counts agree.
TUNABLES = "glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM"
HEAD = """# SPDX-License-Identifier: MIT
#
# Instructions an event that each path may take, by payload bytes; the clock is not among them.
# `tools/kmes bench instructions` counts them, and `--update` writes this file. CI fails where a
# path takes over 2 % more.
"""


def fail(message):
    sys.exit("instructions.py: " + message)


def total_of(dump):
    """Returns the name that the program gave to the dump, and its instructions."""
    with open(dump) as file:
        text = file.read()
    name = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
    total = re.search(r"^(?:totals|summary): (\d+)$", text, re.MULTILINE)
    return (name.group(1), int(total.group(1))) if name and total else None


def dumps_in(folder):
    """Returns total_of() each dump, in their order."""
    numbered = {}
    for name in os.listdir(folder):
        number = re.search(r"^callgrind\.(\d+)$", name)
        if number:
            numbered[int(number.group(1))] = os.path.join(folder, name)
    found = [total_of(numbered[number]) for number in sorted(numbered)]
    return [each for each in found if each]


def count(program):
    """Returns {(path, payload bytes): instructions for an event}."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list")
        command = ["valgrind", "--tool=callgrind", "--combine-dumps=no"]
        command += ["--callgrind-out-file=" + os.path.join(folder, "callgrind"), program, path]
        environment = dict(os.environ, GLIBC_TUNABLES=TUNABLES)
        try:
            done = subprocess.run(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except FileNotFoundError:
            fail("valgrind is not installed; `tools/kmes setup` installs it")
        if done.returncode != 0:
            fail("%s ended with status %d:\n%s" % (program, done.returncode, done.stdout))
        with open(path) as file:
            listed = [line.rstrip("\n").split("\t") for line in file]
        dumps = dumps_in(folder)
    if [name for name, _ in dumps] != [name for name, _, _ in listed]:
        fail("callgrind has made unexpected dumps: %s" % dumps)
    return {
        (name, int(payload)): round(total / int(events))
        for (name, payload, events), (_, total) in zip(listed, dumps)
    }


def read_allowed(path):
    allowed = {}
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            row = re.match(r"^ *(\d+) +(\d+) +(\S.*)$", line)
            if not row:
                fail("%s:%d: expected `instructions payload_bytes path`" % (path, number))
            allowed[row.group(3), int(row.group(2))] = int(row.group(1))
    return allowed


def check(counted, allowed):
    """Prints a line for each path, and returns the faults."""
    faults = []
    for key in sorted(counted.keys() | allowed.keys()):
        name, payload = key
        if key not in allowed or key not in counted:
            faults.append("%s, %d bytes: %s" % (name, payload, "not in the file" if key in counted
                                                 else "in the file, and there is no such path"))
            continue
        change = counted[key] / allowed[key] - 1
        print("%6d instead of %6d  %+6.1f %%  %4d  %s"
              % (counted[key], allowed[key], 100 * change, payload, name))
        if change > TOLERANCE:
            faults.append("%s, %d bytes: %d instructions, %d are allowed"
                          % (name, payload, counted[key], allowed[key]))
    return faults


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    mode, program, path = sys.argv[1:]
    counted = count(program)
    if mode == "update":
        rows = ["%6d %5d %s\n" % (counted[key], key[1], key[0]) for key in sorted(counted)]
        with open(path, "w") as file:
            file.write(HEAD + "\n" + "".join(rows))
        return 0
    faults = check(counted, read_allowed(path))
    for fault in faults:
        print("FAIL: " + fault)
    if faults:
        print("to accept the new counts: tools/kmes bench instructions --update")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
