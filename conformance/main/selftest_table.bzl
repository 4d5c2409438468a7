# SPDX-License-Identifier: MIT
"""The table that `kmes-conformance selftest` reads, made of the tables of testees."""

def _line(words):
    return "\t".join(words)

def _selftest_table_impl(ctx):
    ctx.actions.write(ctx.outputs.out, "\n".join(ctx.attr.lines) + "\n")

_selftest_table = rule(
    implementation = _selftest_table_impl,
    attrs = {
        "lines": attr.string_list(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = "A file of lines.",
)

def selftest_table(name, out, broken, also, correct, examples):
    """A line for each testee: broken|correct, name, language, case, program and arguments.

    Programs are named from the folder of the runner on.

    Args:
      name: of the target
      out: the file
      broken: entries with the fields name, case and, where it is not C, language
      also: {case: [names of broken ones]}: more consumers that the case fails
      correct: entries with the fields name, language and run
      examples: {name: language} of the example consumers, which are correct
    """
    lines = ["# SPDX-License-Identifier: MIT"]
    for entry in broken:
        name = entry["name"]
        for case in [entry["case"]] + [each for each in also if name in also[each]]:
            lines.append(_line([
                "broken",
                name,
                entry.get("language", "c"),
                case,
                "testees/broken_" + name,
            ]))
    for example, language in examples.items():
        lines.append(_line(["correct", example, language, "", "testees/" + example]))
    for entry in correct:
        program = "testees/correct/%s.program" % entry["name"]
        words = [word.replace("{program}", program) for word in entry["run"]]
        lines.append(_line(["correct", entry["name"], entry["language"], ""] + words))
    _selftest_table(name = name, lines = lines, out = out)
