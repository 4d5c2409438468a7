#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The Debian packages in a fresh Debian root, as a new user has them: apt installs them with what
# they depend on, a program of the manual is built there by pkg-config, kmesctl serves, and the
# suite says its version. Needs root, debootstrap and a mirror; CI has library_debs_test.sh instead.
#
#   bare_root_test.sh FOLDER [MIRROR]
#
# FOLDER   has the packages (tools/kmes package), of one version
# MIRROR   where apt of this machine gets bookworm from, when none is named
set -uo pipefail

readonly SUITE=bookworm
readonly PACKAGES=(libkmes0 libkmes-dev python3-kmes librust-kmes-dev kmes-tools kmes-dkms
    kmes-conformance)
HERE=$(readlink -f -- "$(dirname -- "${BASH_SOURCE[0]}")")
readonly HERE
failures=0

step() {
    local name=$1
    shift
    if "$@" >"$WORK/log" 2>&1; then
        printf 'PASS %s\n' "$name"
    else
        printf 'FAIL %s\n' "$name"
        tail -n 20 "$WORK/log"
        failures=$((failures + 1))
    fi
}

mirror_of_machine() {
    # shellcheck disable=SC2016  # names of apt
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk -v suite="$SUITE" '$1 == suite { print $2; exit }'
}

# in_root COMMAND...: in separate namespaces, with which mounts and processes end.
in_root() {
    # shellcheck disable=SC2016  # the inner shell expands them
    unshare --mount --pid --fork --kill-child bash -c '
        root=$1
        shift
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
            exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
                DEBIAN_FRONTEND=noninteractive "$@"' - "$ROOT" "$@"
}

# If the machine has a proxy, a file passes it on to apt.
install_packages() {
    cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
    apt-config dump | grep -i '^Acquire::https\?::.*proxy' >"$ROOT/etc/apt/apt.conf.d/90proxy"
    mkdir "$ROOT/packages" && cp "$FOLDER"/*.deb "$ROOT/packages/" || return
    in_root sh -c 'apt-get update && apt-get install -y --no-install-recommends \
        /packages/libkmes0_*.deb /packages/libkmes-dev_*.deb \
        /packages/python3-kmes_*.deb /packages/librust-kmes-dev_*.deb \
        /packages/kmes-tools_*.deb gcc pkg-config libc6-dev cargo babeltrace2'
}

install_suite() {
    in_root sh -c 'apt-get install -y --no-install-recommends /packages/kmes-conformance_*.deb &&
        kmes-conformance --version'
}

install_module() {
    in_root sh -c 'apt-get install -y --no-install-recommends /packages/kmes-dkms_*.deb &&
        dkms status | grep "^kmes/" && apt-get purge -y kmes-dkms && ! dkms status | grep kmes'
}

use() {
    # shellcheck disable=SC2016  # the inner shell expands them
    in_root sh -c '
        set -e
        cd /tmp
        for page in kmes_emit kmes_event; do
            zcat /usr/share/man/man3/$page.3.gz | sed "s/\\\\-/-/g; s/\\\\e/\\\\/g" |
                awk "/^.EE/ { on = 0 } on; /^.EX/ { on = 1 }" >$page.c
            gcc -o $page $page.c $(pkg-config --cflags --libs kmes)
        done
        export KMES_SOCKET=@kmes-bare-root
        kmesctl serve --cpus 1 & server=$!
        # If the server has ended, so does this shell: kill fails.
        until ./kmes_emit; do kill -0 $server; sleep 0.2; done
        ./kmes_event | grep "door.opened, 3 bytes"
        python3 -c "import kmes; print(next(iter(kmes.ReaderSet())).type)" | grep door.opened
        kill $server
        wait $server'
}

# A consumer in each language, a printer and a recorder, all at once. The emitter, the recorder and
# the producer are killed. Each consumer has every event of both producers, and the recorder has
# those of the first one.
kill_everything() {
    cp "$HERE/bare_root_consumers.sh" "$ROOT/consumers.sh" && in_root bash /consumers.sh
}

remove_packages() {
    in_root sh -c 'apt-get purge -y libkmes0 libkmes-dev python3-kmes librust-kmes-dev kmes-tools &&
        ! find /usr /etc -name "*kmes*" | grep .'
}

# one_of_each FOLDER: has it each package once? Of several versions, the first by name would be
# tested, which need not be the newest.
one_of_each() {
    local name found
    for name in "${PACKAGES[@]}"; do
        found=("$1/$name"_*.deb)
        if [ ! -e "${found[0]}" ]; then
            echo "bare_root_test.sh: '$1' has no ${name}_*.deb" >&2
            return 1
        elif [ "${#found[@]}" -gt 1 ]; then
            echo "bare_root_test.sh: '$1' has more than one ${name}_*.deb; leave only one" >&2
            return 1
        fi
    done
}

main() {
    if [ $# -lt 1 ] || [ $# -gt 2 ]; then
        echo 'usage: bare_root_test.sh FOLDER [MIRROR], FOLDER with the packages' >&2
        exit 2
    fi
    one_of_each "$1" || exit 2
    if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
        echo 'bare_root_test.sh: needs root, and the package debootstrap' >&2
        exit 2
    fi
    FOLDER=$(readlink -f -- "$1")
    WORK=$(mktemp -d)
    trap 'rm -rf --one-file-system -- "$WORK"' EXIT
    ROOT=$WORK/root
    step bootstrap debootstrap --variant=minbase "$SUITE" "$ROOT" "${2-$(mirror_of_machine)}"
    step install install_packages
    step use use
    step kill kill_everything
    step module install_module
    step remove remove_packages
    step suite install_suite
    printf '%s failures\n' "$failures"
    [ "$failures" -eq 0 ]
}

main "$@"
