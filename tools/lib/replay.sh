# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes replay`: builds the player of scripts and passes its arguments to it. `--keep` adds a
# script to the corpus that tests replay.

readonly PLAYER_TARGET=//props/replay:kmes-replay
readonly CORPUS=props/corpus

replay_command() {
    if [ "${1-}" = --keep ]; then
        shift
        keep_script "$@"
        return
    fi
    build_targets "the player of scripts" "$PLAYER_TARGET" || return
    rm -rf -- "$KMES_SCRATCH"
    # In the caller's folder, so that relative paths work. Its exit status is that of the player.
    exec "$BAZEL_BIN/props/replay/kmes-replay" "$@"
}

# keep_script NAME FILE: copies FILE unchanged to NAME.kmes of the corpus, if it is a script.
keep_script() {
    if [ $# -ne 2 ]; then
        bad_usage "replay --keep takes NAME and FILE; the script becomes $CORPUS/NAME.kmes"
        return
    fi
    local name=$1 file=$2 kept=$CORPUS/$1.kmes copy
    if ! [[ $name =~ ^[a-z0-9]+(-[a-z0-9]+)*$ ]]; then
        bad_usage "replay --keep: '$name' is no name; small letters, digits, single - between"
        return
    fi
    build_targets "the player of scripts" "$PLAYER_TARGET" || return
    # Check and keep the same copy, because FILE may be a pipe.
    copy=$KMES_SCRATCH/script
    if ! cat -- "$file" >"$copy" 2>/dev/null; then
        say_error "replay --keep: '$file' cannot be read"
        return "$STATUS_SETUP"
    fi
    local words status
    words=$("$BAZEL_BIN/props/replay/kmes-replay" --check - <"$copy" 2>&1)
    status=$?
    if [ "$status" -ne 0 ]; then
        # The player prints `-:LINE: ...`.
        printf '%s\n' "$file${words#-}" >&2
        return "$status"
    fi
    if [ -e "$KMES_ROOT/$kept" ]; then
        if cmp -s -- "$copy" "$KMES_ROOT/$kept"; then
            printf '%s is there already, the same\n' "$kept"
            return 0
        fi
        bad_usage "replay --keep: $kept is another script; give this one another name"
        return
    fi
    if ! mkdir -p -- "$KMES_ROOT/$CORPUS" || ! cp -- "$copy" "$KMES_ROOT/$kept"; then
        say_error "replay --keep: $kept cannot be written"
        return "$STATUS_SETUP"
    fi
    printf 'kept; now: git add %s && git commit -m "props: WHY" %s\n' "$kept" "$kept"
}
