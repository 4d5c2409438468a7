#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rust_test.sh TOOLCHAIN UNIT_TESTS HELLO KMESCTL: the unit tests of the crate, and the program of
# the README with a producer in userspace. Without a compiler it says so and is left out.
set -u

if [ "$(cat "$1")" = none ]; then
    echo "SKIPPED: there is no rustc (tools/kmes setup testees)"
    exit 0
fi
"$2" || exit 1

# Short: the path of a socket has 107 bytes, and the sandbox's TMPDIR may have more.
folder=$(TMPDIR='' mktemp -d) || exit 1
"$4" serve --socket "$folder/socket" --cpus 1 >"$folder/said" 2>&1 &
producer=$!
trap 'kill "$producer"; wait "$producer"; rm -rf "$folder"' EXIT
until grep -q serves "$folder/said"; do
    kill -0 "$producer" || exit 1
    sleep 0.05
done

said=$(KMES_SOCKET="$folder/socket" LD_LIBRARY_PATH=kmes/user "$3") || exit 1
if [ -n "$said" ]; then
    echo "FAIL: hello reads \"$said\"; expected no event"
    exit 1
fi
if said=$(KMES_SOCKET="$folder/nobody" LD_LIBRARY_PATH=kmes/user "$3" 2>&1); then
    echo "FAIL: hello succeeds without a producer"
    exit 1
fi
case $said in
*"Os(38)"*) ;;
*)
    echo "FAIL: hello says \"$said\"; expected ENOSYS (38)"
    exit 1
    ;;
esac
