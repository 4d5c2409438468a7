#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The test of the style rules. Each row below is a text for a small tree. A row `bad` breaks a rule,
# and the test expects the report of `tools/kmes check` with file, line and message. A row `good`
# only resembles a violation.
#
# The check runs once on a tree with all rows, and must print exactly the expected reports. It runs
# once on a tree with only the good rows, and must print none. test_history and test_bare_tree test
# what a row cannot say, such as a commit or a missing list.
set -uo pipefail

readonly KMES=$PWD/tools/kmes
readonly RULES=$PWD/tools/check/rules.sh
readonly OUT=$TEST_TMPDIR/out
readonly BOTH_LICENSES='/* SPDX-License-Identifier: GPL-2.0-only OR MIT */'
readonly MIT='// SPDX-License-Identifier: MIT'
readonly MIT_BUILD='# SPDX-License-Identifier: MIT'
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# The files of the trees `bad`, `good` and `bare`, and their numbers of lines, by TREE/FILE.
declare -A texts=() lines=()
# The reports that the next `expect_reports` expects: rule and name of the row, and the line.
expected_rows=()
expected_reports=()
# The rules that have a report.
declare -A rules_with_rows=()

# append TREE FILE TEXT: appends TEXT, after an empty line if FILE has text. Sets `before` to the
# number of lines before TEXT.
append() {
    local key=$1/$2 breaks=${3//[!$'\n']/}
    before=${lines[$key]-0}
    if [ "$before" -gt 0 ]; then
        texts[$key]+=$'\n'
        before=$((before + 1))
    fi
    texts[$key]+=${3:+$3$'\n'}
    lines[$key]=$((before + ${#breaks} + 1))
}

# report RULE NAME LINE: expects one line of the next check. LINE is a glob pattern for all of it.
report() {
    rules_with_rows[$1]=1
    expected_rows+=("rule_$1: $2")
    expected_reports+=("$3")
}

# bad RULE NAME FILE TEXT REPORT: appends TEXT to FILE of the bad tree, and expects one report.
# REPORT is `N: MESSAGE`: line N of TEXT, and a glob pattern for the whole message.
bad() {
    append bad "$3" "$4"
    bad_file=$3
    bad_before=$before
    also "$1" "$2" "$5"
}

# also RULE NAME REPORT: expects one more report for the text of the last row.
also() {
    report "$1" "$2" "$bad_file:$((bad_before + ${3%%:*})):${3#*:}"
}

# good RULE NAME FILE TEXT: appends TEXT, which RULE must not report, to FILE of both trees.
good() {
    append good "$3" "$4"
    append bad "$3" "$4"
}

# with FILE TEXT: appends TEXT, which the next bad row needs, to FILE of the bad tree.
with() {
    append bad "$1" "$2"
}

# clean FILE TEXT: appends TEXT to FILE of all trees.
clean() {
    append bare "$1" "$2"
    append good "$1" "$2"
    append bad "$1" "$2"
}

# write_tree TREE: writes its files.
write_tree() {
    local key
    for key in "${!texts[@]}"; do
        [[ $key == "$1"/* ]] || continue
        [ -d "$TEST_TMPDIR/${key%/*}" ] || mkdir -p "$TEST_TMPDIR/${key%/*}"
        printf '%s' "${texts[$key]}" >"$TEST_TMPDIR/$key"
    done
}

# expect_reports TREE: expects that the check of TREE prints the expected reports and no other line.
expect_reports() {
    local i printed status line before=$failures count=${#expected_reports[@]}
    "$KMES" check --root "$TEST_TMPDIR/$1" >"$OUT" 2>&1
    status=$?
    [ "$status" -eq 1 ] || fail "$1 tree: exit status $status, not 1"
    mapfile -t printed <"$OUT"
    expected_rows+=("the number of reports")
    expected_reports+=("$count violations of the style rules (docs/style-rules.md)")
    for i in "${!expected_reports[@]}"; do
        for line in "${!printed[@]}"; do
            # shellcheck disable=SC2053  # a pattern
            [[ ${printed[line]} == ${expected_reports[i]} ]] || continue
            unset "printed[line]"
            continue 2
        done
        fail "$1 tree: ${expected_rows[i]}: no line: ${expected_reports[i]}"
    done
    for line in ${printed[@]+"${printed[@]}"}; do fail "$1 tree: unexpected: $line"; done
    [ "$failures" -eq "$before" ] || cat "$OUT"
    expected_rows=()
    expected_reports=()
}

# expect_no_report TREE: expects that the check of TREE passes, and that it checks all files.
expect_no_report() {
    local key files=0
    for key in "${!texts[@]}"; do [[ $key != "$1"/* ]] || files=$((files + 1)); done
    "$KMES" check --root "$TEST_TMPDIR/$1" >"$OUT" 2>&1 || fail "$1 tree: exit status $?, not 0"
    [ "$(grep -v '^# without clang-tidy' "$OUT")" = "style: $files files, no violations" ] ||
        { fail "$1 tree: not one line: style: $files files, no violations" && cat "$OUT"; }
}

# Every rule has a report, and every report has a rule.
expect_all_rules() {
    local rule
    while IFS= read -r rule; do
        [ -n "${rules_with_rows[$rule]-}" ] || fail "rule_$rule: no row breaks it"
        unset "rules_with_rows[$rule]"
    done < <(sed -nE 's/^rule_([a-z_]+)\(\) .*/\1/p' "$RULES")
    for rule in "${!rules_with_rows[@]}"; do fail "rule_$rule: rules.sh does not have it"; done
}

# repeat TEXT COUNT: prints TEXT COUNT times.
repeat() {
    local spaces
    printf -v spaces '%*s' "$2" ''
    printf '%s' "${spaces// /$1}"
}

# function_of LINES [HEAD]: prints a function with this number of lines, head and braces included.
function_of() {
    local i
    printf '%s {\n' "$2"
    for ((i = 0; i < $1 - 2; ++i)); do printf '    f(%s);\n' "$i"; done
    echo "}"
}

clean_rows() {
    clean .clang-format "$(<.clang-format)"
    clean kmes/abi.h "$BOTH_LICENSES
int abi(int base);"
    clean kmes/order.h "$BOTH_LICENSES
#include \"kmes/user/order_user.h\""
    clean kmes/user/order_user.h "$BOTH_LICENSES
static volatile int order;"
    clean kmes/ring.c "$BOTH_LICENSES
#include \"kmes/abi.h\""
    clean kmes/BUILD.bazel '# SPDX-License-Identifier: GPL-2.0-only OR MIT
exports_files(["abi.h", "order.h", "ring.c", "user/order_user.h"])'
    clean conformance/model/case.h "$MIT
int model();"
    clean conformance/model/BUILD.bazel "$MIT_BUILD
exports_files([\"case.h\"])"
    clean conformance/oracle/oracle.h "$MIT
int oracle();"
    clean conformance/oracle/judge.cc "$MIT

#include \"conformance/model/case.h\""
    clean conformance/oracle/BUILD.bazel "$MIT_BUILD
exports_files([\"oracle.h\", \"judge.cc\"])"
    clean ARCHITECTURE.md '## The folders of conformance

    model  ->
    oracle -> model'
}

text_rows() {
    bad formatted "two spaces" kmes/spaces.c "$BOTH_LICENSES
int  two_spaces;" '2: not formatted; tools/kmes fmt does it'
    with kmes/BUILD.bazel 'exports_files(["spaces.c"])'
    bad line_length "101 characters" conformance/oracle/oracle.h "// $(repeat a 98)" \
        '1: longer than 100 characters; break it'
    good line_length "100 characters, not bytes" conformance/oracle/oracle.h "// $(repeat é 97)"
    good line_length "options of Bazel" .bazelrc "$MIT_BUILD
build --copt=$(repeat a 100)"
    bad unfinished "in code" kmes/ring.c "// TO""DO: later" '1: unfinished; *'
    bad unfinished "in a document" README.md "FIX""ME" '1: unfinished; *'
    bad unfinished "in a file whose name has a space" 'docs/two words.md' "FIX""ME" \
        '1: unfinished; *'
    good unfinished "in the text of a license" LICENSES/MIT.txt "FIX""ME"
    good unfinished "a longer word" README.md "mktemp XX""XX"
    bad conflict_marks "the upper mark" README.md "<<""<<<<< HEAD" '1: a conflict of a merge: *'
    bad conflict_marks "the lower mark" README.md ">>"">>>>> main" '1: a conflict of a merge: *'
    bad machine_paths "in a document" README.md "see /ro""ot/notes" '1: a path of one machine; *'
    bad machine_paths "in a string" conformance/oracle/oracle.h "const char* p = \"/t""mp/x\";" \
        '1: a path of one machine; *'
    # shellcheck disable=SC2016  # the text has it in this form
    good machine_paths "the folder for temporary files" README.md '${TMPDIR:-/t''mp}'
    # shellcheck disable=SC2016
    good machine_paths "a folder of another folder" README.md 'build/tmp/x and ${BUILD}/work/x'
}

function_length_rows() {
    local head
    for head in 'void longest()' 'void Foo::operator==()' 'Foo& Foo::operator=(const Foo& other)' \
        'Foo::Foo(int a) : a_{a}, b_(a)' 'auto pair() -> std::pair<int, int>'; do
        bad function_length "$head" conformance/oracle/oracle.h "$(function_of 71 "$head")" \
            '1: a function of 71 lines; at most 70, so give a part of it a name'
    done
    bad function_length "in a namespace" conformance/oracle/oracle.h "namespace n {
$(function_of 71 'void inner()')
}  // namespace n" '2: a function of 71 lines; *'
    good function_length "70 lines" conformance/oracle/oracle.h "$(function_of 70 'void right()')"
    good function_length "two functions" conformance/oracle/oracle.h "$(function_of 60 'void one()')
$(function_of 60 'void two()')"
    good function_length "a long table" conformance/oracle/oracle.h "const int table[] = {
$(for ((i = 0; i < 90; ++i)); do echo "    $((i + 1000)),  //"; done)
};"
    good function_length "braces in strings" conformance/oracle/oracle.h \
        'const char* s = "void f() {";
const char c = '"'{'"';
const int big = 1'"'"'000'"'"'000;
const char* raw = R"(x() { " {)";
'"$(function_of 69 'void after()')"
}

license_rows() {
    bad license "none" kmes/no_license.c 'int no_license;' \
        '1: no license line; SPDX-License-Identifier: GPL-2.0-only OR MIT'
    bad license "of another folder" kmes/license.h '/* SPDX-License-Identifier: GPL-2.0-only */' \
        '1: license "GPL-2.0-only"; this folder has: GPL-2.0-only OR MIT'
    with kmes/BUILD.bazel 'exports_files(["no_license.c", "license.h"])'
    bad license "of the module" kmod/Kbuild "$MIT_BUILD
obj-m := kmes.o" '1: license "MIT"; this folder has: GPL-2.0-only'
    bad license "of an empty file" kmes/empty.bzl '' '1: the file is empty; remove it'
    good license "after the interpreter" run.sh "#!/bin/sh
$MIT_BUILD"
}

core_rows() {
    local text
    for text in 'int a = __atomic_load_n(&x, 5);' 'int b = __sync_fetch_and_add(&x, 1);' \
        'atomic_int c;' 'int d __asm__("d");' 'volatile int e;'; do
        bad ordered_access "$text" kmes/ring.c "$text" '1: an ordered access in the open; *'
    done
    for text in '__sync_synchronize();' '__asm__("");'; do
        bad ordered_access "$text" kmes/ring.c "void f(void) {
    $text
}" '2: an ordered access in the open; *'
    done
    bad ordered_access "by a header" kmes/ring.c '#include <stdatomic.h>' \
        '1: an ordered access in the open; *'
    also core_includes "by a header" '1: the core is freestanding; *'
    good ordered_access "in the seam" kmes/order.h 'static volatile int seam;'
    good ordered_access "in a comment" kmes/ring.c '// volatile, atomic_load and asm are words here'
    good ordered_access "in a string" kmes/ring.c 'const char* words = "volatile";'
    bad kernel_switch "in the core" kmes/ring.c '#ifdef __KERNEL__
#endif' '1: the core knows no platform; *'
    bad offsets "decimal" kmes/ring.c 'int sum = base + 132;' '1: an offset in figures; *'
    bad offsets "hexadecimal" kmes/user/order_user.h 'int sum = base + 0x80u;' \
        '1: an offset in figures; *'
    good offsets "other numbers" kmes/ring.c 'int other_sum = base + 1280 + 6;'
}

include_rows() {
    bad core_includes "a neighbour" kmes/ring.c '#include "conformance/oracle/oracle.h"' \
        '1: kmes/ includes nothing from outside of kmes/: *'
    bad core_includes "the userspace half" kmes/ring.c '#include "kmes/user/order_user.h"' \
        '1: the core does not know the userspace half; *'
    bad core_includes "the system" kmes/ring.c '#include <stdio.h>' \
        '1: the core is freestanding; *'
    good core_includes "a freestanding header" kmes/ring.c '#include <stddef.h>'
    bad oracle_includes "the reader" conformance/oracle/oracle.h '#include "kmes/reader.h"' \
        '1: the oracle does not use the core; *'
    bad oracle_includes "a ring" conformance/model/case.h '#include "kmes/ring.h"' \
        '1: the oracle does not use the core; *'
    good oracle_includes "the format" conformance/oracle/oracle.h '#include "kmes/abi.h"'
    bad guards_in_play "of the metadata" conformance/oracle/judge.cc \
        'auto guard_f = stage.guards().guard(0);' '1: only conformance/play/ installs *'
    bad guards_in_play "of the data" conformance/oracle/judge.cc \
        'auto guard_g = stage.guards().guard_data();' '1: only conformance/play/ installs *'
    good guards_in_play "in a folder that may" conformance/model/case.h \
        'auto guard_h = stage.guards().guard(0);'
    good guards_in_play "released" conformance/oracle/judge.cc 'auto guard_i = guards().release();'
    bad using_namespace "in a header" conformance/oracle/oracle.h 'using namespace std;' \
        '1: a header does not open a namespace for all who include it; *'
    good using_namespace "in a source" conformance/oracle/judge.cc 'using namespace std;'
    bad every_compiler "std::stable_sort" conformance/oracle/oracle.h \
        'int f = std::stable_sort(a, b);' '1: clang calls what it uses deprecated; *'
    good every_compiler "std::sort" conformance/oracle/oracle.h 'int g = std::sort(a, b);'
    good every_compiler "in a raw string" conformance/oracle/oracle.h \
        'const char* h = R"x(" std::stable_sort(a, b) ")x";'
    good every_compiler "in a comment" conformance/oracle/oracle.h '// std::stable_sort(a, b)'
}

# folder NAME [CODE]: adds conformance/NAME with one header to the bad tree.
folder() {
    with "conformance/$1/$1.h" "$MIT
${2:-int $1();}"
    with conformance/BUILD.bazel "exports_files([\"$1/$1.h\"])"
}

layer_rows() {
    local include='#include "conformance/model/case.h"'
    with conformance/BUILD.bazel "$MIT_BUILD"
    bad conformance_layers "a backward include" conformance/model/case.h \
        '#include "conformance/oracle/oracle.h"' \
        '1: model/ does not include oracle/; ARCHITECTURE.md lists what it includes: model  ->'
    bad conformance_layers "a relative backward include" conformance/model/case.h \
        '#include "../oracle/oracle.h"' '1: model/ does not include oracle/; *'
    good conformance_layers "an include in a comment" conformance/model/case.h \
        '// #include "conformance/oracle/oracle.h"'
    good conformance_layers "an include of the same folder" conformance/oracle/judge.cc \
        '#include "./oracle.h"'
    folder low
    folder high
    bad conformance_layers "a cycle" ARCHITECTURE.md '    low  -> high
    high ->' '1: the arrow low -> high does not point to an earlier line; *'
    folder self
    bad conformance_layers "an arrow to the folder itself" ARCHITECTURE.md '    self -> self' \
        '1: the arrow self -> self does not point to an earlier line; *'
    folder unused
    bad conformance_layers "an arrow without an include" ARCHITECTURE.md '    unused -> model' \
        '1: no file of unused/ includes one of model/; remove the arrow'
    with ARCHITECTURE.md '    not_drawn ->'
    with conformance/BUILD.bazel 'exports_files(["not_drawn/a.h"])'
    bad conformance_layers "an include that is not drawn" conformance/not_drawn/a.h "$MIT
$include" '2: not_drawn/ does not include model/; *: not_drawn ->'
    with conformance/BUILD.bazel 'exports_files(["not_listed/a.h"])'
    bad conformance_layers "a folder that is not listed" conformance/not_listed/a.h "$MIT
$include" '1: conformance/not_listed is not in the list of folders in ARCHITECTURE.md; *'
    bad conformance_layers "a folder without sources" ARCHITECTURE.md '    empty ->' \
        '1: conformance/empty has no sources; remove the line'
    bad conformance_layers "a folder listed twice" ARCHITECTURE.md '    oracle -> model' \
        '1: oracle is listed twice; remove one line'
}

# class NAME BODY: prints a class.
class() {
    printf 'class %s {\n%s\n};\n' "$1" "$2"
}

class_rows() {
    local calls members header=conformance/stage/stage.h list=tools/check/large_classes.txt
    calls=$(printf '    int call%s(int a);\n' $(seq 25))
    members=$(printf '    std::function<void(int)> data%s_;\n' $(seq 20))
    good class_size "the folder" ARCHITECTURE.md '    stage  ->'
    good class_size "the build file" conformance/stage/BUILD.bazel "$MIT_BUILD
exports_files([\"stage.h\"])"
    good class_size "at the limits" $header "$MIT
$(class Stage "  public:
    Stage(int a);
    ~Stage();
    Stage& operator=(const Stage&) = delete;
$calls

  private:
    int hidden(int a);
    static constexpr int kMost = 3;
    enum class Kind { one, two };
    struct Nested {
        int value = 0;
    };
    using Number = int;
$members")"
    bad class_size "a function too many" $header "$(class Busy "  public:
$calls
    bool one_more() const { return true; }")" '1: Busy has 26 public functions; at most 25'
    bad class_size "a data member too many" $header "$(class Heavy "$members
    Kind kind_{Kind::one};")" '1: Heavy has 21 data members; at most 20'
    bad class_size "public data" $header "$(class Open "  public:
    int value = 0;")" '1: Open has 1 public data members; at most 0'
    good class_size "a listed class" $header "$(class Listed "$members
    int more_ = 0;")"
    good class_size "a listed class" $list "Listed 0 21 0 Hang detection is part of it."
    with $header "$(class Smaller "$members")"
    bad class_size "a class that is smaller than its line" $list \
        "Smaller 0 21 0 Hang detection is part of it." \
        '1: Smaller has only 0 public functions, 20 data members and 0 public ones; *'
    bad class_size "a class that was removed" $list "Rings 0 21 0 Every operation is part of it." \
        '1: there is no class Rings; remove the line'
    with $header "$(class Unexplained "$members
    int more_ = 0;")"
    bad class_size "a line without a reason" $list "Unexplained 0 21 0" '1: no reason; *'
}

build_rows() {
    bad in_build_file "a dead file" kmes/dead.c "$BOTH_LICENSES" \
        '1: not in kmes/BUILD.bazel; name it there, or remove it'
    bad in_build_file "a folder without a build file" props/dead.cc "$MIT" \
        '1: no BUILD.bazel in props; write one for it'
    good in_build_file "a list of tests" kmes/ring_test.cc "$BOTH_LICENSES"
    good in_build_file "a list of tests" kmes/BUILD.bazel \
        '[cc_test(name = name, srcs = [name + ".cc"]) for name in ["ring_test"]]'
}

document_rows() {
    bad document_lines "a long line of two sentences" README.md "One. Two $(repeat 'word ' 20)" \
        '1: longer than 100 characters; break it, or write one sentence a line'
    good document_lines "one sentence a line" README.md "$(repeat 'word ' 25)."
    good document_lines "a row of a table" README.md "| One. Two $(repeat 'word ' 22) | Two. |"
    good document_lines "100 characters, not bytes" README.md "É. $(repeat é 97)"
}

sentence_length_rows() {
    local half
    half=$(repeat 'word ' 13)word
    bad sentence_length "28 words in two lines" README.md "Short. $half
$half." '1: a sentence of 28 words; at most 25: word *'
    good sentence_length "25 words" README.md "$(repeat 'word ' 13)
$(repeat 'word ' 12)."
    good sentence_length "sentences" README.md "$half.
*$half.* $half?"
    good sentence_length "items" README.md "- $half
- $half"
    good sentence_length "a row of a table" README.md "| $half $half |"
    good sentence_length "a code span" README.md "\`$half
$half\`"
    good sentence_length "code" README.md "    $half $half"
}

word_rows() {
    local text
    while IFS= read -r text; do
        bad words "$text" README.md "It says: $text." \
            "1: write this in other words (*): It says: $text."
        bad words "$text" kmes/ring.c "// It says: $text." \
            "1: write this in other words (*): // It says: $text."
        bad words "$text" kmes/BUILD.bazel "# It says: $text." \
            "1: write this in other words (*): # It says: $text."
        good words "$text" kmes/order.h "static const char text_${text// /_}[] = \"$text\";"
    done <<'TEXTS'
for nothing
in vain
the deed
the so manieth
the lot
no matter
a refused wait
held against
it comes to stand
it is by name only
in company
a right consumer
a wrong testee
a tear under its read
TEXTS
    good words "longer words" README.md 'An indeed vain lottery matters for nothingness.'
}

document_word_rows() {
    local text
    while IFS= read -r text; do
        bad document_words "$text" README.md "It says: $text." \
            "1: write this in other words (*): It says: $text."
        good document_words "a code span" README.md "It says: \`$text\`."
        good document_words "code" README.md "    It says: $text."
        good document_words "a code block" README.md "\`\`\`
It says: $text.
\`\`\`"
        good document_words "a comment" kmes/ring.c "// It says: $text."
    done <<'TEXTS'
the page behind it
it lies there
it stands below
it goes on
whoever reads
it begins anew
likewise
merely a page
TEXTS
    good document_words "longer words" README.md 'It stands for a belief that underlies a page.'
}

sentence_rows() {
    local report='1: begin the sentence with its subject: *'
    bad sentences "two in a line" README.md 'Of a page one line. Of a page one line.' "$report"
    bad sentences "an item" README.md '- Of a page one line.' "$report"
    bad sentences "a comment" kmes/ring.c '// Of a page one line.' "$report"
    bad sentences "the second sentence" kmes/ring.c '// Short. Behind an end one line.' "$report"
    bad sentences "a build file" kmes/BUILD.bazel '#'' Of a page one line.' "$report"
    good sentences "a title" README.md 'The title is "Of a page".'
    good sentences "within a sentence" README.md 'The end of a page, of a line: it is seen.'
    good sentences "within a comment" kmes/ring.c '// The end of a page, behind a line.'
}

library_symbol_rows() {
    good library_symbols "the first table" kmes/user/libkmes_api.txt '    kmes_a KMES_0.20 kmes_a
    kmes_b KMES_0.20 kmes_b
    kmes_c - -'
}

# commit TREE SUBJECT: commits all files.
commit() {
    git -C "$TEST_TMPDIR/$1" add -A && git -C "$TEST_TMPDIR/$1" -c user.name=a -c user.email=a@b \
        -c core.hooksPath= commit -q --allow-empty -m "$2"
}

# api LINE...: writes and commits kmes/user/libkmes_api.txt of the good tree.
api() {
    printf '    %s\n' "$@" >"$TEST_TMPDIR/good/kmes/user/libkmes_api.txt"
    commit good "kmes/user: change the table"
}

# The good tree as a clone: first on main, where only the last commit counts, and then on a branch.
test_history() {
    git -C "$TEST_TMPDIR/good" init -q -b main
    commit good "kmes/user: add the table"
    # The lines move, one names another page, and kmes_c was never exported.
    api 'kmes_d KMES_0.21 kmes_a' 'kmes_b   KMES_0.20 kmes_a' 'kmes_a KMES_0.20 kmes_a'
    commit good "the core has all"
    commit good "core, user/socket: add $(repeat a 49)"
    expect_no_report good

    git -C "$TEST_TMPDIR/good" checkout -q -b change
    api 'kmes_d KMES_0.21 kmes_a' 'kmes_a KMES_0.20 kmes_a'
    api 'kmes_d KMES_0.22 kmes_a' 'kmes_b KMES_0.20 kmes_a'
    report library_symbols "a removed symbol" \
        'kmes/user/libkmes_api.txt:1: kmes_a KMES_0.20 was removed; *'
    report library_symbols "another version" \
        'kmes/user/libkmes_api.txt:1: kmes_d KMES_0.21 was removed; *'
    commit good "add the first"
    # shellcheck disable=SC2016  # the message has this form
    report commit_subjects "no area" \
        'commit +([0-9a-f]): the subject is not `area: imperative and object`: add the first'
    commit good "core: what is there is named"
    report commit_subjects "no imperative" \
        'commit +([0-9a-f]): the subject does not begin with an imperative: core: what is *'
    commit good "core: add $(repeat a 63)"
    report commit_subjects "73 characters" \
        'commit +([0-9a-f]): a subject of 73 characters; at most 72: core: add a*'
    commit good "core: add the last"
    expect_reports good
}

# The clean tree without its lists, with a .clang-format that clang-format refuses, and with a
# faulty last commit on main.
test_bare_tree() {
    unset 'texts[bare/ARCHITECTURE.md]'
    report conformance_layers "no list" 'ARCHITECTURE.md:1: missing; *'
    append bare .clang-format 'ThisIsNoKey: true'
    report formatted "clang-format reads nothing" '.clang-format:1: clang-format-19 fails: *'
    append bare conformance/stage/BUILD.bazel "$MIT_BUILD
exports_files([\"stage.h\"])"
    append bare conformance/stage/stage.h "$MIT
$(class Open '  public:
    int value = 0;')"
    report class_size "no list of large classes" \
        'conformance/stage/stage.h:2: Open has 1 public data members; at most 0'
    write_tree bare
    if command -v git >/dev/null; then
        git -C "$TEST_TMPDIR/bare" init -q -b main
        commit bare "the core has all"
        commit bare "core has more"
        report commit_subjects "the last commit on main" \
            'commit +([0-9a-f]): the subject is not *: core has more'
    fi
    expect_reports bare
}

test_usage() {
    "$KMES" check --root "$TEST_TMPDIR/none" >"$OUT" 2>&1
    [ $? -eq 2 ] || fail "a missing root: not status 2"
    "$KMES" check surplus >"$OUT" 2>&1
    [ $? -eq 2 ] || fail "a surplus argument: not status 2"
    # A check of no files must not pass.
    mkdir "$TEST_TMPDIR/empty"
    "$KMES" check --root "$TEST_TMPDIR/empty" >"$OUT" 2>&1
    [ $? -eq 3 ] || fail "a tree without a file: not status 3"
    grep -q 'cannot be listed, or there are none' "$OUT" || fail "a tree without a file: no line"
}

clean_rows
text_rows
function_length_rows
license_rows
core_rows
include_rows
layer_rows
class_rows
build_rows
document_rows
sentence_length_rows
word_rows
document_word_rows
sentence_rows
library_symbol_rows
write_tree bad
expect_reports bad
write_tree good
if command -v git >/dev/null; then
    test_history
else
    expect_no_report good
    rules_with_rows[commit_subjects]=1 rules_with_rows[library_symbols]=1
fi
test_bare_tree
test_usage
expect_all_rules
echo "$failures failures"
[ "$failures" -eq 0 ]
