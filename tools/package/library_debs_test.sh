#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The Debian packages of the library, its bindings, kmesctl and the module: two makes give the same
# bytes, they install and go without a trace. In a root with these packages and the libraries that
# they depend on, kmesctl serves, a program of the manual emits, and another one prints the event.
set -uo pipefail

readonly WORK=$TEST_TMPDIR/work
readonly ROOT=$WORK/root
readonly LIBRARIES=$ROOT/usr/lib/x86_64-linux-gnu
readonly SOCKET=@kmes-packages-$$-$SRANDOM
VERSION=$(cat VERSION)
readonly VERSION
readonly PACKAGES=(libkmes0 libkmes-dev python3-kmes librust-kmes-dev kmes-tools)
readonly DKMS=$WORK/one/kmes-dkms_${VERSION}_all.deb
# The time limit of a step in seconds, for a busy machine.
LIMIT=$(awk "BEGIN { print 30 * ${KMES_TIMEOUT_SCALE:-1} }")
readonly LIMIT
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

deb_of() { echo "$WORK/one/${1}_${VERSION}"_*.deb; }

test_reproducible() {
    local file
    tools/package/make_library_debs.sh . "$PWD" "$WORK/one" || fail "the packages are not made"
    (umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 TMPDIR=$WORK \
        tools/package/make_library_debs.sh "$PWD" . "$WORK/two") || fail "they are not made again"
    for file in "$WORK"/one/*.deb; do
        cmp "$file" "$WORK/two/${file##*/}" || fail "two makes of ${file##*/} differ"
    done
    [ "$(find "$WORK/one" -name '*.deb' | wc -l)" -eq 6 ] || fail "not six packages"
}

# dpkg needs ldconfig and start-stop-daemon on its path. The dependencies of the packages are not
# here.
in_root() {
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$ROOT" --log=/dev/null --force-depends "$@" \
        >"$WORK/dpkg.log" 2>&1
}

# copy_needed PROGRAM...: the libraries of the programs, where the loader looks for them.
copy_needed() {
    local library
    for library in $(LD_LIBRARY_PATH=$LIBRARIES ldd "$@" | grep -oE '/[^ ]+' |
        grep -vE "^$WORK|:\$" | sort -u); do
        mkdir -p "$ROOT${library%/*}" && cp -L "$library" "$ROOT$library"
    done
}

# An empty root, with a shell for the scripts of packages.
make_root() {
    mkdir -p "$ROOT"/var/lib/dpkg/{info,updates} "$ROOT/bin"
    : >"$ROOT/var/lib/dpkg/status"
    cp -L /bin/sh "$ROOT/bin/sh"
    copy_needed /bin/sh
}

test_install() {
    local package
    make_root
    for package in "${PACKAGES[@]}"; do
        # dpkg gives files to root, which only root can do.
        if [ "$(id -u)" -eq 0 ]; then
            in_root -i "$(deb_of "$package")" || fail "dpkg -i: $(cat "$WORK/dpkg.log")"
        else
            dpkg-deb -x "$(deb_of "$package")" "$ROOT" || fail "dpkg-deb -x"
        fi
    done
    [ -z "$(find -L "$ROOT/usr" -type l)" ] || fail "links to nowhere: $(find -L "$ROOT" -type l)"
}

# Each library that a file needs is in the package itself, or in one of Depends.
test_depends() {
    local depends
    depends=$(dpkg-deb -f "$(deb_of libkmes0)" Depends)
    [[ $depends =~ ^libc6\ \(\>=\ 2\.[0-9]+\)$ ]] || fail "libkmes0 depends on $depends"
    depends=$(dpkg-deb -f "$(deb_of kmes-tools)" Depends)
    [[ $depends == *libc6* && $depends == *libstdc++6* ]] || fail "kmes-tools depends on $depends"
    dpkg-deb --ctrl-tarfile "$(deb_of libkmes0)" | tar -xO ./symbols >"$WORK/symbols"
    awk '/^    / && $2 != "-" { print " " $1 "@" $2 " " substr($2, 6) }' kmes/user/libkmes_api.txt |
        sort | diff - <(grep '^ kmes_' "$WORK/symbols" | sort) || fail "symbols: another table"
}

# provides PACKAGE DOCUMENT: the package has the document.
provides() {
    [ -s "$WORK/parts/$1/usr/share/doc/$1/$2" ] ||
        { [ "$1" = kmes-conformance ] && has_document "$1" "${2%.md}"; }
}

# related PACKAGE: the package, and those that it depends on or suggests.
related() {
    echo "$1"
    dpkg-deb -f "$(deb_of "$1")" Depends Suggests | sed 's/^[A-Za-z]*: *//' | tr ',' '\n' |
        grep -oE 'kmes-(tools|conformance|dkms)|libkmes0|libkmes-dev|python3-kmes'
}

# If a file of a package names a document, that document is in the same package, in one named there,
# or in one that it depends on or suggests.
test_documents() {
    local package folder name other
    for package in "${PACKAGES[@]}" kmes-dkms; do
        folder=$WORK/parts/$package
        mkdir -p "$folder" && dpkg-deb -x "$(deb_of "$package")" "$folder" || fail "dpkg-deb -x"
        gzip -dr "$folder/usr/share/doc"
    done
    for package in "${PACKAGES[@]}" kmes-dkms; do
        folder=$WORK/parts/$package
        grep -q 'CHANGELOG\.md' "$folder/usr/share/doc/$package/changelog" &&
            { provides "$package" CHANGELOG.md || fail "$package has no CHANGELOG.md"; }
        for name in $(grep -rhoE 'docs/[a-z0-9/-]+\.md' "$folder" | sort -u); do
            for other in $(related "$package"); do
                ! provides "$other" "${name#docs/}" || continue 2
            done
            fail "$package names $name: $(grep -rl "$name" "$folder")"
        done
        # shellcheck disable=SC2016  # backquotes of the documents
        while read -r name _ other; do
            provides "${other:-$package}" "$name" || fail "$package names $name ${other:+of $other}"
        done < <(grep -hoE '`[a-z-]+\.md`( of (kmes|lib|python)[a-z0-9-]*| of the| there)?' \
            "$folder/usr/share/doc/$package"/*.md | tr -d '`' | grep -vE ' (there|the)$' | sort -u)
    done
}

# The source of the module has what DKMS builds; its scripts never run here.
test_module() {
    local source=$WORK/module/usr/src/kmes-$VERSION script
    dpkg-deb -R "$DKMS" "$WORK/module" || fail "kmes-dkms is not unpacked"
    grep -qxF "PACKAGE_VERSION=\"$VERSION\"" "$source/dkms.conf" || fail "dkms.conf: no version"
    for file in kmes/producer.c kmod/main.c kmod/Kbuild kmod/uapi/linux/kmes.h; do
        [ -s "$source/$file" ] || fail "kmes-dkms has no $file"
    done
    for script in postinst prerm; do
        sh -n "$WORK/module/DEBIAN/$script" || fail "$script"
        grep -qF "kmes $VERSION" "$WORK/module/DEBIAN/$script" ||
            grep -qF -- "-v $VERSION" "$WORK/module/DEBIAN/$script" || fail "$script: no version"
    done
}

# example PAGE: the program of that page, built from the packages.
example() {
    zcat "$ROOT/usr/share/man/man3/$1.3.gz" | sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g" |
        awk '$0 == ".EE" { on = 0 } on; $0 == ".EX" { on = 1 }' >"$WORK/$1.c"
    gcc -std=c11 -Wall -Werror -I"$ROOT/usr/include" -o "$ROOT/$1" "$WORK/$1.c" \
        -L"$LIBRARIES" -lkmes || fail "the example of $1"
}

# block FILE LANGUAGE NUMBER: a program in a document.
block() {
    awk -v first='```'"$2" -v number="$3" '
        $0 == "```" { on = 0 }
        on
        $0 == first { on = ++count == number }' "$1"
}

# The bindings as they are installed: the header compiles without the tree, and Python finds the
# module and the library.
test_bindings() {
    local module=$ROOT/usr/lib/python3/dist-packages number
    printf '#include <kmes/kmes.hpp>\nint main() { kmes::reader_set set; }\n' >"$WORK/set.cc"
    (cd "$WORK" && g++ -std=c++20 -Wall -Werror -I"$ROOT/usr/include" -o "$WORK/set" set.cc \
        -L"$LIBRARIES" -lkmes) || fail "a program with kmes.hpp"
    for number in 1 2; do
        block "$ROOT/usr/share/doc/libkmes-dev/README-cpp.md" cpp "$number" >"$WORK/block.cc"
        g++ -std=c++20 -Wall -Werror -fsyntax-only -I"$ROOT/usr/include" "$WORK/block.cc" ||
            fail "program $number of README-cpp.md"
    done
    command -v python3 >/dev/null || { echo 'SKIPPED: no python3' && return; }
    (cd / && KMES_SOCKET=@kmes-nobody PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$module \
        LD_LIBRARY_PATH=$LIBRARIES python3 -c 'import kmes; kmes.emit("t", b"")') \
        2>"$WORK/python.log" && fail "an event without a producer"
    for number in 1 2; do
        block "$ROOT/usr/share/doc/python3-kmes/README.md" python "$number" >"$WORK/block.py"
        [ -s "$WORK/block.py" ] &&
            python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$WORK/block.py" ||
            fail "program $number of the README for Python"
    done
    grep -qE '^OSError: .*38' "$WORK/python.log" || fail "python: $(cat "$WORK/python.log")"
}


# The first program of the crate's page, with the source that the package has.
test_rust() {
    local crate=$ROOT/usr/share/cargo/registry/kmes-$VERSION.0
    local rustc=(rustc --edition 2021 --out-dir "$WORK" -L "$WORK" -L "$LIBRARIES")
    command -v rustc >/dev/null || { echo 'SKIPPED: no rustc' && return; }
    grep -qxF "version = \"$VERSION.0\"" "$crate/Cargo.toml" || fail "Cargo.toml: no version"
    [ -s "$crate/.cargo-checksum.json" ] || fail "cargo takes no folder without its checksums"
    block "$crate/README.md" rust 1 >"$WORK/first.rs"
    block "$crate/README.md" rust,no_run 1 >"$WORK/ended.rs"
    block "$crate/README.md" rust,no_run 2 >"$WORK/loop.rs"
    block "$crate/README.md" rust,no_run 3 >"$WORK/merging.rs"
    block "$crate/README.md" rust,no_run 4 >"$WORK/emitting.rs"
    block "$crate/README.md" rust,no_run 5 >"$WORK/resumed.rs"
    "${rustc[@]}" --crate-name kmes --crate-type rlib --cfg 'feature="std"' \
        --cfg 'feature="libkmes"' "$crate/src/lib.rs" &&
        "${rustc[@]}" --extern kmes "$WORK/first.rs" &&
        "${rustc[@]}" --extern kmes "$WORK/ended.rs" &&
        "${rustc[@]}" --extern kmes "$WORK/loop.rs" &&
        "${rustc[@]}" --extern kmes "$WORK/merging.rs" &&
        "${rustc[@]}" --extern kmes "$WORK/emitting.rs" &&
        "${rustc[@]}" --extern kmes --crate-type lib "$WORK/resumed.rs" ||
        fail "a program with the crate"
    KMES_SOCKET=@kmes-nobody LD_LIBRARY_PATH=$LIBRARIES "$WORK/first" 2>"$WORK/rust.log" &&
        fail "events without a producer"
    grep -qF 'Os(38)' "$WORK/rust.log" || fail "rust: $(cat "$WORK/rust.log")"
}

# The words before a command that run it in the root, in a mount namespace of its own; the process
# becomes the command.
# shellcheck disable=SC2016  # the inner shell expands them
readonly BARE=(env PATH=/usr/sbin:/usr/bin:/sbin:/bin KMES_SOCKET="$SOCKET"
    LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
    unshare --map-root-user --mount bash -c '
        root=$1
        shift
        mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
            exec chroot "$root" "$@"' - "$ROOT")

# until_true COMMAND...
until_true() {
    local end=$((SECONDS + ${LIMIT%.*}))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || { fail "timed out: $*"; return 1; }
        sleep 0.1
    done
}

has_lines() { [ "$(grep -cxF "$2" "$1")" -eq "$3" ]; }
is_recorded() {
    local events
    events=$("${BARE[@]}" /usr/bin/kmesctl convert --to json /events 2>/dev/null)
    [ "$(grep -c door.opened <<<"$events")" -eq "$1" ]
}
is_stopped() { grep -q '^State:.*T' "/proc/$1/status"; }

# With a server and one event: a stop of the loop loses nothing, a signal ends it, and a killed
# recorder leaves what it has written.
test_loop_and_recorder() {
    local loop recorder
    "${BARE[@]}" /kmes_reader_set_fd >"$WORK/loop.log" &
    loop=$!
    "${BARE[@]}" /usr/bin/kmesctl record -o /events --sync 1 2>"$WORK/record.log" &
    recorder=$!
    until_true has_lines "$WORK/loop.log" door.opened 1
    kill -STOP "$loop"
    until_true is_stopped "$loop"
    "${BARE[@]}" /kmes_emit || fail "the second event"
    kill -CONT "$loop"
    until_true has_lines "$WORK/loop.log" door.opened 2
    until_true is_recorded 2
    kill -TERM "$loop"
    wait "$loop" || fail "the loop, SIGTERM: status $?"
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null
    "${BARE[@]}" /usr/bin/kmesctl convert --to ctf -o /trace /events ||
        fail "the record of a killed recorder"
    command -v babeltrace2 >/dev/null || { echo 'SKIPPED: no babeltrace2' && return; }
    babeltrace2 "$ROOT/trace" >"$WORK/trace.log" 2>&1
    [ "$(grep -c door.opened "$WORK/trace.log")" -eq 2 ] || fail "trace: $(cat "$WORK/trace.log")"
}

test_use() {
    local server end=$((SECONDS + ${LIMIT%.*}))
    example kmes_emit
    example kmes_event
    example kmes_reader_set_fd
    copy_needed "$ROOT/usr/bin/kmesctl" "$ROOT/kmes_emit"
    mkdir -p "$ROOT"/{proc,dev,tmp}
    if ! unshare --map-root-user --mount true; then
        echo 'SKIPPED: no mount namespace'
        return
    fi
    "${BARE[@]}" /usr/bin/kmesctl serve --cpus 1 --capacity 64K >"$WORK/serve.log" 2>&1 &
    server=$!
    until "${BARE[@]}" /kmes_emit 2>"$WORK/emit.log"; do
        if ! kill -0 "$server" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then
            fail "nothing is emitted: $(cat "$WORK/emit.log" "$WORK/serve.log")"
            break
        fi
        sleep 0.1
    done
    "${BARE[@]}" /kmes_event >"$WORK/print.log" 2>&1
    grep -qxE 'CPU 0, event [0-9]+: door\.opened, 3 bytes' "$WORK/print.log" ||
        fail "the event is not printed: $(cat "$WORK/print.log")"
    test_loop_and_recorder
    kill "$server"
    wait "$server" || fail "kmesctl serve: status $?: $(cat "$WORK/serve.log")"
}

test_remove() {
    [ "$(id -u)" -eq 0 ] || return 0
    rm -rf "$ROOT"
    test_install
    in_root --purge "${PACKAGES[@]}" || fail "dpkg --purge: $(cat "$WORK/dpkg.log")"
    [ ! -e "$ROOT/usr" ] || fail "left behind: $(find "$ROOT/usr")"
}

test_lintian() {
    command -v lintian >/dev/null || { echo 'SKIPPED: no lintian' && return; }
    lintian "$WORK"/one/*.deb >"$WORK/lintian.log" 2>/dev/null
    [ ! -s "$WORK/lintian.log" ] || fail "lintian: $(cat "$WORK/lintian.log")"
}

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/documents.sh"
mkdir -p "$WORK"
test_reproducible
test_install
test_depends
test_documents
test_module
test_bindings
test_rust
test_use
test_remove
test_lintian
echo "$failures failures"
[ "$failures" -eq 0 ]
