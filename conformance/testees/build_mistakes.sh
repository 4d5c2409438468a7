#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build_mistakes.sh SOURCE PROGRAM...: copies of a script; in each the line `MISTAKE = ""` is
# replaced by one with the mistake's name, which is in the program's (broken_<design>-<mistake>).
set -eu

source=$1
shift
grep -q '^MISTAKE = ""$' "$source"
for program; do
    name=${program##*/}
    mistake=
    case $name in broken_*) mistake=${name#*-} ;; esac
    sed "s/^MISTAKE = \"\"\$/MISTAKE = \"$mistake\"/" "$source" >"$program"
    chmod +x "$program"
done
