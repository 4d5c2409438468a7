# SPDX-License-Identifier: MIT
"""Finds the lines and branches of the core (kmes/*.c) that inputs reach, by replays built with
--config=profile or --config=fuzz. `tools/kmes fuzz` uses it for the inputs of a run.
//fuzz:coverage_test uses it for the corpora, which must reach every line, and every branch except
those that uncovered.txt justifies. For the targets of the socket, the corpora must reach a minimum
share of the lines of its files."""

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

LLVM = "/usr/lib/llvm-19/bin/llvm-"
LEAST_BRANCHES = 97.0
# The files of the socket, and the minimum share of their lines that the corpora reach. The other
# lines handle failing system calls, lack of memory, and threads.
SOCKET_LINES = {
    "kmes/user/file_check.c": 75.0,
    "kmes/user/socket_client.c": 93.0,
    "kmes/user/socket_connection.cc": 98.0,
    "kmes/user/socket_loop.cc": 75.0,
}


@dataclass
class Coverage:
    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0
    missed_lines: list = field(default_factory=list)  # "kmes/file.c", number
    missed_branches: list = field(default_factory=list)

    def text(self):
        def part(name, reached, count):
            share = 100.0 * reached / count if count else 0.0
            return f"{name} {reached} of {count} ({share:.2f} %)"

        return (part("lines", self.lines_reached, self.lines) + ", " +
                part("branches", self.branches_reached, self.branches))


IS_CORE = re.compile(r"(?:^|/)(kmes/[^/]+[.]c)$")
IS_SOCKET = re.compile("(?:^|/)(" + "|".join(map(re.escape, SOCKET_LINES)) + ")$")


def is_of_socket(target):
    return Path(target).name.startswith("socket_")


def replay(binary, paths, scratch):
    """Runs the inputs, which are files, or folders for a replay. The scratch folder then has what
    each process reached."""
    present = [str(path) for path in paths if not Path(path).is_dir() or any(Path(path).iterdir())]
    if not present:
        return ""
    environment = {**os.environ, "LLVM_PROFILE_FILE": f"{scratch}/{Path(binary).name}-%p.profraw"}
    run = subprocess.run([str(Path(binary).resolve())] + present, env=environment, check=False,
                         capture_output=True, text=True, errors="replace")
    return "" if run.returncode in (0, 1) else run.stderr


def measure(root, binaries, scratch):
    profile = Path(scratch) / "all.profdata"
    raw = sorted(str(file) for file in Path(scratch).glob("*.profraw"))
    subprocess.run([LLVM + "profdata", "merge", "-sparse", "-o", str(profile)] + raw, check=True)
    objects = [str(Path(binaries[0]).resolve())]
    for binary in binaries[1:]:
        objects += ["-object", str(Path(binary).resolve())]
    return objects + [f"-instr-profile={profile}"]


def read(root, arguments, wanted=IS_CORE):
    """The figures of these files, from llvm-cov's lcov export."""
    text = subprocess.run(
        [LLVM + "cov", "export", "-format=lcov"] + arguments, check=True, capture_output=True,
        text=True, cwd=root).stdout
    coverage = Coverage()
    file = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == "SF":
            found = wanted.search(value)
            file = found.group(1) if found else ""
        elif not file:
            continue
        elif key == "DA":
            number, count = value.split(",")[:2]
            coverage.lines += 1
            coverage.lines_reached += int(count) > 0
            if int(count) == 0:
                coverage.missed_lines.append((file, int(number)))
        elif key == "BRDA":
            number, _, branch, count = value.split(",")
            coverage.branches += 1
            coverage.branches_reached += count not in ("-", "0")
            if count in ("-", "0"):
                coverage.missed_branches.append((file, int(number), int(branch)))
    return coverage


def write_html(root, arguments, folder):
    sources = sorted(str(file.relative_to(root)) for file in Path(root).glob("kmes/*.c"))
    subprocess.run(
        [LLVM + "cov", "show", "-format=html", "-show-branches=count", f"-output-dir={folder}"] +
        arguments + ["-sources"] + sources, check=True, cwd=root, stdout=subprocess.DEVNULL)
    return Path(folder) / "index.html"


def read_excuses(file):
    """uncovered.txt: `kmes/file.c | the line | why`, one a line."""
    excuses = {}
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 3 or not all(parts):
            sys.exit(f"{file}:{number}: three parts are right: kmes/file.c | the line | why")
        excuses[(parts[0], parts[1])] = number
    return excuses


def judge(root, coverage, excuses_file):
    """Lines that say what is wrong."""
    excuses = read_excuses(excuses_file)
    used = set()
    texts = {}

    def line_of(file, number):
        if file not in texts:
            texts[file] = (Path(root) / file).read_text().splitlines()
        return texts[file][number - 1].strip()

    wrong = [f"{file}:{number}: no input reaches this line: {line_of(file, number)}"
             for file, number in coverage.missed_lines]
    for file, number, branch in coverage.missed_branches:
        key = (file, line_of(file, number))
        used.add(key)
        if key not in excuses:
            wrong.append(f"{file}:{number}: branch {branch} is never taken, and {excuses_file} "
                         f"does not say why: {key[1]}")
    for key, number in excuses.items():
        if key not in used:
            wrong.append(f"{excuses_file}:{number}: every branch there is taken, or there is no "
                         f"such line; remove it: {key[0]} | {key[1]}")
    if 100.0 * coverage.branches_reached < LEAST_BRANCHES * coverage.branches:
        wrong.append(f"fewer than {LEAST_BRANCHES} % of the branches are reached")
    return wrong


def measure_corpora(root, binaries, scratch):
    """The arguments of llvm-cov, after a replay of each corpus."""
    scratch.mkdir(parents=True, exist_ok=True)
    for old in scratch.glob("*.profraw"):
        old.unlink()
    for binary in binaries:
        # In a folder, libFuzzer would look for more inputs.
        corpus = sorted((root / "fuzz/corpora" / Path(binary).name).iterdir())
        error = replay(binary, corpus, scratch)
        if error:
            sys.exit(f"{binary} does not run:\n{error}")
    return measure(root, binaries, scratch)


def judge_socket(root, binaries, scratch):
    """Lines that say what is wrong with the files of the socket."""
    found = measure_corpora(root, binaries, scratch)
    wrong = []
    for file, least in SOCKET_LINES.items():
        coverage = read(root, found, re.compile(f"(?:^|/)({re.escape(file)})$"))
        print(f"{file}: {coverage.text()}")
        if coverage.lines == 0 or 100.0 * coverage.lines_reached < least * coverage.lines:
            wrong.append(f"{file}: fewer than {least} % of the lines are reached")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="coverage of the core by the corpora alone")
    parser.add_argument("--root", required=True, help="of the tree, where kmes/ is")
    parser.add_argument("--scratch", required=True, help="a folder for what is in between")
    parser.add_argument("--html", help="a folder for a report to read")
    parser.add_argument("binaries", nargs="+", help="replays; the corpus of each has its name")
    arguments = parser.parse_args()
    scratch = Path(arguments.scratch)
    root = Path(arguments.root)
    sockets = [binary for binary in arguments.binaries if is_of_socket(binary)]
    others = [binary for binary in arguments.binaries if not is_of_socket(binary)]
    found = measure_corpora(root, others, scratch / "core")
    coverage = read(root, found)
    print("by the corpora alone: " + coverage.text())
    if arguments.html:
        print(f"report: {write_html(root, found, arguments.html)}")
    wrong = judge(root, coverage, root / "fuzz/uncovered.txt")
    if sockets:
        wrong += judge_socket(root, sockets, scratch / "socket")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
