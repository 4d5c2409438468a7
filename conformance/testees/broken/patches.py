# SPDX-License-Identifier: MIT
"""Broken consumers are patches of correct ones (patch_format.py says the form). For people:

  list              print each broken consumer: name, clause, case
  show NAME         print the source of a broken consumer
  make NAME COPY    write the patch from an edited copy of its source. A new one needs --wrong,
                    --clause and --case; one that exists keeps what is not given
  refresh [NAME...] after a change of a source, merge it into each patch that it concerns

For the build:

  apply PATCH BASE OUT    write the source of a broken consumer; --twin FILE changes BASE first
  twin FILE BASE OUT      write the source of a twin: BASE in another form of the layout
  check PATCH...          apply each patch, and write nothing
  table OUT PATCH...      write the headers of all of them as JSON"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import patch_format
from patch_format import PatchError

FOLDER = "conformance/testees/broken"
EXAMPLE = "c"  # the folder of the patches of the C example
LANGUAGES = {".c": "c", ".cc": "c++", ".go": "go", ".py": "python", ".rs": "rust"}


class Failed(Exception):
    """A patch does not apply, or is not a patch; the message is one line for a person."""

    status = 1


class BadUsage(Failed):
    """A request that cannot be met."""

    status = 2


def read(path):
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{path}: cannot be read: {error}") from error


def parse_file(path):
    """The patch in a file; the message of a PatchError gets the name of the file."""
    try:
        if not patch_format.NAME.fullmatch(Path(path).stem):
            raise PatchError(1, "a name has small letters, digits and single hyphens; rename it")
        patch = patch_format.parse(read(path))
        if Path(patch.base).suffix not in LANGUAGES:
            raise PatchError(1, f"no language has the ending of {patch.base}")
        return patch
    except PatchError as error:
        raise Failed(f"{path}:{error.line}: {error}") from error


def patched(path, patch, text):
    """The text after the patch of a file."""
    try:
        return patch_format.apply(patch, text)
    except PatchError as error:
        advice = "after a change of the source, 'tools/kmes broken refresh' merges it"
        raise Failed(f"{path}:{error.line}: {error}; {advice}") from error


# -- for the build -------------------------------------------------------------------------------


def twin_of(path, base):
    """The source of a twin: the diff in the file `path`, applied to the source `base`."""
    try:
        twin = patch_format.parse_twin(read(path))
        if twin.base != base:
            raise PatchError(0, f"changes {twin.base}; expected {base}")
        return patch_format.apply(twin, read(base))
    except PatchError as error:
        raise Failed(f"{path}:{error.line}: {error}") from error


def twin_command(options):
    Path(options.out).write_text(twin_of(options.file, options.base))


def apply_command(options):
    patch = parse_file(options.patch)
    if patch.base != options.base:
        raise Failed(
            f"{options.patch}: changes {patch.base}; patches of this folder change {options.base}"
        )
    text = twin_of(options.twin, options.base) if options.twin else read(options.base)
    Path(options.out).write_text(patched(options.patch, patch, text))


def check_command(options):
    faults = 0
    for path in options.patches:
        try:
            patch = parse_file(path)
            patched(path, patch, read(patch.base))
        except Failed as error:
            print(error, file=sys.stderr)
            faults += 1
    print(f"{len(options.patches) - faults} of {len(options.patches)} patches apply")
    return 1 if faults else 0


def entry_of(path):
    patch, path = parse_file(path), Path(path)
    folder = path.parent.name
    return {
        "name": path.stem,
        "design": None if folder == EXAMPLE else folder,
        "language": LANGUAGES[Path(patch.base).suffix],
        **{name.lower(): patch.fields[name] for name in patch_format.FIELDS},
    }


def table_command(options):
    entries = [entry_of(path) for path in options.patches]
    Path(options.out).write_text(json.dumps(entries, indent=1) + "\n")


# -- for people ----------------------------------------------------------------------------------


def all_patches(root):
    return sorted((root / FOLDER).glob("*/*.patch"))


def find_patch(root, name):
    found = [path for path in all_patches(root) if path.stem == name]
    if not found:
        raise BadUsage(f"no broken consumer '{name}'; 'tools/kmes broken list' prints all")
    return found[0]


def list_command(options):
    for path in all_patches(options.root):
        fields = parse_file(path).fields
        print(f"{path.stem}\t{fields['Clause']}\t{fields['Case']}")


def show_command(options):
    path = find_patch(options.root, options.name)
    patch = parse_file(path)
    sys.stdout.write(patched(path, patch, read(options.root / patch.base)))


def new_base(root, folder):
    """The source that the patches of a folder change: in it, or the example of its name."""
    places = [root / FOLDER / folder, root / FOLDER / ".." / folder]
    for place in places:
        sources = [each for each in place.glob("*.*") if each.suffix in LANGUAGES]
        if len(sources) == 1:
            return os.path.relpath(sources[0].resolve(), root)
    raise BadUsage(f"{FOLDER}/{folder}: no folder of patches; see --folder in --help")


def check_name(name, option):
    """A name of one folder: it is part of a path that is written."""
    if not patch_format.NAME.fullmatch(name):
        raise BadUsage(f"{option} '{name}' is no name; small letters, digits, single hyphens")


def make_command(options):
    root = options.root
    check_name(options.name, "NAME")
    check_name(options.folder, "--folder")
    known = [path for path in all_patches(root) if path.stem == options.name]
    path = known[0] if known else root / FOLDER / options.folder / f"{options.name}.patch"
    if known:
        patch = parse_file(path)
        fields, base = patch.fields, patch.base
    else:
        fields, base = {"Also": []}, new_base(root, options.folder)
    given = {"Wrong": options.wrong, "Clause": options.clause, "Case": options.case}
    fields.update({name: value for name, value in given.items() if value})
    missing = ["--" + name.lower() for name in given if name not in fields]
    if missing:
        raise BadUsage(f"{options.name} is new; give {', '.join(missing)}")
    text, copy = read(root / base), read(options.copy)
    if copy == text:
        raise BadUsage(f"{options.copy}: the same text as {base}; edit the copy")
    try:
        made = patch_format.make(fields, base, text, copy)
    except PatchError as error:
        raise BadUsage(f"{options.copy}: {error}") from error
    write_patch(path, made)
    if options.copy.endswith(".conflict"):
        os.remove(options.copy)
    print(os.path.relpath(path, root))


def write_patch(path, text):
    """Writes a patch if it can be read back."""
    try:
        patch_format.parse(text)
    except PatchError as error:
        raise BadUsage(str(error)) from error
    path.write_text(text)


def old_base(root, revision, base):
    done = subprocess.run(
        ["git", "-C", root, "show", f"{revision}:{base}"], capture_output=True, text=True
    )
    if done.returncode != 0:
        reason = done.stderr.strip()
        raise BadUsage(f"{base} of {revision}: {reason}; --from names another revision")
    return done.stdout


def merged(ours, before, theirs):
    """(the text of a three-way merge, the number of conflicts)"""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("mistake", "before", "now")]
        for name, text in zip(names, (ours, before, theirs)):
            Path(name).write_text(text)
        labels = [word for name in ("mistake", "before", "now") for word in ("-L", name)]
        done = subprocess.run(
            ["git", "merge-file", "-p", "--diff3"] + labels + names, capture_output=True, text=True
        )
    return done.stdout, done.returncode


def refresh_one(root, path, revision):
    """Merges the change of its source into a patch. Returns a message, or nothing."""
    patch = parse_file(path)
    now, shown = read(root / patch.base), os.path.relpath(path, root)
    try:
        text, conflicts = patch_format.apply(patch, now), 0
    except PatchError:
        before = old_base(root, revision, patch.base)
        try:
            ours = patch_format.apply(patch, before)
        except PatchError as error:
            raise Failed(
                f"{shown}:{error.line}: {error} as it is now or in {revision}; "
                "--from names the revision that it fits"
            ) from error
        text, conflicts = merged(ours, before, now)
    if conflicts:
        conflict = path.with_suffix(".conflict")
        # A file of an earlier refresh may be edited already.
        if not conflict.exists():
            conflict.write_text(text)
        where = os.path.relpath(conflict, root)
        return (
            f"{shown}: in conflict with the change of {patch.base}; edit {where}, then "
            f"'tools/kmes broken make {path.stem} {where}'"
        )
    if text == now:
        return f"{shown}: {patch.base} has this mistake itself now; correct it, or remove the patch"
    path.write_text(patch_format.make(patch.fields, patch.base, now, text))
    return None


def refresh_command(options):
    names = options.names
    paths = [find_patch(options.root, name) for name in names] or all_patches(options.root)
    before = {path: read(path) for path in paths}
    faults = [refresh_one(options.root, path, options.revision) for path in paths]
    for fault in filter(None, faults):
        print(fault, file=sys.stderr)
    changed = sum(read(path) != text for path, text in before.items())
    print(f"{len(paths)} patches, {changed} changed, {sum(map(bool, faults))} to be edited")
    return 1 if any(faults) else 0


def parser():
    main = argparse.ArgumentParser(
        prog="tools/kmes broken",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main.add_argument("--root", type=Path, default=Path("."), help="the top of the tree")
    commands = main.add_subparsers(metavar="COMMAND", required=True)

    def command(name, run, *arguments):
        one = commands.add_parser(name)
        one.set_defaults(run=run)
        for argument in arguments:
            one.add_argument(argument)
        return one

    apply = command("apply", apply_command, "patch", "base", "out")
    apply.add_argument("--twin", metavar="FILE", help="the diff of a twin")
    command("twin", twin_command, "file", "base", "out")
    command("check", check_command).add_argument("patches", nargs="+")
    command("table", table_command, "out").add_argument("patches", nargs="+")
    command("list", list_command)
    command("show", show_command, "name")
    make = command("make", make_command, "name", "copy")
    make.add_argument("--folder", default=EXAMPLE, help="of a new one (default: %(default)s)")
    make.add_argument("--wrong", help="what it does wrong, one sentence")
    make.add_argument("--clause", help="the clause that it violates: 5.1.8.1-2, E7, contract-2")
    make.add_argument("--case", help="the case that must fail it, or '-' and why there is none")
    refresh = command("refresh", refresh_command)
    refresh.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    refresh.add_argument(
        "--from", dest="revision", default="HEAD", help="the revision that they fit (default: HEAD)"
    )
    return main


def main(arguments):
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except Failed as error:
        print(error, file=sys.stderr)
        return error.status


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `list | head` is no error
    sys.exit(main(sys.argv[1:]))
