# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes fuzz`: builds a target of fuzz/targets with its engine, and passes the arguments to
# fuzz/fuzz.py.

readonly FUZZ_ENGINES='libfuzzer afl'
readonly FUZZ_SECONDS=60 FUZZ_JOBS=1
readonly FUZZ_MOST=1000000

fuzz_usage() {
    cat <<'TEXT'
usage: tools/kmes fuzz TARGET [--engine libfuzzer|afl] [--seconds N] [--jobs N]
       tools/kmes fuzz TARGET --replay FILE...   run inputs once, and show what fails
       tools/kmes fuzz --coverage                lines and branches of the core that the kept
                                                 corpora reach
       tools/kmes fuzz --list                    the targets

Without more: libfuzzer, 60 seconds, 1 job. What is found lies in fuzz-out/TARGET.
Exit status: 0 nothing found; 1 a crash, or too little coverage; 2 bad usage; 3 it could not run.
TEXT
}

# Prints the targets of fuzz/BUILD.bazel, one per line.
fuzz_targets() {
    sed -n '/^kmes_fuzz_target(/,/^)/s/^ *name = "\(.*\)",$/\1/p' "$KMES_ROOT/fuzz/BUILD.bazel" |
        grep -vx empty | sort
}

# fuzz_number OPTION VALUE: checks that the value is a whole number from 1 on.
fuzz_number() {
    if ! [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || [ "$2" -gt "$FUZZ_MOST" ]; then
        bad_usage "fuzz: $1 takes a whole number from 1 to $FUZZ_MOST, not '$2'"
    fi
}

# build_fuzzers VARIABLE CONFIG TARGET...: builds under a configuration ("default": none), and sets
# VARIABLE to the folder of the outputs.
build_fuzzers() {
    local -n built_in=$1
    local config=() log
    [ "$2" = default ] || config=("--config=$2")
    shift 2
    log=$KMES_SCRATCH/build.log
    if ! run_bazel build ${config[@]+"${config[@]}"} "$@" >"$log" 2>&1; then
        cat -- "$log" >&2
        say_error "the fuzzers could not be built; the log is above"
        return "$STATUS_SETUP"
    fi
    if ! built_in=$(run_bazel info ${config[@]+"${config[@]}"} bazel-bin 2>"$log"); then
        cat -- "$log" >&2
        say_error "Bazel does not say where it builds; its words are above"
        return "$STATUS_SETUP"
    fi
}

prepare_fuzzers() {
    setup_section required || return
    prepare_bazel || return
    make_scratch || return
    [ -t 2 ] && printf 'tools/kmes: building (the first time takes minutes)\n' >&2
    return 0
}

fuzz_command() {
    local target='' engine=libfuzzer seconds=$FUZZ_SECONDS jobs=$FUZZ_JOBS replay=0 files=()
    case "${1-}" in
        --help | -h) fuzz_usage && return ;;
        --list) fuzz_targets && return ;;
        --coverage)
            [ $# -eq 1 ] || { bad_usage "fuzz: --coverage takes nothing more" || return; }
            fuzz_coverage
            return
            ;;
        "") bad_usage "fuzz: name a target: $(fuzz_targets | tr '\n' ' ')" || return ;;
    esac
    target=$1
    shift
    if ! fuzz_targets | grep -qxF -- "$target"; then
        bad_usage "fuzz: unknown target '$target'; one of: $(fuzz_targets | tr '\n' ' ')" || return
    fi
    while [ $# -gt 0 ]; do
        case "$1" in
            --engine | --seconds | --jobs)
                [ $# -ge 2 ] || { bad_usage "fuzz: $1 takes a value" || return; }
                ;;&
            --engine)
                case " $FUZZ_ENGINES " in
                    *" $2 "*) engine=$2 ;;
                    *) bad_usage "fuzz: unknown engine '$2'; one of: $FUZZ_ENGINES" || return ;;
                esac
                ;;
            --seconds) fuzz_number "$1" "$2" || return; seconds=$2 ;;
            --jobs) fuzz_number "$1" "$2" || return; jobs=$2 ;;
            --replay)
                shift
                [ $# -gt 0 ] || { bad_usage "fuzz: --replay takes files" || return; }
                replay=1 files=("$@")
                break
                ;;
            *) bad_usage "fuzz: unknown option '$1'; tools/kmes fuzz --help lists them" || return ;;
        esac
        shift 2
    done
    if [ "$replay" -eq 1 ]; then
        fuzz_replay "$target" "${files[@]}"
    else
        fuzz_run "$target" "$engine" "$seconds" "$jobs"
    fi
}

fuzz_run() {
    local target=$1 engine=$2 bin_fuzz='' bin_engine='' bin_profile='' bin_default='' scripts
    local options=()
    if [ "$engine" = afl ] && ! command -v afl-fuzz >/dev/null; then
        say_error "AFL++ is not installed; apt-get install --no-install-recommends afl++"
        return "$STATUS_SETUP"
    fi
    prepare_fuzzers || return
    build_fuzzers bin_fuzz fuzz "//fuzz:$target" //fuzz:empty || return
    bin_engine=$bin_fuzz
    if [ "$engine" = afl ]; then
        build_fuzzers bin_engine afl "//fuzz:$target" //fuzz:empty || return
    fi
    build_fuzzers bin_profile profile "//fuzz:$target" || return
    build_fuzzers bin_default default //props/replay:kmes-replay //fuzz:libkmes_afl_mutator.so ||
        return
    scripts=$(sed -n "/name = \"$target\"/,/^)/s/^ *scripts = True,/yes/p" \
        "$KMES_ROOT/fuzz/BUILD.bazel")
    [ -z "$scripts" ] || options+=(--mutator "$bin_default/fuzz/libkmes_afl_mutator.so")
    rm -rf -- "$KMES_SCRATCH"
    exec python3 -B "$KMES_ROOT/fuzz/fuzz.py" --root "$KMES_ROOT" --target "$target" \
        --engine "$engine" --seconds "$3" --jobs "$4" --binary "$bin_engine/fuzz/$target" \
        --empty "$bin_engine/fuzz/empty" --profile "$bin_profile/fuzz/$target" \
        --triage "$bin_fuzz/fuzz/$target" --replay "$bin_default/props/replay/kmes-replay" \
        ${options[@]+"${options[@]}"}
}

fuzz_replay() {
    local target=$1 file bin_fuzz='' status=0
    shift
    for file in "$@"; do
        # libFuzzer would use a folder as its corpus: it would fuzz forever, and add files to it.
        if [ ! -f "$file" ] || [ ! -r "$file" ]; then
            bad_usage "fuzz: '$file' is no file that can be read" || return
        fi
    done
    prepare_fuzzers || return
    build_fuzzers bin_fuzz fuzz "//fuzz:$target" || return
    for file in "$@"; do
        # An absolute path, because a name could begin with a dash.
        "$bin_fuzz/fuzz/$target" "$(realpath -- "$file")" || status=1
    done
    return "$status"
}

fuzz_coverage() {
    local bin_profile='' targets=() binaries=() target out=$KMES_ROOT/fuzz-out/coverage
    prepare_fuzzers || return
    while IFS= read -r target; do targets+=("//fuzz:$target"); done < <(fuzz_targets)
    build_fuzzers bin_profile profile "${targets[@]}" || return
    for target in "${targets[@]}"; do binaries+=("$bin_profile/fuzz/${target##*:}"); done
    rm -rf -- "$out"
    python3 -B "$KMES_ROOT/fuzz/coverage.py" --root "$KMES_ROOT" --scratch "$out/raw" \
        --html "$out/html" "${binaries[@]}"
}
