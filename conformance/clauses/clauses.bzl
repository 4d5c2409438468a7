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
        "const std::vector<BrokenTestee>& broken_testees_found_by_search() {",
        "static const std::vector<BrokenTestee> table = {",
    ]
    for case in ctx.attr.searches:
        for name in ctx.attr.searches[case]:
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
        "searches": attr.string_list_dict(mandatory = True),
        "wrongs": attr.string_dict(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = "A C++ file with all_broken_testees() and broken_testees_found_by_search().",
)

def broken_table(name, out, table, searches):
    """A C++ file with all_broken_testees() and broken_testees_found_by_search().

    Args:
      name: of the target
      out: the file
      table: entries with the fields name, case and wrong
      searches: {case: [names of the table]}
    """
    _broken_table(
        name = name,
        out = out,
        cases = {entry["name"]: entry["case"] for entry in table},
        searches = searches,
        wrongs = {entry["name"]: entry["wrong"] for entry in table},
    )
