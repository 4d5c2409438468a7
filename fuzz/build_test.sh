#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build_test.sh TARGET...: runs the script for OSS-Fuzz and ClusterFuzzLite with clang-19 and the
# environment of their containers. Every target must be there with its files, and run from its seed
# corpus.
set -uo pipefail
readonly RUNS=300
export SRC=$TEST_TMPDIR/src OUT=$TEST_TMPDIR/out WORK=$TEST_TMPDIR/work
export CC=clang-19 CXX=clang++-19 LIB_FUZZING_ENGINE=-fsanitize=fuzzer
export FUZZING_ENGINE=libfuzzer SANITIZER=address KMES_FUZZ_BUILD_JOBS=2
flags='-O0 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address'
export CFLAGS="$flags -fsanitize=fuzzer-no-link" CXXFLAGS="$flags -fsanitize=fuzzer-no-link"
mkdir -p "$SRC" "$OUT" "$WORK"
ln -s "$PWD" "$SRC/kmes"

fail() {
    echo "FAILED $1"
    exit 1
}

(cd "$SRC/kmes" && bash .clusterfuzzlite/build.sh) || fail "the build script"
for target in "$@"; do
    [ -x "$OUT/$target" ] || fail "$target: there is no program"
    grep -qx 'max_len = [0-9]*' "$OUT/$target.options" || fail "$target: there are no options"
    mkdir "$TEST_TMPDIR/$target"
    (cd "$TEST_TMPDIR/$target" && python3 -m zipfile -e "$OUT/${target}_seed_corpus.zip" .) ||
        fail "$target: the seed corpus cannot be unpacked"
    count=$(ls "$TEST_TMPDIR/$target" | wc -l)
    [ "$count" -eq "$(ls "fuzz/corpora/$target" | wc -l)" ] ||
        fail "$target: the seed corpus has $count files"
    dictionary=()
    if [ -f "fuzz/dictionaries/$target.dict" ]; then
        grep -qx "dict = $target.dict" "$OUT/$target.options" || fail "$target: no dict option"
        dictionary=("-dict=$OUT/$target.dict")
    fi
    # As their runner does: from the output folder.
    (cd "$OUT" && "./$target" "-runs=$((count + RUNS))" -seed=1 -max_len=2048 \
        ${dictionary[@]+"${dictionary[@]}"} "-artifact_prefix=$TEST_TMPDIR/" \
        "$TEST_TMPDIR/$target") >"$TEST_TMPDIR/log" 2>&1 || {
        tail -n 30 "$TEST_TMPDIR/log"
        fail "$target: $RUNS executions"
    }
    sed -n '/DONE/p' "$TEST_TMPDIR/log"
    echo "PASSED $target"
done
