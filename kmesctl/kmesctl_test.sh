#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests serve, emit, print and top, also with killed processes, full disks, closed pipes and stopped
# readers. Waits for conditions, never for a time.
#
#   kmesctl_test.sh KMESCTL
set -uo pipefail

KMESCTL=$(readlink -f -- "$1")
readonly KMESCTL
source kmesctl/testing.sh
unset NO_COLOR NOTIFY_SOCKET
export TERM=dumb

# expect STATUS PATTERN COMMAND...: runs the command. Its output and errors must be one line that
# matches PATTERN; '': it must print nothing.
expect() {
    local status=$1 pattern=$2 is
    shift 2
    "$@" >said 2>&1
    is=$?
    [ "$is" -eq "$status" ] || fail "$*: status $is, not $status"
    if [ -n "$pattern" ]; then
        grep -q -- "$pattern" said && [ "$(wc -l <said)" -eq 1 ] || fail "$*: said: $(cat said)"
    else
        [ ! -s said ] || fail "$*: said: $(cat said)"
    fi
}

# serve [OPTIONS...]: starts a server, waits until it serves, and sets SERVER. Each server has its
# own file for messages.
servers=0
serve() {
    servers=$((servers + 1))
    "$KMESCTL" serve --cpus 1 "$@" 2>"serve.$servers" &
    SERVER=$!
    started+=("$SERVER")
    until_true grep -q serves "serve.$servers"
}

# background FILE COMMAND...: starts the command with its output to FILE, and sets STARTED. As in a
# terminal, SIGINT is not ignored.
background() {
    local file=$1
    shift
    : >"$file"
    env --default-signal=INT,PIPE "$@" >"$file" 2>"$file.err" &
    STARTED=$!
    started+=("$STARTED")
}

# ends STATUS PID WHAT
ends() {
    local is
    wait "$2"
    is=$?
    [ "$is" -eq "$1" ] || fail "$3: status $is, not $1"
}

is_stopped() { grep -q '^State:.*T' "/proc/$1/status"; }

test_usage() {
    expect 2 'did you mean print?' "$KMESCTL" prin
    expect 2 'did you mean --count?' "$KMESCTL" print --coun=1
    expect 2 'no command' "$KMESCTL"
    expect 2 'from 1 to' "$KMESCTL" print --count 0
    expect 2 'userspace, kmes' "$KMESCTL" print --origin none
    expect 2 '0,2-5' "$KMESCTL" print --cpu 5-2
    expect 2 'PATH=VALUE' "$KMESCTL" print --field name
    expect 2 'auto, text, hex' "$KMESCTL" print --payload base64
    expect 2 'a power of two' "$KMESCTL" serve --capacity 5M
    expect 2 'octal' "$KMESCTL" serve --mode 888
    expect 2 'a digit is missing' "$KMESCTL" emit t --hex abc
    expect 2 'not JSON: it ends too early' "$KMESCTL" emit t --json '{'
    expect 2 'byte 4, the last one of "\[1,x", is invalid' "$KMESCTL" emit t --json '[1,x]'
    expect 2 'has the name "a" twice' "$KMESCTL" emit t --json '{"a":1,"b":{"a":1},"a":2}'
    expect 2 '"b" twice' "$KMESCTL" emit t --json '[{"b":1},{"b":1,"b":[]}]'
    expect 2 'larger than a double' "$KMESCTL" emit t --json 1e999
    expect 2 '--json needs PAYLOAD or --file' "$KMESCTL" emit t --json
    expect 2 '--hex needs PAYLOAD or --file' "$KMESCTL" emit t --hex
    expect 2 'a whole number from 1' "$KMESCTL" print --timeout 0.5
    expect 2 'expected kmesctl print without it' "$KMESCTL" --device /dev/kmes print
    expect 2 'expected kmesctl print without it' "$KMESCTL" --device=/dev/kmes print
    expect 0 '^kmesctl [0-9]' "$KMESCTL" --version
    local command
    for command in serve 'emit t' print top emitters 'record -o new' 'replay file'; do
        # shellcheck disable=SC2086  # words
        expect 2 '"" is not an address' "$KMESCTL" $command --socket ''
        # shellcheck disable=SC2086
        expect 2 '"@" is not an address; expected a path' "$KMESCTL" $command --socket @
    done
    for command in serve 'emit t' print top emitters 'record -o new'; do
        # shellcheck disable=SC2086
        KMES_SOCKET=@ expect 2 'KMES_SOCKET: "@" is not an address' "$KMESCTL" $command
    done
    expect 2 'the name of the file is empty' "$KMESCTL" record -o ''
    expect 2 'the name of the file is empty' "$KMESCTL" convert --to json -o '' file
    expect 1 'there is no folder no/folder; make it' "$KMESCTL" serve --socket no/folder/s
    "$KMESCTL" --help >/dev/full 2>said
    [ $? -eq 1 ] && grep -q 'No space left' said || fail "--help, full disk: $(cat said)"
    printf '%0600d' 0 | tr 0 '[' >deep
    expect 2 'deeper than 500 values' "$KMESCTL" emit t --json --file deep
    printf '%012000000d' 0 | sed 's/00/0,/g' >long
    expect 2 'more than 5242880 values' "$KMESCTL" emit t --json --file long
    # Few commas; the values are in the brackets.
    local nested
    nested=,$(printf '%0499d' 0 | tr 0 '[')$(printf '%0499d' 0 | tr 0 ']')
    { printf '[0'; yes "$nested" | head -n 15000; printf ']'; } >nested
    expect 2 'more than 5242880 values' "$KMESCTL" emit t --json --file nested
    expect 1 'no producer serves' "$KMESCTL" print
    expect 1 'no producer serves' "$KMESCTL" top
    expect 1 'no producer serves' "$KMESCTL" emit t
    for command in serve emit print top; do
        "$KMESCTL" "$command" --help | grep -q 'Exit status: 0' || fail "$command --help"
    done
}

test_events() {
    serve
    expect 1 'Address already in use' "$KMESCTL" serve
    expect 0 '' "$KMESCTL" emit a.text 'say "x"'
    expect 0 '' "$KMESCTL" emit b.map --json '{"user":{"name":"eve"},"n":[1,-2.5,null]}'
    expect 0 '' "$KMESCTL" emit c.hex --hex 'ff 00'
    printf 'esc\033[31m\n' | "$KMESCTL" emit d.hostile --file - || fail "emit --file -"
    expect 2 'not UTF-8' "$KMESCTL" emit $'\377'
    expect 2 '1 to 65535 bytes' "$KMESCTL" emit ''
    expect 1 'larger than' "$KMESCTL" emit big --file <(head -c 100000 /dev/zero)
    expect 0 'userspace a.text "say \\"x\\""$' "$KMESCTL" print --count 1
    expect 0 'b.map {"n":\[1,-2.5,null\],"user":{"name":"eve"}}$' \
        "$KMESCTL" print --field user.name=eve --count 1
    expect 0 'c.hex ff00$' "$KMESCTL" print --type 'c.*' --count 1
    expect 0 'esc\\x1b\[31m\\n"$' "$KMESCTL" print --type d.hostile --count 1
    expect 0 '"type":"d.hostile","payload_form":"text","payload":"esc\\u001b\[31m\\u000a"}$' \
        "$KMESCTL" print --json --type d.hostile --count 1
    expect 0 $'\033\\[1;36mc.hex' "$KMESCTL" print --color always --type 'c.*' --count 1
    expect 2 'has CPU 7; this producer has 1 CPU' "$KMESCTL" print --cpu 0,7-9
    expect 1 '0 of 1 events' "$KMESCTL" print --origin kmes --count 1 --timeout 1
    expect 0 'events/s .* cpus 1 types 4' "$KMESCTL" top --count 1
}

# Each earlier emit was a process, which has ended.
test_emitters() {
    expect 1 'no producer in userspace' "$KMESCTL" emitters --socket @nobody
    "$KMESCTL" emitters >said || fail "emitters: $(cat said)"
    # Four events, a type that is not UTF-8, and a large event.
    grep -qE '^ +\(6 earlier\) +4 +[0-9]+ +2$' said || fail "emitters: $(cat said)"
    expect 0 '^{"earlier":6,"events":4,"bytes":[0-9]*,"refused":2}$' "$KMESCTL" emitters --json
    "$KMESCTL" emit live --count 1000000 --rate 20 &
    local emitter=$!
    started+=("$emitter")
    until_true emits "$emitter"
    kill -KILL "$emitter"
    wait "$emitter"
    until_true has_gone "$emitter"
}

# emits PID: returns whether the process is the latest emitter.
emits() {
    "$KMESCTL" emitters --json >said
    head -n 1 said | grep -q "^{\"pid\":$1,\"uid\":$UID,\"events\":[1-9][0-9]*,.*\"refused\":0}\$"
}

has_gone() {
    ! "$KMESCTL" emitters | grep -qE "^ *$1 "
}

# With the server of test_events.
test_outputs() {
    local command
    for command in print top; do
        "$KMESCTL" "$command" >/dev/full 2>said
        [ $? -eq 1 ] && grep -q 'No space left' said || fail "$command, full disk: $(cat said)"
        "$KMESCTL" "$command" >&- 2>said
        [ $? -eq 1 ] && grep -q 'Bad file' said || fail "$command, closed output: $(cat said)"
        "$KMESCTL" "$command" 2>said | head -n 1 >/dev/null
        [ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s said ] || fail "$command, closed pipe: $(cat said)"
    done
    "$KMESCTL" emit many --count 3000 || fail "emit --count"
    (ulimit -f 1; "$KMESCTL" print --count 3000 >limited 2>said)
    [ $? -eq 1 ] && grep -q 'File too large' said || fail "RLIMIT_FSIZE: $(cat said)"
    background out "$KMESCTL" print
    until_true grep -q a.text out
    kill -INT "$STARTED"
    ends 130 "$STARTED" "print, SIGINT"
    background out "$KMESCTL" print
    until_true grep -q a.text out
    kill -TERM "$STARTED"
    ends 143 "$STARTED" "print, SIGTERM"
}

# With the server of test_events: print continues after the end of a producer.
test_restarts() {
    local signal
    background out "$KMESCTL" print --json
    local printer=$STARTED
    until_true grep -q a.text out
    for signal in KILL TERM; do
        : >out.err
        kill "-$signal" "$SERVER"
        wait "$SERVER"
        local status=$?
        [ "$signal" = KILL ] || [ "$status" -eq 0 ] || fail "serve, SIGTERM: status $status"
        until_true grep -q 'the producer has ended' out.err
        serve
        "$KMESCTL" emit "after.$signal" || fail "emit after SIG$signal"
        until_true grep -q "after.$signal" out
        grep -q 'another producer serves' out.err || fail "no notice: $(cat out.err)"
    done
    kill -TERM "$printer"
    ends 143 "$printer" "print after restarts"
}

# A stopped printer does not block the producer, and reports its losses.
test_stopped_printer() {
    background out "$KMESCTL" print
    "$KMESCTL" emit before.stop
    until_true grep -q before.stop out
    kill -STOP "$STARTED"
    until_true is_stopped "$STARTED"
    "$KMESCTL" emit filler --count 200000 || fail "emit while a printer is stopped"
    "$KMESCTL" emit after.stop
    kill -CONT "$STARTED"
    until_true grep -q after.stop out
    grep -q -- '-- cpu 0: [1-9][0-9]* events lost before #' out || fail "the loss is not shown"
    kill -TERM "$STARTED"
    ends 143 "$STARTED" "print after a stop"
}

test_notify() {
    command -v python3 >/dev/null || return 0
    python3 - "${WORK##*/}" >told <<'PYTHON' &
import socket
import sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("\0" + sys.argv[1])
print("bound", flush=True)
for _ in range(2):
    print(receiver.recv(100).decode(), flush=True)
PYTHON
    local receiver=$!
    started+=("$receiver")
    until_true grep -qx bound told
    NOTIFY_SOCKET=@${WORK##*/} serve --socket other
    until_true grep -qx READY=1 told
    kill -INT "$SERVER"
    kill -TERM "$SERVER"
    ends 0 "$SERVER" "serve"
    until_true grep -qx STOPPING=1 told
    [ ! -e other ] && [ ! -e other.lock ] || fail "serve leaves its socket"
}

test_usage
test_events
test_emitters
test_outputs
test_restarts
kill -TERM "$SERVER"
wait "$SERVER"
serve --capacity 64K
test_stopped_printer
test_notify
[ "$failures" -eq 0 ] && echo "passed"
exit "$((failures > 0))"
