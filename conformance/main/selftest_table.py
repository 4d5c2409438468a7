# SPDX-License-Identifier: MIT
"""selftest_table.py BROKEN CORRECT OUT: the table that `kmes-conformance selftest` reads. BROKEN is
broken.json, the table of broken consumers. CORRECT has the lines of the correct ones."""

import json
import sys


def main(broken, correct, out):
    with open(broken) as file:
        entries = json.load(file)
    with open(correct) as file:
        lines = file.read()
    with open(out, "w") as file:
        file.write("# SPDX-License-Identifier: MIT\n")
        for entry in entries:
            program = "testees/broken_" + entry["name"]
            for case in [entry["case"]] + entry["also"]:
                words = ["broken", entry["name"], entry["language"], case, program]
                file.write("\t".join(words) + "\n")
        file.write(lines)


main(*sys.argv[1:])
