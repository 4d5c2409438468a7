# SPDX-License-Identifier: MIT
"""The test of a binding by the conformance suite: its example is a testee."""

load("//tools/bazel:tags.bzl", "ONE_CONFIGURATION")

# What the drain loop, the sleep, a change of buffers, refusals and losses need of a binding. The
# full suite takes minutes: kmes-conformance -- PROGRAM.
_CASES = [
    "5.1.1/four-cpus",
    "5.1.6.1/bad-magic-first-byte",
    "5.1.6.1/faults-on-later-cpus",
    "5.1.6.1/one-unread-before-a-refused-buffer",
    "5.1.8.1-2/lapped-moves-to-tail",
    "5.1.8.1-5/torn-in-the-middle",
    "5.1.8.2-5/sleeps-and-wakes",
    "5.1.8.3/grow",
    "5.1.8.3/shrink",
    "5.1.9/gap-of-dropped-events",
    "E1/full-barrier",
    "E2/event-at-every-step",
    "E3/swap-at-every-step",
    "E17/shared-futex",
    "E19/nudged",
    "E21/nothing-survives",
    "contract-1/later-attach-emfile",
    "contract-4/exits-with-all-records",
    "event-model/longer-header",
    "event-model/many-types",
]

def binding_suite_test(name, command, data, toolchain = []):
    """Runs a part of the suite on the example of a binding.

    Args:
      name: of the test
      command: the words of the program's command
      data: what the program needs
      toolchain: the file that says with what compiler it was built, where it may not be built
    """
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["//conformance/testees:foreign_test.sh"],
        args = [name] + ["$(rootpath %s)" % label for label in toolchain] +
               ["--filter=" + case for case in _CASES] + ["--"] + command,
        data = data + toolchain + [
            "//conformance:kmes-conformance",
            "//tools:share",
        ],
        tags = ONE_CONFIGURATION,
    )
