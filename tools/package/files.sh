# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The files that are installed, and their places, for `tools/kmes install` and for the Debian
# packages. Each put_* function copies one part into a folder that is the root of the file system.
#
#   TREE       the top of the tree
#   BUILT      where Bazel has built (bazel-bin)
#   ROOT       the folder
#   PREFIX     /usr and the like
#   LIBRARIES  relative to PREFIX: lib, lib/x86_64-linux-gnu
#   VERSION    the release
#   RELEASE_DATE  of its manual

readonly API=kmes/user/libkmes_api.txt
readonly MANUAL=kmes/user/man
readonly SHARED_LIBRARY=kmes/user/libkmes.so.0
readonly STATIC_LIBRARY=kmes/user/static/libkmes.a
readonly KMESCTL=kmesctl/kmesctl

# Prints the date of the newest section of CHANGELOG.md, which is the date of everything.
release_date() {
    local day
    day=$(sed -n 's/^## \([0-9]\{4\}-[0-9][0-9]-[0-9][0-9]\)$/\1/p' "$TREE/CHANGELOG.md" |
        head -n 1)
    if [ -z "$day" ]; then
        echo "CHANGELOG.md has no section '## YEAR-MONTH-DAY'" >&2
        return 1
    fi
    printf '%s\n' "$day"
}

# fill TEMPLATE FILE: writes the template with its placeholders replaced.
fill() {
    local text include
    text=$(cat -- "$1") || return
    # From LIBRARIES/cmake/kmes.
    include=$(realpath -m --relative-to="$PREFIX/$LIBRARIES/cmake/kmes" "$PREFIX/include") || return
    text=${text//@PREFIX@/"$PREFIX"}
    text=${text//@LIBRARIES@/"$LIBRARIES"}
    text=${text//@INCLUDE_FROM_HERE@/"$include"}
    text=${text//@DATE@/"${RELEASE_DATE-}"}
    mkdir -p -- "${2%/*}" && printf '%s\n' "${text//@VERSION@/"$VERSION"}" >"$2"
}

put_shared_library() {
    local folder=$ROOT$PREFIX/$LIBRARIES
    mkdir -p -- "$folder" &&
        strip --strip-unneeded --remove-section=.comment -o "$folder/libkmes.so.$VERSION" \
            "$BUILT/$SHARED_LIBRARY" &&
        chmod 644 "$folder/libkmes.so.$VERSION" &&
        ln -sf "libkmes.so.$VERSION" "$folder/libkmes.so.0"
}

# The files that building a program needs: headers, static library, pkg-config, CMake, manual.
put_development() {
    local folder=$ROOT$PREFIX/$LIBRARIES templates=$TREE/tools/package/library header
    sed -n 's/^header //p' "$TREE/$API" | while IFS= read -r header; do
        install -D -m 644 "$TREE/$header" "$ROOT$PREFIX/include/$header" || exit
    done && install -D -m 644 "$TREE/bindings/cpp/kmes.hpp" "$ROOT$PREFIX/include/kmes/kmes.hpp" &&
        mkdir -p -- "$folder" &&
        strip --strip-debug --enable-deterministic-archives -o "$folder/libkmes.a" \
            "$BUILT/$STATIC_LIBRARY" &&
        chmod 644 "$folder/libkmes.a" &&
        ln -sf libkmes.so.0 "$folder/libkmes.so" &&
        fill "$templates/kmes.pc.in" "$folder/pkgconfig/kmes.pc" &&
        fill "$templates/kmesConfig.cmake.in" "$folder/cmake/kmes/kmesConfig.cmake" &&
        fill "$templates/kmesConfigVersion.cmake.in" "$folder/cmake/kmes/kmesConfigVersion.cmake" &&
        put_manual
}

# put_python FOLDER: the package kmes, importable from FOLDER.
put_python() {
    local file
    for file in "$TREE"/bindings/python/kmes/*.py "$TREE/bindings/python/kmes/py.typed"; do
        install -D -m 644 "$file" "$ROOT$1/kmes/${file##*/}" || return
    done
}

# put_rust: the source of the crate kmes, as Debian has the crates that cargo builds with.
put_rust() {
    local folder=$ROOT$PREFIX/share/cargo/registry/kmes-$VERSION.0 file
    (cd "$TREE/bindings/rust" && find -L Cargo.toml README.md src examples -type f | sort) |
        while IFS= read -r file; do
            install -D -m 644 "$TREE/bindings/rust/$file" "$folder/$file" || exit
        done && printf '{"package":null,"files":{}}\n' >"$folder/.cargo-checksum.json"
}

# A page for each group of functions, and a link to it for each other function.
put_manual() {
    local folder=$ROOT$PREFIX/share/man/man3 page name
    for page in "$TREE/$MANUAL"/*.3; do
        fill "$page" "$folder/${page##*/}" || return
    done
    awk '/^    / && $3 != "-" && $1 != $3 { print $1, $3 }' "$TREE/$API" |
        while read -r name page; do
            ln -sf "$page.3" "$folder/$name.3" || exit
        done
}

# put_program PATH: an executable that Bazel has built.
put_program() {
    local folder=$ROOT$PREFIX/bin
    mkdir -p -- "$folder" &&
        strip --strip-all --remove-section=.comment -o "$folder/${1##*/}" "$BUILT/$1" &&
        chmod 755 "$folder/${1##*/}"
}

# kmesctl, with its manual, completion and service, if the tree has them.
put_kmesctl() {
    local file
    put_program "$KMESCTL" || return
    for file in "$TREE"/kmesctl/*.1 "$TREE"/kmesctl/kmesctl.bash \
        "$TREE"/kmesctl/systemd/kmes-producer.*; do
        case "$file" in
            *'*'*) ;;
            *.1) fill "$file" "$ROOT$PREFIX/share/man/man1/${file##*/}" || return ;;
            *.bash)
                [ ! -e "$file" ] || install -D -m 644 "$file" \
                    "$ROOT$PREFIX/share/bash-completion/completions/kmesctl" || return
                ;;
            # A unit names its program by an absolute path.
            *) install_unit "$file" "$ROOT$PREFIX/lib/systemd/system/${file##*/}" || return ;;
        esac
    done
}

install_unit() {
    mkdir -p -- "${2%/*}" && sed "s|/usr/bin/|$PREFIX/bin/|g" "$1" >"$2"
}
