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
        # Bazel links every program with libstdc++ and libm. What somebody builds from C has none
        # of them, and starts in six tenths of the time.
        linkopts = linkopts + ["-Wl,--as-needed"],
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

_SOURCES = {
    "c": ".c",
    "c++": ".cc",
    "go": ".go",
    "python": ".py",
    "rust": ".rs",
}

def foreign_testees(table, copts, visibility):
    """A testee for each entry of broken/foreign.bzl, and each design without a mistake.

    The designs as they stand are :right_<design>; `broken_foreign` stands for all that are broken.
    Where the compiler of Rust or Go is missing, the file <design>.toolchain has the line "none" and
    the programs say so.

    Args:
      table: the entries
      copts: {language: options} of what the C and C++ compilers build
      visibility: of the programs
    """
    designs = {}
    for entry in table:
        design, _, mistake = entry["name"].partition("-")
        language = entry["language"]
        designs.setdefault(design, (language, []))[1].append(mistake)
    for design, (language, mistakes) in designs.items():
        source = "broken/" + design + _SOURCES[language]
        if language == "c":
            _built_one_by_one(design, source, mistakes, copts["c"], visibility)
        elif language == "python":
            _copied(design, source, mistakes, visibility)
        else:
            _started_by_name(design, language, source, mistakes, copts.get(language), visibility)
    native.filegroup(
        name = "broken_foreign",
        tags = ["manual"],
        srcs = ["broken_" + entry["name"] for entry in table],
        visibility = visibility,
    )

def _built_one_by_one(design, source, mistakes, copts, visibility):
    for mistake in [None] + mistakes:
        words = mistake.split("-") if mistake else ["none"]
        cc_testee(
            name = "broken_%s-%s" % (design, mistake) if mistake else "right_" + design,
            srcs = [source],
            copts = copts,
            linkopts = ["-pthread"],
            local_defines = ["MISTAKE=k" + "".join([word.capitalize() for word in words])],
            tags = ["manual"],
            visibility = visibility,
        )

def _copied(design, source, mistakes, visibility):
    native.genrule(
        name = design + ".build",
        srcs = [source],
        outs = ["right_" + design] + ["broken_%s-%s" % (design, name) for name in mistakes],
        cmd = "$(location build_mistakes.sh) $< $(OUTS)",
        tags = ["manual"],
        tools = ["build_mistakes.sh"],
        visibility = visibility,
    )

def _started_by_name(design, language, source, mistakes, copts, visibility):
    right = "right_" + design
    if language == "c++":
        cc_testee(
            name = right,
            srcs = [source],
            copts = copts,
            linkopts = ["-pthread"],
            tags = ["manual"],
            visibility = visibility,
        )
    else:
        native.genrule(
            name = design + ".build",
            srcs = [source],
            outs = [right, design + ".toolchain"],
            cmd = "$(location build_or_say.sh) %s $< $(OUTS)" % language,
            tags = ["manual"],
            tools = ["build_or_say.sh"],
            visibility = visibility,
        )
    for mistake in mistakes:
        _named(
            name = "broken_%s-%s" % (design, mistake),
            program = right,
            tags = ["manual"],
            visibility = visibility,
        )

def _named_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = output, target_file = ctx.file.program, is_executable = True)
    return [DefaultInfo(
        executable = output,
        files = depset([output]),
        runfiles = ctx.runfiles(files = [output, ctx.file.program]),
    )]

_named = rule(
    implementation = _named_impl,
    executable = True,
    attrs = {"program": attr.label(mandatory = True, allow_single_file = True)},
    doc = "A program by another name: what it does wrong goes by the name that it is started by.",
)
