# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The part of a long test that runs today, for scripts of sh and bash. With KMES_SHARE=N in the
# environment a test runs one Nth of what it has, another each day (UTC), and all with N = 1.
# kmes/tests/share.h is the same for C++, and kill_matrix.py for the broken consumers.

# shares_or DEFAULT: prints N. Ends the script with a message if it is not a number from 1 to 1000.
shares_or() {
    case "${KMES_SHARE:-$1}" in
        [1-9] | [1-9][0-9] | [1-9][0-9][0-9] | 1000) printf '%s\n' "${KMES_SHARE:-$1}" ;;
        *)
            printf "KMES_SHARE is a number from 1 to 1000, not '%s'\n" "$KMES_SHARE" >&2
            exit 2
            ;;
    esac
}

# share_of_today N [DAYS]: prints the number of the share of today, or of the day after DAYS, from 0
# to N - 1.
share_of_today() {
    printf '%s\n' "$((($(date +%s) / 86400 + ${2:-0}) % $1))"
}

# take_shard_of_today: chooses today's shard of the cases for the suite, if there is more than one.
# Otherwise the shard that the environment names, if any, stays.
take_shard_of_today() {
    shares=$(shares_or 1) || exit
    [ "$shares" -gt 1 ] || return 0
    TEST_TOTAL_SHARDS=$shares
    TEST_SHARD_INDEX=$(share_of_today "$shares")
    export TEST_TOTAL_SHARDS TEST_SHARD_INDEX
    echo "shard $TEST_SHARD_INDEX of $TEST_TOTAL_SHARDS, today's"
}
