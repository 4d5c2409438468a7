#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The shared and the static libkmes export the functions of libkmes_api.txt and nothing else. The
# shared one has the versions of the table and its soname. Both need the C library alone.
set -uo pipefail

readonly API=kmes/user/libkmes_api.txt
readonly SHARED=kmes/user/libkmes.so.0
readonly STATIC=kmes/user/static/libkmes.a
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

# The exported functions, "NAME VERSION" each.
functions_of_table() { awk '$1 ~ /^kmes_/ && $2 ~ /^KMES_/ { print $1, $2 }' "$API" | sort; }

# same NAME EXPECTED FOUND: two sorted lists in files.
same() {
    diff "$2" "$3" >"$TEST_TMPDIR/diff" ||
        fail "$1: '<' is missing, '>' is not in $API: $(grep '^[<>]' "$TEST_TMPDIR/diff")"
}

# dynamic_symbols KIND: "NAME VERSION" of the defined or the undefined dynamic symbols.
dynamic_symbols() {
    readelf --wide --dyn-syms "$SHARED" | awk -v undefined="$([ "$1" = undefined ] && echo 1)" '
        NR > 3 && $8 != "" && ($7 == "UND") == (undefined == 1) { print $8 }' |
        sed -E 's/@@?/ /; s/ \([0-9]+\)$//' | sort
}

test_table() {
    functions_of_table >"$TEST_TMPDIR/table"
    [ -s "$TEST_TMPDIR/table" ] || fail "$API names no function"
    [ -z "$(cut -d' ' -f1 "$TEST_TMPDIR/table" | uniq -d)" ] || fail "$API names a function twice"
    local function=' {4}kmes_[a-z0-9_]+ +(KMES_0\.[0-9]+ +kmes_[a-z0-9_]+|- +-)'
    grep -vE "^(#.*|layout .*|header kmes/[a-z_/]+\.h|$function|)\$" "$API" &&
        fail "$API: the lines above are neither a header nor a function nor a layout"
}

test_shared_exports() {
    # The names of the versions are symbols too.
    dynamic_symbols defined | grep -vE '^(KMES_0\.[0-9]+) \1$|^KMES_0\.[0-9]+$' \
        >"$TEST_TMPDIR/shared"
    same "$SHARED" "$TEST_TMPDIR/table" "$TEST_TMPDIR/shared"
    readelf --wide --dyn-syms "$SHARED" | grep ' kmes_' | grep -v ' FUNC ' &&
        fail "$SHARED: the symbols above are no functions"
    readelf -d "$SHARED" | grep -qF 'soname: [libkmes.so.0]' || fail "$SHARED: another soname"
}

test_shared_needs() {
    local needed
    needed=$(readelf -d "$SHARED" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
    [ "$needed" = libc.so.6 ] || fail "$SHARED needs $needed; expected libc.so.6 alone"
    dynamic_symbols undefined | grep -vE ' GLIBC_[0-9.]+$' |
        grep -vE '^(_ITM_(de)?registerTMCloneTable|__gmon_start__)$' &&
        fail "$SHARED: the symbols above are not of the C library"
    readelf --wide -l "$SHARED" | grep -E 'GNU_STACK.* RWE' && fail "$SHARED: executable stack"
    readelf -d "$SHARED" | grep TEXTREL && fail "$SHARED: relocations in its code"
}

test_static_exports() {
    nm --defined-only --extern-only "$STATIC" | awk 'NF == 3 { print $3 }' | sort \
        >"$TEST_TMPDIR/static"
    cut -d' ' -f1 "$TEST_TMPDIR/table" >"$TEST_TMPDIR/names"
    same "$STATIC" "$TEST_TMPDIR/names" "$TEST_TMPDIR/static"
}

# A later version is a node after the earlier ones, in the order of numbers.
test_version_script() {
    printf '%s\n' '    kmes_c KMES_0.100 kmes_c' '    kmes_b KMES_0.21 kmes_b' \
        '    kmes_a KMES_0.20 kmes_a' '    kmes_d - -' >"$TEST_TMPDIR/api"
    awk -f kmes/user/version_script.awk "$TEST_TMPDIR/api" | tr -s ' \n' ' ' >"$TEST_TMPDIR/script"
    [ "$(cat "$TEST_TMPDIR/script")" = "KMES_0.20 { global: kmes_a; local: *; }; \
KMES_0.21 { global: kmes_b; } KMES_0.20; KMES_0.100 { global: kmes_c; } KMES_0.21; " ] ||
        fail "the version script is $(cat "$TEST_TMPDIR/script")"
}

test_table
test_shared_exports
test_shared_needs
test_static_exports
test_version_script
echo "$failures failures"
[ "$failures" -eq 0 ]
