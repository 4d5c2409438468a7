#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares, keeps and plots figures of kmes-bench.

  figures.py against --new BUILD --old BUILD [--rounds N] [--quick] [GROUP...]
             runs two builds in turn, and prints the ratio of new to old for each row; exit status 1
             if a row is slower
  figures.py keep FIGURES FOLDER      adds the figures to FOLDER/MACHINE.json, a file for each model
                                      of processor
  figures.py plot KEPT SVG            draws the groups `producer`, `reader` and `peers` of KEPT
"""
import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

# A row is slower if it is slower in every round, and if the median is slower by more than this.
LIMIT = 0.05
ROUNDS = 5
SCHEMA = 3


class Fault(Exception):
    """An error, with one line for the user."""


def read(path):
    try:
        with open(path) as file:
            figures = json.load(file)
    except OSError as error:
        raise Fault("%s: %s" % (path, error.strerror))
    except ValueError:
        raise Fault("%s: not JSON; expected a file of `kmes-bench --json`" % path)
    if not isinstance(figures, dict) or not isinstance(figures.get("rows"), list):
        raise Fault("%s: no figures; expected a file of `kmes-bench --json`" % path)
    return figures


def key_of(row):
    # Schema 1 had payload sizes only.
    return row["group"], row["table"], row["variant"], row.get("value", row.get("payload_bytes"))


def median_of(row):
    # Before schema 3 each figure was a time in ns.
    return row["median"] if "median" in row else row["median_ns"]


# -- against ---------------------------------------------------------------------------------------


def amount(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def measure(program, groups, is_quick, folder):
    path = os.path.join(folder, "figures.json")
    command = [program, "--json", path] + (["--quick"] if is_quick else []) + groups
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        raise Fault("%s ended with status %d: %s" % (program, done.returncode, last))
    return {key_of(row): median_of(row) for row in read(path)["rows"]}


def verdict_of(ratios):
    middle = statistics.median(ratios)
    if min(ratios) > 1 and middle > 1 + LIMIT:
        return "slower"
    if max(ratios) < 1 and middle < 1 - LIMIT:
        return "faster"
    return "same"


def against(new, old, groups, rounds, is_quick):
    """Prints a line for each row. Returns the number of slower rows."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            # Each build is first in half of the rounds, because the processor warms up.
            order = [new, old] if turn % 2 else [old, new]
            figures = {program: measure(program, groups, is_quick, folder) for program in order}
            runs.append((figures[new], figures[old]))
    both = [key for key in runs[0][0] if key in runs[0][1]]
    if not both:
        raise Fault("the two builds have no row in common")
    counts = {"slower": 0, "faster": 0, "same": 0}
    print("%-58s %10s %10s  %-19s" % ("row", "new", "old", "new/old (spread)"))
    for key in both:
        ratios = [one[key] / other[key] for one, other in runs]
        verdict = verdict_of(ratios)
        counts[verdict] += 1
        print(
            "%-58s %10.1f %10.1f  %.2f (%.2f to %.2f) %s"
            % (
                "%s, %s, %s, %s" % key,
                statistics.median(one[key] for one, _ in runs),
                statistics.median(other[key] for _, other in runs),
                statistics.median(ratios),
                min(ratios),
                max(ratios),
                "" if verdict == "same" else verdict,
            )
        )
    for name, keys, others in (("new", *runs[0]), ("old", runs[0][1], runs[0][0])):
        only = len([key for key in keys if key not in others])
        if only:
            print("%s in the %s build only" % (amount(only, "row"), name))
    print(
        "%s in %s: %d faster, %d slower, %d the same within %.0f %%"
        % (
            amount(len(both), "row"),
            amount(rounds, "round"),
            counts["faster"],
            counts["slower"],
            counts["same"],
            100 * LIMIT,
        )
    )
    return counts["slower"]


# -- keep ------------------------------------------------------------------------------------------


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def keep(path, folder):
    """Adds the figures to a file, and returns its path. Replaces the groups that the file has."""
    figures = read(path)
    if figures.get("schema") != SCHEMA:
        raise Fault("%s: schema %s; expected %d" % (path, figures.get("schema"), SCHEMA))
    name = re.sub(r"[^a-z0-9]+", "-", processor().lower()).strip("-") + ".json"
    kept = os.path.join(folder, name)
    rows = read(kept)["rows"] if os.path.exists(kept) else []
    groups = {row["group"] for row in figures["rows"]}
    rows = [row for row in rows if row["group"] not in groups] + figures["rows"]
    machine = {
        "processor": processor(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
    }
    os.makedirs(folder, exist_ok=True)
    with open(kept + ".new", "w") as file:
        json.dump({"schema": SCHEMA, "machine": machine, "rows": rows}, file, indent=1)
        file.write("\n")
    os.replace(kept + ".new", kept)
    return kept


# -- plot ------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 470, 260, 46, 152, 34, 40
COLOURS = (
    "#6b7280",
    "#2563eb",
    "#dc2626",
    "#059669",
    "#d97706",
    "#7c3aed",
    "#0891b2",
    "#be185d",
    "#65a30d",
)
# The groups with a cost for each payload size.
PLOTTED = ("producer", "reader", "peers")


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def scale(value, low, high, begin, end):
    share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return begin + share * (end - begin)


def ticks(low, high):
    """Returns the numbers 1, 2, 5, 10, 20, 50 and so on within the range."""
    found = []
    power = 10 ** math.floor(math.log10(low))
    while power <= high:
        found += [power * step for step in (1, 2, 5) if low <= power * step <= high]
        power *= 10
    return found


def panel(title, lines, column):
    """Returns a diagram with two log axes. `lines`: {name: {value of the column: ns}}."""
    values = sorted({value for points in lines.values() for value in points})
    heights = [ns for points in lines.values() for ns in points.values()]
    low, high = min(heights) * 0.8, max(heights) * 1.25
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = ['<text x="%d" y="16" class="t">%s</text>' % (LEFT, escape(title))]
    for tick in ticks(low, high):
        y = scale(tick, low, high, bottom, TOP)
        out.append('<path d="M%d %.1fH%d" class="g"/>' % (LEFT, y, right))
        out.append('<text x="%d" y="%.1f" class="y">%g</text>' % (LEFT - 5, y + 3, tick))
    for value in values:
        x = scale(value, values[0], values[-1], LEFT, right)
        out.append('<text x="%.1f" y="%d" class="x">%d</text>' % (x, bottom + 14, value))
    out.append(
        '<text x="%d" y="%d" class="x">%s; ns each</text>'
        % ((LEFT + right) // 2, bottom + 30, escape(column))
    )
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(
            "%.1f,%.1f"
            % (
                scale(value, values[0], values[-1], LEFT, right),
                scale(points[value], low, high, bottom, TOP),
            )
            for value in sorted(points)
        )
        out.append('<polyline points="%s" stroke="%s"/>' % (path, colour))
        out.append(
            '<text x="%d" y="%d" fill="%s">%s</text>'
            % (right + 16, TOP + 10 + 14 * place, colour, escape(name))
        )
    return "\n".join(out)


def plot(path, target):
    kept = read(path)
    tables = {}
    for row in kept["rows"]:
        if row["group"] in PLOTTED:
            lines = tables.setdefault("%s: %s" % (row["group"], row["table"]), {})
            lines.setdefault(row["variant"], {})[row["value"]] = median_of(row)
    if not tables:
        raise Fault("%s: no figures of the groups %s" % (path, ", ".join(PLOTTED)))
    panels = [panel(title, lines, "payload bytes") for title, lines in tables.items()]
    rows = (len(panels) + 1) // 2
    machine = kept.get("machine", {}).get("processor", "unknown processor")
    with open(target, "w") as file:
        file.write(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
            'font-family="sans-serif" font-size="10">\n'
            "<style>.t{font-size:12px;font-weight:bold}.g{stroke:#d1d5db;stroke-width:.5}"
            ".x{text-anchor:middle}.y{text-anchor:end}"
            "polyline{fill:none;stroke-width:1.6}</style>\n"
            '<rect width="100%%" height="100%%" fill="white"/>\n'
            % (2 * WIDTH, rows * HEIGHT + 16)
        )
        for place, text in enumerate(panels):
            file.write(
                '<g transform="translate(%d %d)">\n%s\n</g>\n'
                % (place % 2 * WIDTH, place // 2 * HEIGHT, text)
            )
        file.write(
            '<text x="%d" y="%d">%s</text>\n</svg>\n'
            % (LEFT, rows * HEIGHT + 8, escape(machine))
        )


def main(arguments):
    parser = argparse.ArgumentParser(prog="figures.py", usage=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("against")
    one.add_argument("--new", required=True)
    one.add_argument("--old", required=True)
    one.add_argument("--rounds", type=int, default=ROUNDS)
    one.add_argument("--quick", action="store_true")
    one.add_argument("groups", nargs="*")
    one = commands.add_parser("keep")
    one.add_argument("figures")
    one.add_argument("folder")
    one = commands.add_parser("plot")
    one.add_argument("kept")
    one.add_argument("svg")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "against":
            slower = against(
                chosen.new, chosen.old, chosen.groups, chosen.rounds, chosen.quick
            )
            return 1 if slower else 0
        if chosen.command == "keep":
            print("kept in %s" % keep(chosen.figures, chosen.folder))
        else:
            plot(chosen.kept, chosen.svg)
        return 0
    except (Fault, OSError) as fault:
        print("figures.py: %s" % fault, file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
