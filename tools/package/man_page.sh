#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Prints the manual page of kmes-conformance: the template, with the options and the commands that
# the program itself prints for --help.
#
#   man_page.sh PROGRAM TEMPLATE VERSION DATE
set -euo pipefail

# Plain text on standard input as text of roff.
escape() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\\&\\1/"
}

# options_of HELP: an entry for each option; the text of one may follow in the next line.
options_of() {
    sed -n '/^Options:$/,/^$/p' <<<"$1" | escape | awk '
        /^  \\-/ {
            line = substr($0, 3)
            split_at = match(line, /  +/)
            name = split_at ? substr(line, 1, split_at - 1) : line
            sub(/,/, ", ", name)
            printf ".TP\n.B %s\n", name
            if (split_at) print substr(line, split_at + RLENGTH)
            next
        }
        /^    / { sub(/^ +/, ""); print }'
}

# What follows after the options: how a program is named, and the exit status.
footer_of() {
    sed -e '1,/^Options:$/d' <<<"$1" | sed -e '1,/^$/d' | sed '/^$/d' | escape
}

commands_of() {
    sed -n 's/^Commands, as the first word: \(.*\) (.*$/\1/p' <<<"$1" | tr -d ','
}

main() {
    local program=$1 template=$2 version=$3 date=$4 help line command words
    help=$("$program" --help)
    while IFS= read -r line; do
        case "$line" in
            @OPTIONS@) options_of "$help" ;;
            @COMMANDS@)
                for command in $(commands_of "$help"); do
                    words=$("$program" "$command" --help)
                    printf '.SS %s\n' "$command"
                    head -n 1 <<<"$words" | escape
                    options_of "$words"
                    printf '.PP\n'
                    footer_of "$words"
                done
                ;;
            *)
                line=${line//@VERSION@/$version}
                printf '%s\n' "${line//@DATE@/$date}"
                ;;
        esac
    done <"$template"
}

main "$@"
