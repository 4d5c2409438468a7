# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes install`: builds the library, kmesctl and the suite, and installs them with headers,
# manual, pkg-config and CMake files (tools/package/install.sh).

readonly INSTALL_TARGETS="$LIBRARY_TARGETS //conformance:kmes-conformance"

# install_folder OPTION VALUE: checks that the installed files can contain the name of the folder.
install_folder() {
    [[ $2 =~ ^/[A-Za-z0-9/._+~@:-]*$ && ! $2 =~ (^|/)\.\.?(/|$) ]] ||
        bad_usage "install: $1 takes an absolute path without spaces and '..', not '$2'"
}

install_command() {
    local prefix=/usr/local destdir='' options=(--config=release)
    while [ $# -gt 0 ]; do
        case "$1" in
            --help | -h) install_usage && return ;;
            --quick) options=() ;;
            --prefix=* | --destdir=*)
                set -- "${1%%=*}" "${1#*=}" "${@:2}"
                continue
                ;;
            --prefix | --destdir)
                [ $# -ge 2 ] || { bad_usage "install: $1 takes a folder" || return; }
                install_folder "$1" "$2" || return
                if [ "$1" = --prefix ]; then prefix=${2%/}; else destdir=${2%/}; fi
                shift
                ;;
            -*) bad_usage "install: unknown option '$1'; --help lists them" || return ;;
            *) bad_usage "install: takes options only, not '$1'; did you mean --prefix $1?" ||
                return ;;
        esac
        shift
    done
    [ -n "$prefix" ] || { bad_usage "install: --prefix / is no place; try /usr" || return; }
    # Check before the build, which takes minutes.
    if ! mkdir -p -- "$destdir$prefix" 2>/dev/null || [ ! -w "$destdir$prefix" ]; then
        bad_usage "install: '$destdir$prefix' is no folder that can be written" || return
    fi
    # shellcheck disable=SC2086  # labels have no spaces
    build_targets "the installed files" ${options[@]+"${options[@]}"} $INSTALL_TARGETS || return
    make_scratch || return
    if ! "$KMES_ROOT/tools/package/install.sh" "$KMES_ROOT" "$BAZEL_BIN" "$prefix" "$destdir" \
        2>"$KMES_SCRATCH/install.log"; then
        say_error "install: $(head -n 1 -- "$KMES_SCRATCH/install.log")"
        return "$STATUS_SETUP"
    fi
}

install_usage() {
    cat <<'TEXT'
usage: tools/kmes install [--prefix FOLDER] [--destdir FOLDER] [--quick]

Builds and installs: libkmes (shared, static, headers, pkg-config, CMake, manual), kmesctl, and the
conformance suite.

  --prefix FOLDER    where the files belong (default: /usr/local)
  --destdir FOLDER   puts them under this folder, for a package or an image (default: none)
  --quick            installs what a default build has compiled, without more optimisation

PREFIX/share/kmes/installed.txt lists every installed file, itself among them. To remove them:
  xargs -d '\n' rm -f < PREFIX/share/kmes/installed.txt
With --destdir, the list has the paths without that folder, and the command above would remove the
files of this machine. Use this one, where .PREFIX is for example ./usr/local:
  cd DESTDIR && sed 's|^|.|' .PREFIX/share/kmes/installed.txt | xargs -d '\n' rm -f
Another installation to the same place removes the files that only the earlier one had.
After an installation where ld.so looks for libraries, call ldconfig as root.

Exit status: 0 installed; 2 bad usage; 3 the build failed, or a file could not be written.
TEXT
}
