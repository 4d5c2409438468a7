# SPDX-License-Identifier: MIT
"""Broken consumers: a patch each (broken/patch_format.py), built like the consumer that it breaks.

A file broken/FOLDER/NAME.patch is the target broken_NAME. Bazel finds the files by itself.
"""

load("//conformance/testees:testee.bzl", "cc_testee")

_TOOL = "broken/patches.py"
_TOOL_FILES = [
    "broken/patch_format.py",
    _TOOL,
]

def _testee(name, source, copts, headers, visibility):
    """The program `name` of a source in any language; manual, so built only if something needs it.

    Where the compiler of Rust or Go is missing, the file `name`.toolchain has the line "none" and
    the program says so.
    """
    ending = source.rpartition(".")[2]
    if ending in copts:
        cc_testee(
            name = name,
            srcs = [source] + headers.get(ending, []),
            copts = copts[ending],
            linkopts = ["-pthread"],
            tags = ["manual"],
            visibility = visibility,
        )
    elif ending == "py":
        native.genrule(
            name = name + ".copy",
            srcs = [source],
            outs = [name],
            cmd = "cp $< $@ && chmod +x $@",
            tags = ["manual"],
            visibility = visibility,
        )
    else:
        native.genrule(
            name = name + ".build",
            srcs = [source],
            outs = [
                name,
                name + ".toolchain",
            ],
            cmd = "$(location build_or_say.sh) %s $< $(OUTS)" %
                  {"go": "go", "rs": "rust"}[ending],
            tags = ["manual"],
            tools = ["build_or_say.sh"],
            visibility = visibility,
        )

def _broken_testee(patch, base, copts, headers, visibility):
    name = "broken_" + _name(patch)
    source = name + "." + base.rpartition(".")[2]
    native.genrule(
        name = name + ".patched",
        srcs = [
            patch,
            base,
        ],
        outs = [source],
        cmd = "python3 -B $(location {}) apply $(location {}) $(location {}) $@".format(
            _TOOL,
            patch,
            base,
        ),
        tags = ["manual"],
        tools = _TOOL_FILES,
    )
    _testee(name, source, copts, headers, visibility)

def _name(patch):
    return patch.rpartition("/")[2][:-len(".patch")]

def _folder(patch):
    return patch.split("/")[1]

def broken_testees(patches, bases, copts, headers, visibility):
    """The program broken_NAME for each patch, right_DESIGN for each design, and the table of all.

    `broken` is all broken consumers of the example `c`, `broken_foreign` all that break a design;
    broken.json has the headers of all patches.

    Args:
      patches: files broken/FOLDER/NAME.patch
      bases: {FOLDER: the source that its patches change}
      copts: {ending: options} of what the C and C++ compilers build
      headers: {ending: headers} that those sources include
      visibility: of the programs and the table
    """
    for folder, base in bases.items():
        if base.startswith("broken/"):
            _testee("right_" + folder, base, copts, headers, visibility)
    for patch in patches:
        if _folder(patch) not in bases:
            fail("conformance/testees/%s: BASES in BUILD.bazel has no folder '%s'; it has %s" %
                 (patch, _folder(patch), ", ".join(bases.keys())))
        _broken_testee(patch, bases[_folder(patch)], copts, headers, visibility)
    for name, is_example in [("broken", True), ("broken_foreign", False)]:
        native.filegroup(
            name = name,
            tags = ["manual"],
            srcs = [
                "broken_" + _name(patch)
                for patch in patches
                if (_folder(patch) == "c") == is_example
            ],
            visibility = visibility,
        )
    native.genrule(
        name = "broken_table",
        srcs = patches,
        outs = ["broken.json"],
        cmd = "python3 -B $(location %s) table $@ $(SRCS)" % _TOOL,
        tools = _TOOL_FILES,
        visibility = visibility,
    )

def form_twins(name, twin, base, copts, visibility, patches = []):
    """The twin NAME_consumer of an example, and the twin NAME/broken_PATCH of broken ones.

    Args:
      name: of the form, or of its example
      twin: the diff that changes the example to the form
      base: the source of the example
      copts: {ending: options} of what the C and C++ compilers build
      visibility: of the programs
      patches: files FOLDER/PATCH.patch that fit the twin
    """
    ending = base.rpartition(".")[2]
    for patch in [None] + patches:
        program = name + "_consumer" if patch == None else name + "/broken_" + _name(patch)
        arguments = ["twin", twin] if patch == None else ["apply", "--twin", twin, patch]
        source = program + "." + ending
        native.genrule(
            name = program + ".patched",
            srcs = [base] + [word for word in arguments if "." in word],
            outs = [source],
            cmd = "python3 -B $(location {}) {} $(location {}) $@".format(
                _TOOL,
                " ".join([
                    "$(location %s)" % word if "." in word else word
                    for word in arguments
                ]),
                base,
            ),
            tags = ["manual"],
            tools = _TOOL_FILES,
        )
        _testee(program, source, copts, {}, visibility)
