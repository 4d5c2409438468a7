# SPDX-License-Identifier: MIT
"""The lines of correct consumers in the table that `kmes-conformance selftest` reads."""

def _lines_impl(ctx):
    ctx.actions.write(ctx.outputs.out, "\n".join(ctx.attr.lines) + "\n")

_lines = rule(
    implementation = _lines_impl,
    attrs = {
        "lines": attr.string_list(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = "A file of lines.",
)

def correct_lines(name, out, table, examples):
    """A line for each correct consumer: correct, name, language, nothing, program and arguments.

    Programs are named from the folder of the runner on.

    Args:
      name: of the target
      out: the file
      table: entries with the fields name, language and run
      examples: {name: language} of the example consumers
    """
    lines = [
        "\t".join(["correct", example, language, "", "testees/" + example])
        for example, language in examples.items()
    ]
    for entry in table:
        program = "testees/correct/%s.program" % entry["name"]
        words = [word.replace("{program}", program) for word in entry["run"]]
        lines.append("\t".join(["correct", entry["name"], entry["language"], ""] + words))
    _lines(name = name, lines = lines, out = out)
