# SPDX-License-Identifier: MIT
"""kmes_fuzz_target: everything that one fuzz target is built into."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//tools/bazel:copts.bzl", "KMES_CXX_COPTS", "KMES_C_COPTS")

# The engine of a target outside of --config=fuzz and --config=afl.
_ENGINE = ["//tools/libs:fuzz_engine"]

# Headers that sources of the core include, and no library exports.
_PRIVATE_HEADERS = [
    "//kmes:guard.h",
    "//kmes:index.h",
    "//kmes:reader_parts.h",
]

def kmes_fuzz_target(
        name,
        body,
        deps = [],
        corpus = True,
        dictionary = None,
        scripts = False,
        canary = None):
    """Makes of one body, `int kmes_fuzz_<name>(const uint8_t*, size_t)`:

      <name>              the engine of --config=fuzz or --config=afl; a replay of files otherwise
      <name>_corpus_test  the replay over fuzz/corpora/<name>, in every configuration
      <name>_canary       as <name>, with the planted bug (fuzz/canaries/<name>.canary)
      <name>_canary_test  finds it, in --config=fuzz

    Args:
      name: of the target
      body: its sources, the header among them
      deps: what the body uses
      corpus: False where there is none (the empty target)
      dictionary: fuzz/dictionaries/<name>.dict, where it has one: the tools find it by that name
      scripts: True where the input is a script's text: the mutator knows the format
      canary: label of the source in which fuzz/canaries/<name>.canary plants its bug
    """
    defines = ["KMES_FUZZ_TARGET=" + name]
    mutator = []
    if scripts:
        mutator = ["//fuzz:script_mutator"]

    cc_library(
        name = name + "_body",
        testonly = True,
        srcs = [source for source in body if source.endswith(".cc")],
        hdrs = [source for source in body if source.endswith(".h")],
        copts = KMES_CXX_COPTS,
        deps = deps + [
            "//fuzz:fail",
            "//fuzz:fuzzed_bytes",
        ],
    )
    cc_library(
        name = name + "_entry",
        testonly = True,
        srcs = ["entry.cc"],
        copts = KMES_CXX_COPTS,
        # The mutator calls that of libFuzzer; other engines have none.
        local_defines = defines + (select({
            "//tools/libs:engine_libfuzzer": ["KMES_FUZZ_SCRIPTS"],
            "//conditions:default": [],
        }) if scripts else []),
        alwayslink = True,
        deps = [":" + name + "_body"] + mutator,
    )
    main = select({
        "//tools/libs:engine_libfuzzer": [],
        "//tools/libs:engine_afl": [],
        "//conditions:default": ["//fuzz:replay_main"],
    })
    cc_binary(
        name = name,
        testonly = True,
        deps = [":" + name + "_entry"] + main + _ENGINE,
    )
    if corpus:
        cc_test(
            name = name + "_corpus_test",
            size = "medium",
            args = ["fuzz/corpora/" + name],
            data = native.glob(["corpora/" + name + "/**"]),
            # There is only one thread; and an engine has its own main.
            tags = ["no-fuzz", "no-tsan"],
            deps = [":" + name + "_entry", "//fuzz:replay_main"],
        )
    if canary:
        _canary(name, canary, main, dictionary)

def _canary(name, source, main, dictionary):
    """The target once more, with an object that has the plant before the library that has not."""
    is_c = source.endswith(".c")
    planted = name + "_planted" + (".c" if is_c else ".cc")
    native.genrule(
        name = name + "_plant",
        testonly = True,
        srcs = [
            "canaries/" + name + ".canary",
            source,
        ],
        outs = [planted],
        cmd = "$(location canaries/plant.sh) $(SRCS) > $@",
        tools = ["canaries/plant.sh"],
    )
    cc_library(
        name = name + "_planted_source",
        testonly = True,
        srcs = [planted] + (_PRIVATE_HEADERS if is_c else []),
        # As //kmes:core_hooked.
        copts = KMES_C_COPTS + ["-fexceptions"] if is_c else KMES_CXX_COPTS,
        alwayslink = True,
        deps = [":" + name + "_body"],
    )
    cc_binary(
        name = name + "_canary",
        testonly = True,
        deps = [
            ":" + name + "_planted_source",
            ":" + name + "_entry",
        ] + main + _ENGINE,
    )
    data = [
        "canaries/" + name + ".canary",
        ":" + name + "_canary",
    ]
    args = [
        "fuzz/" + name + "_canary",
        "fuzz/canaries/" + name + ".canary",
        "fuzz/corpora/" + name,
    ]
    if dictionary:
        data.append(dictionary)
        args.append("fuzz/" + dictionary)
    native.sh_test(
        name = name + "_canary_test",
        # Up to twenty seeds.
        size = "large",
        srcs = ["canaries_test.sh"],
        args = args,
        data = data + native.glob(["corpora/" + name + "/**"]),
        tags = ["only-fuzz"],
    )

_Sources = provider(fields = ["files"])

def _collect_impl(target, ctx):
    own = []
    for name in ["srcs", "hdrs", "textual_hdrs"]:
        own += getattr(ctx.rule.files, name, [])
    below = [dep[_Sources].files for dep in getattr(ctx.rule.attr, "deps", []) if _Sources in dep]
    return [_Sources(files = depset([file for file in own if file.is_source], transitive = below))]

_collect = aspect(
    implementation = _collect_impl,
    attr_aspects = ["deps"],
)

def _sources_impl(ctx):
    files = depset(transitive = [dep[_Sources].files for dep in ctx.attr.deps])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

kmes_sources_of = rule(
    doc = "The sources and headers of this tree that targets are made of, all the way down.",
    implementation = _sources_impl,
    attrs = {"deps": attr.label_list(aspects = [_collect])},
)
