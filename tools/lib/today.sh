# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What `tools/kmes test` leaves to another day if it runs several parts. Most tests run under asan,
# too, and each configuration compiles them again. Therefore `default` and `tsan` run a share of
# those that asan runs in the same command. The fuzzers' planted bugs and the builds of the module
# have shares as well. KMES_SHARE=1 in the environment runs all, as does a part that is named alone.

# The number of days in which everything has run.
readonly SHARES_OF_TESTS=4 SHARES_OF_CANARIES=2 SHARES_OF_BUILDS=2
# A test does not run under default and under tsan on the same day.
readonly TSAN_DAYS=2
# Targets that Bazel leaves out (.bazelrc) are not found by their tags.
readonly RUN_BY_ASAN='attr(tags, "no-asan|only-|manual", //...)'

# choose_today PARTS...: decides for the whole command. Status 2: KMES_SHARE is no number of shares.
choose_today() {
    IS_DAILY='' HAS_ASAN_PART='' PACKAGING_SHARES=1
    (shares_or 1) >/dev/null || return "$STATUS_BAD_USAGE"
    [ "$#" -gt 1 ] || return 0
    IS_DAILY=1
    PACKAGING_SHARES=$(shares_or "$SHARES_OF_BUILDS")
    [[ " $* " != *' asan '* ]] || HAS_ASAN_PART=1
}

# rest_today PART: fills RESTING with the tests that this part leaves to another day.
rest_today() {
    local query shares days=0 log=$KMES_SCRATCH/query.log name number=0 share
    RESTING=()
    [ -n "$IS_DAILY" ] || return 0
    case "$1" in
        default | tsan)
            [ -n "$HAS_ASAN_PART" ] || return 0
            shares=$(shares_or "$SHARES_OF_TESTS")
            query="tests(//...) except $RUN_BY_ASAN"
            [ "$1" = default ] || query="tests(//conformance/...) except $RUN_BY_ASAN"
            [ "$1" = default ] || days=$TSAN_DAYS
            ;;
        fuzz)
            shares=$(shares_or "$SHARES_OF_CANARIES")
            query='attr(tags, "only-fuzz", tests(//fuzz/...))'
            ;;
        *) return 0 ;;
    esac
    [ "$shares" -gt 1 ] || return 0
    if ! run_bazel query "$query" >"$log" 2>"$log.err"; then
        printf '# %s: all tests, because Bazel does not list them: %s\n' "$1" \
            "$(tail -n 1 -- "$log.err")"
        return
    fi
    share=$(share_of_today "$shares" "$days")
    while IFS= read -r name; do
        number=$((number + 1))
        [ $((number % shares)) -eq "$share" ] || RESTING+=("$name")
    done < <(grep '^//' -- "$log" | LC_ALL=C sort)
    printf '# %s: %s tests are for other days (KMES_SHARE=1: all today)\n' "$1" "${#RESTING[@]}"
}
