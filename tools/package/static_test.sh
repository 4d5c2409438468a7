#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The static executable needs only the kernel of the machine. It runs in an empty root with /proc
# and /dev, passes a correct consumer there, and fails a broken one, with source lines. If another
# runner is named, both give the same verdicts and messages.
#
#   static_test.sh RUNNER [OTHER_RUNNER]
set -uo pipefail

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly HERE
# Attach, overwrite, and single accesses, which need Zydis for decoding and libdw for source lines.
readonly CASES=(5.1.5/attach-and-map 5.1.8.1-2/lapped-between-two-loads E2/event-at-every-step)
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

# The C example, and the same without the load of write_pos after it sets need_wake; both static.
build_consumers() {
    local source=$HERE/conformance/testees/c/consumer.c
    local check='ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);'
    [ "$(grep -cF "$check" "$source")" -eq 1 ] ||
        fail "$source: no check of write_pos"
    sed 's/ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);/!is_retired(c);/' \
        "$source" >"$WORK/broken.c"
    gcc -std=c11 -O1 -g1 -static -pthread -o "$ROOT/consumer" "$source" &&
        gcc -std=c11 -O1 -g1 -static -pthread -o "$ROOT/broken" "$WORK/broken.c"
}

# in_root COMMAND...: in a separate mount namespace, with which the mounts end.
in_root() {
    # shellcheck disable=SC2016  # the inner shell expands them
    unshare --map-root-user --mount bash -c '
        root=$1
        shift
        mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
            exec chroot "$root" "$@"' - "$ROOT" "$@"
}

# suite RUNNER OPTIONS...: runs the cases with this runner in the root, and prints the report.
suite() {
    local runner=$1 filters=()
    shift
    for pattern in "${CASES[@]}"; do filters+=(--filter "$pattern"); done
    "$runner" /runner --cpus 2 --explore off "${filters[@]}" "$@"
}

# What must not depend on the runner: identifier, verdict and message of each case.
verdicts() {
    python3 -c '
import json, re, sys
for case in json.load(sys.stdin)["cases"]:
    print(case["id"], case["verdict"], re.sub("thread [0-9]+", "thread N", case["message"]))'
}

test_links_nothing() {
    if readelf -lW "$1" | grep -E 'INTERP|DYNAMIC'; then fail "$1 wants shared libraries"; fi
}

test_passes() {
    in_root /runner --version | grep -q '^kmes-conformance ' || fail "--version"
    in_root /runner smoke --timeout-scale 20 -- /consumer || fail "smoke"
    suite in_root -- /consumer || fail "the correct consumer: status $?"
}

test_fails() {
    suite in_root -- /broken >"$WORK/report"
    [ "$?" -eq 1 ] || fail "the broken consumer: expected status 1"
    grep -qF 'FAILED, lost-wake-up' "$WORK/report" || fail "no lost wake-up"
    grep -qE 'broken\.c:[0-9]+' "$WORK/report" || fail "no source line"
    [ "$failures" -eq 0 ] || cat "$WORK/report"
}

outside() { (cd "$ROOT" && shift && "$OTHER" "$@"); }

test_same_verdicts() {
    local consumer
    for consumer in consumer broken; do
        suite in_root --report json -- "/$consumer" | verdicts >"$WORK/static"
        suite outside --report json -- "./$consumer" | verdicts >"$WORK/other"
        [ -s "$WORK/static" ] || fail "$consumer: no verdicts"
        diff "$WORK/other" "$WORK/static" || fail "$consumer: other verdicts than by $OTHER"
    done
}

main() {
    if [ $# -lt 1 ] || [ $# -gt 2 ]; then
        echo 'usage: static_test.sh RUNNER [OTHER_RUNNER]' >&2
        exit 2
    fi
    WORK=$(mktemp -d)
    trap 'rm -rf -- "$WORK"' EXIT
    ROOT=$WORK/root
    mkdir -p "$ROOT"/{proc,dev,tmp}
    cp -- "$1" "$ROOT/runner"
    test_links_nothing "$1"
    build_consumers || fail "the consumers are not built"
    test_passes
    test_fails
    if [ $# -eq 2 ]; then
        OTHER=$(readlink -f -- "$2")
        test_same_verdicts
    fi
    echo "$failures failures"
    [ "$failures" -eq 0 ]
}

main "$@"
