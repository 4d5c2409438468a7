#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Plants each violation of the style rules in a small tree, and expects that `tools/kmes check`
# reports it with file, line and text. Also plants texts that only resemble a violation, which it
# must not report.
set -uo pipefail

readonly KMES=$PWD/tools/kmes
readonly CLEAN=$TEST_TMPDIR/clean
readonly TREE=$TEST_TMPDIR/tree
readonly OUT=$TEST_TMPDIR/out
readonly BOTH_LICENSES='/* SPDX-License-Identifier: GPL-2.0-only OR MIT */'
readonly MIT='// SPDX-License-Identifier: MIT'
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# Makes a tree without violations. Each case starts from a copy.
make_clean_tree() {
    mkdir -p "$CLEAN/kmes/user" "$CLEAN/conformance/oracle" "$CLEAN/conformance/model" "$CLEAN/kmod"
    cp "$PWD/.clang-format" "$CLEAN/"
    printf '%s\nint abi(int base);\n' "$BOTH_LICENSES" >"$CLEAN/kmes/abi.h"
    printf '%s\n#include "kmes/user/order_user.h"\n' "$BOTH_LICENSES" >"$CLEAN/kmes/order.h"
    printf '%s\nstatic volatile int order;\n' "$BOTH_LICENSES" >"$CLEAN/kmes/user/order_user.h"
    printf '%s\n#include "kmes/abi.h"\n' "$BOTH_LICENSES" >"$CLEAN/kmes/ring.c"
    printf '%s\nint oracle();\n' "$MIT" >"$CLEAN/conformance/oracle/oracle.h"
    printf '%s\n\n#include "conformance/model/case.h"\n' "$MIT" \
        >"$CLEAN/conformance/oracle/judge.cc"
    printf '%s\nint model();\n' "$MIT" >"$CLEAN/conformance/model/case.h"
    printf '## The folders of conformance\n\n    %s\n    %s\n' 'model  ->' 'oracle -> model' \
        >"$CLEAN/ARCHITECTURE.md"
    build_file kmes "abi.h order.h ring.c user/order_user.h"
    build_file conformance/oracle "oracle.h judge.cc"
    build_file conformance/model case.h
}

# build_file FOLDER "NAMES": writes a BUILD.bazel with these names.
build_file() {
    local license=MIT
    [ "$1" = kmes ] && license="GPL-2.0-only OR MIT"
    {
        echo "# SPDX-License-Identifier: $license"
        # shellcheck disable=SC2086  # a list of names
        printf 'exports_files(["%s"])\n' $2
    } >"$CLEAN/$1/BUILD.bazel"
}

fresh_tree() {
    rm -rf "$TREE"
    cp -r "$CLEAN" "$TREE"
}

check() {
    "$KMES" check --root "$TREE" >"$OUT" 2>&1
}

# expect_one NAME PATTERN: expects one violation whose line matches.
expect_one() {
    check
    local status=$?
    [ "$status" -eq 1 ] || fail "$1: exit status $status, not 1"
    grep -qE -- "$2" "$OUT" || fail "$1: no line like: $2"
    grep -q '^1 violations' "$OUT" || fail "$1: not exactly one violation"
    [ "$failures" -eq "${reported:-0}" ] || cat "$OUT"
    reported=$failures
}

# expect_silence NAME: expects that the check passes.
expect_silence() {
    check || { fail "$1: reported, but it is not a violation" && cat "$OUT"; }
    reported=$failures
}

# The violations that `plant` has added since the last `settle`.
planted_names=()
planted_patterns=()

# put FILE TEXT: appends TEXT to FILE, after an empty line in a document. Sets `moved` to the number
# of lines before TEXT that are not in the clean tree.
put() {
    local has=0 had=0
    if [[ $1 == *.md && -s $TREE/$1 ]]; then echo >>"$TREE/$1"; fi
    [ ! -f "$TREE/$1" ] || has=$(wc -l <"$TREE/$1")
    [ ! -f "$CLEAN/$1" ] || had=$(wc -l <"$CLEAN/$1")
    moved=$((has - had))
    printf '%s\n' "$2" >>"$TREE/$1"
}

# plant NAME FILE TEXT PATTERN: appends TEXT, one violation, to FILE. PATTERN has the line number as
# if the tree were clean. `settle` runs the check.
plant() {
    local pattern=$4
    put "$2" "$3"
    if [[ $pattern =~ ^([^:]+:)([0-9]+)(:.*)$ ]]; then
        pattern=${BASH_REMATCH[1]}$((BASH_REMATCH[2] + moved))${BASH_REMATCH[3]}
    fi
    planted_names+=("$1")
    planted_patterns+=("$pattern")
}

# allow NAME FILE TEXT: appends TEXT, which is not a violation, to FILE. NAME is only a comment.
allow() {
    put "$2" "$3"
}

# settle: checks the tree once, and expects exactly the violations since `fresh_tree`.
settle() {
    local i count=${#planted_names[@]} before=$failures
    check
    [ "$count" -gt 0 ] || fail "settle: nothing was planted"
    for ((i = 0; i < count; ++i)); do
        [ "$(grep -cE -- "${planted_patterns[i]}" "$OUT")" -eq 1 ] ||
            fail "${planted_names[i]}: not one line like: ${planted_patterns[i]}"
    done
    grep -q "^$count violations" "$OUT" || fail "not $count violations: ${planted_names[*]}"
    [ "$failures" -eq "$before" ] || cat "$OUT"
    reported=$failures
    planted_names=()
    planted_patterns=()
    fresh_tree
}

# function_of LINES NAME: prints a function with this number of lines, braces included.
function_of() {
    echo "void $2() {"
    for ((i = 0; i < $1 - 2; ++i)); do echo "    f($i);"; done
    echo "}"
}

repeat() {
    printf "%*s" "$2" "" | sed "s/ /$1/g"
}

test_text_rules() {
    fresh_tree
    plant "unformatted" kmes/ring.c 'int  two_spaces;' '^kmes/ring.c:3: not formatted'
    plant "long line" conformance/oracle/oracle.h "// $(repeat a 98)" \
        '^conformance/oracle/oracle.h:3: longer than 100'
    allow "100 characters, not bytes" conformance/oracle/oracle.h "// $(repeat é 97)"
    plant "unfinished" kmes/ring.c "// TO""DO: later" '^kmes/ring.c:3: unfinished'
    plant "unfinished in a document" README.md "FIX""ME" '^README.md:1: unfinished'
    allow "a longer word" README.md "mktemp XX""XX"
    plant "a conflict" README.md "<<""<<<<< HEAD" '^README.md:1: a conflict of a merge'
    plant "machine path" README.md "see /ro""ot/notes" '^README.md:1: a path of one machine'
    plant "machine path in a string" conformance/oracle/oracle.h "const char* p = \"/t""mp/x\";" \
        '^conformance/oracle/oracle.h:3: a path of one machine'
    # shellcheck disable=SC2016  # the text is planted as it stands
    allow "the folder for temporary files" README.md '${TMPDIR:-/t''mp}'
    settle
}

test_function_length() {
    local text first line=3
    fresh_tree
    for text in "$(function_of 71 longest)" \
        "$(function_of 71 'Foo::operator==')" \
        "namespace n {
$(function_of 71 inner)
}  // namespace n" \
        "Foo::Foo(int a) : a_{a}, b_(a)$(function_of 71 '' | sed '1s/.*/ {/')" \
        "auto pair() -> std::pair<int, int>$(function_of 71 '' | sed '1s/.*/ {/')"; do
        first=${text%%$'\n'*}
        line=3
        if [[ $first == namespace* ]]; then line=4; fi
        plant "a long function: $first" conformance/oracle/oracle.h "$text" \
            "^conformance/oracle/oracle.h:$line: a function of 71 lines"
    done
    allow "70 lines" conformance/oracle/oracle.h "$(function_of 70 just_right)"
    allow "two functions" conformance/oracle/oracle.h "$(function_of 60 one)
$(function_of 60 two)"
    allow "a long table is no function" conformance/oracle/oracle.h "const int table[] = {
$(for ((i = 0; i < 90; ++i)); do echo "    $((i + 1000)),  //"; done)
};"
    allow "braces in strings" conformance/oracle/oracle.h 'const char* s = "void f() {";
const char c = '"'{'"';
const int big = 1'"'"'000'"'"'000;
const char* raw = R"(x() { " {)";
'"$(function_of 69 after)"
    settle
}

test_license_rule() {
    fresh_tree
    sed -i 1d "$TREE/kmes/ring.c"
    expect_one "no license line" '^kmes/ring.c:1: no license line; .* GPL-2.0-only OR MIT'
    fresh_tree
    sed -i '1s/ OR MIT//' "$TREE/kmes/abi.h"
    expect_one "license of another folder" '^kmes/abi.h:1: license "GPL-2.0-only"; .*OR MIT'
    fresh_tree
    printf '%s\nobj-m := kmes.o\n' '# SPDX-License-Identifier: MIT' >"$TREE/kmod/Kbuild"
    expect_one "license of the module" '^kmod/Kbuild:1: license "MIT"; .*GPL-2.0-only$'
    fresh_tree
    : >"$TREE/kmes/empty.bzl"
    expect_one "empty file" '^kmes/empty.bzl:1: the file is empty'
    fresh_tree
    printf '#!/bin/sh\n# SPDX-License-Identifier: MIT\n' >"$TREE/run.sh"
    expect_silence "license behind the interpreter"
}

test_core_rules() {
    local word
    fresh_tree
    for word in 'int a = __atomic_load_n(&x, 5);' 'int b = __sync_fetch_and_add(&x, 1);' \
        'atomic_int c;' 'int d __asm__("d");' 'volatile int e;'; do
        plant "$word" kmes/ring.c "$word" '^kmes/ring.c:3: an ordered access in the open'
    done
    allow "atomics in the seam" kmes/order.h 'static volatile int seam;'
    allow "atomics in a comment" kmes/ring.c '// volatile, atomic_load and asm are words here'
    plant "platform switch" kmes/ring.c '#ifdef __KERNEL__
#endif' '^kmes/ring.c:3: the core knows no platform'
    plant "offset in figures" kmes/ring.c 'int sum = base + 132;' \
        '^kmes/ring.c:3: an offset in figures'
    plant "offset in hex" kmes/user/order_user.h 'int sum = base + 0x80u;' \
        '^kmes/user/order_user.h:3: an offset in figures'
    allow "other figures" kmes/ring.c 'int sum = base + 1280 + 6;'
    settle
    plant "ordered accesses by a header" kmes/ring.c '
#include <stdatomic.h>' \
        '^kmes/ring.c:4: an ordered access in the open'
    planted_names+=("which is not freestanding either")
    planted_patterns+=('^kmes/ring.c:4: the core is freestanding')
    for word in '__sync_synchronize();' '__asm__("");'; do
        plant "$word" kmes/ring.c $'\nvoid f(void) {\n    '"$word"$'\n}' \
            '^kmes/ring.c:5: an ordered access in the open'
    done
    settle
}

test_arrows() {
    fresh_tree
    plant "core includes a neighbour" kmes/ring.c '
#include "conformance/oracle/oracle.h"' \
        '^kmes/ring.c:4: kmes/ includes nothing from outside'
    plant "core includes the userspace half" kmes/ring.c '
#include "kmes/user/order_user.h"' \
        '^kmes/ring.c:4: the core does not know the userspace half'
    plant "core includes the system" kmes/ring.c '
#include <stdio.h>' \
        '^kmes/ring.c:4: the core is freestanding'
    allow "core includes what is freestanding" kmes/ring.c '
#include <stddef.h>'
    plant "oracle includes the reader" conformance/oracle/oracle.h '
#include "kmes/reader.h"' \
        '^conformance/oracle/oracle.h:4: the oracle does not use the core'
    plant "model includes a ring" conformance/model/case.h '
#include "kmes/ring.h"' \
        '^conformance/model/case.h:4: the oracle does not use the core'
    allow "oracle includes the format" conformance/oracle/oracle.h '
#include "kmes/abi.h"'
    settle
}

# drawn NAME LINES PATTERN: expects one violation of a tree whose list of includes has these lines.
drawn() {
    fresh_tree
    printf '## The folders of conformance\n\n%s\n' "$2" >"$TREE/ARCHITECTURE.md"
    expect_one "$1" "$3"
}

test_layers() {
    fresh_tree
    plant "a backward include" conformance/model/case.h '
#include "conformance/oracle/oracle.h"' \
        '^conformance/model/case.h:4: model/ does not include oracle/; .*: model  ->$'
    plant "a relative backward include" conformance/model/case.h '
#include "../oracle/oracle.h"' \
        '^conformance/model/case.h:4: model/ does not include oracle/'
    allow "an include in a comment" conformance/model/case.h '
// #include "conformance/oracle/oracle.h"'
    allow "an include of the same folder" conformance/oracle/judge.cc '
#include "./oracle.h"'
    settle
    drawn "a cycle" '    model  -> oracle
    oracle -> model' \
        '^ARCHITECTURE.md:3: the arrow model -> oracle does not point to an earlier line'
    drawn "an arrow to the folder itself" '    model  -> model
    oracle -> model' \
        '^ARCHITECTURE.md:3: the arrow model -> model does not point to an earlier line'
    fresh_tree
    printf '%s\n' "$MIT" >"$TREE/conformance/oracle/judge.cc"
    expect_one "an arrow without an include" \
        '^ARCHITECTURE.md:4: no file of oracle/ includes one of model/; remove the arrow'
    fresh_tree
    sed -i 's/ -> model$/ ->/' "$TREE/ARCHITECTURE.md"
    expect_one "an include that is not drawn" \
        '^conformance/oracle/judge.cc:3: oracle/ does not include model/; .*: oracle ->$'
    drawn "a folder that is not listed" '    model  ->' \
        '^conformance/oracle/judge.cc:1: conformance/oracle is not in the list of folders'
    drawn "a folder without sources" '    model  ->
    stage  ->
    oracle -> model' \
        '^ARCHITECTURE.md:4: conformance/stage has no sources; remove the line'
    drawn "a folder listed twice" '    model  ->
    oracle -> model
    oracle -> model' \
        '^ARCHITECTURE.md:5: oracle is listed twice; remove one line'
    fresh_tree
    rm "$TREE/ARCHITECTURE.md"
    expect_one "no list at all" '^ARCHITECTURE.md:1: missing'
}

# class_tree BODY [LIST]: makes a tree with a class Stage of this body, and a list of large classes.
class_tree() {
    fresh_tree
    mkdir -p "$TREE/conformance/stage" "$TREE/tools/check"
    printf '    stage  ->\n' >>"$TREE/ARCHITECTURE.md"
    printf '# SPDX-License-Identifier: MIT\nexports_files(["stage.h"])\n' \
        >"$TREE/conformance/stage/BUILD.bazel"
    printf '%s\nclass Stage {\n%s\n};\n' "$MIT" "$1" >"$TREE/conformance/stage/stage.h"
    if [ -n "${2-}" ]; then printf '%s\n' "$2" >"$TREE/tools/check/large_classes.txt"; fi
}

test_class_size() {
    local calls members others
    calls=$(printf '    int call%s(int a);\n' $(seq 25))
    members=$(printf '    std::function<void(int)> data%s_;\n' $(seq 20))
    others='    static constexpr int kMost = 3;
    enum class Kind { one, two };
    struct Nested {
        int value = 0;
    };
    using Number = int;'
    class_tree "  public:
    Stage(int a);
    ~Stage();
    Stage& operator=(const Stage&) = delete;
$calls

  private:
    int hidden(int a);
$others
$members"
    expect_silence "a class at the limits"
    class_tree "  public:
$calls
    bool one_more() const { return true; }"
    expect_one "a function too many" \
        '^conformance/stage/stage.h:2: Stage has 26 public functions; at most 25$'
    class_tree "$members
    Kind kind_{Kind::one};"
    expect_one "a data member too many" \
        '^conformance/stage/stage.h:2: Stage has 21 data members; at most 20$'
    class_tree "  public:
    int value = 0;"
    expect_one "public data" \
        '^conformance/stage/stage.h:2: Stage has 1 public data members; at most 0$'
    class_tree "$members
    int more_ = 0;" "Stage 0 21 0 Hang detection is part of it."
    expect_silence "a class of the list"
    class_tree "$members" "Stage 0 21 0 Hang detection is part of it."
    expect_one "a class that is smaller than the list says" \
        '^tools/check/large_classes.txt:1: Stage has only 0 public functions, 20 data members'
    class_tree "$members" "Rings 0 21 0 Every operation is part of it."
    expect_one "a class that was removed" \
        '^tools/check/large_classes.txt:1: there is no class Rings; remove the line$'
    class_tree "$members
    int more_ = 0;" "Stage 0 21 0"
    expect_one "a class without a reason" '^tools/check/large_classes.txt:1: no reason'
}

test_namespaces() {
    fresh_tree
    plant "a namespace for all" conformance/oracle/oracle.h 'using namespace std;' \
        '^conformance/oracle/oracle.h:3: a header does not open a namespace'
    allow "a namespace of one source" conformance/oracle/judge.cc 'using namespace std;'
    settle
}

test_build_rule() {
    fresh_tree
    printf '%s\n' "$BOTH_LICENSES" >"$TREE/kmes/dead.c"
    expect_one "dead file" '^kmes/dead.c:1: not in kmes/BUILD.bazel'
    fresh_tree
    printf '%s\n' "$BOTH_LICENSES" >"$TREE/kmes/ring_test.cc"
    echo '[cc_test(name = name, srcs = [name + ".cc"]) for name in ["ring_test"]]' \
        >>"$TREE/kmes/BUILD.bazel"
    expect_silence "a list of tests"
    fresh_tree
    mkdir "$TREE/props"
    printf '%s\n' "$MIT" >"$TREE/props/dead.cc"
    expect_one "folder without BUILD" '^props/dead.cc:1: no BUILD.bazel in props'
}

test_compilers() {
    fresh_tree
    plant "what clang refuses" conformance/oracle/oracle.h 'int f = std::stable_sort(a, b);' \
        '^conformance/oracle/oracle.h:3: clang calls'
    allow "what both take" conformance/oracle/oracle.h 'int f = std::sort(a, b);'
    allow "a remark on it" conformance/oracle/oracle.h '// std::stable_sort(a, b)'
    settle
}

# repeat_words COUNT: prints COUNT short words.
repeat_words() { printf 'word %.0s' $(seq "$1"); }

test_documents() {
    fresh_tree
    plant "a long line of two sentences" README.md "One. Two $(repeat_words 20)" \
        '^README.md:1: longer than 100 characters; break it, or write one sentence a line$'
    allow "one sentence a line" README.md "$(repeat_words 25)."
    allow "a row of a table" README.md "| One. $(repeat_words 25) | Two. |"
    allow "100 characters of text, not bytes" README.md "É. $(repeat é 97)"
    settle
}

test_sentence_length() {
    local half
    half=$(repeat_words 14)
    fresh_tree
    plant "a sentence of 28 words in two lines" README.md \
        "$(printf 'Short. %s\n%s.' "$half" "$half")" \
        '^README.md:1: a sentence of 28 words; at most 25: word word'
    {
        echo
        printf '%s\n%s.\n\n' "$(repeat_words 13)" "$(repeat_words 12)"
        printf '%s.\n*%s.* %s?\n' "$half" "$half" "$half"
        printf -- '- %s\n- %s\n\n' "$half" "$half"
        printf '| %s %s |\n\n' "$half" "$half"
        printf '%s%s\n%s%s\n\n' '`' "$half" "$half" '`'
        printf '    %s %s\n' "$half" "$half"
    } >>"$TREE/README.md"
    # 25 words, two sentences, two items, a row, a code span, and code are allowed.
    settle
}

test_words() {
    local word count=0
    fresh_tree
    while IFS= read -r word; do
        count=$((count + 3))
        echo "It says: ${word//_/}." >>"$TREE/README.md"
        echo "// It says: ${word//_/}." >>"$TREE/kmes/ring.c"
        echo "# It says: ${word//_/}." >>"$TREE/kmes/BUILD.bazel"
        echo "static const char text$count[] = \"${word//_/}\";" >>"$TREE/kmes/order.h"
    done <<'E2'
for noth_ing
in va_in
the d_eed
the so man_ieth
the l_ot
no mat_ter
a refused w_ait
held ag_ainst
it comes to st_and
in comp_any
a right consum_er
a wrong teste_e
a tear under its re_ad
E2
    echo 'An indeed vain lottery matters for nothingness.' >>"$TREE/README.md"
    check && fail "words: status 0"
    [ "$(grep -cE ': write this in other words \(.*\): .*It says' "$OUT")" -eq "$count" ] &&
        grep -q "^$count violations" "$OUT" || { fail "words: not $count lines" && cat "$OUT"; }
    reported=$failures
}

test_document_words() {
    local word count=0
    fresh_tree
    while IFS= read -r word; do
        count=$((count + 1))
        {
            echo "It says: ${word//_/}."
            echo "It says: \`${word//_/}\`."
            printf '\n    It says: %s.\n\n' "${word//_/}"
            printf '%s\n' '```' "It says: ${word//_/}." '```'
        } >>"$TREE/README.md"
        echo "// It says: ${word//_/}." >>"$TREE/kmes/ring.c"
    done <<'E2'
the page beh_ind it
it li_es there
it sta_nds below
it go_es on
who_ever reads
it begins an_ew
like_wise
mer_ely a page
E2
    echo 'It stands for a belief that underlies a page.' >>"$TREE/README.md"
    check && fail "words of documents: status 0"
    [ "$(grep -cE '^README.md:[0-9]+: write this in other words \(.*\): It says' "$OUT")" -eq \
        "$count" ] && grep -q "^$count violations" "$OUT" ||
        { fail "words of documents: not $count lines" && cat "$OUT"; }
    reported=$failures
}

test_sentences() {
    fresh_tree
    {
        echo "O""f a page one line. O""f a page one line."
        echo "- O""f a page one line."
        echo "The end o""f a page, o""f a line: it is seen."
    } >>"$TREE/README.md"
    {
        echo "// O""f a page one line."
        echo "// Short. Behi""nd an end one line."
        echo "// The end o""f a page, behi""nd a line."
    } >>"$TREE/kmes/ring.c"
    check && fail "sentences: status 0"
    [ "$(grep -cE ':[0-9]+: begin the sentence with its subject: ' "$OUT")" -eq 4 ] &&
        grep -q '^4 violations' "$OUT" || { fail "sentences: not 4 lines" && cat "$OUT"; }
    reported=$failures
}

# commit SUBJECT: makes an empty commit in TREE.
commit() {
    git -C "$TREE" -c user.name=a -c user.email=a@b -c core.hooksPath= commit -q --allow-empty \
        -m "$1"
}

test_commit_subjects() {
    command -v git >/dev/null || return 0
    fresh_tree
    git -C "$TREE" init -q -b main && git -C "$TREE" add -A && commit "core: add all"
    expect_silence "a subject of the right form"
    commit "the core has all"
    expect_one "no area" '^commit [0-9a-f]+: the subject is not `area: imperative and object`: the'
    commit "core: what is there is named"
    expect_one "no imperative" '^commit [0-9a-f]+: the subject does not begin with an imperative: '
    commit "core: add $(repeat a 63)"
    expect_one "a long subject" '^commit [0-9a-f]+: a subject of 73 characters; at most 72: '
    commit "core, user/socket: add $(repeat a 49)"
    expect_silence "on main the last commit counts alone"
    git -C "$TREE" checkout -q -b change
    commit "add the first"
    commit "core: add the second"
    expect_one "all commits that main does not have" '^commit [0-9a-f]+: .*: add the first$'
}

# api LINE...: writes and commits kmes/user/libkmes_api.txt.
api() {
    printf '    %s\n' "$@" >"$TREE/kmes/user/libkmes_api.txt"
    git -C "$TREE" add -A && commit "kmes/user: change the table"
}

test_library_symbols() {
    command -v git >/dev/null || return 0
    fresh_tree
    mkdir -p "$TREE/kmes/user"
    git -C "$TREE" init -q -b main
    api 'kmes_a KMES_0.20 kmes_a' 'kmes_b KMES_0.20 kmes_b' 'kmes_c - -'
    api 'kmes_d KMES_0.21 kmes_a' 'kmes_b   KMES_0.20 kmes_a' 'kmes_a KMES_0.20 kmes_a'
    expect_silence "lines that move, another page, and a function that was not exported"
    api 'kmes_d KMES_0.21 kmes_a' 'kmes_b KMES_0.20 kmes_a'
    commit "core: add more"
    expect_one "a removed symbol" 'libkmes_api.txt:1: kmes_a KMES_0.20 was removed; '
    api 'kmes_d KMES_0.22 kmes_a' 'kmes_b KMES_0.20 kmes_a' 'kmes_a KMES_0.20 kmes_a'
    expect_one "another version" 'libkmes_api.txt:1: kmes_d KMES_0.21 was removed; '
}

test_usage() {
    "$KMES" check --root "$TREE/none" >"$OUT" 2>&1
    [ $? -eq 2 ] || fail "a missing root: not status 2"
    "$KMES" check surplus >"$OUT" 2>&1
    [ $? -eq 2 ] || fail "a surplus argument: not status 2"
}

# A check of no files must not pass.
test_nothing_is_checked() {
    fresh_tree
    echo 'ThisIsNoKey: true' >>"$TREE/.clang-format"
    expect_one "clang-format reads nothing" '^.clang-format:1: clang-format-19 fails: '
    mkdir "$TREE/empty"
    "$KMES" check --root "$TREE/empty" >"$OUT" 2>&1
    [ $? -eq 3 ] || fail "a tree without a file: not status 3"
    grep -q 'cannot be listed, or there are none' "$OUT" || fail "a tree without a file: no line"
}

make_clean_tree
fresh_tree
expect_silence "the clean tree"
test_text_rules
test_function_length
test_license_rule
test_core_rules
test_arrows
test_layers
test_class_size
test_namespaces
test_build_rule
test_compilers
test_documents
test_words
test_document_words
test_sentence_length
test_sentences
test_commit_subjects
test_library_symbols
test_usage
test_nothing_is_checked
echo "$failures failures"
[ "$failures" -eq 0 ]
