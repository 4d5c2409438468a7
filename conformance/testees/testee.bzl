# SPDX-License-Identifier: MIT
"""Builds testees plainly in every configuration of the tree.

A testee is traced with ptrace, as the runner does with every program. A sanitizer's run-time
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
    # With a transition, the attribute is a list.
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

def cc_testee(name, visibility = None, tags = [], linkopts = [], **kwargs):
    """A cc_binary that is built plainly in every configuration.

    Args:
      name: of the program
      visibility: of the program
      tags: of the program
      linkopts: of the program
      **kwargs: those of cc_binary
    """
    cc_binary(
        name = name + ".plain",
        tags = ["manual"],
        visibility = ["//visibility:private"],
        # Bazel links every program with libstdc++ and libm. An ordinary C program has neither, and
        # starts in six tenths of the time.
        linkopts = linkopts + ["-Wl,--as-needed"],
        **kwargs
    )
    _testee(name = name, binary = name + ".plain", tags = tags, visibility = visibility)
