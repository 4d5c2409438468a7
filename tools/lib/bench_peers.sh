# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes bench peers`: compares an emission with a record of other rings and queues. Each peer
# is a shared object, built from a source in bench/peers. If its package is missing, or this machine
# does not permit it, the peer is left out, and a line has the reason.

# Sources of bench/peers, each with a header that its package installs.
readonly BENCH_PEERS='libqb:qb/qbrb.h rte_ring:rte_ring.h '\
'boost_spsc:boost/lockfree/spsc_queue.hpp '\
'readerwriterqueue:readerwriterqueue/readerwriterqueue.h '\
'bpf_ringbuf:bpf/bpf.h perf:bpf/bpf.h lttng:lttng/tracepoint.h'

# bench_peers [--quick] [--json FILE]: measures the peers whose packages can be installed.
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
    build_targets "the benchmark" --config=release "$BENCH_TARGET" || return
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
    [[ " ${options[*]} " != *"/lttng.so "* ]] || lttng_snapshot
    "$BAZEL_BIN/bench/kmes-bench" "${options[@]}" peers || return
    [ -z "$keep" ] || bench_figures keep "$json" "$KMES_ROOT/$BENCH_RESULTS"
}

# Prints the options to compile and link a peer.
bench_peer_flags() {
    case "$1" in
        libqb) printf '%s' -lqb ;;
        rte_ring) printf '%s' "$(pkg-config --cflags libdpdk 2>/dev/null) -lrte_ring -lrte_eal" ;;
        bpf_ringbuf | perf) printf '%s' -lbpf ;;
        lttng) printf '%s' '-llttng-ust -ldl' ;;
    esac
}
