# SPDX-License-Identifier: MIT
"""A C library as one archive that others can link: its objects and those of its dependencies."""

def _merged_library(ctx):
    libraries = []
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                # An executable may be position-independent, so its libraries are.
                libraries.append(library.pic_static_library or library.static_library)
    output = ctx.actions.declare_file(ctx.attr.archive)
    ctx.actions.run(
        executable = ctx.executable._merge,
        arguments = [output.path, ctx.file.api.path] + [library.path for library in libraries],
        inputs = libraries + [ctx.file.api],
        outputs = [output],
        mnemonic = "MergeLibrary",
        use_default_shell_env = True,
    )
    return [DefaultInfo(
        files = depset([output]),
        runfiles = ctx.runfiles(files = [output]),
    )]

merged_library = rule(
    implementation = _merged_library,
    attrs = {
        "api": attr.label(allow_single_file = True, mandatory = True),
        "archive": attr.string(mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_merge": attr.label(
            default = "//tools/bazel:merge_library",
            executable = True,
            cfg = "host",
        ),
    },
)
