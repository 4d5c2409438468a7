# SPDX-License-Identifier: MIT
"""compile_commands.py ROOT OUTPUT: the compilation database of a tree, for clangd and clang-tidy.

Reads what `bazel aquery --output=jsonproto` prints from the standard input. Writes one entry for
each source file to OUTPUT, which is replaced as a whole.

Exit status: 0 written; 1 the input is not what aquery prints, or has no compilation.
"""
import json
import os
import sys

# Options with a value that name output files, which an editor does not need.
WRITES_TO = ("-MF", "-o")
# Options that only Bazel or gcc needs. clang rejects the second one.
NOT_FOR_CLANG = ("-MD", "-fno-canonical-system-headers", "-Werror")
NOT_FOR_CLANG_PREFIX = "-frandom-seed="


def arguments_for_clang(arguments):
    """Returns the command line without the options that only Bazel and gcc need."""
    kept, is_value = [], False
    for argument in arguments:
        if is_value:
            is_value = False
        elif argument in WRITES_TO:
            is_value = True
        elif argument not in NOT_FOR_CLANG and not argument.startswith(NOT_FOR_CLANG_PREFIX):
            kept.append(argument)
    return kept


def source_of(arguments):
    """Returns the source file of the tree that the command line compiles, or None.

    Generated files are not sources: they exist only after a build, and nobody edits them.
    """
    if "-c" not in arguments[:-1]:
        return None
    source = arguments[arguments.index("-c") + 1]
    return None if source.startswith(("bazel-out/", "external/")) else source


def entries_of(actions, root):
    """Returns one entry for each source file, in the order of the names.

    A file that is compiled several times has the shortest command line, which is the build without
    macros of a test.
    """
    commands = {}
    for action in actions:
        arguments = arguments_for_clang(action.get("arguments", []))
        source = source_of(arguments)
        if source is None:
            continue
        if source not in commands or len(arguments) < len(commands[source]):
            commands[source] = arguments
    return [
        {"directory": root, "file": source, "arguments": commands[source]}
        for source in sorted(commands)
    ]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, output = sys.argv[1:]
    try:
        actions = json.load(sys.stdin)["actions"]
        entries = entries_of(actions, root)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit("the standard input is not the JSON of bazel aquery: %s" % error)
    if not entries:
        sys.exit("bazel aquery names no compilation")
    with open(output + ".new", "w") as file:
        json.dump(entries, file, indent=1)
        file.write("\n")
    os.replace(output + ".new", output)
    print("%s: %d files" % (output, len(entries)))


if __name__ == "__main__":
    main()
