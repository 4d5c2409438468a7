# SPDX-License-Identifier: MIT
"""launch_child_test.py OBJECT OPTIONS...: checks the object code of the child of a launch.

The child runs in the runner's memory (launch_child.h). So OBJECT, which this configuration links,
must call nothing outside of itself, use no thread-local variable, have no writable data, and store
only to its own stack. The same is checked for the result of each compiler with OPTIONS.

The test can fail: for each configuration of .bazelrc that adds options, the source is compiled
with them and without those of the rule, and the result must be found faulty. The attribute that
this code relied on before must also be found insufficient.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

SOURCE = "conformance/tracer/launch_child.c"
# The configuration, its compiler, and the instrumentation expected in its object.
INSTRUMENTED = [
    ("asan", "clang-19", "__asan|__ubsan"),
    ("ubsan", "clang-19", "__ubsan"),
    ("tsan", "clang-19", "__tsan_func_entry"),
    ("fuzz", "clang-19", "__sanc|__asan|__ubsan"),
    ("profile", "clang-19", "__profc_|\\.bss|__llvm_prf"),
]
# The additions of these compilers.
ADDED = [
    ("gcc", ["-fstack-protector-all"], "%fs|__stack_chk_fail"),
    ("gcc", ["--coverage"], "__gcov|\\.bss|\\.data"),
    ("gcc", ["-fsanitize=thread"], "__tsan_func_entry"),
    ("gcc", ["-pg"], "mcount"),
    ("gcc", ["-finstrument-functions"], "__cyg_profile_func_enter"),
    ("clang-19", ["-fsanitize-coverage=trace-pc-guard"], "__sanitizer_cov"),
]
# The attribute that was used before. It removes the instrumentation of accesses, but not the calls
# at the entry and the exit of a function, nor the counters of coverage.
ATTRIBUTE = """#pragma clang attribute push( \\
    __attribute__((no_sanitize("address", "thread", "undefined"))), apply_to = function)
#include "%s"
#pragma clang attribute pop
""" % SOURCE
STILL_INSTRUMENTED = ("tsan", "fuzz", "profile")

Instruction = collections.namedtuple("Instruction", "function text")

# In AT&T syntax the last operand is the written one. These instructions only read it.
READS = re.compile(r"^(cmp|test|push|call|jmp|lea|bt|prefetch)")


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("%s: status %d\n%s" % (" ".join(command), done.returncode, done.stderr))
    return done.stdout


def instructions_of(path):
    function = None
    for line in run(["objdump", "-d", "--no-show-raw-insn", path]).splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        body = re.match(r"^\s+[0-9a-f]+:\s+(\S.*)$", line)
        if head:
            function = head.group(1)
        elif body:
            yield Instruction(function, re.sub(r"\s*(#.*)?$", "", body.group(1)))


def written_operand(text):
    """The memory operand that an instruction stores to, or None."""
    words = text.split(None, 1)
    if words[0] in ("rep", "lock", "repz"):
        words = words[1].split(None, 1)
    if len(words) < 2 or READS.match(words[0]):
        return None
    if "nop" in text:
        return None
    last = re.search(r"(?:^|,)([^,()]*(?:\([^()]*\))?)$", words[1]).group(1)
    return last if "(" in last or ":" in last else None


def faults_of_symbols(path):
    for line in run(["nm", path]).splitlines():
        kind, name = line.split()[-2:]
        if kind in "Uwv":
            yield "uses %s, which is not its own" % name
        elif kind in "bBdDC":
            yield "has %s, which can be written" % name


def faults_of_sections(path):
    for line in run(["objdump", "-h", "-w", path]).splitlines():
        words = line.split(None, 7)
        if len(words) < 8 or not words[0].isdigit() or int(words[2], 16) == 0:
            continue
        if "ALLOC" in words[7] and "READONLY" not in words[7]:
            yield "has a section %s, which can be written" % words[1]


def faults_of_code(path):
    for function, text in instructions_of(path):
        operand = written_operand(text)
        if "%fs" in text or "%gs" in text:
            yield "%s: `%s` is thread-local" % (function, text)
        elif operand and not re.search(r"\(%r[sb]p\b", operand):
            yield "%s: `%s` may store outside of its stack" % (function, text)
        elif re.match(r"call\s+\*", text) and not re.search(r"\*%r13$", text):
            yield "%s: `%s` calls nobody knows what" % (function, text)


def faults_of(path):
    return [fault for find in (faults_of_symbols, faults_of_sections, faults_of_code)
            for fault in find(path)]


def options_of(name, rc):
    """The options that .bazelrc adds to the compilation of SOURCE in a configuration."""
    found = []
    for line in rc.splitlines():
        match = re.match(r"build:%s (.*)$" % re.escape(name), line)
        for word in match.group(1).split() if match else []:
            kind, _, value = word.partition("=")
            if kind == "--config":
                found += options_of(value, rc)
            elif kind == "--copt":
                found.append(value)
            elif kind == "--per_file_copt":
                pattern, _, added = value.partition("@")
                found += added.split(",") if re.search(pattern, SOURCE) else []
    return found


def scratch(name):
    return os.path.join(os.environ["TEST_TMPDIR"], name)


def compiled(compiler, options, name, source=SOURCE, afl_instruments=False):
    path = scratch(name + ".o")
    environment = dict(os.environ, AFL_NOOPT="1", AFL_QUIET="1")
    if afl_instruments:
        del environment["AFL_NOOPT"]
    command = [compiler, *options, "-I.", "-c", source, "-o", path]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("%s: status %d\n%s" % (" ".join(command), done.returncode, done.stderr))
    return path


def check_sound(path, what):
    faults = ["%s: %s" % (what, fault) for fault in faults_of(path)]
    print("%-34s %d faults" % (what, len(faults)))
    return faults


def check_faulty(path, what, expected):
    faults = faults_of(path)
    print("%-34s %d faults" % (what, len(faults)))
    if any(re.search(expected, fault) for fault in faults):
        return []
    return ["%s: expected a fault like `%s`, found %s" % (what, expected, faults)]


def main(arguments):
    with open(".bazelrc") as file:
        rc = file.read()
    with_attribute = scratch("with_attribute.c")
    with open(with_attribute, "w") as file:
        file.write(ATTRIBUTE)
    bare = ["-std=c11", "-O1", "-fPIC"]
    wrong = check_sound(arguments[0], "what is linked")
    for compiler in ("gcc", "clang-19", "afl-clang-fast"):
        if shutil.which(compiler):
            path = compiled(compiler, arguments[1:], compiler)
            wrong += check_sound(path, compiler + ", by the rule")
            # This adds a mark at each target of a pointer call, and no other code.
            path = compiled(compiler, arguments[1:] + ["-fcf-protection=full"], compiler)
            wrong += check_sound(path, compiler + ", with -fcf-protection")
    for name, compiler, expected in INSTRUMENTED:
        options = options_of(name, rc)
        path = compiled(compiler, bare + options, name)
        wrong += check_faulty(path, name + ", bare", expected)
        if name in STILL_INSTRUMENTED:
            path = compiled(compiler, bare + options, name, with_attribute)
            wrong += check_faulty(path, name + ", with the attribute", expected)
    for compiler, options, expected in ADDED:
        path = compiled(compiler, bare + options, "added")
        wrong += check_faulty(path, "%s %s" % (compiler, options[0]), expected)
    if shutil.which("afl-clang-fast"):
        for source, what in ((SOURCE, "afl, bare"), (with_attribute, "afl, with the attribute")):
            path = compiled("afl-clang-fast", bare, "afl", source, afl_instruments=True)
            wrong += check_faulty(path, what, "__afl_area_ptr|__sancov")
    for fault in wrong:
        print("FAIL " + fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
