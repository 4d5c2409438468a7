#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validates JSON files by a JSON Schema: validate.py SCHEMA FILE...

Prints a line for each violation, and exits with 1 if there is one. Exits with 77 if the module
jsonschema (Debian: python3-jsonschema) is missing.
"""

import json
import sys

try:
    import jsonschema
except ImportError:
    print("validate.py: no module jsonschema; install python3-jsonschema")
    sys.exit(77)


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"an object has a member twice: {names}")
    return dict(pairs)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    violations = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            report = json.load(file, object_pairs_hook=no_duplicates)
        for error in validator.iter_errors(report):
            place = "/".join(str(part) for part in error.absolute_path)
            print(f"{path}: {place}: {error.message[:300]}")
            violations += 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
