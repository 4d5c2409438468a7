#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Merges static libraries into one archive with one object. Only the functions of the table API stay
# global, so no other symbol can collide with one of the program.
#
#   merge_library.sh OUTPUT API ARCHIVE...
set -euo pipefail

main() {
    local output=$1 api=$2 scratch roots=()
    shift 2
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064  # expands the folder's name now
    trap "rm -rf -- '$scratch'" EXIT
    awk '$1 ~ /^kmes_/ && $2 ~ /^KMES_/ { print $1 }' "$api" >"$scratch/symbols"
    mapfile -t roots < <(sed 's/^/-u/' "$scratch/symbols")
    # Remove code and data that no function of the table needs.
    ld -r --gc-sections "${roots[@]}" -o "$scratch/libkmes.o" --whole-archive "$@"
    objcopy --keep-global-symbols="$scratch/symbols" "$scratch/libkmes.o"
    ar rcsD "$output" "$scratch/libkmes.o"
}

main "$@"
