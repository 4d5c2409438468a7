# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Shared by the shell tests with kmesctl: a scratch folder in WORK, which becomes the current
# folder, a socket in it, failures and waits. The end of the test kills the processes of a list.
# Source it after every path of an argument is absolute.

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

# until_true COMMAND...: waits with a generous limit, which scales.
until_true() {
    local left=$((200 * ${KMES_TIMEOUT_SCALE:-1}))
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { fail "timed out: $*"; return 1; }
        sleep 0.1
    done
}
