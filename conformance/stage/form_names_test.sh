#!/bin/sh
# SPDX-License-Identifier: MIT
#
# form_names_test.sh LIBRARY...: each name that the core defines for another form of the layout
# contains the letter of the form (form_names.h), so that the linker never takes it for that of form
# A.
set -u

faults=0
libraries=0
for library in "$@"; do
    case $library in *.a | *.lo) ;; *) continue ;; esac
    libraries=$((libraries + 1))
    nm --defined-only -g "$library" | awk 'NF == 3 && $2 ~ /^[TDBRC]$/ && $3 !~ /_form_[bd]/ {
        print $3; found = 1 } END { exit found }' || {
        echo "FAIL: $library defines the names above; add them to form_names.h"
        faults=1
    }
done
[ "$libraries" -gt 0 ] || { echo "FAIL: no archive among: $*"; exit 1; }
exit "$faults"
