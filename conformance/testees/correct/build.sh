#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build.sh PROGRAM TOOLCHAIN SOURCE COMPILER FLAGS...: builds a correct consumer and writes the
# compiler's version to the file TOOLCHAIN. If the compiler is missing, or the machine does not
# support the flags, TOOLCHAIN has the line "none" and the program exits with status 77.
set -eu

program=$1
toolchain=$2
source=$3
compiler=$4
shift 4

if ! command -v "$compiler" >/dev/null 2>&1; then
    echo none >"$toolchain"
    printf '#!/bin/sh\necho "not built: there was no %s" >&2\nexit 77\n' "$compiler" >"$program"
    chmod +x "$program"
    exit 0
fi

case $compiler in
go)
    # Everything that it writes goes beside the program; nothing comes from a network.
    GOPATH=$(mktemp -d)
    export GOPATH GOCACHE="$GOPATH/cache" CGO_ENABLED=0 GOPROXY=off GOTOOLCHAIN=local
    go version >"$toolchain"
    go build "$@" -o "$program" "$source"
    chmod -R u+w "$GOPATH"
    rm -rf "$GOPATH"
    ;;
rustc)
    rustc --version >"$toolchain"
    rustc "$@" -o "$program" "$source"
    ;;
*)
    "$compiler" --version >"$toolchain.all"
    head -n 1 "$toolchain.all" >"$toolchain"
    rm "$toolchain.all"
    "$compiler" "$@" -o "$program" "$source" -lpthread
    ;;
esac
