# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What shell tests with kmesctl share: a scratch folder in WORK, which is the current folder
# afterwards, a socket in it, a list of processes that the end kills, failures and waits. Source it
# after every path of an argument is absolute.

WORK=$(mktemp -d)
readonly WORK
cd -- "$WORK" || exit 1
# Relative: the address of a socket has 107 bytes at most, and the folder of a test may have more.
export KMES_SOCKET=s
failures=0
started=()

end() {
    local pid
    for pid in ${started[@]+"${started[@]}"}; do
        kill -CONT "$pid" 2>/dev/null
        kill -KILL "$pid" 2>/dev/null
    done
    rm -rf -- "$WORK"
}
trap end EXIT

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

# until_true COMMAND...: a generous limit, which scales.
until_true() {
    local left=$((200 * ${KMES_TIMEOUT_SCALE:-1}))
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { fail "never came true: $*"; return 1; }
        sleep 0.1
    done
}
