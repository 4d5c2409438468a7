# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes bench GROUP` prints figures. No test asserts times, because they depend on the load.
#
#   conformance    figures of the suite, each with its target and the command that prints it
#   instructions   counts of callgrind, compared with bench/instructions.txt; a test enforces them
#   consumers      processes that read a steady stream
#   (others)       groups of bench/main.cc, relative to their floors: printed, kept for this
#                  processor, or compared with another revision

readonly BENCH_TESTEE_TARGET=//conformance/testees:c_consumer
readonly STEPPER_BENCHMARK_TARGET=//conformance/tracer:stepper_benchmark
# For the measurement that counts whole runs of the deep exploration.
readonly BENCH_DEEP_SECONDS=20

readonly BENCH_TARGET=//bench:kmes-bench
readonly INSTRUCTIONS_TARGET=//bench:kmes-instructions
readonly BENCH_MEASURED='producer reader pair wake mixed rings capacity resize'
readonly BENCH_GROUPS="conformance consumers instructions plot peers $BENCH_MEASURED"
readonly CONSUMERS_TARGET=//bench:kmes-consumers
readonly KMESCTL_TARGET=//kmesctl
# The folder of the kept figures, a file for each model of processor, and the plot of README.
readonly BENCH_RESULTS=bench/results
readonly BENCH_PLOT=docs/producer-cost.svg

bench_command() {
    case "${1-}" in
        conformance)
            if [ $# -eq 1 ]; then
                bench_conformance
            else
                bad_usage "bench: conformance takes no options"
            fi
            ;;
        consumers)
            if [ $# -eq 1 ]; then
                bench_consumers 2
            elif [ "${*:2}" = --quick ]; then
                bench_consumers 0.2
            else
                bad_usage "bench: consumers takes --quick, and nothing else"
            fi
            ;;
        instructions)
            case "${*:2}" in
                '') bench_instructions check ;;
                --update) bench_instructions update ;;
                *) bad_usage "bench: instructions takes --update, and nothing else" ;;
            esac
            ;;
        plot)
            if [ $# -eq 2 ]; then
                bench_figures plot "$2" "$KMES_ROOT/$BENCH_PLOT"
            else
                bad_usage "bench: plot takes one file of $BENCH_RESULTS"
            fi
            ;;
        peers) bench_peers "${@:2}" ;;
        '' | -*) bad_usage "bench: name what is to be measured, one of: $BENCH_GROUPS" ;;
        *) bench_groups "$@" ;;
    esac
}

bench_figures() { python3 -B "$KMES_ROOT/bench/figures.py" "$@"; }

# bench_groups GROUP... [--quick] [--json FILE] [--keep] [--against REVISION]
bench_groups() {
    local groups=() options=() keep= against= json=
    while [ $# -gt 0 ]; do
        case "$1" in
            --quick) options+=("$1") ;;
            --keep) keep=1 ;;
            --json | --against)
                [ $# -ge 2 ] || { bad_usage "bench: $1 takes a value"; return; }
                [ "$1" = --json ] && json=$2 || against=$2
                shift
                ;;
            *)
                if [[ $1 = -* || " $BENCH_MEASURED " != *" $1 "* ]]; then
                    bad_usage "bench: unknown word '$1'; the groups are: $BENCH_MEASURED"
                    return
                fi
                groups+=("$1")
                ;;
        esac
        shift
    done
    if [ -n "$against" ]; then
        if [ -n "$json$keep" ]; then
            bad_usage "bench: --against takes neither --json nor --keep"
            return
        fi
        bench_against "$against" ${options[@]+"${options[@]}"} "${groups[@]}"
        return
    fi
    build_targets "the benchmark" --config=release "$BENCH_TARGET" || return
    [ -n "$json" ] || json=$KMES_SCRATCH/figures.json
    options+=(--json "$json")
    "$BAZEL_BIN/bench/kmes-bench" "${options[@]}" "${groups[@]}" || return
    [ -z "$keep" ] || bench_figures keep "$json" "$KMES_ROOT/$BENCH_RESULTS"
}

# bench_against REVISION [--quick] GROUP...: builds REVISION in a worktree, and runs both in turn.
bench_against() {
    local revision=$1 commit new old tree status
    shift
    if ! commit=$(git -C "$KMES_ROOT" rev-parse --verify --quiet "$revision^{commit}"); then
        bad_usage "bench: --against takes a revision of this repository, not '$revision'"
        return
    fi
    build_targets "the benchmark" --config=release "$BENCH_TARGET" || return
    new=$KMES_SCRATCH/new old=$KMES_SCRATCH/old tree=$KMES_SCRATCH/tree
    cp -L -- "$BAZEL_BIN/bench/kmes-bench" "$new" || return "$STATUS_SETUP"
    exit_by_signal
    at_exit bench_remove_tree "$tree"
    git -C "$KMES_ROOT" worktree add --quiet --detach "$tree" "$commit" || return "$STATUS_SETUP"
    (
        BUILD_TREE=$tree
        build_targets "$revision" --config=release "$BENCH_TARGET" &&
            cp -L -- "$BAZEL_BIN/bench/kmes-bench" "$old"
    )
    status=$?
    # Not only at the end: the tree's Bazel server must not run during the measurements.
    bench_remove_tree "$tree"
    [ "$status" -eq 0 ] || return "$status"
    bench_figures against --new "$new" --old "$old" "$@"
}

# bench_remove_tree FOLDER: removes the worktree, if it is there, and Bazel's state for it.
bench_remove_tree() {
    [ -d "$1" ] || return 0
    BUILD_TREE=$1 run_bazel clean --expunge >/dev/null 2>&1
    git -C "$KMES_ROOT" worktree remove --force "$1"
}

# bench_consumers SECONDS: measures each consumer for SECONDS. The recorder writes to tmpfs.
bench_consumers() {
    local folder peer seconds=$1 rate=10000000 parent=${KMES_BENCH_FOLDER:-/dev/shm}
    shift
    build_targets "the benchmark" --config=release "$CONSUMERS_TARGET" "$KMESCTL_TARGET" ||
        return
    make_scratch || return
    exit_by_signal
    folder=$(mktemp -d -p "$parent" 2>/dev/null) || {
        say_error "bench: $parent takes no folder; KMES_BENCH_FOLDER names another"
        return "$STATUS_SETUP"
    }
    at_exit rm -rf -- "$folder"
    peer=$KMES_SCRATCH/libbpf_reader.so
    if g++ -std=c++20 -O2 -shared -fPIC -fvisibility=hidden -I"$KMES_ROOT" \
        "$KMES_ROOT/bench/peers/libbpf_reader.cc" -o "$peer" -lbpf 2>"$peer.log"; then
        set -- --peer "$peer" "$@"
    else
        printf 'left out: libbpf: %s\n' "$(grep -m1 -E 'error|undefined' "$peer.log")"
    fi
    "$BAZEL_BIN/bench/kmes-consumers" "$BAZEL_BIN/kmesctl/kmesctl" "$folder" --rate "$rate" \
        --seconds "$seconds" "$@" && bench_lttng_consumer "$folder" "$seconds" "$rate"
}

# bench_instructions check|update
bench_instructions() {
    build_targets "what is counted" --config=release "$INSTRUCTIONS_TARGET" || return
    python3 -B "$KMES_ROOT/bench/instructions.py" "$1" "$BAZEL_BIN/bench/kmes-instructions" \
        "$KMES_ROOT/bench/instructions.txt"
}

bench_conformance() {
    local targets=("$RUNNER_TARGET" "$BENCH_TESTEE_TARGET")
    # Older trees do not have it.
    [ -e "$KMES_ROOT/conformance/tracer/stepper_benchmark.cc" ] &&
        targets+=("$STEPPER_BENCHMARK_TARGET")
    build_targets "the benchmark" "${targets[@]}" || return
    local runner=$BAZEL_BIN/conformance/kmes-conformance
    local testee=$BAZEL_BIN/conformance/testees/c_consumer
    printf 'the suite on %s processors, load %s; nothing here is asserted\n\n' \
        "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
    bench_default_run "$runner" "$testee" || return
    bench_deep_exploration "$runner" "$testee" || return
    [ "${#targets[@]}" -lt 3 ] || bench_accesses "$BAZEL_BIN/conformance/tracer/stepper_benchmark"
}

# bench_line WHAT FIGURE TARGET COMMAND...
bench_line() {
    printf '%-34s %12s   target %s\n    %s\n' "$1" "$2" "$3" "${*:4}"
}

bench_default_run() {
    local report=$KMES_SCRATCH/report begin end status
    begin=$(date +%s%N)
    "$1" --cpus 4 -- "$2" >"$report" 2>&1
    status=$?
    end=$(date +%s%N)
    if [ "$status" -ne 0 ]; then
        cat -- "$report" >&2
        say_error "bench: the C example did not pass (status $status); its report is above"
        return 1
    fi
    bench_line 'default run, C example, 4 CPUs' "$(awk -v ns=$((end - begin)) \
        'BEGIN { printf "%.1f s", ns / 1e9 }')" 'under 60 s on 2 processors' \
        "time kmes-conformance --cpus 4 -- c_consumer"
}

bench_deep_exploration() {
    local report=$KMES_SCRATCH/report
    local options=(--filter '*/explored-*' --explore "$BENCH_DEEP_SECONDS" --report json)
    "$1" "${options[@]}" -- "$2" >"$report" 2>&1
    local figure
    figure=$(python3 -c '
import json, sys
with open(sys.argv[1]) as file:
    explored = [case["explored"] for case in json.load(file)["cases"] if "explored" in case]
seconds = sum(each["seconds"] for each in explored)
print("%.0f/s" % (sum(each["schedules"] for each in explored) / seconds) if seconds else "none")
' "$report" 2>/dev/null) || figure=
    if [ -z "$figure" ]; then
        cat -- "$report" >&2
        say_error "bench: the exploration wrote no report; its words are above"
        return 1
    fi
    bench_line 'explored runs a second' "$figure" 'at least 300/s' \
        "kmes-conformance ${options[*]} -- c_consumer"
}

bench_accesses() {
    printf '\naccesses: target for an emulated one: the bare fault of this machine plus 10 %%\n'
    printf '    stepper_benchmark\n'
    # It expects the current folder of `bazel run`.
    (cd -- "$1.runfiles/kmes" && "$1") || {
        say_error "bench: the accesses were not measured; the words are above"
        return 1
    }
}
