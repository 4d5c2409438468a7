#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# make_corpora.sh TARGET [FOLDER...]: makes fuzz/corpora/TARGET again, as small as possible. Its
# sources are the current files, and those of the folders (finds of a fuzzer, say). For targets with
# scripts, also the scripts that the properties draw, and those of props/corpus. Files named
# `found-*` (inputs of fixed bugs) and `kept-*` (written by hand) always stay.
#
# An input that triggers the planted bug of the canary (canaries/TARGET.canary) is left out.
#
# The corpora of this repository were made in this way. Small means: a set of files that reaches
# each edge of the control flow, without counting how often (libFuzzer's -set_cover_merge).
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
readonly SEEDS=600 SEED_OPERATIONS=24

[ $# -ge 1 ] && [ -f "fuzz/targets/$1.cc" ] || {
    echo "usage: fuzz/make_corpora.sh TARGET [FOLDER...]; TARGET is a name in fuzz/targets" >&2
    exit 2
}
target=$1
shift
folders=("$@")
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
mkdir -p "$scratch/seeds" "$scratch/merged" "fuzz/corpora/$target"

profile=
case "$target" in
    script) profile=99 ;;
    hostile) profile=2 ;;
esac
if [ -n "$profile" ]; then
    bazel build //fuzz:make_seeds
    "$(bazel info bazel-bin)/fuzz/make_seeds" "$scratch/seeds" "$SEEDS" 1 "$SEED_OPERATIONS" \
        "$profile"
    folders+=("$scratch/seeds" props/corpus)
fi
bazel build --config=fuzz "//fuzz:$target" "//fuzz:${target}_canary"
# Called once for each configuration, the folder says which: bazel-bin is of the last one.
bin=$(bazel info --config=fuzz bazel-bin)/fuzz
# A file that triggers the planted bug of the canary would end each of its runs at once.
mkdir -p "$scratch/sources"
find "fuzz/corpora/$target" ${folders[@]+"${folders[@]}"} -type f -print0 |
    while IFS= read -r -d '' file; do
        "$bin/${target}_canary" -runs=0 -artifact_prefix="$scratch/" "$file" >/dev/null 2>&1 ||
            continue
        cp -n -- "$file" "$scratch/sources/"
    done
"$bin/$target" -set_cover_merge=1 -use_counters=0 -max_len=4096 "$scratch/merged" \
    "$scratch/sources"
find "fuzz/corpora/$target" -type f ! -name 'found-*' ! -name 'kept-*' -delete
cp -- "$scratch"/merged/* "fuzz/corpora/$target/"
printf '%s: %s files, %s bytes\n' "$target" "$(ls "fuzz/corpora/$target" | wc -l)" \
    "$(cat "fuzz/corpora/$target"/* | wc -c)"
