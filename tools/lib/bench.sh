# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes bench GROUP`: figures. They are printed and never asserted: a busy machine proves
# nothing. `conformance`: the suite's figures, each with its target and the command that prints it.
# `instructions`: counted by callgrind, beside what bench/instructions.txt allows; the test of the
# same name holds that. The other groups are those of bench/main.cc, beside their floors.

readonly BENCH_TESTEE_TARGET=//conformance/testees:c_consumer
readonly STEPPER_BENCHMARK_TARGET=//conformance/tracer:stepper_benchmark
# Of the measurement in which whole runs of the deep exploration are counted.
readonly BENCH_DEEP_SECONDS=20

readonly BENCH_TARGET=//bench:kmes-bench
readonly INSTRUCTIONS_TARGET=//bench:kmes-instructions
readonly BENCH_GROUPS='conformance instructions producer reader pair wake'

bench_command() {
    case "${1-}" in
        conformance)
            if [ $# -eq 1 ]; then
                bench_conformance
            else
                bad_usage "bench: conformance takes no options"
            fi
            ;;
        instructions)
            case "${*:2}" in
                '') bench_instructions check ;;
                --update) bench_instructions update ;;
                *) bad_usage "bench: instructions takes --update, and nothing else" ;;
            esac
            ;;
        producer | reader | pair | wake)
            # Optimised, as it is given away.
            build_targets "what is measured" --config=release "$BENCH_TARGET" || return
            "$BAZEL_BIN/bench/kmes-bench" "$@"
            ;;
        *) bad_usage "bench: name what is to be measured, one of: $BENCH_GROUPS" ;;
    esac
}

# bench_instructions check|update
bench_instructions() {
    build_targets "what is counted" --config=release "$INSTRUCTIONS_TARGET" || return
    python3 -B "$KMES_ROOT/bench/instructions.py" "$1" "$BAZEL_BIN/bench/kmes-instructions" \
        "$KMES_ROOT/bench/instructions.txt"
}

bench_conformance() {
    local targets=("$RUNNER_TARGET" "$BENCH_TESTEE_TARGET")
    # Where this tree has it.
    [ -e "$KMES_ROOT/conformance/tracer/stepper_benchmark.cc" ] &&
        targets+=("$STEPPER_BENCHMARK_TARGET")
    build_targets "what is measured" "${targets[@]}" || return
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
    printf '\naccesses: target under 6 us emulated, under 35 us stepped\n    stepper_benchmark\n'
    # It finds its testee where `bazel run` would.
    (cd -- "$1.runfiles/kmes" && "$1") || {
        say_error "bench: the accesses were not measured; the words are above"
        return 1
    }
}
