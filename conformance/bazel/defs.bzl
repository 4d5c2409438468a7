# SPDX-License-Identifier: MIT
"""The conformance suite as a Bazel test, for other workspaces to load.

    load("@kmes//conformance/bazel:defs.bzl", "kmes_conformance_test")

    kmes_conformance_test(
        name = "consumer_conformance_test",
        testee = ":consumer",
        args = ["--its-own", "arguments"],
        options = ["--level", "robust"],
        known_failures = "known-failures.txt",
        shard_count = 8,
    )

Each shard runs its part of the cases, on whatever machine Bazel chooses. Each case is a case of the
test's XML. The outputs of the test have report.json and report.html of the shard;
`kmes-conformance merge` joins the JSON reports.
"""

def _quote(word):
    return "'" + word.replace("'", "'\\''") + "'"

def _kmes_conformance_test_impl(ctx):
    words = ["./" + ctx.executable.runner.short_path]
    if ctx.file.known_failures:
        words += ["--known-failures", ctx.file.known_failures.short_path]
    words += ctx.attr.options
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        launcher,
        content = """#!/usr/bin/env bash
# Made by kmes_conformance_test. The arguments are those of the consumer.
set -euo pipefail
outputs=${{TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}}
reports=(--report "json:$outputs/report.json" --report "html:$outputs/report.html")
[ -z "${{XML_OUTPUT_FILE-}}" ] || reports+=(--report "junit:$XML_OUTPUT_FILE")
exec {runner} "${{reports[@]}}" -- {testee} "$@"
""".format(
            runner = " ".join([_quote(word) for word in words]),
            testee = _quote("./" + ctx.executable.testee.short_path),
        ),
        is_executable = True,
    )
    # A file of the source tree is not among its own runfiles.
    runfiles = ctx.runfiles(
        files = [ctx.executable.runner, ctx.executable.testee] + ctx.files.known_failures +
                ctx.files.data,
    )
    for target in [ctx.attr.runner, ctx.attr.testee] + ctx.attr.data:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = launcher, runfiles = runfiles)]

kmes_conformance_test = rule(
    implementation = _kmes_conformance_test_impl,
    test = True,
    attrs = {
        "testee": attr.label(
            doc = "The consumer: a program that follows docs/testee-contract.md.",
            mandatory = True,
            executable = True,
            cfg = "target",
        ),
        "options": attr.string_list(doc = "Options of kmes-conformance, such as --level."),
        "known_failures": attr.label(
            doc = "The file of --known-failures.",
            allow_single_file = True,
        ),
        "data": attr.label_list(doc = "Files that the consumer needs.", allow_files = True),
        "runner": attr.label(
            doc = "The suite: built from its sources, or an installed executable.",
            default = Label("//conformance:kmes-conformance"),
            executable = True,
            cfg = "target",
            allow_files = True,
        ),
    },
)
