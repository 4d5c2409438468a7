# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes package`: builds the runner as one static executable, and all Debian packages
# (tools/package/make_deb.sh, make_library_debs.sh). Also builds the one library of which Debian has
# no archive.

readonly STATIC_TARGET=//conformance:kmes-conformance-static
readonly LIBRARY_TARGETS='//kmes/user:libkmes.so.0 //kmes/user:libkmes_static //kmesctl:kmesctl'

# zydis_library: builds libZydis.a from Debian's source of the installed libzydis-dev, unless an
# earlier call has done so. Sets ZYDIS_FOLDER to its folder, or ZYDIS_NOT_FETCHED if the source is
# not available.
zydis_library() {
    local version cache folder=$KMES_SCRATCH/zydis log=$KMES_SCRATCH/zydis.log
    version=$(dpkg-query -W -f='${source:Version}' libzydis-dev) || return "$STATUS_SETUP"
    cache=$(cache_folder) || cache=$KMES_SCRATCH
    ZYDIS_FOLDER=$cache/zydis-$version-gcc-$(gcc -dumpfullversion)
    [ ! -e "$ZYDIS_FOLDER/libZydis.a" ] || return 0
    if ! zydis_source "$version" "$folder" >"$log" 2>&1; then
        ZYDIS_NOT_FETCHED=1
        tail -n 20 -- "$log" >&2
        say_error "package: Debian's source of zydis $version cannot be had; the log is above"
        return "$STATUS_SETUP"
    fi
    if ! zydis_compile "$folder" >"$log" 2>&1; then
        tail -n 20 -- "$log" >&2
        say_error "package: the source of zydis $version could not be built; the log is above"
        return "$STATUS_SETUP"
    fi
    # If another call was faster, use its library, which has the same bytes.
    mv -T -- "$folder/library" "$ZYDIS_FOLDER" 2>/dev/null || [ -e "$ZYDIS_FOLDER/libZydis.a" ]
}

# zydis_source VERSION FOLDER: fetches the source through apt from the machine's archives. Uses its
# own package lists, so those of the machine do not change.
zydis_source() {
    local options=(-o "Dir::Etc::sourcelist=$2/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$2/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o APT::Sandbox::User=)
    mkdir -p "$2/lists/partial" "$2/library" || return
    # shellcheck disable=SC2016  # names of apt
    apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$2/sources.list" || return
    apt-get "${options[@]}" update || return
    (cd -- "$2" && apt-get "${options[@]}" source --download-only "zydis=$1") || return
    dpkg-source --no-check -x "$2"/zydis_*.dsc "$2/source"
}

# zydis_compile FOLDER: makes FOLDER/library/libZydis.a, whose bytes do not depend on FOLDER.
zydis_compile() {
    (
        export LC_ALL=C
        cd -- "$1/source" || exit
        for file in src/*.c; do
            gcc -O2 -g1 -ffile-prefix-map="$PWD"=zydis -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD \
                -Iinclude -Isrc -c "$file" -o "../library/$(basename -- "$file" .c).o" || exit
        done
        cd ../library && ar rcsD libZydis.a ./*.o && rm -- ./*.o
    )
}

# build_static OPTION...: builds $BAZEL_BIN/conformance/kmes-conformance-static.
build_static() {
    setup_section package && make_scratch && zydis_library || return
    BUILD_NEEDS=suite build_targets "the static executable" --config=static \
        --linkopt="-L$ZYDIS_FOLDER" --embed_label="$(commit_of_tree)" "$@" "$STATIC_TARGET"
}

package_command() {
    local options=(--config=release) folder=''
    while [ $# -gt 0 ]; do
        case "$1" in
            --quick) options=() ;;
            --help | -h) package_usage && return ;;
            -*) bad_usage "package: unknown option '$1'; expected --quick" || return ;;
            *)
                if [ -n "$folder" ]; then
                    bad_usage "package: takes one folder, not '$folder' and '$1'" || return
                fi
                folder=$1
                ;;
        esac
        shift
    done
    folder=${folder:-$KMES_ROOT/dist}
    if ! mkdir -p -- "$folder" 2>/dev/null || [ ! -w "$folder" ]; then
        bad_usage "package: '$folder' is no folder that can be written" || return
    fi
    # Two calls for one tree, or into one folder, would write the same files. Each call locks both
    # folders, without lock files. If both are one folder, it is locked once: a second descriptor
    # could not lock it again.
    local second=9
    [ ! "$folder" -ef "$KMES_ROOT" ] || second=8
    {
        if ! flock -n 8 || ! flock -n "$second"; then
            printf 'tools/kmes: package: waiting for another package command\n' >&2
            flock 8 && flock "$second" || return "$STATUS_SETUP"
        fi
        make_packages "$folder" ${options[@]+"${options[@]}"}
    } 8<"$KMES_ROOT" 9<"$folder"
}

# make_packages FOLDER OPTION...: builds the executable and the packages into FOLDER, and prints
# their checksums.
make_packages() {
    local folder=$1
    shift
    local options=("$@")
    build_static ${options[@]+"${options[@]}"} || return
    if ! "$KMES_ROOT/tools/package/make_deb.sh" "$KMES_ROOT" \
        "$BAZEL_BIN/conformance/kmes-conformance-static" "$folder"; then
        say_error "package: the Debian package could not be made; the message is above"
        return "$STATUS_SETUP"
    fi
    # shellcheck disable=SC2086  # labels have no spaces
    build_targets "the library" ${options[@]+"${options[@]}"} $LIBRARY_TARGETS || return
    if ! "$KMES_ROOT/tools/package/make_library_debs.sh" "$KMES_ROOT" "$BAZEL_BIN" \
        "$folder"; then
        say_error "package: the packages of the library could not be made; the message is above"
        return "$STATUS_SETUP"
    fi
    # The folder may also have packages of older versions.
    (cd -- "$folder" && sha256sum -- kmes-conformance ./*_"$(cat -- "$KMES_ROOT/VERSION")"_*.deb)
}

package_usage() {
    cat <<'TEXT'
usage: tools/kmes package [--quick] [FOLDER]

Builds the suite as one static executable for x86-64 Linux, and the Debian packages of the suite,
the library, the tools and the module, and prints their SHA-256. Nothing in them depends on the
folder of the tree or on the time. CONTRIBUTING.md says how to compare two builds of a commit.

  FOLDER     where they go (default: dist, at the top of the tree):
               kmes-conformance                                the executable
               kmes-conformance_VERSION_amd64.deb              with documents and examples
               kmes-conformance-dbgsym_VERSION_amd64.deb       its symbols, for gdb
               libkmes0_VERSION_amd64.deb                      the library (docs/library.md)
               libkmes-dev_VERSION_amd64.deb                   its headers and manual
               python3-kmes_VERSION_all.deb                    the library for Python
               librust-kmes-dev_VERSION_all.deb                the crate for Rust
               kmes-tools_VERSION_amd64.deb                    kmesctl
               kmes-dkms_VERSION_all.deb                       the source of the kernel module
  --quick    link what a default build has compiled, without more optimisation
TEXT
}
