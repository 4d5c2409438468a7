#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The Debian package, made from the runner of this configuration. Two makes give the same bytes, it
# installs and uninstalls without a trace, and its content fits the runner. static_test.sh tests the
# static executable.
set -uo pipefail

readonly RUNNER=conformance/kmes-conformance
readonly WORK=$TEST_TMPDIR/work
readonly ROOT=$WORK/root
readonly INSTALLED=$ROOT/usr/share/doc/kmes-conformance
VERSION=$(cat VERSION)
readonly VERSION
readonly DEB=$WORK/one/kmes-conformance_${VERSION}_amd64.deb
# Python needs seconds to start on a busy machine.
SCALE=$(awk "BEGIN { print 20 * ${KMES_TIMEOUT_SCALE:-1} }")
readonly SCALE
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

# has TEXT PATTERN: TEXT has a matching line.
has() { grep -qE -- "$2" <<<"$1" || fail "no line like '$2' in: $1"; }

test_reproducible() {
    local file
    mkdir -p "$WORK"
    # Without line numbers, packing is fast.
    strip --strip-debug -o "$WORK/runner" "$RUNNER"
    tools/package/make_deb.sh . "$WORK/runner" "$WORK/one" || fail "the package is not made"
    touch "$WORK/runner"
    (umask 077 && TZ=Asia/Tokyo LANG=C.UTF-8 TMPDIR=$WORK \
        tools/package/make_deb.sh "$PWD" "$WORK/runner" "$WORK/two") || fail "it is not made again"
    for file in "kmes-conformance" "${DEB##*/}" "kmes-conformance-dbgsym_${VERSION}_amd64.deb"; do
        cmp "$WORK/one/$file" "$WORK/two/$file" || fail "two makes of $file differ"
    done
}

# Another run may put its executable into the folder while this one makes its package.
test_at_once() {
    local bin=$WORK/bin unpacked=$WORK/unpacked
    mkdir "$bin"
    cat >"$bin/install" <<'E2'
#!/usr/bin/env bash
"$INSTALL" "$@" && [ "${*: -1}" != "$FOLDER/kmes-conformance" ] || echo other >"${*: -1}"
E2
    chmod +x "$bin/install"
    # Any small program can be the runner here.
    INSTALL=$(command -v install) FOLDER=$WORK/at-once PATH=$bin:$PATH \
        tools/package/make_deb.sh . /bin/true "$WORK/at-once" || fail "the package is not made"
    [ "$(cat "$WORK/at-once/kmes-conformance")" = other ] || fail "there was no other run"
    dpkg-deb -x "$WORK/at-once/${DEB##*/}" "$unpacked" || fail "dpkg-deb -x"
    strip --strip-all --remove-section=.comment -o "$WORK/true" /bin/true
    cmp "$WORK/true" "$unpacked/usr/bin/kmes-conformance" || fail "the package has another's file"
}

# If the runner contained a path of the build machine, another machine would make a different file.
test_names_no_folder() {
    local folders
    folders=$(readelf --debug-dump=info --dwarf-depth=1 "$RUNNER" |
        sed -n 's/.*DW_AT_comp_dir.*: //p' | sort -u)
    [ "$folders" = /proc/self/cwd ] || fail "the runner has the folders of its build: $folders"
}

# dpkg needs ldconfig and start-stop-daemon on its path.
in_root() {
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$ROOT" --log=/dev/null "$@" >"$WORK/dpkg.log" 2>&1
}

test_install() {
    mkdir -p "$ROOT"/var/lib/dpkg/{info,updates}
    : >"$ROOT/var/lib/dpkg/status"
    # dpkg gives files to root, which only root can do.
    if [ "$(id -u)" -eq 0 ]; then
        in_root -i "$DEB" || fail "dpkg -i: $(cat "$WORK/dpkg.log")"
        has "$(dpkg --root="$ROOT" -s kmes-conformance)" '^Status: install ok installed$'
        (cd "$ROOT" && md5sum --quiet -c var/lib/dpkg/info/kmes-conformance.md5sums) ||
            fail "another file is installed than was packed"
    else
        dpkg-deb -x "$DEB" "$ROOT" || fail "dpkg-deb -x"
    fi
    cmp "$WORK/one/kmes-conformance" "$ROOT/usr/bin/kmes-conformance" || fail "another executable"
    has "$("$ROOT/usr/bin/kmes-conformance" --version)" "^kmes-conformance $VERSION, "
}

test_remove() {
    [ "$(id -u)" -eq 0 ] || return 0
    in_root --purge kmes-conformance || fail "dpkg --purge: $(cat "$WORK/dpkg.log")"
    [ ! -e "$ROOT/usr" ] || fail "left behind: $(find "$ROOT/usr")"
}

# The options in the first column of a --help on standard input: "-v", "--filter".
options() { sed -n 's/^  \(-[^ ]*\).*$/\1/p' | tr ',' '\n' | sort -u; }

test_man_page() {
    local page=$WORK/page command commands option
    zcat "$ROOT/usr/share/man/man1/kmes-conformance.1.gz" >"$page"
    commands=$("$RUNNER" --help | sed -n 's/^Commands, as the first word: \(.*\) (.*/\1/p')
    [ -n "$commands" ] || fail "--help names no commands"
    for command in '' ${commands//,/ }; do
        # The part of the page that belongs to the command.
        awk -v command="$command" '
            /^\.S[HS] / { on = command == "" ? $0 == ".SH OPTIONS" : $0 == ".SS " command }
            on' "$page" >"$WORK/part"
        # shellcheck disable=SC2086  # no command is no word
        for option in $("$RUNNER" $command --help | options); do
            grep -qE -- "^\\.B (.*, )?${option//-/\\\\-}( |\$|,)" "$WORK/part" ||
                fail "the page has no $option ${command:+of $command}"
        done
        [ -s "$WORK/part" ] || fail "the page has no ${command:-OPTIONS}"
    done
    if grep -q '@[A-Z]*@' "$page"; then fail "a place in the template was not filled"; fi
    command -v groff >/dev/null || return 0
    groff -man -Tascii -ww -z "$page" >"$WORK/groff.log" 2>&1
    [ ! -s "$WORK/groff.log" ] || fail "groff: $(cat "$WORK/groff.log")"
}

# completes WORDS... -- EXPECTED...: all of these are offered for the last word.
completes() {
    local COMP_WORDS=() COMP_CWORD COMPREPLY=() offered expected
    while [ "$1" != : ]; do COMP_WORDS+=("$1") && shift; done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _kmes_conformance "$ROOT/usr/bin/kmes-conformance"
    offered=" ${COMPREPLY[*]} "
    for expected in "$@"; do
        [[ $offered == *" $expected "* ]] || fail "${COMP_WORDS[*]}: $expected is not in:$offered"
    done
    COMPLETED=$offered
}

test_completion() {
    local word
    # shellcheck source=/dev/null
    source "$ROOT/usr/share/bash-completion/completions/kmes-conformance"
    completes kmes-conformance '' : smoke replay judge shrink clauses selftest merge verify
    for word in $("$RUNNER" --help | options); do
        completes kmes-conformance -"${word:1:1}" : "$word"
    done
    completes kmes-conformance --report '' : console json
    completes kmes-conformance --report = j : json
    completes kmes-conformance --explore '' : off quick deep
    [[ $COMPLETED != *SECONDS* ]] || fail "SECONDS is no word"
    completes kmes-conformance --explain E2/ev : E2/event-at-every-step
    completes kmes-conformance --filter = 5.1.5/a : 5.1.5/attach-and-map
    completes kmes-conformance shrink --r : --runs
    [[ $COMPLETED != *--report* ]] || fail "shrink takes no --report"
    completes kmes-conformance judge "$WORK/ru" : "$WORK/runner"
    completes kmes-conformance --save "$WORK/on" : "$WORK/one"
    completes kmes-conformance --cpus '' :
    [ "$COMPLETED" = '  ' ] || fail "--cpus: a number is not known, but offered:$COMPLETED"
    completes kmes-conformance --list -- "$WORK/ru" : "$WORK/runner"
}

# The documents for users name the command of the package, and only existing documents.
test_documents() {
    local document name
    for document in "$INSTALLED"/*.md; do
        [ "${document##*/}" != CHANGELOG.md ] || continue
        if grep -n 'tools/kmes conformance' "$document"; then
            fail "${document##*/} has a command of the tree"
        fi
        # Those of other packages: library_debs_test.
        # shellcheck disable=SC2016  # backquotes of the documents
        for name in $(sed -E 's/`[A-Za-z-]+\.md`( of |[^`]* there)//g' "$document" |
            grep -oE '`[a-z-]+\.md`' | tr -d '`'); do
            [ -e "$INSTALLED/$name" ] || fail "${document##*/} names $name, which is not there"
        done
    done
    for name in copyright changelog.gz licenses/libdw-dev licenses/libzydis-dev README.md \
        report.schema.json ci/run.sh; do
        [ -s "$INSTALLED/$name" ] || fail "no $name"
    done
}

# As its README says, for the languages whose compiler is installed.
test_examples() {
    local examples=$WORK/examples targets=(all) consumers=(./c_consumer ./cpp_consumer) consumer
    command -v make >/dev/null || { echo "SKIPPED: no make" && return; }
    cp -r "$INSTALLED/examples" "$examples"
    if [ -x /usr/bin/rustc ]; then targets+=(rust) && consumers+=(./rust_consumer); fi
    make -s -C "$examples" CFLAGS=-O0 CXXFLAGS=-O0 "${targets[@]}" || fail "make"
    for consumer in "${consumers[@]}" ./python/consumer.py; do
        (cd "$examples" &&
            "$ROOT/usr/bin/kmes-conformance" smoke --timeout-scale "$SCALE" -- "$consumer") \
            >"$WORK/smoke" 2>&1 ||
            fail "smoke -- $consumer: $(cat "$WORK/smoke")"
    done
    command -v patch >/dev/null || { echo "SKIPPED: no patch" && return; }
    make -s -C "$examples" CFLAGS=-O0 form_d_consumer || fail "make form_d_consumer"
    (cd "$examples" && "$ROOT/usr/bin/kmes-conformance" smoke --layout D \
        --timeout-scale "$SCALE" -- ./form_d_consumer) >"$WORK/smoke" 2>&1 ||
        fail "smoke --layout D: $(cat "$WORK/smoke")"
}

test_reproducible
test_at_once
test_names_no_folder
test_install
test_man_page
test_completion
test_documents
test_examples
test_remove
echo "$failures failures"
[ "$failures" -eq 0 ]
