# SPDX-License-Identifier: MIT
"""broken_testees.py TABLE OUT: the table of broken consumers (broken.json) as C++, for the clause
table."""

import json
import sys

TEXT = """// Made of the headers of the broken consumers.
#include "conformance/clauses/clauses.h"
namespace kmes::conformance {
const std::vector<BrokenTestee>& all_broken_testees() {
    static const std::vector<BrokenTestee> table = {
%s
    };
    return table;
}
const std::vector<BrokenTestee>& broken_testees_also_failed() {
    static const std::vector<BrokenTestee> table = {
%s
    };
    return table;
}
}  // namespace kmes::conformance
"""


def row(entry, case):
    # A JSON string is also a C++ string.
    texts = (entry["name"], case, entry["wrong"])
    return "        {%s}," % ", ".join(json.dumps(text) for text in texts)


def main(table, out):
    with open(table) as file:
        entries = json.load(file)
    meant = [row(entry, entry["case"]) for entry in entries]
    also = [row(entry, case) for entry in entries for case in entry["also"]]
    with open(out, "w") as file:
        file.write(TEXT % ("\n".join(meant), "\n".join(also)))


main(*sys.argv[1:])
