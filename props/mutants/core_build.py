# SPDX-License-Identifier: MIT
"""Compiles the core, or one mutant of it, to a shared object that replaces the core in a program by
LD_PRELOAD. Bazel links the programs of tests dynamically, so their calls of the core are resolved
by name, in the preloaded object first. Knows no operators and no tests."""

import hashlib
import re
import subprocess
from pathlib import Path

# The hooked build, compiled as //kmes:core_hooked; -fPIC, as Bazel does for a shared object. No -g:
# identical objects then mean identical code. No warnings, because mutants cause many. -O1 takes
# half the time of -O2, and finds most of the same equivalences.
COMPILE = ["gcc", "-std=c11", "-ffreestanding", "-fexceptions", "-O1", "-fPIC", "-w"]
# A variable that a mutant leaves uninitialised has the same value in every run. Here it is a
# pattern (so code that zeroes it or not differs), and in the sanitised build 0. A mutant cannot be
# lucky with both.
COMPILE += ["-ftrivial-auto-var-init=pattern"]
COMPILE += ["-DKMES_ORDER_HOOKED", "-c"]
# Detects accesses outside of an object.
SANITISE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SANITISE += ["-ftrivial-auto-var-init=zero"]
RUNTIMES = ["libasan.so", "libubsan.so"]
# C++ unwinds through the core: the checks of a script may end it inside of a hook.
LINK = ["ld", "-shared", "--eh-frame-hdr", "-z", "noexecstack"]
# The hook itself, so that programs without one can also use the preloaded core.
HOOK = "kmes/user/order_hooked.c"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(kmes/[^"]+)"', re.MULTILINE)


class BuildError(Exception):
    """The core itself cannot be built, so mutants cannot be judged."""


def sanitiser_runtimes():
    """The libraries to preload before a sanitised core."""
    found = []
    for name in RUNTIMES:
        command = ["gcc", f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        if not Path(path).is_file():
            raise BuildError(f"gcc has no {name}; Debian's g++ brings it along")
        found.append(path)
    return found


class Core:
    """The unmutated core, compiled once; `scratch` is a folder for objects, `flags` are the
    compiler's, beyond those of every build."""

    def __init__(self, root, scratch, flags=()):
        self.root = Path(root)
        self.scratch = Path(scratch)
        self.flags = list(flags)
        self.sources = sorted(path.name for path in (self.root / "kmes").glob("*.c"))
        if not self.sources:
            raise BuildError(f"no kmes/*.c in {self.root}: --root names the top of the tree")
        self.objects = {}
        folder = self.scratch / "original"
        for name in self.sources:
            target = folder / (name + ".o")
            error = self._compile(self.root / "kmes" / name, target, [])
            if error:
                raise BuildError(f"kmes/{name} does not compile:\n{error}")
            self.objects[name] = target
        self.hook = folder / "order_hooked.o"
        error = self._compile(self.root / HOOK, self.hook, [])
        if error:
            raise BuildError(f"{HOOK} does not compile:\n{error}")
        self.users = {name: self._users_of(name) for name in self._headers()}

    def _headers(self):
        return [path.name for path in (self.root / "kmes").glob("*.h")]

    def _users_of(self, header):
        """The sources that include a header, also through others."""
        return [name for name in self.sources if f"kmes/{header}" in self._closure(name)]

    def _closure(self, name):
        found, open_files = set(), [f"kmes/{name}"]
        while open_files:
            path = self.root / open_files.pop()
            if not path.is_file():
                continue
            for included in INCLUDE.findall(path.read_text()):
                if included not in found:
                    found.add(included)
                    open_files.append(included)
        return found

    def _compile(self, source, target, folders):
        """Returns None, or the compiler's error."""
        target.parent.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{folder}" for folder in folders] + [f"-I{self.root}"]
        command = COMPILE + self.flags + includes + ["-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else done.stderr

    def compile_mutant(self, file, text, name):
        """`text` in place of kmes/`file`: (objects by source, None), or (None, an error)."""
        folder = self.scratch / name
        changed = folder / "kmes" / file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(text)
        objects = {}
        for source in [file] if file in self.objects else self.users[file]:
            target = folder / (source + ".o")
            path = changed if source == file else self.root / "kmes" / source
            error = self._compile(path, target, [folder])
            if error:
                return None, error
            objects[source] = target
        changed.unlink()
        changed.parent.rmdir()
        return objects, None

    @staticmethod
    def digest(objects):
        total = hashlib.sha256()
        for source in sorted(objects):
            total.update(source.encode() + b"\0" + objects[source].read_bytes())
        return total.hexdigest()

    def original_digest(self, objects):
        """The objects of the same sources, unmutated."""
        return self.digest({source: self.objects[source] for source in objects})

    def link(self, objects, target):
        """The core with `objects` in place of its own."""
        all_objects = {**self.objects, **objects}
        command = LINK + ["-o", str(target), str(self.hook)]
        command += [str(all_objects[name]) for name in self.sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{target.name} cannot be linked:\n{done.stderr}")
        return target

    def link_traps(self, target):
        """A core in which every function ends the process: a program that does not notice it does
        not use the preloaded core."""
        names = subprocess.run(
            ["nm", "--defined-only", "--extern-only"] + [str(o) for o in self.objects.values()],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        functions = sorted(set(re.findall(r"^[0-9a-f]+ T (\w+)$", names, re.MULTILINE)))
        source = self.scratch / "traps.c"
        source.write_text("".join(f"void {f}(void) {{ __builtin_trap(); }}\n" for f in functions))
        error = self._compile(source, source.with_suffix(".o"), [])
        if error:
            raise BuildError(f"the trap core does not compile:\n{error}")
        subprocess.run(LINK + ["-o", str(target), str(source.with_suffix(".o"))], check=True)
        return target
