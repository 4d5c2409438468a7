# SPDX-License-Identifier: MIT
"""The broken testees' table as C++, so that the clause table can name them."""

def _quoted(text):
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\""

def _broken_table_impl(ctx):
    lines = [
        "// Made from the tables of broken testees.",
        "#include \"conformance/clauses/clauses.h\"",
        "namespace kmes::conformance {",
        "const std::vector<BrokenTestee>& all_broken_testees() {",
        "static const std::vector<BrokenTestee> table = {",
    ]
    for name in ctx.attr.cases:
        lines.append("{%s, %s, %s}," % (
            _quoted(name),
            _quoted(ctx.attr.cases[name]),
            _quoted(ctx.attr.wrongs[name]),
        ))
    lines += [
        "};",
        "return table;",
        "}",
        "const std::vector<BrokenTestee>& broken_testees_also_failed() {",
        "static const std::vector<BrokenTestee> table = {",
    ]
    for case in ctx.attr.also:
        for name in ctx.attr.also[case]:
            lines.append("{%s, %s, %s}," % (
                _quoted(name),
                _quoted(case),
                _quoted(ctx.attr.wrongs[name]),
            ))
    lines += ["};", "return table;", "}", "}"]
    ctx.actions.write(ctx.outputs.out, "\n".join(lines) + "\n")

_broken_table = rule(
    implementation = _broken_table_impl,
    attrs = {
        "cases": attr.string_dict(mandatory = True),
        "also": attr.string_list_dict(mandatory = True),
        "wrongs": attr.string_dict(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = "A C++ file with all_broken_testees() and broken_testees_also_failed().",
)

def broken_table(name, out, table, also):
    """A C++ file with all_broken_testees() and broken_testees_also_failed().

    Args:
      name: of the target
      out: the file
      table: entries with the fields name, case and wrong
      also: {case: [names of the table]}: more consumers that the case fails
    """
    _broken_table(
        name = name,
        out = out,
        also = also,
        cases = {entry["name"]: entry["case"] for entry in table},
        wrongs = {entry["name"]: entry["wrong"] for entry in table},
    )
