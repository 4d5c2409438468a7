# SPDX-License-Identifier: GPL-2.0-only
"""The second part of `tools/kmes vm`: packs the kernel, the modules and the programs after
tools/lib/vm.sh has built them, boots, and prints the results.

  vm.py command ... -- COMMAND...   runs one command in the guest, and has its exit status
  vm.py suite ... [--test GLOB...]  runs the guest tests, and prints a line for each
  vm.py labels ... [--test GLOB...] prints the Bazel targets that these guest tests need
  vm.py planted ...                 boots once for each planted bug, and prints a line for each
  vm.py list                        prints the table of guest tests
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import guest_tests
import initramfs
import suite
import machine
import planted

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, "tests.txt")
FAILED = 1
BAD_USAGE = 2
SET_UP = 3


def time_limit_scale():
    try:
        return max(1.0, float(os.environ.get("KMES_TIMEOUT_SCALE", "1")))
    except ValueError:
        return 1.0


def base_image(modules):
    """Returns the content of every boot: busybox, the guest's scripts, the modules."""
    image = initramfs.Initramfs()
    busybox = shutil.which("busybox")
    if not busybox:
        sys.exit("tools/kmes: vm: busybox is missing; the package busybox-static has it")
    image.add("/bin/busybox", busybox)
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    for applet in applets.stdout.split():
        if applet != "busybox":
            image.add_link(f"/bin/{applet}", "busybox")
    for name in sorted(os.listdir(os.path.join(HERE, "guest"))):
        place = "/init" if name == "init" else f"/kmes/bin/{name}"
        with open(os.path.join(HERE, "guest", name), "rb") as file:
            image.add_bytes(place, file.read(), 0o755)
    for build in ("production", "form-b", "form-d"):
        image.add_link(f"/kmes/bin/kmes_load_{build}", "kmes_load")
    if modules:
        image.add("/kmes/modules", modules)
    return image


def quoted(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def run_command(options, folder):
    image = base_image(options.modules)
    for path in options.pack:
        image.add(f"/kmes/bin/{os.path.basename(os.path.normpath(path))}", path)
    words = list(options.command)
    if "/" in words[0] and os.path.isfile(words[0]):
        image.add(f"/kmes/bin/{os.path.basename(words[0])}", words[0])
        words[0] = os.path.basename(words[0])
    load = ""
    if options.modules:
        load = "kmes_load_production && " if options.production else "kmes_load && "
    image.add_bytes("/kmes/command", (load + quoted(words) + "\n").encode(), 0o755)
    initrd = os.path.join(folder, "initramfs")
    image.write(initrd)

    def say(line):
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    vm = make_machine(options, initrd, folder)
    limit = (suite.BOOT_SECONDS + options.seconds) * guest_tests.slowness(options.kernel)
    ended = vm.run(limit * time_limit_scale(), say)
    keep_log(options, folder)
    wrong = machine.what_is_wrong(ended, vm.log())
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        return ended.status or FAILED
    return ended.status


def run_suite(options, folder, tests):
    scale = time_limit_scale()

    def boot(rest, number):
        image = base_image(options.modules)
        suite.write_tests(image, rest, options.kernel, scale)
        suite.pack_needs(image, rest, ROOT, options.binaries)
        factor = scale * guest_tests.slowness(options.kernel)
        image.add_bytes("/kmes/command", f"export KMES_TIMEOUT_SCALE={factor:g}\n"
                        f"export KMES_VM_kernel={options.kernel}\nexec run_tests\n".encode())
        place = os.path.join(folder, str(number))
        os.makedirs(place, exist_ok=True)
        initrd = os.path.join(place, "initramfs")
        image.write(initrd)
        return make_machine(options, initrd, place)

    runner = suite.Suite(options.kernel, scale, boot, options.verbose)
    passed = runner.run(tests, options.machines)
    keep_log(options, *[entry.path for entry in sorted(os.scandir(folder), key=by_number)])
    return 0 if passed else FAILED


def run_planted(options, folder):
    def boot(command):
        image = base_image(options.modules)
        image.add_bytes("/kmes/command", command.encode())
        initrd = os.path.join(folder, "initramfs")
        image.write(initrd)
        return make_machine(options, initrd, folder)

    bugs = planted.read_planted(os.path.join(ROOT, "kmod", "bugs", "planted.txt"))
    bugs = planted.choose(bugs, options.kernel, options.test)
    boot_seconds = suite.BOOT_SECONDS * time_limit_scale() * guest_tests.slowness(options.kernel)
    passed = planted.run_planted(bugs, boot_seconds, options.kernel, boot)
    return 0 if passed else FAILED


def memory_of(kernel):
    """Returns the memory of a machine in MiB. KASAN keeps freed memory, and 200 resizes need more
    than 1024."""
    return 2560 if kernel == "kasan" else 1024


def make_machine(options, initrd, folder):
    return machine.Machine(options.image, initrd, folder, cpus=options.cpus,
                           memory_mb=options.memory or memory_of(options.kernel), acpi=options.acpi)


def by_number(entry):
    return int(entry.name)


def keep_log(options, *folders):
    """Concatenates the kernel logs of the machines into the file of --log."""
    if not options.log:
        return
    with open(options.log, "wb") as kept:
        for folder in folders:
            with open(os.path.join(folder, "kernel.log"), "rb") as log:
                shutil.copyfileobj(log, kept)


def list_tests():
    for test in guest_tests.read_table(TABLE):
        print(f"{test.name:24} {test.when:6} {' '.join(test.kernels)}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="vm.py")
    parser.add_argument("what", choices=("command", "suite", "planted", "labels", "list"))
    parser.add_argument("--kernel", default="6.1", choices=guest_tests.KERNELS)
    parser.add_argument("--image", default="", help="the kernel")
    parser.add_argument("--modules", default="", help="folder of modules built for it")
    parser.add_argument("--acpi", action="store_true")
    parser.add_argument("--pack", action="append", default=[])
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--memory", type=int, default=0, help="MiB; 0: depends on the kernel")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--machines", type=int, default=1)
    parser.add_argument("--production", action="store_true")
    parser.add_argument("--log", default="")
    parser.add_argument("--test", action="append", default=[])
    parser.add_argument("--binaries", default="", help="folder of Bazel's outputs")
    parser.add_argument("--verbose", "-v", action="store_true")
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.command = arguments[at + 1:]
    return options


def main():
    options = parse(sys.argv[1:])
    # A signal ends the machines and removes the temporary folder, as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *unused: sys.exit(FAILED))
    try:
        if options.what == "list":
            return list_tests()
        tests = []
        if options.what in ("suite", "labels"):
            tests = guest_tests.choose(guest_tests.read_table(TABLE), options.kernel, options.test)
        if options.what == "labels":
            print("\n".join(sorted({need for test in tests for need in test.needs
                                    if need.startswith("//")})))
            return 0
        with tempfile.TemporaryDirectory(prefix="kmes-vm.") as folder:
            if options.what == "suite":
                return run_suite(options, folder, tests)
            if options.what == "planted":
                return run_planted(options, folder)
            return run_command(options, folder)
    except guest_tests.TableError as error:
        print(f"tools/kmes: vm: {error}", file=sys.stderr)
        return BAD_USAGE
    except OSError as error:
        print(f"tools/kmes: vm: {error}", file=sys.stderr)
        return SET_UP


if __name__ == "__main__":
    sys.exit(main())
