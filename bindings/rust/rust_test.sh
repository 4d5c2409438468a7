#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rust_test.sh TOOLCHAIN UNIT_TESTS HELLO KMESCTL RESUME FULL_UNIT_TESTS EMIT MERGED: the unit tests
# of the crate, and the program of the README and the examples that emit, merge and keep places with
# a producer in userspace. Of the unit tests with all features, those run that call libkmes. Without
# a compiler it says so and is left out.
set -u

if [ "$(cat "$1")" = none ]; then
    echo "SKIPPED: there is no rustc (tools/kmes setup testees)"
    exit 0
fi
"$2" || exit 1

# Short: the path of a socket has 107 bytes, and the sandbox's TMPDIR may have more.
folder=$(TMPDIR='' mktemp -d) || exit 1
resume=$5
kmesctl=$4
libkmes_tests=$6
emit=$7
merged=$8

# serve [CPUS]
serve() {
    : >"$folder/said"
    # Without the descriptor of the emitter's input, which ends when this script closes it.
    "$kmesctl" serve --socket "$folder/socket" --cpus "${1-1}" >"$folder/said" 2>&1 3>&- &
    producer=$!
    until grep -q serves "$folder/said"; do
        kill -0 "$producer" || exit 1
        sleep 0.05
    done
}

trap 'kill "$producer"; wait "$producer"; rm -rf "$folder"' EXIT
serve

said=$(KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user "$3") || exit 1
if [ -n "$said" ]; then
    echo "FAIL: hello reads \"$said\"; expected no event"
    exit 1
fi
if said=$(KMES_SOCKET="$folder/nobody" LD_LIBRARY_PATH=kmes/user "$3" 2>&1); then
    echo "FAIL: hello succeeds without a producer"
    exit 1
fi
case $said in
*"Os(38)"*) ;;
*)
    echo "FAIL: hello says \"$said\"; expected ENOSYS (38)"
    exit 1
    ;;
esac

run_resume() {
    KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user "$resume" "$folder/places"
}

# resumed EXPECTED: what the program that keeps places prints of all events so far.
resumed() {
    said=$(run_resume) || exit 1
    if [ "$said" != "$1" ]; then
        echo "FAIL: resume says \"$said\"; expected \"$1\""
        exit 1
    fi
}

# The tests share the producer.
KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user \
    "$libkmes_tests" tests::libkmes --include-ignored --test-threads=1 || exit 1
if said=$(KMES_SOCKET="$folder/nobody" LD_LIBRARY_PATH=kmes/user "$emit" t 2>&1 </dev/null); then
    echo "FAIL: emit succeeds without a producer"
    exit 1
fi
if [ "$said" != "Error: Os(38)" ]; then
    echo "FAIL: emit says \"$said\"; expected ENOSYS (38)"
    exit 1
fi
kill -KILL "$producer"
wait "$producer"
serve

emit() {
    KMES_SOCKET="$folder/socket" "$kmesctl" emit t --count "$1" || exit 1
}

emit 2
resumed "CPU 0, event 1, 0 lost before it
CPU 0, event 2, 0 lost before it"
resumed ""
emit 1
resumed "CPU 0, event 3, 0 lost before it"
kill -KILL "$producer"
wait "$producer"
serve
emit 1
resumed "CPU 0: another producer
CPU 0, event 1, 0 lost before it"
resumed ""

# emit_line COUNT: an emitter that stays open emits its COUNTth line, or has ended.
emit_line() {
    echo "line $1" >&3
    until [ "$(wc -l <"$folder/emitted")" -ge "$1" ]; do
        sleep 0.05
    done
}

mkfifo "$folder/lines"
: >"$folder/emitted"
{
    KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user "$emit" t
    echo "status $?"
} <"$folder/lines" >>"$folder/emitted" &
emitter=$!
exec 3>"$folder/lines"
emit_line 1
emit_line 2
resumed "CPU 0, event 2, 0 lost before it
CPU 0, event 3, 0 lost before it"
kill -KILL "$producer"
wait "$producer"
serve
emit_line 3
resumed "CPU 0: another producer
CPU 0, event 1, 0 lost before it"
exec 3>&-
wait "$emitter"
if [ "$(tail -n 1 "$folder/emitted")" != "status 0" ]; then
    echo "FAIL: emit says \"$(cat "$folder/emitted")\""
    exit 1
fi

# The events of two CPUs by time.
kill -KILL "$producer"
wait "$producer"
serve 2
for _ in 1 2 3; do
    emit 1 # by whichever CPU runs it
done
said=$(KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user "$merged") || exit 1
if [ "$(echo "$said" | wc -l)" -ne 3 ] || ! echo "$said" | sort -c -n; then
    echo "FAIL: merged says \"$said\"; expected 3 events by time"
    exit 1
fi
echo "no place" >>"$folder/places"
if said=$(run_resume 2>&1); then
    echo "FAIL: resume takes a damaged file: $said"
    exit 1
fi
case $said in
*"$folder/places: no places, or damaged ones"*) ;;
*)
    echo "FAIL: resume says \"$said\" of a damaged file"
    exit 1
    ;;
esac
