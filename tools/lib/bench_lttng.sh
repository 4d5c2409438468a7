# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The two sessions of LTTng-UST for `tools/kmes bench`. The session of the peer has no reader. In
# the other session, LTTng's consumer daemon writes the events of an emitter.

# The time limit of a command of LTTng, which waits for its daemon.
readonly LTTNG_SECONDS=60
readonly LTTNG_CHANNEL=ring

lttng_command() { timeout "$LTTNG_SECONDS" lttng --no-sessiond "$@" </dev/null; }

# Returns whether another session daemon runs.
lttng_has_daemon() { lttng_command list >/dev/null 2>&1; }

# lttng_begin FOLDER CREATE_OPTION... -- CHANNEL_OPTION...: starts a session that records
# kmes_bench:* into FOLDER. The daemon is that of this machine, or a new one that ends with this
# command.
# Without a session the status is not 0, and LTTNG_ERROR has the reason.
lttng_begin() {
    local log=$KMES_SCRATCH/lttng.log folder=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    export LTTNG_HOME=$KMES_SCRATCH
    LTTNG_SESSION=kmes-bench-$$
    exit_by_signal
    at_exit lttng_end
    if ! lttng_has_daemon; then
        timeout "$LTTNG_SECONDS" lttng-sessiond --no-kernel --background \
            --pidfile="$KMES_SCRATCH/lttng.pid" </dev/null >"$log" 2>&1
    fi
    lttng_command create "$LTTNG_SESSION" "${options[@]}" --output "$folder" >>"$log" 2>&1 &&
        lttng_command enable-channel --userspace --session "$LTTNG_SESSION" "$@" \
            "$LTTNG_CHANNEL" >>"$log" 2>&1 &&
        lttng_command enable-event --userspace --session "$LTTNG_SESSION" 'kmes_bench:*' \
            --channel "$LTTNG_CHANNEL" >>"$log" 2>&1 &&
        lttng_command start "$LTTNG_SESSION" >>"$log" 2>&1 && return
    LTTNG_ERROR=$(grep -m1 '^Error' "$log" || tail -n 1 -- "$log")
    return 1
}

# Starts the session of the peer, in snapshot mode. Without a session, kmes-bench leaves the peer
# out and prints the reason.
lttng_snapshot() {
    lttng_begin "$KMES_SCRATCH/lttng" --snapshot -- --overwrite --subbuf-size 1M --num-subbuf 4 \
        --buffers-pid || say_error "bench: no session of LTTng: $LTTNG_ERROR"
}

lttng_end() {
    local daemon
    lttng_command destroy "$LTTNG_SESSION" >/dev/null 2>&1
    daemon=$(cat -- "$KMES_SCRATCH/lttng.pid" 2>/dev/null) || return 0
    kill "$daemon" 2>/dev/null
    while kill -0 "$daemon" 2>/dev/null; do sleep 0.1; done
}

# bench_lttng_consumer FOLDER SECONDS RATE: prints the row of LTTng's consumer daemon, or a line
# with the reason why it is left out. The daemon writes to FOLDER, and runs on the last processor.
# An emitter on the first one records events of 64 bytes at the rate, or as fast as possible.
bench_lttng_consumer() {
    lttng_consumer_row "$@" 2>"$KMES_SCRATCH/lttng.reason" ||
        printf "left out: LTTng's consumer: %s\n" "$(head -n 1 -- "$KMES_SCRATCH/lttng.reason")"
}

# lttng_consumer_row FOLDER SECONDS RATE: prints the row, or an error line with the reason.
lttng_consumer_row() {
    local emitter=$KMES_SCRATCH/lttng_emitter processors begin emitted lost ticks
    if ! g++ -std=c++20 -O2 -I"$KMES_ROOT" "$KMES_ROOT/bench/peers/lttng_emitter.cc" \
        -o "$emitter" -llttng-ust -ldl 2>"$emitter.log"; then
        grep -m1 -E 'error|undefined' "$emitter.log" >&2 || echo "its emitter does not build" >&2
        return 1
    fi
    # The consumer of such a daemon also works for other programs, so its time cannot be used.
    if lttng_has_daemon; then
        echo "a session daemon of LTTng runs that is not this command's" >&2
        return 1
    fi
    # The same memory for a processor as the rings of the other rows, and two files, as with
    # `record`.
    if ! lttng_begin "$1/lttng" -- --discard --subbuf-size 8M --num-subbuf 8 --buffers-uid \
        --tracefile-size 64M --tracefile-count 2; then
        echo "no session: $LTTNG_ERROR" >&2
        return 1
    fi
    processors=$(taskset -pc $$ | sed 's/.*: //')
    lttng_consumers | while read -r process; do
        taskset -apc "${processors##*[,-]}" "$process" >/dev/null
    done
    ticks=$(lttng_consumer_ticks) && begin=$EPOCHREALTIME &&
        emitted=$(taskset -c "${processors%%[,-]*}" "$emitter" 64 "$3" "$2") || return
    # `stop` returns when the consumer has written all events.
    lttng_command stop "$LTTNG_SESSION" >/dev/null || return
    lost=$(lttng_command list "$LTTNG_SESSION" | sed -n 's/.*Discarded events: *//p')
    awk -v emitted="$emitted" -v lost="${lost:-0}" -v begin="$begin" -v end="$EPOCHREALTIME" \
        -v ticks="$(($(lttng_consumer_ticks) - ticks))" -v hz="$(getconf CLK_TCK)" 'BEGIN {
            read = emitted - lost
            if (read <= 0) { print "it read nothing" > "/dev/stderr"; exit 1 }
            printf "%-28s%16.0f%16.1f\n", "LTTng consumerd to tmpfs", read / (end - begin),
                ticks / hz * 1e9 / read
        }'
}

lttng_consumers() { pgrep -u "$(id -u)" -x lttng-consumerd; }

# Prints the processor time of the consumer daemon and its helpers so far, in clock ticks. A helper
# may end at any time.
lttng_consumer_ticks() {
    local process
    for process in $(lttng_consumers); do
        cat "/proc/$process/stat" 2>/dev/null || :
    done | awk '{ sub(/.*\) /, ""); ticks += $12 + $13 } END { print ticks + 0 }'
}
