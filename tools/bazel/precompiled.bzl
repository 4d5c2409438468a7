# SPDX-License-Identifier: MIT
"""The headers of GoogleTest and of the standard library, compiled once for all tests. Parsing them
takes most of the time of a test's compilation. Only for clang under a sanitizer: a precompiled
header of gcc is slower to load than its text is to parse.

Bazel does not notice an upgrade of these headers. The compiler does, and says that a file "has been
modified since the precompiled header was built": `bazel clean` helps."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The sanitizers whose tests are compiled with it.
_CONFIGURATIONS = [
    "//tools/bazel:asan",
    "//tools/bazel:tsan",
]

# Without the times of files, the output depends on their contents alone, as Bazel expects.
_PRECOMPILE = ["-xc++-header", "-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp"]

_HEADER = "//tools/bazel:test_headers"

def precompiled_copts(srcs):
    """The compiler options of a test with these sources, and the library that it needs for them.

    Args:
      srcs: a plain list of names

    Returns:
      copts and deps, both to be added
    """

    # .bazelrc compiles only these without optimisation, as the header is.
    if [name for name in srcs if name.endswith(".cc") and not name.endswith("_test.cc")]:
        return struct(copts = [], deps = [])
    copts = ["-include-pch", "$(BINDIR)/tools/bazel/test_headers.pch"]
    return struct(
        copts = select(dict(
            [(name, copts) for name in _CONFIGURATIONS],
            **{"//conditions:default": []}
        )),
        deps = select(dict(
            [(name, [_HEADER]) for name in _CONFIGURATIONS],
            **{"//conditions:default": []}
        )),
    )

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    out = ctx.actions.declare_file(ctx.label.name + ".pch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        # From the standard input: the compiler would keep the absolute path of a file, which is
        # another one in each sandbox, and compare it later.
        source_file = "-",
        output_file = out.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts +
                             _PRECOMPILE,
        use_pic = True,
    )
    ctx.actions.run_shell(
        mnemonic = "CppPrecompile",
        command = "header=$1; shift; exec \"$@\" <\"$header\"",
        arguments = [
            ctx.file.hdr.path,
            cc_common.get_tool_for_action(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
            ),
        ] + cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([ctx.file.hdr], transitive = [toolchain.all_files]),
        outputs = [out],
    )
    return [
        DefaultInfo(files = depset([out])),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([out]))),
    ]

precompiled_header = rule(
    doc = "HDR as NAME.pch, which targets that depend on it can load with -include-pch.",
    implementation = _precompiled_header_impl,
    attrs = {
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
