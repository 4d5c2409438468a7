#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Recorded events as a stream of the suite. kmesctl serves, emits and records. The suite emits the
# events of the file to a correct and to a broken consumer.
#
#   stream_test.sh SUITE KMESCTL CORRECT BROKEN
set -uo pipefail

SUITE=$(readlink -f -- "$1") KMESCTL=$(readlink -f -- "$2")
CORRECT=$(readlink -f -- "$3") BROKEN=$(readlink -f -- "$4")
readonly SUITE KMESCTL CORRECT BROKEN
source kmesctl/testing.sh

# record FILE COMMAND...: records what COMMAND emits.
record() {
    local file=$1 recorder
    shift
    "$KMESCTL" record -o "$file" 2>"$file.said" &
    recorder=$!
    until_true grep -q 'records 3 CPUs' "$file.said"
    "$@"
    kill -TERM "$recorder"
    wait "$recorder" || fail "record: $(cat "$file.said")"
}

emit_some() {
    local i
    "$KMESCTL" emit many --count 2000 'a payload'
    head -c 50000 /dev/urandom | "$KMESCTL" emit large --file -
    for i in $(seq 20); do
        "$KMESCTL" emit "app.type.$i" --json "{\"number\":$i}"
        "$KMESCTL" emit empty
    done
}

# suite STATUS PATTERN OPTIONS...: the output must match the pattern.
suite() {
    local status=$1 pattern=$2 is
    shift 2
    "$SUITE" "$@" >said 2>&1
    is=$?
    [ "$is" -eq "$status" ] || fail "suite $*: status $is, not $status: $(cat said)"
    grep -q -- "$pattern" said || fail "suite $*: $(cat said)"
}

# refused PATTERN FILE: expects one line, before any case.
refused() {
    suite 2 "$1" --stream "$2" --filter 'stream/*' -- "$CORRECT"
    [ "$(wc -l <said)" -eq 1 ] || fail "$2: more than a line: $(cat said)"
}

serve() {
    "$KMESCTL" serve --cpus 3 --capacity 1M 2>"$1.said" &
    started+=($!)
    until_true grep -q serves "$1.said"
}

serve first
record events emit_some
suite 0 'stream/every-event .*2041 events of [123] CPU' --stream events --filter 'stream/*' \
    -- "$CORRECT"
[ "$(grep -c '2041 events of' said)" -eq 4 ] || fail "not four cases: $(cat said)"
suite 1 'stream/every-event' --stream events --filter 'stream/every-event' -- "$BROKEN"
grep -q -- '--stream events' said || fail "the line to run it again: $(cat said)"
suite 2 'add --stream FILE' --filter 'stream/*' -- "$CORRECT"

mkdir saved
suite 1 'stream/every-event' --stream events --save saved --filter stream/every-event -- "$BROKEN"
for file in saved/*; do
    suite 1 'stream/every-event' replay "$file"
    suite 0 'stream/every-event' replay "$file" -- "$CORRECT"
done

export KMES_SOCKET=other
serve other
record empty true
refused 'it has no event' empty
head -c 5000 events >cut
refused 'cut' cut
refused 'No such file' nothing
refused 'stream' "$SUITE"
refused 'stream' .
[ "$failures" -eq 0 ] && echo "all as it should be"
