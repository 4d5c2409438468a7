# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Shared by the tests of tools/kmes: a copy of the commands, fake commands bazel, apt-get,
# dpkg-query and id that record their calls, and functions for a case.

readonly CLONE=$TEST_TMPDIR/clone
readonly BIN=$TEST_TMPDIR/bin
readonly CALLS=$TEST_TMPDIR/calls
readonly OUT=$TEST_TMPDIR/out
readonly ERR=$TEST_TMPDIR/err
failures=0

# --- the fake commands ---

fake_command() {
    { echo '#!/usr/bin/env bash' && cat; } >"$BIN/$1"
    chmod +x "$BIN/$1"
}

make_clone() {
    mkdir -p "$BIN" "$CLONE" "$CLONE/out/conformance/testees" "$CLONE/out/props/replay" \
        "$TEST_TMPDIR/home"
    cp -rL "$PWD/tools" "$CLONE/"
    mkdir "$CLONE/fuzz"
    printf 'kmes_fuzz_target(\n    name = "%s",\n)\n' script batch header empty \
        >"$CLONE/fuzz/BUILD.bazel"
    # Everything is installed except what FAKE_MISSING names.
    fake_command dpkg-query <<'E2'
for name in "$@"; do
    case "$name" in -*) continue ;; esac
    [ "$name" = "${FAKE_MISSING-}" ] || echo "$name installed"
done
E2
    fake_command apt-get <<'E2'
echo "apt-get $*" >>"$CALLS"
echo "words of apt"
if [ "$1" = install ] && rm "$TEST_TMPDIR/apt-fails" 2>/dev/null; then exit 100; fi
[ "${FAKE_APT-}" != down ]
E2
    fake_command id <<'E2'
echo "${FAKE_UID:-0}"
E2
    # Prints what the files of the test contain.
    fake_command bazel <<'E2'
echo "bazel $*" >>"$CALLS"
while [ "${1#--}" != "$1" ]; do shift; done
[ -z "${BAZEL_INTERRUPTS-}" ] || kill -s INT "$PPID"
case "$1" in
    info) echo "$CLONE/out" ;;
    query)
        if [ -n "${FAKE_QUERY-}" ]; then
            echo "$FAKE_QUERY" >&2
            exit 7
        fi
        case "$*" in
            *one-day-in-two*) cat "$TEST_TMPDIR/bazel-query-long" 2>/dev/null ;;
            *) cat "$TEST_TMPDIR/bazel-query" 2>/dev/null ;;
        esac
        ;;
    *)
        case "$*" in
            *' --local_test_jobs=1 '*)
                if [ -f "$TEST_TMPDIR/bazel-alone" ]; then
                    cat "$TEST_TMPDIR/bazel-alone"
                    exit 0
                fi
                ;;
            # The summary can be that of the runs whose last test has this name.
            *' --runs_per_test='*)
                last=${*: -1}
                cat "$TEST_TMPDIR/bazel-repeats-${last##*:}" 2>/dev/null ||
                    cat "$TEST_TMPDIR/bazel-repeats"
                exit 3
                ;;
        esac
        case "$PWD $1" in
            # Like Bazel, it ends by itself when the signal comes.
            */tree\ build) [ -z "${FAKE_SIGNAL-}" ] || { trap '' "$FAKE_SIGNAL" &&
                kill -"$FAKE_SIGNAL" 0 && exit 8; } ;;
        esac
        cat "$TEST_TMPDIR/bazel-says" 2>/dev/null
        exit "$(cat "$TEST_TMPDIR/bazel-status" 2>/dev/null || echo 0)"
        ;;
esac
E2
    cat >"$CLONE/out/conformance/kmes-conformance" <<'E2'
#!/usr/bin/env bash
echo "in $PWD"
printf 'argument <%s>\n' "$@"
exit "${FAKE_VERDICT:-0}"
E2
    chmod +x "$CLONE/out/conformance/kmes-conformance"
    # A file that begins like a script counts as one.
    cat >"$CLONE/out/props/replay/kmes-replay" <<'E2'
#!/usr/bin/env bash
if [ "$1" = --check ]; then
    [ "$(head -n 1 "${2/#-//dev/stdin}")" = 'kmes-script 1' ] && exit
    echo "-:1: words of the player" >&2
    exit 2
fi
echo "in $PWD"
printf 'argument <%s>\n' "$@"
exit "${FAKE_VERDICT:-0}"
E2
    chmod +x "$CLONE/out/props/replay/kmes-replay"
    local program
    for program in props/mutants/run_mutants.py conformance/testees/broken/patches.py; do
        mkdir -p "$CLONE/${program%/*}"
        cat >"$CLONE/$program" <<'E2'
import os, sys
for argument in sys.argv[1:]:
    print(f"argument <{argument}>")
sys.exit(int(os.environ.get("FAKE_VERDICT", 0)))
E2
    done
    export CALLS CLONE TEST_TMPDIR
}

# --- functions for a case ---

# kmes STATUS ARGUMENTS...: runs the command with its output to OUT and ERR, and expects the status.
kmes() {
    local expected=$1 status
    shift
    : >"$CALLS"
    PATH="$BIN:$PATH" HOME="${FAKE_HOME-$TEST_TMPDIR/home}" TMPDIR=$TEST_TMPDIR XDG_CACHE_HOME='' \
        CI="${FAKE_CI-}" "${KMES-$CLONE/tools/kmes}" "$@" >"$OUT" 2>"$ERR"
    status=$?
    [ "$status" -eq "$expected" ] || fail "kmes $*: status $status, not $expected"
}

# signalled SIGNAL STATUS ARGUMENTS...: the same in a new session. There the fake commands send the
# signal to each process, as a terminal does with Ctrl-C.
signalled() {
    local signal=$1 expected=$2
    shift 2
    cat >"$TEST_TMPDIR/in-session" <<'E2'
#!/usr/bin/env bash
exec env --default-signal=INT,TERM setsid --wait "$CLONE/tools/kmes" "$@"
E2
    chmod +x "$TEST_TMPDIR/in-session"
    FAKE_SIGNAL=$signal KMES=$TEST_TMPDIR/in-session kmes "$expected" "$@"
}

fail() {
    echo "FAIL: $*"
    sed 's/^/    /' "$OUT" "$ERR" "$CALLS"
    failures=$((failures + 1))
}

# has FILE LINE: expects the whole line. has_not FILE TEXT: expects that no line contains the text.
has() { grep -qxF -- "$2" "$1" || fail "no line '$2' in ${1##*/}"; }
has_not() { ! grep -qF -- "$2" "$1" || fail "'$2' is in ${1##*/}"; }
like() { grep -qE -- "$2" "$1" || fail "no line like '$2' in ${1##*/}"; }
like_not() { ! grep -qE -- "$2" "$1" || fail "a line is like '$2' in ${1##*/}"; }
last() { [ "$(tail -n 1 "$1")" = "$2" ] || fail "the last line is not '$2'"; }
lines() { [ "$(wc -l <"$1")" -eq "$2" ] || fail "not $2 lines in ${1##*/}"; }

bazel_says() {
    echo "$1" >"$TEST_TMPDIR/bazel-status"
    cat >"$TEST_TMPDIR/bazel-says"
}
