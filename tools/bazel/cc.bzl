# SPDX-License-Identifier: MIT
"""C++ targets of this tree, with what nearly all of them have: the flags of KMES_CXX_COPTS, and a
test its source and GoogleTest."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//tools/bazel:copts.bzl", "KMES_CXX_COPTS")

def kmes_cc_library(name, copts = KMES_CXX_COPTS, **kwargs):
    cc_library(name = name, copts = copts, **kwargs)

def kmes_cc_binary(name, copts = KMES_CXX_COPTS, **kwargs):
    cc_binary(name = name, copts = copts, **kwargs)

def kmes_cc_test(name, srcs = None, copts = KMES_CXX_COPTS, deps = [], **kwargs):
    """A test with GoogleTest, whose main() is in //tools/libs:gtest.

    Args:
      name: of the target
      srcs: sources; NAME.cc where there are none
      copts: options of the compiler
      deps: libraries besides GoogleTest
      **kwargs: those of cc_test
    """
    cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        copts = copts,
        deps = deps + ["//tools/libs:gtest"],
        **kwargs
    )
