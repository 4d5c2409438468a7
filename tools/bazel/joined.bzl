# SPDX-License-Identifier: MIT
"""Sources that are compiled together. Most of the time of a compilation goes into headers, which
the sources of one library share. With `--define=kmes_sources=joined`, which the sanitizers, the
fuzzers, the coverage and CI have, the compiler reads them once for several sources. Outside of CI
the default configuration compiles each source alone, so that each includes what it uses.

The unnamed namespaces of a library are one in such a build: a name stands for one thing in all of
its sources."""

JOINED = "//tools/bazel:joined"

# More sources in one compilation save little, and keep fewer processors busy.
_AT_ONCE = 8

def _joined_file_impl(ctx):
    lines = ["#include \"%s\"\n" % source.short_path for source in ctx.files.srcs]
    ctx.actions.write(ctx.outputs.out, "".join(lines))

_joined_file = rule(
    doc = "A source that includes other sources.",
    implementation = _joined_file_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "out": attr.output(mandatory = True),
    },
)

def joined_sources(name, srcs, testonly = False, alone = []):
    """The sources of a library for a joined build.

    Args:
      name: of the library
      srcs: sources and headers, as a plain list of files of the package
      testonly: that of the library
      alone: those of `srcs` that are compiled alone

    Returns:
      srcs: what the library compiles then, and its private headers; included: the sources that are
      included
    """
    sources = [source for source in srcs if source.endswith(".cc") and source not in alone]
    others = [source for source in srcs if source not in sources]
    files = (len(sources) + _AT_ONCE - 1) // _AT_ONCE
    outs = []
    for i in range(files):
        out = "%s_joined_%d.cc" % (name, i)
        _joined_file(
            name = out + "_file",
            testonly = testonly,
            srcs = sources[i * len(sources) // files:(i + 1) * len(sources) // files],
            out = out,
        )
        outs.append(out)
    return struct(srcs = others + outs, included = sources)
