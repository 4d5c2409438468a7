# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Shared by all subcommands of tools/kmes: messages, the list of the tree's files, and a Bazel call
# that works for any user.

# Only these scripts set these names, so values from the caller's environment are dropped.
unset KMES_SCRATCH BUILD_TREE BUILD_NEEDS ZYDIS_NOT_FETCHED

# Exit statuses (README.md): 0 success, 1 failure, 2 bad usage, 3 set-up or build failed.
readonly STATUS_BAD_USAGE=2
readonly STATUS_SETUP=3

say_error() { printf 'tools/kmes: %s\n' "$*" >&2; }

bad_usage() {
    say_error "$*"
    return "$STATUS_BAD_USAGE"
}

# Drops a value from the environment.
KMES_AT_EXIT=''

# at_exit COMMAND...: runs the command when tools/kmes ends, also by a signal. The last command runs
# first. Do not call it in a subshell, which would also run the commands of the whole shell.
at_exit() {
    local command
    printf -v command '%q ' "$@"
    KMES_AT_EXIT="$command; $KMES_AT_EXIT"
    # A second Ctrl-C must not interrupt these commands.
    trap 'trap "" INT TERM; eval "$KMES_AT_EXIT"' EXIT
}

# Lets INT and TERM end tools/kmes as soon as the current program has ended. Without this,
# tools/kmes would continue after a program that handles the signal, such as Bazel.
exit_by_signal() {
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Makes a scratch folder that is removed when the command ends; its path is in KMES_SCRATCH.
make_scratch() {
    [ -n "${KMES_SCRATCH-}" ] && return 0
    if ! KMES_SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/kmes.XXXXXXXX"); then
        say_error "no scratch folder: ${TMPDIR:-/tmp} must be writable, or TMPDIR name one that is"
        return "$STATUS_SETUP"
    fi
    at_exit rm -rf -- "$KMES_SCRATCH"
}

# Prints the user's cache folder for this project, and creates it if necessary. Prints nothing and
# returns 1 if there is none.
cache_folder() {
    local base=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    [ -n "$base" ] && mkdir -p -- "$base/kmes" 2>/dev/null && [ -w "$base/kmes" ] &&
        printf '%s\n' "$base/kmes"
}

# Bazel keeps its state under the home folder. If that is not writable, the state goes to a private
# folder of this user among the temporary files. Fills BAZEL_STARTUP.
choose_bazel_state() {
    BAZEL_STARTUP=()
    if [ -n "${HOME-}" ] && mkdir -p -- "$HOME/.cache/bazel" 2>/dev/null &&
        [ -w "$HOME/.cache/bazel" ]; then
        return 0
    fi
    local state
    state="${TMPDIR:-/tmp}/kmes-bazel-$(id -u)"
    mkdir -m 700 -- "$state" 2>/dev/null
    if [ ! -d "$state" ] || [ -L "$state" ] || [ ! -O "$state" ] || [ ! -w "$state" ]; then
        say_error "nowhere to build: neither the home folder nor $state can be written by this user"
        return "$STATUS_SETUP"
    fi
    BAZEL_STARTUP=("--output_user_root=$state")
    export HOME="$state"
}

# Sets BAZEL_CACHE to the option for a cache of compiled objects that clones share, if possible.
# Each set of package versions has its own cache, because Bazel does not track system headers.
choose_disk_cache() {
    BAZEL_CACHE=()
    local cache names versions
    cache=$(cache_folder) || return 0
    names=$(packages_of required) || return 0
    # shellcheck disable=SC2086  # names of packages have no spaces
    versions=$(dpkg-query -W -f='${Package} ${Version}\n' libc6-dev linux-libc-dev $names \
        2>/dev/null | sort | cksum | cut -d' ' -f1)
    # Remove objects of other package versions, and those unused for two weeks.
    find "$cache" -mindepth 1 -maxdepth 1 -name 'objects-*' ! -name "objects-$versions" -mtime +1 \
        -exec rm -rf -- {} + 2>/dev/null
    find "$cache/objects-$versions" -type f -mtime +14 -delete 2>/dev/null
    BAZEL_CACHE=("--disk_cache=$cache/objects-$versions")
}

# Call it once before the first run_bazel.
prepare_bazel() {
    case "$KMES_ROOT" in
        *[[:space:]]*)
            say_error "Bazel cannot build in a path with a space; move '$KMES_ROOT' elsewhere"
            return "$STATUS_SETUP"
            ;;
    esac
    choose_bazel_state || return
    choose_disk_cache
}

# run_bazel COMMAND ARGS...: runs Bazel in the folder that BUILD_TREE names, or else in this tree.
# The output has no colours and no progress lines. Closes the locks of `package` (8 and 9), since
# Bazel's server continues to run.
run_bazel() {
    local command=$1
    shift
    local options=(--color=no --curses=no --noshow_progress)
    case "$command" in
        build | test)
            options+=(${BAZEL_CACHE[@]+"${BAZEL_CACHE[@]}"})
            # CI builds each source only once, so it can join them (tools/bazel/joined.bzl).
            [ -z "${CI-}" ] || options+=(--define=kmes_sources=joined)
            ;;
    esac
    (cd -- "${BUILD_TREE:-$KMES_ROOT}" &&
        exec bazel ${BAZEL_STARTUP[@]+"${BAZEL_STARTUP[@]}"} "$command" "${options[@]}" "$@" \
            </dev/null 8<&- 9<&-)
}

# build_targets WHAT [OPTION...] TARGET...: builds the targets quietly, with these options of Bazel.
# Sets BAZEL_BIN to the folder of the outputs. WHAT names the targets in an error line. First
# installs the packages of the section BUILD_NEEDS (default: required).
build_targets() {
    local what=$1 log argument options=()
    shift
    for argument in "$@"; do
        [[ $argument != --* ]] || options+=("$argument")
    done
    setup_section "${BUILD_NEEDS:-required}" || return
    prepare_bazel || return
    make_scratch || return
    log=$KMES_SCRATCH/build.log
    [ -t 2 ] && printf 'tools/kmes: building (the first time takes minutes)\n' >&2
    if ! run_bazel build "$@" >"$log" 2>&1; then
        cat -- "$log" >&2
        say_error "$what could not be built; the log is above"
        return "$STATUS_SETUP"
    fi
    # shellcheck disable=SC2034  # its users are in other files
    if ! BAZEL_BIN=$(run_bazel info ${options[@]+"${options[@]}"} bazel-bin 2>"$log"); then
        cat -- "$log" >&2
        say_error "Bazel does not say where it builds; its words are above"
        return "$STATUS_SETUP"
    fi
}

# Prints the commit of this tree, with "-changed" if tracked files differ from it. Prints nothing
# without git.
commit_of_tree() {
    [ -e "$KMES_ROOT/.git" ] || return 0
    git -C "$KMES_ROOT" describe --always --abbrev=12 --exclude='*' --dirty=-changed 2>/dev/null
}

# Prints the files of a tree, with relative paths, one per line: those that git tracks or would add.
# Without git, prints all files.
list_files() {
    local root=$1 top
    top=$(git -C "$root" rev-parse --show-toplevel 2>/dev/null)
    if [ -n "$top" ] && [ "$top" = "$(cd -- "$root" && pwd -P)" ]; then
        # A file that is deleted but not yet committed does not exist.
        (cd -- "$root" && git -c core.quotepath=off ls-files -co --exclude-standard |
            while IFS= read -r file; do
                [ ! -f "$file" ] || printf '%s\n' "$file"
            done | sort -u)
    else
        (cd -- "$root" && find . -name .git -prune -o -name 'bazel-*' -prune -o -type f -print |
            sed 's|^\./||' | sort)
    fi
}
