# SPDX-License-Identifier: MIT
"""How testees are built: plainly, whatever configuration the tree is built in.

A testee is traced with ptrace, as the runner does with anybody's program. A sanitizer's run-time
library is no part of it: LeakSanitizer needs ptrace for itself, and the suite judges the consumer
and not its instrumentation.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def _plain_settings_impl(_settings, _attr):
    return {
        "//command_line_option:copt": ["-O2", "-g1"],
        "//command_line_option:features": [],
        "//command_line_option:linkopt": [],
    }

_plain_settings = transition(
    implementation = _plain_settings_impl,
    inputs = [],
    outputs = [
        "//command_line_option:copt",
        "//command_line_option:features",
        "//command_line_option:linkopt",
    ],
)

def _testee_impl(ctx):
    # A transition makes a list of the attribute.
    built = ctx.attr.binary[0]
    binary = built[DefaultInfo].files_to_run.executable
    output = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = output, target_file = binary, is_executable = True)
    return [DefaultInfo(
        executable = output,
        files = depset([output]),
        runfiles = ctx.runfiles(files = [output, binary]),
    )]

_testee = rule(
    implementation = _testee_impl,
    executable = True,
    attrs = {
        "binary": attr.label(mandatory = True, cfg = _plain_settings),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    doc = "The binary, built without what the configuration adds for the rest of the tree.",
)

def cc_testee(name, visibility = None, tags = [], **kwargs):
    """A cc_binary that is built plainly in every configuration.

    Args:
      name: of the program
      visibility: of the program
      tags: of the program
      **kwargs: those of cc_binary
    """
    cc_binary(
        name = name + ".plain",
        tags = ["manual"],
        visibility = ["//visibility:private"],
        **kwargs
    )
    _testee(name = name, binary = name + ".plain", tags = tags, visibility = visibility)

def _edited_impl(ctx):
    ctx.actions.expand_template(
        template = ctx.file.src,
        output = ctx.outputs.out,
        substitutions = ctx.attr.edits,
    )

_edited = rule(
    implementation = _edited_impl,
    attrs = {
        "src": attr.label(mandatory = True, allow_single_file = True),
        "edits": attr.string_dict(mandatory = True),
        "out": attr.output(mandatory = True),
    },
    doc = "A copy of a file with some texts replaced by others.",
)

def broken_testees(table, src, copts, visibility):
    """A testee for each entry of broken/table.bzl; `broken` stands for all of them.

    They are built when something asks for them: no more than one configuration needs them.

    Args:
      table: the entries
      src: the C example
      copts: what it is compiled with
      visibility: of the programs
    """
    for entry in table:
        name = "broken_" + entry["name"]
        _edited(
            name = name + ".edited",
            src = src,
            edits = dict(entry["edits"]),
            out = name + ".c",
        )
        cc_testee(
            name = name,
            srcs = [name + ".c"],
            copts = copts,
            linkopts = ["-pthread"],
            tags = ["manual"],
            visibility = visibility,
        )
    native.filegroup(
        name = "broken",
        tags = ["manual"],
        srcs = ["broken_" + entry["name"] for entry in table],
        visibility = visibility,
    )
