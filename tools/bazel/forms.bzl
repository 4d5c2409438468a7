# SPDX-License-Identifier: MIT
"""Tests and programs in the other forms of the layout (docs/layouts.md). Bazel compiles such a
target, and all its libraries, once more with KMES_LAYOUT of the form. No library needs a second
target for it."""

load("//tools/bazel:tags.bzl", "ONE_CONFIGURATION")

# KMES_LAYOUT. Form A is what every target has without this file.
_NUMBERS = {
    "b": 2,
    "c": 3,
    "d": 4,
}

_COPT = "//command_line_option:copt"

def _to_form_impl(settings, attributes):
    return {_COPT: settings[_COPT] + ["-DKMES_LAYOUT=%d" % _NUMBERS[attributes.form]]}

_to_form = transition(
    implementation = _to_form_impl,
    inputs = [_COPT],
    outputs = [_COPT],
)

def _in_form_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(
        output = program,
        target_file = ctx.executable.program,
        is_executable = True,
    )
    return [
        DefaultInfo(
            executable = program,
            runfiles = ctx.attr.program[0][DefaultInfo].default_runfiles,
        ),
        testing.TestEnvironment(ctx.attr.env),
    ]

_ATTRIBUTES = {
    "program": attr.label(cfg = _to_form, executable = True, mandatory = True),
    "form": attr.string(mandatory = True, values = _NUMBERS.keys()),
    "env": attr.string_dict(),
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}

_form_test = rule(
    doc = "Runs a test that is compiled for another form.",
    implementation = _in_form_impl,
    attrs = _ATTRIBUTES,
    test = True,
)

form_binary = rule(
    doc = "A program that is compiled for another form.",
    implementation = _in_form_impl,
    attrs = _ATTRIBUTES,
    executable = True,
)

def form_tests(form, tests, tags = [], **kwargs):
    """Tests of this package in another form: x_test becomes x_form_d_test. The sanitizers leave
    them out, because form A runs the same code there.

    Args:
      form: "b", "c" or "d"
      tests: their names
      tags: of each test
      **kwargs: those of each test, such as size, env and shard_count, which it does not inherit
    """
    for test in tests:
        _form_test(
            name = "%s_form_%s_test" % (test[:-len("_test")], form),
            program = ":" + test,
            form = form,
            tags = tags + ONE_CONFIGURATION,
            **kwargs
        )
