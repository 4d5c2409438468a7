# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes flakes` runs each short test many times, several at once, under each configuration. It
# prints a line with the count of failed runs for each test, and keeps the logs of those runs. It
# reads Bazel's summary.

readonly FLAKES_CONFIGS='default asan ubsan tsan'
readonly FLAKES_MAX=100000
# The first run has this many times --seconds, because it runs beside other tests and other work.
readonly FLAKES_PATIENCE=4
# Tests that are repeated together, because Bazel's summary comes only after all their runs.
readonly FLAKES_TOGETHER=12
# A line of Bazel's summary: the test, "(cached)", the verdict, and the rest.
readonly FLAKES_LINE="^(//[^ ]+) +(\\(cached\\) )?($BAZEL_VERDICTS)(.*)\$"

flakes_usage() {
    cat <<'TEXT'
usage: tools/kmes flakes [OPTIONS...] [TARGET...]

Runs each test that takes less than --seconds many times, several at once, and prints how many of
its runs failed, after every 12 tests. TARGET is a pattern of Bazel (//kmes/...,
//conformance/tracer:guard_test); without one, every test of the tree.

  --runs N          runs of each test (60)
  --jobs N          tests at a time (6)
  --seconds N       leave out a test that takes so long (30)
  --config NAME     default, asan, ubsan or tsan; may be repeated (default and tsan)
  --logs FOLDER     folder for the logs of failed runs (default: a new folder in TMPDIR)

Exit status: 0 no run failed; 1 a run failed; 2 bad usage; 3 set-up or build failed.
TEXT
}

# flakes_value OPTION VALUE: returns whether the value is valid for the option.
flakes_value() {
    case "$1" in
        --config)
            case " $FLAKES_CONFIGS " in
                *" $2 "*) ;;
                *) bad_usage "flakes: unknown configuration '$2'; one of: $FLAKES_CONFIGS" ;;
            esac
            ;;
        --logs)
            if [ -z "$2" ] || { [ -e "$2" ] && [ ! -d "$2" ]; }; then
                bad_usage "flakes: --logs takes a folder, not '$2'"
            fi
            ;;
        *)
            if ! [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || [ "$2" -gt "$FLAKES_MAX" ]; then
                bad_usage "flakes: $1 takes a whole number from 1 to $FLAKES_MAX, not '$2'"
            fi
            ;;
    esac
}

# flakes_options ARGUMENTS...: fills FLAKES (by option), FLAKES_CHOSEN (configurations) and
# FLAKES_TARGETS. Status 0: done (help); 1: continue; 2: bad usage.
flakes_options() {
    declare -gA FLAKES=([runs]=60 [jobs]=6 [seconds]=30 [logs]='')
    FLAKES_CHOSEN=()
    FLAKES_TARGETS=()
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | -h) flakes_usage && return ;;
            --runs | --jobs | --seconds | --config | --logs)
                [ $# -ge 2 ] || { bad_usage "flakes: $1 takes a value" || return; }
                flakes_value "$1" "$2" || return
                if [ "$1" = --config ]; then
                    FLAKES_CHOSEN+=("$2")
                else
                    FLAKES[${1#--}]=$2
                fi
                shift
                ;;
            //* | -//*) FLAKES_TARGETS+=("$1") ;;
            -*) bad_usage "flakes: unknown option '$1'; see tools/kmes flakes --help" || return ;;
            *) bad_usage "flakes: a target begins with //, unlike '$1'" || return ;;
        esac
        shift
    done
    [ "${#FLAKES_CHOSEN[@]}" -gt 0 ] || FLAKES_CHOSEN=(default tsan)
    return 1
}

flakes_command() {
    local status config
    flakes_options "$@"
    status=$?
    [ "$status" -eq 1 ] || return "$status"
    setup_section required && prepare_bazel && make_scratch || return
    exit_by_signal
    FLAKES_PASSED=0
    FLAKES_FAILED=0
    FLAKES_LOGS_KEPT=0
    for config in "${FLAKES_CHOSEN[@]}"; do
        flakes_of "$config" || return
    done
    printf '%s tests without a failed run, %s with one\n' "$FLAKES_PASSED" "$FLAKES_FAILED"
    if [ $((FLAKES_PASSED + FLAKES_FAILED)) -eq 0 ]; then
        bad_usage "flakes: none of these targets is a test that takes less than" \
            "${FLAKES[seconds]} s"
        return
    fi
    [ "$FLAKES_LOGS_KEPT" -eq 0 ] || printf 'logs of failed runs: %s\n' "${FLAKES[logs]}"
    [ "$FLAKES_FAILED" -eq 0 ]
}

# run_flakes LOG CONFIG OPTIONS... -- TARGETS...: runs the tests, and writes Bazel's summary to LOG.
# Status 3: a target was not built, and the log was shown. Status 4: there is no test.
run_flakes() {
    local log=$1 config=$2 status=0 options=(--keep_going --test_output=summary)
    shift 2
    options+=(--test_summary=short "--jobs=${FLAKES[jobs]}" "--local_test_jobs=${FLAKES[jobs]}")
    [ "$config" = default ] || options+=("--config=$config")
    run_bazel test "${options[@]}" --build_tests_only "$@" >"$log" 2>&1 || status=$?
    # 0: all passed; 3: a test failed; 4: no test.
    case "$status" in
        0 | 3) return 0 ;;
        4) return 4 ;;
    esac
    cat -- "$log" >&2
    say_error "flakes: the tests could not be built under $config; the log is above"
    return "$STATUS_SETUP"
}

# flakes_of CONFIG: finds the short tests, and then makes all runs of them.
flakes_of() {
    local config=$1 log=$KMES_SCRATCH/flakes.$1.log status short=() long=() slow=() hung=()
    local targets=("${FLAKES_TARGETS[@]}")
    if [ "${#targets[@]}" -eq 0 ]; then
        targets=(//...)
        [ "$config" != tsan ] || targets+=("${TSAN_TARGETS[@]}")
    fi
    printf '# %s: one run of each test\n' "$config"
    run_flakes "$log" "$config" "--test_timeout=$((FLAKES_PATIENCE * FLAKES[seconds]))" \
        -- "${targets[@]}"
    status=$?
    if [ "$status" -eq 4 ]; then
        printf '# %s: no test\n' "$config"
        return 0
    fi
    [ "$status" -eq 0 ] || return "$status"
    sort_by_time "$config" "$log"
    slow+=("${hung[@]}")
    [ "${#slow[@]}" -eq 0 ] || play_alone "$config" "$log.alone" "${slow[@]}" || return
    printf '# %s: %s tests, %s runs of each, %s at a time; %s tests take %s s or more\n' \
        "$config" "${#short[@]}" "${FLAKES[runs]}" "${FLAKES[jobs]}" "${#long[@]}" \
        "${FLAKES[seconds]}"
    repeat "$config" "$log" "${short[@]}"
}

# repeat CONFIG LOG TESTS...: makes all runs, and reports each group of tests after its last run.
repeat() {
    local config=$1 log=$2 group
    shift 2
    while [ $# -gt 0 ]; do
        group=("${@:1:FLAKES_TOGETHER}")
        run_flakes "$log" "$config" --nocache_test_results "--runs_per_test=${FLAKES[runs]}" \
            -- "${group[@]}" || return
        report_flakes "$config" "$log" "${#group[@]}"
        shift "${#group[@]}"
    done
}

# read_verdict LINE: fills the caller's `name`, `verdict` and `seconds` from a line of Bazel's
# summary. Fails if the line is not about a test.
read_verdict() {
    [[ $1 =~ $FLAKES_LINE ]] || return
    name=${BASH_REMATCH[1]} verdict=${BASH_REMATCH[3]} seconds=0
    [[ ! ${BASH_REMATCH[4]} =~ in\ ([0-9]+)[.0-9]*s$ ]] || seconds=${BASH_REMATCH[1]}
}

# sort_by_time CONFIG LOG: fills the caller's `short`, `slow`, `long` and `hung` from Bazel's
# summary. A test that failed quickly is short, because its failure counts. If it failed slowly, it
# is long, and reported here.
sort_by_time() {
    local line name verdict seconds
    while IFS= read -r line; do
        read_verdict "$line" || continue
        if [ "$verdict" = TIMEOUT ]; then
            hung+=("$name")
        elif [ "$seconds" -lt "${FLAKES[seconds]}" ]; then
            short+=("$name")
        elif [ "$verdict" = PASSED ]; then
            slow+=("$name")
        else
            long+=("$name")
            report_first_run "$1" "$name" "failed" "$2"
        fi
    done <"$2"
}

# report_first_run CONFIG NAME WORDS LOG
report_first_run() {
    FLAKES_FAILED=$((FLAKES_FAILED + 1))
    printf 'FAIL %s %s 1 of 1: %s in its first run\n' "$1" "$2" "$3"
    keep_flake_logs "$1" "$2" "$4"
}

# play_alone CONFIG LOG TESTS...: runs tests that took too long again, for --seconds each, and finds
# those that are short alone. If such a test was stopped before, it hung, which counts as a failure.
play_alone() {
    local config=$1 log=$2 line name verdict seconds
    shift 2
    run_flakes "$log" "$config" --nocache_test_results --local_test_jobs=1 \
        "--test_timeout=${FLAKES[seconds]}" -- "$@" || return
    while IFS= read -r line; do
        read_verdict "$line" && [[ " $* " = *" $name "* ]] || continue
        if [ "$verdict" = PASSED ] && [ "$seconds" -lt "${FLAKES[seconds]}" ]; then
            [[ " ${hung[*]} " != *" $name "* ]] ||
                report_first_run "$config" "$name" "hung" "$log"
            short+=("$name")
        else
            long+=("$name")
        fi
    done <"$log"
}

# report_flakes CONFIG LOG EXPECTED: prints a line for each test in Bazel's summary. A test without
# a plain pass has failed, in as many runs as Bazel reports, or in all. It is also a failure if
# there are not EXPECTED lines.
report_flakes() {
    local config=$1 log=$2 expected=$3 line name said failed runs seen=0
    while IFS= read -r line; do
        [[ $line =~ $FLAKES_LINE ]] || continue
        name=${BASH_REMATCH[1]} said="${BASH_REMATCH[3]}${BASH_REMATCH[4]}"
        seen=$((seen + 1))
        if [[ $said == "PASSED in "* ]]; then
            FLAKES_PASSED=$((FLAKES_PASSED + 1))
            printf 'PASS %s %s 0 of %s\n' "$config" "$name" "${FLAKES[runs]}"
            continue
        fi
        FLAKES_FAILED=$((FLAKES_FAILED + 1))
        failed=${FLAKES[runs]} runs=${FLAKES[runs]}
        [[ $said =~ in\ ([0-9]+)\ out\ of\ ([0-9]+) ]] &&
            failed=${BASH_REMATCH[1]} runs=${BASH_REMATCH[2]}
        printf 'FAIL %s %s %s of %s\n' "$config" "$name" "$failed" "$runs"
        keep_flake_logs "$config" "$name" "$log"
    done <"$log"
    [ "$seen" -ne "$expected" ] || return 0
    FLAKES_FAILED=$((FLAKES_FAILED + 1))
    printf 'FAIL %s: Bazel shows %s tests of %s\n' "$config" "$seen" "$expected"
}

# keep_flake_logs CONFIG NAME LOG: copies the logs, which Bazel overwrites in the next run.
keep_flake_logs() {
    local path folder name=${2#//}
    if [ -z "${FLAKES[logs]}" ]; then
        FLAKES[logs]=$(mktemp -d "${TMPDIR:-/tmp}/kmes-flakes.XXXXXXXX") || return
    fi
    folder=${FLAKES[logs]}/$1/${name/://}
    while IFS= read -r path; do
        [ -f "$path" ] || continue
        mkdir -p -- "$folder" || return
        # .../name/run_7_of_60/test.log, or .../name/test.log if there is only one run.
        name=$(basename -- "$(dirname -- "$path")")
        cp -- "$path" "$folder/$name.log" && FLAKES_LOGS_KEPT=1
    done < <(logs_of "$2" "$3")
}
