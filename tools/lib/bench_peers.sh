# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes bench peers`: one record in other rings and queues, beside an emission. Each peer is a
# source in bench/peers that becomes a shared object. A peer is left out with a line if its package
# is missing, or if this machine does not permit it.

# Sources of bench/peers, each with a header that its package installs.
readonly BENCH_PEERS='libqb:qb/qbrb.h rte_ring:rte_ring.h '\
'boost_spsc:boost/lockfree/spsc_queue.hpp '\
'readerwriterqueue:readerwriterqueue/readerwriterqueue.h '\
'bpf_ringbuf:bpf/bpf.h perf:bpf/bpf.h lttng:lttng/tracepoint.h'
# The longest time that a command of LTTng may take: it waits for its daemon.
readonly LTTNG_SECONDS=60

# bench_peers [--quick] [--json FILE]: a package that cannot be installed costs its peer only.
bench_peers() {
    local peer name object options=() flags json= keep=
    while [ $# -gt 0 ]; do
        case "$1" in
            --quick) options+=("$1") ;;
            --keep) keep=1 ;;
            --json)
                [ $# -ge 2 ] || { bad_usage "bench: --json takes a value"; return; }
                json=$2
                shift
                ;;
            *)
                bad_usage "bench: peers takes --quick, --json FILE and --keep, not '$1'"
                return
                ;;
        esac
        shift
    done
    build_targets "what is measured" --config=release "$BENCH_TARGET" || return
    setup_section peers || say_error "bench: peers without a package are left out"
    make_scratch || return
    [ -n "$json" ] || json=$KMES_SCRATCH/figures.json
    options+=(--json "$json")
    for peer in $BENCH_PEERS; do
        name=${peer%%:*}
        object=$KMES_SCRATCH/$name.so
        flags=$(bench_peer_flags "$name")
        # shellcheck disable=SC2086  # several flags
        if ! printf '#include <%s>\n' "${peer#*:}" | g++ -E -x c++ $flags - >/dev/null 2>&1; then
            printf 'left out: %s: the header %s is not installed\n' "$name" "${peer#*:}"
            continue
        fi
        # shellcheck disable=SC2086
        if ! g++ -std=c++20 -O2 -shared -fPIC -fvisibility=hidden -I"$KMES_ROOT" \
            "$KMES_ROOT/bench/peers/$name.cc" -o "$object" $flags 2>"$KMES_SCRATCH/$name.log"; then
            printf 'left out: %s: its source does not build: %s\n' "$name" \
                "$(grep -m1 -E 'error|undefined' "$KMES_SCRATCH/$name.log")"
            continue
        fi
        options+=(--peer "$object")
    done
    [[ " ${options[*]} " != *"/lttng.so "* ]] || lttng_begin
    "$BAZEL_BIN/bench/kmes-bench" "${options[@]}" peers || return
    [ -z "$keep" ] || bench_figures keep "$json" "$KMES_ROOT/$BENCH_RESULTS"
}

# What a peer is compiled and linked with.
bench_peer_flags() {
    case "$1" in
        libqb) printf '%s' -lqb ;;
        rte_ring) printf '%s' "$(pkg-config --cflags libdpdk 2>/dev/null) -lrte_ring -lrte_eal" ;;
        bpf_ringbuf | perf) printf '%s' -lbpf ;;
        lttng) printf '%s' '-llttng-ust -ldl' ;;
    esac
}

lttng_command() { timeout "$LTTNG_SECONDS" lttng --no-sessiond "$@" </dev/null; }

# Starts a session in snapshot mode that records the peer's tracepoint. The daemon is that of this
# machine, or a new daemon that ends with this command. Without a session the peer says so, and is
# left out.
lttng_begin() {
    local log=$KMES_SCRATCH/lttng.log
    export LTTNG_HOME=$KMES_SCRATCH
    LTTNG_SESSION=kmes-bench-$$
    exit_by_signal
    at_exit lttng_end
    if ! lttng_command list >"$log" 2>&1; then
        timeout "$LTTNG_SECONDS" lttng-sessiond --no-kernel --background \
            --pidfile="$KMES_SCRATCH/lttng.pid" </dev/null >>"$log" 2>&1
    fi
    {
        lttng_command create "$LTTNG_SESSION" --snapshot --output "$KMES_SCRATCH/lttng" &&
            lttng_command enable-channel --userspace --session "$LTTNG_SESSION" --overwrite \
                --subbuf-size 1M --num-subbuf 4 --buffers-pid ring &&
            lttng_command enable-event --userspace --session "$LTTNG_SESSION" 'kmes_bench:*' \
                --channel ring &&
            lttng_command start "$LTTNG_SESSION"
    } >>"$log" 2>&1 || say_error "bench: no session of LTTng: $(grep -m1 '^Error' "$log")"
}

lttng_end() {
    local daemon
    lttng_command destroy "$LTTNG_SESSION" >/dev/null 2>&1
    daemon=$(cat -- "$KMES_SCRATCH/lttng.pid" 2>/dev/null) || return 0
    kill "$daemon" 2>/dev/null
    while kill -0 "$daemon" 2>/dev/null; do sleep 0.1; done
}
