#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build_or_say.sh rust|go SOURCE PROGRAM TOOLCHAIN [OPTION...]: compiles an example with these
# compiler options, and writes the compiler's version to the file TOOLCHAIN. Without a compiler,
# PROGRAM becomes a script that says so and exits with 77, and TOOLCHAIN has the line "none". An
# example that does not compile fails the build.
set -eu

language=$1
source=$2
program=$3
toolchain=$4
shift 4

without() {
    echo none >"$toolchain"
    {
        echo "#!/bin/sh"
        echo "echo 'this example was not built: there was no $1' >&2"
        echo "echo 'tools/kmes setup testees installs it; build again then' >&2"
        echo "exit 77"
    } >"$program"
    chmod +x "$program"
    exit 0
}

case $language in
rust)
    command -v rustc >/dev/null 2>&1 || without rustc
    rustc --version >"$toolchain"
    rustc --edition 2021 -O -D warnings "$@" -o "$program" "$source"
    ;;
go)
    command -v go >/dev/null 2>&1 || without go
    # The compiler writes everything beside the program, and uses no network.
    GOPATH=$(mktemp -d)
    export GOPATH GOCACHE="$GOPATH/cache" CGO_ENABLED=0 GOPROXY=off GOTOOLCHAIN=local
    go version >"$toolchain"
    go build "$@" -o "$program" "$source"
    chmod -R u+w "$GOPATH"
    rm -rf "$GOPATH"
    ;;
*)
    echo "build_or_say.sh: '$language' is neither rust nor go" >&2
    exit 2
    ;;
esac
