# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes test`: runs the style check, and all tests under each configuration. Prints one line
# for each test, and the count. With targets, runs only those tests. Several parts without targets
# leave some tests to other days (today.sh). Reads Bazel's summary.

# fuzz: the fuzzers find their planted bugs, and the coverage of the corpora; profile: the coverage
# alone; release: the instructions of the released code; package: the static executable; browser:
# the HTML report in Chromium; vm: the module.
readonly TEST_PARTS=(check default asan ubsan tsan fuzz profile release package browser vm)
# asan includes everything that ubsan checks, and fuzz what profile does.
readonly DEFAULT_TEST_PARTS=(check default asan tsan fuzz release package browser vm)
# The parts that Bazel runs, and that therefore take targets.
readonly BAZEL_TEST_PARTS='default asan ubsan tsan fuzz profile release'
readonly LOG_LINES=1000
readonly BAZEL_VERDICTS='PASSED|FAILED|TIMEOUT|NO STATUS|FLAKY|INCOMPLETE|REMOTE FAILURE'
readonly VM_MACHINES=2
readonly HTML_TEST=//conformance/report:html_test
unset HAS_BROWSER_PART
# Tests with one thread, for which the thread sanitizer has nothing to find. In //kmes/tests only
# threads_test has more threads.
readonly ONE_THREAD=(
    //conformance/cases/... //conformance/clauses/... //conformance/failure/...
    //conformance/model/... //conformance/oracle/... //conformance/report/... //fuzz/...
    //kmes/tests/... //kmesctl/... //kmod/kmesctl/... //props/script/... //props/suite/...
    //record/...
)
readonly TSAN_TARGETS=("${ONE_THREAD[@]/#/-}" //kmes/tests:threads_test)

test_command() {
    local parts=()
    TEST_TARGETS=()
    test_arguments "$@" || return
    if [ "${#parts[@]}" -eq 0 ]; then
        parts=("${DEFAULT_TEST_PARTS[@]}")
        [ "${#TEST_TARGETS[@]}" -eq 0 ] || parts=(default)
    fi
    TESTS_PASSED=0
    TESTS_FAILED=0
    choose_today "${parts[@]}" || return
    exit_by_signal
    run_parts "${parts[@]}"
    printf '%s passed, %s failed\n' "$TESTS_PASSED" "$TESTS_FAILED"
    [ "$TESTS_FAILED" -eq 0 ] && [ "$TESTS_PASSED" -gt 0 ]
}

# test_arguments ARGUMENTS...: fills the caller's `parts`, and TEST_TARGETS.
test_arguments() {
    local argument part
    for argument in "$@"; do
        case "$argument" in //* | -//*) TEST_TARGETS+=("$argument") && continue ;; esac
        case " ${TEST_PARTS[*]} " in
            *" $argument "*) parts+=("$argument") ;;
            *)
                bad_usage "test: unknown part '$argument'; any of: ${TEST_PARTS[*]};" \
                    "a target begins with //"
                return
                ;;
        esac
    done
    [ "${#TEST_TARGETS[@]}" -gt 0 ] || return 0
    for part in ${parts[@]+"${parts[@]}"}; do
        case " $BAZEL_TEST_PARTS " in
            *" $part "*) ;;
            *)
                bad_usage "test: part '$part' takes no targets; those that do: $BAZEL_TEST_PARTS"
                return
                ;;
        esac
    done
}

run_parts() {
    make_scratch || { report_test FAIL setup scratch-folder "" && return; }
    install_for "$@"
    if ! { setup_section required && prepare_bazel; } 2>"$KMES_SCRATCH/setup.log"; then
        report_test FAIL setup packages ""
        show_log "$KMES_SCRATCH/setup.log"
        return
    fi
    local part
    for part in "$@"; do
        name_missing "$part"
        [ "$part" != browser ] || HAS_BROWSER_PART=1
    done
    for part in "$@"; do
        case "$part" in
            check) run_check_part ;;
            package)
                run_package_part
                run_workspace_test
                ;;
            browser) run_browser_part ;;
            vm) run_vm_part ;;
            *) run_bazel_part "$part" ;;
        esac
    done
    # CI does not use the clone again, so its Bazel server can end.
    [ -z "${CI-}" ] || run_bazel shutdown >"$KMES_SCRATCH/shutdown.log" 2>&1
}

# section_of PART: prints the section of tools/packages.txt with the packages of only this part.
section_of() {
    case "$1" in
        package | browser) printf '%s' "$1" ;;
        vm) printf kernel ;;
    esac
}

# install_for PARTS...: installs the packages of all parts, if root calls it. apt may upgrade
# linux-libc-dev with a later part's packages. Bazel's object cache depends on its version, so the
# upgrade must come before the first build. A part reports itself what it lacks.
install_for() {
    local part section
    [ "$(id -u)" -eq 0 ] || return 0
    for part in "$@"; do
        section=$(section_of "$part")
        [ -z "$section" ] || setup_section "$section" >>"$KMES_SCRATCH/setup.log" 2>&1
    done
    return 0
}

# name_missing PART: reports the packages that this part lacks, before the first part begins. Only
# root installs them.
name_missing() {
    local section missing
    section=$(section_of "$1")
    [ -n "$section" ] || return
    if [ "$(id -u)" -eq 0 ] || ! missing=$(missing_of "$section") || [ -z "$missing" ]; then
        return
    fi
    printf '# %s: packages are missing; as root: %s %s\n' "$1" \
        'apt-get install --no-install-recommends' "$missing"
}

# report_test PASS|FAIL PART NAME SECONDS: prints the one line, and counts.
report_test() {
    case "$1" in
        PASS) TESTS_PASSED=$((TESTS_PASSED + 1)) ;;
        *) TESTS_FAILED=$((TESTS_FAILED + 1)) ;;
    esac
    printf '%s %s %s%s\n' "$1" "$2" "$3" "${4:+ $4}"
}

# Prints the end of a log, which has the reason of a failure. Omits the passed cases of the suite's
# table.
show_log() {
    local passes='^[^ ]+ +(adapter|must|erratum|should|robust) +pass  ' lines
    lines=$(grep -cvE "$passes" -- "$1")
    [ "$lines" -le "$LOG_LINES" ] || printf '    (%s lines left out)\n' "$((lines - LOG_LINES))"
    grep -vE "$passes" -- "$1" | tail -n "$LOG_LINES" | sed 's/^/    /'
}

run_check_part() {
    local log=$KMES_SCRATCH/check.log start=$SECONDS verdict=PASS
    check_tree "$KMES_ROOT" >"$log" 2>&1 || verdict=FAIL
    report_test "$verdict" check style "$((SECONDS - start))s"
    [ "$verdict" = PASS ] || show_log "$log"
}

# Tests the executable of `tools/kmes package --quick` in an empty root, and compares it with the
# dynamic one.
run_package_part() {
    local log=$KMES_SCRATCH/package.log folder=$KMES_SCRATCH/dist start=$SECONDS verdict=PASS
    printf '# package: building, and running in an empty root\n'
    {
        setup_section package && build_targets "the suite" "$RUNNER_TARGET" && zydis_library &&
            package_command --quick "$folder" &&
            "$KMES_ROOT/tools/package/static_test.sh" "$folder/kmes-conformance" \
                "$BAZEL_BIN/conformance/kmes-conformance"
    } >"$log" 2>&1 || verdict=FAIL
    if [ "$verdict" = FAIL ] && [ -n "${ZYDIS_NOT_FETCHED-}" ]; then
        printf '# package: left out: %s\n' "$(tail -n 1 -- "$log")"
        return
    fi
    report_test "$verdict" package static "$((SECONDS - start))s"
    [ "$verdict" = PASS ] || show_log "$log"
}

# Tests the rule kmes_conformance_test in another workspace.
run_workspace_test() {
    local log=$KMES_SCRATCH/workspace.log start=$SECONDS verdict=PASS
    local broken=//conformance/testees:broken_no-recheck
    {
        build_targets "the suite" "$RUNNER_TARGET" "$REFERENCE_TARGET" "$broken" &&
            "$KMES_ROOT/conformance/bazel/workspace_test.sh" "$KMES_ROOT" \
                "$BAZEL_BIN/conformance/kmes-conformance" \
                "$BAZEL_BIN/conformance/testees/reference" \
                "$BAZEL_BIN/conformance/testees/broken_no-recheck"
    } >"$log" 2>&1 || verdict=FAIL
    report_test "$verdict" package workspace "$((SECONDS - start))s"
    [ "$verdict" = PASS ] || show_log "$log"
}

# Tests the HTML report in Chromium, or without a browser if Chromium cannot be installed. The part
# `default` leaves this test to this part.
run_browser_part() {
    local log=$KMES_SCRATCH/browser.log start=$SECONDS verdict=PASS needs_browser=1
    printf '# browser: the HTML report in Chromium\n'
    if ! setup_section browser >"$log" 2>&1; then
        printf '# browser: left out, except what needs none: %s\n' "$(tail -n 1 -- "$log")"
        needs_browser=''
    fi
    run_bazel test --nocache_test_results --test_output=errors \
        ${needs_browser:+--test_env=KMES_NEEDS_BROWSER=1} "$HTML_TEST" >"$log" 2>&1 || verdict=FAIL
    report_test "$verdict" browser html "$((SECONDS - start))s"
    [ "$verdict" = PASS ] || show_log "$log"
}

# Tests the module in virtual machines with Debian's 6.1: the planted bugs, and the guest tests. Two
# machines run at once, because each uses little more than one processor. Then tests the module's
# packaging, without a machine.
run_vm_part() {
    local log=$KMES_SCRATCH/vm.log what
    for what in planted suite; do
        printf '# vm: building, and running the %s\n' "$what"
        if [ "$what" = suite ]; then
            vm_command --machines "$VM_MACHINES"
        else
            vm_command --planted
        fi >"$log" 2>&1
        report_vm "$what" "$log" "$?"
    done
    for what in build dkms; do
        run_packaging_test "$what"
    done
}

# run_packaging_test NAME: runs kmod/packaging/NAME_test.sh, and reports it in one line.
run_packaging_test() {
    local log=$KMES_SCRATCH/packaging.log start=$SECONDS verdict=PASS
    KMES_SHARE=$PACKAGING_SHARES "$KMES_ROOT/kmod/packaging/$1_test.sh" >"$log" 2>&1 || verdict=FAIL
    report_test "$verdict" vm "packaging/$1" "$((SECONDS - start))s"
    [ "$verdict" = PASS ] || show_log "$log"
}

# report_vm WHAT LOG STATUS: reports each test of `tools/kmes vm`, with the details of a failure. A
# missing line or count is a failure.
report_vm() {
    local line counted='' shown=0 is_failure=0
    while IFS= read -r line; do
        if [[ $line =~ ^(PASS|FAIL)\ [^\ ]+\ ([^\ ]+)\ ([0-9.]+s)$ ]]; then
            report_test "${BASH_REMATCH[1]}" vm "$1/${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
            shown=$((shown + 1))
            is_failure=0
            [ "${BASH_REMATCH[1]}" = PASS ] || is_failure=1
        elif [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
            counted=$((BASH_REMATCH[1] + BASH_REMATCH[2]))
            is_failure=0
        elif [ "$is_failure" -eq 1 ]; then
            printf '%s\n' "$line"
        fi
    done <"$2"
    [ "${counted:-0}" -eq "$shown" ] && [ "$shown" -gt 0 ] && [ "$3" -le 1 ] && return
    report_test FAIL vm "$1: ${counted:-no} tests counted, $shown shown, status $3" ""
    show_log "$2"
}

# Builds and tests everything, or TEST_TARGETS, under one configuration. Does not use cached
# results, so that flaky tests fail sometimes.
run_bazel_part() {
    local part=$1 log=$KMES_SCRATCH/$1.log status=0 start=$SECONDS
    local options=(--keep_going --nocache_test_results --test_output=summary --test_summary=short)
    # One more than the number of processors, because tests wait a quarter of their time.
    options+=("--jobs=$(($(nproc) + 1))")
    [ -z "${KMES_SHARE-}" ] || options+=("--test_env=KMES_SHARE=$KMES_SHARE")
    # Targets that no sanitizer test needs are built once, without a sanitizer.
    [ "$part" = default ] || options+=("--config=$part" --build_tests_only)
    local targets=(${TEST_TARGETS[@]+"${TEST_TARGETS[@]}"})
    if [ "${#targets[@]}" -eq 0 ]; then
        targets=(//...)
        [ "$part" != default ] || [ -z "${HAS_BROWSER_PART-}" ] || targets+=("-$HTML_TEST")
        [ "$part" != tsan ] || targets+=("${TSAN_TARGETS[@]}")
        rest_today "$part"
        targets+=(${RESTING[@]+"${RESTING[@]/#/-}"})
    fi
    printf '# %s: building and testing\n' "$part"
    local stamp=$KMES_SCRATCH/$part.stamp
    : >"$stamp"
    run_bazel test "${options[@]}" -- "${targets[@]}" >"$log" 2>&1 || status=$?
    # Bazel: 0 all passed, 3 built but a test failed; any other status means that something was not
    # built or not run.
    case "$status" in
        0 | 3) ;;
        4) report_test FAIL "$part" "no test was found" "" ;;
        *)
            report_test FAIL "$part" build "$((SECONDS - start))s"
            show_log "$log"
            ;;
    esac
    report_summary "$part" "$log"
    [ "$part" != default ] || keep_count "$stamp"
}

# keep_count STAMP: adds the numbers of runs of correct consumers since STAMP, and of wrong
# verdicts, to the counts of earlier days. CI runs a share of the consumers each time.
keep_count() {
    local runs wrong all_runs=0 all_wrong=0 since kept
    read -r runs wrong < <(
        find -L "$KMES_ROOT/bazel-testlogs" -name test.log -newer "$1" -exec sed -nE \
            's/^[0-9]+ consumers?, ([0-9]+) runs?, ([0-9]+) wrong verdicts?$/\1 \2/p' {} + \
            2>/dev/null | awk '{ runs += $1; wrong += $2 } END { print runs + 0, wrong + 0 }'
    )
    if [ "${runs:-0}" -eq 0 ] || ! kept=$(cache_folder); then return 0; fi
    # Replace the target of a link, not the link.
    kept=$(readlink -m -- "$kept/right-consumers")
    since=$(date +%F)
    local pattern='^([0-9]{1,15}) ([0-9]{1,15}) ([0-9-]{10})$'
    if [ -r "$kept" ] && [[ $(<"$kept") =~ $pattern ]]; then
        all_runs=${BASH_REMATCH[1]} all_wrong=${BASH_REMATCH[2]} since=${BASH_REMATCH[3]}
    fi
    all_runs=$((all_runs + runs))
    all_wrong=$((all_wrong + wrong))
    printf '%s %s %s\n' "$all_runs" "$all_wrong" "$since" >"$kept.new" && mv -- "$kept.new" "$kept"
    printf '# correct consumers: %s runs, %s wrong verdicts; here since %s: %s runs, %s wrong\n' \
        "$runs" "$wrong" "$since" "$all_runs" "$all_wrong"
}

# report_summary PART LOG: reports each test in Bazel's summary, with the log of a failed one. Each
# verdict except a plain pass is a failure, and so is a missing line for a test.
report_summary() {
    local part=$1 log=$2 line name said seconds seen=0 counted
    local pattern="^(//[^ ]+) +(\\(cached\\) )?($BAZEL_VERDICTS)(.*)\$"
    while IFS= read -r line; do
        [[ $line =~ $pattern ]] || continue
        name=${BASH_REMATCH[1]}
        said="${BASH_REMATCH[3]}${BASH_REMATCH[4]}"
        seen=$((seen + 1))
        seconds=
        [[ $said =~ in\ ([0-9.]+s)$ ]] && seconds=${BASH_REMATCH[1]}
        if [[ $said == "PASSED in "* ]]; then
            report_test PASS "$part" "$name" "$seconds"
        else
            report_test FAIL "$part" "$name" "${seconds:-"(${said,,})"}"
            show_test_log "$name" "$log"
        fi
    done <"$log"
    counted=$(sed -nE 's/^Executed [0-9]+ out of ([0-9]+) tests?:.*/\1/p' "$log" | tail -n 1)
    # Bazel names only some of the tests that it could not build.
    if grep -qxF '(Skipping other failed to build tests)' "$log"; then
        report_test FAIL "$part" "$((counted - seen)) more tests" "(failed to build)"
    elif [ "$seen" -ne "${counted:-0}" ]; then
        report_test FAIL "$part" "summary: Bazel counts ${counted:-0} tests, shows $seen" ""
    fi
}

# logs_of NAME LOG: prints the paths of one test's logs, one per line: the indented paths after its
# line in the summary.
logs_of() {
    awk -v name="$1" '
        index($0, name " ") == 1 { on = 1; next }
        /^[^ ]/ { on = 0 }
        on && /^  +\// { sub(/^ +/, ""); print }' "$2"
}

# show_test_log NAME LOG: prints the logs of one test.
show_test_log() {
    local path
    logs_of "$1" "$2" |
        while IFS= read -r path; do
            printf '    --- %s %s\n' "$1" "$path"
            [ -f "$path" ] || continue
            show_expectations "$path"
            show_log "$path"
        done
}

# show_expectations LOG: prints the failed expectations of a GoogleTest log, and their tests.
show_expectations() {
    awk '/^\[ RUN / { name = $4 }
        /: Failure$/ { print name ":"; on = 1 }
        /^\[/ { on = 0 }
        on' "$1" | head -n 40 | sed 's/^/    /'
}
