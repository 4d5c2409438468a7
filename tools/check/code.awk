# SPDX-License-Identifier: MIT
#
# Prints C and C++ files as `file:line:code` with comments and the insides of string and character
# literals blanked (the path of an #include stays), so that the rules in rules.sh check code and
# not at words. Call with LC_ALL=C.

FNR == 1 { in_comment = 0; raw_end = "" }

{
    print FILENAME ":" FNR ":" code_of($0)
}

function code_of(line) {
    if (!in_comment && raw_end == "" && line ~ /^[ \t]*#[ \t]*include/) {
        sub(/[ \t]*(\/\/|\/\*).*$/, "", line)
        return line
    }
    out = ""
    while (line != "") {
        if (in_comment) line = skip_to("*/", line)
        else if (raw_end != "") line = skip_to(raw_end, line)
        else line = take_code(line)
    }
    return out
}

# The line behind what ends a comment or a raw string; nothing when it does not end here.
function skip_to(end, line,    at) {
    at = index(line, end)
    if (!at) return ""
    in_comment = 0
    if (raw_end != "") out = out "\""
    raw_end = ""
    return substr(line, at + length(end))
}

# Takes code up to the next comment or literal, and the opening of that.
function take_code(line,    at, rest, delimiter) {
    at = match(line, /"|'|\/\/|\/\*/)
    if (!at) {
        out = out line
        return ""
    }
    out = out substr(line, 1, at - 1)
    rest = substr(line, at)
    if (rest ~ /^\/\//) return ""
    if (rest ~ /^\/\*/) {
        in_comment = 1
        out = out " "
        return substr(rest, 3)
    }
    if (rest ~ /^"/ && out ~ /R$/ && match(rest, /^"[^( ]*\(/)) {
        delimiter = substr(rest, 2, RLENGTH - 2)
        raw_end = ")" delimiter "\""
        out = out "\""
        return substr(rest, RLENGTH + 1)
    }
    # A digit separator, as in 1'000.
    if (rest ~ /^'[0-9a-fA-F]/ && out ~ /[0-9][0-9a-fA-F]*$/) {
        out = out "'"
        return substr(rest, 2)
    }
    return take_literal(rest)
}

function take_literal(rest,    quote, at) {
    quote = substr(rest, 1, 1)
    for (at = 2; at <= length(rest); at++) {
        if (substr(rest, at, 1) == "\\") at++
        else if (substr(rest, at, 1) == quote) break
    }
    out = out quote quote
    return substr(rest, at + 1)
}
