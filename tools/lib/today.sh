# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What `tools/kmes test` leaves to another day if it runs several parts. Most tests run under asan,
# too, and each configuration compiles them again. Therefore `default` and `tsan` run a share of
# those that asan runs in the same command. Long tests, the fuzzers' planted bugs, and the builds of
# the module have shares as well. KMES_SHARE=1 in the environment runs all, as does a part that is
# named alone.
#
# A test that chooses a share of the day itself runs every day. If it ran on even days only, it
# would never choose an odd share.

# The number of days in which everything has run.
readonly SHARES_OF_TESTS=4 SHARES_OF_LONG_TESTS=2 SHARES_OF_CANARIES=2 SHARES_OF_BUILDS=2
# A test does not run under default and under tsan on the same day.
readonly TSAN_DAYS=2
# The query of tests that asan does not run, or that choose a share themselves.
readonly WITH_SHARES='attr(env, KMES_SHARE, //...)'
readonly RUN_DAILY="attr(tags, 'no-asan|only-|manual', //...) + $WITH_SHARES"

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
    RESTING=()
    [ -n "$IS_DAILY" ] || return 0
    case "$1" in
        default)
            rest "$1" "$SHARES_OF_LONG_TESTS" 0 \
                "attr(tags, one-day-in-two, tests(//...)) except $WITH_SHARES"
            [ -z "$HAS_ASAN_PART" ] ||
                rest "$1" "$SHARES_OF_TESTS" 0 "tests(//...) except ($RUN_DAILY)"
            ;;
        tsan)
            [ -z "$HAS_ASAN_PART" ] ||
                rest "$1" "$SHARES_OF_TESTS" "$TSAN_DAYS" \
                    "tests(//conformance/...) except ($RUN_DAILY)"
            ;;
        fuzz) rest "$1" "$SHARES_OF_CANARIES" 0 'attr(tags, "only-fuzz", tests(//fuzz/...))' ;;
    esac
    [ "${#RESTING[@]}" -eq 0 ] ||
        printf '# %s: %s tests are for other days (KMES_SHARE=1: all today)\n' "$1" "${#RESTING[@]}"
}

# rest PART SHARES DAYS QUERY: adds the tests that QUERY finds to RESTING, except for the share of
# today, or of the day after DAYS.
rest() {
    local shares share name number=0 log=$KMES_SCRATCH/query.log
    shares=$(shares_or "$2")
    [ "$shares" -gt 1 ] || return 0
    if ! run_bazel query "$4" >"$log" 2>"$log.err"; then
        printf '# %s: all tests, because Bazel does not list them: %s\n' "$1" \
            "$(tail -n 1 -- "$log.err")"
        return
    fi
    share=$(share_of_today "$shares" "$3")
    while IFS= read -r name; do
        number=$((number + 1))
        [ $((number % shares)) -eq "$share" ] || RESTING+=("$name")
    done < <(grep '^//' -- "$log" | LC_ALL=C sort)
}
