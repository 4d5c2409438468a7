#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds every fuzz target by the conventions of OSS-Fuzz and ClusterFuzzLite, without Bazel, which
# their containers lack. The environment gives the compilers and the folders:
#
#   CC CXX CFLAGS CXXFLAGS   the compilers, with the sanitizer's flags (and coverage's)
#   LIB_FUZZING_ENGINE       the engine: -fsanitize=fuzzer, or a library
#   OUT                      gets TARGET, TARGET_seed_corpus.zip, TARGET.dict, TARGET.options
#   WORK                     for objects; default: a temporary folder
#
# build.sh --list prints the sources that it compiles, and builds nothing.
#
# Sources are found by folder, so Bazel has the only list of them. All objects are in an archive,
# from which the linker takes what a target needs.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# An exception of the test may leave the hooked core (kmes/BUILD.bazel). The programs in OUT run
# without this machine's libraries, so fmt is compiled as a source.
readonly common=(-I. -Ikmod/uapi -DKMES_ORDER_HOOKED -g1 -pthread)
readonly c_options=(-std=c11 -ffreestanding -fexceptions)
readonly cxx_options=(-std=c++20)

# (No target writes HTML, and html.cc includes a header that Bazel makes.)
sources() {
    ls kmes/*.c kmes/tests/hooks.cc kmes/tests/world.cc
    ls tools/libs/fmt.cc kmesctl/escape.cc kmesctl/msgpack_text.cc fuzz/script_mutator.cc
    ls kmes/user/*.c fuzz/targets/*.cc
}

# The sources of a folder are read together, as Bazel does it for the sanitizers
# (tools/bazel/joined.bzl). Most of the time goes into the headers that they share. A folder is not
# here if two of its sources have one name for different things.
joined_folders() {
    printf '%s\n' record kmes/user props/script props/machine conformance/model conformance/oracle \
        conformance/failure conformance/report
}

# sources_of FOLDER: prints the sources of a joined folder.
sources_of() {
    ls "$1"/*.cc | grep -vE '/(order_tsan|test_support)[.]|_(test|main)[.]cc$|/report/html'
}

if [ "${1-}" = --list ]; then
    sources
    for folder in $(joined_folders); do
        sources_of "$folder"
    done
    exit
fi
for name in CC CXX OUT LIB_FUZZING_ENGINE; do
    [ -n "${!name-}" ] && continue
    echo "fuzz/build.sh: $name is not set; see its first lines" >&2
    exit 2
done
read -ra c_flags <<<"${CFLAGS-}"
read -ra cxx_flags <<<"${CXXFLAGS-}"
read -ra engine <<<"$LIB_FUZZING_ENGINE"
scratch=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/kmes-fuzz.XXXXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
mkdir -p "$OUT"

# join FOLDER: writes files that include up to 8 sources of FOLDER each, and prints their paths.
join() {
    local -a found
    mapfile -t found < <(sources_of "$1")
    local first
    for ((first = 0; first < ${#found[@]}; first += 8)); do
        local file=$scratch/$(tr / _ <<<"$1")_joined_$first.cc
        printf '#include "%s"\n' "${found[@]:first:8}" >"$file"
        printf '%s\n' "$file"
    done
}

# compile SOURCE OBJECT [OPTIONS...]
compile() {
    local source=$1 object=$2
    shift 2
    case "$source" in
        *.c) "$CC" ${c_flags[@]+"${c_flags[@]}"} "${common[@]}" "${c_options[@]}" "$@" \
            -c "$source" -o "$object" ;;
        *) "$CXX" ${cxx_flags[@]+"${cxx_flags[@]}"} "${common[@]}" "${cxx_options[@]}" "$@" \
            -c "$source" -o "$object" ;;
    esac
}

targets=$(sed -n '/^kmes_fuzz_target(/,/^)/s/^ *name = "\(.*\)",$/\1/p' fuzz/BUILD.bazel |
    grep -vx empty)
# The targets whose input is a script.
scripts=$(awk '/^kmes_fuzz_target\(/ { name = "" }
    /^    name = / { split($0, part, "\""); name = part[2] }
    /^    scripts = True/ { print name }' fuzz/BUILD.bazel)

running=0
sources >"$scratch/sources"
for folder in $(joined_folders); do
    join "$folder" >>"$scratch/sources"
done
while IFS= read -r source; do
    compile "$source" "$scratch/$(tr / _ <<<"$source").o" &
    running=$((running + 1))
    if [ "$running" -ge "${KMES_FUZZ_BUILD_JOBS:-$(nproc)}" ]; then
        wait -n
        running=$((running - 1))
    fi
done <"$scratch/sources"
while [ "$running" -gt 0 ]; do
    wait -n
    running=$((running - 1))
done
ar rcs "$scratch/all.a" "$scratch"/*.o

for target in $targets; do
    options=("-DKMES_FUZZ_TARGET=$target")
    if grep -qxF "$target" <<<"$scripts" && [ "${FUZZING_ENGINE:-libfuzzer}" = libfuzzer ]; then
        options+=(-DKMES_FUZZ_SCRIPTS)
    fi
    compile fuzz/entry.cc "$scratch/entry" "${options[@]}"
    "$CXX" ${cxx_flags[@]+"${cxx_flags[@]}"} "$scratch/entry" "$scratch/all.a" \
        "${engine[@]}" -pthread -o "$OUT/$target"
    (cd fuzz/corpora && zip -qrj - "$target") >"$OUT/${target}_seed_corpus.zip"
    printf '[libfuzzer]\nmax_len = 2048\ntimeout = 60\n' >"$OUT/$target.options"
    if [ -f "fuzz/dictionaries/$target.dict" ]; then
        cp -- "fuzz/dictionaries/$target.dict" "$OUT/$target.dict"
        printf 'dict = %s.dict\n' "$target" >>"$OUT/$target.options"
    fi
done
