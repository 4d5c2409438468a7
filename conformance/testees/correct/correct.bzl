# SPDX-License-Identifier: MIT
"""Builds correct consumers: each by the compiler and flags of its entry, the same in every
configuration. They are built only on request."""

def correct_testees(table, headers, visibility):
    """A program for each entry of table.bzl, `all-consumers` for all of them.

    Args:
      table: the entries
      headers: what C and C++ sources include
      visibility: of the programs
    """
    for entry in table:
        name = entry["name"]
        if not entry["build"]:
            native.genrule(
                name = name,
                srcs = [entry["source"]],
                outs = [name + ".program", name + ".toolchain"],
                cmd = "cp $< $(location %s.program) && echo as it is > $(location %s.toolchain)" %
                      (name, name),
                tags = ["manual"],
                visibility = visibility,
            )
            continue
        words = " ".join(["'%s'" % word for word in entry["build"]])
        native.genrule(
            name = name,
            srcs = [entry["source"]] + headers,
            outs = [name + ".program", name + ".toolchain"],
            cmd = "$(location build.sh) $(location %s.program) $(location %s.toolchain) " %
                  (name, name) + "$(location %s) %s" % (entry["source"], words),
            tools = ["build.sh"],
            tags = ["manual"],
            visibility = visibility,
        )
    native.filegroup(
        name = "all-consumers",
        srcs = [entry["name"] for entry in table],
        tags = ["manual"],
        visibility = visibility,
    )
