#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh finds its sources by folder. It must compile every source that Bazel's targets have,
# except those of NOT_NEEDED, which no target reaches.
set -uo pipefail

readonly NOT_NEEDED='^conformance/report/html[a-z_]*[.]cc$'
# entry.cc is compiled for each target, and the engine has the main() of replay_main.cc.
readonly NOT_LISTED='^fuzz/(entry|replay_main)[.]cc$'
listed=$TEST_TMPDIR/listed needed=$TEST_TMPDIR/needed
bash fuzz/build.sh --list | sort -u >"$listed" || { echo "FAILED build.sh --list" && exit 1; }
find -L . -name '*.c' -o -name '*.cc' | sed 's|^[.]/||' | grep -vE "$NOT_NEEDED|$NOT_LISTED" |
    sort -u >"$needed"
if [ "$(wc -l <"$needed")" -lt 50 ]; then
    echo "FAILED: Bazel names only these:"
    cat "$needed"
    exit 1
fi
missing=$(comm -23 "$needed" "$listed")
[ -z "$missing" ] && exit
echo "FAILED: build.sh does not compile these sources of the targets; add their folders:"
echo "$missing"
exit 1
