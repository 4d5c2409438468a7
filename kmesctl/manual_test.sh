#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests that kmesctl(1) has each command, each option of each --help with its default, and each name
# in the output of `print`, `convert`, `emitters` and the module's commands.
#
#   manual_test.sh KMESCTL PAGE
set -uo pipefail

KMESCTL=$(readlink -f -- "$1")
PAGE=$(readlink -f -- "$2")
readonly KMESCTL PAGE
source kmesctl/testing.sh

# Prints the page without the marks of roff.
plain() { sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e 's/\\e/\\/g' "$PAGE"; }

# section NAME: prints the text below the heading NAME.
section() {
    plain | awk -v name="$1" '
        /^\.S[SH] / { on = substr($0, 5) == name; next }
        on'
}

# Prints the names of the options that a section describes, from the lines after .TP.
options_of_section() {
    section "$1" | awk 'tag; { tag = $0 == ".TP" }' | grep -oE '^-.*' | grep -oE -- '--[a-z-]+'
}

# Prints the names of the options in a help text on standard input, without --help, which the page
# has once.
options_of_help() {
    grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+' | grep -vx -- --help
}

commands() { "$KMESCTL" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }

# check_options HEADING HELP: checks that the section and the help text have the same options.
check_options() {
    local heading=$1 help=$2
    diff <(options_of_help <<<"$help" | sort -u) <(options_of_section "$heading" | sort -u) \
        >differences || fail "$heading, options of --help and of the page: $(cat differences)"
}

# check_defaults HEADING HELP: checks that the section has each default of the help text.
check_defaults() {
    local heading=$1 help=$2 value
    while read -r value; do
        section "$heading" | tr '\n' ' ' | grep -qE "Default: $value\b" ||
            fail "$heading: the page does not have \"Default: $value\""
    done < <(sed -nE 's/.*\(default ([0-9A-Za-z]+)\)$/\1/p' <<<"$help")
}

test_commands() {
    local command help
    [ -n "$(commands)" ] || fail "no commands"
    for command in $(commands); do
        help=$("$KMESCTL" "$command" --help) || fail "$command --help"
        check_options "$command" "$help"
        check_defaults "$command" "$help"
    done
    check_options 'The option --device' "$("$KMESCTL" --device x --help)"
}

# has_words HEADING WORDS...: checks that the section has each word.
has_words() {
    local heading=$1 word
    shift
    [ $# -gt 0 ] || fail "$heading: no names in the output"
    for word; do
        section "$heading" | grep -qw -- "$word" || fail "$heading: the page does not have $word"
    done
}

# Prints the names in the JSON objects on standard input.
keys() { grep -oE '"[a-z_]+":' | tr -d '":' | sort -u; }

# serve FILE: starts a server with its messages in FILE, waits until it serves, and sets SERVER.
serve() {
    "$KMESCTL" serve --cpus 1 --capacity 64K 2>"$1" &
    SERVER=$!
    started+=("$SERVER")
    until_true grep -q serves "$1"
}

test_formats() {
    serve first.err
    "$KMESCTL" record -o recording 2>record.err &
    local recorder=$!
    started+=("$recorder")
    until_true grep -q records record.err
    "$KMESCTL" emit first || fail "emit"
    "$KMESCTL" print --json >printed &
    local printer=$!
    started+=("$printer")
    until_true grep -q first printed
    kill -STOP "$recorder" "$printer"
    # Twice the capacity of the ring, so that both readers lose events.
    "$KMESCTL" emit filler --count 4000 || fail "emit"
    "$KMESCTL" emit last '{}' || fail "emit"
    kill -CONT "$recorder" "$printer"
    until_true grep -q last printed
    grep -q '"lost"' printed || fail "print has no loss"
    kill -TERM "$SERVER"
    wait "$SERVER" || fail "serve: status $?"
    serve next.err
    "$KMESCTL" emit next || fail "emit"
    until_true grep -q '"next"' printed
    grep -q '"session"' printed || fail "print has no session"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat record.err)"
    # shellcheck disable=SC2046
    has_words 'JSON of print' $(keys <printed)
    "$KMESCTL" convert --to json recording >converted || fail "convert --to json"
    grep -q '"lost"' converted || fail "the recording has no loss"
    grep -q '"session"' converted || fail "the recording has no session"
    # shellcheck disable=SC2046
    has_words 'JSON of convert' $(keys <converted)
    "$KMESCTL" convert --to csv recording >converted || fail "convert --to csv"
    # shellcheck disable=SC2046
    has_words 'CSV of convert' $(head -n 1 converted | tr ',' ' ')
    "$KMESCTL" convert --to ctf -o trace recording || fail "convert --to ctf"
    # shellcheck disable=SC2046
    has_words 'CTF of convert' $(sed -n 's/.*name = "\(kmes[a-z_]*\)".*/\1/p' trace/metadata) \
        $(sed -n '/^event {/,/^};/s/^ *u*[a-z0-9_]*_t \([a-z_]*\)[;[].*/\1/p' trace/metadata)
    "$KMESCTL" emitters --json >emitters || fail "emitters"
    # shellcheck disable=SC2046
    has_words 'JSON of emitters' $(keys <emitters)
}

test_commands
test_formats
[ "$failures" -eq 0 ] && echo "passed"
exit "$((failures > 0))"
