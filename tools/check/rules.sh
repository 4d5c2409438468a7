# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The style rules, each a function that prints one line for each violation. They run at the top of
# the checked tree, with `files` from tools/lib/check.sh. $KMES_SCRATCH/code has all C and C++ code
# as `file:line:code`, without comments and strings. Patterns are written in a form that they do not
# match themselves.

readonly C_FILES='\.(c|h|cc|cpp|hpp)$'
readonly COMMAND_FILES='(^|/)WORKSPACE$|^tools/kmes$|^\.ci/run$'
readonly CODE_FILES="\\.(c|h|cc|cpp|hpp|py|rs|go|sh|awk|bzl|bazel|bazelrc)\$|$COMMAND_FILES"
readonly LICENSE_TEXTS='^(LICENSES/|LICENSE$)'
readonly CORE='^kmes/[^/:]*\.[ch]:'
readonly SEAM='^kmes/(order|platform)\.h:'

all_rules() {
    grep -vE -- "$LICENSE_TEXTS" "$KMES_SCRATCH/files" >"$KMES_SCRATCH/own_files"
    rule_formatted
    rule_line_length
    rule_function_length
    rule_license
    rule_ordered_access
    rule_kernel_switch
    rule_offsets
    rule_core_includes
    rule_oracle_includes
    rule_guards_in_play
    rule_conformance_layers
    rule_class_size
    rule_using_namespace
    rule_every_compiler
    rule_in_build_file
    rule_unfinished
    rule_conflict_marks
    rule_machine_paths
    rule_document_lines
    rule_words
    rule_document_words
    rule_sentences
    rule_sentence_length
    rule_commit_subjects
    rule_library_symbols
}

# code PATTERN WHERE [NOT_WHERE]: prints lines of code that match, as `file:line:code`. WHERE and
# NOT_WHERE are patterns for the whole line.
code() {
    local pattern="^[^:]*:[0-9]*:.*($1)"
    if [ $# -gt 2 ]; then
        grep -E -- "$2" "$KMES_SCRATCH/code" | grep -vE -- "$3" | grep -E -- "$pattern"
    else
        grep -E -- "$2" "$KMES_SCRATCH/code" | grep -E -- "$pattern"
    fi
}

# say TEXT: prints each `file:line:code` of the input as `file:line: TEXT: code`.
say() {
    sed -E "s|^([^:]*:[0-9]+):[[:space:]]*(.*)$|\1: $1: \2|"
}

# on_files COMMAND...: runs COMMAND with the names of the standard input as arguments.
on_files() {
    xargs -d '\n' -r "$@"
}

# own_files PATTERN: prints the names that match, except license texts.
own_files() {
    grep -E -- "$1" "$KMES_SCRATCH/own_files"
}

# text_lines PATTERN: prints lines of text files that match, as `file:line:text`, except license
# texts.
text_lines() {
    own_files . | on_files grep -InHE -e "$1" --
}

rule_formatted() {
    if ! command -v "$CLANG_FORMAT" >/dev/null; then
        echo ".clang-format:1: $CLANG_FORMAT is missing; tools/kmes setup installs it"
        return
    fi
    local said=$KMES_SCRATCH/formatted status=0 found
    local words='not formatted; tools/kmes fmt does it'
    files "$C_FILES" | on_files "$CLANG_FORMAT" --dry-run --Werror -- >"$said" 2>&1 || status=$?
    found=$(sed -nE "s|^([^:]+:[0-9]+):.*clang-format.*|\1: $words|p" "$said" |
        sort -t: -u -k1,1)
    if [ -n "$found" ]; then
        printf '%s\n' "$found"
    elif [ "$status" -ne 0 ] && [ -s "$said" ]; then
        # clang-format could not read its configuration or the files.
        printf '.clang-format:1: %s fails: %s\n' "$CLANG_FORMAT" "$(head -n 1 -- "$said")"
    fi
}

rule_line_length() {
    files "$CODE_FILES" | grep -v '\.bazelrc$' | LC_ALL=C.UTF-8 on_files grep -nHE '^.{101,}$' -- |
        sed -E 's|^([^:]*:[0-9]+):.*|\1: longer than 100 characters; break it|'
}

rule_function_length() {
    LC_ALL=C awk -f "$KMES_ROOT/tools/check/functions.awk" "$KMES_SCRATCH/code"
}

# The license of a file by its folder (LICENSE), in its first line. It is in the second if `#!` or
# another line must be the first.
rule_license() {
    own_files . | on_files awk -v code_files="$CODE_FILES" '
        function right_one() {
            if (file ~ /^kmes\//) return "GPL-2.0-only OR MIT"
            if (file ~ /^kmod\/uapi\//) return "GPL-2.0 WITH Linux-syscall-note"
            return file ~ /^kmod\// ? "GPL-2.0-only" : "MIT"
        }
        function judge() {
            if (said == "" && file ~ code_files)
                print file ":1: no license line; SPDX-License-Identifier: " right_one()
            else if (said != "" && said != right_one())
                print file ":" said_line ": license \"" said "\"; this folder has: " right_one()
        }
        FNR == 1 { if (file != "") judge(); file = FILENAME; said = "" }
        FNR <= 2 && said == "" && /SPDX-License-Identifier: / {
            said = $0
            sub(/.*SPDX-License-Identifier: */, "", said)
            sub(/ *(\*\/|-->)? *$/, "", said)
            said_line = FNR
        }
        FNR == 2 { nextfile }
        END { if (file != "") judge() }'
    # awk prints nothing for an empty file.
    files "$CODE_FILES" | while IFS= read -r file; do
        [ -s "$file" ] || echo "$file:1: the file is empty; remove it"
    done
}

# Every ordered access goes through a named accessor of kmes/order.h.
rule_ordered_access() {
    local words='\<__atomic_|\<__sync_|\<atomic_|<atomic>|<stdatomic\.h>|std::atomic'
    code "$words|\<(__)?asm(__)?\>|\<(__)?volatile(__)?\>" "$CORE" "$SEAM" |
        say 'an ordered access in the open; use the accessors of kmes/order.h'
}

rule_kernel_switch() {
    code '\<__KERNEL__\>' '^kmes/' '^kmes/(order|platform|types)\.h:' |
        say 'the core knows no platform; kmes/order.h, platform.h and types.h do'
}

# Only kmes/abi.h has the offsets of the metadata page (5.1.6). The rule finds numbers that are
# added to something and equal the offset of a field or of the data region. Tests are left out,
# because they write bytes by hand.
rule_offsets() {
    local numbers='64|72|80|128|132|133|4096|0x40|0x48|0x50|0x80|0x84|0x85|0x1000'
    code "\\+ *($numbers)[uUlL]*(\$|[^0-9a-zA-Z.])" '^kmes/' '^kmes/(abi\.h|[^:]*_test\.cc):' |
        say 'an offset in figures; the name in kmes/abi.h says it'
}

# Arrows of the tree: the core includes only itself, and the userspace half only through the seam.
# The kernel half of the seam is in kmod/, which the module's build puts on the include path.
rule_core_includes() {
    local freestanding='stdalign|stdarg|stdbool|stddef|stdint|stdnoreturn|limits'
    code '# *include *"' '^kmes/' | grep -vE '# *include *"(kmes/|(order|platform)_kernel\.h")' |
        say 'kmes/ includes nothing from outside of kmes/'
    code '# *include *"kmes/user/' "$CORE" "$SEAM" |
        say 'the core does not know the userspace half; only kmes/order.h and platform.h choose it'
    code '# *include *<' "$CORE" "$SEAM|^kmes/types\\.h:" |
        grep -vE "# *include *<(($freestanding)\\.h|linux/types\\.h)>" |
        say 'the core is freestanding; kmes/types.h has what it takes from the system'
}

# The oracle and its model share no code with the core, so that they do not share its mistakes.
rule_oracle_includes() {
    local core='producer|swap|consumer|ring|reader|reader_parts|buffer|index|user/[^"]*'
    code "# *include *\"kmes/($core)(\\.h)?\"" '^conformance/(oracle|model)/' |
        say 'the oracle does not use the core; it is written from the specification'
}

# The folders of conformance/ include each other as ARCHITECTURE.md lists them, and never upwards.
rule_conformance_layers() {
    if ! grep -q '^conformance/[^/]*/' "$KMES_SCRATCH/code"; then return; fi
    if [ ! -f ARCHITECTURE.md ]; then
        echo "ARCHITECTURE.md:1: missing; it lists the folders of conformance and their includes"
        return
    fi
    LC_ALL=C awk -f "$KMES_ROOT/tools/check/layers.awk" ARCHITECTURE.md "$KMES_SCRATCH/code" |
        sort -t: -k1,1 -k2,2n
}

# A case is a row. What stops the testee at an access is a step in conformance/play/, so that rows
# can be composed of it, replayed and made smaller.
rule_guards_in_play() {
    code '\<guards\(\)\.guard' '^conformance/(cases|explorer|monitors|oracle)/' |
        say 'only conformance/play/ installs guard hooks; a case is a row of its steps'
}

# A class of the stage and of the tracer has one responsibility, and private data.
rule_class_size() {
    local list=tools/check/large_classes.txt
    [ -f "$list" ] || list=/dev/null
    LC_ALL=C awk -f "$KMES_ROOT/tools/check/classes.awk" "$list" "$KMES_SCRATCH/code" |
        sort -t: -k1,1 -k2,2n
}

# engine.h may have it, because only sources of the tracer include that header.
rule_using_namespace() {
    code '\<using +namespace\>' '^[^:]*\.(h|hpp):' '^conformance/tracer/engine\.h:' |
        say 'a header does not open a namespace for all who include it; name what it uses'
}

# Code that g++ accepts but clang-19 rejects with libstdc++ 12. Only the slower builds of the
# sanitizers would report it.
rule_every_compiler() {
    code '\<(ranges::)?(stable_sort|stable_partition|inplace_merge|get_temporary_buffer) *\(' . |
        say 'clang calls what it uses deprecated; std::sort with a last word for equals'
}

# Dead files: the BUILD.bazel of the folder, or of the nearest parent that has one, names each
# source. A list of tests may have the name without its ending.
rule_in_build_file() {
    files '\.(c|h|cc|cpp|hpp|py|rs|go)$' >"$KMES_SCRATCH/sources"
    {
        echo "$KMES_SCRATCH/sources"
        files '(^|/)BUILD\.bazel$'
    } | on_files awk '
        function folder_of(name) { return sub(/\/[^\/]*$/, "", name) ? name : "." }
        FILENAME == ARGV[1] { sources[++count] = $0; next }
        FNR == 1 { folder = folder_of(FILENAME); has_build[folder] = 1 }
        {
            for (many = split($0, part, "\""); many > 1; --many) named[folder, part[many]] = 1
        }
        END {
            for (i = 1; i <= count; ++i) {
                file = sources[i]
                folder = folder_of(file)
                while (folder != "." && !(folder in has_build)) folder = folder_of(folder)
                if (folder == "." && file ~ /\//) {
                    print file ":1: no BUILD.bazel in " folder_of(file) "; write one for it"
                    continue
                }
                name = folder == "." ? file : substr(file, length(folder) + 2)
                stem = name
                sub(/\.[^.]*$/, "", stem)
                if (!((folder, name) in named) && !((folder, stem) in named))
                    print file ":1: not in " folder "/BUILD.bazel; name it there, or remove it"
            }
        }'
}

rule_unfinished() {
    text_lines '\<(TO''DO|FIX''ME|X''XX)\>' |
        say 'unfinished; finish it, or say in docs/ what is not done'
}

# Conflict marks of a merge. With [<] the pattern does not match itself.
rule_conflict_marks() {
    text_lines '^([<]{7}|[>]{7}) ' | say 'a conflict of a merge'
}

rule_machine_paths() {
    text_lines '(^|[^[:alnum:]_.}])/(work|root|farm|home|tmp)/' |
        say 'a path of one machine; take it from the environment or the arguments'
}

# Documents: 100 characters a line, or one sentence a line. A row of a table is one line.
rule_document_lines() {
    own_files '\.md$' | LC_ALL=C.UTF-8 on_files grep -nHE '^[^|].{100,}$' -- |
        grep -E '[.!?] +[A-Z`*]' | sed -E 's/^([^:]*:[0-9]+):.*/\1/' |
        sed 's/$/: longer than 100 characters; break it, or write one sentence a line/'
}

# words_of LIST TEXTS: prints the lines of TEXTS (`file:line:text`) with a word of LIST, without
# regard to case, and with the better word. First searches all patterns at once, which is fast and
# usually finds none.
words_of() {
    local list=$KMES_ROOT/tools/check/$1 found=$KMES_SCRATCH/found pattern instead any
    any=$(awk -F'\t' '!/^#/ && NF == 2 { printf "%s%s", many++ ? "|" : "", $1 }' "$list")
    grep -aiE -e "^[^:]*:[0-9]*:.*($any)" "$2" >"$found" || return 0
    while IFS=$'\t' read -r pattern instead; do
        case "$pattern" in '#'* | '') continue ;; esac
        grep -aiE -e "^[^:]*:[0-9]*:.*($pattern)" "$found" |
            say "write this in other words ($instead)"
    done <"$list"
}

# The words of tools/check/words.txt. A text is a line of a document, or a comment.
rule_words() {
    local texts=$KMES_SCRATCH/texts
    {
        own_files '\.md$' | LC_ALL=C on_files grep -nHE . --
        # The Promela models have C's comments.
        files '\.(c|h|cc|cpp|hpp|go|rs|pml)$' |
            LC_ALL=C on_files grep -noHE '(//|/\*|^ *\*).*' --
        files '\.(py|sh|awk|bzl|bazel)$|^\.bazelrc$' | LC_ALL=C on_files grep -noHE '#.*' --
    } >"$texts"
    words_of words.txt "$texts"
}

# The words of tools/check/document_words.txt. A text is a line of a document without its code.
rule_document_words() {
    local texts=$KMES_SCRATCH/texts
    own_files '\.md$' | on_files awk -f "$KMES_ROOT/tools/check/prose.awk" >"$texts"
    words_of document_words.txt "$texts"
}

# A sentence begins with its subject. The rule checks only sentences at the beginning of a line or
# after a sentence in the same line.
rule_sentences() {
    local start='(Of|Behind) an? ' comment='(//|/\*|^ *\*)'
    {
        own_files '\.md$' |
            on_files grep -nHE -e "^([-*] |[0-9]+\\. )?$start" -e "[.:] $start" --
        files '\.(c|h|cc|cpp|hpp|go|rs|pml)$' |
            on_files grep -nHE -e "$comment $start" -e "$comment.*[.:] $start" --
        files '\.(py|sh|awk|bzl|bazel)$' |
            on_files grep -nHE -e "# $start" -e "#.*[.:] $start" --
    } | say 'begin the sentence with its subject'
}

# Sentences of documents have at most 25 words.
rule_sentence_length() {
    own_files '\.md$' |
        on_files awk -v most=25 -f "$KMES_ROOT/tools/check/sentences.awk"
}

# Returns whether the tree is the top of a clone with a commit.
has_commits() {
    [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] &&
        git rev-parse -q --verify HEAD >/dev/null 2>&1
}

# The commits that the branch main does not have; on main itself, the last one.
rule_commit_subjects() {
    local main range=-1 commit subject
    local no_imperative=': (an?|the|what|who|which|that|one|of|behind|where|when|it|no) '
    has_commits || return 0
    for main in origin/main main; do
        git rev-parse -q --verify "$main" >/dev/null 2>&1 || continue
        [ -z "$(git rev-list -1 "$main..HEAD")" ] || range=$main..HEAD
        break
    done
    git log --no-merges --format='%h %s' "$range" | while read -r commit subject; do
        if [ "${#subject}" -gt 72 ]; then
            echo "commit $commit: a subject of ${#subject} characters; at most 72: $subject"
        elif ! [[ $subject =~ ^[a-z0-9_/,.\ -]+:\ [^\ ] ]]; then
            echo "commit $commit: the subject is not \`area: imperative and object\`: $subject"
        elif [[ $subject =~ $no_imperative ]]; then
            echo "commit $commit: the subject does not begin with an imperative: $subject"
        fi
    done
}

# A symbol of libkmes is never removed and never changes its version, because programs use it.
rule_library_symbols() {
    local api=kmes/user/libkmes_api.txt name version
    has_commits || return 0
    git log -p --no-color --format= -- "$api" |
        awk '/^-    kmes_/ && $3 ~ /^KMES_/ { print $2, $3 }' | sort -u |
        while read -r name version; do
            awk -v name="$name" -v version="$version" '
                $1 == name && $2 == version { found = 1 } END { exit !found }' "$api" 2>/dev/null ||
                echo "$api:1: $name $version was removed; a symbol and its version must stay"
        done
}
