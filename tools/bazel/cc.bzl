# SPDX-License-Identifier: MIT
"""C++ targets of this tree, with what nearly all of them have: the flags of KMES_CXX_COPTS, and a
test its source and GoogleTest."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//tools/bazel:copts.bzl", "KMES_CXX_COPTS")
load("//tools/bazel:joined.bzl", "JOINED", "joined_sources")
load("//tools/bazel:precompiled.bzl", "precompiled_copts")

def kmes_cc_library(name, srcs = [], copts = KMES_CXX_COPTS, join = False, alone = [], **kwargs):
    """A library.

    Args:
      name: of the target
      srcs: sources and private headers; a plain list where `join` is set
      copts: options of the compiler
      join: True where `--define=kmes_sources=joined` compiles several sources at once (joined.bzl)
      alone: sources that are compiled alone all the same, because a program replaces them
      **kwargs: those of cc_library
    """
    if join:
        joined = joined_sources(name, srcs, kwargs.get("testonly", False), alone)
        srcs = select({JOINED: joined.srcs, "//conditions:default": srcs})
        kwargs["textual_hdrs"] = select({JOINED: joined.included, "//conditions:default": []})
    cc_library(name = name, srcs = srcs, copts = copts, **kwargs)

def kmes_cc_binary(name, copts = KMES_CXX_COPTS, **kwargs):
    cc_binary(name = name, copts = copts, **kwargs)

def kmes_cc_test(
        name,
        srcs = None,
        copts = KMES_CXX_COPTS,
        deps = [],
        linkstatic = True,
        **kwargs):
    """A test with GoogleTest, whose main() is in //tools/libs:gtest.

    Args:
      name: of the target
      srcs: sources; NAME.cc where there are none
      copts: options of the compiler
      deps: libraries besides GoogleTest
      linkstatic: False where a preloaded library replaces one of the test. One program takes less
        time to link and to load than a shared library for each library of the tree.
      **kwargs: those of cc_test
    """
    srcs = srcs or [name + ".cc"]
    precompiled = precompiled_copts(srcs)
    cc_test(
        name = name,
        srcs = srcs,
        copts = copts + precompiled.copts,
        linkstatic = linkstatic,
        deps = deps + ["//tools/libs:gtest"] + precompiled.deps,
        **kwargs
    )
