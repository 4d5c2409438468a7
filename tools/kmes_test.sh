#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests the command tools/kmes in a copy, with fake commands bazel, apt-get, dpkg-query and id that
# record their calls. Covers arguments, packages, set-up, exit statuses and counts.
set -uo pipefail

source tools/kmes_testing.sh

# --- cases ---

test_usage() {
    local by_bazel='default asan ubsan tsan fuzz profile release'
    kmes 0 help
    like "$OUT" '^usage: tools/kmes'
    kmes 2
    like "$ERR" '^usage: tools/kmes'
    kmes 2 conform
    local commands='conformance package install bench fuzz mutants broken replay vm test flakes'
    commands+=' setup check fmt tidy ide help'
    like "$ERR" "unknown command 'conform'; one of: $commands$"
    lines "$ERR" 1
    kmes 2 setup everything
    local sections='suite required package browser testees kernel peers optional'
    like "$ERR" "setup: unknown section 'everything'; one of: $sections$"
    kmes 2 test msan
    like "$ERR" "unknown part 'msan'; any of: check $by_bazel package browser vm; a"
    like "$ERR" '; a target begins with //$'
    kmes 2 test vm //kmes/tests:abi_test
    like "$ERR" "part 'vm' takes no targets; those that do: $by_bazel$"
    lines "$CALLS" 0
    kmes 2 fuzz
    like "$ERR" 'fuzz: name a target: batch header script $'
    kmes 2 fuzz scripts
    like "$ERR" "fuzz: unknown target 'scripts'; one of: batch header script $"
    kmes 2 fuzz script --seconds 1m
    like "$ERR" "fuzz: --seconds takes a whole number from 1 to 1000000, not '1m'"
    kmes 2 fuzz script --engine honggfuzz
    has "$ERR" "tools/kmes: fuzz: unknown engine 'honggfuzz'; one of: libfuzzer afl"
    kmes 2 fuzz script --jobs
    lines "$ERR" 1
    kmes 2 package --fast
    has "$ERR" "tools/kmes: package: unknown option '--fast'; expected --quick"
    kmes 2 package one two
    has "$ERR" "tools/kmes: package: takes one folder, not 'one' and 'two'"
    kmes 2 package /proc/none
    has "$ERR" "tools/kmes: package: '/proc/none' is no folder that can be written"
    lines "$CALLS" 0
    kmes 2 install /usr
    has "$ERR" "tools/kmes: install: takes options only, not '/usr'; did you mean --prefix /usr?"
    kmes 2 install --prefix
    has "$ERR" 'tools/kmes: install: --prefix takes a folder'
    local path
    for path in usr '/a b' /a/../b ''; do
        kmes 2 install --prefix "$path"
        has "$ERR" "tools/kmes: install: --prefix takes an absolute path without spaces and '..',\
 not '$path'"
        lines "$ERR" 1
    done
    kmes 2 install --prefix=/
    has "$ERR" 'tools/kmes: install: --prefix / is no place; try /usr'
    kmes 2 install --destdir=/proc/none
    has "$ERR" "tools/kmes: install: '/proc/none/usr/local' is no folder that can be written"
    kmes 2 install --user
    has "$ERR" "tools/kmes: install: unknown option '--user'; --help lists them"
    kmes 0 install --help
    like "$OUT" '^usage: tools/kmes install'
    lines "$CALLS" 0
    kmes 2 bench
    like "$ERR" 'to be measured, one of: conformance consumers instructions plot peers producer '
    kmes 2 bench conformance more
    has "$ERR" 'tools/kmes: bench: conformance takes no options'
    kmes 2 bench instructions --quick
    has "$ERR" 'tools/kmes: bench: instructions takes --update, and nothing else'
    kmes 2 bench consumers --keep
    has "$ERR" 'tools/kmes: bench: consumers takes --quick, and nothing else'
    kmes 2 bench peers --against
    has "$ERR" "tools/kmes: bench: peers takes --quick, --json FILE and --keep, not '--against'"
    kmes 2 bench consumer
    has "$ERR" "tools/kmes: bench: unknown word 'consumer'; the groups are: producer reader pair \
wake mixed rings capacity resize"
    kmes 2 bench producer --against
    has "$ERR" 'tools/kmes: bench: --against takes a value'
    kmes 2 bench producer --against none
    has "$ERR" "tools/kmes: bench: --against takes a revision of this repository, not 'none'"
    kmes 2 bench producer --against HEAD --keep
    has "$ERR" 'tools/kmes: bench: --against takes neither --json nor --keep'
    kmes 2 bench plot
    lines "$ERR" 1
    kmes 2 vm --kernel 5.10
    has "$ERR" "tools/kmes: vm: unknown kernel '5.10'; one of: 6.1 6.12 kasan kcsan"
    kmes 2 vm --seconds soon
    like "$ERR" "vm: --seconds takes a whole number, not 'soon'$"
    kmes 2 vm --pack /proc/none
    kmes 2 vm --all
    kmes 2 vm --
    lines "$ERR" 1
    kmes 2 fmt one.c
    lines "$ERR" 1
    kmes 2 ide one.c
    lines "$ERR" 1
}

test_setup() {
    kmes 0 setup
    lines "$CALLS" 0
    FAKE_MISSING=libfmt-dev kmes 0 setup
    lines "$CALLS" 1
    like "$CALLS" '^apt-get install -y .* libfmt-dev$'
    has_not "$CALLS" rustc
    FAKE_MISSING=rustc kmes 0 setup
    lines "$CALLS" 0
    FAKE_MISSING=rustc kmes 0 setup required testees
    like "$CALLS" '^apt-get install -y .* rustc$'
    # The suite alone needs no second compiler, fuzzer or model checker; the rest includes it.
    FAKE_MISSING=clang-19 kmes 0 setup suite
    lines "$CALLS" 0
    FAKE_MISSING=libdw-dev kmes 0 setup suite
    like "$CALLS" '^apt-get install -y .* libdw-dev$'
    FAKE_MISSING=zlib1g-dev kmes 0 setup
    lines "$CALLS" 0
    FAKE_MISSING=zlib1g-dev kmes 0 setup package
    like "$CALLS" '^apt-get install -y .* zlib1g-dev$'
    # Not root: one line says what to do, and nothing is changed.
    FAKE_UID=1000 FAKE_MISSING=libfmt-dev kmes 3 setup
    lines "$CALLS" 0
    lines "$ERR" 1
    like "$ERR" 'as root: apt-get install --no-install-recommends libfmt-dev$'
    # Old package lists: they are fetched, and the installation is repeated.
    touch "$TEST_TMPDIR/apt-fails"
    FAKE_MISSING=libfmt-dev kmes 0 setup
    lines "$CALLS" 3
    like "$CALLS" '^apt-get update$'
    FAKE_APT=down FAKE_MISSING=libfmt-dev kmes 3 setup
    like "$ERR" '^words of apt$'
    like "$ERR" 'could not install \[required\] of tools/packages.txt: libfmt-dev$'
}

# broken_list TEXT LINE_NUMBER WORDS: appends TEXT to the package list, and expects an error with
# its line.
broken_list() {
    local list=$CLONE/tools/packages.txt kept=$TEST_TMPDIR/kept
    cp "$list" "$kept"
    printf '%s\n' "$1" >>"$list"
    kmes 3 setup
    like "$ERR" "^tools/kmes: tools/packages.txt:$(wc -l <"$list"): $2"
    cp "$kept" "$list"
}

test_packages_file() {
    broken_list '[Two words]' 'a section is written'
    broken_list 'name-alone' 'a package needs a reason'
    broken_list 'Bad_Name why' '"Bad_Name" is no package name'
    local kept=$TEST_TMPDIR/kept list=$CLONE/tools/packages.txt
    cp "$list" "$kept"
    grep -v '^\[' "$kept" >"$list"
    kmes 3 setup
    like "$ERR" 'a package before the first \[section\]'
    sed 's/^\[required\]/[needed]/' "$kept" >"$list"
    kmes 3 setup
    like "$ERR" 'no section \[required\]'
    cp "$kept" "$list"
}

test_conformance() {
    bazel_says 0 </dev/null
    # Without a program: adds the reference after the options.
    kmes 0 conformance --cpus 4
    lines "$OUT" 5
    has "$OUT" 'argument <-->'
    has "$OUT" "argument <$CLONE/out/conformance/testees/reference>"
    like "$CALLS" ' //conformance:kmes-conformance //conformance/testees:reference$'
    # With a program: every argument is passed unchanged, in the caller's folder.
    mkdir -p "$TEST_TMPDIR/else where"
    cd "$TEST_TMPDIR/else where" || exit 3
    kmes 0 conformance --filter '5.*' -- ./my-consumer 'two words' '' --flag
    cd "$OLDPWD" || exit 3
    has "$OUT" "in $TEST_TMPDIR/else where"
    has "$OUT" 'argument <5.*>'
    has "$OUT" 'argument <./my-consumer>'
    has "$OUT" 'argument <two words>'
    has "$OUT" 'argument <>'
    lines "$OUT" 8
    # A command that takes a program also gets the reference. The others get none, and the testees
    # of selftest are built.
    kmes 0 conformance smoke -v
    has "$OUT" "argument <$CLONE/out/conformance/testees/reference>"
    local command
    for command in clauses 'judge kept.json' 'replay kept.json' 'shrink kept.json'; do
        # shellcheck disable=SC2086  # two words
        kmes 0 conformance $command
        has_not "$OUT" 'argument <-->'
        like "$CALLS" ' //conformance:kmes-conformance$'
    done
    kmes 0 conformance selftest --jobs 2
    has_not "$OUT" 'argument <-->'
    like "$CALLS" ' //conformance:kmes-conformance //conformance/main:selftest_testees$'
    local status
    for status in 0 1 2 3 4; do
        FAKE_VERDICT=$status kmes "$status" conformance -- ./my-consumer
    done
    # A failed build is the suite's fault, and its output is shown in full.
    bazel_says 1 <<<"ERROR: words of the compiler"
    kmes 3 conformance
    has "$ERR" "ERROR: words of the compiler"
    lines "$OUT" 0
    FAKE_UID=1000 FAKE_MISSING=libdw-dev kmes 3 conformance -- ./my-consumer
    has_not "$CALLS" bazel
    bazel_says 0 </dev/null
    local name
    for name in clang-19 afl++ spin valgrind libgtest-dev; do
        FAKE_UID=1000 FAKE_MISSING=$name kmes 0 conformance -- ./my-consumer
        lines "$ERR" 0
    done
    # The other commands need all that tests need.
    FAKE_UID=1000 FAKE_MISSING=clang-19 kmes 3 replay one.kmes
    has_not "$CALLS" bazel
}

# package_waits LOCKED FOLDER: expects that nothing is built while another process has the lock on
# LOCKED.
package_waits() {
    local until=$((SECONDS + 60 * ${KMES_TIMEOUT_SCALE:-1}))
    : >"$ERR"
    (
        flock 7
        # The lock ends as soon as the command says that it waits for it.
        while [ "$SECONDS" -lt "$until" ] && ! grep -q 'waiting for another' "$ERR"; do
            sleep 0.05
        done
        cp "$CALLS" "$TEST_TMPDIR/calls-locked"
    ) 7<"$1" &
    while flock -n "$1" true; do sleep 0.01; done
    kmes 0 package "$2"
    wait
    like "$ERR" '^tools/kmes: package: waiting for another package command$'
    ! grep -q build "$TEST_TMPDIR/calls-locked" || fail "built despite the lock on $1"
    like "$CALLS" ' build '
}

# The sums are those of this version, also if the folder has an older one.
test_package() {
    local folder=$TEST_TMPDIR/dist maker zydis
    bazel_says 0 </dev/null
    mkdir -p "$folder" "$CLONE/tools/package"
    echo 0.21 >"$CLONE/VERSION"
    # The library of Debian's source is there from an earlier call.
    fake_command gcc <<<'echo 12'
    zydis="$TEST_TMPDIR/home/.cache/kmes/zydis-libzydis-dev installed-gcc-12"
    mkdir -p "$zydis" && : >"$zydis/libZydis.a"
    for maker in make_deb make_library_debs; do
        cat >"$CLONE/tools/package/$maker.sh" <<'E2'
#!/usr/bin/env bash
: >"$3/kmes-conformance" >"$3/kmes-conformance_0.21_amd64.deb" >"$3/python3-kmes_0.21_all.deb"
E2
        chmod +x "$CLONE/tools/package/$maker.sh"
    done
    touch "$folder"/{libkmes0_0.2_amd64,libkmes0_0.20_amd64,libkmes0_0.21.1_amd64}.deb
    kmes 0 package "$folder"
    [ "$(sed 's/^[0-9a-f]* *//' "$OUT" | tr '\n' ' ')" = \
        'kmes-conformance ./kmes-conformance_0.21_amd64.deb ./python3-kmes_0.21_all.deb ' ] ||
        fail "not the sums of this version"
    # Into the top of the tree: both locks are on the same folder.
    kmes 0 package "$CLONE"
    [ -e "$CLONE/kmes-conformance" ] || fail "no package at the top of the tree"
    rm "$CLONE"/kmes-conformance "$CLONE"/*.deb
    package_waits "$CLONE" "$folder"
    package_waits "$folder" "$folder"
    rm -r "$BIN/gcc" "$CLONE/VERSION" "$zydis"
}

test_replay() {
    bazel_says 0 </dev/null
    mkdir -p "$TEST_TMPDIR/else where"
    cd "$TEST_TMPDIR/else where" || exit 3
    kmes 0 replay --quiet 'two words.kmes' -
    cd "$OLDPWD" || exit 3
    has "$OUT" "in $TEST_TMPDIR/else where"
    has "$OUT" 'argument <--quiet>'
    has "$OUT" 'argument <two words.kmes>'
    has "$OUT" 'argument <->'
    lines "$OUT" 4
    like "$CALLS" '^bazel build .* //props/replay:kmes-replay$'
    local status
    for status in 0 1 2 3; do
        FAKE_VERDICT=$status kmes "$status" replay one.kmes
    done
    bazel_says 1 <<<"ERROR: words of the compiler"
    kmes 3 replay one.kmes
    has "$ERR" "ERROR: words of the compiler"
    has "$ERR" "tools/kmes: the player of scripts could not be built; the log is above"
    lines "$OUT" 0
}

test_replay_keep() {
    bazel_says 0 </dev/null
    local script=$TEST_TMPDIR/found.kmes kept=$CLONE/props/corpus/lost-wake.kmes
    printf 'kmes-script 1\n# why\nemit\n' >"$script"
    kmes 0 replay --keep lost-wake "$script"
    like "$OUT" 'git add props/corpus/lost-wake.kmes && git commit'
    cmp -s "$script" "$kept" || fail "what is kept is not the script"
    kmes 0 replay --keep lost-wake "$script"
    like "$OUT" 'there already, the same$'
    # Another script must not replace it.
    printf 'kmes-script 1\n' >"$script"
    kmes 2 replay --keep lost-wake "$script"
    lines "$ERR" 1
    like "$ERR" 'is another script; give this one another name$'
    lines "$kept" 3
    echo 'no script' >"$script"
    kmes 2 replay --keep new "$script"
    has "$ERR" "$script:1: words of the player"
    kmes 3 replay --keep new "$TEST_TMPDIR/none"
    like "$ERR" "none' cannot be read$"
    local name
    for name in '' '../up' 'A' 'a--b' '-a' 'a b'; do
        kmes 2 replay --keep "$name" "$script"
        like "$ERR" 'is no name; small letters'
    done
    kmes 2 replay --keep new
    like "$ERR" 'takes NAME and FILE'
    [ "$(ls "$CLONE/props/corpus")" = lost-wake.kmes ] || fail "more than one script is kept"
}

test_mutants() {
    bazel_says 0 </dev/null
    local status
    for status in 0 1 2 3; do
        FAKE_VERDICT=$status kmes "$status" mutants --only 'producer.c/a b'
    done
    has "$OUT" 'argument <--bin>'
    has "$OUT" 'argument <--only>'
    has "$OUT" 'argument <producer.c/a b>'
    like "$CALLS" '^bazel build .* //props/mutants:driver '
    bazel_says 1 <<<"ERROR: words of the compiler"
    kmes 3 mutants
    has "$ERR" "ERROR: words of the compiler"
    lines "$OUT" 0
}

test_broken() {
    local status
    for status in 0 1 2; do
        FAKE_VERDICT=$status kmes "$status" broken show 'a b'
    done
    has "$OUT" 'argument <--root>'
    has "$OUT" "argument <$CLONE>"
    has "$OUT" 'argument <a b>'
    kmes 0 broken
    has "$OUT" 'argument <--help>'
}

# The database has one command for each file, without the options that only Bazel needs.
test_ide() {
    local database=$CLONE/compile_commands.json
    bazel_says 0 <<'E2'
{"actions": [
  {"mnemonic": "CppCompile", "arguments": ["/usr/bin/gcc", "-MD", "-MF", "bazel-out/a.d",
    "-frandom-seed=bazel-out/a.o", "-iquote", ".", "-Werror", "-fno-canonical-system-headers",
    "-DKMES_HOOKED", "-c", "kmes/a.c", "-o", "bazel-out/hooked/a.o"]},
  {"arguments": ["/usr/bin/gcc", "-iquote", ".", "-c", "kmes/a.c", "-o", "bazel-out/a.o"]},
  {"arguments": ["/usr/bin/gcc", "-c", "bazel-out/made.c", "-o", "bazel-out/made.o"]},
  {"arguments": ["/usr/bin/ar", "x.a"]},
  {"mnemonic": "Symlink"},
  {"arguments": ["/usr/bin/gcc", "-DX=\"y z\"", "-MF", "b.d", "-c", "bench/b.cc", "-o", "b.o"]}
]}
E2
    kmes 0 ide
    like "$CALLS" '^bazel aquery .*--output=jsonproto .*//\.\.\.\)$'
    has "$OUT" "$database: 2 files"
    python3 - "$database" "$CLONE" <<'E2' || fail "another database"
import json, sys
with open(sys.argv[1]) as file:
    found = json.load(file)
sys.exit(found != [
    {"directory": sys.argv[2], "file": "bench/b.cc",
     "arguments": ["/usr/bin/gcc", "-DX=\"y z\"", "-c", "bench/b.cc"]},
    {"directory": sys.argv[2], "file": "kmes/a.c",
     "arguments": ["/usr/bin/gcc", "-iquote", ".", "-c", "kmes/a.c"]},
])
E2
    # A failure leaves the database unchanged.
    local before
    before=$(cksum "$database")
    local answer
    for answer in '' 'no JSON' '[]' '{}' '{"actions": 7}' '{"actions": [7]}' '{"actions": []}'; do
        bazel_says 0 <<<"$answer"
        kmes 3 ide
        has "$ERR" 'tools/kmes: ide: no compile_commands.json was written; the reason is above'
        has_not "$ERR" Traceback
    done
    bazel_says 1 <<<"words of Bazel"
    kmes 3 ide
    has "$ERR" 'tools/kmes: ide: bazel aquery failed; its output is above'
    [ "$(cksum "$database")" = "$before" ] || fail "the database changed"
}

# Uses a fake clang-tidy, which reports a file with the word "fault", and crashes at "death".
test_tidy() {
    if ! command -v clang-tidy-19 >/dev/null; then
        kmes 3 tidy
        like "$ERR" 'tidy: clang-tidy-19 is missing; as root: apt-get install clang-tidy-19$'
    fi
    fake_command clang-tidy-19 <<'E2'
case "$*" in --version) echo "version ${FAKE_TIDY-}" && exit ;; esac
echo "tidy $*" >>"$CALLS"
echo "3 warnings generated." >&2
! grep -q death "$2" || exit 134
! grep -q fault "$2" || echo "$PWD/$2:1:5: warning: words of tidy [a-check]"
E2
    mkdir -p "$CLONE/kmes/user" "$CLONE/kmes/tests"
    echo 'Checks: a-check' >"$CLONE/.clang-tidy"
    echo 'int a;' >"$CLONE/kmes/a.c"
    echo 'int h;' >"$CLONE/kmes/h.h"
    cp "$CLONE/kmes/a.c" "$CLONE/kmes/user/b.cc"
    cp "$CLONE/kmes/a.c" "$CLONE/kmes/a_test.cc"
    cp "$CLONE/kmes/a.c" "$CLONE/kmes/tests/c.cc"
    kmes 0 tidy
    last "$OUT" 'tidy: 2 files, no findings'
    lines "$CALLS" 2
    like "$CALLS" '^tidy --quiet kmes/a.c -- -std=gnu11 '
    like "$CALLS" '^tidy --quiet kmes/user/b.cc -- -std=c\+\+20 '
    # A file that passed is not read again until it or its dependencies change.
    kmes 0 tidy
    lines "$CALLS" 0
    echo 'int b;' >>"$CLONE/kmes/a.c"
    kmes 0 tidy
    lines "$CALLS" 1
    echo 'int i;' >>"$CLONE/kmes/h.h"
    kmes 0 tidy
    lines "$CALLS" 2
    echo '# more' >>"$CLONE/.clang-tidy"
    kmes 0 tidy
    lines "$CALLS" 2
    FAKE_TIDY=20 kmes 0 tidy
    lines "$CALLS" 2
    # A file with a finding is checked each time.
    echo 'int fault;' >>"$CLONE/kmes/a.c"
    echo 'int death;' >>"$CLONE/kmes/user/b.cc"
    local times
    for times in once again; do
        kmes 1 tidy
        has "$OUT" 'kmes/a.c:1: words of tidy [a-check]'
        has "$OUT" 'kmes/user/b.cc:1: clang-tidy ended with status 134 and printed nothing'
        last "$OUT" '2 findings in 2 files'
    done
    kmes 1 tidy "$CLONE/kmes/a.c"
    lines "$OUT" 2
    kmes 2 tidy "$CLONE/kmes/none.c"
    like "$ERR" "tidy: '.*/kmes/none.c' is no file$"
    kmes 2 tidy "$CLONE/kmes/h.h"
    like "$ERR" 'is no C or C\+\+ source \(.c, .cc\)$'
    kmes 2 tidy --all
    lines "$ERR" 1
    # `check` has the same lines.
    kmes 1 check
    has "$OUT" 'kmes/a.c:1: words of tidy [a-check]'
    rm -r "$CLONE/kmes" "$CLONE/.clang-tidy" "$BIN/clang-tidy-19"
}

test_all_pass() {
    bazel_says 0 <<'E2'
INFO: Build completed successfully, 11 total actions
//kmes:event_test                                                        PASSED in 1.3s
//a/very/long/folder/name/that/goes/on/and/on:a_test_with_a_long_name_too PASSED in 0.1s
//conformance/oracle:judge_test                                 (cached) PASSED in 12.0s

Executed 2 out of 3 tests: 3 tests pass.
E2
    kmes 0 test default asan
    has "$OUT" 'PASS default //kmes:event_test 1.3s'
    has "$OUT" 'PASS asan //conformance/oracle:judge_test 12.0s'
    last "$OUT" '6 passed, 0 failed'
    lines "$CALLS" 4
    like "$CALLS" '^bazel test .*--config=asan .*//\.\.\.$'
    FAKE_CI=true kmes 0 test default
    lines "$CALLS" 2
    like "$CALLS" '^bazel shutdown '
}

# A command with asan leaves most tests of default, and of tsan in conformance, to other days. A
# part alone runs all of them.
test_today() {
    local name part share number long
    bazel_says 0 <<'E2'
//kmes:event_test                                                        PASSED in 1.3s

Executed 1 out of 1 test: 1 test passes.
E2
    printf '//conformance/x:%s_test\n' d b e a c >"$TEST_TMPDIR/bazel-query"
    printf '//props/x:%s_test\n' m n >"$TEST_TMPDIR/bazel-query-long"
    kmes 0 test default asan tsan
    like "$OUT" '^# default: [45] tests are for other days'
    # One of the two long tests runs today.
    long=m
    [ $(($(date +%s) / 86400 % 2)) -eq 0 ] || long=n
    like "$CALLS" "^bazel test .* -- //\.\.\. -//props/x:${long}_test "
    lines "$CALLS" 6
    # The five have the numbers 1 to 5 in order, and today's share is that of the day modulo 4.
    share=$(($(date +%s) / 86400 % 4)) number=0
    for name in a b c d e; do
        number=$((number + 1))
        if [ $((number % 4)) -eq "$share" ]; then
            like_not "$CALLS" "^bazel test .*--jobs=[0-9]+ -- .*-//conformance/x:${name}_test"
        else
            like "$CALLS" "^bazel test .*--jobs=[0-9]+ -- //\.\.\. .*-//conformance/x:${name}_test"
        fi
        if [ $((number % 4)) -eq $(((share + 2) % 4)) ]; then
            like_not "$CALLS" "^bazel test .*--config=tsan .*-//conformance/x:${name}_test"
        else
            like "$CALLS" "^bazel test .*--config=tsan .*-//conformance/x:${name}_test"
        fi
    done
    like_not "$CALLS" '^bazel test .*--config=asan .* -//'
    # Alone, or with KMES_SHARE=1, everything runs. Without asan, all but the long tests do.
    for part in default tsan; do
        kmes 0 test "$part"
        lines "$CALLS" 1
        has_not "$CALLS" /x:
    done
    kmes 0 test default tsan
    has_not "$CALLS" conformance/x
    like "$CALLS" '-//props/x:[mn]_test$'
    KMES_SHARE=1 kmes 0 test default asan tsan
    has_not "$CALLS" 'bazel query'
    like "$CALLS" '^bazel test .*--test_env=KMES_SHARE=1 '
    KMES_SHARE=x kmes 2 test default asan
    has "$ERR" "KMES_SHARE is a number from 1 to 1000, not 'x'"
    lines "$CALLS" 0
    # The planted bugs of the fuzzers have two shares.
    kmes 0 test fuzz release
    like "$OUT" '^# fuzz: [23] tests are for other days'
    # Without the list of Bazel everything runs, and a line says why.
    rm "$TEST_TMPDIR/bazel-query" "$TEST_TMPDIR/bazel-query-long"
    FAKE_QUERY='ERROR: words of query' kmes 0 test default asan
    has "$OUT" '# default: all tests, because Bazel does not list them: ERROR: words of query'
    has_not "$CALLS" conformance/x
}

# Bazel handles Ctrl-C and ends. The later parts must not begin.
test_interrupt() {
    bazel_says 8 <<<'INFO: interrupted'
    BAZEL_INTERRUPTS=1 kmes 130 test default asan
    lines "$CALLS" 1
    has_not "$OUT" asan
    # A scratch folder that the caller's environment names is not ours.
    mkdir -p "$TEST_TMPDIR/not-ours"
    KMES_SCRATCH=$TEST_TMPDIR/not-ours kmes 3 check --root "$TEST_TMPDIR/not-ours"
    [ -d "$TEST_TMPDIR/not-ours" ] || fail "a folder that KMES_SCRATCH names was removed"
}

test_targets() {
    bazel_says 0 <<'E2'
//kmes/tests:abi_test                                                    PASSED in 0.1s

Executed 1 out of 1 test: 1 test passes.
E2
    kmes 0 test //kmes/tests:abi_test
    last "$OUT" '1 passed, 0 failed'
    lines "$CALLS" 1
    like "$CALLS" '^bazel test .* -- //kmes/tests:abi_test$'
    has_not "$CALLS" --config
    # A part chooses the configuration; nothing is added to the targets.
    kmes 0 test tsan //kmes/... -//kmes/tests:abi_test
    lines "$CALLS" 1
    like "$CALLS" '^bazel test .*--config=tsan .* -- //kmes/\.\.\. -//kmes/tests:abi_test$'
}

test_count_is_kept() {
    local logs=$CLONE/bazel-testlogs kept=$TEST_TMPDIR/home/.cache/kmes/right-consumers today
    today=$(date +%F)
    mkdir -p "$logs/a/right_test" "$logs/a/other_test"
    printf '2 consumers, 3 runs, 0 wrong verdicts\n' >"$logs/a/right_test/test.log"
    printf '1 consumers, 40 runs, 1 wrong verdicts\n' >"$logs/a/other_test/test.log"
    touch -d '1 hour' "$logs/a/right_test/test.log"
    touch -d '1 hour ago' "$logs/a/other_test/test.log"
    bazel_says 0 <<'E2'
//a:right_test                                                           PASSED in 1.3s

Executed 1 out of 1 test: 1 test passes.
E2
    kmes 0 test default
    has "$OUT" "# correct consumers: 3 runs, 0 wrong verdicts; here since $today: 3 runs, 0 wrong"
    printf '7 1 2026-01-02\n' >"$kept"
    kmes 0 test default
    has "$OUT" \
        '# correct consumers: 3 runs, 0 wrong verdicts; here since 2026-01-02: 10 runs, 1 wrong'
    last "$OUT" '1 passed, 0 failed'
    printf 'no numbers\n' >"$kept"
    kmes 0 test default
    has "$OUT" "# correct consumers: 3 runs, 0 wrong verdicts; here since $today: 3 runs, 0 wrong"
    rm -r "$logs" "$kept"
}

test_failures_count() {
    printf '%s\n' "words of the test" '[ RUN      ] Ring.Wraps' 'a.cc:7: Failure' \
        'position 9' '[  FAILED  ] Ring.Wraps' >"$TEST_TMPDIR/test.log"
    bazel_says 3 <<E2
//kmes:good_test                                                         PASSED in 1.3s
//kmes:bad_test                                                FAILED in 1 out of 2 in 0.1s
  Stats over 2 runs: max = 0.1s, min = 0.1s, avg = 0.1s, dev = 0.0s
  $TEST_TMPDIR/test.log
//kmes:slow_test                                                        TIMEOUT in 60.1s
//kmes:flaky_test                          FLAKY, failed in 1 out of 2 in 0.2s
//kmes:lost_test                                                      NO STATUS

Executed 5 out of 5 tests: 1 test passes and 4 fail locally.
E2
    kmes 1 test tsan
    has "$OUT" 'PASS tsan //kmes:good_test 1.3s'
    has "$OUT" 'FAIL tsan //kmes:bad_test 0.1s'
    has "$OUT" '    words of the test'
    # Failed expectations come first.
    [ "$(grep -A3 -m 1 -F '    Ring.Wraps:' "$OUT" | tr '\n' '|')" = \
        '    Ring.Wraps:|    a.cc:7: Failure|    position 9|    words of the test|' ] ||
        fail "the failed expectations are not before the log"
    has "$OUT" 'FAIL tsan //kmes:slow_test 60.1s'
    like "$OUT" '^FAIL tsan //kmes:flaky_test'
    has "$OUT" 'FAIL tsan //kmes:lost_test (no status)'
    last "$OUT" '1 passed, 4 failed'
    # A long log is cut; its end is shown.
    for ((i = 1; i <= 1200; ++i)); do echo "word $i"; done >"$TEST_TMPDIR/test.log"
    kmes 1 test tsan
    has "$OUT" '    (200 lines left out)'
    has_not "$OUT" "word 199"
    has "$OUT" '    word 1200'
}

test_broken_builds_count() {
    bazel_says 1 <<'E2'
ERROR: words of the compiler
//kmes:good_test                                                         PASSED in 1.3s
//kmes:bad_test                                                 FAILED TO BUILD

Executed 1 out of 2 tests: 1 test passes and 1 fails to build.
E2
    kmes 1 test ubsan
    like "$OUT" '^FAIL ubsan build '
    has "$OUT" '    ERROR: words of the compiler'
    has "$OUT" 'FAIL ubsan //kmes:bad_test (failed to build)'
    last "$OUT" '1 passed, 2 failed'
    # Bazel names only five of them.
    bazel_says 1 <<'E2'
//kmes:bad_test                                                 FAILED TO BUILD
(Skipping other failed to build tests)

Executed 0 out of 8 tests: 8 fail to build.
E2
    kmes 1 test ubsan
    has "$OUT" 'FAIL ubsan 7 more tests (failed to build)'
    last "$OUT" '0 passed, 3 failed'
    # All tests pass, but a target that no test needs does not build.
    bazel_says 1 <<'E2'
//kmes:good_test                                                         PASSED in 1.3s

Executed 1 out of 1 test: 1 test passes.
E2
    kmes 1 test default
    last "$OUT" '1 passed, 1 failed'
    bazel_says 37 <<<"the server died"
    kmes 1 test default
    last "$OUT" '0 passed, 1 failed'
}

test_nothing_is_no_pass() {
    bazel_says 4 <<<"ERROR: No test targets were found"
    kmes 1 test default
    last "$OUT" '0 passed, 1 failed'
    # Fewer lines than tests: a missing test has not passed.
    bazel_says 0 <<'E2'
//kmes:good_test                                                         PASSED in 1.3s

Executed 1 out of 2 tests: 2 tests pass.
E2
    kmes 1 test default
    last "$OUT" '1 passed, 1 failed'
    FAKE_UID=1000 FAKE_MISSING=clang-19 kmes 1 test default
    like "$OUT" '^FAIL setup '
    like "$OUT" 'as root: apt-get install'
    last "$OUT" '0 passed, 1 failed'
}

# vm_says STATUS: sets the output of `tools/kmes vm` for guest tests and planted bugs.
vm_says() {
    local file=$CLONE/tools/lib/vm.sh
    cp "$file" "$TEST_TMPDIR/vm.sh"
    cat >"$TEST_TMPDIR/vm-says"
    printf 'vm_command() { echo "vm $*" >>"$CALLS"; cat "$TEST_TMPDIR/vm-says"; return %s; }\n' \
        "$1" >>"$file"
}

# Missing packages that need root are reported before the first part.
test_missing_is_named_first() {
    bazel_says 0 <<'E2'
//kmes:event_test                                                        PASSED in 1.3s

Executed 1 out of 1 test: 1 test passes.
E2
    FAKE_UID=1000 FAKE_MISSING=bison kmes 1 test default vm
    [ "$(head -n 1 "$OUT")" = '# vm: packages are missing; as root: apt-get install'\
' --no-install-recommends bison' ] || fail "the missing package is not in the first line"
    FAKE_UID=1000 FAKE_MISSING=chromium kmes 0 test default browser
    like "$OUT" '^# browser: packages are missing; as root: apt-get .* chromium$'
    FAKE_MISSING=bison kmes 0 test default
    has_not "$OUT" missing
}

test_vm_part() {
    FAKE_UID=1000 FAKE_MISSING=qemu-system-x86 kmes 3 vm
    like "$ERR" 'as root: apt-get install --no-install-recommends qemu-system-x86$'
    mkdir -p "$CLONE/kmod/packaging"
    printf '#!/bin/sh\necho words of the packaging; exit ${FAKE_VERDICT:-0}\n' |
        tee "$CLONE/kmod/packaging/dkms_test.sh" >"$CLONE/kmod/packaging/build_test.sh"
    chmod +x "$CLONE"/kmod/packaging/*_test.sh
    vm_says 0 <<'E2'
PASS 6.1 wake 4.1s
    [    3.2] words of the kernel
PASS 6.1 kernel-log 0.0s
2 passed, 0 failed
E2
    kmes 0 test vm
    has "$OUT" 'PASS vm suite/wake 4.1s'
    has "$OUT" 'PASS vm planted/kernel-log 0.0s'
    has_not "$OUT" 'words of the kernel'
    has "$CALLS" 'vm --planted'
    last "$OUT" '6 passed, 0 failed'
    FAKE_VERDICT=1 kmes 1 test vm
    like "$OUT" '^FAIL vm packaging/dkms '
    has "$OUT" '    words of the packaging'
    last "$OUT" '4 passed, 2 failed'
    cp "$TEST_TMPDIR/vm.sh" "$CLONE/tools/lib/"
    vm_says 1 <<'E2'
FAIL 6.1 wake 4.1s
    [    3.2] words of the kernel
PASS 6.1 kernel-log 0.0s
1 passed, 1 failed
E2
    kmes 1 test vm
    has "$OUT" 'FAIL vm suite/wake 4.1s'
    has "$OUT" '    [    3.2] words of the kernel'
    last "$OUT" '4 passed, 2 failed'
    cp "$TEST_TMPDIR/vm.sh" "$CLONE/tools/lib/"
    # The command died, or had no output.
    vm_says 1 <<<'PASS 6.1 wake 4.1s'
    kmes 1 test vm
    like "$OUT" '^FAIL vm suite: no tests counted, 1 shown, status 1'
    cp "$TEST_TMPDIR/vm.sh" "$CLONE/tools/lib/"
    vm_says 3 <<<'tools/kmes: vm: no headers'
    kmes 1 test vm
    has "$OUT" '    tools/kmes: vm: no headers'
    last "$OUT" '2 passed, 2 failed'
    cp "$TEST_TMPDIR/vm.sh" "$CLONE/tools/lib/"
}

test_places() {
    bazel_says 0 </dev/null
    cp -r "$CLONE" "$TEST_TMPDIR/a clone"
    KMES="$TEST_TMPDIR/a clone/tools/kmes" kmes 3 conformance
    lines "$ERR" 1
    like "$ERR" 'Bazel cannot build in a path with a space'
    # Called through a link from somewhere else.
    ln -sf "$CLONE/tools/kmes" "$TEST_TMPDIR/link"
    KMES=$TEST_TMPDIR/link kmes 0 conformance
    # A writable home: Bazel's usual folder, and objects are kept for the next clone.
    kmes 0 conformance
    has_not "$CALLS" --output_user_root
    like "$CALLS" "--disk_cache=$TEST_TMPDIR/home/.cache/kmes/objects-[0-9]+ "
    # A home that is not writable: a private folder among the temporary files.
    FAKE_HOME=/proc/none kmes 0 conformance
    like "$CALLS" "^bazel --output_user_root=$TEST_TMPDIR/kmes-bazel-0 build"
    [ "$(stat -c %a "$TEST_TMPDIR/kmes-bazel-0")" = 700 ] || fail "the folder is not private"
    rm -rf "$TEST_TMPDIR/kmes-bazel-0"
    ln -s "$TEST_TMPDIR/home" "$TEST_TMPDIR/kmes-bazel-0"
    FAKE_HOME=/proc/none kmes 3 conformance
    lines "$ERR" 1
    like "$ERR" 'nowhere to build'
    has_not "$CALLS" bazel
    [ -z "$(find "$TEST_TMPDIR" -maxdepth 1 -name 'kmes.*')" ] || fail "scratch folders are left"
}

# Both trees are built in separate folders, and both builds run. The other tree is then removed.
test_bench_against() {
    command -v git >/dev/null || return 0
    mkdir -p "$CLONE/bench" "$CLONE/out/bench"
    cp -L bench/figures.py "$CLONE/bench/"
    cat >"$CLONE/out/bench/kmes-bench" <<'E2'
#!/usr/bin/env bash
echo "kmes-bench $*" >>"$CALLS"
while [ "$1" != --json ]; do shift; done
echo '{"schema": 3, "rows": [{"group": "producer", "table": "one event", "variant": "floor",
"value": 64, "median": 10}]}' >"$2"
E2
    chmod +x "$CLONE/out/bench/kmes-bench"
    git -C "$CLONE" init -q -b main
    git -C "$CLONE" -c user.name=a -c user.email=a@b -c core.hooksPath= commit -q --allow-empty \
        -m 'core: add nothing'
    kmes 0 bench producer --quick --against HEAD
    has "$OUT" '1 row in 5 rounds: 0 faster, 0 slower, 1 the same within 5 %'
    [ "$(grep -c '^bazel .*build .*--config=release //bench:kmes-bench$' "$CALLS")" -eq 2 ] ||
        fail "not both trees were built"
    [ "$(grep -cE '^kmes-bench .*--quick producer$' "$CALLS")" -eq 10 ] ||
        fail "not both builds were run in five rounds"
    no_tree_left
    # A signal during the build of the other tree, or while the trees are measured.
    signalled INT 130 bench producer --against HEAD
    no_tree_left
    signalled TERM 143 bench producer --against HEAD
    no_tree_left
    printf '#!/bin/sh\nkill -INT 0\n' >"$CLONE/out/bench/kmes-bench"
    signalled '' 130 bench producer --against HEAD
    no_tree_left
    rm -rf "$CLONE/.git"
}

no_tree_left() {
    [ "$(git -C "$CLONE" worktree list | wc -l)" -eq 1 ] || fail "the other tree is left"
    like "$CALLS" '^bazel clean .*--expunge$'
    [ -z "$(find "$TEST_TMPDIR" -maxdepth 1 -name 'kmes.*')" ] || fail "a scratch folder is left"
}

# The folder on tmpfs is removed after success, failure and signals.
test_bench_consumers() {
    local memory=$TEST_TMPDIR/memory
    mkdir -p "$CLONE/out/bench" "$memory"
    cat >"$CLONE/out/bench/kmes-consumers" <<'E2'
#!/usr/bin/env bash
echo "kmes-consumers $*" >>"$CALLS"
echo event >"$2/recorded"
[ -z "${FAKE_SIGNAL-}" ] || kill -"$FAKE_SIGNAL" 0
exit "${FAKE_VERDICT:-0}"
E2
    chmod +x "$CLONE/out/bench/kmes-consumers"
    fake_command g++ <<<'exit 1'
    export KMES_BENCH_FOLDER=$memory
    FAKE_VERDICT=3 kmes 3 bench consumers --quick
    like "$CALLS" "^kmes-consumers [^ ]*/kmesctl $memory/[^ ]+ --rate 10000000 --seconds 0.2$"
    [ -z "$(ls "$memory")" ] || fail "its folder is left"
    signalled INT 130 bench consumers
    [ -z "$(ls "$memory")" ] || fail "its folder is left after INT"
    signalled TERM 143 bench consumers
    [ -z "$(ls "$memory")" ] || fail "its folder is left after TERM"
    kmes 0 bench consumers
    last "$OUT" "left out: LTTng's consumer: its emitter does not build"
    bench_lttng_row
    unset KMES_BENCH_FOLDER
    rm "$BIN/g++"
}

# The row has what the emitter emitted, less what LTTng discarded. The session and the daemon end.
bench_lttng_row() {
    fake_command g++ <<'E2'
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho "emitter $*" >>"$CALLS"\necho 500000\n' >"$2"
chmod +x "$2"
E2
    fake_command taskset <<'E2'
echo "taskset $*" >>"$CALLS"
case "$1" in
    -pc) echo "pid $2's current affinity list: 2,5-7" ;;
    -c) shift 2 && exec "$@" ;;
esac
E2
    fake_command pgrep <<<'echo 1'
    fake_command lttng-sessiond </dev/null
    fake_command lttng <<'E2'
echo "lttng $*" >>"$CALLS"
case "$2:${3-}" in
    list:) exit "${FAKE_DAEMON:-1}" ;;
    list:*) echo '      Discarded events: 499999' ;;
    create:*) [ -z "${FAKE_LTTNG-}" ] || { echo "Error: $FAKE_LTTNG" && exit 1; } ;;
esac
E2
    kmes 0 bench consumers --quick
    like "$OUT" '^LTTng consumerd to tmpfs +[0-9]+ +[0-9]+\.[0-9]$'
    [ "$(awk '/^LTTng/ { print $5 }' "$OUT")" -lt 1000 ] || fail "a lost event counts as read"
    has "$CALLS" 'emitter 64 10000000 0.2'
    like "$CALLS" '^taskset -c 2 '
    like "$CALLS" '^taskset -apc 7 '
    like "$CALLS" '^lttng --no-sessiond destroy kmes-bench-'
    FAKE_DAEMON=0 kmes 0 bench consumers
    last "$OUT" "left out: LTTng's consumer: a session daemon of LTTng runs that is not this"\
" command's"
    has_not "$CALLS" 'lttng --no-sessiond destroy'
    FAKE_LTTNG='words of LTTng' kmes 0 bench consumers
    last "$OUT" "left out: LTTng's consumer: no session: Error: words of LTTng"
    rm "$BIN/lttng" "$BIN/lttng-sessiond" "$BIN/taskset" "$BIN/pgrep"
}

# A missing header, a failed build or a missing session of LTTng each removes only the row of their
# peer. The session and the daemon end with the measurement.
test_bench_peers() {
    mkdir -p "$CLONE/out/bench"
    cat >"$CLONE/out/bench/kmes-bench" <<'E2'
#!/usr/bin/env bash
echo "kmes-bench $*" >>"$CALLS"
cat "$LTTNG_HOME/lttng.pid" >"$TEST_TMPDIR/lttng.pid" 2>/dev/null
[ -z "${FAKE_SIGNAL-}" ] || kill -"$FAKE_SIGNAL" 0
exit "${FAKE_VERDICT:-0}"
E2
    chmod +x "$CLONE/out/bench/kmes-bench"
    fake_command g++ <<'E2'
if [ "$1" = -E ]; then ! grep -q rte_ring.h; exit; fi
case "$*" in
    */perf.cc*) echo "perf.cc:1: error: words of the compiler" >&2 && exit 1 ;;
esac
while [ "$1" != -o ]; do shift; done
: >"$2"
E2
    fake_command lttng <<'E2'
echo "lttng $*" >>"$CALLS"
[ "$2" != list ] || exit "${FAKE_DAEMON:-1}"
[ "$2" != start ] || { echo "Error: ${FAKE_LTTNG:-}" && [ -z "${FAKE_LTTNG-}" ]; }
E2
    fake_command lttng-sessiond <<'E2'
echo "lttng-sessiond $*" >>"$CALLS"
sleep 1000 >/dev/null 2>&1 &
for argument in "$@"; do
    case "$argument" in --pidfile=*) echo "$!" >"${argument#*=}" ;; esac
done
E2
    FAKE_VERDICT=3 kmes 3 bench peers --quick
    has "$OUT" 'left out: rte_ring: the header rte_ring.h is not installed'
    has "$OUT" 'left out: perf: its source does not build: perf.cc:1: error: words of the compiler'
    lines "$OUT" 2
    like "$CALLS" '^kmes-bench --quick --json [^ ]* --peer [^ ]*/libqb.so .*/lttng.so peers$'
    [ "$(grep -o -- --peer "$CALLS" | wc -l)" -eq 5 ] || fail "not all other peers are measured"
    like "$CALLS" '^lttng --no-sessiond create kmes-bench-[0-9]+ --snapshot '
    like "$CALLS" '^lttng --no-sessiond start kmes-bench-'
    like "$CALLS" '^lttng --no-sessiond destroy kmes-bench-'
    [ -s "$TEST_TMPDIR/lttng.pid" ] || fail "no daemon of LTTng runs while it is measured"
    ! kill -0 "$(cat "$TEST_TMPDIR/lttng.pid")" 2>/dev/null || fail "the daemon of LTTng is left"
    signalled INT 130 bench peers
    like "$CALLS" '^lttng --no-sessiond destroy kmes-bench-'
    ! kill -0 "$(cat "$TEST_TMPDIR/lttng.pid")" 2>/dev/null || fail "INT leaves the daemon"
    FAKE_DAEMON=0 kmes 0 bench peers
    has_not "$CALLS" lttng-sessiond
    FAKE_LTTNG='words of LTTng' kmes 0 bench peers
    has "$ERR" 'tools/kmes: bench: no session of LTTng: Error: words of LTTng'
    like "$CALLS" '^kmes-bench '
    rm "$BIN/g++" "$BIN/lttng" "$BIN/lttng-sessiond"
}

make_clone
test_usage
test_setup
test_packages_file
test_conformance
test_package
test_replay
test_replay_keep
test_mutants
test_broken
test_ide
test_tidy
test_interrupt
test_all_pass
test_today
test_targets
test_count_is_kept
test_failures_count
test_broken_builds_count
test_nothing_is_no_pass
test_missing_is_named_first
test_vm_part
test_bench_against
test_bench_consumers
test_bench_peers
test_places
echo "$failures failures"
[ "$failures" -eq 0 ]
