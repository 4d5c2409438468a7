#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The public headers of libkmes_api.txt, in a folder with nothing else, as they are installed. Each
# compiles alone as C11 and as C++20, and declares the functions that the table has under it. Its
# structures have the layouts of the table.
set -uo pipefail
export LC_ALL=C

readonly API=kmes/user/libkmes_api.txt
readonly INCLUDE=$TEST_TMPDIR/include
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

# compiles HEADER COMPILER OPTION...: twice in one file, and first in it.
compiles() {
    local header=$1
    shift
    printf '#include <%s>\n#include "%s"\n' "$header" "$header" |
        "$@" -Wall -Wextra -Werror -pedantic -fsyntax-only -I"$INCLUDE" - \
            >"$TEST_TMPDIR/log" 2>&1 || fail "$header, $*: $(head -n 20 "$TEST_TMPDIR/log")"
}

test_alone() {
    local header compiler
    for header in "${HEADERS[@]}"; do
        compiles "$header" gcc -std=c11 -x c -Wstrict-prototypes -Wundef
        compiles "$header" g++ -std=c++20 -x c++ -Wundef
        for compiler in clang-19 clang; do
            command -v "$compiler" >/dev/null || continue
            compiles "$header" "$compiler" -std=c11 -x c -Wstrict-prototypes -Wundef
            compiles "$header" "$compiler" -std=c++20 -x c++ -Wundef
            break
        done
        command -v "$compiler" >/dev/null || echo "SKIPPED: no clang for $header"
    done
}

# declared HEADER: the functions that it declares and does not define.
declared() {
    echo "#include <$1>" | gcc -std=c11 -x c -I"$INCLUDE" -aux-info "$TEST_TMPDIR/aux" \
        -fsyntax-only - && grep -F "/$1:" "$TEST_TMPDIR/aux" | grep -v ' static ' |
        sed -nE 's/.*[ *](kmes_[a-z0-9_]+) \(.*/\1/p' | sort
}

test_functions() {
    local header
    for header in "${HEADERS[@]}"; do
        declared "$header" >"$TEST_TMPDIR/declared"
        awk -v header="$header" '$1 == "header" { on = $2 == header } on && /^    / { print $1 }' \
            "$API" | sort >"$TEST_TMPDIR/table"
        diff "$TEST_TMPDIR/declared" "$TEST_TMPDIR/table" >"$TEST_TMPDIR/log" ||
            fail "$header: '<' is not in $API, '>' is not declared: $(cat "$TEST_TMPDIR/log")"
    done
}

test_layouts() {
    printf '#include <%s>\n' "${HEADERS[@]}" | gcc -std=c11 -g -fno-eliminate-unused-debug-types \
        -I"$INCLUDE" -x c -c -o "$TEST_TMPDIR/layouts.o" - || fail "the headers together"
    readelf --debug-dump=info "$TEST_TMPDIR/layouts.o" | awk -f kmes/user/layouts.awk |
        grep ' kmes_' | sort >"$TEST_TMPDIR/layouts"
    grep '^layout ' "$API" | sort >"$TEST_TMPDIR/table"
    [ -s "$TEST_TMPDIR/table" ] || fail "$API has no layouts"
    comm -23 "$TEST_TMPDIR/table" "$TEST_TMPDIR/layouts" >"$TEST_TMPDIR/log"
    [ ! -s "$TEST_TMPDIR/log" ] || fail "not so in the headers: $(cat "$TEST_TMPDIR/log")"
    # A new structure gets its line with the first release that has it.
    comm -13 "$TEST_TMPDIR/table" "$TEST_TMPDIR/layouts"
}

mapfile -t HEADERS < <(sed -n 's/^header //p' "$API")
[ "${#HEADERS[@]}" -gt 0 ] || fail "$API names no header"
for header in "${HEADERS[@]}"; do
    mkdir -p "$INCLUDE/${header%/*}"
    cp "$header" "$INCLUDE/$header" || fail "$header is not there"
done
test_alone
test_functions
test_layouts
echo "$failures failures"
[ "$failures" -eq 0 ]
